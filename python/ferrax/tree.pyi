"""Pytree functions under short names: `tree.map`, `tree.leaves`, ... Each is the function of the same meaning in `tree_util`."""

from typing import Any

from ferrax.tree_util import tree_unflatten as unflatten
from ferrax.tree_util import tree_transpose as transpose
from ferrax.tree_util import tree_structure as structure
from ferrax.tree_util import tree_reduce_associative as reduce_associative
from ferrax.tree_util import tree_reduce as reduce
from ferrax.tree_util import tree_map_with_path as map_with_path
from ferrax.tree_util import tree_map as map
from ferrax.tree_util import tree_leaves_with_path as leaves_with_path
from ferrax.tree_util import tree_leaves as leaves
from ferrax.tree_util import tree_flatten_with_path as flatten_with_path
from ferrax.tree_util import tree_flatten as flatten
from ferrax.tree_util import tree_broadcast as broadcast
from ferrax.tree_util import tree_all as all

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]

def static(*, metadata: Any = None, **kwargs: Any) -> Any: ...
