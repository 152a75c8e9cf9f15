"""Searching: nonzero, searchsorted, digitize, extract, compress.

Invariant: results whose size depends on values need concrete arguments, or a static `size`.

    >>> jnp.nonzero(jnp.array([0, 3, 0, 4]), size=3, fill_value=-1)
    (Array([ 1,  3, -1], dtype=int32),)
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import canonicalize_dtype, is_bool, is_inexact
from ..._core import bind, elementwise
from ...lax import GatherDimensionNumbers, gather, scan
from ...lax._creation import beside
from .._creation.filled import zeros
from .._creation.ranges import arange
from .._indexing.selecting import clip, where
from .._manipulation.joining import vstack
from .._manipulation.shaping import atleast_1d, moveaxis, ravel
from .._math.arithmetic import floor_divide, remainder
from .._reductions import plain as _reductions
from .._reductions.cumulative import cumsum
from .._support.arguments import (
    as_array,
    check_arraylike,
    check_promotion,
    concrete_or_error,
    constant,
    convert,
    jitted,
    ndim_of,
    promote_dtypes,
    shape_of,
    unsupported,
)
from .sorting import argsort

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> tuple[Array, ...]:
    """The indices of nonzero elements.

    Args:
        a: array of rank 1 or more.
        size: how many are returned (static; needed under jit), padded by `fill_value` (0, or one
          value for each axis).
        fill_value: index that pads up to `size`, or a tuple with one for each axis; None: 0.

    Returns:
        Tuple of vectors of the default integer, one for each axis.

    Raises:
        ValueError: for scalars and for a fill_value of another length.

    >>> jnp.nonzero(jnp.array([0, 3, 4]))
    (Array([1, 2], dtype=int32),)
    """
    a = as_array("nonzero", a)
    if a.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() instead.")
    mask = a if is_bool(a.dtype) else bind("ne", a, constant(0, a.dtype))
    if size is None:
        if isinstance(mask, _core.Tracer):
            count = _reductions.sum(mask)
            concrete_or_error(count, "The size argument of jnp.nonzero must be statically specified to use jnp.nonzero within JAX transformations.")
        if fill_value is None:
            return tuple([beside(_core.asarray(i.astype(canonicalize_dtype(int))), a) for i in np.nonzero(np.asarray(mask))])
        size = int(np.count_nonzero(np.asarray(mask)))
    size = operator.index(size)
    if fill_value is not None:
        fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * a.ndim
        if any(shape_of(f) != () for f in fills):
            raise ValueError(f"fill_value must be a scalar or a tuple of length {a.ndim}; got {fill_value}")
        if len(fills) != a.ndim:
            raise ValueError(f"fill_value must be a scalar or a tuple of length {a.ndim}; got {fill_value}")
    if a.size == 0 or size == 0:
        return tuple([zeros(size, int) + (0 if fill_value is None else fills[i]) for i in range(a.ndim)])
    # The number of true elements at or before each position. Counting the positions with a smaller number gives the position of each rank.
    counts = cumsum(mask)
    flat = cumsum(zeros(size, int).at[clip(counts, 0)].add(1))
    strides = [math.prod(a.shape[d + 1 :]) for d in range(a.ndim)]
    out = [remainder(floor_divide(flat, np.int32(stride)), n) for stride, n in zip(strides, a.shape, strict=True)]
    if fill_value is not None:
        beyond = arange(size) >= _reductions.sum(mask)
        out = [where(beyond, fill, v) for fill, v in zip(fills, out, strict=True)]
    return tuple(out)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> Array:
    """The indices of nonzero elements of the flattened array.

    Args:
        a: array; flattened first.
        size: int, the size of the result, static and needed under jit; None: as many as there are.
        fill_value: index that pads up to `size`; None: 0.

    Returns:
        Vector of the default integer.

    >>> jnp.flatnonzero(jnp.array([0, 3, 4]))
    Array([1, 2], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The indices of nonzero elements as rows.

    Args:
        a: array.
        size: int, the size of the result, static and needed under jit; None: as many as there are.
        fill_value: index that pads up to `size`, or a tuple with one for each axis; None: 0.

    Returns:
        Array of the default integer, of shape (number of elements found, a.ndim).

    >>> jnp.argwhere(jnp.array([0, 3, 4]))
    Array([[1],
           [2]], dtype=int32)
    """
    check_arraylike("argwhere", a)
    out = vstack(nonzero(atleast_1d(a), size=size, fill_value=fill_value)).T
    if ndim_of(a) == 0:
        return out[: out.shape[0], :0]
    return out


def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, *, size: int | None = None, fill_value: ArrayLike = 0, out: None = None) -> Array:
    """The slices of a along an axis where `condition` holds.

    Args:
        condition: vector of bool; missing elements count as False.
        a: array.
        axis: int, or None for the flattened array.
        size: int, the size of the result, static and needed under jit; None: as many as there are.
        fill_value: value that pads up to `size`.
        out: not supported; must be None.

    Returns:
        Array of a's dtype.

    Raises:
        ValueError: for conditions of other ranks or true beyond the axis.
        NotImplementedError: if `out` is given.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.arange(3))
    Array([0, 2], dtype=int32)
    """
    unsupported("jnp.compress", out=out)
    check_arraylike("compress", condition, a, fill_value)
    condition, a = _core.asarray(condition), _core.asarray(a)
    condition = convert(condition, bool)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1D array")
    if axis is None:
        axis, a = 0, ravel(a)
    a = moveaxis(a, axis, 0)
    n = min(condition.shape[0], a.shape[0])
    extra = condition[a.shape[0] :]
    condition, a = condition[:n] if condition.shape[0] != n else condition, a[:n] if a.shape[0] != n else a
    if size is None:
        if not isinstance(extra, _core.Tracer) and np.asarray(extra).any():
            raise ValueError("condition contains entries that are out of bounds")
        return moveaxis(a[concrete_or_error(condition, "the `size` argument of jnp.compress must be given inside of jit")], 0, axis)
    size = operator.index(size)
    if not 0 <= size <= a.shape[0]:
        raise ValueError("size must be positive and not greater than the size of the array axis; got size=" + str(size))
    mask = condition.reshape((-1,) + (1,) * (a.ndim - 1)) if a.ndim > 1 else condition
    values = where(mask, a, convert(bind("copy", _core.asarray(fill_value)), a.dtype))
    return moveaxis(values[argsort(condition, descending=True)][:size], 0, axis)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements of arr where `condition` holds, both flattened; see `compress` for size and
    fill_value.

    Args:
        condition: array of bool; missing elements count as False.
        arr: array.
        size: int, the size of the result, static and needed under jit; None: as many as there are.
        fill_value: value that pads up to `size`.

    Returns:
        Vector of arr's dtype.

    Raises:
        ValueError: if `condition` is true beyond arr's size.

    >>> jnp.extract(jnp.array([True, False]), jnp.array([5, 6]))
    Array([5], dtype=int32)
    """
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


