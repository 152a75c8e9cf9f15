"""The binomial distribution: successes among n trials of probability p.

>>> pmf(2, 4, 0.5)
Array(0.375, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..special import _saddle_points
from ._families import Discrete

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Discrete(
    high=lambda n, p: n, valid=lambda n, p: (n >= 0) & (p >= 0) & (p <= 1), n="the number of trials, not negative", p="the probability of success"
)  # fmt: skip


@_family
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """log(n over k) + k log(p) + (n - k) log(1 - p).

    >>> logpmf(jnp.array([0, 1]), 2, 0.5)
    Array([-1.3862944, -0.6931472], dtype=float32, weak_type=True)
    """
    return _saddle_points.log_binomial(n, k, p)


pmf = _family.density(logpmf, "Array([0.25, 0.5 ], dtype=float32, weak_type=True)")
