"""The regularised incomplete beta function, by its continued fraction.

Invariant: the fraction is taken on the side where it converges in O(sqrt(max(a, b))) steps; the other side is one minus it.

    I_x(a, b) = x^a (1-x)^b / (a B(a, b)) / (1 + d_1 / (1 + d_2 / (1 + ...))) = 1 - I_(1-x)(b, a)
    d_(2m) = m (b-m) x / ((a+2m-1) (a+2m))          d_(2m+1) = -(a+m) (a+b+m) x / ((a+2m) (a+2m+1))
"""

import numpy as np

from .. import lax, numpy as jnp
from ..custom_derivatives import SymbolicZero, custom_jvp

_MOST_STEPS = 20_000


def _fraction(a, b, x):
    """1 + d_1 / (1 + d_2 / ...), by Lentz's method."""
    eps = np.asarray(jnp.finfo(a.dtype).eps, a.dtype)[()]
    tiny = np.asarray(jnp.finfo(a.dtype).tiny, a.dtype)[()] / eps
    away = lambda v: jnp.where(jnp.abs(v) < tiny, tiny, v)

    def advance(h, c, d, term):
        d, c = 1 / away(1 + term * d), away(1 + term / c)
        return h * c * d, c, d

    def step(state):
        m, h, c, d, _ = state
        k = m.astype(a.dtype)
        before = h
        h, c, d = advance(h, c, d, -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1)))
        k = k + 1
        h, c, d = advance(h, c, d, k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)))
        return m + 1, h, c, d, jnp.abs(h - before)

    def going(state):
        m, h, *_, moved = state
        return jnp.any(moved > eps * jnp.abs(h)) & (m < _MOST_STEPS)

    one = jnp.ones_like(a)
    return lax.while_loop(going, step, step((np.int32(0), one, one, jnp.zeros_like(a), one)))[1]


def _log_weight(a, b, x):
    """log of x^a (1-x)^b / B(a, b). Where a and b are large by Stirling's series, for the plain formula subtracts large numbers."""
    large = (a >= 10) & (b >= 10)
    m, n = jnp.where(large, a, 10), jnp.where(large, b, 10)
    p = m / (m + n)
    off = jnp.where(large, x, 0.5) - p
    s, t = off / p, -off / (1 - p)
    spread = 0.5 * jnp.log(m * (n / (m + n)) / (2 * np.pi)) - (1 / m + 1 / n - 1 / (m + n)) / 12
    stirling = m * (jnp.log1p(s) - s) + n * (jnp.log1p(t) - t) + spread
    plain = a * jnp.log(x) + b * jnp.log1p(-x) + lax.lgamma(a + b) - lax.lgamma(a) - lax.lgamma(b)
    return jnp.where(large, stirling, plain)


@custom_jvp
def incomplete_beta(a, b, x):
    """I_x(a, b), for arrays of one shape and float dtype: NaN unless a, b >= 0, one of them above 0, and 0 <= x <= 1."""
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & jnp.isfinite(a) & jnp.isfinite(b)
    safe_a, safe_b, safe_x = jnp.where(inside, a, 1), jnp.where(inside, b, 1), jnp.where(inside, x, 0.5)
    near = safe_x < (safe_a + 1) / (safe_a + safe_b + 2)
    first, second = jnp.where(near, safe_a, safe_b), jnp.where(near, safe_b, safe_a)
    part = jnp.exp(_log_weight(safe_a, safe_b, safe_x)) / (first * _fraction(first, second, jnp.where(near, safe_x, 1 - safe_x)))
    value = jnp.where(near, part, 1 - part)
    legal = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    # The whole weight stands at 0 where a is 0 or b infinite, and at 1 where b is 0 or a infinite; nothing stands below x = 0.
    at_zero, at_one = (a == 0) | (b == jnp.inf), (b == 0) | (a == jnp.inf)
    ends = jnp.where((at_zero & (x > 0)) | (x == 1), 1, 0)
    edge = jnp.where(legal & ~(at_zero & at_one), ends, jnp.nan)
    return jnp.where(inside, value, edge).astype(a.dtype)


def _incomplete_beta_jvp(primals, tangents):
    (a, b, x), (da, db, dx) = primals, tangents
    if type(da) is not SymbolicZero or type(db) is not SymbolicZero:
        raise ValueError("Betainc gradient with respect to a and b not supported.")
    out = incomplete_beta(a, b, x)
    return out, dx if type(dx) is SymbolicZero else jnp.exp(_log_weight(a, b, x)) / (x * (1 - x)) * dx


incomplete_beta.defjvp(_incomplete_beta_jvp, symbolic_zeros=True)
