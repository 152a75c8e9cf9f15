"""The logistic distribution, of density exp(-x) / (1 + exp(-x))^2.

>>> ppf(0.5, loc=2.0)
Array(2., dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..special import expit, logit
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous()


@_family
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-x - 2 log(1 + exp(-x)), which is even.

    >>> logpdf(jnp.array([0.0, 1.0]))
    Array([-1.3862944, -1.6265234], dtype=float32)
    """
    return -abs(x) - 2 * jnp.log1p(jnp.exp(-abs(x)))


pdf = _family.density(logpdf, "Array([0.25      , 0.19661194], dtype=float32)")


@_family
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """1 / (1 + exp(-x)).

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.5      , 0.7310586], dtype=float32)
    """
    return expit(x)


@_family
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """cdf(-x).

    >>> sf(jnp.array([0.0, 1.0]))
    Array([0.5      , 0.2689414], dtype=float32)
    """
    return expit(-x)


@_family
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(x / (1 - x)).

    >>> ppf(jnp.array([0.5, 0.75]))
    Array([0.       , 1.0986123], dtype=float32)
    """
    return logit(x)


@_family
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-ppf(x).

    >>> isf(jnp.array([0.25, 0.75]))
    Array([ 1.0986123, -1.0986123], dtype=float32)
    """
    return -logit(x)
