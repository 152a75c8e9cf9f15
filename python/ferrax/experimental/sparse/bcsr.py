"""BCSR: batches of compressed sparse rows.

    BCSR((data, indices, indptr), shape=(*batch, rows, columns, *dense))

Invariant: row i of a batch has the elements indptr[i] to indptr[i + 1]; those behind indptr[-1] do
not count. All operations are done by BCOO.

    >>> BCSR.fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]])).indptr
    Array([0, 1, 2], dtype=int32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from ... import lax, numpy as jnp
from ..._core import Array
from ...tree_util import register_pytree_node_class
from ._base import JAXSparse, Layout, checked_index_dtype, checked_shape, over_batch, take_at
from ._construction import bcoo_fromdense, bcoo_todense, checked_nse, checked_split, count_specified
from ._duplicates import bcoo_sort_indices, sum_duplicates
from ._products import bcoo_dot_general, checked_dot
from ._shaping import bcoo_broadcast_in_dim, bcoo_concatenate, materialized
from .bcoo import BCOO, made, reshaped_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...sharding import NamedSharding, PartitionSpec
    from ...typing import ArrayLike, DTypeLike

__all__ = [
    "BCSR",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_extract",
    "bcsr_fromdense",
    "bcsr_sum_duplicates",
    "bcsr_todense",
]


@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse array by compressed rows, with batch dimensions before the two sparse ones and dense
    ones after them.

    Args:
        args: (data, indices, indptr): data (*batch, nse, *dense), the columns (*batch, nse), and
          the starts of the rows (*batch, rows + 1).
        shape: of the whole.
        indices_sorted, unique_indices: promises about the indices: in lexicographic order; each
          once.

    Attributes:
        n_batch, n_sparse, n_dense: how many dimensions are of each kind; n_sparse is 2. nse: the
          number of specified elements of each batch.

    Raises:
        ValueError: the shapes do not fit together.
        TypeError: the indices are not integers.
    """

    def __init__(self, args: tuple[Array, Array, Array], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False) -> None:
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        super().__init__(args, shape=shape)
        _validate(self.data, self.indices, self.indptr, self.shape)

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return self.indices.shape[-1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self.data.dtype

    @property
    def n_batch(self) -> int:
        """The number of leading batch axes."""
        return self.indices.ndim - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of trailing dense axes."""
        return self.data.ndim - self.indices.ndim

    def tree_flatten(self) -> tuple[tuple[Array, ...], Layout]:
        """(data, indices, indptr), and the rest as a dictionary."""
        layout = Layout(shape=self.shape, indices_sorted=self.indices_sorted, unique_indices=self.unique_indices)
        return (self.data, self.indices, self.indptr), layout

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> Self:
        """The array of three buffers, with a batch dimension more or fewer if they have it."""
        if aux_data.keys() != {"shape", "indices_sorted", "unique_indices"}:
            raise ValueError(f"BCSR.tree_unflatten: invalid {aux_data=}")
        self = object.__new__(cls)
        self.data, self.indices, self.indptr = children
        self.indices_sorted, self.unique_indices, self.shape = (aux_data[k] for k in ("indices_sorted", "unique_indices", "shape"))
        if getattr(self.indices, "ndim", 0) >= 1 and hasattr(self.data, "ndim") and hasattr(self.indptr, "ndim"):
            self.shape = reshaped_batch(self.shape, self.data.ndim + 1 - len(self.shape), self.n_batch, children)
        return self

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with elements of equal indices summed, rows in order; see
        `BCOO.sum_duplicates`.
        """
        return self.from_bcoo(sum_duplicates(self.to_bcoo(), nse, remove_zeros))

    def todense(self) -> Array:
        """The dense array."""
        return bcsr_todense(self)

    def transpose(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Not there: its rows would be compressed columns.

        `to_bcoo().transpose()` has a meaning.
        """
        raise NotImplementedError("Transpose is not implemented.")

    def to_bcoo(self) -> BCOO:
        """The same elements as a BCOO array."""
        return _to_bcoo(self)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The BCSR array of a BCOO one with two sparse dimensions."""
        return _from_bcoo(arr)

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32, n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """The BCSR array of a dense one; see `bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0) -> Self:
        """The BCSR array of a matrix of scipy.sparse.

        Raises:
            NotImplementedError: n_dense or n_batch is not 0: a scipy matrix has sparse dimensions
              only.
        """
        if n_dense or n_batch:
            raise NotImplementedError("BCSR from_scipy_sparse with nonzero n_dense/n_batch.")
        if mat.ndim != 2:
            raise ValueError(f"BCSR from_scipy_sparse requires 2D array; {mat.ndim}D is given.")
        mat = mat.tocsr()
        index_dtype = checked_index_dtype("BCSR.from_scipy_sparse", jnp.int32 if index_dtype is None else index_dtype)
        return cls((jnp.asarray(mat.data), jnp.asarray(mat.indices).astype(index_dtype), jnp.asarray(mat.indptr).astype(index_dtype)), shape=mat.shape)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32", n_dense=0, n_batch=0, nse=0):
        """The public function is `sparse.empty`."""
        shape = checked_shape(shape)
        if n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"Invalid inputs: shape={shape}, n_dense={n_dense}, n_batch={n_batch}, nse={nse}")
        if len(shape) - n_dense - n_batch != 2:
            raise ValueError("BCSR sparse.empty: must have 2 sparse dimensions.")
        batch, sparse, dense = shape[:n_batch], shape[n_batch : n_batch + 2], shape[n_batch + 2 :]
        index_dtype = checked_index_dtype("sparse.empty", index_dtype)
        return cls(
            (jnp.zeros((*batch, nse, *dense), dtype), jnp.full((*batch, nse), sparse[1], index_dtype), jnp.zeros((*batch, sparse[0] + 1), index_dtype)),
            shape=shape,
        )

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32", **kwargs):
        """The public function is `sparse.eye`."""
        return cls.from_bcoo(BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype, **kwargs))


def _validate(data, indices, indptr, shape):
    for name, x in (("indices", indices), ("indptr", indptr)):
        if not jnp.issubdtype(x.dtype, jnp.integer):
            raise TypeError(f"BCSR: {name} must be of an integer dtype, got {x.dtype}")
    n_batch = indices.ndim - 1
    if n_batch < 0 or len(shape) < n_batch + 2:
        raise ValueError(f"BCSR: {shape=} must have two sparse dimensions, but indices.shape={tuple(indices.shape)}")
    nse, rows, n_dense = indices.shape[-1], shape[n_batch], len(shape) - n_batch - 2
    if indptr.ndim != n_batch + 1 or indptr.shape[-1] != rows + 1:
        raise ValueError("indptr shape must match the matrix shape plus 1.")
    for name, x in (("data", data), ("indices", indices), ("indptr", indptr)):
        found = tuple(x.shape[:n_batch])
        if len(found) != n_batch or any(a not in (1, b) for a, b in zip(found, shape, strict=False)):
            raise ValueError(f"{name} batch dimensions not compatible for {name}.shape={tuple(x.shape)}, {shape=}")
    if tuple(data.shape[n_batch:]) != (nse, *shape[n_batch + 2 :]):
        raise ValueError(f"Invalid data.shape={tuple(data.shape)} for {nse=}, {n_batch=}, {n_dense=}")


def rows_of(indptr, nse):
    """The row of each of nse elements; the number of rows for those behind the last."""
    steps = jnp.zeros((nse + 1,), indptr.dtype).at[jnp.minimum(indptr[1:], nse)].add(1)
    return jnp.cumsum(steps[:nse], dtype=indptr.dtype)


def starts_of(row, n):
    """The start of each of n rows, and the end of the last, among sorted rows; rows of n and more
    come last.
    """
    counts = jnp.zeros((n,), row.dtype).at[row].add(1, mode="drop")
    return jnp.concatenate([jnp.zeros((1,), row.dtype), jnp.cumsum(counts, dtype=row.dtype)])


def _to_bcoo(mat):
    nb, (rows, cols) = mat.n_batch, mat.shape[mat.n_batch : mat.n_batch + 2]

    def one(indices, indptr):
        row = rows_of(indptr, mat.nse).astype(indices.dtype)
        return jnp.stack([row, jnp.where(row < rows, indices, cols)], axis=-1)

    return made(mat.data, over_batch(one, nb, mat.indices, mat.indptr), mat.shape, mat.indices_sorted, mat.unique_indices)


def _from_bcoo(arr):
    if not isinstance(arr, BCOO):
        raise TypeError(f"BCSR.from_bcoo: expected a BCOO array, got {type(arr)}")
    if arr.n_sparse != 2:
        raise NotImplementedError(f"BSCR.from_bcoo requires n_sparse=2; got arr.n_sparse={arr.n_sparse}")
    nb = arr.n_batch
    arr = made(*materialized(arr), arr.shape, arr.indices_sorted, arr.unique_indices)
    n, m = arr.shape[nb : nb + 2]
    row, col = arr.indices[..., 0], arr.indices[..., 1]
    # elements outside by their rows go behind all rows; those outside by their columns stay in them, in column m
    row, col = jnp.where(row < 0, row + n, row), jnp.where(col < 0, col + m, col)
    indices = jnp.stack([jnp.where((row >= 0) & (row < n), row, n), jnp.where((col >= 0) & (col < m), col, m)], axis=-1)
    arr = made(arr.data, indices.astype(arr.indices.dtype), arr.shape, arr.indices_sorted, arr.unique_indices)
    arr = arr if arr.indices_sorted else bcoo_sort_indices(arr)
    row, col = arr.indices[..., 0], arr.indices[..., 1]
    indptr = over_batch(lambda r: starts_of(r, n), nb, row)
    out = object.__new__(BCSR)
    out.data, out.indices, out.indptr, out.shape = arr.data, col, indptr, arr.shape
    out.indices_sorted, out.unique_indices = arr.indices_sorted, arr.unique_indices
    return out


def _check(name, *mats):
    for mat in mats:
        if not isinstance(mat, BCSR):
            raise TypeError(f"{name}: expected a BCSR array, got {type(mat)}")


def bcsr_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = jnp.int32) -> BCSR:
    """The BCSR array of a dense one.

    Args:
        mat: an array with two dimensions that are neither batch nor dense.
        nse: the number of elements to specify in each batch; by default the number of nonzero ones,
          which is unknown for a traced array.
        n_batch, n_dense: how many of the first dimensions are batch dimensions, and how many of the
          last are dense.
        index_dtype: of the indices.

    Returns:
        a BCSR array.

    Raises:
        ValueError: there are not two sparse dimensions.
        ConcretizationTypeError: `mat` is traced, and `nse` is not given.

    >>> bcsr_fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]])).indices
    Array([1, 0], dtype=int32)
    """
    mat = jnp.asarray(mat)
    n_batch, n_dense = checked_split("bcsr_fromdense", mat.ndim, n_batch, n_dense)
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError("bcsr_fromdense: must have 2 sparse dimensions.")
    nse = count_specified("bcsr_fromdense", mat, n_batch, n_dense) if nse is None else checked_nse("bcsr_fromdense", nse)
    return _from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array of a BCSR one.

    Args:
        mat: a BCSR array.

    Returns:
        an array of its shape and dtype.

    Raises:
        TypeError: it is not a BCSR array.
    """
    _check("bcsr_todense", mat)
    return bcoo_todense(_to_bcoo(mat))


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """A dense array's elements at the places of a BCSR array.

    Args:
        indices, indptr: of the BCSR array: (*batch, nse) and (*batch, rows + 1).
        mat: an array (*batch, rows, columns, *dense).

    Returns:
        (*batch, nse, *dense): the data; zero outside the shape.

    Raises:
        ValueError: the shapes do not fit together.
    """
    indices, indptr, mat = jnp.asarray(indices), jnp.asarray(indptr), jnp.asarray(mat)
    n_batch = indices.ndim - 1
    if n_batch < 0 or mat.ndim < n_batch + 2 or indptr.ndim != indices.ndim or indptr.shape[-1] != mat.shape[n_batch] + 1:
        raise ValueError(f"bcsr_extract: shapes do not fit: {indices.shape=}, {indptr.shape=}, {mat.shape=}")

    def one(indices, indptr, mat):
        row = rows_of(indptr, indices.shape[0])
        return take_at(mat, (row, indices), indices.shape[0])

    return over_batch(one, n_batch, indices, indptr, mat)


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """A BCSR array with elements of equal indices summed, and columns in order.

    Args:
        mat: a BCSR array.
        nse: the number of elements of each batch of the result; by default the number of distinct
          ones, which is unknown for traced indices.

    Returns:
        a BCSR array with sorted unique indices.

    Raises:
        ValueError: the indices are traced, and `nse` is not given.
    """
    _check("bcsr_sum_duplicates", mat)
    return _from_bcoo(sum_duplicates(_to_bcoo(mat), nse, remove_zeros=False))


