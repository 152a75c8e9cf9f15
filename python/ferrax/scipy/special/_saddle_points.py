"""Logarithms of powers over gamma functions, about their saddle points: x^a exp(-x) / gamma(a), x^a
(1-x)^b / B(a, b), and sums of them.

Invariant: for large parameters no large numbers are subtracted. gamma is taken by Stirling's
series, and its powers are joined with those of x as a l(x/a - 1), l(t) = log(1 + t) - t: Loader,
Fast and accurate computation of binomial probabilities (2000).

    gamma_weight(1e7, 1e7) is log(1e7 / (2 pi)) / 2 - 1 / 12e7
"""

from __future__ import annotations

import numpy as np

from ... import lax, numpy as jnp
from ...custom_derivatives import custom_jvp
from ...numpy._support.arguments import broadcast_together
from ._entropies import _log_less, xlog1py, xlogy
from ._gamma import _stirling_error, betaln

_LOG_2PI = float(np.log(2 * np.pi))
# From here on Stirling's series is exact to rounding.
_LARGE = 10
# Up to here the halves of digits are numbers of float32.
_HUGE = 1e30


def gamma_weight(a, x, less=0):
    """log(x^(a - less) exp(-x) / gamma(a)), less being a number."""
    a, x = broadcast_together(a, x)
    large = (a >= _LARGE) & (x > 0) & jnp.isfinite(a) & jnp.isfinite(x)
    n, at = jnp.where(large, a, _LARGE), jnp.where(large, x, _LARGE)
    about = n * _log_less((at - n) / n, at / n) + 0.5 * (jnp.log(n) - _LOG_2PI) - _stirling_error(n) - less * jnp.log(at)
    b, y = jnp.where(large, 1, a), jnp.where(large, 1, x)
    return jnp.where(large, about, xlogy(b - less, y) - y - lax.lgamma(b))


def beta_weight(a, b, x, less=0):
    """log(x^(a - less) (1 - x)^(b - less) / B(a, b)), less being a number."""
    a, b, x = broadcast_together(a, b, x)
    large = (jnp.minimum(a, b) >= _LARGE) & (a + b < _HUGE) & (x > 0) & (x < 1)
    m, n, at = jnp.where(large, a, _LARGE), jnp.where(large, b, _LARGE), jnp.where(large, x, 0.5)
    p, q = m / (m + n), n / (m + n)
    off = _off_mean(m, n, at)
    rest = _stirling_error(m) + _stirling_error(n) - _stirling_error(m + n)
    spread = 0.5 * (jnp.log(m * q) - _LOG_2PI) - rest - less * jnp.log(at * (1 - at))
    about = m * _log_less(off / p, at / p) + n * _log_less(-off / q, (1 - at) / q) + spread
    a, b, x = jnp.where(large, 1, a), jnp.where(large, 1, b), jnp.where(large, 0.5, x)
    return jnp.where(large, about, xlogy(a - less, x) + xlog1py(b - less, -x) - betaln(a, b))


def _off_mean(m, n, x):
    """x - m / (m + n), without the rounding of the mean."""
    total = m + n
    lack = _sum_error(m, n, total)
    product = x * total
    rest = ((product - m) + _product_error(x, total, product)) + lax.stop_gradient(x) * lack
    return rest / total


def _sum_error(a, b, total):
    """The rounding error of a sum (Knuth)."""
    a, b, total = (lax.stop_gradient(v) for v in (a, b, total))
    c = total - a
    return (a - (total - c)) + (b - c)


def _product_error(a, b, product):
    """The rounding error of a product, from products of halves of the digits (Dekker)."""
    a, b, product = (lax.stop_gradient(v) for v in (a, b, product))
    factor = float((1 << 27) + 1 if a.dtype.itemsize == 8 else (1 << 12) + 1)

    def halves(v):
        c = v * factor
        high = c - (c - v)
        return high, v - high

    (p, q), (r, s) = halves(a), halves(b)
    return q * s - (((product - p * r) - q * r) - p * s)


