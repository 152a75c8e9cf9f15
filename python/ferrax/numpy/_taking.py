"""Reading and writing at computed positions: take, take_along_axis, put, index makers.

Invariant: out of bounds, reading gives the fill value (mode "fill", the default of take), the nearest element ("clip") or wraps ("wrap");
writing is dropped or clipped or wraps.

    >>> jnp.take(jnp.arange(5) * 10, jnp.array([1, 3]))
    Array([10, 30], dtype=int32)
"""

from __future__ import annotations

import math
import operator

import numpy as np

from .. import _bounds, _core
from .._core import bind
from .._dtypes import iinfo, is_bool, is_integer, is_unsigned, requested
from .._shapes import canonicalize_axis, canonicalize_shape, common_shape, static_size
from ..lax import GatherDimensionNumbers, GatherScatterMode, gather, tile
from . import _arithmetic
from ._arguments import as_array, check_arraylike, check_promotion, concrete_or_error, constant, convert, jitted, ndim_of, scalar_like, unsupported
from ._arithmetic import remainder
from ._creation import arange, ones
from ._logic import logical_truth
from ._matrices import tri
from ._operators import add, multiply
from ._searching import nonzero
from ._selecting import clip, where
from ._shaping import broadcast_to, ravel, reshape


def _wide(indices, n):
    """The indices in a dtype that holds n."""
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


def take(a, indices, axis=None, out=None, mode=None, unique_indices=False, indices_are_sorted=False, fill_value=None):
    """The elements of a at indices along an axis. Negative indices count from the end, booleans are 0 and 1.

    Args:
        a: array.
        indices: array of integers.
        axis: int, or None for the flattened array.
        out: not supported; must be None.
        mode: out of bounds: "fill" or None (fill_value), "clip" (the nearest) or "wrap" (modulo the size).
        unique_indices: bool: a promise that no index occurs twice.
        indices_are_sorted: bool: a promise that they increase.
        fill_value: scalar; None: nan, the least signed or the greatest unsigned integer.

    Returns:
        Array of a's dtype, with indices.shape in place of `axis`.

    Raises:
        ValueError: for indices that are no integers, and another mode.
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
    if wrap and mode not in ("wrap", "promise_in_bounds") and not is_unsigned(indices.dtype):
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


def take_along_axis(arr, indices, axis=-1, mode=None, fill_value=None, *, wrap_negative_indices=True):
    """arr at indices along an axis, the other axes running together.

    Args:
        arr: array.
        indices: array of integers of arr's rank; sizes of 1 broadcast.
        axis: int, or None for flattened arr and a vector of indices.
        mode: out of bounds: "fill" or None (fill_value), "clip" or "wrap".
        fill_value: scalar; None: nan, the least signed or the greatest unsigned integer.
        wrap_negative_indices: bool: negative ones count from the end.

    Returns:
        Array of arr's dtype and the broadcast shape.

    Raises:
        TypeError: for indices that are no integers.
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


