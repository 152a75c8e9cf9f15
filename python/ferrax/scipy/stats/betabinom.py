"""The beta-binomial distribution: successes among n trials whose probability is drawn from the beta
distribution of shapes a and b.

>>> pmf(1, 3, 1, 1)
Array(0.25, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import lax, numpy as jnp
from ..special import _saddle_points, betaln
from ._families import Discrete

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Discrete(
    high=lambda n, a, b: n, valid=lambda n, a, b: (n >= 0) & (a > 0) & (b > 0),
    n="the number of trials, not negative", a="the first shape, positive", b="the second shape, positive",
)  # fmt: skip


@_family
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """log(n over k) + log(B(k + a, n - k + b)) - log(B(a, b)).

    >>> logpmf(jnp.array([0, 1]), 2, 1.0, 1.0)
    Array([-1.0986123, -1.0986123], dtype=float32, weak_type=True)
    """
    # All three at one point, where their powers cancel and none is far from its saddle point.
    large = (n + a + b >= 20) & jnp.isfinite(n + a + b)
    at = lax.stop_gradient((k + a) / (n + a + b))
    large = large & (at > 0) & (at < 1)
    m, l, c, d, at = (jnp.where(large, v, w) for v, w in ((n, 20), (k, 10), (a, 10), (b, 10), (at, 0.5)))
    about = _saddle_points.log_binomial(m, l, at) + _saddle_points.beta_weight(c, d, at) - _saddle_points.beta_weight(l + c, m - l + d, at)
    n, k, a, b = (jnp.where(large, 1, v) for v in (n, k, a, b))
    return jnp.where(large, about, betaln(k + a, n - k + b) - betaln(a, b) - betaln(k + 1, n - k + 1) - jnp.log1p(n))


pmf = _family.density(logpmf, "Array([0.33333334, 0.33333334], dtype=float32, weak_type=True)")
