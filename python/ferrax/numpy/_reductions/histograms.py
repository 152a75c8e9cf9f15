"""Histograms and counts.

Invariant: bins are half-open but the last; values outside are not counted.

    >>> jnp.bincount(jnp.array([0, 2, 2]))
    Array([1, 0, 2], dtype=int32)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import canonicalize_dtype, is_bool, is_integer, is_narrow
from ..._base.flags import inert
from ..._sharding.parts import sharded
from .._calculus.differences import diff
from .._creation.arrays import array
from .._creation.filled import ones_like, zeros
from .._creation.ranges import linspace
from .._indexing.makers import ravel_multi_index
from .._indexing.selecting import clip, where
from .._manipulation.shaping import ravel, reshape
from .._math.operators import add, subtract
from .._sorting.searching import searchsorted
from .._support.arguments import Array, as_array, check_arraylike, check_promotion, concrete_or_error, convert, ndim_of, shape_of
from .plain import max as maximum, min as minimum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...sharding import NamedSharding, PartitionSpec
    from ...typing import ArrayLike


def bincount(
    x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """How often each integer occurs, or the sum of its weights.

    Args:
        x: vector of integers; negative ones count as 0.
        weights: vector of x's size; None: 1 each.
        minlength: int, the least size of the result.
        length: int, the size of the result, static and needed under jit; larger integers are
          dropped; None: up to the largest.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Vector of the default integer, or of the dtype of `weights`.

    Raises:
        TypeError: for an x that is not an integer.
        ValueError: for other ranks, or weights of another shape.

    >>> jnp.bincount(jnp.array([0, 2, 2]))
    Array([1, 0, 2], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(bincount, locals())
    x = as_array("bincount", x)
    if not is_integer(x.dtype) and x.dtype != np.bool_:
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype}")
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    minlength = operator.index(minlength)
    if length is None:
        values = concrete_or_error(x, "The error occurred because of argument 'x' of jnp.bincount. To avoid this error, pass a static `length` argument.")
        length = max(minlength, int(values.max()) + 1 if values.size else 0)
    else:
        length = operator.index(length)
    if weights is None:
        weights, dtype = 1, canonicalize_dtype(int)
    elif shape_of(x) != shape_of(weights):
        raise ValueError("shape of weights must match shape of x.")
    else:
        dtype = _core.result_type(weights)
    return zeros(length, dtype).at[clip(x, 0)].add(weights, mode="drop")


def histogram_bin_edges(a: ArrayLike, bins: ArrayLike = 10, range: Array | Sequence[ArrayLike] | None = None, weights: ArrayLike | None = None) -> Array:
    """The edges of equal bins.

    Args:
        a: array of real numbers.
        bins: int, the number of bins, or a vector of edges, which is returned.
        range: (least, greatest) edge; None: those of the values.
        weights: without effect on equal bins.

    Returns:
        Vector of bins + 1 edges, of a's dtype made float.

    Raises:
        NotImplementedError: for a text as `bins`.

    >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), bins=2)
    Array([0., 2., 4.], dtype=float32)
    """
    if weights is not None:
        inert("histogram_bin_edges", "weights", "edges of equal bins do not depend on them")
    check_arraylike("histogram_bin_edges", a, *([] if isinstance(bins, (int, np.integer, str)) else [bins]))
    if isinstance(bins, str):
        raise NotImplementedError("string values for `bins` not implemented.")
    a = _core.asarray(a)
    dtype = _core.promote_dtypes_inexact(a)[0].dtype
    if ndim_of(bins) == 1:
        return convert(_core.asarray(bins), dtype)
    n = operator.index(bins)
    if range is None:
        a = convert(a, dtype) if is_bool(a.dtype) or is_narrow(a.dtype) else a
        low, high = (minimum(a), maximum(a)) if a.size else (0, 1)
    else:
        low, high = _pair(range, dtype)
    same = subtract(high, low) == 0
    low, high = where(same, subtract(low, 0.5), low), where(same, add(high, 0.5), high)
    return linspace(low, high, n + 1, dtype=dtype)


def _pair(range_, dtype):
    range_ = range_ if isinstance(range_, Array) else np.asarray(range_)
    if shape_of(range_) != (2,):
        raise ValueError(f"`range` must be either None or a sequence of scalars, got shape {shape_of(range_)}")
    return _core.asarray(range_[0], dtype), _core.asarray(range_[1], dtype)