def put_along_axis(arr, indices, values, axis, inplace=True, *, mode=None):
    """arr with values written at indices along an axis, the other axes running together.

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
        ValueError: for indices that are no integers or have another rank, and for inplace=True.

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


def put(a, ind, v, mode=None, *, inplace=True):
    """a with values written at flat positions.

    Args:
        a: array.
        ind: array of integers.
        v: array of values, repeated or cut to the number of positions.
        mode: out of bounds: "clip" (None) or "wrap".
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
    a, ind, v = _core.asarray(a), ravel(_core.asarray(ind)), ravel(_core.asarray(v))
    if not a.size or not ind.size or not v.size:
        return a
    check_promotion(a, v)
    ind = _wide(ind, a.size)
    v = v[: ind.size] if v.size > ind.size else tile(v, (-(-ind.size // v.size),))[: ind.size] if v.size < ind.size else v
    if mode is None or mode == "clip":
        ind, scatter_mode = clip(ind, 0, a.size - 1), "promise_in_bounds"
    elif mode == "wrap":
        ind, scatter_mode = remainder(ind, a.size), "promise_in_bounds"
    elif mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    else:
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    return reshape(ravel(a).at[ind].set(v, mode=scatter_mode), a.shape)


def place(arr, mask, vals, *, inplace=True):
    """arr with values written where a mask holds.

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
    a, m, v = _core.asarray(arr), ravel(_core.asarray(mask)), ravel(_core.asarray(vals))
    if a.size != m.size:
        raise ValueError("place: arr and mask must be the same size")
    if not v.size:
        raise ValueError("Cannot place values from an empty array")
    if not a.size:
        return a
    index = nonzero(m, size=a.size, fill_value=a.size)[0]
    v = tile(v, (-(-a.size // v.size),))[: a.size] if v.size != a.size else v
    return reshape(ravel(a).at[index].set(v, mode="drop"), a.shape)


def fill_diagonal(a, val, wrap=False, *, inplace=True):
    """a with values on its diagonal.

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
    a, val = _core.asarray(a), _core.asarray(val)
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


# ---- makers of indices


def diag_indices(n, ndim=2):
    """The indices of the diagonal of an array of `ndim` axes of size n.

    Args:
        n: int: the size of the axes.
        ndim: int: their number.

    Returns:
        Tuple of ndim vectors of the default integer.

    Raises:
        ValueError: for negative ones.

    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = operator.index(n), operator.index(ndim)
    if n < 0:
        raise ValueError(f"n argument to diag_indices must be nonnegative, got {n}")
    if ndim < 0:
        raise ValueError(f"ndim argument to diag_indices must be nonnegative, got {ndim}")
    return (arange(n),) * ndim


def diag_indices_from(arr):
    """The indices of arr's diagonal.

    Args:
        arr: array of rank 2 or more.

    Returns:
        Tuple of arr.ndim vectors of the default integer.

    Raises:
        ValueError: unless all axes have one size.

    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    arr = as_array("diag_indices_from", arr)
    if arr.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(arr.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(arr.shape[0], ndim=arr.ndim)


def _triangle_size(n, m, k):
    """How many elements of an [n, m] array lie on the k-th diagonal and above; the sizes may be symbolic."""
    if k < 0:
        return n * m - _triangle_size(m, n, 1 - k)
    if k >= m:
        return 0
    rows = min(n, m - k)
    return rows * (rows + 1) // 2 + rows * (m - k - rows)


def _tri_mask(n, k, m, lower):
    n = static_size(n)
    m = n if m is None else static_size(m)
    if n < 0 or m < 0:
        raise ValueError(f"negative dimensions are not allowed, got {n}, {m}")
    count = _triangle_size(m, n, -k) if lower else _triangle_size(n, m, k)
    truth = logical_truth(tri(n, m, k if lower else k - 1))
    return nonzero(truth if lower else bind("not", truth), size=count)


def tril_indices(n, k=0, m=None):
    """The indices of the lower triangle of an [n, m] array, up to the k-th diagonal.

    Args:
        n: int: the number of rows.
        k: int: which diagonal, above (positive) or below.
        m: int: the number of columns; None: n.

    Returns:
        (rows, columns): two vectors of the default integer.

    Raises:
        ValueError: for negative sizes.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _tri_mask(n, operator.index(k), m, True)


def triu_indices(n, k=0, m=None):
    """The indices of the upper triangle of an [n, m] array, from the k-th diagonal.

    Args:
        n: int: the number of rows.
        k: int: which diagonal, above (positive) or below.
        m: int: the number of columns; None: n.

    Returns:
        (rows, columns): two vectors of the default integer.

    Raises:
        ValueError: for negative sizes.

    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _tri_mask(n, operator.index(k), m, False)


def tril_indices_from(arr, k=0):
    """The indices of the lower triangle of arr, a matrix.

    Args:
        arr: matrix.
        k: int: which diagonal, above (positive) or below.

    Returns:
        (rows, columns): two vectors of the default integer.

    Raises:
        ValueError: for other ranks.

    >>> jnp.tril_indices_from(jnp.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    arr = as_array("tril_indices_from", arr)
    if arr.ndim != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return tril_indices(arr.shape[0], k=k, m=arr.shape[1])


def triu_indices_from(arr, k=0):
    """The indices of the upper triangle of arr, a matrix.

    Args:
        arr: matrix.
        k: int: which diagonal, above (positive) or below.

    Returns:
        (rows, columns): two vectors of the default integer.

    Raises:
        ValueError: for other ranks.

    >>> jnp.triu_indices_from(jnp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    arr = as_array("triu_indices_from", arr)
    if arr.ndim != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return triu_indices(arr.shape[0], k=k, m=arr.shape[1])


def mask_indices(n, mask_func, k=0, *, size=None):
    """The indices where mask_func(ones((n, n)), k) is nonzero.

    Args:
        n: int: the number of rows and of columns.
        mask_func: function of a matrix and k, such as jnp.triu.
        k: passed to mask_func.
        size: int: the size of the result, static and needed under jit; None: as many as there are.

    Returns:
        (rows, columns): two vectors of the default integer.

    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return nonzero(mask_func(ones((n, n)), k), size=size)


def ix_(*args):
    """The arrays that index the grid spanned by vectors of indices or booleans.

    Args:
        *args: vectors of integers.

    Returns:
        Tuple of arrays; the i-th has its size along axis i and 1 elsewhere.

    Raises:
        ValueError: for other ranks.
        NotImplementedError: for booleans.

    >>> jnp.ix_(jnp.array([0, 1]), jnp.array([2]))
    (Array([[0],
           [1]], dtype=int32), Array([[2]], dtype=int32))
    """
    check_arraylike("ix_", *args)
    out = []
    for i, a in enumerate(args):
        a = _core.asarray(a)
        if a.ndim != 1:
            raise ValueError(f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {tuple(a.shape)}")
        if a.dtype == np.bool_:
            raise NotImplementedError("Boolean arguments to jax.numpy.ix_ are not implemented")
        if a.size == 0:
            a = convert(a, int)
        shape = [1] * len(args)
        shape[i] = a.shape[0]
        out.append(bind("broadcast_in_dim", a, shape=tuple(shape), broadcast_dimensions=(i,)) if len(args) > 1 else a)
    return tuple(out)


def unravel_index(indices, shape):
    """The position in an array of each flat index; out of bounds is clipped.

    Args:
        indices: array of integers.
        shape: int or sequence of ints.

    Returns:
        Tuple of arrays of the indices' shape and dtype, one for each axis.

    Raises:
        ValueError: for negative sizes.

    >>> jnp.unravel_index(5, (2, 3))
    (Array(1, dtype=int32, weak_type=True), Array(2, dtype=int32, weak_type=True))
    """
    check_arraylike("unravel_index", indices)
    indices = _core.asarray(indices)
    sizes = canonicalize_shape(shape)
    if any(n < 0 for n in sizes):
        raise ValueError("unravel_index: dimensions may not be negative")
    if is_bool(indices.dtype):
        indices = convert(indices, int, weak=True)
    total = math.prod(sizes)
    reach = lambda x: iinfo(x.dtype).max if is_integer(x.dtype) else math.inf
    narrow = reach(indices) < total
    rest = convert(indices, int) if narrow else indices
    if total <= reach(rest):
        # Negative indices count from the end; what is still outside goes to the nearest corner.
        rest = where(bind("lt", rest, scalar_like(0, rest)), bind("add", rest, scalar_like(total, rest)), rest)
        rest = clip(rest, 0, max(total - 1, 0))
    # Else nothing is outside, and division towards -inf counts negative ones from the end.
    out = []
    for n in sizes[::-1]:
        rest, position = _arithmetic.divmod(rest, max(n, 1))
        out.append(convert(position, indices.dtype, indices.weak_type) if narrow else position)
    return tuple(out[::-1])


def ravel_multi_index(multi_index, dims, mode="raise", order="C", *, dtype=None):
    """The flat index of positions in an array.

    Args:
        multi_index: sequence of integer arrays, one for each axis.
        dims: sequence of ints: the array's shape.
        mode: "raise" (values must be known), "clip", "wrap" or "ignore" (taken as they are).
        order: "C", last axis fastest, or "F", first axis fastest.
        dtype: integer dtype of the result; None: that of the positions.

    Returns:
        Array of the positions' broadcast shape.

    Raises:
        ValueError: out of bounds with "raise", for another mode or order, and a dtype that is no integer or too narrow.
        TypeError: for positions that are no integers.

    >>> jnp.ravel_multi_index((jnp.array([1]), jnp.array([2])), (2, 3))
    Array([5], dtype=int32)
    """
    check_arraylike("ravel_multi_index", *multi_index)
    dims = canonicalize_shape(dims)
    if len(multi_index) != len(dims):
        raise ValueError(f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}")
    index = [_core.asarray(i) for i in multi_index]
    if any(is_bool(i.dtype) for i in index):
        raise TypeError("only int indices permitted")
    dtype = _core.result_type(*index) if dtype is None else requested("ravel_multi_index", dtype)
    if not is_integer(dtype):
        raise ValueError(f"dtype={dtype!r} is not an integer type.")
    if math.prod(dims) - 1 > iinfo(dtype).max:
        raise ValueError(
            f"jnp.ravel_multi_index: dtype={dtype!r} not large enough to hold flattened index for dims={dims}. Use the dtype argument to pass a suitable dtype."
        )
    if mode == "raise":
        values = [
            concrete_or_error(i, "The error occurred because ravel_multi_index was jit-compiled with mode='raise'. Use mode='wrap' or mode='clip' instead.")
            for i in index
        ]
        if any(((v < 0) | (v >= n)).any() for v, n in zip(values, dims, strict=True)):
            raise ValueError("invalid entry in coordinates array")
    elif mode == "clip":
        index = [clip(i, 0, n - 1) for i, n in zip(index, dims, strict=True)]
    elif mode == "wrap":
        index = [remainder(i, n) for i, n in zip(index, dims, strict=True)]
    elif mode != "ignore":
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip', or 'ignore'")
    if order == "F":
        strides = [math.prod(dims[:d]) for d in range(len(dims))]
    elif order == "C":
        strides = [math.prod(dims[d + 1 :]) for d in range(len(dims))]
    else:
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")

    out = _core.asarray(np.zeros((), dtype))
    for i, stride in zip(index, strides, strict=True):
        out = add(out, multiply(convert(i, dtype), np.asarray(stride, dtype)[()]))
    return out
