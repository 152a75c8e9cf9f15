"""The Pareto distribution, of density b x^-(b+1) for x >= 1.

>>> sf(2.0, 3)
Array(0.125, dtype=float32, weak_type=True)
"""

from ... import numpy as jnp
from ._families import Continuous
from ._tails import log1mexp

_family = Continuous(low=1, valid=lambda b: b > 0, b="the shape, positive")


@_family
def logpdf(x, b):
    """log(b) - (b + 1) log(x)."""
    return jnp.log(b) - (b + 1) * jnp.log(x)


pdf = _family.density(logpdf)


@_family
def cdf(x, b):
    """1 - x^-b."""
    return -jnp.expm1(-b * jnp.log(x))


@_family
def logcdf(x, b):
    """log(1 - x^-b)."""
    return log1mexp(b * jnp.log(x))


@_family
def sf(x, b):
    """x^-b."""
    return x**-b


@_family
def logsf(x, b):
    """-b log(x)."""
    return -b * jnp.log(x)


@_family
def ppf(q, b):
    """(1 - q)^(-1 / b)."""
    return jnp.exp(-jnp.log1p(-q) / b)