def _total_order(x, y, side):
    """Whether x is before or at y (side "left": y <= x; "right": y < x) with -0 equal to 0 and nan
    last.
    """
    ordered = elementwise("le" if side == "left" else "lt", x, y)
    if not is_inexact(x.dtype):
        return ordered
    y_is_nan = bind("ne", y, y)
    if side == "left":
        return bind("or", ordered, y_is_nan)
    return bind("or", ordered, bind("and", bind("eq", x, x), y_is_nan))


@jitted("_searchsorted_scan_impl", static=("side", "dtype"))
def _search_bisect(a, v, side, dtype):
    unsigned = np.dtype(np.uint32 if dtype.itemsize <= 4 else np.uint64)
    n = a.shape[0]
    steps = int(np.ceil(np.log2(n + 1)))
    zero, last = unsigned.type(0), unsigned.type(n)
    low, high = (bind("broadcast_in_dim", b, shape=tuple(v.shape), broadcast_dimensions=()) if v.ndim else _core.asarray(b) for b in (zero, last))

    def step(state, _):
        lo, hi = state
        mid = bind("add", lo, floor_divide(bind("sub", hi, lo), 2))
        if v.ndim == 0:
            value = bind("squeeze", bind("dynamic_slice", a, mid, slice_sizes=(1,)), dimensions=(0,))
        else:
            index = bind("broadcast_in_dim", mid, shape=(*mid.shape, 1), broadcast_dimensions=tuple(range(mid.ndim)))
            numbers = GatherDimensionNumbers((v.ndim,), (), (0,))
            value = bind("squeeze", gather(a, index, numbers, (1,), mode="clip"), dimensions=(v.ndim,))
        left = _total_order(v, value, side)
        return (bind("select_n", left, mid, lo), bind("select_n", left, hi, mid)), None

    (_, out), _ = scan(step, (low, high), None, length=steps)
    return convert(out, dtype)


@jitted("_searchsorted_scan_impl", static=("side", "dtype"))
def _search_scan(a, v, side, dtype):
    return _search_bisect(a, v, side=side, dtype=dtype)