def log_binomial(n, k, x):
    """log of the binomial coefficient times x^k (1 - x)^(n-k)."""
    rest = n - k
    # B(k, n - k) has no value at the ends, and is not needed where one of the numbers is small.
    large = (jnp.minimum(k, rest) >= _LARGE) & (n < _HUGE)
    m, o = jnp.where(large, k, _LARGE), jnp.where(large, rest, _LARGE)
    at = jnp.where(large, x, 0.5)
    about = beta_weight(m, o, at) - jnp.log(m * (o / (m + o)))
    k, rest, x = jnp.where(large, 1, k), jnp.where(large, 1, rest), jnp.where(large, 0.5, x)
    coefficient = -betaln(k + 1, rest + 1) - jnp.log1p(k + rest)
    # At the ends it is 1, with derivatives.
    coefficient = coefficient - lax.stop_gradient(jnp.where((k == 0) | (rest == 0), coefficient, 0))
    return jnp.where(large, about, xlogy(k, x) + xlog1py(rest, -x) + coefficient)


def lgamma_rest(a):
    """log gamma(a) minus (a log(a) - a)."""
    large = a >= _LARGE
    n = jnp.where(large, a, _LARGE)
    b = jnp.where(large, 1, a)
    return jnp.where(large, 0.5 * (_LOG_2PI - jnp.log(n)) + _stirling_error(n), lax.lgamma(b) - xlogy(b, b) + b)


def exact_sum(x):
    """The sum over the last axis as a number and what it lacks, by error-free additions of
    pairs.
    """
    lack = jnp.zeros(x.shape[:-1], x.dtype)
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = jnp.concatenate([x, jnp.zeros_like(x[..., :1])], axis=-1)
        a, b = x[..., ::2], x[..., 1::2]
        x = a + b
        lack = lack + jnp.sum(_sum_error(a, b, x), axis=-1)
    return x[..., 0] if x.shape[-1] else lack, lack


@custom_jvp
def log_multinomial(alpha, x):
    """log(gamma(sum alpha) prod_i x_i^alpha_i / gamma(alpha_i)), over the last axis; of an alpha
    that is 0, gamma counts as 1.
    """
    total, _ = exact_sum(alpha)
    mass, lack = exact_sum(x)
    some = (alpha > 0) & (x > 0)
    a, y = jnp.where(some, alpha, 1), jnp.where(some, x, 1)
    expected = total[..., None] * y
    less = a * _log_less((expected - a) / a, expected / a)
    powers = jnp.where(some, less, jnp.where(alpha > 0, -np.inf, -total[..., None] * x))
    some = alpha > 0
    rests = jnp.where(some, lgamma_rest(jnp.where(some, alpha, 1)), 0)
    # total (sum x - 1) is what the means take from the powers. What the rounded total lacks changes nothing to first order.
    return jnp.sum(powers - rests, axis=-1) + lgamma_rest(jnp.where(total > 0, total, 1)) * (total > 0) + total * ((mass - 1) + lack)


@log_multinomial.defjvp
def _log_multinomial_jvp(primals, tangents):
    (alpha, x), (dalpha, dx) = primals, tangents
    total = jnp.sum(alpha, axis=-1, keepdims=True)
    some = (alpha > 0) & (x > 0)
    a, y, n = jnp.where(some, alpha, 1), jnp.where(some, x, 1), jnp.where(total > 0, total, 1)
    t = (n * y - a) / a
    log = jnp.where(abs(t) < 0.5, jnp.log1p(jnp.where(abs(t) < 0.5, t, 0)), jnp.log(y) + jnp.log(n / a))
    by_alpha = jnp.where(some, log + _digamma_rest(n) - _digamma_rest(a), 0)
    by_x = jnp.where(some, a / y, jnp.where(alpha > 0, np.inf, 0))
    return log_multinomial(alpha, x), jnp.sum(by_alpha * dalpha + by_x * dx, axis=-1)


def _digamma_rest(a):
    """digamma(a) less log(a)."""
    large = a >= _LARGE
    n, b = jnp.where(large, a, _LARGE), jnp.where(large, 1, a)
    square = 1 / (n * n)
    series = 1 / 132
    for c in (-1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = series * square + c
    return jnp.where(large, -0.5 / n - series * square, lax.digamma(b) - jnp.log(b))
