"""`minimize`: the front of the methods.

>>> r = minimize(lambda x: (x**4).sum() - x.sum(), jnp.ones(1), method="BFGS")
>>> bool(r.success), r.x.round(2)
(True, Array([0.63], dtype=float32))
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ... import _core, lax, numpy as jnp
from ..._base.dtypes import is_complex
from ..._base.tracebacks import api_boundary
from ._bfgs import CONVERGED, LITTLE_GAIN, bfgs, lbfgs

if TYPE_CHECKING:
    from ..._core import Array


class OptimizeResults(typing.NamedTuple):
    """The result of a search.

    x: the point. success: whether it is a minimum. status: 0 converged; 1 out of iterations; 2, 3
    out of evaluations of the function, of the gradient; 4 gains below ftol; 5 no step that is
    lower. fun, jac: the function and its gradient there, as `grad` has it (of complex numbers the
    conjugate of the steepest ascent). hess_inv: the inverse Hessian, as far as the method knows it;
    of complex numbers that of the real parts and then the imaginary ones. nfev, njev, nit:
    evaluations of the function and the gradient, and iterations.
    """

    x: _core.Array
    success: _core.Array
    status: _core.Array
    fun: _core.Array
    jac: _core.Array
    hess_inv: _core.Array | None
    nfev: _core.Array
    njev: _core.Array
    nit: _core.Array


@api_boundary
def minimize(
    fun: Callable[..., Any], x0: Array, args: tuple[Any, ...] = (), *, method: str, tol: float | None = None, options: Mapping[str, Any] | None = None
) -> OptimizeResults:
    """A minimum of `fun(x, *args)`, by a quasi-Newton method with the gradient that `grad` gives;
    works under `jit` and `vmap`.

    Args:
        fun: a function of an array like x0 and args, differentiable, whose result is a number.
        x0: the starting point, an array of floats or complex numbers.
        args: a tuple of further arguments.
        method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this" for many variables.
        tol: for `gtol`.
        options: for BFGS `maxiter`, `norm` (of the gradient), `gtol`, `line_search_maxiter`; for
            the other `maxiter`, `norm`, `maxcor` (steps to remember), `ftol`, `gtol`, `maxfun`,
            `maxgrad`, `maxls`.

    Returns:
        OptimizeResults.

    Raises:
        TypeError: args is not a tuple, an option is unknown, or `grad` refuses the function.
        ValueError: the method is unknown.

    >>> import ferrax.scipy.optimize
    >>> rosen = lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> ferrax.scipy.optimize.minimize(rosen, jnp.zeros(2), method="BFGS").x.round(2)
    Array([1., 1.], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    options = dict(options or {})
    methods = {"bfgs": bfgs, "l-bfgs-experimental-do-not-rely-on-this": lbfgs}
    if str(method).lower() not in methods:
        raise ValueError(f"Method {method} not recognized")
    if tol is not None:
        options.setdefault("gtol", tol)
    run = methods[method.lower()]
    x0 = jnp.asarray(x0)
    to_real, from_real = _coordinates(x0)
    s = run(lambda v: fun(from_real(v), *args), to_real(x0), size=from_real, **options)
    success = (s.status == CONVERGED) | (s.status == LITTLE_GAIN)
    gradient = from_real(s.g)
    return OptimizeResults(
        x=from_real(s.x),
        success=success & jnp.isfinite(s.f),
        status=s.status,
        fun=s.f,
        jac=gradient.conj() if is_complex(x0.dtype) else gradient,
        hess_inv=s.memory if run is bfgs else None,
        nfev=s.nfev,
        njev=s.nfev,
        nit=s.nit,
    )


def _coordinates(x0):
    """(an array like x0 as a vector of real numbers, and back): of complex ones first the real
    parts, then the imaginary ones.
    """
    if not is_complex(x0.dtype):
        return lambda x: x.reshape(-1), lambda v: v.reshape(x0.shape)
    n = x0.size
    to_real = lambda x: jnp.concatenate([x.real.reshape(-1), x.imag.reshape(-1)])
    return to_real, lambda v: lax.complex(v[:n], v[n:]).reshape(x0.shape)
