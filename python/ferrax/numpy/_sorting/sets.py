"""Sets as sorted vectors: unique, union, intersection, difference, membership.

Invariant: without `size` the values must be known; with it, results are padded: by fill_value, or
by the smallest (unique) element.

    >>> jnp.unique(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
"""

from __future__ import annotations

import math
import operator

# No deferred annotations here: typing compiles those of a NamedTuple one by one, at import.
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

import numpy as np

from ... import _core
from ..._base.dtypes import canonicalize_dtype, is_complex, is_inexact
from ..._base.flags import inert
from ..._base.shapes import canonicalize_axis
from ..._core import bind
from .._creation.filled import full, ones, zeros
from .._creation.ranges import arange
from .._indexing.selecting import clip, where
from .._logic.elementwise import logical_and, logical_not
from .._manipulation.inserting import append
from .._manipulation.joining import concatenate
from .._manipulation.shaping import moveaxis, ravel
from .._math.floating_point import isnan
from .._math.operators import subtract
from .._reductions import plain as _reductions
from .._reductions.cumulative import cumsum
from .._support import sections
from .._support.arguments import Array, as_array, check_arraylike, check_promotion, concrete_or_error, constant, convert, jitted
from .searching import nonzero, searchsorted
from .sorting import argsort, lexsort

if TYPE_CHECKING:
    from ...typing import ArrayLike


@jitted("_unique_sorted_mask", static=("axis",))
def _unique_sorted_mask(ar, axis, equal_nan=True):
    """(ar sorted along axis, a mask of the rows that start a run of equal ones, the sorting
    permutation).
    """
    rows = moveaxis(ar, axis, 0)
    n = rows.shape[0]
    width = math.prod(rows.shape[1:])
    flat = bind("reshape", rows, new_sizes=(n, width), dimensions=None) if rows.ndim != 2 else rows
    keys = bind("rev", bind("transpose", flat, permutation=(1, 0)), dimensions=(0,))
    if n == 0 or width == 0:
        order = bind("iota", dtype=canonicalize_dtype(int), shape=(n,), dimension=0)
    else:
        order = lexsort(keys)
    rows = rows[order]
    mask = ones(n, bool)
    if n:
        differ = bind("ne", rows[1:], rows[:-1])
        if is_inexact(rows.dtype) and equal_nan is not False:
            differ = logical_and(differ, logical_not(logical_and(isnan(rows[1:]), isnan(rows[:-1]))))
        mask = mask.at[1:].set(bind("reduce_or", differ, axes=tuple(range(1, rows.ndim))))
    return rows, mask, order


def _unique(ar, axis, return_index, return_inverse, return_counts, size, fill_value, equal_nan, true_size=False):
    rows, mask, order = _unique_sorted_mask(ar, axis=axis) if equal_nan else _plain_unique_mask(ar, axis)
    if size is None:
        positions = nonzero(mask)[0]
    else:
        if size > 0 and rows.shape[0] == 0:
            if fill_value is None:
                raise ValueError("jnp.unique: for zero-sized input with nonzero size argument, fill_value must be specified")
            positions = zeros(0, int)
        else:
            positions = nonzero(mask, size=size)[0]
    values = rows[positions] if rows.shape[0] else rows
    if size is not None and fill_value is not None and values.shape[0]:
        beyond = arange(size) >= _reductions.sum(mask)
        values = where(beyond.reshape((-1,) + (1,) * (values.ndim - 1)), _core.asarray(fill_value, values.dtype), values)
    elif size and rows.shape[0] == 0:
        values = full((size, *values.shape[1:]), fill_value, values.dtype)
    out = [moveaxis(values, 0, axis)]
    if return_index:
        out.append(order[positions] if rows.shape[0] else zeros(0 if size is None else size, int))
    if return_inverse:
        if rows.shape[0]:
            ranks = cumsum(mask) - 1
            out.append(zeros(ar.shape[axis], ranks.dtype).at[order].set(ranks))
        else:
            out.append(zeros(0, int))
    if return_counts:
        n = rows.shape[0]
        if n:
            # The start of each run and of the one after the last; for runs beyond them it is the end, so that their counts are 0.
            ends = append(positions, n) if size is None else nonzero(mask, size=size + 1, fill_value=n)[0]
            out.append(subtract(ends[1:], ends[:-1]))
        else:
            out.append(zeros(0 if size is None else size, int))
    if true_size:
        out.append(_reductions.sum(mask))
    return out


