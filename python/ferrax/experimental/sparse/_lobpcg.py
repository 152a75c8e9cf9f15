"""The largest eigenvalues of a Hermitian matrix that is known by its products: LOBPCG.

A. Knyazev: Toward the optimal preconditioned eigensolver, SIAM J. Sci. Comput. 23 (2001); with an
orthonormal basis kept throughout, after Duersch, Shao, Yang, Gu:
A robust and efficient implementation of LOBPCG, SIAM J. Sci. Comput. 40 (2018).

Invariant: the columns of the basis (X, R, P) are orthonormal or zero, and zero ones do not
contribute to the result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ... import lax, numpy as jnp
from ..._base.dtypes import is_inexact
from ..._base.tracebacks import api_boundary
from ..._core import Array
from ..._tracing.jit import jit
from ._base import JAXSparse

__all__ = ["lobpcg_standard"]


@api_boundary
def lobpcg_standard(A: Array | Callable[[Array], Array], X: Array, m: int = 100, tol: Array | float | None = None) -> tuple[Array, Array, Array]:
    """The largest k eigenvalues of a Hermitian matrix, and their vectors, by LOBPCG.

    Args:
        A: a Hermitian matrix (n, n), a sparse one, or a function of (n, k) that gives its product.
        X: (n, k), of full rank: the starting vectors. 5 k must be less than n.
        m: the largest number of iterations.
        tol: an eigenpair has converged when the norm of A v - lambda v is less than tol 10 n
          (lambda + |A v|); by default the spacing of the dtype.

    Returns:
        (eigenvalues (k,), largest first; vectors (n, k); the number of iterations).

    Raises:
        ValueError: k is 0 or too large, or A does not fit X, by its shape or the dtype of its
          products.

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
        return _lobpcg_standard_callable(A, X, m, tol)
    A = A if isinstance(A, (JAXSparse, Array)) else jnp.asarray(A)
    if tuple(A.shape) != (n, n):
        raise ValueError(f"A must be ({n}, {n}) matrix A, got shape {tuple(A.shape)}")
    return _of_matrix(A, X, m, jnp.finfo(X.dtype).eps if tol is None else tol)


@jit
def _of_matrix(A, X, m, tol):
    return _lobpcg_standard_callable(functools.partial(_times, A), X, m, tol)


@jit(static_argnames=["m", "debug"])
def _lobpcg_standard_matrix(A, X, m, tol, debug=False):
    """As `_lobpcg_standard_callable`, for a matrix."""
    return _lobpcg_standard_callable(functools.partial(_times, A), X, m, tol, debug)


def _times(A, x):
    return A @ x


def _orthonormal(x, against=None):
    """An orthonormal basis of x's columns, in the complement of orthonormal ones; columns that
    depend on others are zero.
    """
    least = 10 * x.shape[1] * jnp.finfo(x.dtype).eps
    for _ in range(1 if against is None else 2):
        x = x if against is None else _without(x, against)
        size = _norms(x)
        x = jnp.where(size > 0, x / jnp.where(size > 0, size, 1), 0).astype(x.dtype)
        x = _rotated(x, lambda w: w > least * jnp.maximum(w[-1], 0))
    if against is not None:
        # Scaling up rounding errors has brought back components along the others. Vectors that consist mostly of these are dropped, and none is scaled up again.
        x = _rotated(_without(_without(x, against), against), lambda w: w > 0.9)
    return _orthonormal_near(x)


def _without(x, basis):
    return x - basis @ (basis.conj().T @ x)


def _rotated(x, keeps):
    """Orthonormal combinations of x's columns.

    `keeps` selects them by their eigenvalues in ascending order; the others are zero.
    """
    # x^H x = V diag(w) V^H: the columns of x V / sqrt(w) are orthonormal
    w, v = jnp.linalg.eigh(x.conj().T @ x)
    kept = keeps(w)
    return (x @ v) * jnp.where(kept, lax.rsqrt(jnp.where(kept, w, 1)), 0).astype(x.dtype)


