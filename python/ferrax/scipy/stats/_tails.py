"""Logarithms of probabilities, exact in both tails, where the probabilities themselves underflow or
round to 1.

Invariant: p and q are a probability and its complement, each accurate in itself; the logarithm is
taken of the smaller.

    log_of(1.0, 1e-20) is -1e-20
"""

import functools

import numpy as np

from ... import lax, numpy as jnp
from ...custom_derivatives import custom_jvp
from ...numpy._support.arguments import broadcast_together
from ..special import betaln, gammaln
from ..special._entropies import _sum_of_tangents
from ..special._saddle_points import beta_weight, gamma_weight

_LOG2 = float(np.log(2))
# Below this the logarithm of a probability is found without the probability.
_TINY = 1e-30


def log_of(p, q):
    """log(p), where q = 1 - p."""
    return jnp.where(p < 0.5, jnp.log(p), jnp.log1p(-jnp.where(p < 0.5, 0.5, q)))


@custom_jvp
def log_minus_log(p):
    """log(-log(p)), whose slope is infinite at both ends of [0, 1]."""
    return jnp.log(-jnp.log(p))


@log_minus_log.defjvp
def _log_minus_log_jvp(primals, tangents):
    (p,), (dp,) = primals, tangents
    return log_minus_log(p), -dp / _size(p, jnp.log(p))


@custom_jvp
def log_minus_log1p(q):
    """log(-log(1 - q)), likewise."""
    return jnp.log(-jnp.log1p(-q))


@log_minus_log1p.defjvp
def _log_minus_log1p_jvp(primals, tangents):
    (q,), (dq,) = primals, tangents
    return log_minus_log1p(q), dq / _size(1 - q, jnp.log1p(-q))


def _size(p, log):
    """|p log(p)|, 0 at 0."""
    return abs(p * jnp.where(p == 0, 1, log))


@custom_jvp
def power(x, p):
    """x^p for x >= 0, with the slopes that it has at 0 from the right."""
    return lax.pow(*broadcast_together(x, p))


@functools.partial(power.defjvp, symbolic_zeros=True)
def _power_jvp(primals, tangents):
    (x, p), (dx, dp) = primals, tangents
    out = power(x, p)

    def by_base():
        pole = (p == 0) & (x < jnp.finfo(x.dtype).tiny)
        return jnp.where(pole, 0, p * power(x, jnp.where(pole, 1, p - 1)))

    def by_exponent():
        at_0 = x == 0
        return jnp.where(at_0, jnp.where(p > 0, 0, -np.inf), out * jnp.log(jnp.where(at_0, 1, x)))

    return out, _sum_of_tangents([(by_base, dx), (by_exponent, dp)], out)


def without_slope(where, x):
    """x with derivative 0: where a factor is an infinite power, which alone determines the limit of
    the product.
    """
    return jnp.where(where, lax.stop_gradient(x), x)


def log1p_square(x):
    """log(1 + x^2), where the square may overflow."""
    large = abs(x) > 1
    small = jnp.where(large, 1 / jnp.where(large, x, 1), x)
    return jnp.log1p(small * small) + jnp.where(large, 2 * jnp.log(jnp.where(large, abs(x), 1)), 0)


def log1mexp(x):
    """log(1 - exp(-x)) for x >= 0 (Maechler 2012, Accurately computing log(1 - exp(-|a|)))."""
    return jnp.where(x < _LOG2, jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))


def log1mexpexp(x):
    """log(1 - exp(-exp(-x))), which is -x where exp(-x) is small."""
    far = x > 50
    return jnp.where(far, -x, log1mexp(jnp.exp(-jnp.where(far, 0, x))))


def log_difference(a, b):
    """log(exp(a) - exp(b)) for a >= b; -inf where they are equal."""
    some = a > b
    return jnp.where(some, a + log1mexp(jnp.where(some, a - b, 1)), -np.inf)


