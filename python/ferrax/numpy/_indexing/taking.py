"""Reading and writing at computed positions: take, take_along_axis, put, place.

Invariant: out of bounds, reading gives the fill value (mode "fill", the default of take), the
nearest element ("clip") or wraps ("wrap"); writing is dropped or clipped or wraps.

    >>> jnp.take(jnp.arange(5) * 10, jnp.array([1, 3]))
    Array([10, 30], dtype=int32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base import bounds as _bounds
from ..._base.dtypes import iinfo, is_bool, is_integer, is_unsigned
from ..._base.shapes import canonicalize_axis, common_shape
from ..._core import bind
from ...lax import GatherDimensionNumbers, GatherScatterMode, gather, tile
from .._creation.ranges import arange
from .._manipulation.shaping import broadcast_to, ravel, reshape
from .._math.arithmetic import remainder
from .._sorting.searching import nonzero
from .._support.arguments import beside, check_arraylike, check_promotion, constant, convert, jitted, ndim_of, unsupported
from .selecting import clip, where

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


def _wide(indices, n):
    """The indices in a dtype that can represent n."""
    return indices if iinfo(indices.dtype).max >= n else convert(indices, np.int32)


def _normalised(indices, n):
    """Negative indices counted from the end of an axis of n."""
    if is_unsigned(indices.dtype):
        return indices
    indices = _wide(indices, n)
    return where(bind("lt", indices, constant(0, indices.dtype)), bind("add", indices, n if indices.weak_type else constant(n, indices.dtype)), indices)


@jitted("_take", static=("axis", "mode", "unique_indices", "indices_are_sorted", "fill_value"))
def _take(a, indices, axis, mode, unique_indices, indices_are_sorted, fill_value):
    if axis is None:
        a, axis = a if a.ndim == 1 else bind("reshape", a, new_sizes=(a.size,), dimensions=None), 0
    n = a.shape[axis]
    if mode == "wrap":
        indices = _wide(indices, n)
        indices = remainder(indices, convert(_core.asarray(n), indices.dtype))
        parsed = GatherScatterMode.PROMISE_IN_BOUNDS
    else:
        parsed = GatherScatterMode.FILL_OR_DROP if mode is None else GatherScatterMode.from_any(mode)
        if parsed != GatherScatterMode.CLIP:
            indices = _normalised(indices, n)
    k = indices.ndim
    if indices.dtype != np.int32 and indices.dtype != np.int64:
        indices = convert(indices, np.int32)
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(axis)) + tuple(range(axis + k, a.ndim + k - 1)),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    sizes = list(a.shape)
    sizes[axis] = 1 if n else 0
    if n == 0:
        if indices.size:
            raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
        return a.reshape((*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :]))
    columns = bind("broadcast_in_dim", indices, shape=(*indices.shape, 1), broadcast_dimensions=tuple(range(k)))
    return gather(a, columns, numbers, tuple(sizes), unique_indices=unique_indices, indices_are_sorted=indices_are_sorted, mode=parsed, fill_value=fill_value)


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements of a at indices along an axis.

    Negative indices count from the end, booleans are 0 and 1.

    Args:
        a: array.
        indices: array of integers.
        axis: int, or None for the flattened array.
        out: not supported; must be None.
        mode: out of bounds: "fill" or None (fill_value), "clip" (the nearest) or "wrap" (modulo the
          size).
        unique_indices: bool; a promise that no index occurs twice.
        indices_are_sorted: bool; a promise that they are ascending.
        fill_value: scalar; None: nan, the least signed or the greatest unsigned integer.

    Returns:
        Array of a's dtype, with indices.shape in place of `axis`.

    Raises:
        ValueError: for indices that are not integers, and another mode.
        NotImplementedError: for mode "raise", and if `out` is given.

    >>> jnp.take(jnp.array([5, 6, 7]), jnp.array([2, 0]))
    Array([7, 5], dtype=int32)
    """
    unsupported("jnp.take", out=out)
    check_arraylike("take", a, indices)
    a, indices = _core.asarray(a), _core.asarray(indices)
    if is_bool(indices.dtype):
        indices = convert(indices, np.int32)
    elif not is_integer(indices.dtype):
        raise ValueError("indices must have an integer type")
    if axis is not None:
        axis = canonicalize_axis(axis, a.ndim)
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    if mode not in (None, "fill", "clip", "wrap"):
        raise ValueError(f"Invalid mode '{mode}' for np.take")
    if mode is None and _bounds.strict():
        indices = _bounds.checked(indices, a.size if axis is None else a.shape[axis], 0 if axis is None else axis, True)
    return _take(a, indices, axis=axis, mode=mode, unique_indices=bool(unique_indices), indices_are_sorted=bool(indices_are_sorted), fill_value=fill_value)


