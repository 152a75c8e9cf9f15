"""Choosing between two arrays: where, clip.

Invariant: everything ends in select_n (or max and min for clip); both are computed.

    >>> jnp.where(jnp.array([True, False]), 1, 2)
    Array([1, 2], dtype=int32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from ... import _core
from ..._base.dtypes import dtype_of, is_bool, is_complex
from ..._base.shapes import common_shape
from ..._core import bind
from .._math.operators import maximum, minimum
from .._support.arguments import Array, check_arraylike, check_promotion, constant, exactly, jitted

if TYPE_CHECKING:
    from ...typing import ArrayLike


@jitted("_where")
def _where(condition, x, y):
    if not is_bool(condition.dtype):
        condition = bind("ne", condition, constant(0, condition.dtype))
    x, y = _core.promote_dtypes(x, y)
    shape = common_shape(condition.shape, x.shape, y.shape)
    # A scalar condition stays one: select_n takes it as it is.
    if condition.ndim and tuple(condition.shape) != shape:
        condition = _spread(condition, shape)
    x, y = (v if tuple(v.shape) == shape else _spread(v, shape) for v in (x, y))
    return bind("select_n", condition, y, x)


def _spread(v, shape):
    k = len(shape) - v.ndim
    return bind("broadcast_in_dim", v, shape=shape, broadcast_dimensions=tuple(range(k, len(shape))))


@overload
def where(
    condition: ArrayLike, x: None = None, y: None = None, /, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
) -> tuple[Array, ...]: ...


@overload
def where(
    condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
) -> Array: ...


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Array | tuple[Array, ...]:
    """`x` where `condition` holds, else y.

    With only `condition`, the indices where it holds. Both x and y are computed; elements
    that are not chosen do not contribute to derivatives, even if they are nan or infinite.

    Args:
        condition: array of bool; other dtypes are compared with 0.
        x, y: arrays that broadcast with it, both or neither.
        size: int, how many indices are returned, static and needed under jit; None: all.
        fill_value: index that pads up to `size`, or a tuple with one for each axis; None: 0.

    Returns:
        Array of the broadcast shape and of the dtype that x and y promote to; without x and y, a
        tuple of integer vectors, one for each axis.

    Raises:
        ValueError: for `size` or `fill_value` with x and y.
        TypeError: if only one of x and y is given.

    >>> jnp.where(jnp.array([True, False]), 1, 2)
    Array([1, 2], dtype=int32, weak_type=True)
    """
    if x is None and y is None:
        check_arraylike("where", condition)
        return _core.asarray(condition).nonzero(size=size, fill_value=fill_value)
    check_arraylike("where", condition, x, y)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where function.")
    condition = _core.asarray(condition) if not isinstance(condition, Array) else condition
    return exactly(lambda x, y: _where(condition, x, y), x, y)


@jitted("clip")
def _clip(arr, min=None, max=None):
    if min is not None:
        arr = maximum(min, arr)
    if max is not None:
        arr = minimum(max, arr)
    return arr


def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """`arr` limited to [min, max]; where min > max, max.

    Args:
        arr: array of integers or real numbers.
        min, max: scalars or arrays that broadcast; None: no bound.

    Returns:
        Array of the broadcast shape and the promoted dtype.

    Raises:
        ValueError: a value is complex, or there is no array.

    >>> jnp.clip(jnp.array([1, 5, 9]), 2, 6)
    Array([2, 5, 6], dtype=int32)
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    check_arraylike("clip", arr, *[v for v in (min, max) if v is not None])
    if any(v is not None and is_complex(dtype_of(v)) for v in (arr, min, max)):
        raise ValueError(
            "Clip received a complex value either through the input or the min/max keywords. Complex values have no ordering and cannot be "
            "clipped. Please convert to a real value or array by taking the real or imaginary components via jax.numpy.real/imag respectively."
        )
    for limit in (min, max):
        if limit is not None:
            check_promotion(arr, limit, ranks=True)
    return exactly(_clip, arr, min, max)
