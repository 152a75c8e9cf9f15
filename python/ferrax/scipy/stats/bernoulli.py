"""The Bernoulli distribution: 1 with probability p, else 0.

>>> pmf(1, 0.25)
Array(0.25, dtype=float32, weak_type=True)
"""

from ... import numpy as jnp
from ..special import xlog1py, xlogy
from ._families import Discrete

_valid = lambda p: (p >= 0) & (p <= 1)
_family = Discrete(high=1, valid=_valid, p="the probability of 1")
_unmoved = Discrete(high=1, valid=_valid, moved=False, p="the probability of 1")


@_family
def logpmf(k, p):
    """k log(p) + (1 - k) log(1 - p).

    >>> logpmf(jnp.array([0, 1]), 0.25)
    Array([-0.28768206, -1.3862944 ], dtype=float32, weak_type=True)
    """
    return xlogy(k, p) + xlog1py(1 - k, -p)


pmf = _family.density(logpmf, "Array([0.75, 0.25], dtype=float32, weak_type=True)")


@_unmoved
def cdf(k, p):
    """1 - p at 0, 1 at 1.

    >>> cdf(jnp.array([0, 1]), 0.25)
    Array([0.75, 1.  ], dtype=float32, weak_type=True)
    """
    return jnp.where(k < 1, 1 - p, 1)


@_unmoved
def ppf(q, p):
    """0 up to 1 - p, then 1.

    >>> ppf(jnp.array([0.5, 0.9]), 0.25)
    Array([0., 1.], dtype=float32)
    """
    return jnp.where(q <= 1 - p, jnp.zeros_like(q), jnp.ones_like(q))
