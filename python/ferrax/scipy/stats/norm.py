"""The normal distribution, of density exp(-x^2 / 2) / sqrt(2 pi).

>>> logpdf(0.0, scale=2.0)
Array(-1.6120857, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..special import log_ndtr, ndtr, ndtri
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous()


@_family
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-x^2 / 2 - log(2 pi) / 2.

    >>> logpdf(jnp.array([0.0, 1.0]))
    Array([-0.9189385, -1.4189385], dtype=float32)
    """
    return -(x * x + float(np.log(2 * np.pi))) / 2


pdf = _family.density(logpdf, "Array([0.3989423 , 0.24197073], dtype=float32)")


@_family
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """erfc(-x / sqrt(2)) / 2.

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.5      , 0.8413447], dtype=float32)
    """
    return ndtr(x)


@_family
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(ndtr(x)).

    >>> logcdf(jnp.array([0.0, 1.0]))
    Array([-0.6931472 , -0.17275378], dtype=float32)
    """
    return log_ndtr(x)


@_family
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """cdf(-x).

    >>> sf(jnp.array([0.0, 1.0]))
    Array([0.5       , 0.15865526], dtype=float32)
    """
    return ndtr(-x)


@_family
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """logcdf(-x).

    >>> logsf(jnp.array([0.0, 1.0]))
    Array([-0.6931472, -1.8410217], dtype=float32)
    """
    return log_ndtr(-x)


@_family
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """ndtri(q).

    >>> ppf(jnp.array([0.5, 0.75]))
    Array([0.        , 0.67448974], dtype=float32)
    """
    return ndtri(q)


@_family
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-ndtri(q).

    >>> isf(jnp.array([0.25, 0.75]))
    Array([ 0.67448974, -0.67448974], dtype=float32)
    """
    return -ndtri(q)