def _plain_unique_mask(ar, axis):
    rows, _, order = _unique_sorted_mask(ar, axis=axis)
    n = rows.shape[0]
    mask = ones(n, bool)
    if n:
        mask = mask.at[1:].set(bind("reduce_or", bind("ne", rows[1:], rows[:-1]), axes=tuple(range(1, rows.ndim))))
    return rows, mask, order


@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array: ...


@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]: ...


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """The sorted unique elements of ar, or its unique slices along an axis.

    Args:
        ar: array of numbers or bool.
        return_index: bool; also where each occurs first.
        return_inverse: bool; also which of them each element is.
        return_counts: bool; also how often each occurs.
        axis: int, or None for the flattened array.
        equal_nan: bool; nan equals nan.
        size: how many are returned (static; needed under jit), padded by fill_value or the
          smallest.
        fill_value: value that pads up to `size`; None: the smallest element.
        sorted: without effect: the result is sorted.

    Returns:
        Array of ar's dtype; with return_*, a tuple of it and of arrays of the default integer.

    >>> jnp.unique(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    if not sorted:
        inert("unique", "sorted", "the elements are found by sorting")
    ar = as_array("unique", ar)
    if size is None:
        concrete_or_error(
            ar,
            "The error arose for the first argument of jnp.unique(). To make jnp.unique() compatible with JIT and other transforms, you can specify "
            "a concrete value for the size argument, which will determine the output size.",
        )
    else:
        size = operator.index(concrete_or_error(size, "The error arose for the size argument of jnp.unique()")[()] if isinstance(size, Array) else size)
    shape = ar.shape
    if axis is None:
        flat = bind("reshape", ar, new_sizes=(ar.size,), dimensions=None) if ar.ndim != 1 else ar
        out = _unique(flat, 0, return_index, return_inverse, return_counts, size, fill_value, equal_nan)
        if return_inverse:
            i = 1 + bool(return_index)
            out[i] = out[i].reshape(shape)
    else:
        out = _unique(ar, canonicalize_axis(axis, ar.ndim), return_index, return_inverse, return_counts, size, fill_value, equal_nan)
    return out[0] if len(out) == 1 else tuple(out)


class _UniqueAllResult(NamedTuple):
    values: object
    indices: object
    inverse_indices: object
    counts: object


class _UniqueCountsResult(NamedTuple):
    values: object
    counts: object


class _UniqueInverseResult(NamedTuple):
    values: object
    inverse_indices: object


@sections.unique
def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> _UniqueAllResult:
    """(values, indices, inverse_indices, counts) of `unique`, nan differing from nan.

    >>> jnp.unique_all(jnp.array([2, 1, 2])).counts
    Array([1, 2], dtype=int32)
    """
    check_arraylike("unique_all", x)
    return _UniqueAllResult(*unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


@sections.unique
def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> _UniqueCountsResult:
    """(values, counts) of `unique`, nan differing from nan.

    >>> jnp.unique_counts(jnp.array([2, 1, 2])).values
    Array([1, 2], dtype=int32)
    """
    check_arraylike("unique_counts", x)
    return _UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


@sections.unique
def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> _UniqueInverseResult:
    """(values, inverse_indices) of `unique`, nan differing from nan.

    >>> jnp.unique_inverse(jnp.array([2, 1, 2])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    check_arraylike("unique_inverse", x)
    return _UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The values of `unique`, nan differing from nan.

    Args:
        x: array of numbers or bool.
        size: int, the size of the result, static and needed under jit; None: as many as there are.
        fill_value: value that pads up to `size`; None: the smallest element.

    Returns:
        Vector of x's dtype.

    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    check_arraylike("unique_values", x)
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The sorted unique elements of both.

    Args:
        ar1, ar2: arrays of numbers or bool; flattened first.
        size: needed under jit.
        fill_value: value that pads up to `size`; None: the smallest element.

    Returns:
        Sorted vector of the promoted dtype.

    >>> jnp.union1d(jnp.array([1, 2]), jnp.array([2, 3]))
    Array([1, 2, 3], dtype=int32)
    """
    check_arraylike("union1d", ar1, ar2)
    check_promotion(ar1, ar2)
    if size is None:
        for i, a in enumerate((ar1, ar2)):
            concrete_or_error(a, f"The error arose in the ar{i + 1} argument of union1d(). Specify the size argument to make it compatible with jit.")
    return unique(concatenate([ravel(ar1), ravel(ar2)]), size=size, fill_value=fill_value)


@jitted("_in1d", static=("invert",))
def _in1d(ar1, ar2, invert):
    a, b = (ravel(v) for v in _core.promote_dtypes(ar1, ar2))
    n, m = a.shape[0], b.shape[0]
    column = bind("broadcast_in_dim", a, shape=(n, 1), broadcast_dimensions=(0,))
    row = bind("broadcast_in_dim", b, shape=(1, m), broadcast_dimensions=(1,))
    if invert:
        return bind("reduce_and", convert(bind("ne", column, row), bool), axes=(1,))
    return bind("reduce_or", convert(bind("eq", column, row), bool), axes=(1,))


@jitted("_in1d", static=("invert",))
def _in1d_sorted(ar1, ar2, invert):
    a, b = (ravel(v) for v in _core.promote_dtypes(ar1, ar2))
    b = bind("sort", b, dimension=0, is_stable=True, num_keys=1)
    b = b[0] if isinstance(b, (tuple, list)) else b
    found = convert(b[clip(searchsorted(b, a), 0, b.shape[0] - 1)] == a, bool)
    return ~found if invert else found


def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False, invert: bool = False, *, method: str = "auto") -> Array:
    """Whether each element is among others.

    Args:
        element: array of numbers or bool.
        test_elements: array; flattened first.
        assume_unique: without effect.
        invert: bool; whether it is not.
        method: how, not what: "compare_all", "binary_search", "sort" or "auto".

    Returns:
        Array of bool of element's shape.

    Raises:
        ValueError: for another method.

    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([2]))
    Array([False,  True, False], dtype=bool)
    """
    if assume_unique:
        inert("isin", "assume_unique", "no method here is quicker for it")
    check_arraylike("isin", element, test_elements)
    element, tests = _core.asarray(element), _core.asarray(test_elements)
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(f"method={method!r} is not implemented; options are 'compare_all', 'binary_search', 'sort', and 'auto'")
    if element.size == 0 or tests.size == 0:
        return full(element.shape, bool(invert), bool)
    check_promotion(element, tests)
    # Comparing all pairs is quickest for few elements and needs memory for each pair.
    many = method in ("binary_search", "sort") or (method == "auto" and tests.size > 64)
    fun = _in1d_sorted if many else _in1d
    return fun(element, tests, invert=bool(invert)).reshape(element.shape)


def _fill(values, mask, size, fill_value):
    """The elements of a sorted vector where mask holds, `size` of them, padded by the fill
    value.
    """
    out = values[nonzero(mask, size=size)[0]]
    return where(arange(size) < _reductions.sum(mask), out, convert(_core.asarray(fill_value), out.dtype, out.weak_type))


def _need_size(name, size, *arrays):
    if size is None:
        for a in arrays:
            concrete_or_error(a, f"The error arose in {name}(). Specify the size argument to make it compatible with jit.")
        return None
    return operator.index(size)


def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The unique elements of ar1 that are not in ar2.

    Args:
        ar1, ar2: arrays of numbers or bool; flattened first.
        assume_unique: bool; ar1 has no element twice.
        size: needed under jit.
        fill_value: value that pads up to `size`; None: 0.

    Returns:
        Vector of ar1's dtype, sorted unless assume_unique.

    >>> jnp.setdiff1d(jnp.array([1, 2, 3]), jnp.array([2]))
    Array([1, 3], dtype=int32)
    """
    check_arraylike("setdiff1d", ar1, ar2)
    size = _need_size("setdiff1d", size, ar1, ar2)
    a = ravel(_core.asarray(ar1))
    fill = 0 if fill_value is None else fill_value
    if a.size == 0:
        return full(size or 0, fill, a.dtype)
    check_promotion(a, ar2)
    if size is None:
        values = a if assume_unique else unique(a)
        return values[np.asarray(isin(values, ar2, invert=True))]
    if assume_unique:
        mask = isin(a, ar2, invert=True)
        return _fill(a, mask, size, fill)
    values, count = _unique(a, 0, False, False, False, a.size, None, True, true_size=True)
    mask = (arange(a.size) < count) & isin(values, ar2, invert=True)
    return _fill(values, mask, size, fill)


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: Literal[False] = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...


