"""From dense arrays to BCOO and back.

Invariant: derivatives pass through the elements. Which elements are specified depends on the
values, but is constant for derivatives.

    >>> bcoo_todense(bcoo_fromdense(jnp.array([0.0, 2.0])))
    Array([0., 2.], dtype=float32)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from ... import lax, numpy as jnp
from ...extend.core import concrete_or_error
from ._base import add_at, checked_index_dtype, checked_shape, columns, ends, expanded, over_batch, take_at
from ._duplicates import first_occurrences
from .bcoo import BCOO, check_bcoo, made, props

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike

__all__ = ["bcoo_empty", "bcoo_extract", "bcoo_eye", "bcoo_from_scipy_sparse", "bcoo_fromdense", "bcoo_todense", "count_specified"]


def checked_split(name, ndim, n_batch, n_dense):
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > ndim:
        raise ValueError(f"{name}: {n_batch=} and {n_dense=} must not be negative, and at most {ndim} together, the number of dimensions")
    return n_batch, n_dense


def _nonzero(mat, n_dense):
    """Which of the elements (batch, sparse) will be specified."""
    return jnp.any(mat != 0, axis=tuple(range(mat.ndim - n_dense, mat.ndim)))


def count_specified(name, mat, n_batch, n_dense):
    """How many elements a batch of a concrete array has that are not zero, the most of all
    batches.
    """
    counts = jnp.sum(_nonzero(mat, n_dense), axis=tuple(range(n_batch, mat.ndim - n_dense)), dtype=int)
    kind = name.split("_", 1)[0].upper()
    return int(
        concrete_or_error(
            operator.index,
            jnp.max(counts, initial=0),
            f"The error arose for the nse argument of {name}. In order for {kind}.fromdense() to be used in traced/compiled code, "
            "you must pass a concrete value to the nse (number of stored elements) argument.",
        )
    )


def checked_nse(name, nse):
    nse = concrete_or_error(operator.index, nse, f"The error arose for the nse argument of {name}.")
    if nse < 0:
        raise ValueError(f"{name}: nse must not be negative, got {nse}")
    return nse


def bcoo_fromdense(mat: Array, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = jnp.int32) -> BCOO:
    """The BCOO array of a dense one.

    Args:
        mat: an array.
        nse: the number of elements to specify in each batch; by default the number of nonzero ones,
          which is unknown for a traced array. If there are fewer, the rest has indices outside; if
          there are more, the last ones are dropped.
        n_batch, n_dense: how many of the first dimensions are batch dimensions, and how many of the
          last are dense.
        index_dtype: of the indices.

    Returns:
        a BCOO array with sorted unique indices.

    Raises:
        ConcretizationTypeError: `mat` is traced, and `nse` is not given.
        ValueError: n_batch and n_dense are more than the dimensions, or a size does not fit
          into index_dtype. TypeError: index_dtype is not an integer dtype.

    >>> bcoo_fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]])).indices
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    mat = jnp.asarray(mat)
    n_batch, n_dense = checked_split("bcoo_fromdense", mat.ndim, n_batch, n_dense)
    index_dtype = checked_index_dtype("bcoo_fromdense", index_dtype)
    nse = count_specified("bcoo_fromdense", mat, n_batch, n_dense) if nse is None else checked_nse("bcoo_fromdense", nse)
    n_sparse = mat.ndim - n_batch - n_dense
    sparse_shape = mat.shape[n_batch : n_batch + n_sparse]
    if any(d > jnp.iinfo(index_dtype).max for d in sparse_shape):
        raise ValueError(f"bcoo_fromdense: indices into shape {tuple(sparse_shape)} do not fit into index_dtype {index_dtype}")
    if n_sparse == 0:
        indices = jnp.zeros((*mat.shape[:n_batch], nse, 0), index_dtype)
        first = expanded(jnp.arange(nse) == 0, n_dense + 1, 0)
        return made(jnp.where(first, lax.expand_dims(mat, (n_batch,)), jnp.zeros((), mat.dtype)), indices, mat.shape, True, True)

    def one(mask, m):
        at = jnp.nonzero(mask, size=nse, fill_value=sparse_shape)
        indices = jnp.stack(at, axis=-1).astype(index_dtype) if nse else jnp.zeros((0, n_sparse), index_dtype)
        return take_at(m, at, nse), indices

    data, indices = over_batch(one, n_batch, _nonzero(mat, n_dense), mat)
    return made(data, indices, mat.shape, True, True)


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array of a BCOO one.

    Args:
        mat: a BCOO array.

    Returns:
        an array of its shape and dtype.

    Raises:
        TypeError: it is not a BCOO array.

    >>> bcoo_todense(bcoo_eye(2, 2, 0))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    check_bcoo("bcoo_todense", mat)
    (nb, _, _), (batch, sparse, dense) = props(mat)
    out = over_batch(lambda data, indices: add_at((*sparse, *dense), columns(indices), data), nb, mat.data, mat.indices)
    return jnp.broadcast_to(out, (*batch, *sparse, *dense))


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """A dense array's elements at a sparse array's indices.

    Args:
        sparr: a BCOO array with the indices to use.
        arr: an array of its shape.
        assume_unique: False: of elements with equal indices, the first takes the value, and the
          others are zero. True: all take it. By default what `sparr` promises.

    Returns:
        a BCOO array with the indices of `sparr` and the dtype of `arr`.

    Raises:
        ValueError: the shapes differ.
        TypeError: `sparr` is not a BCOO array.
    """
    check_bcoo("bcoo_extract", sparr)
    arr = jnp.asarray(arr)
    if tuple(arr.shape) != sparr.shape:
        raise ValueError(f"bcoo_extract: shape of the dense array must be that of the sparse one, got {tuple(arr.shape)} and {sparr.shape}")
    nb = sparr.n_batch
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    data = over_batch(lambda x, i: take_at(x, columns(i), sparr.nse), nb, arr, sparr.indices)
    if any(a != b and b == 1 for a, b in zip(data.shape[:nb], sparr.data.shape[:nb], strict=True)):
        # shared data specifies the sum over the batches that share it
        shared = tuple(i for i in range(nb) if sparr.data.shape[i] == 1 and data.shape[i] != 1)
        if not unique:
            data = jnp.where(expanded(first_occurrences(sparr), data.ndim, nb), data, jnp.zeros((), data.dtype))
        data = jnp.sum(data, axis=shared, keepdims=True, dtype=data.dtype) if not unique else data
    elif not unique:
        data = jnp.where(expanded(first_occurrences(sparr), data.ndim, nb), data, jnp.zeros((), data.dtype))
    return made(data, sparr.indices, sparr.shape, sparr.indices_sorted, sparr.unique_indices)


