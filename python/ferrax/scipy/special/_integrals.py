"""Exponential, sine, cosine and Fresnel integrals, and Spence's function.

Invariant: where an integral is large, small or turns, that is divided out and the smooth rest is a
Chebyshev series; derivatives are the integrands.

    >>> expi(1.0)
    Array(1.8951178, dtype=float32)
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from ... import lax, numpy as jnp
from ..._tracing.jit import jit
from ...custom_derivatives import custom_jvp
from ...numpy._support.arguments import broadcast_together, convert, promote_inexact
from .._chebyshev import evaluate
from .._chebyshev_tables import CIN, E1, EI, EIN, FRESNEL_C, FRESNEL_F, FRESNEL_G, FRESNEL_S, SI, SINE_F, SINE_G
from .._halves import in_single

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_EULER = float(np.euler_gamma)
_PI = float(np.pi)


def _real(name, *xs):
    """The arguments as arrays of one float dtype, none weakly typed."""
    xs = promote_inexact(name, *xs)
    if xs[0].dtype.kind == "c":
        raise ValueError(f"{name} does not support complex-valued inputs.")
    return [convert(x, x.dtype) for x in xs]


# ---------------------------------------------------------------- Ei, E1, En


def _e1_above_0(x):
    """E1(x), x >= 0."""
    small = x <= 1
    near, far = jnp.where(small & (x > 0), x, 1), jnp.where(small, 1, x)
    series = near * evaluate(EIN, -near) - jnp.log(near) - _EULER
    out = jnp.where(small, series, jnp.exp(-far) / far * evaluate(E1, 1 / far))
    return jnp.where(x == 0, np.inf, jnp.where(jnp.isnan(x), np.nan, out))


@functools.cache
def _exp_over(*coefficients):
    """exp(x) times a polynomial in 1 / x without a constant, the coefficient of 1 / x being 1: finite where the exponential alone is
    not. So is its slope, in which no infinite terms are added.
    """
    slope = tuple(c - k * d for k, (c, d) in enumerate(zip((*coefficients, 0.0), (0.0, *coefficients), strict=True)))

    @custom_jvp
    def product(x):
        beyond = x > 20
        terms = jnp.polyval(jnp.array([*coefficients[::-1], 0.0], x.dtype), 1 / x)
        return jnp.where(x == np.inf, np.inf, jnp.exp(jnp.where(beyond, x - 10, x)) * terms * jnp.where(beyond, math.exp(10), 1))

    @product.defjvp
    def _(primals, tangents):
        (x,), (dx,) = primals, tangents
        return product(x), _exp_over(*slope)(x) * dx

    return product


@custom_jvp
@jit
def _expi(x):
    size = abs(x)
    small = size <= 6
    near, far = jnp.where(small & (x > 0), x, 1), jnp.where(small, 6, size)
    series = near * evaluate(EIN, near) + jnp.log(near) + _EULER
    above = jnp.where(small, series, _exp_over(1.0)(far) * evaluate(EI, 1 / far))
    return jnp.where(x > 0, above, -_e1_above_0(size))


@_expi.defjvp
def _expi_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _expi(x), dx * _exp_over(1.0)(x)


@in_single
def expi(x: ArrayLike) -> Array:
    """The exponential integral Ei(x): the principal value of the integral of exp(t) / t from
    -infinity to x (DLMF 6.2.5).

    Args:
        x: an array or a number, real.

    Returns:
        a float array of x's shape; -inf at 0.

    Raises:
        TypeError: x is not an array or number.
        ValueError: x is complex.

    >>> jax.scipy.special.expi(-1.0)
    Array(-0.2193839, dtype=float32)
    """
    return _expi(*_real("expi", x))


@custom_jvp
@jit
def _exp1(x):
    return jnp.where(x < 0, np.nan, _e1_above_0(abs(x)))


@_exp1.defjvp
def _exp1_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _exp1(x), -dx * jnp.where(x < 0, np.nan, jnp.exp(-x) / x)


@in_single
def exp1(x: ArrayLike) -> Array:
    """The exponential integral E1(x): the integral of exp(-t) / t from x to infinity (DLMF 6.2.1).

    Args:
        x: an array or a number, real.

    Returns:
        a float array of x's shape; inf at 0, NaN below.

    Raises:
        TypeError: x is not an array or number.
        ValueError: x is complex.

    >>> jax.scipy.special.exp1(1.0)
    Array(0.2193839, dtype=float32)
    """
    return _exp1(*_real("exp1", x))


@custom_jvp
@jit
def _expn(n, x):
    eps = float(jnp.finfo(x.dtype).eps)
    valid = (n >= 0) & (n == jnp.floor(n)) & (x >= 0)
    direct = valid & (n > 1) & (x > 0)
    near = direct & (x <= 1)
    m, z = jnp.where(near, n, 2), jnp.where(near, x, 1)

    # DLMF 8.19.8: (-x)^(n-1) / (n-1)! (psi(n) - log(x)) - sum over k != n - 1 of (-x)^k / ((k - n + 1) k!).
    def add(k, state):
        term, total = state
        part = jnp.where(k == m - 1, term * (lax.digamma(m) - jnp.log(z)), term / jnp.where(k == m - 1, 1, m - 1 - k))
        return -term * z / (k + 1), total + part

    # Terms fall faster than x^k / k!; the exceptional one is below rounding where n is larger than their number.
    small = lax.fori_loop(0, 24, lambda k, s: add(jnp.asarray(k, x.dtype), s), (jnp.ones_like(z), jnp.zeros_like(z)))[1]

    # DLMF 8.19.17, contracted: exp(-x) / (x + n - 1 n / (x + n + 2 - 2 (n + 1) / (x + n + 4 - ..))).
    far = direct & (x > 1) & jnp.isfinite(x)
    m, z = jnp.where(far, n, 2), jnp.where(far, x, 4)

    def step(state):
        k, value, c, d, _ = state
        a, b = -k * (m + k - 1), z + m + 2 * k
        d, c = 1 / (b + a * d), b + a / c
        return k + 1, value * c * d, c, d, abs(c * d - 1) > eps

    start = jnp.ones((), x.dtype), z + m, z + m, jnp.zeros_like(z), jnp.ones(z.shape, bool)
    fraction = lax.while_loop(lambda s: jnp.any(s[4]) & (s[0] < 500), step, start)[1]
    out = jnp.where(near, small, jnp.where(x == 0, 1 / jnp.where(n > 1, n - 1, 1), jnp.where(jnp.isinf(x), 0, jnp.exp(-z) / fraction)))
    first = jnp.where(n == 0, jnp.where(x == 0, np.inf, jnp.exp(-x) / jnp.where(x == 0, 1, x)), _e1_above_0(jnp.where(valid, x, 1)))
    return jnp.where(valid, jnp.where(n > 1, out, first), np.nan)


@_expn.defjvp
def _expn_jvp(primals, tangents):
    (n, x), (_, dx) = primals, tangents
    below = _expn(jnp.where(n > 0, n - 1, 0), x)
    slope = jnp.where(n > 0, -below, -jnp.exp(-x) * (1 + 1 / x) / x)
    return _expn(n, x), dx * jnp.where(n >= 0, slope, np.nan)


@in_single
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The generalised exponential integral En(x): the integral of exp(-x t) / t^n from 1 to
    infinity (DLMF 8.19).

    Args:
        n: the order, whole numbers >= 0; it has no derivative.
        x: an array or a number, real; broadcasts with n.

    Returns:
        a float array of the common shape; NaN for other orders and for x below 0.

    Raises:
        TypeError: an argument is not an array, list or number.
        ValueError: an argument is complex.

    >>> jax.scipy.special.expn(2, 0.0)
    Array(1., dtype=float32)
    """
    return _expn(*broadcast_together(*_real("expn", jnp.asarray(n), jnp.asarray(x))))


