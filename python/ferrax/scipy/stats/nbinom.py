"""The negative binomial distribution: failures before the n-th success, in trials of probability p.

>>> pmf(1, 2, 0.5)
Array(0.25, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..special import _saddle_points, betaln, xlog1py
from ._families import Discrete

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Discrete(
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1), n="the number of successes, positive", p="the probability of success, positive"
)  # fmt: skip


@_family
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """log(k + n - 1 over k) + n log(p) + k log(1 - p).

    >>> logpmf(jnp.array([0, 1]), 2, 0.5)
    Array([-1.3862944, -1.3862944], dtype=float32, weak_type=True)
    """
    # (k + n - 1 over k) is 1 / (k B(n, k)), which Stirling's series gives.
    large = (jnp.minimum(n, k) >= 10) & (p < 1)
    m, l, at = jnp.where(large, n, 10), jnp.where(large, k, 10), jnp.where(large, p, 0.5)
    about = _saddle_points.beta_weight(m, l, at) - jnp.log(l)
    n, k, p = jnp.where(large, 1, n), jnp.where(large, 1, k), jnp.where(large, 0.5, p)
    return jnp.where(large, about, n * jnp.log(p) + xlog1py(k, -p) - jnp.log(n + k) - betaln(n, k + 1))


pmf = _family.density(logpmf, "Array([0.25, 0.25], dtype=float32, weak_type=True)")
