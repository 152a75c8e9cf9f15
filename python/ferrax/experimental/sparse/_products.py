"""Products with BCOO arrays, none of which makes a sparse array dense.

    S @ x:   gather x at the columns, multiply by the data, add up at the rows

Invariant: an element outside the shape adds nothing to any product, whatever its data are. Elements
of a dense operand without a stored counterpart are not read, so that infinities there have no
effect.

    >>> from ferrax.experimental import sparse
    >>> bcoo_dot_general(sparse.eye(2, 3, 1), jnp.arange(3.0), dimension_numbers=(([1], [0]), ([], [])))
    Array([1., 2.], dtype=float32)
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lax, numpy as jnp
from ..._base.flags import no_sharding
from ..._core import Array
from ._base import JAXSparse, add_at, columns, ends, inside, masked, over_batch, take_at
from ._duplicates import bcoo_sum_duplicates, positions_of
from ._shaping import bcoo_broadcast_in_dim, materialized
from ._slicing import bcoo_update_layout
from .bcoo import BCOO, check_bcoo, like, made, props

if TYPE_CHECKING:
    from ...sharding import NamedSharding, PartitionSpec

__all__ = ["bcoo_dot_general", "bcoo_dot_general_sampled", "bcoo_multiply_dense", "bcoo_multiply_sparse", "checked_dot"]


def checked_dot(lhs, rhs, dimension_numbers):
    """Dimension numbers as tuples of ints, which fit the shapes."""
    (lc, rc), (lb, rb) = (tuple(tuple(operator.index(d) for d in dims) for dims in pair) for pair in dimension_numbers)
    for name, x, batch, contract in (("lhs", lhs, lb, lc), ("rhs", rhs, rb, rc)):
        if any(not 0 <= d < x.ndim for d in (*batch, *contract)):
            raise TypeError(
                f"dot_general requires {name} dimension numbers to be nonnegative and less than the number of axes of the {name} value, "
                f"got {name}_batch of {batch} and {name}_contracting of {contract} for {name} of rank {x.ndim}"
            )
        if len({*batch, *contract}) != len(batch) + len(contract):
            raise TypeError(f"dot_general requires {name} dimensions to be distinct, got {name}_batch of {batch} and {name}_contracting of {contract}")
    if len(lb) != len(rb):
        raise TypeError(f"dot_general requires equal numbers of lhs_batch and rhs_batch dimensions, got lhs_batch {lb} and rhs_batch {rb}.")
    for kind, a, b in (("batch", lb, rb), ("contracting", lc, rc)):
        left, right = tuple(lhs.shape[d] for d in a), tuple(rhs.shape[d] for d in b)
        if left != right:
            raise TypeError(f"dot_general requires {kind} dimensions to have the same shape, got {left} and {right}.")
    return (lc, rc), (lb, rb)


def bcoo_dot_general(
    lhs: BCOO | Array,
    rhs: BCOO | Array,
    *,
    dimension_numbers: Any,
    precision: None = None,
    preferred_element_type: None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> BCOO | Array:
    """`lax.dot_general` where one operand or both are BCOO arrays.

    Args:
        lhs, rhs: arrays or BCOO arrays.
        dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)): any
          dimensions, batch, sparse or dense ones.
        precision: has no effect: sums are in the dtype of the result.
        preferred_element_type: the dtype of the result; by default that to which the operands
          promote.
        out_sharding: is refused.

    Returns:
        an array (batch, rest of lhs, rest of rhs); of two sparse arrays a BCOO array with sorted
        unique indices, and at most as many elements as they have pairs.

    Raises:
        TypeError: dimensions do not fit, or an operand is a sparse array of another kind.

    >>> from ferrax.experimental import sparse
    >>> bcoo_dot_general(sparse.eye(2), jnp.ones((2, 1)), dimension_numbers=(([1], [0]), ([], [])))
    Array([[1.],
           [1.]], dtype=float32)
    """
    if out_sharding is not None:
        no_sharding("bcoo_dot_general", out_sharding)
    lhs, rhs = (_operand(x) for x in (lhs, rhs))
    (lc, rc), (lb, rb) = numbers = checked_dot(lhs, rhs, dimension_numbers)
    if not isinstance(lhs, BCOO) and not isinstance(rhs, BCOO):
        return lax.dot_general(lhs, rhs, dimension_numbers=numbers, precision=precision, preferred_element_type=preferred_element_type)
    dtype = jnp.result_type(lhs.dtype, rhs.dtype) if preferred_element_type is None else jnp.zeros((), preferred_element_type).dtype
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _sparse_sparse(lhs, rhs, numbers, dtype)
    if isinstance(lhs, BCOO):
        return _sparse_dense(lhs, rhs, numbers, dtype)
    out = _sparse_dense(rhs, lhs, ((rc, lc), (rb, lb)), dtype)
    # (batch, rest of rhs, rest of lhs): the two rests change places
    n, k = len(lb), rhs.ndim - len(rb) - len(rc)
    return lax.transpose(out, (*range(n), *range(n + k, out.ndim), *range(n, n + k)))


def _operand(x):
    if isinstance(x, JAXSparse) and not isinstance(x, BCOO):
        raise TypeError(f"bcoo_dot_general: operands must be arrays or BCOO arrays, got {type(x)}")
    return x if isinstance(x, (BCOO, Array)) else jnp.asarray(x)


def _flat_elements(mat):
    """(data (n, *dense), index columns (n,) of batch and sparse dimensions) of all elements of all
    batches; data of those outside are zero.
    """
    (nb, _, _), (batch, sparse, dense) = props(mat)
    data, indices = materialized(mat) if nb else (mat.data, mat.indices)
    data = masked(data, inside(indices, sparse), nb)
    if not nb:
        return data, columns(indices)
    lead = (*batch, mat.nse)
    cols = (*(lax.broadcasted_iota(indices.dtype, lead, i) for i in range(nb)), *columns(indices))
    return data.reshape(math.prod(lead), *dense), tuple(c.reshape(math.prod(lead)) for c in cols)


def _sparse_dense(lhs, rhs, numbers, dtype):
    (lc, rc), (lb, rb) = numbers
    (nb, ns, _), _ = props(lhs)
    k = nb + ns
    data, cols = _flat_elements(lhs)
    # the dimensions of rhs that meet indexed ones of lhs are looked up, those that meet dense ones stay
    met = [(a, b) for a, b in zip((*lb, *lc), (*rb, *rc), strict=True) if a < k]
    free = [d for d in range(rhs.ndim) if d not in (*rb, *rc)]
    dense_batch = [(a, b) for a, b in zip(lb, rb, strict=True) if a >= k]
    dense_contract = [(a, b) for a, b in zip(lc, rc, strict=True) if a >= k]
    order = [*(b for _, b in met), *(b for _, b in dense_batch), *(b for _, b in dense_contract), *free]
    looked = lax.transpose(rhs, order)
    if met:
        looked = take_at(looked, [cols[a] for a, _ in met], data.shape[0])
        # (n, dense batch, dense contracting, free) with (n, *dense)
        pairs = (([a - k + 1 for a, _ in dense_contract], [1 + len(dense_batch) + i for i in range(len(dense_contract))]),)
        pairs = (*pairs, ([0, *(a - k + 1 for a, _ in dense_batch)], [0, *(1 + i for i in range(len(dense_batch)))]))
    else:
        pairs = (([a - k + 1 for a, _ in dense_contract], [len(dense_batch) + i for i in range(len(dense_contract))]),)
        pairs = (*pairs, ([a - k + 1 for a, _ in dense_batch], list(range(len(dense_batch)))))
    # out: (n, dense batch, rest of dense, free), or without `met` (dense batch, n, rest of dense, free)
    if dense_contract or dense_batch or not met:
        product = lax.dot_general(data, looked, dimension_numbers=pairs, preferred_element_type=dtype)
    else:
        # elementwise along n: no call of a routine for products of single numbers
        dense_rank, free_rank = data.ndim - 1, len(free)
        product = lax.expand_dims(data.astype(dtype), range(data.ndim, data.ndim + free_rank))
        product = product * lax.expand_dims(looked.astype(dtype), range(1, 1 + dense_rank))
    if not met and dense_batch:
        product = jnp.moveaxis(product, len(dense_batch), 0)
    # where each dimension of the result comes from: indexed ones are added up at their indices, others are dimensions of `product`
    kept_dense = [a for a in range(k, lhs.ndim) if a not in (*lb, *lc)]
    source = {a: 1 + i for i, (a, _) in enumerate(dense_batch)} | {a: 1 + len(dense_batch) + i for i, a in enumerate(kept_dense)}
    lhs_dims = [*lb, *(a for a in range(lhs.ndim) if a not in (*lb, *lc))]
    indexed = [a for a in lhs_dims if a < k]
    others = [a for a in lhs_dims if a >= k]
    free_axes = list(range(product.ndim - len(free), product.ndim))
    product = lax.transpose(product, (0, *(source[a] for a in others), *free_axes))
    free_shape = tuple(rhs.shape[d] for d in free)
    shape = (*(lhs.shape[a] for a in indexed), *(lhs.shape[a] for a in others), *free_shape)
    out = add_at(shape, [cols[a] for a in indexed], product)
    now = {a: i for i, a in enumerate([*indexed, *others])}
    return lax.transpose(out, (*(now[a] for a in lhs_dims), *range(len(lhs_dims), out.ndim)))


def _sparse_sparse(lhs, rhs, numbers, dtype):
    (lc, rc), (lb, rb) = numbers
    n = len(lb)
    lhs, rhs = (bcoo_update_layout(x, n_dense=0) for x in (lhs, rhs))
    # batch dimensions stay such where both have them in front; the rest of the left side's may follow, if the right side has no others
    leading = lb == rb == tuple(range(n)) and n <= min(lhs.n_batch, rhs.n_batch)
    shared = n if leading else 0
    extra = shared
    if leading and rhs.n_batch == n:
        extra = next((i for i in range(n, lhs.n_batch) if i in lc), lhs.n_batch)
    lhs, rhs = bcoo_update_layout(lhs, n_batch=extra), bcoo_update_layout(rhs, n_batch=shared)
    pairs = [(a - extra, b - shared) for a, b in zip((*lb[shared:], *lc), (*rb[shared:], *rc), strict=True)]
    lhs_free = [a - extra for a in range(extra, lhs.ndim) if a not in lc and a not in lb]
    rhs_free = [b - shared for b in range(shared, rhs.ndim) if b not in rc and b not in rb]
    lhs_cols = [*(a - extra for a in lb[shared:]), *lhs_free]
    sparse = (*(lhs.shape[extra + j] for j in lhs_cols), *(rhs.shape[shared + j] for j in rhs_free))
    size = math.prod(sparse)
    nse = min(lhs.nse * rhs.nse, size)
    index_dtype = jnp.result_type(lhs.indices.dtype, rhs.indices.dtype)
    lhs_shape, rhs_shape = lhs.shape[extra:], rhs.shape[shared:]

    def one(ld, li, rd, ri):
        here = inside(li, lhs_shape)[:, None] & inside(ri, rhs_shape)[None, :]
        for a, b in pairs:
            here = here & (_counted(li[:, a], lhs_shape[a])[:, None] == _counted(ri[:, b], rhs_shape[b])[None, :])
        grid = (ld.shape[0], rd.shape[0])
        cols = [jnp.broadcast_to(li[:, j][:, None], grid) for j in lhs_cols] + [jnp.broadcast_to(ri[:, j][None, :], grid) for j in rhs_free]
        end = ends(sparse, index_dtype)
        cols = [jnp.where(here, c, e).astype(index_dtype).reshape(-1) for c, e in zip(cols, end, strict=True)]
        indices = jnp.stack(cols, axis=-1) if cols else jnp.zeros((math.prod(grid), 0), index_dtype)
        product = ld.astype(dtype)[:, None] * rd.astype(dtype)[None, :]
        return jnp.where(here, product, jnp.zeros((), dtype)).reshape(-1), indices

    widened = [lax.expand_dims(x, range(shared, extra)) for x in (rhs.data, rhs.indices)]
    data, indices = over_batch(one, extra, lhs.data, lhs.indices, *widened)
    batch = lhs.shape[:extra]
    data = jnp.broadcast_to(data, (*batch, data.shape[-1]))
    return bcoo_sum_duplicates(made(data, indices, (*batch, *sparse)), nse=nse)


def _counted(index, size):
    return jnp.where(index < 0, index + size, index)


def bcoo_dot_general_sampled(A: Array, B: Array, indices: Array, *, dimension_numbers: Any) -> Array:
    """The elements at some indices of what `lax.dot_general` gives for two arrays; the others are
    not computed.

    Args:
        A, B: arrays.
        indices: (*batch, nse, n_sparse) integers, into the result's dimensions behind the batch
          dimensions.
        dimension_numbers: ((A contracting, B contracting), (A batch, B batch)).

    Returns:
        (*batch, nse, *dense): a BCOO array's data for these indices; zero for those outside.

    Raises:
        TypeError: dimensions do not fit, or the indices are not integers.
        ValueError: the indices have more dimensions than the result.

    >>> bcoo_dot_general_sampled(jnp.ones((2, 3)), jnp.ones((3, 2)), jnp.array([[0, 1]]), dimension_numbers=(([1], [0]), ([], [])))
    Array([3.], dtype=float32)
    """
    A, B, indices = jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices)
    (ac, bc), (ab, bb) = checked_dot(A, B, dimension_numbers)
    if not jnp.issubdtype(indices.dtype, jnp.integer):
        raise TypeError(f"bcoo_dot_general_sampled: indices must be of an integer dtype, got {indices.dtype}")
    dtype = jnp.result_type(A.dtype, B.dtype)
    a_free, b_free = ([d for d in range(x.ndim) if d not in (*batch, *con)] for x, batch, con in ((A, ab, ac), (B, bb, bc)))
    shape = (*(A.shape[d] for d in (*ab, *a_free)), *(B.shape[d] for d in b_free))
    nb = indices.ndim - 2
    k = nb + indices.shape[-1] if nb >= 0 else 0
    if nb < 0 or k > len(shape):
        raise ValueError(f"bcoo_dot_general_sampled: {indices.shape=} has more dimensions than the result, of shape {shape}")
    batch, sparse, dense = shape[:nb], shape[nb:k], shape[k:]
    if any(d not in (1, s) for d, s in zip(indices.shape[:nb], batch, strict=True)):
        raise ValueError(f"indices batch dimensions not compatible for {indices.shape=}, {shape=}")
    # as (batch, free, contracting); the first k dimensions of the result are looked up
    A, B = lax.transpose(A, (*ab, *a_free, *ac)), lax.transpose(B, (*bb, *b_free, *bc))
    n, m = len(ab), len(a_free)
    there = inside(indices, sparse)
    fake = made(jnp.zeros(indices.shape[:-1], dtype), indices, (*batch, *sparse))
    _, cols = _flat_elements(fake)
    n_all = math.prod(batch) * indices.shape[-2]
    a_cols = [i for i in range(k) if i < n + m]
    b_cols = [i for i in range(k) if i < n or i >= n + m]
    looked_a, looked_b = take_at(A, [cols[i] for i in a_cols], n_all), take_at(B, [cols[i] for i in b_cols], n_all)
    # (elements, batch dimensions that are dense, free ones that are dense, contracting)
    left_batch = max(0, n - k)
    a_rest, b_rest = A.ndim - len(a_cols) - len(ac), B.ndim - len(b_cols) - len(bc)
    both = list(range(1 + left_batch))
    pairs = (([1 + a_rest + i for i in range(len(ac))], [1 + b_rest + i for i in range(len(bc))]), (both, both))
    out = lax.dot_general(looked_a, looked_b, dimension_numbers=pairs, preferred_element_type=dtype)
    out = out.reshape(*batch, indices.shape[-2], *dense)
    return masked(out, jnp.broadcast_to(there, out.shape[: nb + 1]), nb)


def bcoo_multiply_dense(sp_mat: BCOO, v: Array) -> Array:
    """The data of a BCOO array times a dense one, element by element.

    Args:
        sp_mat: a BCOO array.
        v: an array of its dtype, or a scalar, whose shape broadcasts to that of the sparse array.

    Returns:
        an array: the data of the product, which has the indices of `sp_mat`.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the shapes do not broadcast.
        NotImplementedError: the product would be larger than `sp_mat`.
    """
    check_bcoo("bcoo_multiply_dense", sp_mat)
    v = v if isinstance(v, Array) else jnp.asarray(v, sp_mat.dtype if np.ndim(v) == 0 and not hasattr(v, "dtype") else None)
    return multiply_dense(sp_mat, v)


def times(a, b):
    """The product of two arrays of one dtype; of booleans it is `and`."""
    return a & b if a.dtype == bool and b.dtype == bool else lax.mul(a, b)


def multiply_dense(sp_mat, v, product=times):
    if v.ndim == 0:
        return product(sp_mat.data, lax.broadcast(v, sp_mat.data.shape))
    shape = jnp.broadcast_shapes(sp_mat.shape, tuple(v.shape))
    if shape != sp_mat.shape:
        raise NotImplementedError(
            "multiplication between sparse and dense is only implemented for cases where the output shape matches the sparse matrix shape. "
            f"Got shape={sp_mat.shape}, v.shape={tuple(v.shape)}"
        )
    (nb, ns, _), (_, sparse, dense) = props(sp_mat)
    v = lax.expand_dims(v, range(sp_mat.ndim - v.ndim))
    # only sparse dimensions that v has are looked up
    real = [j for j in range(ns) if v.shape[nb + j] != 1 or sparse[j] == 1]
    v = lax.squeeze(v, [nb + j for j in range(ns) if j not in real])
    there = inside(sp_mat.indices, sparse)
    looked = over_batch(lambda x, i: take_at(x, [i[:, j] for j in real], sp_mat.nse), nb, v, sp_mat.indices)
    lead = jnp.broadcast_shapes(sp_mat.data.shape[:nb], looked.shape[:nb])
    data = jnp.broadcast_to(sp_mat.data, (*lead, *sp_mat.data.shape[nb:]))
    looked = jnp.broadcast_to(looked, (*lead, sp_mat.nse, *dense))
    out = product(data, looked)
    return masked(out, jnp.broadcast_to(there, out.shape[: nb + 1]), nb)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product of two BCOO arrays, element by element.

    Args:
        lhs, rhs: BCOO arrays of equally many dimensions and dense dimensions, whose shapes
          broadcast.

    Returns:
        a BCOO array. If one operand has the result's shape, the result has its indices, the shorter
        one's if both have; else it has an element for each pair.

    Raises:
        TypeError: their numbers of dimensions differ, or the shapes do not broadcast.
        NotImplementedError: they have different numbers of dense dimensions.

    >>> from ferrax.experimental import sparse
    >>> bcoo_multiply_sparse(sparse.eye(2), sparse.eye(2))
    BCOO(float32[2, 2], nse=2)
    """
    check_bcoo("bcoo_multiply_sparse", lhs, rhs)
    if lhs.ndim != rhs.ndim:
        raise TypeError(f"bcoo_multiply_sparse: arrays must have same number of dimensions, got {lhs.shape}, {rhs.shape}")
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(f"bcoo_multiply_sparse: arrays with differing numbers of dense dimensions: {lhs}, {rhs}")
    try:
        shape = jnp.broadcast_shapes(lhs.shape, rhs.shape)
    except ValueError:
        raise TypeError(f"mul got incompatible shapes for broadcasting: {lhs.shape}, {rhs.shape}.") from None
    n_batch = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = bcoo_update_layout(lhs, n_batch=n_batch), bcoo_update_layout(rhs, n_batch=n_batch)
    covers = [x.shape[n_batch : x.ndim - x.n_dense] == shape[n_batch : len(shape) - x.n_dense] for x in (lhs, rhs)]
    if covers[0] and not (covers[1] and rhs.nse < lhs.nse):
        return _multiply_at(lhs, rhs, shape)
    if covers[1]:
        return _multiply_at(rhs, lhs, shape)
    # neither has the result's shape: all pairs, or one is repeated until it has, whichever is less
    sparse = range(n_batch, lhs.ndim - lhs.n_dense)
    if rhs.nse <= math.prod(shape[j] for j in sparse if lhs.shape[j] != shape[j]):
        return _multiply_pairs(lhs, rhs, shape)
    dims = [*shape]
    dims[lhs.ndim - lhs.n_dense :] = lhs.shape[lhs.ndim - lhs.n_dense :]
    dims[:n_batch] = lhs.shape[:n_batch]
    return _multiply_at(bcoo_broadcast_in_dim(lhs, shape=dims, broadcast_dimensions=range(lhs.ndim)), rhs, shape)