def bcsr_dot_general(
    lhs: BCSR | Array,
    rhs: Array,
    *,
    dimension_numbers: Any,
    precision: None = None,
    preferred_element_type: None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """`lax.dot_general` of a BCSR array and an array.

    Args:
        lhs: BCSR array, or an array.
        rhs: array.
        dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)), sequences
          of ints.
        precision: accepted without effect where `lhs` is sparse.
        preferred_element_type: dtype of the result.
        out_sharding: must be None where `lhs` is sparse.

    Returns:
        Array (batch, rest of lhs, rest of rhs).

    Raises:
        NotImplementedError: `rhs` is sparse, or `lhs` is sparse of another kind.
        TypeError: dimensions do not fit.
    """
    options = dict(precision=precision, preferred_element_type=preferred_element_type)
    lhs, rhs = (x if isinstance(x, (JAXSparse, Array)) else jnp.asarray(x) for x in (lhs, rhs))
    if isinstance(rhs, JAXSparse) or (isinstance(lhs, JAXSparse) and not isinstance(lhs, BCSR)):
        raise NotImplementedError("bcsr_dot_general currently implemented for BCSR lhs and ndarray rhs.")
    if not isinstance(lhs, BCSR):
        return lax.dot_general(lhs, rhs, dimension_numbers=checked_dot(lhs, rhs, dimension_numbers), out_sharding=out_sharding, **options)
    return bcoo_dot_general(_to_bcoo(lhs), rhs, dimension_numbers=dimension_numbers, out_sharding=out_sharding, **options)


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None) -> BCSR:
    """`lax.broadcast_in_dim` of a BCSR array: new dimensions before the rows are batch dimensions.

    Args:
        mat: BCSR array.
        shape: tuple of ints, the shape of the result.
        broadcast_dimensions: sequence of ints, the dimension of the result for each dimension of
          `mat`.
        sharding: accepted without effect.

    Returns:
        BCSR array of that shape.

    Raises:
        NotImplementedError: the result would have more than two sparse dimensions.
    """
    _check("bcsr_broadcast_in_dim", mat)
    out = bcoo_broadcast_in_dim(_to_bcoo(mat), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding)
    return _from_bcoo(out)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """`lax.concatenate` of BCSR arrays, along a batch or a sparse dimension.

    Args:
        operands: BCSR arrays of equal shapes except for one dimension, with equal numbers of batch
          and dense dimensions.
        dimension: the dimension along which they are joined.

    Returns:
        a BCSR array.

    Raises:
        ValueError, TypeError, NotImplementedError: as `bcoo_concatenate`.
    """
    operands = list(operands)
    if not all(isinstance(op, BCSR) for op in operands):
        raise ValueError(f"bcsr_concatenate: expected operands to be a sequence of BCSR arrays. Got {operands}")
    return _from_bcoo(bcoo_concatenate([_to_bcoo(op) for op in operands], dimension=dimension))
