"""The Bernoulli distribution: 1 with probability p, else 0.

>>> pmf(1, 0.25)
Array(0.25, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..special import xlog1py, xlogy
from ._families import Discrete

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Discrete(high=1, valid=lambda p: (p >= 0) & (p <= 1), p="the probability of 1")


@_family
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """k log(p) + (1 - k) log(1 - p).

    >>> logpmf(jnp.array([0, 1]), 0.25)
    Array([-0.28768206, -1.3862944 ], dtype=float32, weak_type=True)
    """
    return xlogy(k, p) + xlog1py(1 - k, -p)


pmf = _family.density(logpmf, "Array([0.75, 0.25], dtype=float32, weak_type=True)")


@_family
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """1 - p at 0, 1 at 1.

    >>> cdf(jnp.array([0, 1]), 0.25)
    Array([0.75, 1.  ], dtype=float32, weak_type=True)
    """
    return jnp.where(k < 1, 1 - p, 1)


@_family
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """0 up to 1 - p, then 1.

    >>> ppf(jnp.array([0.5, 0.9]), 0.25)
    Array([0., 1.], dtype=float32)
    """
    return jnp.where(q <= 1 - p, jnp.zeros_like(q), jnp.ones_like(q))
