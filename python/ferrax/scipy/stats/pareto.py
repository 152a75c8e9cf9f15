"""The Pareto distribution, of density b x^-(b+1) for x >= 1.

>>> sf(2.0, 3)
Array(0.125, dtype=float32, weak_type=True)
"""

from ... import numpy as jnp
from . import _tails
from ._families import Continuous

_family = Continuous(low=1, valid=lambda b: b > 0, b="the shape, positive")


@_family
def logpdf(x, b):
    """log(b) - (b + 1) log(x).

    >>> logpdf(jnp.array([1.0, 2.0]), 2.0)
    Array([ 0.6931472, -1.3862944], dtype=float32)
    """
    return jnp.log(b) - (b + 1) * jnp.log(x)


pdf = _family.density(logpdf, "Array([2.  , 0.25], dtype=float32)")


@_family
def cdf(x, b):
    """1 - x^-b.

    >>> cdf(jnp.array([1.0, 2.0]), 2.0)
    Array([0.  , 0.75], dtype=float32)
    """
    return -jnp.expm1(-b * jnp.log(x))


@_family
def logcdf(x, b):
    """log(1 - x^-b).

    >>> logcdf(jnp.array([1.0, 2.0]), 2.0)
    Array([       -inf, -0.28768206], dtype=float32)
    """
    return _tails.log1mexp(b * jnp.log(x))


@_family
def sf(x, b):
    """x^-b.

    >>> sf(jnp.array([1.0, 2.0]), 2.0)
    Array([1.  , 0.25], dtype=float32)
    """
    return x**-b


@_family
def logsf(x, b):
    """-b log(x).

    >>> logsf(jnp.array([1.0, 2.0]), 2.0)
    Array([-0.       , -1.3862944], dtype=float32)
    """
    return -b * jnp.log(x)


@_family
def ppf(q, b):
    """(1 - q)^(-1 / b).

    >>> ppf(jnp.array([0.0, 0.75]), 2.0)
    Array([1., 2.], dtype=float32)
    """
    return jnp.exp(-jnp.log1p(-q) / b)
