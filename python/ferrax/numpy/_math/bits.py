"""Bits of integers: complement, shifts, counts, and booleans packed into bytes.

Invariant: integers and booleans only. (`bitwise_and`, `bitwise_or` and `bitwise_xor` are `ufunc`
objects, in `_functional.ufuncs`.)

    >>> jnp.packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._base.dtypes import is_bool, is_integer, is_unsigned
from ..._base.shapes import canonicalize_axis
from ..._core import bind, elementwise
from .._manipulation.shaping import moveaxis, reshape
from .._reductions import plain as _reductions
from .._support.arguments import as_array, constant, convert, jitted, pointwise, promote

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


_U8 = np.dtype(np.uint8)


def bitwise_not(x: ArrayLike, /) -> Array:
    """Bitwise complement; logical not for bool.

    Args:
        x: array, integer or bool.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for floating and complex dtypes.

    >>> jnp.bitwise_not(jnp.array([0, 1]))
    Array([-1, -2], dtype=int32)
    """
    return pointwise("bitwise_not", "not", x)


invert = bitwise_invert = bitwise_not


def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x << y.

    Args:
        x: array of integers or bool.
        y: number of places; broadcasts with x.

    Returns:
        Array of the broadcast shape and the promoted dtype; bool becomes int32.

    Raises:
        TypeError: for floating and complex dtypes.

    >>> jnp.left_shift(jnp.array([1, 2]), 3)
    Array([ 8, 16], dtype=int32)
    """
    return pointwise("left_shift", "shift_left", x, y)


bitwise_left_shift = left_shift


def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 >> x2, repeating the sign bit of signed integers.

    Args:
        x1: array of integers or bool.
        x2: number of places; broadcasts with x1.

    Returns:
        Array of the broadcast shape and the promoted dtype; bool becomes int32.

    Raises:
        TypeError: for floating and complex dtypes.

    >>> jnp.right_shift(jnp.array([16, -16]), 2)
    Array([ 4, -4], dtype=int32)
    """
    x1, x2 = promote("right_shift", x1, x2)
    return elementwise("shift_right_logical" if is_unsigned(x1.dtype) else "shift_right_arithmetic", x1, x2)


bitwise_right_shift = right_shift


@jitted("bitwise_count")
def _bitwise_count(x):
    if is_bool(x.dtype):
        return convert(x, np.uint8)
    x = x if is_unsigned(x.dtype) else bind("abs", x)
    return convert(bind("population_count", x), np.uint8)


def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of set bits of |x|, uint8.

    Args:
        x: array, integer or bool.

    Returns:
        Array of uint8 of x's shape.

    Raises:
        TypeError: for floating and complex dtypes.

    >>> jnp.bitwise_count(jnp.array([7, 8]))
    Array([3, 1], dtype=uint8)
    """
    return _bitwise_count(as_array("bitwise_count", x))


def _bit_axis(x, rank):
    return bind("broadcast_in_dim", x, shape=(1,) * (rank - 1) + (8,), broadcast_dimensions=(rank - 1,))


@jitted("packbits", static=("axis", "bitorder"))
def _packbits(a, axis, bitorder):
    a = convert(bind("ne", a, constant(0, a.dtype)), _U8)
    bits = bind("iota", dtype=_U8, shape=(8,), dimension=0)
    if bitorder == "big":
        bits = bind("rev", bits, dimensions=(0,))
    if axis is None:
        a, axis = reshape(a, (a.size,)), 0
    a = moveaxis(a, axis, -1)
    n = a.shape[-1]
    if n % 8:
        a = bind("pad", a, np.uint8(0), padding_config=((0, 0, 0),) * (a.ndim - 1) + ((0, 8 - n % 8, 0),))
    a = bind("reshape", a, new_sizes=(*a.shape[:-1], a.shape[-1] // 8, 8), dimensions=None)
    shifted = bind("shift_left", a, _bit_axis(bits, a.ndim))
    out = convert(_reductions.sum(shifted, axis=-1), _U8)
    return moveaxis(out, -1, axis)


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight booleans (or integers, by being nonzero) to a byte along `axis` (flattened if None),
    padded with zeros.

    Raises TypeError for other dtypes, ValueError for another bitorder.

    Args:
        a: array, integer or bool.
        axis: int, or None for the flattened array.
        bitorder: "big" (the first element is the highest bit) or "little".

    Returns:
        Array of uint8, a's shape with size ceil(n / 8) along `axis`.

    >>> jnp.packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    a = as_array("packbits", a)
    if not (is_integer(a.dtype) or is_bool(a.dtype)):
        raise TypeError("Expected an input array of integer or boolean data type")
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    return _packbits(a, axis=None if axis is None else canonicalize_axis(axis, a.ndim), bitorder=bitorder)


@jitted("unpackbits", static=("axis", "count", "bitorder"))
def _unpackbits(a, axis, count, bitorder):
    bits = bind("shift_left", np.uint8(1), bind("iota", dtype=_U8, shape=(8,), dimension=0))
    if bitorder == "big":
        bits = bind("rev", bits, dimensions=(0,))
    if axis is None:
        a, axis = reshape(a, (a.size,)), 0
    a = moveaxis(a, axis, -1)
    column = bind("broadcast_in_dim", a, shape=(*a.shape, 1), broadcast_dimensions=tuple(range(a.ndim)))
    out = convert(bind("gt", bind("and", column, _bit_axis(bits, a.ndim + 1)), np.uint8(0)), _U8)
    out = bind("reshape", out, new_sizes=(*a.shape[:-1], a.shape[-1] * 8), dimensions=None)
    if count is not None:
        n = out.shape[-1]
        if count > n:
            out = bind("pad", out, np.uint8(0), padding_config=((0, 0, 0),) * (out.ndim - 1) + ((0, count - n, 0),))
        else:
            out = out[..., :count]
    return moveaxis(out, -1, axis)


def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes along `axis` (flattened if None), as uint8; `count` of them, padded with
    zeros, negative: all but that many.

    Raises TypeError for other dtypes, ValueError for another bitorder.

    Args:
        a: array of uint8.
        axis: int, or None for the flattened array.
        count: int or None (all): how many bits to keep along `axis`; negative: all but that many.
        bitorder: "big" (the highest bit first) or "little".

    Returns:
        Array of uint8, zeros and ones, a's shape with size 8 n (or `count`) along `axis`.

    >>> jnp.unpackbits(jnp.array([5], dtype="uint8"))
    Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    a = as_array("unpackbits", a)
    if a.dtype != _U8:
        raise TypeError("Expected an input array of unsigned byte data type")
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    return _unpackbits(a, axis=None if axis is None else canonicalize_axis(axis, a.ndim), count=count, bitorder=bitorder)
