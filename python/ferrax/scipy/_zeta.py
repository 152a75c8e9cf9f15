"""Hurwitz's zeta function, by the Euler-Maclaurin formula.

Invariant: no loop: ten terms are summed as they are and the formula's twelve corrections stand for the rest, whatever the arguments.

    zeta(x, q) = sum_(k<10) (q+k)^-x + w^(1-x) / (x-1) + w^-x / 2 + sum_j B_2j / (2j)! x (x+1) ... (x+2j-2) w^(1-x-2j),   w = q + 10
"""

import fractions
import math

from .. import numpy as jnp

_TERMS = 10


def _bernoulli_numbers(n):
    b = [fractions.Fraction(1)]
    for m in range(1, n + 1):
        b.append(-sum(math.comb(m + 1, k) * b[k] for k in range(m)) / (m + 1))
    return b


_CORRECTIONS = [float(b / math.factorial(2 * j)) for j, b in enumerate(_bernoulli_numbers(24)[::2])][1:]


def _positive(x, q):
    """For x > 1 and q > 0."""
    k = jnp.arange(_TERMS, dtype=q.dtype)
    head = ((q[..., None] + k) ** -x[..., None]).sum(-1)
    w = q + _TERMS
    power = w**-x
    tail, factor = power * w / (x - 1) + power / 2, x * power / w
    for j, c in enumerate(_CORRECTIONS):
        tail = tail + c * factor
        factor = factor * ((x + 2 * j + 1) / w) * ((x + 2 * j + 2) / w)
    return head + tail


def zeta(x, q):
    """The sum of (q + k) ** -x over k >= 0, for arrays of one shape and float dtype.

    NaN for x < 1, and for q < 0 unless x is whole; inf at poles.
    """
    finite = (x > 1) & jnp.isfinite(x) & jnp.isfinite(q)
    above = finite & (q > 0)
    below = finite & (q < 0) & (x == jnp.floor(x)) & (q != jnp.floor(q))
    safe_x = jnp.where(above | below, x, 2)
    # Below zero: the terms after zero, and those before it, which are another such sum's first ones, up to the sign.
    f = jnp.where(below, q - jnp.floor(q), 0.5)
    start, end = jnp.where(above, q, f), jnp.where(below, 1 - q, 1.5)
    out = _positive(safe_x, start)
    sign = jnp.where(safe_x % 2 == 0, 1, -1)
    out = jnp.where(below, out + sign * (_positive(safe_x, 1 - f) - _positive(safe_x, end)), out)
    whole = (q <= 0) & (q == jnp.floor(q))
    pole = (x == 1) | (whole & (x % 2 == 0)) | ((q == 0) & (x > 1))
    limit = ((q == jnp.inf) & (x > 1)) | ((x == jnp.inf) & (q > 1))
    edge = jnp.where(limit, 0, jnp.where((x == jnp.inf) & (q == 1), 1, jnp.where(pole & ~jnp.isnan(q), jnp.inf, jnp.nan)))
    return jnp.where(above | below, out, edge).astype(q.dtype)
