"""The quasi-Newton methods: BFGS, with the inverse of the Hessian as a matrix, and L-BFGS, with the
last few steps instead.

Invariant: an approximation stays positive definite: a step along which the gradient does not grow
does not change it. J. Nocedal and S. Wright, Numerical Optimization, 2nd ed., algorithms 6.1 and
7.5, and the first scaling (6.20).
"""

from __future__ import annotations

import typing

import numpy as np

from ... import lax, numpy as jnp
from ..._transforms.grad import value_and_grad
from ._line_search import search

CONVERGED, ITERATIONS, EVALUATIONS, GRADIENTS, NO_DECREASE, LITTLE_GAIN = 0, 1, 2, 3, 5, 4
_RUNNING = -1


class State(typing.NamedTuple):
    """The state of the search: iterations, evaluations, the point, the method's memory, and the
    reason for its end (-1: it has not ended).
    """

    nit: typing.Any
    nfev: typing.Any
    x: typing.Any
    f: typing.Any
    g: typing.Any
    memory: typing.Any
    status: typing.Any


def _run(fun, x0, memory, direction, remember, size, norm, gtol, ftol, maxiter, maxfun, maxgrad, maxls):
    """Steps until the gradient is small; `direction(memory, g)` gives the way,
    `remember(memory, s, y, nit)` takes a step and the gradient's change.

    size: the norm of a gradient.
    """
    fg = value_and_grad(fun)
    f, g = fg(x0)
    small = lambda g: jnp.linalg.norm(size(g).reshape(-1), ord=norm) <= gtol
    status = jnp.where(small(g), CONVERGED, jnp.where(maxiter <= 0, ITERATIONS, _RUNNING))

    def step(s):
        p = -direction(s.memory, s.g)
        # rounding may leave no direction of descent: then the gradient's
        descends = jnp.dot(p, s.g) < 0
        p = jnp.where(descends, p, -s.g)
        length = jnp.linalg.norm(s.g)
        first = jnp.where((s.nit == 0) | ~descends, jnp.minimum(1, 1 / jnp.where(length > 0, length, 1)), 1)
        point, count, lower = search(fg, s.x, p, s.f, s.g, first, maxls)
        x = s.x + point.a * p
        memory = remember(s.memory, x - s.x, point.g - s.g, s.nit)
        nit, nfev = s.nit + 1, s.nfev + count
        gain = (s.f - point.f) <= ftol * jnp.maximum(jnp.maximum(abs(s.f), abs(point.f)), 1)
        status = jnp.where(nfev >= maxgrad, GRADIENTS, _RUNNING)
        status = jnp.where(nfev >= maxfun, EVALUATIONS, status)
        status = jnp.where(nit >= maxiter, ITERATIONS, status)
        status = jnp.where(gain & (ftol > 0), LITTLE_GAIN, status)
        status = jnp.where(lower, status, NO_DECREASE)
        status = jnp.where(small(point.g), CONVERGED, status)
        return State(nit, nfev, x, point.f, point.g, memory, status)

    zero = jnp.zeros((), int)
    return lax.while_loop(lambda s: s.status == _RUNNING, step, State(zero, zero + 1, x0, f, g, memory, status.astype(int)))


def bfgs(fun, x0, maxiter=None, norm=np.inf, gtol=1e-5, line_search_maxiter=40, *, size):
    """The state at the end, its memory the inverse Hessian. maxiter: by default 200 for each
    variable.
    """
    n = x0.shape[0]
    eye = jnp.eye(n, dtype=x0.dtype)

    def remember(h, s, y, nit):
        sy = jnp.dot(s, y)
        grows = sy > 0
        rho = 1 / jnp.where(grows, sy, 1)
        h0 = jnp.where(nit == 0, eye * (sy / jnp.where(grows, jnp.dot(y, y), 1)), h)
        left = eye - rho * jnp.outer(s, y)
        new = jnp.matmul(jnp.matmul(left, h0, precision="highest"), left.T, precision="highest") + rho * jnp.outer(s, s)
        return jnp.where(grows, new, h)

    maxiter = 200 * n if maxiter is None else maxiter
    direction = lambda h, g: jnp.matmul(h, g, precision="highest")
    return _run(fun, x0, eye, direction, remember, size, norm, gtol, 0.0, maxiter, np.inf, np.inf, line_search_maxiter)


class Steps(typing.NamedTuple):
    """The last steps and the gradient's changes along them, the newest last; rho is 0 for entries
    that do not exist yet.
    """

    s: typing.Any
    y: typing.Any
    rho: typing.Any
    gamma: typing.Any


def _two_loops(m, g):
    """The inverse Hessian of the remembered steps times g: algorithm 7.4."""

    def back(q, step):
        s, y, rho = step
        alpha = rho * jnp.dot(s, q)
        return q - alpha * y, alpha

    def forth(r, step):
        s, y, rho, alpha = step
        return r + s * (alpha - rho * jnp.dot(y, r)), None

    q, alpha = lax.scan(back, g, (m.s, m.y, m.rho), reverse=True)
    r, _ = lax.scan(forth, m.gamma * q, (m.s, m.y, m.rho, alpha))
    return r


def lbfgs(fun, x0, maxiter=None, norm=np.inf, maxcor=10, ftol=2.220446049250313e-09, gtol=1e-05, maxfun=None, maxgrad=None, maxls=40, *, size):
    """The state at the end. maxcor: how many steps are remembered. ftol: a relative gain below
    which it ends.
    """
    n = x0.shape[0]
    steps = jnp.zeros((maxcor, n), x0.dtype)
    memory = Steps(steps, steps, jnp.zeros(maxcor, x0.dtype), jnp.ones((), x0.dtype))

    def remember(m, s, y, _):
        sy = jnp.dot(s, y)
        grows = sy > 0
        rho = 1 / jnp.where(grows, sy, 1)
        push = lambda old, new: jnp.where(grows, jnp.concatenate([old[1:], new[None]]), old)
        gamma = jnp.where(grows, sy / jnp.where(grows, jnp.dot(y, y), 1), m.gamma)
        return Steps(push(m.s, s), push(m.y, y), push(m.rho, rho), gamma)

    most = lambda v, default: default if v is None else v
    return _run(
        fun, x0, memory, _two_loops, remember, size, norm, gtol, ftol, most(maxiter, 200 * n), most(maxfun, np.inf), most(maxgrad, np.inf), maxls
    )  # fmt: skip
