"""Elements added and removed: append, insert, delete, resize, trim_zeros.

Invariant: the result's size is known when traced; so `delete` requires positions whose number is
known.

    >>> jnp.insert(jnp.arange(3), 1, 9)
    Array([0, 9, 1, 2], dtype=int32)
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.shapes import canonicalize_axes, canonicalize_axis, canonicalize_shape
from .._creation.filled import ones, zeros, zeros_like
from .._creation.ranges import arange
from .._indexing.selecting import clip, where
from .._logic.elementwise import less
from .._sorting.sorting import argsort
from .._support.arguments import Array, as_array, beside, check_arraylike, check_promotion, concrete_or_error, convert, converted, jitted, ndim_of
from .joining import concatenate
from .rearranging import tile
from .shaping import broadcast_to, moveaxis, ravel, reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...typing import ArrayLike


@jitted("append", static=("axis",))
def _append(arr, values, axis):
    return concatenate([ravel(arr), ravel(values)] if axis is None else [arr, values], axis=0 if axis is None else axis)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """`values` joined behind `arr`, along `axis` or, by default, both flattened.

    Args:
        arr: array.
        values: array; along `axis`, of arr's other sizes.
        axis: int, or None to flatten both first.

    Returns:
        Array of the promoted dtype.

    Raises:
        TypeError: if ranks or other sizes differ.

    >>> jnp.append(jnp.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    """
    if axis is None:
        check_arraylike("ravel", arr)
        check_arraylike("ravel", values)
    check_arraylike("append", arr, values)
    check_promotion(arr, values)
    return _append(arr, values, axis=axis)


def insert(arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None) -> Array:
    """`arr` with `values` inserted before the positions `obj` along an axis.

    Args:
        arr: array.
        obj: int, integers or slice: positions of arr; negative ones count from the end.
        values: array that broadcasts to the inserted slices, cast to arr's dtype.
        axis: int, or None to flatten arr first.

    Returns:
        Array of arr's dtype.

    >>> jnp.insert(jnp.array([1, 2]), 1, 9)
    Array([1, 9, 2], dtype=int32)
    """
    check_arraylike("insert", arr, 0 if isinstance(obj, slice) else obj, values)
    a, new = beside(arr, values)
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonicalize_axis(axis, a.ndim)
    n = a.shape[axis]
    if isinstance(obj, slice):
        index = arange(*obj.indices(n))
    else:
        index = _core.asarray(obj)
    scalar = index.ndim == 0
    index = ravel(index)
    new = convert(new, a.dtype)
    new = _core.asarray(new)
    if new.ndim < a.ndim:
        new = reshape(new, (1,) * (a.ndim - new.ndim) + tuple(new.shape))
    if scalar:
        new = moveaxis(new, 0, axis)
    wanted = new.shape[axis]
    if index.shape[0] == 1 and wanted != 1:
        index = broadcast_to(index, (wanted,))
    count = index.shape[0]
    index = clip(where(less(index, 0), index + n, index), 0, n)
    # Sorted positions, each moved on by those inserted before it.
    order = argsort(index)
    places = index.at[order].add(arange(count, dtype=index.dtype))
    keep = ones(n + count, bool).at[places].set(False)
    kept = argsort(~keep, stable=True)[:n]
    out_shape = (*a.shape[:axis], n + count, *a.shape[axis + 1 :])
    lead = (slice(None),) * axis
    out = zeros_like(a, shape=out_shape).at[(*lead, kept)].set(a)
    return out.at[(*lead, places)].set(broadcast_to(new, (*a.shape[:axis], count, *a.shape[axis + 1 :])))


def delete(arr: ArrayLike, obj: ArrayLike | slice, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """`arr` without the positions `obj` along an axis.

    Args:
        arr: array.
        obj: int, slice, mask of bool or integers; traced integers need assume_unique_indices=True.
        axis: int, or None to flatten arr first.
        assume_unique_indices: bool; no position occurs twice, so that the result's size is known.

    Returns:
        Array of arr's dtype.

    Raises:
        ValueError: for positions out of bounds, masks of another length, and other dtypes.

    >>> jnp.delete(jnp.array([1, 2, 3]), 1)
    Array([1, 3], dtype=int32)
    """
    check_arraylike("delete", arr)
    a = _core.asarray(arr) if not isinstance(arr, Array) else arr
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonicalize_axis(axis, a.ndim)
    n = a.shape[axis]
    lead = (slice(None),) * axis
    if isinstance(obj, (int, np.integer)) or (hasattr(obj, "ndim") and obj.ndim == 0 and not isinstance(obj, _core.Tracer)):
        i = canonicalize_axis(operator.index(obj), n)
        return concatenate([a[(*lead, slice(0, i))], a[(*lead, slice(i + 1, n))]], axis=axis)
    if isinstance(obj, slice):
        obj = np.arange(n)[obj]
    if isinstance(obj, _core.Tracer):
        if not assume_unique_indices:
            concrete_or_error(obj, "'obj' array argument of jnp.delete(). Pass assume_unique_indices=True if the indices are guaranteed to be unique.")

        mask = ones(n, bool).at[ravel(obj)].set(False)
        keep = argsort(~mask, stable=True)[: n - obj.size]
        return a[(*lead, keep)]
    obj = np.asarray(obj)
    mask = np.ones(n, bool)
    if obj.dtype == bool:
        if obj.shape != (n,):
            raise ValueError("np.delete(arr, obj): for boolean indices, obj must be one-dimensional with length matching specified axis.")
        mask[obj] = False
    else:
        if obj.size and obj.dtype.kind not in "iu":
            raise ValueError("np.delete(arr, obj): obj must be an integer, a slice, integers or booleans.")
        mask[obj.astype(int)] = False
    return a[(*lead, mask)]


@jitted("resize", static=("new_shape",))
def _resize(a, new_shape):
    a = ravel(a)
    n = math.prod(new_shape)
    if a.size == 0 or n == 0:
        return zeros(new_shape, a.dtype)
    return reshape(tile(a, -(-n // a.size))[:n], new_shape)


def resize(a: ArrayLike, new_shape: Sequence[int]) -> Array:
    """The elements of a, repeated or cut, in `new_shape`.

    Args:
        a: array; its elements are read row by row.
        new_shape: int or sequence of ints.

    Returns:
        Array of `new_shape` and a's dtype.

    Raises:
        ValueError: for negative sizes.

    >>> jnp.resize(jnp.array([1, 2]), (3,))
    Array([1, 2, 1], dtype=int32)
    """
    a = as_array("resize", a)
    new_shape = canonicalize_shape(new_shape)
    if any(n < 0 for n in new_shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    return _resize(a, new_shape=new_shape)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """An array without the zeros at its ends.

    Args:
        filt: array whose values are known (not traced).
        trim: text with "f" (trim in front) and "b" (behind).
        axis: int, tuple of ints or None (all).

    Returns:
        Array of filt's rank and dtype.

    >>> jnp.trim_zeros(jnp.array([0, 1, 2, 0]))
    Array([1, 2], dtype=int32)
    """
    filt = converted(filt)
    if ndim_of(filt) == 0:
        return as_array("trim_zeros", filt)
    values = concrete_or_error(filt, "Error arose in the `filt` argument of trim_zeros()")
    nonzero = np.nonzero(values)
    filt = _core.asarray(filt) if not isinstance(filt, Array) else filt
    axes = canonicalize_axes(axis, filt.ndim)
    index = []
    for d in range(filt.ndim):
        if d not in axes:
            index.append(slice(None))
        elif nonzero[d].size == 0:
            index.append(slice(0, 0))
        else:
            lo = int(nonzero[d].min()) if "f" in trim.lower() else 0
            hi = int(nonzero[d].max()) + 1 if "b" in trim.lower() else filt.shape[d]
            index.append(slice(lo, hi))
    return filt[tuple(index)]
