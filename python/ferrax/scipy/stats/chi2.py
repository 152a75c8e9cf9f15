"""The chi-squared distribution of df degrees of freedom: the gamma distribution of shape df / 2 and
scale 2.

>>> sf(2.0, 2)
Array(0.3678795, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..special import _saddle_points, gammainc, gammaincc, gammaln, xlogy
from . import _tails
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous(low=0, valid=lambda df: df > 0, df="the degrees of freedom, positive")


@_family
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """(df/2 - 1) log(x) - x/2 - log(gamma(df/2)) - df/2 log(2).

    >>> logpdf(jnp.array([1.0, 2.0]), 3.0)
    Array([-1.4189385, -1.5723649], dtype=float32)
    """
    large = df >= 20
    n, y = jnp.where(large, df, 20), jnp.where(large, x, 1)
    about = _saddle_points.gamma_weight(n / 2, y / 2, less=1) - float(np.log(2))
    m = jnp.where(large, 1, df)
    return jnp.where(large, about, xlogy(m / 2 - 1, x) - x / 2 - gammaln(m / 2) - m * float(np.log(2) / 2))


def _at_end(x, df):
    shape = _tails.without_slope(df < 2, df / 2)
    return _tails.power(x, df / 2 - 1) * jnp.exp(-x / 2 - gammaln(shape) - shape * float(np.log(2)))


pdf = _family.density(logpdf, "Array([0.24197073, 0.20755376], dtype=float32)", _at_end)


@_family
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """gammainc(df/2, x/2).

    >>> cdf(jnp.array([1.0, 2.0]), 3.0)
    Array([0.19874807, 0.4275933 ], dtype=float32)
    """
    return gammainc(df / 2, x / 2)


@_family
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(gammainc(df/2, x/2)).

    >>> logcdf(jnp.array([1.0, 2.0]), 3.0)
    Array([-1.6157173, -0.8495828], dtype=float32)
    """
    return _tails.log_gammainc(df / 2, x / 2)


@_family
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """gammaincc(df/2, x/2).

    >>> sf(jnp.array([1.0, 2.0]), 3.0)
    Array([0.80125195, 0.5724067 ], dtype=float32)
    """
    return gammaincc(df / 2, x / 2)


@_family
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(gammaincc(df/2, x/2)).

    >>> logsf(jnp.array([1.0, 2.0]), 3.0)
    Array([-0.22157986, -0.5579055 ], dtype=float32)
    """
    return _tails.log_gammaincc(df / 2, x / 2)
