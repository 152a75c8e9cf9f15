"""The right-skewed Gumbel distribution, of density exp(-(x + exp(-x))).

>>> cdf(0.0)
Array(0.36787945, dtype=float32, weak_type=True)
"""

from ... import numpy as jnp
from ._families import Continuous
from ._tails import log1mexpexp

_family = Continuous()


@_family
def logpdf(x):
    """-(x + exp(-x))."""
    return -(x + jnp.exp(-x))


pdf = _family.density(logpdf)


@_family
def cdf(x):
    """exp(-exp(-x))."""
    return jnp.exp(-jnp.exp(-x))


@_family
def logcdf(x):
    """-exp(-x)."""
    return -jnp.exp(-x)


@_family
def sf(x):
    """1 - exp(-exp(-x))."""
    return -jnp.expm1(-jnp.exp(-x))


@_family
def logsf(x):
    """log(1 - exp(-exp(-x)))."""
    return log1mexpexp(x)


@_family
def ppf(p):
    """-log(-log(p))."""
    return -jnp.log(-jnp.log(p))