@jitted("_searchsorted_sort_impl", static=("side", "dtype"))
def _search_sort(a, v, side, dtype):

    def ranks(x):
        index = bind("iota", dtype=dtype, shape=tuple(x.shape), dimension=0)
        order = bind("sort", x, index, dimension=0, is_stable=True, num_keys=1)[1]
        return zeros(x.shape[0], dtype).at[order].set(index)

    flat = v if v.ndim == 1 else bind("reshape", v, new_sizes=(v.size,), dimensions=None)
    joined = bind("concatenate", *((flat, a) if side == "left" else (a, flat)), dimension=0)
    together = ranks(joined)
    mine = together[: flat.shape[0]] if side == "left" else together[a.shape[0] :]
    out = bind("sub", mine, ranks(flat))
    return out if v.ndim == 1 else bind("reshape", out, new_sizes=tuple(v.shape), dimensions=None)


@jitted("_searchsorted_compare_all_impl", static=("side", "dtype"))
def _search_all(a, v, side, dtype):
    spread = lambda x, lead, rank: bind(
        "broadcast_in_dim", x, shape=tuple([1] * lead + list(x.shape) + [1] * (rank - lead - x.ndim)), broadcast_dimensions=tuple(range(lead, lead + x.ndim))
    )
    column, row = a, v
    if is_inexact(a.dtype):
        canonical = []
        for x in (a, v):
            full = lambda c, x=x: bind("broadcast_in_dim", c, shape=tuple(x.shape), broadcast_dimensions=()) if x.ndim else c
            positive = bind("select_n", bind("eq", x, constant(0, x.dtype)), x, full(constant(0, x.dtype)))
            canonical.append(bind("select_n", bind("ne", x, x), positive, full(constant(np.nan, x.dtype))))
        column, row = canonical
    rank = v.ndim + 1
    row = spread(row, 1, rank)
    column = spread(column, 0, rank)
    name = ("lt" if side == "left" else "le") + ("_to" if is_inexact(a.dtype) else "")
    return _reductions.sum(bind(name, column, row), axis=0, dtype=dtype)


@jitted("searchsorted", static=("side", "method", "dtype"))
def _searchsorted(a, v, side, method, dtype):
    if method in ("default", "scan", "scan_unrolled"):
        return _search_scan(a, v, side=side, dtype=dtype)
    return {"sort": _search_sort, "compare_all": _search_all}[method](a, v, side=side, dtype=dtype)


def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan") -> Array:
    """Where elements would be inserted into a sorted vector.

    Args:
        a: sorted vector.
        v: array of elements to look for.
        side: "left" (before equal elements) or "right" (after them).
        sorter: vector of indices that sort a; None: a is sorted.
        method: how, not what: "scan" or "scan_unrolled" (bisection), "sort", "compare_all" or
          "default".

    Returns:
        Array of int32 of v's shape (int64 where a is longer than int32 counts).

    Raises:
        ValueError: for other ranks of a, and other words.
        OverflowError: for more elements than the indices' dtype counts.

    >>> jnp.searchsorted(jnp.array([1, 3, 5]), 4)
    Array(2, dtype=int32)
    """
    check_arraylike("searchsorted", a, v, *([] if sorter is None else [sorter]))
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument side={side!r}, expected 'left' or 'right'")
    if method not in ("default", "scan", "scan_unrolled", "sort", "compare_all"):
        raise ValueError(f"invalid argument method={method!r}, expected one of ('default', 'scan', 'scan_unrolled', 'sort', 'compare_all')")
    if ndim_of(a) != 1:
        raise ValueError("a should be 1-dimensional")
    a, v = promote_dtypes("searchsorted", a, v)
    if sorter is not None:
        a = a[sorter]
    dtype = np.dtype(np.int32) if a.shape[0] < 2**31 else np.dtype(np.int64)
    if canonicalize_dtype(dtype) != dtype:
        raise OverflowError(f"Python integer {a.shape[0]} out of bounds for int32")
    if a.shape[0] == 0:
        return zeros(v.shape, dtype)
    return _searchsorted(a, v, side=side, method=method, dtype=dtype)


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The index of the bin each element of x falls into.

    Args:
        x: array of real numbers.
        bins: monotonic vector of edges.
        right: bool; bins include their right edge instead of the left one.
        method: how, not what, as for `searchsorted`; None: its default.

    Returns:
        Array of int32 of x's shape.

    Raises:
        ValueError: for bins of other ranks.

    >>> jnp.digitize(jnp.array([0.5, 2.5]), jnp.array([1.0, 2.0]))
    Array([0, 2], dtype=int32)
    """
    x = as_array("digitize", x)
    bins = as_array("digitize", bins)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got {bins.shape}")
    if bins.shape[0] == 0:
        return zeros(x.shape, np.int32)
    check_promotion(x, bins)
    side = "left" if right else "right"
    method = {} if method is None else {"method": method}
    rising = searchsorted(bins, x, side=side, **method)
    falling = bins.shape[0] - searchsorted(bins[::-1], x, side=side, **method)
    return where(bins[-1] >= bins[0], rising, falling)
