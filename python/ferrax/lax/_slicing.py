"""Static and dynamic slices.

Invariant: negative indices of the dynamic functions count from the end (unless
`allow_negative_indices` says no), and windows that would stick out are moved inside.

    >>> lax.dynamic_slice(jnp.arange(5), (3,), (3,))
    Array([2, 3, 4], dtype=int32)
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._base.dtypes import dtype_of, iinfo, is_integer, is_unsigned
from .._base.shapes import canonicalize_axis, canonicalize_shape
from .._core import bind
from ._creation import convert_element_type
from ._shaping import expand_dims, squeeze

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike


def slice(operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None) -> Array:
    """operand[start:limit:stride] along every axis at once; the bounds are Python integers within
    the operand.

    Args:
        operand: array.
        start_indices, limit_indices: sequences of ints, one for each axis.
        strides: sequence of ints; None: 1.

    Returns:
        Array of operand's dtype and rank.

    Raises:
        TypeError: for bounds outside the operand, strides that are not positive, and sequences of
          other lengths.

    >>> lax.slice(jnp.arange(6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)
    """
    strides = None if strides is None else tuple([operator.index(s) for s in strides])
    return bind(
        "slice",
        operand,
        start_indices=tuple([operator.index(i) for i in start_indices]),
        limit_indices=tuple([operator.index(i) for i in limit_indices]),
        strides=strides,
    )


def slice_in_dim(operand: Array | np.ndarray, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Array:
    """operand[start:limit:stride] along one axis.

    Args:
        operand: array.
        start_index, limit_index: int or None (the end), with Python's meaning.
        stride: int.
        axis: int.

    Returns:
        Array of operand's dtype and rank.

    >>> lax.slice_in_dim(jnp.arange(6), 1, 3)
    Array([1, 2], dtype=int32)
    """
    shape = np.shape(operand)
    axis = canonicalize_axis(axis, len(shape))
    n = shape[axis]
    start = 0 if start_index is None else operator.index(start_index)
    limit = n if limit_index is None else operator.index(limit_index)
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + n if start < 0 else start
    limits[axis] = limit + n if limit < 0 else limit
    strides[axis] = operator.index(stride)
    return slice(operand, starts, limits, strides)


def index_in_dim(operand: Array | np.ndarray, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """operand[index] along one axis, for a known index.

    Args:
        operand: array.
        index: int.
        axis: int.
        keepdims: bool; keep the axis, with size 1.

    Returns:
        Array of operand's dtype.

    Raises:
        IndexError: out of bounds.

    >>> lax.index_in_dim(jnp.arange(6), 2, keepdims=False)
    Array(2, dtype=int32)
    """
    index, n = operator.index(index), np.shape(operand)[axis]
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {n}")
    if index < 0:
        index += n
    out = slice_in_dim(operand, index, index + 1, 1, axis)
    return out if keepdims else squeeze(out, (axis,))


def _start_indices(operand, start_indices, allow_negative_indices):
    shape = np.shape(operand)
    if hasattr(start_indices, "ndim"):
        if start_indices.ndim != 1:
            raise ValueError(f"Slice indices must be a 1D sequence, got {start_indices.shape}")
        if isinstance(start_indices, np.ndarray):
            start_indices = list(start_indices)
        else:
            start_indices = [squeeze(slice(start_indices, (d,), (d + 1,)), (0,)) for d in range(start_indices.shape[0])]
    if len(start_indices) != len(shape):
        raise ValueError(f"Length of slice indices must match number of operand dimensions ({len(start_indices)} vs {shape})")
    if isinstance(allow_negative_indices, (bool, np.bool_)):
        allow = (allow_negative_indices,) * len(shape)
    else:
        allow = tuple(allow_negative_indices)
        if len(allow) != len(shape):
            raise ValueError(f"Length of allow_negative_indices must match number of operand dimensions ({len(allow)} vs {shape})")
    out = []
    for i, n, negative in zip(start_indices, shape, allow, strict=True):
        if isinstance(i, (int, np.integer)):
            i = int(i)
            out.append(_core.asarray(i + n if negative and i < 0 else i, np.int32))
            continue
        dtype = dtype_of(i)
        if not is_integer(dtype) or np.ndim(i):
            out.append(i)
            continue
        if negative and not is_unsigned(dtype):
            if _core.asarray(i).weak_type:
                i = convert_element_type(i, dtype)
            if iinfo(dtype).max < n:
                i, dtype = convert_element_type(i, np.int32), np.dtype(np.int32)
            i = bind("select_n", bind("lt", i, dtype.type(0)), i, bind("add", i, dtype.type(n)))
        out.append(i)
    return out


def dynamic_slice(
    operand: Array | np.ndarray,
    start_indices: Array | np.ndarray | Sequence[ArrayLike],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A window of `slice_sizes` of `operand` at `start_indices`, one scalar (may be traced) per
    axis; starts are clamped so that it is inside.

    Args:
        operand: array.
        start_indices: sequence of integer scalars (traced ones too), or a vector, one for each
          axis.
        slice_sizes: sequence of ints.
        allow_negative_indices: bool, or one for each axis: negative indices count from the end.

    Returns:
        Array of shape `slice_sizes` and operand's dtype.

    Raises:
        TypeError: for windows larger than the operand.
        ValueError: unless there is one index for each axis.

    >>> lax.dynamic_slice(jnp.arange(6), (4,), (3,))
    Array([3, 4, 5], dtype=int32)
    """
    starts = _start_indices(operand, start_indices, allow_negative_indices)
    sizes = canonicalize_shape(slice_sizes)
    if any(type(n) is int and n < 0 for n in sizes):
        raise TypeError(f"slice slice_sizes must be greater than or equal to zero, got slice_sizes of {sizes}.")
    return bind("dynamic_slice", operand, *starts, slice_sizes=sizes)


def dynamic_slice_in_dim(operand: Array | np.ndarray, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True) -> Array:
    """`dynamic_slice` along one axis.

    Args:
        operand: array.
        start_index: integer scalar (traced ones too).
        slice_size: int.
        axis: int.
        allow_negative_indices: bool; negative indices count from the end.

    Returns:
        Array of operand's dtype and rank.

    >>> lax.dynamic_slice_in_dim(jnp.arange(6), 1, 2)
    Array([1, 2], dtype=int32)
    """
    shape = list(np.shape(operand))
    axis = canonicalize_axis(axis, len(shape))
    starts: list = [0] * len(shape)
    starts[axis] = start_index
    shape[axis] = operator.index(slice_size)
    return dynamic_slice(operand, starts, shape, allow_negative_indices=allow_negative_indices)


def _dynamic_index_in_dim(operand, index, axis, keepdims, allow_negative_indices):
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else squeeze(out, (axis,))


_dynamic_index_in_dim.__name__ = "dynamic_index_in_dim"
_dynamic_index_in_dim_jit = _core.jit(_dynamic_index_in_dim, static_argnums=(2, 3, 4))


def dynamic_index_in_dim(operand: Array | np.ndarray, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True) -> Array:
    """operand[index] along one axis, for an index that may be traced.

    Args:
        operand: array.
        index: integer scalar (traced ones too).
        axis: int.
        keepdims: bool; keep the axis, with size 1.
        allow_negative_indices: bool; negative indices count from the end.

    Returns:
        Array of operand's dtype.

    >>> lax.dynamic_index_in_dim(jnp.arange(6), 2)
    Array([2], dtype=int32)
    """
    return _dynamic_index_in_dim_jit(operand, index, operator.index(axis), bool(keepdims), allow_negative_indices)


def dynamic_update_slice(
    operand: Array | np.ndarray, update: ArrayLike, start_indices: Array | Sequence[ArrayLike], *, allow_negative_indices: bool | Sequence[bool] = True
) -> Array:
    """`operand` with the window at `start_indices` replaced by `update`, of the same dtype and
    rank; starts are clamped so that it is inside.

    Args:
        operand: array.
        update: array of operand's dtype and rank, not larger.
        start_indices: sequence of integer scalars (traced ones too), or a vector, one for each
          axis.
        allow_negative_indices: bool, or one for each axis: negative indices count from the end.

    Returns:
        Array of operand's shape and dtype.

    Raises:
        TypeError: if dtypes, ranks or sizes do not fit.
        ValueError: unless there is one index for each axis.

    >>> lax.dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (1,))
    Array([0., 1., 1., 0.], dtype=float32)
    """
    return bind("dynamic_update_slice", operand, update, *_start_indices(operand, start_indices, allow_negative_indices))


def dynamic_update_slice_in_dim(
    operand: Array | np.ndarray, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """`dynamic_update_slice` along one axis.

    Args:
        operand: array.
        update: array of operand's dtype and rank, not larger.
        start_index: integer scalar (traced ones too).
        axis: int.
        allow_negative_indices: bool; negative indices count from the end.

    Returns:
        Array of operand's shape and dtype.

    >>> lax.dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 1, 0)
    Array([0., 1., 1., 0.], dtype=float32)
    """
    ndim = np.ndim(operand)
    starts: list = [0] * ndim
    starts[canonicalize_axis(axis, ndim)] = start_index
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def _dynamic_update_index_in_dim(operand, update, index, axis, allow_negative_indices):
    axis = canonicalize_axis(axis, np.ndim(operand))
    if np.ndim(update) != np.ndim(operand):
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)


_dynamic_update_index_in_dim.__name__ = "dynamic_update_index_in_dim"
_dynamic_update_index_in_dim_jit = _core.jit(_dynamic_update_index_in_dim, static_argnums=(3, 4))


def dynamic_update_index_in_dim(operand: Array | np.ndarray, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True) -> Array:
    """`operand` with the slice at `index` along `axis` replaced by `update`, with or without that
    axis.

    Args:
        operand: array.
        update: array of operand's dtype, with or without the axis.
        index: integer scalar (traced ones too).
        axis: int.
        allow_negative_indices: bool; negative indices count from the end.

    Returns:
        Array of operand's shape and dtype.

    >>> lax.dynamic_update_index_in_dim(jnp.zeros(3), 5.0, 1, 0)
    Array([0., 5., 0.], dtype=float32)
    """
    return _dynamic_update_index_in_dim_jit(operand, update, index, operator.index(axis), allow_negative_indices)
