"""CSR and CSC: a sparse matrix by compressed rows, or columns.

    CSR((data, indices, indptr), shape=(rows, columns))      row i has the elements indptr[i] to indptr[i + 1], in the columns `indices`

Invariant: the transposed of one is the other, of the same buffers.

    >>> CSR.fromdense(jnp.array([[0.0, 2.0]])).T
    CSC(float32[2, 1], nse=1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ... import numpy as jnp
from ...tree_util import register_pytree_node_class
from ._base import Layout, checked_index_dtype
from ._construction import diagonal
from .bcoo import made
from .bcsr import rows_of, starts_of
from .coo import Matrix, checked_matrix, checked_product, fromdense_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike
    from .bcoo import BCOO

__all__ = ["CSC", "CSR", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense"]


class _Compressed(Matrix):
    """A matrix whose dimension `_major` is compressed."""

    _major = 0

    def __init__(self, args: Sequence[ArrayLike], *, shape: Sequence[int]) -> None:
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        name = type(self).__name__
        super().__init__(args, shape=checked_matrix(name, shape))
        n = self.shape[self._major]
        if not self.data.ndim == self.indices.ndim == 1 or self.data.shape != self.indices.shape or tuple(self.indptr.shape) != (n + 1,):
            found = f"{tuple(self.data.shape)}, {tuple(self.indices.shape)}, {tuple(self.indptr.shape)}"
            raise ValueError(
                f"{name}: data and indices must be vectors of one length, and indptr of {n + 1} elements for shape {self.shape}; got shapes {found}"
            )
        for x in (self.indices, self.indptr):
            if not jnp.issubdtype(x.dtype, jnp.integer):
                raise TypeError(f"{name}: indices and indptr must be of an integer dtype, got {x.dtype}")

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return self.data.shape[0]

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], dict[str, Any]]:
        """(data, indices, indptr), and the shape in a dictionary."""
        return (self.data, self.indices, self.indptr), Layout(shape=self.shape)

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> Self:
        """The matrix of three vectors."""
        if aux_data.keys() != {"shape"}:
            raise ValueError(f"{cls.__name__}.tree_unflatten: invalid {aux_data=}")
        self = object.__new__(cls)
        self.data, self.indices, self.indptr = children
        self.shape = aux_data["shape"]
        return self

    def _transposed(self, kind, axes):
        if axes is not None:
            raise NotImplementedError("axes argument to transpose()")
        return kind((self.data, self.indices, self.indptr), shape=self.shape[::-1])

    def to_bcoo(self) -> BCOO:
        """The same elements as a BCOO array."""
        major = rows_of(self.indptr, self.nse).astype(self.indices.dtype)
        there = major < self.shape[self._major]
        minor = jnp.where(there, self.indices, self.shape[1 - self._major])
        pair = (major, minor) if self._major == 0 else (minor, major)
        return made(self.data, jnp.stack(pair, axis=-1), self.shape)

    @classmethod
    def _of_sorted(cls, data, major, minor, shape):
        return cls((data, minor, starts_of(major, shape[cls._major])), shape=shape)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32"):
        shape, index_dtype = checked_matrix(cls.__name__, shape), checked_index_dtype("sparse.empty", index_dtype)
        return cls((jnp.zeros((0,), dtype), jnp.zeros((0,), index_dtype), jnp.zeros((shape[cls._major] + 1,), index_dtype)), shape=shape)

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32"):
        index_dtype = checked_index_dtype("sparse.eye", index_dtype)
        pair = [x.astype(index_dtype) for x in diagonal(N, M, k)]
        return cls._of_sorted(jnp.ones(pair[0].shape, dtype), pair[cls._major], pair[1 - cls._major], (N, M))


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix by compressed rows.

    Args:
        args: (data, indices, indptr): the elements, their columns, and the start of each row
          followed by the end of the last.
        shape: (rows, columns).

    Attributes:
        nse: the number of specified elements.

    Raises:
        ValueError: the lengths do not fit, or the shape does not have two dimensions.
        TypeError: the indices are not integers.
    """

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
        """The CSR matrix of a dense one; see `csr_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def transpose(self, axes: None = None) -> CSC:
        """The transposed matrix, as CSC.

        Raises:
            NotImplementedError: axes are given.
        """
        return self._transposed(CSC, axes)


@register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix by compressed columns.

    Args:
        args: (data, indices, indptr): the elements, their rows, and the start of each column
          followed by the end of the last.
        shape: (rows, columns).

    Attributes:
        nse: the number of specified elements.

    Raises:
        ValueError: the lengths do not fit, or the shape does not have two dimensions.
        TypeError: the indices are not integers.
    """

    _major = 1

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSC:
        """The CSC matrix of a dense one, in order of columns."""
        return csr_fromdense(jnp.transpose(mat) if jnp.ndim(mat) == 2 else mat, nse=nse, index_dtype=index_dtype).T

    def transpose(self, axes: None = None) -> CSR:
        """The transposed matrix, as CSR.

        Raises:
            NotImplementedError: axes are given.
        """
        return self._transposed(CSR, axes)


def csr_fromdense(mat: Array, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """The CSR matrix of a dense one.

    Args:
        mat: a matrix.
        nse: the number of elements to specify; by default the number of nonzero ones, which is
          unknown for a traced matrix.
        index_dtype: of the indices.

    Returns:
        a CSR matrix.

    Raises:
        ValueError: it is not a matrix.
        ConcretizationTypeError: it is traced, and `nse` is not given.
    """
    data, row, col = fromdense_parts("csr_fromdense", mat, nse, index_dtype)
    return CSR._of_sorted(data, row, col, jnp.shape(mat))


def csr_todense(mat: CSR) -> Array:
    """The dense matrix of a CSR one.

    Args:
        mat: a CSR matrix.

    Returns:
        an array of its shape and dtype.
    """
    return mat.todense()


def csr_matvec(mat: CSR, v: Array, transpose: bool = False) -> Array:
    """The product of a CSR matrix and a vector.

    Args:
        mat: a CSR matrix.
        v: a vector with as many elements as the sparse matrix has columns (rows, if transposed).
        transpose: whether to use the transposed matrix.

    Returns:
        a vector of the dtype to which both promote.

    Raises:
        TypeError: the sizes do not fit.
        ValueError: `v` is not a vector.
    """
    return checked_product("csr_matvec", mat, CSR, v, 1, transpose)


def csr_matmat(mat: CSR, B: Array, *, transpose: bool = False) -> Array:
    """The product of a CSR matrix and a matrix.

    Args:
        mat: a CSR matrix.
        B: a matrix with as many rows as the sparse matrix has columns (rows, if transposed).
        transpose: whether to use the transposed matrix.

    Returns:
        a matrix of the dtype to which both promote.

    Raises:
        TypeError: the sizes do not fit.
        ValueError: `B` is not a matrix.
    """
    return checked_product("csr_matmat", mat, CSR, B, 2, transpose)
