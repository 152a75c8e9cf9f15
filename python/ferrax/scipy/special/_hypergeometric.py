"""Hypergeometric functions of real arguments.

Invariant: series are summed until further terms change nothing, also for derivatives; slowly
converging ones are transformed to arguments near 0 first.

    1F1(a; b; x) = sum of (a)_k / (b)_k x^k / k!               2F1(a, b; c; x) = sum of (a)_k (b)_k / (c)_k x^k / k!

    >>> hyp2f1(1.0, 1.0, 2.0, 0.5) * 0.5 / jnp.log(2.0)
    Array(1.0000001, dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import lax, numpy as jnp
from ..._tracing.jit import jit
from ...numpy._support.arguments import broadcast_together, promote_inexact
from .._domains import nan_outside
from .._halves import in_single

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_MOST = 5000


def _reals(name, *xs):
    xs = promote_inexact(name, *xs)
    if xs[0].dtype.kind == "c":
        raise ValueError(f"{name} does not support complex-valued inputs.")
    return broadcast_together(*xs)


def _gamma_sign(x):
    """The sign of gamma(x), where it is not a pole."""
    return jnp.where((x < 0) & (jnp.floor(x) % 2 != 0), -1, 1)


def _series(ratio, x):
    """1 + r_0 + r_0 r_1 + .. until terms change nothing, elementwise; `ratio` gives r_k for k = 0,
    1, 2 .., each a multiple of x.
    """
    # A derivative's terms are the value's, times no more than the number of the term: it is over a little later. It goes on where the value ends
    # because a parameter is a negative integer, so sizes pass over zeros.
    eps = float(jnp.finfo(x.dtype).eps) / 1024

    def step(state):
        k, term, total, size = state
        r = ratio(k)
        term = term * r
        return k + 1, term, total + term, size * jnp.where(r == 0, 1, lax.stop_gradient(abs(r)))

    def more(state):
        k, _, total, size = state
        return (k < 3) | ((k < _MOST) & jnp.any((size > eps * abs(total)) & jnp.isfinite(total)))

    one = jnp.ones_like(x)
    return lax.while_loop(more, step, (jnp.zeros((), x.dtype), one, one, jnp.where(x == 0, 0, one)))[2]


def _is_pole(x):
    """Whether x is 0, -1, -2 .."""
    return (x <= 0) & (x == jnp.floor(x))


def _ends_before(a, b):
    """Whether the series in a terminates, before a term in which b makes the denominator zero."""
    return _is_pole(a) & ~(_is_pole(b) & (b > a))


# ---------------------------------------------------------------- 1F1


@jit
def _hyp1f1(a, b, x):
    known = ~jnp.isnan(a + b + x)
    polynomial, pole = _ends_before(a, b), _is_pole(b) & ~_ends_before(a, b)
    usual = known & ~pole & ~polynomial & jnp.isfinite(x)
    # Kummer's transformation (DLMF 13.2.39): exp(x) 1F1(b - a; b; -x) for negative x, so that terms do not alternate.
    negative = usual & (x < 0)
    upper, z = jnp.where(negative, b - a, a), abs(x)
    far = usual & (z > 60 + 4 * (abs(a) + 1) * (abs(a - b) + 1)) & ~_is_pole(upper)
    near = (usual | (polynomial & known)) & ~far
    s, t, w = jnp.where(near, upper, 1), jnp.where(near, b, 1), jnp.where(near, jnp.where(polynomial, x, z), 0)
    # The denominator may vanish at the end of a polynomial and beyond.
    total = _series(lambda k: jnp.where(t + k == 0, 0, (s + k) * w / (jnp.where(t + k == 0, 1, t + k) * (k + 1))), w)
    total = jnp.where(negative, total * jnp.exp(jnp.where(near & negative, x, 0)), total)
    # DLMF 13.7.1: gamma(b) / gamma(s) exp(z) z^(s - b) (1 + (1 - s) (b - s) / z + ..), the exponential cancelling Kummer's.
    s, t, w = jnp.where(far, upper, 1), jnp.where(far, b, 2), jnp.where(far, z, 100)
    inverse, term, asymptotic = 1 / w, jnp.ones_like(w), jnp.ones_like(w)
    for k in range(24):
        term = term * (1 - s + k) * (t - s + k) / (k + 1) * inverse
        asymptotic = asymptotic + term
    size = lax.lgamma(t) - lax.lgamma(s) + (s - t) * jnp.log(w) + jnp.where(negative, 0, w)
    asymptotic = _gamma_sign(t) * _gamma_sign(s) * jnp.exp(size) * asymptotic
    out = jnp.where(far, asymptotic, total)
    # The limits.
    out = jnp.where(x == np.inf, jnp.where(a > 0, np.inf, out), jnp.where(x == -np.inf, jnp.where(a > 0, 0, out), out))
    out = jnp.where(a == 0, 1, jnp.where(pole, np.inf, out))
    return nan_outside(known, out, a, b, x)


@in_single
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's confluent hypergeometric function 1F1(a; b; x) (DLMF 13.2.2).

    By its series, after Kummer's transformation for negative x; for large x by its asymptotic
    expansion.

    Args:
        a, b: parameters, arrays or numbers, real.
        x: arguments, real; all three broadcast.

    Returns:
        a float array of the common shape; infinite where b is 0, -1, -2 .. and the series does not
        end before.

    Raises:
        TypeError: an argument is not an array, list or number.
        ValueError: an argument is complex.

    >>> jax.scipy.special.hyp1f1(1.0, 1.0, 0.0)
    Array(1., dtype=float32)
    """
    return _hyp1f1(*_reals("hyp1f1", *map(jnp.asarray, (a, b, x))))


