"""Pytree functions under short names: `tree.map`, `tree.leaves`, ... Each is the function of the
same meaning in `tree_util`.
"""

from __future__ import annotations

from typing import Any

from .tree_util import (
    tree_all as all,
    tree_broadcast as broadcast,
    tree_flatten as flatten,
    tree_flatten_with_path as flatten_with_path,
    tree_leaves as leaves,
    tree_leaves_with_path as leaves_with_path,
    tree_map as map,
    tree_map_with_path as map_with_path,
    tree_reduce as reduce,
    tree_reduce_associative as reduce_associative,
    tree_structure as structure,
    tree_transpose as transpose,
    tree_unflatten as unflatten,
)

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


def static(*, metadata: Any = None, **kwargs: Any) -> Any:
    """A dataclass field that `register_dataclass` treats as metadata: `dataclasses.field` with
    `metadata["static"]` set.

    Args:
        metadata: mapping, as for `dataclasses.field`; None: no further data.
        **kwargs: passed to `dataclasses.field`.

    Returns:
        Dataclass field.

    >>> import dataclasses
    >>> Named = jax.tree_util.register_dataclass(dataclasses.make_dataclass("Named", [("x", float), ("name", str, jax.tree.static())]))
    >>> jax.tree.leaves(Named(1.5, "a"))
    [1.5]
    """
    import dataclasses

    return dataclasses.field(metadata={**(metadata or {}), "static": True}, **kwargs)
