"""Arrays of indices: of diagonals, triangles and open grids, and between flat and multiple indices.

Invariant: the number of indices is known when a program is traced.

    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._base.dtypes import iinfo, is_bool, is_integer, requested
from ..._base.shapes import canonicalize_shape, static_size
from ..._core import bind
from .._creation.filled import ones
from .._creation.matrices import tri
from .._creation.ranges import arange
from .._logic.elementwise import logical_truth
from .._math import arithmetic as _arithmetic
from .._math.arithmetic import remainder
from .._math.operators import add, multiply
from .._sorting.searching import nonzero
from .._support import sections
from .._support.arguments import as_array, check_arraylike, concrete_or_error, convert, scalar_like
from .selecting import clip, where

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike


# ---- makers of indices


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the diagonal of an array of `ndim` axes of size n.

    Args:
        n: int, the size of the axes.
        ndim: int, their number.

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


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
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
    """How many elements of an [n, m] array lie on the k-th diagonal and above; the sizes may be
    symbolic.
    """
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


@sections.triangle
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the lower triangle of an [n, m] array, up to the k-th diagonal.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _tri_mask(n, operator.index(k), m, True)


@sections.triangle
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the upper triangle of an [n, m] array, from the k-th diagonal.

    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _tri_mask(n, operator.index(k), m, False)


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The indices of the lower triangle of arr, a matrix.

    Args:
        arr: matrix.
        k: int, which diagonal, above (positive) or below.

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


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The indices of the upper triangle of arr, a matrix.

    Args:
        arr: matrix.
        k: int, which diagonal, above (positive) or below.

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


def mask_indices(n: int, mask_func: Callable[[ArrayLike, int], Array], k: int = 0, *, size: int | None = None) -> tuple[Array, Array]:
    """The indices where mask_func(ones((n, n)), k) is nonzero.

    Args:
        n: int, the number of rows and of columns.
        mask_func: function of a matrix and k, such as jnp.triu.
        k: passed to mask_func.
        size: int, the size of the result, static and needed under jit; None: as many as there are.

    Returns:
        (rows, columns): two vectors of the default integer.

    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return nonzero(mask_func(ones((n, n)), k), size=size)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
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


def unravel_index(indices: ArrayLike, shape: Sequence[int]) -> tuple[Array, ...]:
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
        # Negative indices count from the end; indices that are still outside are moved to the nearest corner.
        rest = where(bind("lt", rest, scalar_like(0, rest)), bind("add", rest, scalar_like(total, rest)), rest)
        rest = clip(rest, 0, max(total - 1, 0))
    # Else nothing is outside, and division towards -inf counts negative ones from the end.
    out = []
    for n in sizes[::-1]:
        rest, position = _arithmetic.divmod(rest, max(n, 1))
        out.append(convert(position, indices.dtype, indices.weak_type) if narrow else position)
    return tuple(out[::-1])


def ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Sequence[int], mode: str = "raise", order: str = "C", *, dtype: DTypeLike | None = None) -> Array:
    """The flat index of positions in an array.

    Args:
        multi_index: sequence of integer arrays, one for each axis.
        dims: sequence of ints: the array's shape.
        mode: "raise" (values must be known), "clip", "wrap" or "ignore" (unchecked).
        order: "C", last axis fastest, or "F", first axis fastest.
        dtype: integer dtype of the result; None: that of the positions.

    Returns:
        Array of the positions' broadcast shape.

    Raises:
        ValueError: out of bounds with "raise", for another mode or order, and a dtype that is not
          an integer or too narrow.
        TypeError: for positions that are not integers.

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
