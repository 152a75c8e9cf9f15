"""Sparse linear systems, solved directly: the matrix is put in an order of small bandwidth, and
factored as a band.

The order is that of Cuthill and McKee, reversed (George, Liu: Computer Solution of Large Sparse
Positive Definite Systems, chapter 4); the factorization is Gaussian elimination with row exchanges,
whose band grows to 2 kl + ku + 1 diagonals (Golub, Van Loan: Matrix Computations, 4.3). It is done
on the host, in double precision.

Invariant: memory is that of the band, never that of the matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import lax, numpy as jnp
from ..._base.dtypes import is_inexact
from ..._runtime.callback import pure_callback
from ..._tracing.trace import ShapeDtypeStruct
from .coo import product
from .csr import CSR

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

__all__ = ["spsolve"]


def spsolve(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike, tol: float = 1e-6, reorder: int = 1) -> Array:
    """The solution of a sparse linear system A x = b, by Gaussian elimination on the host.

    Args:
        data, indices, indptr: A, (n, n), by compressed rows.
        b: the right side, (n,).
        tol: accepted without effect, as in JAX on a CPU: a matrix is singular if a pivot is zero.
        reorder: 0: eliminate in the given order; 1, 2, 3: in an order of small bandwidth.

    Returns:
        x, (n,), of the dtype of `b`; nan if A is singular. It is differentiated as a solution of
        the system, with respect to `data` and `b`, and mapped by `vmap`.

    Raises:
        ValueError: the arrays are not vectors, or their lengths do not fit.

    >>> spsolve(jnp.array([2.0, 1.0, 4.0]), jnp.array([0, 1, 1]), jnp.array([0, 2, 3]), jnp.array([4.0, 8.0]))
    Array([1., 2.], dtype=float32)
    """
    del tol
    data, indices, indptr, b = map(jnp.asarray, (data, indices, indptr, b))
    shapes = f"data.shape={tuple(data.shape)} indices.shape={tuple(indices.shape)} indptr.shape={tuple(indptr.shape)}"
    if not data.ndim == indices.ndim == indptr.ndim == b.ndim == 1:
        raise ValueError(f"Arrays must be one-dimensional. Got {shapes} b.shape={tuple(b.shape)}")
    n = b.shape[0]
    if data.shape != indices.shape or indptr.shape[0] != n + 1:
        raise ValueError(f"Invalid CSR buffer sizes: {shapes} b.shape={tuple(b.shape)}")
    dtype = b.dtype
    work = jnp.result_type(data.dtype, b.dtype)
    work = work if is_inexact(work) else jnp.result_type(work, jnp.float32)
    data, b = data.astype(work), b.astype(work)

    def call(transposed):
        def solve(_, b):
            host = _Solver(n, bool(reorder), transposed)
            return pure_callback(host, ShapeDtypeStruct((n,), work), lax.stop_gradient(data), indices, indptr, b, vmap_method="sequential")

        return solve

    mat = CSR((data, indices, indptr), shape=(n, n))
    return lax.custom_linear_solve(lambda x: product(mat, x, False), b, call(False), call(True)).astype(dtype)


class _Solver:
    """The function of the callback: solves the system of A, or of its transpose."""

    def __init__(self, n, reorder, transposed):
        self.n, self.reorder, self.transposed = n, reorder, transposed

    def __call__(self, data, indices, indptr, b):
        data, indices, indptr, b = map(np.asarray, (data, indices, indptr, b))
        n = self.n
        indptr = np.minimum(indptr.astype(np.int64), data.shape[0])
        rows = np.repeat(np.arange(n), np.maximum(np.diff(indptr), 0))
        columns, values = indices[: rows.shape[0]].astype(np.int64), data[: rows.shape[0]]
        columns = np.where(columns < 0, columns + n, columns)
        there = (columns >= 0) & (columns < n)
        rows, columns, values = rows[there], columns[there], values[there]
        if self.transposed:
            rows, columns = columns, rows
        order = _small_band(rows, columns, n) if self.reorder else np.arange(n)
        place = np.empty(n, np.int64)
        place[order] = np.arange(n)
        wide = np.complex128 if np.issubdtype(b.dtype, np.complexfloating) else np.float64
        x = np.empty(n, wide)
        x[order] = _solve_band(place[rows], place[columns], values.astype(wide), b.astype(wide)[order])
        return x.astype(b.dtype)


def _small_band(rows, columns, n):
    """An order of the unknowns that reduces the bandwidth of the matrix: reverse Cuthill-McKee."""
    a, b = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    by_row = np.lexsort((b, a))
    a, b = a[by_row], b[by_row]
    degree = np.bincount(a, minlength=n)
    start = np.concatenate([[0], np.cumsum(degree)])
    seen, order = np.zeros(n, bool), []
    for first in np.argsort(degree, kind="stable"):
        if seen[first]:
            continue
        seen[first] = True
        queue = [first]
        for at in queue:
            near = np.unique(b[start[at] : start[at + 1]])
            near = near[~seen[near]]
            seen[near] = True
            queue += list(near[np.argsort(degree[near], kind="stable")])
        order += queue
    return np.array(order[::-1], np.int64)


def _solve_band(rows, columns, values, b):
    """The solution of a system with a band matrix, with row exchanges."""
    n = b.shape[0]
    if n == 0:
        return b
    below = int(max(0, (rows - columns).max(initial=0)))
    above = int(max(0, (columns - rows).max(initial=0))) + below
    width = below + above + 1
    # element (i, j) at i * width + j - i + below = i * (width - 1) + j + below: rows of this view begin one place further left each time
    band = np.zeros((n + 1) * width + below + above, values.dtype)
    np.add.at(band, rows * (width - 1) + columns + below, values)
    size = band.itemsize
    b = np.concatenate([b, np.zeros(below, b.dtype)])
    with np.errstate(all="ignore"):
        for k in range(n):
            m, w = min(below, n - 1 - k) + 1, min(above, n - 1 - k) + 1
            block = np.ndarray((m, w), band.dtype, band.data, (k * width + below) * size, ((width - 1) * size, size))
            p = int(np.argmax(np.abs(block[:, 0])))
            if block[p, 0] == 0:
                return np.full(n, np.nan, values.dtype)
            if p:
                block[[0, p]] = block[[p, 0]]
                b[[k, k + p]] = b[[k + p, k]]
            if m > 1:
                factor = block[1:, 0] / block[0, 0]
                block[1:, 1:] -= factor[:, None] * block[0, 1:]
                b[k + 1 : k + m] -= factor * b[k]
        for k in range(n - 1, -1, -1):
            w = min(above, n - 1 - k)
            row = band[k * width + below : k * width + below + w + 1]
            b[k] = (b[k] - row[1:] @ b[k + 1 : k + 1 + w]) / row[0]
    return b[:n]
