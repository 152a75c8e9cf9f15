"""The incomplete gamma functions and their derivatives in both arguments, by series (x below a + 1) and continued fraction (above).

Invariant: both expansions carry their derivative in a along, so that derivatives are as accurate as values.

    P(a, x) = w S / a,  S = sum x^n / ((a+1) ... (a+n))        Q(a, x) = 1 - P = w C,  C = 1 / (x+1-a - 1(1-a) / (x+3-a - ...))
    w = x^a exp(-x) / gamma(a) = x p,  p the density of the gamma distribution
"""

import functools

import numpy as np

from .. import lax, numpy as jnp
from .._api import jit
from ..custom_derivatives import custom_jvp

_MOST_TERMS = 20_000


def _series(a, x):
    """S and its derivative in a."""
    eps = np.asarray(jnp.finfo(a.dtype).eps, a.dtype)[()]

    def step(state):
        n, r, c, dc, s, ds = state
        r = r + 1
        c_next = c * x / r
        dc = dc * x / r - c_next / r
        return n + 1, r, c_next, dc, s + c_next, ds + dc

    def going(state):
        n, _, c, dc, s, ds = state
        return jnp.any((c > eps * s) | (jnp.abs(dc) > eps * jnp.abs(ds))) & (n < _MOST_TERMS)

    one, zero = jnp.ones_like(a), jnp.zeros_like(a)
    # The first derivative's term is -x / (a+1)^2: 0 must not end the loop.
    return lax.while_loop(going, step, step((np.int32(0), a, one, zero, one, zero)))[4:]


def _fraction(a, x):
    """C and its derivative in a, by Lentz's method."""
    eps = np.asarray(jnp.finfo(a.dtype).eps, a.dtype)[()]
    tiny = np.asarray(jnp.finfo(a.dtype).tiny, a.dtype)[()]

    def step(state):
        n, b, c, dc, d, dd, h, dh, _, _ = state
        k = (n + 1).astype(a.dtype)
        p = k * (a - k)
        b = b + 2
        down = p * d + b
        ddown = k * d + p * dd - 1
        down = jnp.where(down == 0, tiny, down)
        d_next = 1 / down
        dd = -ddown * d_next * d_next
        dc = -1 + k / c - p * dc / (c * c)
        c = b + p / c
        c = jnp.where(c == 0, tiny, c)
        ratio, dratio = d_next * c, dd * c + d_next * dc
        h_next, dh_next = h * ratio, dh * ratio + h * dratio
        return n + 1, b, c, dc, d_next, dd, h_next, dh_next, jnp.abs(h_next - h), jnp.abs(dh_next - dh)

    def going(state):
        n, h, dh, step_h, step_dh = state[0], *state[6:]
        return jnp.any((step_h > eps * jnp.abs(h)) | (step_dh > eps * jnp.abs(dh))) & (n < _MOST_TERMS)

    b = x + 1 - a
    d = 1 / b
    huge = jnp.full_like(a, np.sqrt(1 / float(tiny)))
    start = np.int32(0), b, huge, jnp.zeros_like(a), d, d * d, d, d * d, jnp.abs(d), jnp.abs(d)
    return lax.while_loop(going, step, start)[6:8]


def _both(a, x):
    """(whether the series is used, S, S', C, C'), each expansion at a harmless point where it is not used."""
    low = x < a + 1
    s, ds = _series(jnp.where(low, a, 1), jnp.where(low, x, 0.5))
    c, dc = _fraction(jnp.where(low, 1, a), jnp.where(low, 3, x))
    return low, s, ds, c, dc


def _log_weight(a, x):
    """log w. For large a by Stirling's series about x = a, where the plain formula subtracts large numbers."""
    large = a >= 10
    n = jnp.where(large, a, 10)
    t = (jnp.where(large, x, 10) - n) / n
    stirling = n * (jnp.log1p(t) - t) + 0.5 * jnp.log(n / (2 * np.pi)) - (1 / 12 - 1 / (360 * n * n)) / n
    return jnp.where(large, stirling, a * jnp.log(x) - x - lax.lgamma(a))


@jit
def gamma_slope(a, x):
    """-(dP/da) / p at x: how a gamma draw moves with its shape, at constant probability. The weight cancels, so tails are exact."""
    low, s, ds, c, dc = _both(a, x)
    below = -(x / a) * (s * (jnp.log(x) - lax.digamma(a + 1)) + ds)
    above = x * (c * (jnp.log(x) - lax.digamma(a)) + dc)
    return jnp.where(low, below, above)


def _inside(a, x):
    """Whether the formulas hold, and arguments for which they do."""
    inside = (a > 0) & (x > 0) & jnp.isfinite(a) & jnp.isfinite(x)
    return inside, jnp.where(inside, a, 1), jnp.where(inside, x, 1)


def shape_slopes(a, x):
    """(dP/da, `gamma_slope`) for arrays of one shape and float dtype: 0 at the ends of x, NaN for a <= 0 or x < 0."""
    inside, safe_a, safe_x = _inside(a, x)
    slope = gamma_slope(safe_a, safe_x)
    ends = jnp.where((a > 0) & (a < jnp.inf) & ((x == 0) | (x == jnp.inf)), 0, jnp.nan)
    by_shape = -jnp.exp(_log_weight(safe_a, safe_x)) / safe_x * slope
    return jnp.where(inside, by_shape, ends), jnp.where(inside, slope, ends)


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def incomplete_gamma(a, x, upper):
    """P(a, x), or Q(a, x) if `upper`, for arrays of one shape and float dtype: NaN for a <= 0 or x < 0."""
    inside, safe_a, safe_x = _inside(a, x)
    low, s, _, c, _ = _both(safe_a, safe_x)
    weight = jnp.exp(_log_weight(safe_a, safe_x))
    p, q = weight * s / safe_a, weight * c
    value = jnp.where(low, 1 - p, q) if upper else jnp.where(low, p, 1 - q)
    at_zero, beyond = (1.0, 0.0) if upper else (0.0, 1.0)
    edge = jnp.where((x == 0) & (a > 0), at_zero, jnp.where(((x == jnp.inf) & (a > 0)) | ((a == 0) & (x > 0)), beyond, jnp.nan))
    return jnp.where(inside, value, edge)


@incomplete_gamma.defjvp
def _incomplete_gamma_jvp(upper, primals, tangents):
    (a, x), (da, dx) = primals, tangents
    density = jnp.exp(_log_weight(a, x)) / x
    move = density * dx - density * gamma_slope(a, x) * da
    return incomplete_gamma(a, x, upper), -move if upper else move