@jitted("take_along_axis", static=("axis", "mode", "fill_value", "wrap"))
def _take_along_axis(arr, indices, axis, mode, fill_value, wrap):
    if axis is None:
        arr, axis = arr if arr.ndim == 1 else bind("reshape", arr, new_sizes=(arr.size,), dimensions=None), 0
    n = arr.shape[axis]
    if 0 in arr.shape:
        # There is nothing to read, wherever the indices point.
        rest = list(arr.shape)
        rest[axis] = 1
        return broadcast_to(convert(0, arr.dtype), common_shape(tuple(rest), indices.shape))
    if mode == "wrap":
        indices = _wide(indices, n)
    if wrap and mode != "wrap" and not is_unsigned(indices.dtype):
        indices = _wide(indices, n)
        indices = bind("select_n", bind("lt", indices, constant(0, indices.dtype)), indices, bind("add", indices, constant(n, indices.dtype)))
    if mode == "wrap":
        indices, mode = remainder(indices, n), "promise_in_bounds"
    rank = arr.ndim
    if any(m != n and 1 not in (m, n) for d, (m, n) in enumerate(zip(arr.shape, indices.shape, strict=True)) if d != axis):
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={[tuple(arr.shape), tuple(indices.shape)]}")
    # Axes where both run together become batch axes; where arr has size 1 and indices do not, the element is taken from 0.
    batch = [d for d in range(rank) if d != axis and arr.shape[d] != 1 and indices.shape[d] != 1]
    offset = [d for d in range(rank) if d != axis and d not in batch and indices.shape[d] == 1 and arr.shape[d] != 1]
    dropped = [d for d in range(rank) if d != axis and d not in batch and d not in offset]
    kept_index_axes = [d for d in range(rank) if d not in offset]
    index = indices if not offset else bind("squeeze", indices, dimensions=tuple(offset))
    columns = bind("reshape", index, new_sizes=(*index.shape, 1), dimensions=None)
    position = {d: i for i, d in enumerate(kept_index_axes)}
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(offset),
        collapsed_slice_dims=tuple(sorted([axis, *dropped])),
        start_index_map=(axis,),
        operand_batching_dims=tuple(batch),
        start_indices_batching_dims=tuple([position[d] for d in batch]),
    )
    sizes = [arr.shape[d] if d in offset else 1 for d in range(rank)]
    return gather(arr, columns, numbers, tuple(sizes), mode="fill" if mode is None else mode, fill_value=fill_value)


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """`arr` at indices along an axis, the other axes running together.

    Args:
        arr: array.
        indices: array of integers of arr's rank; sizes of 1 broadcast.
        axis: int, or None for flattened arr and a vector of indices.
        mode: out of bounds: "fill" or None (fill_value), "clip" or "wrap".
        fill_value: scalar; None: nan, the least signed or the greatest unsigned integer.
        wrap_negative_indices: bool; negative ones count from the end. By default they do, but where
          they are promised to be in bounds.

    Returns:
        Array of arr's dtype and the broadcast shape.

    Raises:
        TypeError: for indices that are not integers.
        ValueError: for another rank.

    >>> jnp.take_along_axis(jnp.array([[5, 6]]), jnp.array([[1, 0]]), axis=1)
    Array([[6, 5]], dtype=int32)
    """
    check_arraylike("take_along_axis", arr, indices)
    arr, indices = _core.asarray(arr), _core.asarray(indices)
    if not is_integer(indices.dtype):
        raise TypeError(f"take_along_axis indices must be of integer type, got {indices.dtype}")
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"take_along_axis indices must be 1D if axis=None, got shape {tuple(indices.shape)}")
    else:
        if arr.ndim != indices.ndim:
            raise ValueError(f"indices and arr must have the same number of dimensions; {indices.ndim} vs. {arr.ndim}")
        axis = canonicalize_axis(axis, arr.ndim)
    if wrap_negative_indices is None:
        wrap_negative_indices = mode not in ("promise_in_bounds", GatherScatterMode.PROMISE_IN_BOUNDS)
    if mode is None and _bounds.strict():
        indices = _bounds.checked(indices, arr.size if axis is None else arr.shape[axis], axis or 0, wrap_negative_indices)
    return _take_along_axis(arr, indices, axis=axis, mode=mode, fill_value=fill_value, wrap=bool(wrap_negative_indices))


def _inplace(name, inplace):
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. Pass inplace=False to instead return an updated array."
        )


@jitted("put_along_axis", static=("axis", "mode"))
def _put_along_axis(arr, indices, values, axis, mode):
    shape = arr.shape
    if axis is None:
        arr, axis = reshape(arr, (arr.size,)), 0
    index = []
    for d in range(arr.ndim):
        if d == axis:
            index.append(indices)
        else:
            n = arr.shape[d]
            index.append(arange(n).reshape([n if k == d else 1 for k in range(arr.ndim)]))
    wanted = common_shape(*[i.shape for i in index])
    out = arr.at[tuple(index)].set(broadcast_to(values, wanted) if ndim_of(values) else values, mode=mode)
    return reshape(out, shape)


