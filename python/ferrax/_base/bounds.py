"""Bounds checks of indices, enabled by the flags `jax_strict_bounds` and
`jax_check_static_indices`.

    with strict_bounds(True):
        jit(lambda x, i: x[i])(jnp.arange(3), 5)          # IndexError

A concrete index is checked before it is used. A traced index is checked by a callback when the
program runs; its error is raised where the result is read.

Invariant: with the flag on, an index out of bounds is clamped, dropped or filled only under an
explicit mode.
"""

import numpy as np

from .. import _core
from ..errors import OutOfBoundsError
from .flags import FLAGS

_FLAG, _STATIC = FLAGS["jax_strict_bounds"], FLAGS["jax_check_static_indices"]


def strict():
    """Whether bounds are checked."""
    return _FLAG.changed and _core.config_get("jax_strict_bounds")


def check(shape, entries, wrap):
    """The entries of an index on an operand of a shape, with traced ones replaced by checked ones.

    Raises:
        OutOfBoundsError: a concrete one is out of bounds.
    """
    return [e._replace(value=checked(e.value, shape[e.axis], e.axis, wrap)) if e.kind in ("int", "scalar", "array") else e for e in entries]


def check_integers(shape, entries, inserted, wrap, mode):
    """Checks the integers of a reading index, if the flag `jax_check_static_indices` is set and
    `mode` does not define reads out of bounds.

    Args:
        inserted: the axes of `shape` that the operand does not have.
        mode: of class `GatherScatterMode`, or None.

    Raises:
        IndexError: an integer is out of bounds.
    """
    if not _STATIC.changed or not _core.config_get(_STATIC.name) or getattr(mode, "name", "PROMISE_IN_BOUNDS") != "PROMISE_IN_BOUNDS":
        return
    for e in entries:
        n = shape[e.axis] if e.kind == "int" else 0
        if e.kind == "int" and not (-n if wrap else 0) <= e.value < n:
            axis = e.axis - sum(i < e.axis for i in inserted)
            raise IndexError(f"index {e.value} out of bounds for axis {axis} with size {n} (normalize_indices={wrap})")


def checked(i, n, axis, wrap):
    """Checked indices into an axis of size n.

    Raises OutOfBoundsError if they are concrete and one is out of bounds.
    """
    low = -n if wrap else 0

    def look(i):
        i = np.asarray(i)
        outside = (i < low) | (i >= n)
        if outside.any():
            raise OutOfBoundsError(f"index {i[outside].flat[0]} is out of bounds for axis {axis} with size {n}")
        return [i]

    if isinstance(i, _core.Tracer):
        return _core.callback(look, [i], [i.aval], "pure", False, "broadcast_all")[0]
    look(i)
    return i
