"""The exponential distribution, of density exp(-x) for x >= 0.

>>> sf(2.0, scale=2.0)
Array(0.36787945, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from . import _tails
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous(low=0)


@_family
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-x.

    >>> logpdf(jnp.array([1.0, 2.0]))
    Array([-1., -2.], dtype=float32)
    """
    return -x


pdf = _family.density(logpdf, "Array([0.36787945, 0.13533528], dtype=float32)")


@_family
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """1 - exp(-x).

    >>> cdf(jnp.array([1.0, 2.0]))
    Array([0.63212055, 0.86466473], dtype=float32)
    """
    return -jnp.expm1(-x)


@_family
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(1 - exp(-x)).

    >>> logcdf(jnp.array([1.0, 2.0]))
    Array([-0.45867515, -0.14541346], dtype=float32)
    """
    return _tails.log1mexp(x)


@_family
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """exp(-x).

    >>> sf(jnp.array([1.0, 2.0]))
    Array([0.36787945, 0.13533528], dtype=float32)
    """
    return jnp.exp(-x)


@_family
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-x.

    >>> logsf(jnp.array([1.0, 2.0]))
    Array([-1., -2.], dtype=float32)
    """
    return -x


@_family
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-log(1 - q).

    >>> ppf(jnp.array([0.0, 0.5]))
    Array([0.       , 0.6931472], dtype=float32)
    """
    return -jnp.log1p(-q)
