"""Draws from the tails of the normal distribution, by the inverse of its survival function Q.

Far out, erf is 1 to rounding, and draws by its inverse are a few numbers over and over. There a
draw is low + d, where

    log Q(low + d) - log Q(low) = log(1 - v m)        v uniform, m the fraction of the tail beyond low that is not beyond high

Q is the density times Mills' ratio, so the left side is -(low + d / 2) d and a logarithm that
varies little: d is known to rounding, however far out the interval lies and however narrow it is.

Invariant: low is at least 1.5, so that the continued fraction of Mills' ratio has converged.
"""

import numpy as np

from .. import lax, numpy as jnp
from ..custom_derivatives import custom_jvp

# From here on draws by erf's inverse are few: of the numbers up to 1 some hundred are left.
_FAR = {"float64": 6.0, "float32": 4.0, "float16": 2.0}
_LEVELS, _STEPS = 20, 5
_LEAST = 1.5
# Q there
MOST = 0.06680720126885807


def is_far(low, high, dtype):
    """Where (low, high) is an interval in the tail above 0, or in the one below."""
    far = _FAR.get(np.dtype(dtype).name, 1.5)
    return (low < high) & ((low > far) & (low < np.inf) | (high < -far) & (high > -np.inf))


def _mills(x):
    """Q over the density, 1 / (x + 1 / (x + 2 / (x + ..))) (DLMF 7.9.1)."""
    rest = jnp.zeros_like(x)
    for n in range(_LEVELS, 0, -1):
        rest = n / (x + rest)
    return 1 / (x + rest)


@custom_jvp
def _beyond(v, low, high):
    return low + _distance(jnp.log1p(v * jnp.expm1(_survives(high - low, low))), low)


def _survives(d, low):
    """log Q(low + d) - log Q(low)."""
    return jnp.log(_mills(low + d) / _mills(low)) - d * (low + 0.5 * d)


def _distance(target, low):
    """d of which _survives(d, low) is the target."""
    # Mills' ratio falls, so this is too far; from there Newton's method on a concave function comes down to the root.
    d = -2 * target / (low + jnp.sqrt(low * low - 2 * target))
    for _ in range(_STEPS):
        d = jnp.maximum(d + (_survives(d, low) - target) * _mills(low + d), 0)
    return d


@_beyond.defjvp
def _beyond_jvp(primals, tangents):
    # Q(x) = (1 - v) Q(low) + v Q(high)
    (v, low, high), (_, dlow, dhigh) = primals, tangents
    x = _beyond(v, low, high)
    by_low = jnp.exp(0.5 * (x - low) * (x + low) + jnp.log1p(-v))
    by_high = v * jnp.exp(0.5 * (x - high) * (x + high))
    return x, by_low * dlow + by_high * dhigh


def draws(v, low, high, far, dtype):
    """Draws from intervals far in the tail, for uniform v in [0, 1)."""
    wide = np.dtype(dtype) if np.dtype(dtype).itemsize >= 4 else np.dtype(np.float32)
    v, low, high = (lax.convert_element_type(x, wide) for x in (v, low, high))
    below = low < 0
    near, end = jnp.where(far, jnp.where(below, -high, low), 8), jnp.where(far, jnp.where(below, -low, high), np.inf)
    x = _beyond(v, near, end)
    return lax.convert_element_type(jnp.where(below, -x, x), dtype)


@custom_jvp
def upper_quantile(p):
    """x of which Q(x) = p, for p from 0 to MOST."""
    return _LEAST + _distance(jnp.log(p) - float(np.log(MOST)), jnp.full_like(p, _LEAST))


@upper_quantile.defjvp
def _upper_quantile_jvp(primals, tangents):
    (p,), (dp,) = primals, tangents
    x = upper_quantile(p)
    return x, -dp * (float(np.sqrt(2 * np.pi)) * jnp.exp(0.5 * x * x))


def from_tail(unit, rest, below, beyond, lower, upper):
    """The quantile of the finer uniform number, from the probability of the tail that it is in."""
    dtype = unit.dtype
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    eps = float(jnp.finfo(dtype).eps)
    unit, rest, lower, upper = (lax.convert_element_type(x, wide) for x in (unit, rest, lower, upper))
    # The image of the upper tail is a lower one.
    near, far = jnp.where(below, lower, -upper), jnp.where(below, upper, -lower)
    share = jnp.where(below, unit + eps * rest, (1 - unit) - eps * rest)
    start = lax.erfc(-near / float(np.sqrt(2))) / 2
    p = start + share * (lax.erfc(-far / float(np.sqrt(2))) / 2 - start)
    x = upper_quantile(jnp.where(beyond, p, MOST))
    return lax.convert_element_type(jnp.where(below, -x, x), dtype)
