"""packbits and unpackbits.

Invariant: uint8 in and out; "big" puts the first element into the highest bit.

    >>> jnp.packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
"""
from __future__ import annotations

import numpy as np

from .._core import bind
from .._dtypes import is_bool, is_integer
from ._arguments import as_array, canonicalize_axis, constant, convert, jitted

_U8 = np.dtype(np.uint8)


def _bit_axis(x, rank):
    return bind("broadcast_in_dim", x, shape=(1,) * (rank - 1) + (8,), broadcast_dimensions=(rank - 1,))


@jitted("packbits", static=("axis", "bitorder"))
def _packbits(a, axis, bitorder):
    from ._reductions import sum
    from ._shaping import moveaxis, reshape

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
    out = convert(sum(shifted, axis=-1), _U8)
    return moveaxis(out, -1, axis)


def packbits(a, axis=None, bitorder="big"):
    """Eight booleans (or integers, by being nonzero) to a byte along `axis` (flattened if None), padded with zeros."""
    a = as_array("packbits", a)
    if not (is_integer(a.dtype) or is_bool(a.dtype)):
        raise TypeError("Expected an input array of integer or boolean data type")
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    return _packbits(a, axis=None if axis is None else canonicalize_axis(axis, a.ndim), bitorder=bitorder)


@jitted("unpackbits", static=("axis", "count", "bitorder"))
def _unpackbits(a, axis, count, bitorder):
    from ._shaping import moveaxis, reshape

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


def unpackbits(a, axis=None, count=None, bitorder="big"):
    """The bits of bytes along `axis` (flattened if None), as uint8; `count` of them, padded with zeros, negative: all but that many."""
    a = as_array("unpackbits", a)
    if a.dtype != _U8:
        raise TypeError("Expected an input array of unsigned byte data type")
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    return _unpackbits(a, axis=None if axis is None else canonicalize_axis(axis, a.ndim), count=count, bitorder=bitorder)