@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, return_indices: Literal[True], size: int | None = None, fill_value: ArrayLike | None = None
) -> tuple[Array, Array, Array]: ...


@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array | tuple[Array, Array, Array]: ...


def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array | tuple[Array, Array, Array]:
    """The sorted elements that are in both.

    Args:
        ar1, ar2: arrays of numbers or bool; flattened first.
        assume_unique: bool; neither has an element twice.
        return_indices: bool; also where each occurs first in ar1 and in ar2.
        size: needed under jit.
        fill_value: value that pads up to `size`; None: the smallest element.

    Returns:
        Vector of the promoted dtype; with return_indices, a tuple of three vectors.

    >>> jnp.intersect1d(jnp.array([1, 2]), jnp.array([2, 3]))
    Array([2], dtype=int32)
    """
    check_arraylike("intersect1d", ar1, ar2)
    a, b = (ravel(v) for v in _core.promote_dtypes(ar1, ar2))
    size = _need_size("intersect1d", size, a, b)
    n, m = a.shape[0], b.shape[0]
    if size is None:
        values, *places = np.intersect1d(_known(a), _known(b), assume_unique=assume_unique, return_indices=True)
        if isinstance(a, _core.Tracer):
            values = a[places[0]]
        if return_indices:
            return _sorted(values, a), *[_core.asarray(i.astype(canonicalize_dtype(int))) for i in places]
        return _sorted(values, a)
    va, ia, ca = _unique(a, 0, True, False, False, n, None, True, true_size=True)
    vb, ib, cb = _unique(b, 0, True, False, False, m, None, True, true_size=True)
    valid = (arange(n) < ca) & _member(va, vb, arange(m) < cb)
    values = _fill_first(va, valid, size, fill_value)
    if not return_indices:
        return values

    pick = nonzero(valid, size=size)[0]
    where_b = clip(searchsorted(where(arange(m) < cb, vb, vb[cb - 1]), va[pick]), 0, m - 1)
    inside = arange(size) < valid.sum()
    return values, where(inside, ia[pick], n), where(inside, ib[where_b], m)