def bcoo_from_scipy_sparse(mat, *, index_dtype=None, n_dense=0, n_batch=0):
    """The BCOO array of a matrix of scipy.sparse.

    Args:
        mat: a matrix or array of any format of scipy.sparse.
        index_dtype: of the indices; by default int32.
        n_dense, n_batch: must be 0: a scipy matrix has sparse dimensions only.

    Returns:
        a BCOO array whose elements are in the order of `mat.tocoo()`.

    Raises:
        NotImplementedError: n_dense or n_batch is not 0.
    """
    if n_dense or n_batch:
        raise NotImplementedError("BCOO.fromscipy with nonzero n_dense/n_batch")
    mat = mat.tocoo()
    index_dtype = checked_index_dtype("BCOO.from_scipy_sparse", jnp.int32 if index_dtype is None else index_dtype)
    indices = jnp.stack([jnp.asarray(mat.row), jnp.asarray(mat.col)], axis=-1).astype(index_dtype)
    return BCOO((jnp.asarray(mat.data), indices), shape=mat.shape)


def bcoo_empty(shape, *, dtype=None, index_dtype="int32", n_dense=0, n_batch=0, nse=0):
    """A BCOO array of zeros: the indices of its `nse` elements are all outside."""
    shape = checked_shape(shape)
    n_sparse = len(shape) - n_dense - n_batch
    if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
        raise ValueError(f"Invalid inputs: shape={shape}, n_dense={n_dense}, n_batch={n_batch}, nse={nse}")
    batch, sparse, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
    index_dtype = checked_index_dtype("sparse.empty", index_dtype)
    if any(d > jnp.iinfo(index_dtype).max for d in sparse):
        raise ValueError(f"sparse.empty: indices into shape {sparse} do not fit into index_dtype {index_dtype}")
    data = jnp.zeros((*batch, nse, *dense), dtype)
    indices = jnp.broadcast_to(ends(sparse, index_dtype), (*batch, nse, n_sparse))
    return BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)


def diagonal(N, M, k):
    """The rows and columns of the k-th diagonal of an (N, M) matrix."""
    n = max(0, min(N, M - k) if k >= 0 else min(N + k, M))
    i = jnp.arange(n)
    return (i, i + k) if k >= 0 else (i - k, i)


def bcoo_eye(N, M, k, *, dtype=None, index_dtype="int32", n_batch=0, n_dense=0):
    """The BCOO matrix with ones on its k-th diagonal."""
    n_sparse = 2 - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0:
        raise ValueError(f"Invalid inputs: shape={(N, M)}, n_dense={n_dense}, n_batch={n_batch}")
    index_dtype = checked_index_dtype("sparse.eye", index_dtype)
    row, col = diagonal(N, M, k)
    if n_sparse == 2:
        return BCOO((jnp.ones(row.shape, dtype), jnp.stack([row, col], axis=-1).astype(index_dtype)), shape=(N, M), indices_sorted=True, unique_indices=True)
    if n_batch + n_dense == 2:
        nse = min(1, len(row))
        ones = jnp.zeros((N, M), dtype).at[row, col].set(1)
        data = lax.expand_dims(ones, (n_batch,)) if nse else jnp.zeros((*(N, M)[:n_batch], 0, *(N, M)[n_batch:]), dtype)
        return BCOO((data, jnp.zeros((*(N, M)[:n_batch], nse, 0), index_dtype)), shape=(N, M), indices_sorted=True, unique_indices=True)
    if n_batch:
        # each row has one element, or none
        where = jnp.arange(N) + k
        there = (where >= 0) & (where < M)
        nse = min(1, len(row))
        data = jnp.where(there, jnp.ones((N,), dtype), jnp.zeros((), dtype)).reshape(N, 1)[:, :nse]
        indices = jnp.where(there, where, M).astype(index_dtype).reshape(N, 1, 1)[:, :nse]
        return BCOO((data, indices), shape=(N, M), indices_sorted=True, unique_indices=True)
    data = jnp.zeros((len(row), M), dtype).at[jnp.arange(len(row)), col].set(1)
    return BCOO((data, row.astype(index_dtype).reshape(-1, 1)), shape=(N, M), indices_sorted=True, unique_indices=True)
