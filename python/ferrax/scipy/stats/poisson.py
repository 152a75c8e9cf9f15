"""The Poisson distribution with mean mu.

>>> cdf(0, 1.0)
Array(0.3678795, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import lax, numpy as jnp
from ..._base import shapes as _shapes
from ..._tracing.jit import jit
from .. import _halves
from .._domains import nan_outside
from ..special import _saddle_points, gammaincc, gammaln, xlogy
from . import _families
from ._families import Discrete

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Discrete(valid=lambda mu: mu >= 0, mu="the mean, not negative")
# Up to which mean the sum is taken, and of how many terms; above it the expansion. The second pair is for less than 64 bits.
_FAR, _FAR_32 = (100, 260), (16, 64)
# The entropy is log(2 pi e mu) / 2 - sum of c_k / mu^k (Evans, Boersma, Blachman, Jagers 1988, The entropy of a Poisson distribution, SIAM Review 30).
_EXPANSION = (1 / 12, 1 / 24, 19 / 360, 9 / 80, 863 / 2520, 1375 / 1008, 33953 / 5040)


@_family
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """k log(mu) - mu - log(k!).

    >>> logpmf(jnp.array([0, 1]), 2.0)
    Array([-2.       , -1.3068528], dtype=float32, weak_type=True)
    """
    # With k! = k gamma(k) where Stirling's series serves.
    large = (k >= 10) & (mu > 0) & jnp.isfinite(k) & jnp.isfinite(mu)
    n, at = jnp.where(large, k, 10), jnp.where(large, mu, 1)
    about = _saddle_points.gamma_weight(n, at) - jnp.log(n)
    k, mu = jnp.where(large, 1, k), jnp.where(large, 1, mu)
    return jnp.where(large, about, xlogy(k, mu) - mu - gammaln(k + 1))


pmf = _family.density(logpmf, "Array([0.13533528, 0.27067056], dtype=float32, weak_type=True)")


@_family
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """gammaincc(k + 1, mu), k being rounded down.

    >>> cdf(jnp.array([0, 1]), 2.0)
    Array([0.13533528, 0.4060058 ], dtype=float32, weak_type=True)
    """
    return gammaincc(k + 1, mu)


@jit
@_halves.in_single
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy in nats: -sum over k of P(k) log(P(k)).

    Args:
        mu: the mean, not negative.
        loc: the location, which does not matter.

    Returns:
        a float array of mu's shape; NaN for a negative mean.

    Raises:
        TypeError: mu is a list, complex, or not a number.

    >>> jax.scipy.stats.poisson.entropy(0.0)
    Array(0., dtype=float32)
    """
    mu, loc = _families.reals("poisson.entropy", mu, loc)
    mu = jnp.broadcast_to(mu, _shapes.common_shape(mu.shape, loc.shape))
    far, terms = _FAR if mu.dtype.itemsize == 8 else _FAR_32
    near = mu <= far
    small, large = jnp.where(near & (mu > 0), mu, 1), jnp.where(near, far, mu)
    log_mu = jnp.log(small)

    def add(k, total):
        k = jnp.asarray(k, mu.dtype)
        log_p = k * log_mu - small - gammaln(k + 1)
        return total - jnp.exp(log_p) * log_p

    total = lax.fori_loop(0, terms, add, jnp.zeros_like(small))
    series = sum(c * large ** -(i + 1) for i, c in reversed([*enumerate(_EXPANSION)]))
    expansion = 0.5 * (jnp.log(large) + float(np.log(2 * np.pi) + 1)) - series
    return nan_outside(mu >= 0, jnp.where(mu == 0, 0, jnp.where(near, total, expansion)), mu)