def _multiply_pairs(lhs, rhs, shape):
    """An element for each pair of elements that do not contradict each other."""
    (nb, ns, nd), (_, left, _) = props(lhs)
    _, (_, right, _) = props(rhs)
    sparse = shape[nb : nb + ns]
    dtype, index_dtype = jnp.result_type(lhs.dtype, rhs.dtype), jnp.result_type(lhs.indices.dtype, rhs.indices.dtype)

    def one(ld, li, rd, ri):
        here = inside(li, left)[:, None] & inside(ri, right)[None, :]
        cols, (li, ri) = [], (_wrapped(li, left), _wrapped(ri, right))
        for j, d in enumerate(sparse):
            a, b = li[:, j][:, None], ri[:, j][None, :]
            if left[j] == right[j]:
                here = here & (a == b)
            cols.append(a if left[j] == d else b)
        cols = [jnp.where(here, c, d).astype(index_dtype).reshape(-1) for c, d in zip(cols, sparse, strict=True)]
        product = ld.astype(dtype)[:, None] * rd.astype(dtype)[None, :]
        product = jnp.where(lax.expand_dims(here, range(2, 2 + nd)), product, jnp.zeros((), dtype))
        return product.reshape(-1, *product.shape[2:]), jnp.stack(cols, axis=-1)

    data, indices = over_batch(one, nb, lhs.data, lhs.indices, rhs.data, rhs.indices)
    return made(data, _full_batch(indices, shape[:nb], nb), shape, False, lhs.unique_indices and rhs.unique_indices)


