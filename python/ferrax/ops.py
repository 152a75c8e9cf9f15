"""Segment reductions, and the older functional updates.

Invariant: ids out of [0, num_segments) are dropped.

    >>> segment_sum(jnp.arange(4), jnp.array([0, 0, 1, 1]))
    Array([1, 5], dtype=int32)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._base.docstrings import sections as _sections
from ._base.dtypes import highest, lowest
from ._core import bind
from ._sharding.parts import sharded
from .errors import ConcretizationTypeError
from .lax import ScatterDimensionNumbers, scatter_add, scatter_max, scatter_min, scatter_mul
from .numpy import arange, broadcast_to, floor_divide, max, min, prod, sum
from .numpy._indexing.at import IndexUpdateHelper
from .numpy._support.arguments import check_arraylike

if TYPE_CHECKING:
    from ._core import Array
    from .lax import GatherScatterMode
    from .sharding import NamedSharding, PartitionSpec
    from .typing import ArrayLike

_segments = _sections("""
    Args:
        data: array of shape (n, ...).
        segment_ids: array of integers, one for each row; one row alone is that of every id.
        num_segments: int, how many rows the result has; None: the largest id plus one, which must
          be known.
        indices_are_sorted: a promise that they are ascending.
        unique_indices: a promise that no index occurs twice.
        bucket_size: int, first combine buckets of this many rows; None: all rows at once.
        mode: ids out of range: "drop" (None) or "clip".
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of shape (num_segments, ...), of data's dtype.

    Raises:
        ValueError: for ids that are not integers, and a negative num_segments.
    """)

_update = _sections("""
    Args:
        x: array.
        idx: index, as in x[idx].
        y: array that broadcasts to x[idx].
        indices_are_sorted: a promise that they are ascending.
        unique_indices: a promise that no index occurs twice.

    Returns:
        Array of x's shape and dtype.
    """)


__all__ = [
    "index", "index_add", "index_max", "index_min", "index_mul", "index_update", "segment_max", "segment_min", "segment_prod", "segment_sum",
]  # fmt: skip


def _scatter(scatter, out, ids, data, sorted_, unique, mode):
    columns = bind("broadcast_in_dim", ids, shape=(*ids.shape, 1), broadcast_dimensions=tuple(range(ids.ndim)))
    window = tuple(range(ids.ndim, data.ndim))
    numbers = ScatterDimensionNumbers(window, (0,), (0,))
    return scatter(out, columns, data, numbers, indices_are_sorted=sorted_, unique_indices=unique, mode=mode)


def _segment(name, data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, scatter, start, reduce):
    check_arraylike(name, data, segment_ids)
    data, ids = _core.asarray(data), _core.asarray(segment_ids)
    if num_segments is None:
        if isinstance(ids, _core.Tracer):
            raise ConcretizationTypeError(max(ids) + 1, "segment_sum() `num_segments` argument.")
        num_segments = int(np.max(np.asarray(ids))) + 1 if ids.size else 0
    n = operator.index(num_segments)
    if n < 0:
        raise ValueError("num_segments must be non-negative.")
    value = start(data.dtype)
    rest = tuple(data.shape[1:])
    if bucket_size is None:
        if data.shape != (*ids.shape, *rest):  # a row for all ids
            data = broadcast_to(data, (*ids.shape, *rest))
        out = bind("broadcast_in_dim", value, shape=(n, *rest), broadcast_dimensions=())
        return _scatter(scatter, out, ids, data, indices_are_sorted, unique_indices, mode)
    # Each bucket is summed by itself first, which bounds the error of long sums.
    n_buckets = -(-ids.shape[0] // bucket_size)
    out = bind("broadcast_in_dim", value, shape=(n_buckets, n, *rest), broadcast_dimensions=())
    buckets = floor_divide(arange(ids.shape[0]), bucket_size)
    updated = getattr(out.at[buckets, ids], reduce[0])(
        data, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode, wrap_negative_indices=False
    )
    # a sum over the buckets makes narrow integers wide
    return reduce[1](updated, axis=0).astype(updated.dtype)


@_segments
def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Sums of the rows of `data` that share an id: [num_segments, ...].

    >>> jax.ops.segment_sum(jnp.array([1, 2, 3]), jnp.array([0, 0, 2]), num_segments=3)
    Array([3, 0, 3], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(segment_sum, locals())
    return _segment(
        "segment_sum", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, scatter_add,
        lambda d: d.type(0), ("add", sum),
    )  # fmt: skip


@_segments
def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Products of the rows of `data` that share an id; 1 for ids that do not occur.

    See `segment_sum`.

    >>> jax.ops.segment_prod(jnp.array([2, 3, 4]), jnp.array([0, 0, 1]))
    Array([6, 4], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(segment_prod, locals())
    return _segment(
        "segment_prod", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, scatter_mul,
        lambda d: d.type(1), ("multiply", prod),
    )  # fmt: skip


@_segments
def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Maxima of the rows of `data` that share an id; -inf or the least value for ids that do not
    occur.

    See `segment_sum`.

    >>> jax.ops.segment_max(jnp.array([1, 5, 3]), jnp.array([0, 0, 1]))
    Array([5, 3], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(segment_max, locals())
    return _segment(
        "segment_max", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, scatter_max, lowest,
        ("max", max),
    )  # fmt: skip


@_segments
def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Minima of the rows of `data` that share an id; inf or the greatest value for ids that do not
    occur.

    See `segment_sum`.

    >>> jax.ops.segment_min(jnp.array([1, 5, 3]), jnp.array([0, 0, 1]))
    Array([1, 3], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(segment_min, locals())
    return _segment(
        "segment_min", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, scatter_min, highest,
        ("min", min),
    )  # fmt: skip


class _Index:
    """`ops.index[1:, 0]` is the index itself."""

    __iter__ = None  # `list(index)` would index it without end

    def __repr__(self):
        return "index"

    def __getitem__(self, index):
        return index


index: Any = _Index()


def _at(x, idx):
    return IndexUpdateHelper(_core.asarray(x))[idx]


@_update
def index_update(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False, unique_indices: bool = False) -> Array:
    """`x` with x[idx] = y: an older form of x.at[idx].set(y).

    >>> jax.ops.index_update(jnp.zeros(3), jax.ops.index[1], 5.0)
    Array([0., 5., 0.], dtype=float32)
    """
    return _at(x, idx).set(y, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)


@_update
def index_add(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False, unique_indices: bool = False) -> Array:
    """`x` with x[idx] += y: an older form of x.at[idx].add(y).

    >>> jax.ops.index_add(jnp.ones(3), jax.ops.index[1], 5.0)
    Array([1., 6., 1.], dtype=float32)
    """
    return _at(x, idx).add(y, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)


@_update
def index_mul(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False, unique_indices: bool = False) -> Array:
    """`x` with x[idx] *= y: an older form of x.at[idx].multiply(y).

    >>> jax.ops.index_mul(jnp.ones(3), jax.ops.index[1], 5.0)
    Array([1., 5., 1.], dtype=float32)
    """
    return _at(x, idx).multiply(y, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)


@_update
def index_min(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False, unique_indices: bool = False) -> Array:
    """`x` with x[idx] = minimum(x[idx], y): an older form of x.at[idx].min(y).

    >>> jax.ops.index_min(jnp.ones(3), jax.ops.index[1], -5.0)
    Array([ 1., -5.,  1.], dtype=float32)
    """
    return _at(x, idx).min(y, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)


@_update
def index_max(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False, unique_indices: bool = False) -> Array:
    """`x` with x[idx] = maximum(x[idx], y): an older form of x.at[idx].max(y).

    >>> jax.ops.index_max(jnp.ones(3), jax.ops.index[1], 5.0)
    Array([1., 5., 1.], dtype=float32)
    """
    return _at(x, idx).max(y, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)