def _ritz(S, AS, k):
    """The largest k eigenvalues within the span of S, whose columns are orthonormal or zero, and
    their coefficients.
    """
    H = S.conj().T @ AS
    H = (H + H.conj().T) / 2
    empty = jnp.sum(jnp.abs(S) ** 2, axis=0) < 0.5
    # zero columns have the eigenvalue 0, which must not be taken for one of A's
    low = -2 * jnp.max(jnp.sum(jnp.abs(H), axis=1)) - 1
    H = H + jnp.diag(jnp.where(empty, low, 0)).astype(H.dtype)
    w, v = jnp.linalg.eigh(H)
    # and which have no part in its vectors, rounding's least part aside
    return w[::-1][:k], jnp.where(empty[:, None], 0, v[:, ::-1][:, :k])


def _norms(x):
    return jnp.sqrt(jnp.sum(jnp.abs(x) ** 2, axis=0))


def _lobpcg_standard_callable(A, X, m, tol, debug=False):
    """The search itself.

    With `debug` it takes all m steps, and also returns the measures of each step: a dictionary of
    arrays (m, ..).
    """
    n, k = X.shape
    tol = jnp.finfo(X.dtype).eps if tol is None else tol

    def apply(x):
        y = A(x)
        if y.dtype != x.dtype:
            raise ValueError(f"A, X must have same dtypes (were {y.dtype}, {x.dtype})")
        if tuple(y.shape) != tuple(x.shape):
            raise ValueError(f"A must be ({n}, {n}) matrix A, got output {tuple(y.shape)}")
        return y

    def residual(X, AX, theta):
        """A X - X theta, and its norms in units of what rounding may leave of them."""
        R = AX - X * theta.astype(X.dtype)
        unit = 10 * n * (theta + _norms(AX))
        return R, _norms(R), unit

    X = _orthonormal(X)[:, ::-1]
    AX = apply(X)
    theta = jnp.sum((X.conj() * AX).real, axis=0)
    R, _, _ = residual(X, AX, theta)

    def going(state):
        i, converged = state[0], state[-1]
        return (i < m) & (converged < k)

    def step(state):
        i, X, P, R, _, _ = state
        R = _orthonormal(R, jnp.concatenate([X, P], axis=1))
        S = jnp.concatenate([X, R, P], axis=1)
        theta, c = _ritz(S, apply(S), k)
        # the new direction: the change of X, made orthonormal to the new X
        moved = _orthonormal(c.at[:k].set(0), c)
        X, P = _orthonormal_near(S @ c), S @ moved
        R, norms, unit = residual(X, apply(X), theta)
        converged = jnp.sum(norms < tol * unit)
        state = i + 1, X, P, R, theta, converged
        return (state, _diagnostics(S, X, P, theta, converged, norms, unit)) if debug else state

    # No vector has converged before the first step, which puts the eigenvalues in their order.
    zero = jnp.zeros((), jnp.int32)
    state = (zero, X, jnp.zeros_like(X), R, theta, jnp.zeros_like(jnp.sum(theta < 0)))
    if debug:
        (i, X, _, _, theta, _), steps = lax.scan(lambda state, _: step(state), state, length=m)
        return theta, X, i, steps
    i, X, _, _, theta, _ = lax.while_loop(going, step, state)
    return theta, X, i


def _diagnostics(S, X, P, theta, converged, norms, unit):
    """The measures of a step, by the names that plots of `lobpcg_standard` use: ranks,
    orthonormality of the bases, eigenvalues and residuals.
    """
    n_zero = lambda x: jnp.sum(jnp.all(x == 0, axis=0))
    mean_off = lambda x: jnp.sum(jnp.abs(x)) / X.shape[1] ** 2

    def off_diagonal(x):
        gram = x.conj().T @ x
        return mean_off(gram - jnp.diag(jnp.diag(gram)))

    adjusted = norms / jnp.where(unit == 0, 1, unit)
    return {
        "basis rank": S.shape[1] - n_zero(S),
        "X zeros": n_zero(X),
        "P zeros": n_zero(P),
        "lambda history": theta,
        "residual history": norms,
        "converged": converged,
        "adjusted residual max": jnp.max(adjusted),
        "adjusted residual p50": jnp.median(adjusted),
        "adjusted residual min": jnp.min(adjusted),
        "X orth": off_diagonal(X),
        "P orth": off_diagonal(P),
        "P.X": mean_off(X.conj().T @ P),
    }


def _orthonormal_near(x):
    """The orthonormal columns nearest to almost orthonormal ones: one step of Newton's iteration
    for the polar factor.
    """
    one = jnp.eye(x.shape[1], dtype=x.dtype)
    return x @ (1.5 * one - 0.5 * (x.conj().T @ x)).astype(x.dtype)