# ---------------------------------------------------------------- 2F1


def _continued(a, b, c, x):
    """2F1(a, b; c; x) for x in [1/2, 1) by Taylor series from 1/2 onwards, each half way to 1 at
    most, of the hypergeometric equation (DLMF 15.10.1).
    """
    terms = 64 if x.dtype.itemsize == 8 else 32
    half = jnp.where(x > 0.5, 0.5, jnp.zeros_like(x))
    first = _series(lambda k: (a + k) * (b + k) * half / ((c + k) * (k + 1)), half)
    slope = a * b / c * _series(lambda k: (a + 1 + k) * (b + 1 + k) * half / ((c + 1 + k) * (k + 1)), half)

    def step(state):
        at, f, df = state
        t = jnp.where(x - at <= (1 - at) / 2, x - at, (1 - at) / 2)
        # (k + 1) (k + 2) at (1 - at) f_(k+2) = (k + a) (k + b) f_k - (k + 1) (k (1 - 2 at) + c - (a + b + 1) at) f_(k+1), times powers of t
        scale = t / (at * (1 - at))

        def add(k, sums):
            k = jnp.asarray(k, x.dtype)
            one, two, total, slopes = sums
            three = ((k + a) * (k + b) * t * scale * one - (k + 1) * (k * (1 - 2 * at) + c - (a + b + 1) * at) * scale * two) / ((k + 1) * (k + 2))
            return two, three, total + three, slopes + (k + 2) * three

        _, _, total, slopes = lax.fori_loop(0, terms, add, (f, df * t, f + df * t, df * t))
        moves = t > 0
        return at + t, jnp.where(moves, total, f), jnp.where(moves, slopes / jnp.where(moves, t, 1), df)

    return lax.while_loop(lambda s: jnp.any(s[0] < x), step, (jnp.full_like(x, 0.5), first, slope))[1]


def _at_minus_infinity(a, b, c):
    """The limit of 2F1(a, b; c; x) as x falls without bound: that of gamma(c) gamma(q - p) /
    (gamma(q) gamma(c - p)) (-x)^-p, p the smaller of a and b.
    """
    p, q = jnp.minimum(a, b), jnp.maximum(a, b)
    # Where the first coefficient is 0, the other parameter's power is what is left.
    p, q = jnp.where(_is_pole(c - p), q, p), jnp.where(_is_pole(c - p), p, q)
    sign = _gamma_sign(c) * _gamma_sign(q - p) * _gamma_sign(q) * _gamma_sign(c - p)
    return jnp.where(p > 0, 0, sign * np.inf)


