"""COO: a sparse matrix by rows and columns.

    COO((data, row, col), shape=(rows, columns))

Invariant: elements with equal indices are summed; those outside the shape do not count.

    >>> COO.fromdense(jnp.array([[0.0, 2.0]])) @ jnp.array([1.0, 3.0])
    Array([6.], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ... import numpy as jnp
from ..._tracing.jit import jit
from ...tree_util import register_pytree_node_class
from ._base import JAXSparse, Layout, checked_index_dtype, checked_shape
from ._construction import bcoo_fromdense, bcoo_todense, checked_nse, count_specified, diagonal
from ._duplicates import bcoo_sort_indices
from ._products import bcoo_dot_general
from .bcoo import made

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike
    from .bcoo import BCOO

__all__ = ["COO", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense"]


class Matrix(JAXSparse):
    """The common base of COO, CSR and CSC: a matrix that can be multiplied by vectors and matrices
    from the right.
    """

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self.data.dtype

    def to_bcoo(self) -> BCOO:
        """The same elements as a BCOO array."""
        raise NotImplementedError

    def todense(self) -> Array:
        """The dense matrix."""
        return bcoo_todense(self.to_bcoo())

    def __matmul__(self, other: ArrayLike) -> Array:
        if isinstance(other, JAXSparse):
            raise NotImplementedError("matmul between two sparse objects.")
        other = jnp.asarray(other)
        if other.ndim not in (1, 2):
            raise NotImplementedError(f"matmul with object of shape {tuple(other.shape)}")
        return product(self, other, False)


@jit(static_argnums=2)
def product(mat, other, transpose):
    """mat @ other, or mat.T @ other: one program for all that has one type."""
    return bcoo_dot_general(mat.to_bcoo(), other, dimension_numbers=(([0 if transpose else 1], [0]), ([], [])))


def checked_product(name, mat, kind, other, ndim, transpose):
    """mat @ other, or mat.T @ other, of a sparse matrix of one kind."""
    if not isinstance(mat, kind):
        raise TypeError(f"{name}: expected a {kind.__name__} matrix, got {type(mat)}")
    other = jnp.asarray(other)
    if other.ndim != ndim:
        raise ValueError(f"{name}: expected an array of {ndim} dimensions, got shape {tuple(other.shape)}")
    return product(mat, other, transpose)


def checked_matrix(name, shape):
    shape = checked_shape(shape)
    if len(shape) != 2:
        raise ValueError(f"{name} must have ndim=2; got shape={shape}")
    return shape


@register_pytree_node_class
class COO(Matrix):
    """A sparse matrix by coordinates.

    Args:
        args: (data, row, col): three vectors of one length, the last two of integers.
        shape: (rows, columns).
        rows_sorted, cols_sorted: promises about the indices.

    Raises:
        ValueError: the lengths differ, or the shape does not have two dimensions.
        TypeError: the indices are not integers.
    """

    def __init__(self, args: tuple[Array, Array, Array], *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False) -> None:
        self.data, self.row, self.col = map(jnp.asarray, args)
        self._rows_sorted, self._cols_sorted = bool(rows_sorted), bool(cols_sorted)
        super().__init__(args, shape=checked_matrix("COO", shape))
        if not self.data.ndim == self.row.ndim == self.col.ndim == 1 or not self.data.shape == self.row.shape == self.col.shape:
            found = f"{tuple(self.data.shape)}, {tuple(self.row.shape)}, {tuple(self.col.shape)}"
            raise ValueError(f"COO: data, row and col must be vectors of one length, got shapes {found}")
        for x in (self.row, self.col):
            if not jnp.issubdtype(x.dtype, jnp.integer):
                raise TypeError(f"COO: row and col must be of an integer dtype, got {x.dtype}")

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return self.data.shape[0]

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], dict[str, Any]]:
        """(data, row, col), and the rest as a dictionary."""
        return (self.data, self.row, self.col), Layout(shape=self.shape, rows_sorted=self._rows_sorted, cols_sorted=self._cols_sorted)

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> Self:
        """The matrix of three vectors."""
        if aux_data.keys() != {"shape", "rows_sorted", "cols_sorted"}:
            raise ValueError(f"COO.tree_unflatten: invalid {aux_data=}")
        self = object.__new__(cls)
        self.data, self.row, self.col = children
        self.shape, self._rows_sorted, self._cols_sorted = (aux_data[k] for k in ("shape", "rows_sorted", "cols_sorted"))
        return self

    @classmethod
    def fromdense(cls, mat: Array, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
        """The COO matrix of a dense one; see `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def transpose(self, axes: tuple[int, ...] | None = None) -> COO:
        """The matrix with rows and columns exchanged.

        Raises:
            NotImplementedError: axes are given.
        """
        if axes is not None:
            raise NotImplementedError("axes argument to transpose()")
        return COO((self.data, self.col, self.row), shape=self.shape[::-1], rows_sorted=self._cols_sorted, cols_sorted=self._rows_sorted)

    def to_bcoo(self) -> BCOO:
        """The same elements as a BCOO array."""
        dtype = jnp.result_type(self.row.dtype, self.col.dtype)
        return made(self.data, jnp.stack([self.row.astype(dtype), self.col.astype(dtype)], axis=-1), self.shape)

    def _sort_indices(self):
        mat = bcoo_sort_indices(self.to_bcoo())
        return COO((mat.data, mat.indices[:, 0], mat.indices[:, 1]), shape=self.shape, rows_sorted=True)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32"):
        shape, index_dtype = checked_matrix("COO", shape), checked_index_dtype("sparse.empty", index_dtype)
        none = jnp.zeros((0,), index_dtype)
        return cls((jnp.zeros((0,), dtype), none, none), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32"):
        index_dtype = checked_index_dtype("sparse.eye", index_dtype)
        row, col = (x.astype(index_dtype) for x in diagonal(N, M, k))
        return cls((jnp.ones(row.shape, dtype), row, col), shape=(N, M), rows_sorted=True, cols_sorted=True)


def fromdense_parts(name, mat, nse, index_dtype):
    """(data, row, col), in order of rows; those too many are outside."""
    mat = jnp.asarray(mat)
    if mat.ndim != 2:
        raise ValueError(f"{name}: expected a matrix, got shape {tuple(mat.shape)}")
    nse = count_specified(name, mat, 0, 0) if nse is None else checked_nse(name, nse)
    out = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return out.data, out.indices[:, 0], out.indices[:, 1]


def coo_fromdense(mat: Array, *, nse: int | None = None, index_dtype: DTypeLike = jnp.int32) -> COO:
    """The COO matrix of a dense one.

    Args:
        mat: a matrix.
        nse: the number of elements to specify; by default the number of nonzero ones, which is
          unknown for a traced matrix.
        index_dtype: of the indices.

    Returns:
        a COO matrix, in order of rows.

    Raises:
        ValueError: it is not a matrix.
        ConcretizationTypeError: it is traced, and `nse` is not given.
    """
    return COO(fromdense_parts("coo_fromdense", mat, nse, index_dtype), shape=jnp.shape(mat), rows_sorted=True)


def coo_todense(mat: COO) -> Array:
    """The dense matrix of a COO one.

    Args:
        mat: a COO matrix.

    Returns:
        an array of its shape and dtype.
    """
    return mat.todense()


def coo_matvec(mat: COO, v: Array, transpose: bool = False) -> Array:
    """The product of a COO matrix and a vector.

    Args:
        mat: a COO matrix.
        v: a vector with as many elements as the sparse matrix has columns (rows, if transposed).
        transpose: whether to use the transposed matrix.

    Returns:
        a vector of the dtype to which both promote.

    Raises:
        TypeError: the sizes do not fit.
        ValueError: `v` is not a vector.
    """
    return checked_product("coo_matvec", mat, COO, v, 1, transpose)


def coo_matmat(mat: COO, B: Array, *, transpose: bool = False) -> Array:
    """The product of a COO matrix and a matrix.

    Args:
        mat: a COO matrix.
        B: a matrix with as many rows as the sparse matrix has columns (rows, if transposed).
        transpose: whether to use the transposed matrix.

    Returns:
        a matrix of the dtype to which both promote.

    Raises:
        TypeError: the sizes do not fit.
        ValueError: `B` is not a matrix.
    """
    return checked_product("coo_matmat", mat, COO, B, 2, transpose)
