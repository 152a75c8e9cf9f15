"""Logistic functions, entropies, and powers on a logarithmic scale.

Invariant: 0 log 0 is 0, and its derivatives are those of the limit from inside.

    >>> xlogy(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._tracing.jit import jit
from ...custom_derivatives import SymbolicZero, custom_jvp
from .._halves import in_single
from ._arguments import _floats, _of_floats, _reals

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

# ---------------------------------------------------------------- logistic, entropies, powers


def expit(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)).

    Args:
        x: array or number, real or complex.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is not an array or number.

    >>> expit(jnp.array([0.0, 2.0]))
    Array([0.5      , 0.8807971], dtype=float32)
    """
    return _of_floats("expit", "logistic", x)


def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x)), the inverse of `expit`.

    Args:
        x: array or number, real or complex.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is not an array or number.

    >>> logit(jnp.array([0.5, 0.9]))
    Array([0.       , 2.1972244], dtype=float32)
    """
    x = _floats("logit", x)
    return jnp.log(x) - jnp.log1p(-x)


@custom_jvp
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x * log(y), 0 where x is 0 and y is not NaN.

    Args:
        x, y: arrays or numbers that broadcast, real or complex.

    Returns:
        Array of the broadcast shape, float or complex.

    >>> xlogy(jnp.array([0.0, 2.0]), jnp.array([0.0, 1.5]))
    Array([0.       , 0.8109302], dtype=float32)
    """
    x, y = _floats("xlogy", x, y)
    nothing = (x == 0) & (y == y)
    return jnp.where(nothing, 0, x * jnp.log(jnp.where(nothing, 1, y)))


def _sum_of_tangents(terms, like):
    """The sum of slope() * tangent over the tangents that are not structurally zero; so an infinite
    slope does not matter for the others.
    """
    parts = [slope() * t for slope, t in terms if not isinstance(t, SymbolicZero)]
    return functools.reduce(jnp.add, parts) if parts else jnp.zeros_like(like)


@functools.partial(xlogy.defjvp, symbolic_zeros=True)
def _xlogy_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    out = xlogy(x, y)
    return out, _sum_of_tangents([(lambda: jnp.log(y), dx), (lambda: _ratio(x, y), dy)], out)


@custom_jvp
def _ratio(x, y):
    """x / y, and 0 at 0 / 0, which no mask of other points hides from further derivatives."""
    nothing = (x == 0) & (y == 0)
    return jnp.where(nothing, 0, x / jnp.where(nothing, 1, y))


@_ratio.defjvp
def _ratio_jvp(primals, tangents):
    """(dx - r dy) / y: of equal x and y the terms of the entropy cancel exactly, and no square of y
    leaves the dtype's range.
    """
    (x, y), (dx, dy) = primals, tangents
    r = _ratio(x, y)
    nothing = (x == 0) & (y == 0)
    return r, jnp.where(nothing, 0, (dx - r * dy) / jnp.where(nothing, 1, y))