# ---------------------------------------------------------------- Si, Ci


@custom_jvp
@jit
def _sici(x):
    size = abs(x)
    small = size <= 4
    near, far = jnp.where(small, size, 1), jnp.where(small | jnp.isinf(size), 4, size)
    f, g = evaluate(SINE_F, 1 / (far * far)) / far, evaluate(SINE_G, 1 / (far * far)) / (far * far)
    sin, cos = jnp.sin(far), jnp.cos(far)
    si = jnp.where(small, near * evaluate(SI, near * near), jnp.where(jnp.isinf(size), _PI / 2, _PI / 2 - f * cos - g * sin))
    log = jnp.log(jnp.where(near == 0, 1, near))
    ci = jnp.where(small, near * near * evaluate(CIN, near * near) + log + _EULER, jnp.where(jnp.isinf(size), 0, f * sin - g * cos))
    nan = jnp.isnan(x)
    return jnp.where(nan, np.nan, jnp.sign(x) * si), jnp.where(nan | (x == -np.inf), np.nan, jnp.where(x == 0, -np.inf, ci))


@_sici.defjvp
def _sici_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _sici(x), (dx * jnp.sinc(x / _PI), dx * (jnp.cos(x) / x))


@in_single
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine integral, of sin(t) / t from 0 to x, and the cosine integral, gamma + log|x| + that
    of (cos(t) - 1) / t (DLMF 6.2).

    Args:
        x: an array or a number, real.

    Returns:
        the pair (Si(x), Ci(x)), float arrays of x's shape. Below 0 Ci is that of |x|.

    Raises:
        TypeError: x is not an array or number.
        ValueError: x is complex.

    >>> jax.scipy.special.sici(0.0)
    (Array(0., dtype=float32), Array(-inf, dtype=float32))
    """
    (x,) = promote_inexact("sici", x)
    if x.dtype.kind == "c":
        raise ValueError(f"Argument `x` to sici must be real-valued. Got dtype {x.dtype}.")
    return _sici(convert(x, x.dtype))


# ---------------------------------------------------------------- Fresnel


def _half_square(x):
    """x^2 / 2 modulo 2, exact except for the last rounding."""
    # Dekker (1971): the square as the sum of two numbers.
    split = float(2 ** ((jnp.finfo(x.dtype).nmant + 2) // 2) + 1)
    # From here on the square of any number of the dtype is a multiple of 4.
    x = jnp.where(abs(x) < 2.0 ** (jnp.finfo(x.dtype).nmant + 1), x, 0)
    high = x * split - (x * split - x)
    low = x - high
    square = x * x
    rest = (high * high - square) + 2 * high * low + low * low
    return (square - 4 * jnp.floor(square / 4)) / 2 + rest / 2


def _turned(x):
    """sin and cos of pi x^2 / 2."""
    if x.dtype.itemsize < 4:
        s, c = _turned(x.astype("float32"))
        return s.astype(x.dtype), c.astype(x.dtype)
    angle = _PI * _half_square(x)
    return jnp.sin(angle), jnp.cos(angle)


@custom_jvp
@jit
def _fresnel(x):
    size = abs(x)
    small = size <= 1.5
    near, far = jnp.where(small, size, 1), jnp.where(small, 1.5, size)
    fourth, w = near**4, 1 / far
    f, g = evaluate(FRESNEL_F, w**4) * w / _PI, evaluate(FRESNEL_G, w**4) * w**3 / _PI**2
    sin, cos = _turned(jnp.where(jnp.isinf(far), 0, far))
    s = jnp.where(small, near**3 * evaluate(FRESNEL_S, fourth), 0.5 - (f * cos + g * sin))
    c = jnp.where(small, near * evaluate(FRESNEL_C, fourth), 0.5 + (f * sin - g * cos))
    return tuple(jnp.where(jnp.isnan(x), np.nan, jnp.sign(x) * y) for y in (s, c))


@_fresnel.defjvp
def _fresnel_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    sin, cos = _turned(x)
    return _fresnel(x), (dx * sin, dx * cos)


@in_single
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The Fresnel integrals of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0 to x (DLMF 7.2.7).

    Args:
        x: an array or a number, real.

    Returns:
        the pair (S(x), C(x)), float arrays of x's shape.

    Raises:
        TypeError: x is not an array or number.
        NotImplementedError: x is complex.

    >>> jax.scipy.special.fresnel(jnp.inf)
    (Array(0.5, dtype=float32), Array(0.5, dtype=float32))
    """
    (x,) = promote_inexact("fresnel", x)
    if x.dtype.kind == "c":
        raise NotImplementedError("Support for complex-valued inputs is not implemented yet.")
    return _fresnel(convert(x, x.dtype))


