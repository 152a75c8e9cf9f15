"""Iterative solvers of linear systems: cg, bicgstab, gmres.

A is a matrix or a linear function of a pytree like b. Solutions are differentiated as those of the
system, not through the iterations.

Invariant: all stop when the residual's norm is at most max(tol * norm(b), atol), or after `maxiter`
rounds.

    >>> x, _ = cg(jnp.array([[2.0, 0.0], [0.0, 2.0]]), jnp.array([2.0, 4.0]))
    >>> x
    Array([1., 2.], dtype=float32)
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._base.tracebacks import api_boundary
from ..._core import Array
from ...tree_util import tree_leaves, tree_map, tree_reduce, tree_structure

__all__ = ["bicgstab", "cg", "gmres"]


def _dot(x, y):
    """The real part of the inner product, x conjugated."""
    one = lambda a, b: jnp.vdot(a.real, b.real) + jnp.vdot(a.imag, b.imag) if jnp.iscomplexobj(a) or jnp.iscomplexobj(b) else jnp.vdot(a, b)
    return sum(tree_leaves(tree_map(one, x, y)))


def _inner(x, y):
    return sum(tree_leaves(tree_map(jnp.vdot, x, y)))


def _plus(x, a, y):
    """x + a y, in the dtypes of x."""
    return tree_map(lambda x, y: (x + a * y).astype(x.dtype), x, y)


def _operator(f):
    if callable(f):
        return f
    if isinstance(f, (np.ndarray, Array)):
        if f.ndim != 2 or f.shape[0] != f.shape[1]:
            raise ValueError(f"linear operator must be a square matrix, but has shape: {tuple(f.shape)}")
        return functools.partial(jnp.matmul, f)
    raise TypeError(f"linear operator must be either a function or ndarray: {f}")


def _info(square, bound, rounds):
    """The exit status: 0 if the square of the residual is within the bound, else the number of
    iterations, or a negative number after a breakdown.
    """
    rounds = jnp.where(square == square, jnp.where(rounds < 0, rounds, jnp.maximum(rounds, 1)), -1)
    return jnp.where(square <= bound, 0, rounds).astype(np.int32)


def _cg(A, b, x0, tol, atol, maxiter, M):
    bound = jnp.maximum(jnp.square(tol) * _dot(b, b), jnp.square(atol))
    r = _plus(b, -1, A(x0))
    p = z = M(r)
    state = (x0, r, _dot(r, z), p, 0)

    def going(s):
        _, r, _, _, k = s
        return (_dot(r, r) > bound) & (k < maxiter)

    def step(s):
        x, r, gamma, p, k = s
        Ap = A(p)
        alpha = gamma / _dot(p, Ap)
        x, r = _plus(x, alpha, p), _plus(r, -alpha, Ap)
        z = M(r)
        after = _dot(r, z)
        return x, r, after, _plus(z, after / gamma, p), k + 1

    x, r, _, _, k = lax.while_loop(going, step, state)
    return x, _info(_dot(r, r), bound, k)


def _bicgstab(A, b, x0, tol, atol, maxiter, M):
    bound = jnp.maximum(jnp.square(tol) * _dot(b, b), jnp.square(atol))
    r = _plus(b, -1, A(x0))
    one = jnp.ones((), jnp.result_type(*tree_leaves(b)))
    zero = tree_map(jnp.zeros_like, r)
    # rounds below zero: it broke down
    state = (x0, r, r, one, one, one, zero, zero, 0)

    def going(s):
        return (_dot(s[1], s[1]) > bound) & (s[-1] < maxiter) & (s[-1] >= 0)

    def step(s):
        x, r, shadow, alpha, omega, rho, p, q, k = s
        new = _inner(shadow, r)
        beta = new / rho * alpha / omega
        p = _plus(r, beta, _plus(p, -omega, q))
        y = M(p)
        q = A(y)
        alpha = new / _inner(shadow, q)
        s = _plus(r, -alpha, q)
        done = _dot(s, s) < bound
        z = M(s)
        t = A(z)
        omega = _inner(t, s) / _inner(t, t)
        half = _plus(x, alpha, y)
        x = tree_map(functools.partial(jnp.where, done), half, _plus(half, omega, z))
        r = tree_map(functools.partial(jnp.where, done), s, _plus(s, -omega, t))
        k = jnp.where((omega == 0) | (alpha == 0), -11, k + 1)
        return x, r, shadow, alpha, omega, new, p, q, jnp.where(new == 0, -10, k)

    x, r, *_, k = lax.while_loop(going, step, state)
    return x, _info(_dot(r, r), bound, k)


def _gmres(A, b, x0, tol, atol, maxiter, M, restart):
    """On one vector: rounds of `restart` steps of Arnoldi's, each followed by a small least-squares
    problem.
    """
    dtype, size = jnp.result_type(*tree_leaves(b)), sum(x.size for x in tree_leaves(b))
    restart = min(restart, size)
    structure = tree_leaves(b)
    cuts = np.cumsum([x.size for x in structure])[:-1].tolist()

    def flat(t):
        return jnp.concatenate([x.ravel().astype(dtype) for x in tree_leaves(t)])

    def tree(v):
        parts = iter(jnp.split(v, cuts))
        return tree_map(lambda x: next(parts).reshape(x.shape).astype(x.dtype), b)

    apply = lambda v: flat(M(A(tree(v))))
    norm = lambda v: jnp.sqrt(jnp.vdot(v, v).real)
    right = flat(M(b))
    bound = jnp.maximum(tol * norm(flat(b)), atol) * jnp.where(norm(flat(b)) > 0, norm(right) / jnp.maximum(norm(flat(b)), 1e-30), 1)

    def arnoldi(k, state):
        basis, h = state
        v = apply(basis[:, k])
        column = jnp.zeros(restart + 1, dtype)
        for _ in range(2):
            along = basis.conj().T @ v
            v = v - basis @ along
            column = column + along
        length = norm(v)
        kept = length > jnp.finfo(dtype).eps * norm(column)
        v = jnp.where(kept, v / jnp.where(kept, length, 1).astype(dtype), 0)
        column = column.at[k + 1].set(jnp.where(kept, length, 0).astype(dtype))
        return basis.at[:, k + 1].set(v), h.at[:, k].set(column)

    def round_(s):
        x, r, k, _ = s
        length = norm(r)
        basis = jnp.zeros((size, restart + 1), dtype).at[:, 0].set(r / jnp.where(length > 0, length, 1).astype(dtype))
        basis, h = lax.fori_loop(0, restart, arnoldi, (basis, jnp.zeros((restart + 1, restart), dtype)))
        y = jnp.linalg.lstsq(h, jnp.zeros(restart + 1, dtype).at[0].set(length.astype(dtype)))[0]
        x = x + basis[:, :-1] @ y
        r = right - apply(x)
        return x, r, k + 1, norm(r) < length

    # A round that gains nothing would be taken again, with the same result.
    going = lambda s: (norm(s[1]) > bound) & (s[2] < maxiter) & s[3]
    x = flat(x0)
    x, r, k, _ = lax.while_loop(going, round_, (x, right - apply(x), 0, True))
    return tree(x), _info(norm(r), bound, k)


def _solve(solver, A, b, x0, tol, atol, maxiter, M, symmetric):
    b = tree_map(jnp.asarray, b)
    x0 = tree_map(jnp.zeros_like, b) if x0 is None else tree_map(jnp.asarray, x0)
    if tree_structure(x0) != tree_structure(b):
        raise ValueError(f"x0 and b must have matching tree structure: {tree_structure(x0)} vs {tree_structure(b)}")
    shapes = [[tuple(x.shape) for x in tree_leaves(t)] for t in (x0, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"arrays in x0 and b must have matching shapes: {shapes[0]} vs {shapes[1]}")
    A = _operator(A)
    M = (lambda x: x) if M is None else _operator(M)
    if maxiter is None:
        maxiter = 10 * sum(x.size for x in tree_leaves(b))
    x0, tol, atol = (tree_map(lax.stop_gradient, x) for x in (x0, tol, atol))
    run = lambda matvec, b: solver(matvec, b, x0, tol, atol, maxiter, M)
    back = lambda vecmat, b: solver(vecmat, b, tree_map(jnp.zeros_like, x0), tol, atol, maxiter, M)
    return lax.custom_linear_solve(A, b, run, back, symmetric=symmetric, has_aux=True)


@api_boundary
def cg(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-05, atol: float = 0.0, maxiter: int | None = None, M: Any = None) -> tuple[Any, Array]:
    """Conjugate gradients, for Hermitian positive definite A.

    Args:
        A: a square matrix, or a linear function of a pytree like b.
        b: a pytree of arrays.
        x0: the starting vector; by default zeros.
        tol, atol: when to stop: at a residual of norm max(tol * norm(b), atol).
        maxiter: rounds at most; by default ten for each element.
        M: an approximate inverse of A, likewise Hermitian.

    Returns:
        (x, info): info is 0 if the residual is within the tolerance; else the number of iterations,
        as in scipy, or a negative number if
          the method broke down. An int32 array, which has no derivative.

    Raises:
        ValueError: shapes do not fit.
        TypeError: A is neither, or gives something unlike b.

    Hestenes and Stiefel, J. Research NBS 49 (1952).

    >>> cg(jnp.array([[2.0]]), jnp.array([4.0]))[0]
    Array([2.], dtype=float32)
    """
    return _solve(_cg, A, b, x0, tol, atol, maxiter, M, True)


@api_boundary
def bicgstab(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-05, atol: float = 0.0, maxiter: int | None = None, M: Any = None) -> tuple[Any, Array]:
    """Stabilized biconjugate gradients, for any A (Van der Vorst, SIAM J. Sci. Stat. Comput. 13,
    1992).

    Args:
        A, b, x0, tol, atol, maxiter, M: as for `cg`.

    Returns:
        (x, info), as from `cg`.

    >>> bicgstab(jnp.array([[2.0]]), jnp.array([4.0]))[0]
    Array([2.], dtype=float32)
    """
    return _solve(_bicgstab, A, b, x0, tol, atol, maxiter, M, False)


@api_boundary
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Array]:
    """Generalized minimal residuals with restarts, for any A.

    Args:
        A, b, x0, tol, atol, M: as `cg` has them.
        restart: steps a round.
        maxiter: rounds at most; by default ten for each element.
        solve_method: "batched" or "incremental"; one way serves both.

    Returns:
        (x, info): info as for `cg`: not 0 if iterations make no progress, or were not sufficient;
        -1 if x is nan.

    Raises:
        ValueError: shapes do not fit, or the method is not known.
        TypeError: A is neither, or gives something unlike b.

    Saad and Schultz, SIAM J. Sci. Stat. Comput. 7 (1986).

    >>> gmres(jnp.array([[2.0]]), jnp.array([4.0]))[0].shape
    (1,)
    """
    if solve_method not in ("incremental", "batched"):
        raise ValueError(f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'")
    solver = functools.partial(_gmres, restart=int(restart))
    x, info = _solve(solver, A, b, x0, tol, atol, maxiter, M, False)
    failed = tree_reduce(lambda p, v: p | jnp.isnan(v).any(), x, jnp.asarray(False))
    return x, jnp.where(failed, -1, info)
