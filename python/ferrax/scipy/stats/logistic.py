"""The logistic distribution, of density exp(-x) / (1 + exp(-x))^2.

>>> ppf(0.5, loc=2.0)
Array(2., dtype=float32, weak_type=True)
"""

from ... import numpy as jnp
from ..special import expit, logit
from ._families import Continuous

_family = Continuous()


@_family
def logpdf(x):
    """-x - 2 log(1 + exp(-x)), which is even."""
    return -abs(x) - 2 * jnp.log1p(jnp.exp(-abs(x)))


pdf = _family.density(logpdf)


@_family
def cdf(x):
    """1 / (1 + exp(-x))."""
    return expit(x)


@_family
def sf(x):
    """cdf(-x)."""
    return expit(-x)


@_family
def ppf(x):
    """log(x / (1 - x))."""
    return logit(x)


@_family
def isf(x):
    """-ppf(x)."""
    return -logit(x)
