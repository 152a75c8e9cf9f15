"""The largest eigenvalues of a Hermitian matrix that is known by its products: LOBPCG.

A. Knyazev: Toward the optimal preconditioned eigensolver, SIAM J. Sci. Comput. 23 (2001); with an orthonormal basis kept throughout, after Duersch, Shao, Yang, Gu:
A robust and efficient implementation of LOBPCG, SIAM J. Sci. Comput. 40 (2018).

Invariant: the columns of the basis (X, R, P) are orthonormal or zero, and zero ones are kept out of what is found.
"""

import functools

from ... import lax, numpy as jnp
from ..._api import jit
from ..._core import Array
from ..._dtypes import is_inexact
from ._base import JAXSparse

__all__ = ["lobpcg_standard"]


def lobpcg_standard(A, X, m=100, tol=None):
    """The largest k eigenvalues of a Hermitian matrix, and their vectors, by LOBPCG.

    Args:
      A: a Hermitian matrix (n, n), a sparse one, or a function of (n, k) that gives its product.
      X: (n, k), of full rank: where the search begins. 5 k must be less than n.
      m: the largest number of iterations.
      tol: an eigenpair has converged when the norm of A v - lambda v is less than tol 10 n (lambda + |A v|); by default the spacing of the dtype.

    Returns:
      (eigenvalues (k,), largest first; vectors (n, k); the number of iterations).

    Raises:
      ValueError: k is 0 or too large, or A does not fit X.

        >>> lobpcg_standard(jnp.diag(jnp.arange(20.0)), jnp.ones((20, 1)))[0].round(3)
        Array([19.], dtype=float32)
    """
    X = jnp.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix (n, k), got shape {tuple(X.shape)}")
    X = X if is_inexact(X.dtype) else X.astype(jnp.float32)
    n, k = X.shape
    if k == 0:
        raise ValueError(f"must have search dim > 0, got {k}")
    if k * 5 >= n:
        raise ValueError(f"expected search dim * 5 < matrix dim (got {k * 5}, {n})")
    if callable(A) and not isinstance(A, JAXSparse):
        return _iterate(A, X, m, tol)
    A = A if isinstance(A, (JAXSparse, Array)) else jnp.asarray(A)
    if tuple(A.shape) != (n, n):
        raise ValueError(f"A must be ({n}, {n}) matrix A, got shape {tuple(A.shape)}")
    return _of_matrix(A, X, m, jnp.finfo(X.dtype).eps if tol is None else tol)


@jit
def _of_matrix(A, X, m, tol):
    return _iterate(functools.partial(_times, A), X, m, tol)


def _times(A, x):
    return A @ x


def _orthonormal(x, against=None):
    """An orthonormal basis of x's columns, in the complement of orthonormal ones; columns that depend on others are zero."""
    for _ in range(1 if against is None else 2):
        if against is not None:
            x = x - against @ (against.conj().T @ x)
        size = jnp.sqrt(jnp.sum(jnp.abs(x) ** 2, axis=0))
        eps = jnp.finfo(x.dtype).eps
        x = jnp.where(size > 0, x / jnp.where(size > 0, size, 1), 0).astype(x.dtype)
        # x^H x = V diag(w) V^H: the columns of x V / sqrt(w) are orthonormal
        w, v = jnp.linalg.eigh(x.conj().T @ x)
        kept = w > 10 * eps * jnp.maximum(w[-1], 0) * x.shape[1]
        x = (x @ v) * jnp.where(kept, lax.rsqrt(jnp.where(kept, w, 1)), 0).astype(x.dtype)
    return _orthonormal_near(x)


def _ritz(S, AS, k):
    """The largest k eigenvalues within the span of S, whose columns are orthonormal or zero, and their coefficients."""
    H = S.conj().T @ AS
    H = (H + H.conj().T) / 2
    empty = jnp.sum(jnp.abs(S) ** 2, axis=0) < 0.5
    # zero columns have the eigenvalue 0, which must not be taken for one of A's
    low = -2 * jnp.max(jnp.sum(jnp.abs(H), axis=1)) - 1
    H = H + jnp.diag(jnp.where(empty, low, 0)).astype(H.dtype)
    w, v = jnp.linalg.eigh(H)
    return w[::-1][:k], v[:, ::-1][:, :k]


def _iterate(A, X, m, tol):
    n, k = X.shape
    tol = jnp.finfo(X.dtype).eps if tol is None else tol

    def apply(x):
        y = A(x)
        if tuple(y.shape) != tuple(x.shape):
            raise ValueError(f"A must be ({n}, {n}) matrix A, got output {tuple(y.shape)}")
        return y.astype(X.dtype)

    def residual(X, AX, theta):
        R = AX - X * theta.astype(X.dtype)
        norm = lambda x: jnp.sqrt(jnp.sum(jnp.abs(x) ** 2, axis=0))
        converged = norm(R) < tol * 10 * n * (theta + norm(AX))
        return R, jnp.sum(converged)

    X = _orthonormal(X)[:, ::-1]
    AX = apply(X)
    theta = jnp.sum((X.conj() * AX).real, axis=0)
    R, converged = residual(X, AX, theta)

    def going(state):
        i, converged = state[0], state[-1]
        return (i < m) & (converged < k)

    def step(state):
        i, X, P, R, _, _ = state
        R = _orthonormal(R, jnp.concatenate([X, P], axis=1))
        S = jnp.concatenate([X, R, P], axis=1)
        theta, c = _ritz(S, apply(S), k)
        # the new direction: what X has moved by, orthonormal to where it is now
        moved = _orthonormal(c.at[:k].set(0), c)
        X, P = _orthonormal_near(S @ c), S @ moved
        AX = apply(X)
        R, converged = residual(X, AX, theta)
        return i + 1, X, P, R, theta, converged

    state = (jnp.zeros((), jnp.int32), X, jnp.zeros_like(X), R, theta, converged)
    i, X, _, _, theta, _ = lax.while_loop(going, step, state)
    return theta, X, i


def _orthonormal_near(x):
    """The orthonormal columns nearest to almost orthonormal ones: one step of Newton's iteration for the polar factor."""
    one = jnp.eye(x.shape[1], dtype=x.dtype)
    return x @ (1.5 * one - 0.5 * (x.conj().T @ x)).astype(x.dtype)