def _multiply_at(lhs, rhs, shape):
    """`lhs` times the elements of rhs at the indices of lhs."""
    (nb, ns, _), (_, sparse, _) = props(lhs)
    real = np.array([j for j in range(ns) if rhs.shape[nb + j] == sparse[j]], np.int32)
    rhs_sparse = rhs.shape[nb : nb + ns]
    rhs = rhs if rhs.unique_indices else bcoo_sum_duplicates(rhs, nse=rhs.nse)
    dtype = jnp.result_type(lhs.dtype, rhs.dtype)

    def one(ld, li, rd, ri):
        queries = jnp.where(inside(li, sparse)[:, None], _wrapped(li, sparse), ends(rhs_sparse, li.dtype))
        queries = jnp.stack([queries[:, j] if j in real else jnp.where(queries[:, j] < sparse[j], 0, 1) for j in range(ns)], axis=-1) if ns else queries
        valid = inside(ri, rhs_sparse)
        at = positions_of(queries, jnp.where(valid[:, None], _wrapped(ri, rhs_sparse), ends(rhs_sparse, ri.dtype)))
        looked = take_at(rd, (at,), at.shape[0])
        looked = masked(looked, inside(li, sparse), 0)
        return ld.astype(dtype) * looked.astype(dtype)

    if ns == 0:
        out = lhs.data.astype(dtype) * (jnp.sum(rhs.data, axis=nb, keepdims=True, dtype=rhs.dtype)).astype(dtype)
    else:
        out = over_batch(one, nb, lhs.data, lhs.indices, rhs.data, rhs.indices)
    return like(lhs, out, _full_batch(lhs.indices, shape[:nb], nb), shape)


def _full_batch(indices, batch, nb):
    return indices if all(d in (1, b) for d, b in zip(indices.shape[:nb], batch, strict=True)) else jnp.broadcast_to(indices, (*batch, *indices.shape[nb:]))


def _wrapped(indices, sparse):
    return jnp.where(indices < 0, indices + ends(sparse, indices.dtype), indices)
