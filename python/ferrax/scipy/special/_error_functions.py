"""The error function's relatives: erfcx, dawsn, wofz (Faddeeva's function), log_ndtr, Owen's T.

Invariant: each keeps its relative accuracy where the underlying function under- or overflows, and
so do the derivatives, which are closed forms.

    erfcx(x) = exp(x^2) erfc(x)            dawsn(x) = exp(-x^2) * integral of exp(t^2) from 0 to x            w(z) = exp(-z^2) erfc(-i z)

    >>> erfcx(1e6)
    Array(5.641896e-07, dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import lax, numpy as jnp
from ..._base.shapes import common_shape
from ..._tracing.jit import jit
from ...custom_derivatives import custom_jvp
from ...numpy._support.arguments import convert, promote_inexact
from .._halves import in_single

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_ROOT_PI = float(np.sqrt(np.pi))
_ROOT2 = float(np.sqrt(2))
_LOG_ROOT_2PI = float(np.log(2 * np.pi) / 2)


def _real(name, *xs):
    xs = promote_inexact(name, *xs)
    if xs[0].dtype.kind == "c":
        raise ValueError(f"{name} does not support complex-valued inputs.")
    return xs[0] if len(xs) == 1 else xs


def _exp_squares(x, y=0.0):
    """exp(x^2 - y^2), with the squares split in two parts: rounding a whole square would have an
    error proportional to it.
    """
    # On a grid of 1/16 a square is exact as far as its exponential is finite.
    a, b = jnp.round(x * 16) / 16, jnp.round(y * 16) / 16
    return jnp.exp(a * a - b * b) * jnp.exp((x - a) * (x + a) - (y - b) * (y + b))


def _turned(size, angle):
    """size exp(i angle), also where the size is infinite and the angle 0."""
    return lax.complex(size * jnp.cos(angle), jnp.where(angle == 0, 0, size * jnp.sin(angle)))


# ---------------------------------------------------------------- erfcx

# Up to here erfc times an exponential, beyond a continued fraction of this many levels.
_ERFCX_FAR, _ERFCX_LEVELS = 5, 18


def _mills_rest(x):
    """K in erfcx(x) = 1 / (sqrt(pi) (x + K)), K = (1/2) / (x + 1 / (x + (3/2) / (x + ..))), for
    large x (DLMF 7.9.1).
    """
    rest = jnp.zeros_like(x)
    for n in range(_ERFCX_LEVELS, 0, -1):
        rest = (n / 2) / (x + rest)
    return rest


@custom_jvp
@jit
def _erfcx(x):
    near = abs(x) <= _ERFCX_FAR
    z = jnp.where(near, x, 0)
    far = jnp.where(near, _ERFCX_FAR, abs(x))
    tail = 1 / (_ROOT_PI * (far + _mills_rest(far)))
    left = jnp.where(x < -_ERFCX_FAR, jnp.maximum(x, -30), 0)
    return jnp.where(near, _exp_squares(z) * lax.erfc(z), jnp.where(x < 0, 2 * _exp_squares(left) - tail, tail))


@_erfcx.defjvp
def _erfcx_jvp(primals, tangents):
    # 2 x erfcx(x) - 2 / sqrt(pi), which far to the right is a small difference of large numbers: there by the continued fraction.
    (x,), (dx,) = primals, tangents
    y = _erfcx(x)
    far = jnp.where(x > _ERFCX_FAR, x, _ERFCX_FAR)
    rest = _mills_rest(far)
    slope = jnp.where(x > _ERFCX_FAR, -2 / _ROOT_PI * rest / (far + rest), 2 * x * y - 2 / _ROOT_PI)
    return y, slope * dx


@in_single
def erfcx(x: ArrayLike) -> Array:
    """exp(x^2) erfc(x): the scaled complementary error function.

    Args:
        x: an array or a number, real or complex.

    Returns:
        an array of x's shape; where x is real, accurate to a few roundings (DLMF 7.9.1 for large x)
        and infinite where x^2 is large and x negative.

    Raises:
        TypeError: x is not an array or number.

    >>> jax.scipy.special.erfcx(0.0)
    Array(1., dtype=float32)
    """
    (x,) = promote_inexact("erfcx", x)
    return _wofz(1j * x) if x.dtype.kind == "c" else _erfcx(convert(x, x.dtype))


# ---------------------------------------------------------------- log_ndtr


@custom_jvp
@jit
def _log_ndtr(x):
    left = x < -1
    tail = jnp.where(left, x, -1)
    # log(ndtr(x)) = -x^2 / 2 + log(erfcx(-x / sqrt(2)) / 2)
    low = -0.5 * tail * tail + jnp.log(0.5 * _erfcx(-tail / _ROOT2))
    p, q = 0.5 * lax.erfc(-jnp.where(left, -1, x) / _ROOT2), 0.5 * lax.erfc(jnp.where(x > 0, x, 0) / _ROOT2)
    return jnp.where(left, low, jnp.where(x > 0, jnp.log1p(-q), jnp.log(p)))


@_log_ndtr.defjvp
def _log_ndtr_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _log_ndtr(x), dx * _log_ndtr_slope(x)


@custom_jvp
def _log_ndtr_slope(x):
    """s(x) = sqrt(2 / pi) / erfcx(-x / sqrt(2)), the density over the distribution function."""
    return float(np.sqrt(2 / np.pi)) / _erfcx(-x / _ROOT2)


@_log_ndtr_slope.defjvp
def _log_ndtr_slope_jvp(primals, tangents):
    """-s (s + x). The sum cancels far below 0, where it is sqrt(2) K of the continued fraction."""
    (x,), (dx,) = primals, tangents
    s = _log_ndtr_slope(x)
    far = x < -_ERFCX_FAR * _ROOT2
    excess = jnp.where(far, _ROOT2 * _mills_rest(jnp.where(far, -x / _ROOT2, _ERFCX_FAR)), s + jnp.where(far, 0, x))
    # 0 beyond the range, where x may be infinite
    return s, dx * jnp.where(s == 0, 0, -s * excess)


@in_single
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """log(ndtr(x)), accurate in both tails.

    Args:
        x: an array or a number, real.
        series_order: accepted as in JAX, where it is the number of terms of an asymptotic series;
          the result here is accurate for any value.

    Returns:
        a float array of x's shape.

    Raises:
        TypeError: x is complex, or not an array or number; series_order is not an int.
        ValueError: series_order is negative or above 30.

    >>> jax.scipy.special.log_ndtr(-1e4)
    Array(-5.0000012e+07, dtype=float32)
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if series_order < 0:
        raise ValueError("series_order must be non-negative.")
    if series_order > 30:
        raise ValueError("series_order must be <= 30.")
    (x,) = promote_inexact("log_ndtr", x)
    if x.dtype.kind == "c":
        raise TypeError(f"x.dtype={x.dtype} is not supported, see docstring for supported types.")
    return _log_ndtr(convert(x, x.dtype))


