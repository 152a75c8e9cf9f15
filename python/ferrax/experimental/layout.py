"""The order of elements in memory: in row-major order, always.

    x.format                        # Format(Layout((0, 1)), x.sharding)

Invariant: any other order is refused.
"""

from __future__ import annotations

from typing import Any, TypeVar

from .. import _core
from .._base.layouts import Format, Layout, check_layout
from .._trees.prefixes import broadcast_prefix
from ..tree_util import tree_flatten

_T = TypeVar("_T")

__all__ = ["Format", "Layout", "with_layout_constraint"]


def with_layout_constraint(x: _T, layouts: Any) -> _T:
    """Requests a memory layout of arrays. There is only one layout, so it has no effect.

    Args:
        x: pytree of arrays.
        layouts: tree prefix of layouts; ignored.

    Returns:
        `x`, of arrays.

    Raises:
        TypeError: the argument is not a layout.
        ValueError: an array has another rank than its layout.

    >>> print(with_layout_constraint(jnp.arange(3), Layout((0,))))
    [0 1 2]
    """
    leaves, tree = tree_flatten(x)
    for leaf, layout in zip(leaves, broadcast_prefix(layouts, x, name="with_layout_constraint layouts"), strict=True):
        if not isinstance(layout, Layout):
            raise TypeError(f"layout passed to `with_layout_constraint` must be of type `Layout`. Got {type(layout)}")
        check_layout(layout, _core.asarray(leaf).shape, "with_layout_constraint arguments")
    return tree.unflatten([_core.asarray(leaf) for leaf in leaves])