def _sorted(values, like):
    """The values as an array, weakly typed where `like` is (sorting makes complex numbers
    strong).
    """
    weak = like.weak_type and not is_complex(like.dtype)
    return convert(values, like.dtype, weak) if isinstance(values, Array) else _core.asarray(values, like.dtype, weak_type=weak)


def _known(x):
    return concrete_or_error(x, "")


def _once(x):
    """The elements of a vector that occur once, sorted; nan differs from nan."""
    values = _known(x)
    order = np.argsort(values, kind="stable")
    differ = values[order][1:] != values[order][:-1]
    return x[order[np.concatenate([[True], differ]) & np.concatenate([differ, [True]])]] if x.size else x


def _member(x, y, valid):
    """Whether each of x is among the valid elements of y."""
    return ((x[:, None] == y[None, :]) & valid[None, :]).any(axis=1)


def _fill_first(values, mask, size, fill_value):
    """As `_fill`, strongly typed; without a fill value the smallest result is the padding, or 0 if
    there is none.
    """
    values = convert(values, values.dtype)
    if fill_value is None:
        fill_value = where(mask.any(), values[nonzero(mask, size=1)[0][0]], constant(0, values.dtype))
    return _fill(values, mask, size, fill_value)


def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The sorted elements that are in exactly one of the two.

    Args:
        ar1, ar2: arrays of numbers or bool; flattened first.
        assume_unique: bool; neither has an element twice.
        size: needed under jit.
        fill_value: value that pads up to `size`; None: the smallest element.

    Returns:
        Sorted vector of the promoted dtype.

    >>> jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3]))
    Array([1, 3], dtype=int32)
    """
    check_arraylike("setxor1d", ar1, ar2)
    a, b = (ravel(v) for v in _core.promote_dtypes(ar1, ar2))
    size = _need_size("setxor1d", size, a, b)
    if size is None:
        return _sorted(_once(concatenate([a, b] if assume_unique else [unique(a), unique(b)])), a)
    va, ca = _unique(a, 0, False, False, False, a.shape[0], None, True, true_size=True)
    vb, cb = _unique(b, 0, False, False, False, b.shape[0], None, True, true_size=True)
    valid_a, valid_b = arange(a.shape[0]) < ca, arange(b.shape[0]) < cb
    both = concatenate([va, vb])
    mask = concatenate([valid_a & ~_member(va, vb, valid_b), valid_b & ~_member(vb, va, valid_a)])

    order = argsort(both)
    return _fill_first(both[order], mask[order], size, fill_value)