# ---------------------------------------------------------------- dawsn

# Rybicki's sum has this step, and is taken up to |x| = 10; beyond it the asymptotic series.
_STEP, _PAIRS, _DAWSON_FAR = 0.25, 14, 10


@custom_jvp
@jit
def _dawsn(x):
    size = abs(x)
    far = size > _DAWSON_FAR
    z = jnp.where(far, 1, size)
    # Rybicki (1989): sum over odd n of exp(-(z - n h)^2) / n / sqrt(pi), about the even multiple of h that is nearest to z.
    even = 2 * jnp.round(z / (2 * _STEP))
    rest = z - even * _STEP
    total = 0
    for n in range(2 * _PAIRS - 1, 0, -2):
        total = total + jnp.exp(-((rest - n * _STEP) ** 2)) / (even + n) + jnp.exp(-((rest + n * _STEP) ** 2)) / (even - n)
    near = total / _ROOT_PI
    # By its power series near 0, where the sum cancels (DLMF 7.6.3).
    square = z * z
    powers = 1.0
    for n in range(16, 0, -1):
        powers = 1 - powers * square / (n + 0.5)
    near = jnp.where(z < 0.5, z * powers, near)
    # DLMF 7.12: sum of (2 n - 1)!! / (2 z^2)^n, over 2 z.
    w = 1 / jnp.where(far, size, _DAWSON_FAR)
    series = 1.0
    for n in range(12, 0, -1):
        series = 1 + series * (2 * n - 1) * 0.5 * w * w
    return jnp.where(far, 0.5 * w * series, near) * jnp.sign(x)