@custom_jvp
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x * log1p(y), 0 where x is 0 and y is not NaN.

    Args:
        x, y: arrays or numbers that broadcast, real or complex.

    Returns:
        Array of the broadcast shape, float or complex.

    >>> xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 0.5]))
    Array([0.       , 0.8109302], dtype=float32)
    """
    x, y = _floats("xlog1py", x, y)
    nothing = (x == 0) & (y == y)
    return jnp.where(nothing, 0, x * jnp.log1p(jnp.where(nothing, 0, y)))


@functools.partial(xlog1py.defjvp, symbolic_zeros=True)
def _xlog1py_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    out = xlog1py(x, y)
    return out, _sum_of_tangents([(lambda: jnp.log1p(y), dx), (lambda: _ratio(x, 1 + y), dy)], out)


def entr(x: ArrayLike) -> Array:
    """-x * log(x), 0 at 0, -inf below.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is not an array or number.
        ValueError: x is complex.

    >>> entr(jnp.array([0.5, 1.0, -1.0]))
    Array([ 0.3465736, -0.       ,       -inf], dtype=float32)
    """
    return _entr(_reals("entr", x))


@custom_jvp
def _entr(x):
    return jnp.where(x < 0, -jnp.inf, -xlogy(x, jnp.where(x < 0, 1, x)))


@_entr.defjvp
def _entr_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    outside = x < 0
    return _entr(x), jnp.where(outside, 0, -(jnp.log(jnp.where(outside, 1, x)) + 1)) * dx


@custom_jvp
def _log_ratio(p, q):
    """log(p / q) of positive numbers: near 1 by their difference, and where the quotient leaves the
    dtype's range by two logarithms.
    """
    r, t = p / q, (p - q) / q
    near = abs(t) < 0.5
    least = float(jnp.finfo(r.dtype).tiny)
    fits = (r >= least) & (r < jnp.inf)
    log = jnp.where(fits, jnp.log(jnp.where(fits, r, 1)), jnp.log(p) - jnp.log(q))
    return jnp.where(near, jnp.log1p(jnp.where(near, t, 0)), log)


@_log_ratio.defjvp
def _log_ratio_jvp(primals, tangents):
    (p, q), (dp, dq) = primals, tangents
    return _log_ratio(p, q), dp / p - dq / q


@custom_jvp
def _relative(p, q):
    """p log(p / q) of positive numbers."""
    return p * _log_ratio(p, q)


@functools.partial(_relative.defjvp, symbolic_zeros=True)
def _relative_jvp(primals, tangents):
    (p, q), (dp, dq) = primals, tangents
    out = _relative(p, q)
    return out, _sum_of_tangents([(lambda: _log_ratio(p, q) + 1, dp), (lambda: -_ratio(p, q), dq)], out)


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p * log(p / q); 0 where p = 0 <= q, inf outside the domain.

    Args:
        p, q: arrays or numbers that broadcast, real.

    Returns:
        Float array of the broadcast shape.

    Raises:
        ValueError: an argument is complex.

    >>> rel_entr(jnp.array([0.5, 0.0]), jnp.array([0.25, 1.0]))
    Array([0.3465736, 0.       ], dtype=float32)
    """
    p, q = _reals("rel_entr", p, q)
    both, zero = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    safe_p, safe_q = jnp.where(both, p, 1), jnp.where(both, q, 1)
    # A number beside a number, as in JAX: only then is the result weakly typed.
    nothing = p.dtype.type(0) if p.ndim else 0.0
    outside = jnp.where(jnp.isnan(p) | jnp.isnan(q), jnp.nan, jnp.inf)
    return jnp.where(both, _relative(safe_p, safe_q), jnp.where(zero, nothing, outside))


def _log_less(t, ratio):
    """log(ratio) - t for ratio = 1 + t, without cancellation about 0 and near -1; -inf at ratio
    0.
    """
    close, near = abs(t) < 0.3, abs(t) < 0.5
    log = jnp.where(near, jnp.log1p(jnp.where(near, t, 0)), jnp.log(jnp.where(near, 1, ratio)))
    # log(1 + t) = 2 (s + s^3 / 3 + ..), whose first term is t - s t
    s = jnp.where(close, t, 0) / (jnp.where(close, t, 0) + 2)
    square = s * s
    series = jnp.zeros_like(t)
    for k in reversed(range(12)):
        series = series * square + 1 / (2 * k + 3)
    return jnp.where(close, 2 * s * square * series - t * s, log - t)


@custom_jvp
def _excess(p, q):
    """(q - p) / q."""
    return (q - p) / q


@_excess.defjvp
def _excess_jvp(primals, tangents):
    (p, q), (dp, dq) = primals, tangents
    return _excess(p, q), (_ratio(p, q) * dq - dp) / q