def continued_fraction(term, like):
    """b0 + a1 / (b1 + a2 / (b2 + ..)) by Lentz's method (Thompson and Barnett 1986), elementwise.

    Args:
        term: of n = 0, 1, 2 .., the pair (a_n, b_n), arrays as `like`; a_0 is not read.
    """
    tiny = float(jnp.finfo(like.dtype).tiny)
    away = lambda x: jnp.where(x == 0, tiny, x)
    eps = float(jnp.finfo(like.dtype).eps)

    def step(state):
        n, value, c, d, _ = state
        a, b = term(n)
        d = 1 / away(b + a * d)
        c = away(b + a / c)
        return n + 1, value * c * d, c, d, lax.stop_gradient(abs(c * d - 1) > eps)

    first = away(jnp.broadcast_to(term(jnp.asarray(0.0, like.dtype))[1], like.shape))
    start = jnp.asarray(1.0, like.dtype), first, first, jnp.zeros_like(like), jnp.ones(like.shape, bool)
    return lax.while_loop(lambda s: jnp.any(s[4]) & (s[0] < 2000), step, start)[1]


def _chosen(far, tail, p, q):
    """The logarithm found in the tail, or that of the probability."""
    return jnp.where(far, tail, log_of(jnp.where(far, 0.5, p), q))


def log_gammaincc(a, x):
    """log Q(a, x), Q = Gamma(a, x) / Gamma(a)."""
    a, x = broadcast_together(a, x)
    q = lax.igammac(a, x)
    far = q < _TINY
    s, z = jnp.where(far, a, 1), jnp.where(far, x, 1)
    # DLMF 8.9.2: Gamma(s, z) = e^-z z^s / (z + 1 - s - 1 (1 - s) / (z + 3 - s - 2 (2 - s) / ..)).
    fraction = continued_fraction(lambda n: (-n * (n - s), z + 2 * n + 1 - s), z)
    return _chosen(far, gamma_weight(s, z) - jnp.log(fraction), q, lax.igamma(a, x))


def log_gammainc(a, x):
    """log P(a, x), P = 1 - Q."""
    a, x = broadcast_together(a, x)
    p = lax.igamma(a, x)
    far = (p < _TINY) & (x > 0)
    s, z = jnp.where(far, a, 1), jnp.where(far, x, 0.5)

    def term(n):
        # DLMF 8.9.1: gamma(s, z) = e^-z z^s / (s - s z / (s + 1 + z / (s + 2 - (s + 1) z / (s + 3 + 2 z / ..)))).
        half = jnp.floor(n / 2)
        return jnp.where(n % 2 == 0, half * z, -(s + half) * z), s + n

    log = _chosen(far, gamma_weight(s, z) - jnp.log(continued_fraction(term, z)), jnp.where(x == 0, 1, p), lax.igammac(a, x))
    # P ~ x^a / Gamma(a + 1) at 0
    return jnp.where(x == 0, a * jnp.log(jnp.where(x == 0, x, 1)) - gammaln(a + 1), log)


def betaincc(a, b, x):
    """1 - I_x(a, b), where 1 - x has lost digits of x or x is close to 1."""
    a, b, x = broadcast_together(a, b, x)
    below = x * (a + b) < a
    p = lax.betainc(jnp.where(below, a, b), jnp.where(below, b, a), jnp.where(below, x, 1 - x))
    return jnp.where(below, 1 - p, p)


def log_betainc(a, b, x, less=None):
    """log I_x(a, b). less: 1 - x, where that is what is known."""
    a, b, x = broadcast_together(a, b, x)
    p, q = (lax.betainc(a, b, x), betaincc(a, b, x)) if less is None else (betaincc(b, a, less), lax.betainc(b, a, less))
    far = (p < _TINY) & (x > 0)
    z = jnp.where(far, x, 0.5)

    def term(n):
        # DLMF 8.17.22: I_z(a, b) = z^a (1 - z)^b / (a B(a, b)) / (1 + d1 / (1 + d2 / ..)).
        m = jnp.floor(n / 2)
        k = jnp.maximum(m, 1)  # of the first term the numerator is 0, and of a = 1 so is a - 1
        even = m * (b - m) * z / ((a + 2 * k - 1) * (a + 2 * k))
        odd = -(a + m) * (a + b + m) * z / ((a + 2 * m) * (a + 2 * m + 1))
        return jnp.where(n % 2 == 0, even, odd), jnp.ones_like(z)

    tail = beta_weight(a, b, z) - jnp.log(a) - jnp.log(continued_fraction(term, z))
    log = _chosen(far, tail, jnp.where(x == 0, 1, p), q)
    # I_x ~ x^a / (a B(a, b)) at 0
    return jnp.where(x == 0, a * jnp.log(jnp.where(x == 0, x, 1)) - jnp.log(a) - betaln(a, b), log)