@_dawsn.defjvp
def _dawsn_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    y = _dawsn(x)
    far = abs(x) > _DAWSON_FAR
    # 1 - 2 x F(x) = -sum over n >= 1 of the series: no cancellation.
    w = 1 / jnp.where(far, x, _DAWSON_FAR)
    series = 1.0
    for n in range(12, 1, -1):
        series = 1 + series * (2 * n - 1) * 0.5 * w * w
    return y, dx * jnp.where(far, -0.5 * w * w * series, 1 - 2 * x * y)


@in_single
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to x (Rybicki 1989,
    Dawson's integral and the sampling theorem).

    Args:
        x: an array or a number, real.

    Returns:
        a float array of x's shape.

    Raises:
        TypeError: x is not an array or number.
        ValueError: x is complex.

    >>> jax.scipy.special.dawsn(1.0)
    Array(0.53807956, dtype=float32)
    """
    x = _real("dawsn", x)
    return _dawsn(convert(x, x.dtype))


# ---------------------------------------------------------------- Faddeeva's function

_NODES = 11
_H = float(np.sqrt(np.pi / (_NODES + 1)))


def _first_quadrant(x, y):
    """w(x + i y) for x, y >= 0: modified trapezoidal rules (Al Azah and Chandler-Wilde 2021,
    Computation of the complex error function).
    """
    z = lax.complex(x, y)
    turn = x / _H - jnp.floor(x / _H)
    # Nodes at the multiples of h, or midway between them: those that are farther from z.
    whole = (y < x) & (turn >= 0.25) & (turn <= 0.75)
    # The sum of exp(-t^2) z / (z^2 - t^2), without the square, which may overflow.
    nodes = (np.arange(_NODES + 1) + np.array([[0.5], [0.0]])) * _H
    weights = np.exp(-nodes * nodes)
    weights[1, 0] = 0.5
    pick = lambda rows: jnp.where(whole[..., None], *[jnp.asarray(row, x.dtype) for row in rows[::-1]])
    inverse = 1 / jnp.where(z == 0, 1, z)
    total = jnp.sum(pick(weights) / (z[..., None] - pick(nodes * nodes) * inverse[..., None]), axis=-1) * complex(0, 2 * _H / np.pi)
    # The residue of the pole at z, where the rule's contour passes below it.
    wave = (x < 30) & ((y < x) | (y < np.pi / _H))
    zx, zy = jnp.where(wave, x, 0), jnp.where(wave, y, 0)
    gauss = _turned(_exp_squares(zy, zx), -2 * zx * zy)
    around = jnp.exp(lax.complex(2 * np.pi / _H * zy, -2 * np.pi * jnp.where(wave, turn, 0)))
    residue = jnp.where(whole, 2 * gauss / (1 - jnp.where(whole, around, 0)), 2 * gauss / (1 + jnp.where(whole, 1, around)))
    return total + jnp.where(wave, residue, 0)


@custom_jvp
@jit
def _wofz(z):
    x, y = jnp.real(z), jnp.imag(z)
    w = _first_quadrant(abs(x), abs(y))
    w = jnp.where(z == 0, 1, jnp.where(jnp.isinf(x) | jnp.isinf(y) & ~jnp.isnan(x + y), 0, w))
    # w(-conj z) = conj w(z); w(-z) = 2 exp(-z^2) - w(z)
    below = y < 0
    a, b = jnp.where(below, abs(x), 0), jnp.where(below, abs(y), 0)
    reflected = _turned(2 * _exp_squares(b, a), 2 * a * b) - jnp.conj(w)
    w = jnp.where(below, reflected, w)
    return jnp.where(x < 0, jnp.conj(w), w)


@_wofz.defjvp
def _wofz_jvp(primals, tangents):
    (z,), (dz,) = primals, tangents
    w = _wofz(z)
    return w, dz * (complex(0, 2 / _ROOT_PI) - 2 * z * w)


def wofz(z: ArrayLike) -> Array:
    """Faddeeva's function, w(z) = exp(-z^2) erfc(-i z) (DLMF 7.2.3), by modified trapezoidal rules
    (Al Azah and Chandler-Wilde 2021).

    Args:
        z: an array or a number, real or complex.

    Returns:
        a complex array of z's shape.

    Raises:
        TypeError: z is not an array or number.

    >>> jax.scipy.special.wofz(0.0)
    Array(1.+0.j, dtype=complex64)
    """
    (z,) = promote_inexact("wofz", z)
    return _wofz(z if z.dtype.kind == "c" else z.astype("complex128" if z.dtype.itemsize == 8 else "complex64"))


# ---------------------------------------------------------------- Owen's T

_GAUSS = np.polynomial.legendre.leggauss(32)


@custom_jvp
@jit
def _owens_t(h, a):
    h, size = abs(h), abs(a)
    # T(h, a) = (Q(h) + Q(a h)) / 2 - Q(h) Q(a h) - T(a h, 1 / a), Q the upper tail (Owen 1956): the integral is taken up to 1 at most.
    swapped = size > 1
    product = jnp.where(jnp.isinf(size) & (h == 0), 0, h * size)
    k = jnp.where(swapped, product, h)
    end = jnp.where(swapped, 1 / jnp.where(swapped, size, 1), size)
    # Beyond this the integrand exp(-k^2 (1 + t^2) / 2) / (1 + t^2) is nothing beside its value at 0.
    cut = jnp.minimum(end, 9 / jnp.where(k > 0, k, 1e-3))
    nodes, weights = [jnp.asarray(v, h.dtype) for v in ((_GAUSS[0] + 1) / 2, _GAUSS[1] / (4 * np.pi))]
    t = cut[..., None] * nodes
    k = jnp.where(jnp.isinf(k), 1e4, k)
    integral = jnp.sum(weights * jnp.exp(-0.5 * (k[..., None] * t) ** 2) / (1 + t * t), axis=-1) * cut * jnp.exp(-0.5 * k * k)
    upper = lambda x: 0.5 * lax.erfc(x / _ROOT2)
    p, q = upper(h), upper(product)
    value = jnp.where(swapped, 0.5 * (p + q) - p * q - integral, integral)
    return jnp.where(jnp.isnan(h + size), np.nan, jnp.where(a < 0, -value, value))


@_owens_t.defjvp
def _owens_t_jvp(primals, tangents):
    (h, a), (dh, da) = primals, tangents
    by_h = -jnp.exp(-0.5 * h * h) * lax.erf(a * h / _ROOT2) / float(2 * np.sqrt(2 * np.pi))
    by_a = jnp.exp(-0.5 * h * h * (1 + a * a)) / (2 * np.pi * (1 + a * a))
    return _owens_t(h, a), by_h * dh + by_a * da


@in_single
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T function: the integral of exp(-h^2 (1 + t^2) / 2) / (1 + t^2) from 0 to a, over 2 pi
    (Owen 1956).

    Args:
        h: an array or a number, real.
        a: the end of the integral; broadcasts with h.

    Returns:
        a float array of the common shape.

    Raises:
        TypeError: an argument is not an array or number.
        ValueError: an argument is complex.

    >>> jax.scipy.special.owens_t(0.0, 1.0)
    Array(0.125, dtype=float32)
    """
    h, a = _real("owens_t", h, a)
    shape = common_shape(h.shape, a.shape)
    return _owens_t(jnp.broadcast_to(h, shape), jnp.broadcast_to(a, shape))
