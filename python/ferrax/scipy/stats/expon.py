"""The exponential distribution, of density exp(-x) for x >= 0.

>>> sf(2.0, scale=2.0)
Array(0.36787945, dtype=float32, weak_type=True)
"""

from ... import numpy as jnp
from . import _tails
from ._families import Continuous

_family = Continuous(low=0)


@_family
def logpdf(x):
    """-x.

    >>> logpdf(jnp.array([1.0, 2.0]))
    Array([-1., -2.], dtype=float32)
    """
    return -x


pdf = _family.density(logpdf, "Array([0.36787945, 0.13533528], dtype=float32)")


@_family
def cdf(x):
    """1 - exp(-x).

    >>> cdf(jnp.array([1.0, 2.0]))
    Array([0.63212055, 0.86466473], dtype=float32)
    """
    return -jnp.expm1(-x)


@_family
def logcdf(x):
    """log(1 - exp(-x)).

    >>> logcdf(jnp.array([1.0, 2.0]))
    Array([-0.45867515, -0.14541346], dtype=float32)
    """
    return _tails.log1mexp(x)


@_family
def sf(x):
    """exp(-x).

    >>> sf(jnp.array([1.0, 2.0]))
    Array([0.36787945, 0.13533528], dtype=float32)
    """
    return jnp.exp(-x)


@_family
def logsf(x):
    """-x.

    >>> logsf(jnp.array([1.0, 2.0]))
    Array([-1., -2.], dtype=float32)
    """
    return -x


@_family
def ppf(q):
    """-log(1 - q).

    >>> ppf(jnp.array([0.0, 0.5]))
    Array([0.       , 0.6931472], dtype=float32)
    """
    return -jnp.log1p(-q)
