"""The exponential distribution, of density exp(-x) for x >= 0.

>>> sf(2.0, scale=2.0)
Array(0.36787945, dtype=float32, weak_type=True)
"""

from ... import numpy as jnp
from ._families import Continuous
from ._tails import log1mexp

_family = Continuous(low=0)


@_family
def logpdf(x):
    """-x."""
    return -x


pdf = _family.density(logpdf)


@_family
def cdf(x):
    """1 - exp(-x)."""
    return -jnp.expm1(-x)


@_family
def logcdf(x):
    """log(1 - exp(-x))."""
    return log1mexp(x)


@_family
def sf(x):
    """exp(-x)."""
    return jnp.exp(-x)


@_family
def logsf(x):
    """-x."""
    return -x


@_family
def ppf(q):
    """-log(1 - q)."""
    return -jnp.log1p(-q)