# ---------------------------------------------------------------- Spence

# B_2k / (2k + 1)!
_DILOGARITHM = tuple(
    b / float(np.prod(np.arange(1.0, 2 * k + 2)))
    for k, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798), 1)
)


@custom_jvp
@jit
def _spence(x):
    # By reflection into [1/2, 2] (DLMF 25.12.4 and 25.12.6).
    high = x > 2
    y = jnp.where(x > 0, x, 1)
    log = jnp.log(y)
    y = jnp.where(high, 1 / y, y)
    low = y < 0.5
    inner = jnp.where(low, 1 - y, y)
    # Li2(1 - exp(-u)) = u - u^2 / 4 + sum of B_2k u^(2k+1) / (2k+1)!
    u = -jnp.log(inner)
    square, series = u * u, 0.0
    for c in reversed(_DILOGARITHM):
        series = (series + c) * square
    value = u * (1 + series) - square / 4
    value = jnp.where(low, _PI**2 / 6 + jnp.where(high, -log, log) * u - value, value)
    value = jnp.where(high, -value - 0.5 * log * log, value)
    value = jnp.where(x == 0, _PI**2 / 6, jnp.where(jnp.isinf(x), -np.inf, value))
    return jnp.where(x >= 0, value, np.nan)


@_spence.defjvp
def _spence_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    # log(x) / (1 - x); near 1 by its series, which has its derivatives
    near = jnp.abs(x - 1) < 0.125
    t, far = jnp.where(near, x - 1, 0), jnp.where(near, 2, x)
    series = 0.0
    for k in reversed(range(18)):
        series = (-1.0) ** (k + 1) / (k + 1) + series * t
    return _spence(x), dx * jnp.where(near, series, jnp.log(far) / (1 - far))


@in_single
def spence(x: Array) -> Array:
    """Spence's function: the integral of log(t) / (1 - t) from 1 to x, which is the dilogarithm of
    1 - x (DLMF 25.12).

    Args:
        x: an array or a number, real.

    Returns:
        a float array of x's shape; NaN below 0.

    Raises:
        TypeError: x is complex, or not an array or number.

    >>> jax.scipy.special.spence(1.0)
    Array(-0., dtype=float32)
    """
    (x,) = promote_inexact("spence", x)
    if x.dtype.kind == "c":
        raise TypeError(f"x.dtype={x.dtype} is not supported, see docstring for supported types.")
    return _spence(convert(x, x.dtype))
