"""Parts of BCOO arrays, and other layouts of the same elements.

Invariant: elements that a slice leaves out stay in the buffers, as elements outside the shape with
data zero, unless the slice has fewer elements than the buffers.

    >>> from ferrax.experimental import sparse
    >>> bcoo_slice(sparse.eye(3), start_indices=(1, 0), limit_indices=(2, 3)).todense()
    Array([[0., 1., 0.]], dtype=float32)
"""

from __future__ import annotations

import math
import operator
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lax, numpy as jnp
from ..._transforms.vmap import vmap
from ._base import SparseEfficiencyError, SparseEfficiencyWarning, add_at, column, columns, ends, expanded, inside, masked
from ._duplicates import bcoo_sum_duplicates
from ._shaping import bcoo_squeeze, bcoo_transpose, materialized, with_columns
from .bcoo import check_bcoo, made, props

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core import Array
    from ...lax import GatherDimensionNumbers, GatherScatterMode
    from .bcoo import BCOO

__all__ = ["bcoo_dynamic_slice", "bcoo_gather", "bcoo_slice", "bcoo_update_layout"]


def _cut(mat, keep, cols, shape):
    """The array with the elements that `keep` (batch, nse) selects, at new columns, with the least
    number of elements that is sure to suffice.
    """
    (nb, ns, _), _ = props(mat)
    sparse = shape[nb : nb + ns]
    data, indices = with_columns(mat, cols, sparse, valid=keep)
    data = masked(data, keep, nb)
    out = made(data, indices, shape, False, mat.unique_indices)
    size = math.prod(sparse)
    return bcoo_sum_duplicates(out, nse=size) if size < mat.nse else out


