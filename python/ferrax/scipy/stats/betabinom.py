"""The beta-binomial distribution: successes among n trials whose probability is drawn from the beta distribution of shapes a and b.

>>> pmf(1, 3, 1, 1)
Array(0.25, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..special import betaln
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
    return betaln(k + a, n - k + b) - betaln(a, b) - betaln(k + 1, n - k + 1) - jnp.log1p(n)


pmf = _family.density(logpmf, "Array([0.33333334, 0.33333334], dtype=float32, weak_type=True)")
