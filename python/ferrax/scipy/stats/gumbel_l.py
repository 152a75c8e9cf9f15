"""The left-skewed Gumbel distribution, with density exp(x - exp(x)).

>>> sf(0.0)
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

_family = Continuous()


@_family
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """x - exp(x).

    >>> logpdf(jnp.array([0.0, 1.0]))
    Array([-1.       , -1.7182817], dtype=float32)
    """
    return x - jnp.exp(x)


pdf = _family.density(logpdf, "Array([0.36787945, 0.1793741 ], dtype=float32)")


@_family
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """1 - exp(-exp(x)).

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.63212055, 0.93401194], dtype=float32)
    """
    return -jnp.expm1(-jnp.exp(x))


@_family
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(1 - exp(-exp(x))).

    >>> logcdf(jnp.array([0.0, 1.0]))
    Array([-0.45867515, -0.06826603], dtype=float32)
    """
    return _tails.log1mexpexp(-x)


@_family
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """exp(-exp(x)).

    >>> sf(jnp.array([0.0, 1.0]))
    Array([0.36787945, 0.06598804], dtype=float32)
    """
    return jnp.exp(-jnp.exp(x))


@_family
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-exp(x).

    >>> logsf(jnp.array([0.0, 1.0]))
    Array([-1.       , -2.7182817], dtype=float32)
    """
    return -jnp.exp(x)


@_family
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(-log(1 - p)).

    >>> ppf(jnp.array([0.5, 0.75]))
    Array([-0.36651292,  0.32663426], dtype=float32)
    """
    return _tails.log_minus_log1p(p)
