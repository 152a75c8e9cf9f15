"""Named axes as collectives use them: sizes, positions, groups, and the states of values in a
checked `shard_map`.

Invariant: an axis name that is not in scope raises NameError, and groups that do not partition the
axis raise ValueError.

    >>> jax.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.array([10, 20]))
    Array([10, 21], dtype=int32)
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._core import bind
from ._bodies import as_array

if TYPE_CHECKING:
    from .._core import Array


def _names(axis_name):
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _varying(v, names):
    """A value made to vary over these axes of a checked `shard_map`, as collectives require."""
    return _core.varying(as_array(v), names)


_WORDS = "can only accept axis_name which corresponds to one of varying, unreduced, reduced or invarying state of the input."


def _state(v, names, name):
    """The state of axes in the type of a value in a checked `shard_map`: varying, unreduced,
    reduced or invarying.

    Raises ValueError if the axes have two states.
    """
    mat = v.aval.mat
    of = lambda a: next((word for word in ("varying", "unreduced", "reduced") if a in getattr(mat, word)), "invarying")
    states = {of(str(a)) for a in names}
    if len(states) > 1:
        raise ValueError(f"jax.lax.{name} {_WORDS} Got input type: {v.aval.str_short()}, axes: {tuple(names)} and input state: {states}")
    return states.pop()


def _manual(v, names):
    """The manual axes among `names` for a traced value; empty for others."""
    return [a for a in names if _core.is_manual(a)] if isinstance(v, _core.Tracer) else []


def _check_states(what, v, names, wanted, arrow):
    """Raises ValueError, with JAX's message, unless a value has the state `wanted` along at least
    one of the axes.
    """
    there = getattr(v.aval.mat, wanted)
    if not there:
        raise ValueError(f"{what} only accepts inputs that are {wanted}. Got {v.aval.str_short(True)}")
    if not there & {str(a) for a in names}:
        raise ValueError(
            f"{what} is a {arrow} collective. This means that the axis_name={tuple(names)} passed to `{what}` must be present in"
            f" jax.typeof(x).mat.{wanted}={there}"
        )


def _is_position(axis):
    return isinstance(axis, int) and not isinstance(axis, bool)


def _bound(names, call):
    """The product of the sizes of axes.

    Raises NameError, with JAX's message, for an axis that is not in scope.
    """
    for name in names:
        try:
            axis_size(name)
        except NameError:
            raise NameError(f"Found an unbound axis name: {name}. To fix this, please call {call} under `jax.shard_map`.") from None
    return axis_size(names)


def _scope(axis_name, groups=None, call=None, several=False):
    """The names, the groups as tuples, and the number of positions of a group: None if groups
    differ in size.

    call: the function that errors name. several: whether groups may contain positions of several
    axes.
    """
    names = _names(axis_name)
    n = axis_size(names) if call is None else _bound(names, call)
    if len(set(names)) < len(names):
        raise ValueError(f"duplicate value in axis_name: {names}")
    if groups is None:
        return names, None, n
    groups = tuple([tuple([operator.index(i) for i in group]) for group in groups])
    if len(names) != 1 and not several:
        raise ValueError("axis_index_groups only supported for collectives over a single axis")
    if sorted(i for group in groups for i in group) != list(range(n)) or not all(groups):
        raise ValueError("axis_index_groups must cover all indices exactly once")
    sizes = {len(group) for group in groups}
    return names, groups, sizes.pop() if len(sizes) == 1 else None


def _even(name, axis_name, groups):
    """The same for a collective that requires groups of one size; `all_gather` and `psum_scatter`
    accept groups over several axes.
    """
    names, groups, n = _scope(axis_name, groups, several=name in ("all_gather", "psum_scatter"))
    if n is None:
        raise ValueError(f"{name} needs axis_index_groups of one size, but they have sizes {[len(group) for group in groups]}")
    return names, groups, n


def axis_size(axis_name: Any) -> int:
    """The size of the named axis (the product of several), a Python integer.

    Args:
        axis_name: name of a mapped axis, or a tuple of names.

    Returns:
        int.

    Raises:
        NameError: the name is not bound.

    >>> jax.vmap(lambda x: x * lax.axis_size("i"), axis_name="i")(jnp.array([10, 20]))
    Array([20, 40], dtype=int32)
    """
    return math.prod([_core.axis_size(name) for name in _names(axis_name)])


def axis_index(axis_name: Any) -> Array:
    """The position along the named axis, int32; of several names, the position in row-major order.

    Args:
        axis_name: name of a mapped axis, or a tuple of names.

    Returns:
        Scalar array of int32.

    Raises:
        NameError: for an unbound name.

    >>> jax.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.array([10, 20]))
    Array([10, 21], dtype=int32)
    """
    names = _names(axis_name)
    _bound(names, "axis_index")
    index = None
    for name in names:
        step = bind("axis_index", axis_name=name)
        index = step if index is None else bind("add", bind("mul", index, np.int32(axis_size(name))), step)
    return as_array(np.int32(0)) if index is None else index