def bcoo_slice(mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None) -> BCOO:
    """`lax.slice` of a BCOO array.

    Args:
        mat: a BCOO array.
        start_indices, limit_indices: start and exclusive end of the slice in each dimension.
        strides: positive, of each dimension; by default 1.

    Returns:
        a BCOO array with at most as many elements as the slice.

    Raises:
        ValueError: there are too few or too many, they are not within the shape, or a stride is not
          positive.
    """
    check_bcoo("bcoo_slice", mat)
    starts, limits = [operator.index(i) for i in start_indices], [operator.index(i) for i in limit_indices]
    steps = [1] * mat.ndim if strides is None else [operator.index(i) for i in strides]
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise ValueError(f"bcoo_slice: indices must have size mat.ndim={mat.ndim}. Got start_indices={starts}, limit_indices={limits}, strides={steps}")
    if any(not 0 <= a <= b <= d for a, b, d in zip(starts, limits, mat.shape, strict=True)):
        raise ValueError(f"bcoo_slice: invalid indices. Got start_indices={starts}, limit_indices={limits} and shape={mat.shape}")
    if any(s <= 0 for s in steps):
        raise ValueError(f"strides must be a sequence of positive integers; got {steps}")
    shape = tuple(-(-(b - a) // s) for a, b, s in zip(starts, limits, steps, strict=True))
    (nb, ns, _), (batch, sparse, _) = props(mat)

    def part(x, dims, offset):
        """`x` sliced along its leading dimensions, shared ones excepted, and, from `offset`, along
        its last.
        """
        at = [(0, d, 1) for d in x.shape]
        for i in dims:
            j = i if i < nb else i + offset
            shared = i < nb and x.shape[j] == 1 and batch[i] != 1
            at[j] = (0, min(1, shape[i]), 1) if shared else (starts[i], limits[i], steps[i])
        a, b, s = zip(*at, strict=True) if at else ((), (), ())
        return lax.slice(x, a, b, s)

    data = part(mat.data, [*range(nb), *range(nb + ns, mat.ndim)], 1 - ns)
    indices = part(mat.indices, range(nb), 0)
    mat = made(data, indices, (*shape[:nb], *sparse, *shape[nb + ns :]), mat.indices_sorted, mat.unique_indices)
    if all((starts[nb + j], limits[nb + j], steps[nb + j]) == (0, d, 1) for j, d in enumerate(sparse)):
        return mat
    keep, cols = inside(indices, sparse), []
    for j, d in enumerate(sparse):
        c, a, b, s = column(indices, j), starts[nb + j], limits[nb + j], steps[nb + j]
        c = jnp.where(c < 0, c + d, c)
        keep = keep & (c >= a) & (c < b)
        keep, c = (keep & ((c - a) % s == 0), (c - a) // s) if s > 1 else (keep, c - a)
        cols.append(c)
    return _cut(mat, keep, cols, shape)


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """`lax.dynamic_slice` of a BCOO array.

    Args:
        mat: a BCOO array.
        start_indices: a scalar of an integer dtype for each dimension, or an array of them. The
          slice is moved to lie within the shape.
        slice_sizes: its sizes.

    Returns:
        a BCOO array with at most as many elements as the slice.

    Raises:
        ValueError: there are not as many indices or sizes as dimensions.
        TypeError: a size does not fit, or an index is not an integer.
    """
    check_bcoo("bcoo_dynamic_slice", mat)
    starts = list(start_indices)
    sizes = tuple(operator.index(s) for s in slice_sizes)
    if len(starts) != mat.ndim:
        raise ValueError(f"Length of slice indices must match number of operand dimensions ({len(starts)} vs {mat.shape})")
    if len(sizes) != mat.ndim:
        raise TypeError(f"slice slice_sizes must have the same length as operand shape, got {sizes} for operand shape {mat.shape}.")
    if any(s > d for s, d in zip(sizes, mat.shape, strict=True)):
        raise TypeError(f"slice slice_sizes must be less than or equal to operand shape, got slice_sizes {sizes} for operand shape {mat.shape}.")
    if any(s < 0 for s in sizes):
        raise TypeError(f"slice slice_sizes must be greater than or equal to zero, got slice_sizes of {sizes}.")
    starts = [jnp.asarray(s) for s in starts]
    if any(not jnp.issubdtype(s.dtype, jnp.integer) or s.ndim for s in starts):
        found = ", ".join(f"{s.dtype}{list(s.shape) if s.ndim else ''}" for s in starts)
        raise TypeError(f"index arguments to dynamic_slice must be integers of the same type, got: {found}")
    # negative ones count from the end, as lax's do
    starts = [jnp.clip(jnp.where(s < 0, s + d, s), 0, d - n) for s, d, n in zip(starts, mat.shape, sizes, strict=True)]
    (nb, ns, _), (batch, sparse, _) = props(mat)

    def part(x, dims, offset):
        at = [(jnp.zeros((), np.int32), d) for d in x.shape]
        for i in dims:
            j = i if i < nb else i + offset
            shared = i < nb and x.shape[j] == 1 and batch[i] != 1
            at[j] = (jnp.zeros((), np.int32), min(1, sizes[i])) if shared else (starts[i].astype(np.int32), sizes[i])
        return lax.dynamic_slice(x, [a for a, _ in at], [n for _, n in at]) if at else x

    data = part(mat.data, [*range(nb), *range(nb + ns, mat.ndim)], 1 - ns)
    indices = part(mat.indices, range(nb), 0)
    mat = made(data, indices, (*sizes[:nb], *sparse, *sizes[nb + ns :]), mat.indices_sorted, mat.unique_indices)
    if sizes[nb : nb + ns] == sparse:
        return mat
    keep, cols = inside(indices, sparse), []
    for j, d in enumerate(sparse):
        c = column(indices, j)
        c = jnp.where(c < 0, c + d, c) - starts[nb + j]
        keep = keep & (c >= 0) & (c < sizes[nb + j])
        cols.append(c)
    return _cut(mat, keep, cols, sizes)


def bcoo_gather(
    operand: BCOO,
    start_indices: Array,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> BCOO:
    """`lax.gather` of a BCOO array: a slice for each of the start indices.

    Args:
        operand: BCOO array.
        start_indices: integers (..., n), for n dimensions of the operand.
        dimension_numbers: GatherDimensionNumbers.
        slice_sizes: sequence of ints, one for each dimension of the operand.
        unique_indices: bool; accepted without effect.
        indices_are_sorted: bool; accepted without effect.
        mode: slices that do not lie within the shape: "clip" and None move them inside, "fill"
          makes them zero.
        fill_value: None or 0.

    Returns:
        BCOO array. If the dimensions of start_indices come first, they are batch dimensions.

    Raises:
        TypeError: a slice does not fit.
        NotImplementedError: a fill_value that is not 0, which would make the result dense.
    """
    check_bcoo("bcoo_gather", operand)
    mode = lax.GatherScatterMode.from_any(mode)
    fills = mode == lax.GatherScatterMode.FILL_OR_DROP
    if fills and fill_value is not None and not (np.ndim(fill_value) == 0 and fill_value == 0):
        raise NotImplementedError(f"bcoo_gather: a fill_value that is not zero would result in dense output, got {fill_value}")
    dn, sizes = dimension_numbers, tuple(operator.index(s) for s in slice_sizes)
    start_indices = jnp.asarray(start_indices)
    operand = made(*materialized(operand), operand.shape, operand.indices_sorted, operand.unique_indices)
    lead = start_indices.shape[:-1]
    starts = [jnp.zeros(lead, start_indices.dtype)] * operand.ndim
    for k, d in enumerate(dn.start_index_map):
        starts[d] = start_indices[..., k]
    paired = tuple(getattr(dn, "operand_batching_dims", ()))
    for d, b in zip(paired, getattr(dn, "start_indices_batching_dims", ()), strict=True):
        starts[d] = lax.broadcasted_iota(start_indices.dtype, lead, b)
    collapsed = sorted((*dn.collapsed_slice_dims, *paired))
    within = jnp.ones(lead, bool)
    for s, n, d in zip(starts, sizes, operand.shape, strict=True):
        within = within & (s >= 0) & (s + n <= d)
    # dynamic_slice counts negative starts from the end, gather moves them to 0
    starts = [jnp.maximum(s, 0) for s in starts]

    def one(within, *at):
        part = bcoo_squeeze(bcoo_dynamic_slice(operand, at, sizes), dimensions=collapsed)
        if fills:
            part = made(jnp.where(within, part.data, jnp.zeros((), part.dtype)), part.indices, part.shape, part.indices_sorted, part.unique_indices)
        return part

    if not lead:
        out = one(within, *starts)
    else:
        flat = vmap(one)(within.reshape(-1), *(s.reshape(-1) for s in starts))
        out = _leading(flat, lead)
    offset, n = tuple(dn.offset_dims), len(lead)
    rest = [d for d in range(out.ndim) if d not in offset]
    where = dict(zip((*rest, *offset), range(out.ndim), strict=True))
    permutation = tuple(where[d] for d in range(out.ndim))
    if permutation == tuple(range(out.ndim)):
        return out
    if any(p < n for p in permutation[n:]):
        first = next(i for i, p in enumerate(permutation) if p != i)
        out = bcoo_update_layout(out, n_batch=min(first, out.n_batch))
    return bcoo_transpose(out, permutation=permutation)


def _leading(mat, lead):
    """`mat` with its first batch dimension in several."""
    split = lambda x: x.reshape(*lead, *x.shape[1:])
    return made(split(mat.data), split(mat.indices), (*lead, *mat.shape[1:]), mat.indices_sorted, mat.unique_indices)


def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error") -> BCOO:
    """The same elements with another number of batch and dense dimensions.

    Args:
        mat: a BCOO array.
        n_batch, n_dense: of the result; by default those of `mat`.
        on_inefficient: "error", "warn" or None: the reaction if sparse dimensions of more than one
          element become batch or dense dimensions, which stores many zeros.

    Returns:
        a BCOO array of the same shape.

    Raises:
        SparseEfficiencyError: it would store many zeros.
        ValueError: the numbers are negative or more than the dimensions, or on_inefficient is
          unknown.

    >>> from ferrax.experimental import sparse
    >>> bcoo_update_layout(sparse.BCOO.fromdense(jnp.eye(2), n_batch=1), n_batch=0)
    BCOO(float32[2, 2], nse=2)
    """
    check_bcoo("bcoo_update_layout", mat)
    n_batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    n_dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    if n_batch < 0:
        raise ValueError(f"n_batch must be non-negative; got {n_batch}")
    if n_dense < 0:
        raise ValueError(f"n_dense must be non-negative; got {n_dense}")
    if n_batch + n_dense > mat.ndim:
        raise ValueError(f"sum of {n_batch=} and {n_dense=} cannot be larger than mat.ndim={mat.ndim}.")
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"{on_inefficient=}; expected one of ['error', 'warn', None].")
    _tell(mat, "n_batch", mat.n_batch, n_batch, mat.shape[mat.n_batch : n_batch], on_inefficient)
    _tell(mat, "n_dense", mat.n_dense, n_dense, mat.shape[mat.ndim - n_dense : mat.ndim - mat.n_dense], on_inefficient)
    if n_dense < mat.n_dense:
        mat = _less_dense(mat, n_dense)
    if n_batch < mat.n_batch:
        mat = _less_batched(mat, n_batch)
    if n_dense > mat.n_dense:
        mat = _denser(mat, n_dense)
    return _batched(mat, n_batch) if n_batch > mat.n_batch else mat


def _tell(mat, name, old, new, sizes, on_inefficient):
    if on_inefficient is None or all(d <= 1 for d in sizes):
        return
    message = f"For matrix of shape {mat.shape}, increasing {name} from {old} to {new} results in inefficient storage."
    if on_inefficient == "error":
        raise SparseEfficiencyError(f"{message} To disable this error, set the on_inefficient argument of bcoo_update_layout to 'warn' or None.")
    warnings.warn(f"{message} To disable this warning, set the on_inefficient argument of bcoo_update_layout to None.", SparseEfficiencyWarning, stacklevel=3)


def _less_dense(mat, n_dense):
    (nb, ns, nd), (_, _, dense) = props(mat)
    gone = dense[: nd - n_dense]
    times = math.prod(gone)
    data = mat.data.reshape(*mat.data.shape[:nb], mat.nse * times, *dense[len(gone) :])
    position = np.indices(gone).reshape(len(gone), times).T
    lead = mat.indices.shape[:nb]
    indices = jnp.broadcast_to(lax.expand_dims(mat.indices, (nb + 1,)), (*lead, mat.nse, times, ns))
    new = jnp.broadcast_to(jnp.asarray(position, mat.indices.dtype), (*lead, mat.nse, times, len(gone)))
    indices = jnp.concatenate([indices, new], axis=-1).reshape(*lead, mat.nse * times, ns + len(gone))
    return made(data, indices, mat.shape, mat.indices_sorted and ns > 0, mat.unique_indices)


def _less_batched(mat, n_batch):
    (nb, _, _), (batch, _, _) = props(mat)
    data, indices = materialized(mat)
    new = jnp.stack([lax.broadcasted_iota(indices.dtype, indices.shape[:-1], i) for i in range(n_batch, nb)], axis=-1)
    merged = lambda x: x.reshape(*batch[:n_batch], math.prod(batch[n_batch:]) * mat.nse, *x.shape[nb + 1 :])
    ends(batch[n_batch:], indices.dtype, reached=True)
    indices = jnp.concatenate([new, indices], axis=-1)
    # elements outside may precede those inside, so that the order is not known to hold
    return made(merged(data), merged(indices), mat.shape, False, mat.unique_indices)


def _denser(mat, n_dense):
    (nb, ns, nd), (_, sparse, dense) = props(mat)
    k = ns - (n_dense - nd)
    sizes = sparse[k:]
    valid = inside(mat.indices, sparse)
    data = masked(mat.data, jnp.broadcast_to(valid, (*valid.shape[:-1], mat.nse)), nb)
    lead = jnp.broadcast_shapes(data.shape[: nb + 1], mat.indices.shape[:-1])
    n = math.prod(lead)
    data = jnp.broadcast_to(data, (*lead, *dense)).reshape(n, *dense)
    at = jnp.broadcast_to(mat.indices, (*lead, ns)).reshape(n, ns)[:, k:]
    rows = jnp.arange(n, dtype=np.int32)
    data = add_at((n, *sizes, *dense), (rows, *columns(at)), data).reshape(*lead, *sizes, *dense)
    _, indices = with_columns(mat, [column(mat.indices, j) for j in range(k)], sparse[:k], valid=valid) if k else (None, mat.indices[..., :0])
    return made(data, indices, mat.shape, mat.indices_sorted and k == ns, False)


def _batched(mat, n_batch):
    (nb, ns, _), (_, sparse, _) = props(mat)
    k = n_batch - nb
    sizes, lead = sparse[:k], mat.indices.shape[:nb]
    valid = inside(mat.indices, sparse)
    here = lax.expand_dims(valid, range(nb, n_batch))
    for j, d in enumerate(sizes):
        c = column(mat.indices, j)
        c = lax.expand_dims(jnp.where(c < 0, c + d, c), range(nb, n_batch))
        position = lax.broadcasted_iota(mat.indices.dtype, (*([1] * nb), *sizes, 1), nb + j)
        here = here & (c == position)
    rest = [lax.expand_dims(column(mat.indices, j), range(nb, n_batch)) for j in range(k, ns)]
    here = jnp.broadcast_to(here, (*here.shape[:-1], mat.nse))
    data = lax.expand_dims(mat.data, range(nb, n_batch))
    data = jnp.where(expanded(here, data.ndim, n_batch), data, jnp.zeros((), data.dtype))
    end = sparse[k:]
    if rest:
        indices = jnp.stack([jnp.where(here, c, e).astype(mat.indices.dtype) for c, e in zip(rest, end, strict=True)], axis=-1)
    else:
        indices = jnp.zeros((*lead, *sizes, mat.nse, 0), mat.indices.dtype)
    return made(data, indices, mat.shape, False, mat.unique_indices)