def histogram(
    a: ArrayLike, bins: ArrayLike = 10, range: Sequence[ArrayLike] | None = None, weights: ArrayLike | None = None, density: bool | None = None
) -> tuple[Array, Array]:
    """How many values fall into each bin.

    Args:
        a: array of real numbers.
        bins: int, the number of bins, or a vector of edges.
        range: (least, greatest) edge; None: those of the values.
        weights: array of a's shape: the weight of each value; None: 1.
        density: bool; divide by the total and by the widths.

    Returns:
        (counts, edges): vectors of n and n + 1 elements, of a's and the weights' promoted dtype
        made float.

    Raises:
        ValueError: for weights of another shape.

    >>> jnp.histogram(jnp.array([0.0, 1.0, 4.0]), bins=2)
    (Array([2., 1.], dtype=float32), Array([0., 2., 4.], dtype=float32))
    """
    if isinstance(bins, str):
        raise TypeError(f"asarray: expected ArrayLike, got {bins} of type {type(bins)}.")
    if weights is None:
        check_arraylike("histogram", a, bins)
        a = ravel(*_core.promote_dtypes_inexact(a))
        weights = ones_like(a)
    else:
        check_arraylike("histogram", a, bins, weights)
        if shape_of(a) != shape_of(weights):
            raise ValueError("weights should have the same shape as a.")
        a, weights = (ravel(v) for v in _core.promote_dtypes_inexact(a, weights))
    edges = histogram_bin_edges(a, bins, range)
    n = edges.shape[0]
    index = searchsorted(edges, a, side="right")
    # The last edge belongs to the last bin.
    index = where(a == edges[-1], n - 1, index)
    counts = zeros(n, weights.dtype).at[index].add(weights)[1:]
    if density:
        widths = diff(edges)
        counts = counts / widths / counts.sum()
    return counts, edges


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | list[ArrayLike] = 10,
    range: Sequence[Array | Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """How many points of the plane fall into each box.

    Args:
        x, y: vectors of real numbers of one size.
        bins: int or vector of edges, or one for each axis.
        range: two pairs (least, greatest) or Nones; None: those of the values.
        weights: vector of x's size; None: 1 each.
        density: bool; divide by the total and by the areas.

    Returns:
        (counts, x edges, y edges): a matrix and two vectors.

    Raises:
        ValueError: if weights or range do not match the points.

    >>> jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), bins=2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    check_arraylike("histogram2d", x, y)
    check_promotion(x, y)
    n = len(bins) if isinstance(bins, (list, tuple)) or ndim_of(bins) else 1
    if n not in (1, 2):
        edges = _core.asarray(bins)
        bins = [edges, edges]
    sample = array([_core.asarray(x), _core.asarray(y)]).T
    counts, edges = histogramdd(sample, bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike,
    bins: ArrayLike | list[ArrayLike] = 10,
    range: Sequence[Array | Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """How many points fall into each box.

    Args:
        sample: points as rows, an array of shape (n, d).
        bins: int or vector of edges, or one for each axis.
        range: d pairs (least, greatest) or Nones; None: those of the values.
        weights: vector of n elements; None: 1 each.
        density: bool; divide by the total and by the volumes.

    Returns:
        (counts, edges): an array of rank d and a list of d vectors.

    Raises:
        ValueError: if bins, range or weights do not match the sample.

    >>> jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0]]), bins=2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    if weights is None:
        check_arraylike("histogramdd", sample)
        (sample,) = _core.promote_dtypes_inexact(sample)
    else:
        check_arraylike("histogramdd", sample, weights)
        sample, weights = _core.promote_dtypes_inexact(sample, weights)
        if tuple(weights.shape) != tuple(sample.shape[:1]):
            raise ValueError("should have one weight for each sample.")
    rows, d = sample.shape
    if range is not None and (len(range) != d or any(r is not None and shape_of(r)[0] != 2 for r in range)):
        raise ValueError(f"For sample.shape={(rows, d)}, range must be a sequence of {d} pairs or Nones; got range={range}")
    if not isinstance(bins, (list, tuple)) and ndim_of(bins) == 0:
        per_axis = [operator.index(bins)] * d
    elif isinstance(bins, (list, tuple)):
        per_axis = list(bins)
        if len(per_axis) != d:
            raise ValueError("should be a bin for each dimension.")
    else:
        per_axis = [bins[i] for i in np.arange(shape_of(bins)[0])]
        if len(per_axis) != d:
            raise ValueError("should be a bin for each dimension.")
    indices, sizes, edges = [], [], []
    for i, b in enumerate(per_axis):
        column = sample[:, i]
        e = histogram_bin_edges(column, b, None if range is None else range[i])
        index = searchsorted(e, column, side="right")
        index = where(column == e[-1], index - 1, index)
        indices.append(index)
        sizes.append(e.shape[0] + 1)
        edges.append(e)
    flat = ravel_multi_index(tuple(indices), tuple(sizes), mode="clip")
    total = int(np.prod(sizes))
    counts = reshape(bincount(flat, weights, length=total), tuple(sizes))
    counts = counts[(slice(1, -1),) * d]
    if density:
        counts = convert(counts, sample.dtype)
        counts = counts / counts.sum()
        for i, e in enumerate(edges):
            shape = [1] * d
            shape[i] = -1
            counts = counts / reshape(diff(e), tuple(shape))
    return counts, edges
