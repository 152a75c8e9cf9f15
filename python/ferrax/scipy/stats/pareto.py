"""The Pareto distribution, of density b x^-(b+1) for x >= 1.

>>> sf(2.0, 3)
Array(0.125, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from . import _tails
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous(low=1, valid=lambda b: b > 0, b="the shape, positive")


@_family
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(b) - (b + 1) log(x).

    >>> logpdf(jnp.array([1.0, 2.0]), 2.0)
    Array([ 0.6931472, -1.3862944], dtype=float32)
    """
    return jnp.log(b) - (b + 1) * jnp.log(x)


pdf = _family.density(logpdf, "Array([2.  , 0.25], dtype=float32)")


@_family
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """1 - x^-b.

    >>> cdf(jnp.array([1.0, 2.0]), 2.0)
    Array([0.  , 0.75], dtype=float32)
    """
    return -jnp.expm1(-b * jnp.log(x))


@_family
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(1 - x^-b).

    >>> logcdf(jnp.array([1.0, 2.0]), 2.0)
    Array([       -inf, -0.28768206], dtype=float32)
    """
    return _tails.log1mexp(b * jnp.log(x))


@_family
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """x^-b.

    >>> sf(jnp.array([1.0, 2.0]), 2.0)
    Array([1.  , 0.25], dtype=float32)
    """
    return x**-b


@_family
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-b log(x).

    >>> logsf(jnp.array([1.0, 2.0]), 2.0)
    Array([-0.       , -1.3862944], dtype=float32)
    """
    return -b * jnp.log(x)


@_family
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """(1 - q)^(-1 / b).

    >>> ppf(jnp.array([0.0, 0.75]), 2.0)
    Array([1., 2.], dtype=float32)
    """
    return jnp.exp(-jnp.log1p(-q) / b)
