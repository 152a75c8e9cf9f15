"""Sparse arrays of any format: empty ones, identities.

Invariant: a format is a class with `_empty` and `_eye`.

    >>> eye(3, sparse_format="csr")
    CSR(float32[3, 3], nse=3)
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._base import checked_shape
from .bcoo import BCOO
from .bcsr import BCSR
from .coo import COO
from .csr import CSC, CSR

if TYPE_CHECKING:
    from ...typing import DTypeLike
    from . import JAXSparse

__all__ = ["empty", "eye"]

_FORMATS = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


def _format(sparse_format):
    if sparse_format not in _FORMATS:
        raise ValueError(f"sparse_format={sparse_format!r} not recognized; must be one of {list(_FORMATS)}")
    return _FORMATS[sparse_format]


def empty(shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32", sparse_format: str = "bcoo", **kwds: Any) -> JAXSparse:
    """A sparse array of zeros.

    Args:
        shape: of the array.
        dtype: of its elements; by default float32.
        index_dtype: of its indices.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        **kwds: of the format: `n_batch`, `n_dense` and `nse` for BCOO and BCSR.

    Returns:
        the array.

    Raises:
        ValueError: the format does not exist, or does not have that many dimensions.

    >>> empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    return _format(sparse_format)._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32", sparse_format: str = "bcoo", **kwds: Any
) -> JAXSparse:
    """A sparse matrix with ones on a diagonal.

    Args:
        N, M: rows and columns; by default a square matrix.
        k: which diagonal: 0 is the main one, positive ones lie above.
        dtype: of the elements; by default float32.
        index_dtype: of the indices.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        **kwds: of the format: `n_batch` and `n_dense` for BCOO.

    Returns:
        the matrix.

    Raises:
        ValueError: the format does not exist, or a size is negative.

    >>> eye(2, k=1).todense()
    Array([[0., 1.],
           [0., 0.]], dtype=float32)
    """
    N = operator.index(N)
    M = N if M is None else operator.index(M)
    if min(checked_shape((N, M))) < 0:
        raise ValueError(f"sparse.eye: sizes must not be negative, got {(N, M)}")
    return _format(sparse_format)._eye(N, M, operator.index(k), dtype=dtype, index_dtype=index_dtype, **kwds)