@custom_jvp
def _divergence(p, q):
    """p log(p / q) - p + q of positive numbers.

    Of numbers that are near each other all three terms cancel.
    """
    near = abs(q - p) < 0.5 * p
    a, b = jnp.where(near, p, 1), jnp.where(near, q, 1)
    return jnp.where(near, -a * _log_less((b - a) / a, b / a), _relative(p, q) - p + q)


@functools.partial(_divergence.defjvp, symbolic_zeros=True)
def _divergence_jvp(primals, tangents):
    (p, q), (dp, dq) = primals, tangents
    out = _divergence(p, q)
    return out, _sum_of_tangents([(lambda: _log_ratio(p, q), dp), (lambda: _excess(p, q), dq)], out)


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """rel_entr(p, q) - p + q.

    Args:
        p, q: arrays or numbers that broadcast, real.

    Returns:
        Float array of the broadcast shape.

    Raises:
        ValueError: an argument is complex.

    >>> kl_div(jnp.array([0.5, 0.0]), jnp.array([0.25, 1.0]))
    Array([0.09657359, 1.        ], dtype=float32)
    """
    p, q = _reals("kl_div", p, q)
    both = (p > 0) & (q > 0)
    safe_p, safe_q = jnp.where(both, p, 1), jnp.where(both, q, 1)
    return jnp.where(both, _divergence(safe_p, safe_q), rel_entr(p, q) - p + q)


@in_single
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """(x ** lmbda - 1) / lmbda, log(x) at lmbda = 0.

    Args:
        x, lmbda: arrays or numbers that broadcast.

    Returns:
        Array of the broadcast shape, float or complex.

    >>> boxcox(jnp.array([1.0, 4.0]), 0.5)
    Array([0., 2.], dtype=float32)
    """
    return _boxcox(*_floats("boxcox", x, lmbda))


def _scaled_power(log, lmbda):
    """(exp(lmbda log) - 1) / lmbda."""
    zero = lmbda == 0
    return jnp.where(zero, log, jnp.expm1(lmbda * log) / jnp.where(zero, 1, lmbda))


def _scaled_power_slope(value, base, log, lmbda):
    """The derivative of that by lmbda: (base^lmbda log - value) / lmbda; near lmbda = 0, where it
    cancels, by its series.
    """
    t = lmbda * jnp.where((lmbda == 0) & jnp.isinf(log), 0, log)
    near = abs(t) < 0.02
    t = jnp.where(near, t, 0)
    series = log * log * (1 / 2 + t * (1 / 3 + t * (1 / 8 + t * (1 / 30 + t * (1 / 144 + t / 840)))))
    return jnp.where(near, series, (xlogy(base**lmbda, base) - value) / jnp.where(near, 1, lmbda))


@custom_jvp
@jit
def _boxcox(x, lmbda):
    return _scaled_power(jnp.log(x), lmbda)


@_boxcox.defjvp
def _boxcox_jvp(primals, tangents):
    (x, lmbda), (dx, dlmbda) = primals, tangents
    y = _boxcox(x, lmbda)
    return y, dx * x ** (lmbda - 1) + dlmbda * _scaled_power_slope(y, x, jnp.log(x), lmbda)


@in_single
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """boxcox(1 + x, lmbda), accurate for small x.

    Args:
        x, lmbda: arrays or numbers that broadcast.

    Returns:
        Array of the broadcast shape, float or complex.

    >>> boxcox1p(jnp.array([0.0, 3.0]), 0.5)
    Array([0., 2.], dtype=float32)
    """
    return _boxcox1p(*_floats("boxcox1p", x, lmbda))


@custom_jvp
@jit
def _boxcox1p(x, lmbda):
    return _scaled_power(jnp.log1p(x), lmbda)


@_boxcox1p.defjvp
def _boxcox1p_jvp(primals, tangents):
    (x, lmbda), (dx, dlmbda) = primals, tangents
    y = _boxcox1p(x, lmbda)
    return y, dx * (1 + x) ** (lmbda - 1) + dlmbda * _scaled_power_slope(y, 1 + x, jnp.log1p(x), lmbda)