@jit
def _hyp2f1(a, b, c, x):
    known = ~jnp.isnan(a + b + c + x)
    polynomial = _ends_before(a, c) | _ends_before(b, c)
    pole = _is_pole(c) & ~polynomial
    usual = known & ~polynomial & ~pole & (x < 1) & (x > -np.inf)
    # A series that ends, at any x.
    p, q, r, w = (jnp.where(polynomial & known, v, d) for v, d in ((a, 0), (b, 0), (c, 1), (x, 0)))
    last = -jnp.maximum(jnp.where(_is_pole(p), p, -np.inf), jnp.where(_is_pole(q), q, -np.inf))
    w = jnp.where(last == 0, 0, w)
    # Beyond its end the series may not converge.
    ended = _series(lambda k: jnp.where(k >= last, 0, (p + k) * (q + k) * w / (jnp.where(r + k == 0, 1, r + k) * (k + 1))), w)
    # Pfaff's transformation (DLMF 15.8.1) brings x < 0 to (0, 1): (1 - x)^-a 2F1(a, c - b; c; x / (x - 1)).
    negative = usual & (x < 0)
    p, q, r, w = (jnp.where(usual, v, d) for v, d in ((a, 1), (b, 1), (c, 2), (x, 0)))
    outer = jnp.where(negative, -p, 0)
    q, z = jnp.where(negative, r - q, q), jnp.where(negative, w / (w - 1), w)
    # Euler's (DLMF 15.8.1): (1 - z)^(c - a - b) 2F1(c - a, c - b; c; z), where the function is infinite at 1.
    steep = r - p - q < 0
    power = jnp.where(steep, r - p - q, 0)
    p, q = jnp.where(steep, r - p, p), jnp.where(steep, r - q, q)
    rest = jnp.where(negative, 1 / (1 - w), 1 - w)
    near = z <= 0.5
    v = jnp.where(near, z, 0)
    series = _series(lambda k: (p + k) * (q + k) * v / ((r + k) * (k + 1)), v)
    far = _continued(*(jnp.where(near, d, u) for u, d in ((p, 0), (q, 0), (r, 1), (z, 0.5))))
    factor = jnp.exp(power * jnp.log(rest) + outer * jnp.log(jnp.where(negative, 1 - w, 1)))
    out = jnp.where(polynomial, ended, factor * jnp.where(near, series, far))
    # Gauss's sum at 1 (DLMF 15.4.20).
    excess = c - a - b
    one = known & ~polynomial & ~pole & (x == 1) & (excess > 0)
    p, q, r = (jnp.where(one, u, d) for u, d in ((a, 0), (b, 0), (c, 1)))
    sign = _gamma_sign(r) * _gamma_sign(r - p - q) * _gamma_sign(r - p) * _gamma_sign(r - q)
    vanishes = _is_pole(r - p) | _is_pole(r - q)
    gauss = jnp.where(vanishes, 0, sign * jnp.exp(lax.lgamma(r) + lax.lgamma(r - p - q) - lax.lgamma(r - p) - lax.lgamma(r - q)))
    out = jnp.where(one, gauss, jnp.where(polynomial | ((x < 1) & ~pole), out, np.inf))
    out = jnp.where((x == -np.inf) & ~polynomial & ~pole, _at_minus_infinity(a, b, c), out)
    return nan_outside(known, jnp.where((a == 0) | (b == 0), 1, out), a, b, c, x)


@in_single
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function 2F1(a, b; c; x) (DLMF 15.2.1), for x <= 1, and beyond where
    the series ends.

    By its series for |x| <= 1/2, by the transformations of Pfaff and Euler, and by Taylor series of
    the hypergeometric equation towards 1.

    Args:
        a, b, c: parameters, arrays or numbers, real.
        x: arguments, real; all four broadcast.

    Returns:
        a float array of the common shape; infinite for x > 1, and where c is 0, -1, -2 .. and the
        series does not end before.

    Raises:
        TypeError: an argument is not an array or number.
        ValueError: an argument is complex.

    >>> jax.scipy.special.hyp2f1(1.0, 2.0, 2.0, -1.0)
    Array(0.5, dtype=float32)
    """
    return _hyp2f1(*_reals("hyp2f1", a, b, c, x))