def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None, inplace: bool = True, *, mode: str | None = None) -> Array:
    """`arr` with values written at indices along an axis, the other axes running together.

    Args:
        arr: array.
        indices: array of integers of arr's rank; sizes of 1 broadcast.
        values: array that broadcasts with `indices`.
        axis: int, or None for flattened arr.
        inplace: must be False: arrays are not written to.
        mode: out of bounds, as for `Array.at`; None: such values are dropped.

    Returns:
        Array of arr's shape and dtype.

    Raises:
        ValueError: for indices that are not integers or have another rank, and for inplace=True.

    >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[0], [1]]), 5.0, axis=1, inplace=False)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)
    """
    _inplace("put_along_axis", inplace)
    check_arraylike("put_along_axis", arr, indices, values)
    check_promotion(arr, values)
    arr, indices, values = _core.asarray(arr), _core.asarray(indices), _core.asarray(values)
    if not is_integer(indices.dtype):
        raise ValueError(f"put_along_axis indices must be of integer type; got {indices.dtype}")
    axis = None if axis is None else canonicalize_axis(axis, arr.ndim)
    if axis is not None and indices.ndim != arr.ndim:
        raise ValueError(f"put_along_axis arguments 'arr' and 'indices' must have same ndim; got arr.ndim={arr.ndim} and indices.ndim={indices.ndim}.")
    return _put_along_axis(arr, indices, values, axis=axis, mode=mode)


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """`a` with values written at flat positions.

    Args:
        a: array.
        ind: array of integers.
        v: array of values, repeated or cut to the number of positions.
        mode: out of bounds: "clip", where negative positions are out of bounds too, or "wrap"; None: clipped, negative ones
          counting from the end.
        inplace: must be False: arrays are not written to.

    Returns:
        Array of a's shape and dtype.

    Raises:
        ValueError: for another mode, and for inplace=True.
        NotImplementedError: for mode "raise".

    >>> jnp.put(jnp.zeros(3), jnp.array([1]), 5.0, inplace=False)
    Array([0., 5., 0.], dtype=float32)
    """
    _inplace("put", inplace)
    check_arraylike("put", a, ind, v)
    (a, v), ind = beside(a, v), ravel(_core.asarray(ind))
    v = ravel(v)
    if not a.size or not ind.size or not v.size:
        return a
    check_promotion(a, v)
    ind = _wide(ind, a.size)
    v = v[: ind.size] if v.size > ind.size else tile(v, (-(-ind.size // v.size),))[: ind.size] if v.size < ind.size else v
    if mode is None:
        ind, scatter_mode = clip(ind, -a.size, a.size - 1), "promise_in_bounds"
    elif mode == "clip":
        ind, scatter_mode = clip(ind, 0, a.size - 1), "promise_in_bounds"
    elif mode == "wrap":
        ind, scatter_mode = remainder(ind, a.size), "promise_in_bounds"
    elif mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    else:
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    return reshape(ravel(a).at[ind].set(v, mode=scatter_mode), a.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """`arr` with values written where a mask holds.

    Args:
        arr: array.
        mask: array of bool of arr's size.
        vals: array of values in order, repeated as needed.
        inplace: must be False: arrays are not written to.

    Returns:
        Array of arr's shape and dtype.

    Raises:
        ValueError: if sizes differ, for no values, and for inplace=True.

    >>> jnp.place(jnp.array([1, 2, 3]), jnp.array([True, False, True]), jnp.array([7, 8]), inplace=False)
    Array([7, 2, 8], dtype=int32)
    """
    check_arraylike("place", arr, mask, vals)
    _inplace("place", inplace)
    check_promotion(arr, vals)
    (a, v), m = beside(arr, vals), ravel(_core.asarray(mask))
    v = ravel(v)
    if a.size != m.size:
        raise ValueError("place: arr and mask must be the same size")
    if not v.size:
        raise ValueError("Cannot place values from an empty array")
    if not a.size:
        return a
    index = nonzero(m, size=a.size, fill_value=a.size)[0]
    v = tile(v, (-(-a.size // v.size),))[: a.size] if v.size != a.size else v
    return reshape(ravel(a).at[index].set(v, mode="drop"), a.shape)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """`a` with values on its diagonal.

    Args:
        a: array of rank 2 or more; above 2, of equal sizes.
        val: scalar, or an array of values in order, repeated as needed.
        wrap: must be False.
        inplace: must be False: arrays are not written to.

    Returns:
        Array of a's shape and dtype.

    Raises:
        ValueError: below rank 2, and above it for unequal sizes.
        NotImplementedError: for inplace=True or wrap=True.

    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 1.0, inplace=False)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    check_arraylike("fill_diagonal", a, val)
    check_promotion(a, val)
    a, val = beside(a, val)
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    n = min(a.shape)
    i = arange(n)
    index = (i,) * a.ndim
    if val.ndim == 0:
        return a.at[index].set(val)
    v = ravel(val)
    return a.at[index].set(take(v, i % v.shape[0]) if v.shape[0] != n else v)
