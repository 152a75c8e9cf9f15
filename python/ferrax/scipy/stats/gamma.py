"""The gamma distribution, of density x^(a-1) exp(-x) / gamma(a) for x >= 0.

>>> sf(1.0, 1)
Array(0.3678795, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..special import _saddle_points, gammainc, gammaincc, gammaln
from . import _tails
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous(low=0, valid=lambda a: a > 0, a="the shape, positive")


@_family
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """(a - 1) log(x) - x - log(gamma(a)).

    >>> logpdf(jnp.array([1.0, 2.0]), 3.0)
    Array([-1.6931472, -1.3068528], dtype=float32)
    """
    return _saddle_points.gamma_weight(a, x, less=1)


def _at_end(x, a):
    return _tails.power(x, a - 1) * jnp.exp(-x - gammaln(_tails.without_slope(a < 1, a)))


pdf = _family.density(logpdf, "Array([0.18393973, 0.27067056], dtype=float32)", _at_end)


@_family
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The regularised lower incomplete gamma function.

    >>> cdf(jnp.array([1.0, 2.0]), 3.0)
    Array([0.08030139, 0.3233236 ], dtype=float32)
    """
    return gammainc(a, x)


@_family
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(gammainc(a, x)).

    >>> logcdf(jnp.array([1.0, 2.0]), 3.0)
    Array([-2.5219684, -1.1291015], dtype=float32)
    """
    return _tails.log_gammainc(a, x)


@_family
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The regularised upper incomplete gamma function.

    >>> sf(jnp.array([1.0, 2.0]), 3.0)
    Array([0.9196986, 0.6766764], dtype=float32)
    """
    return gammaincc(a, x)


@_family
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(gammaincc(a, x)).

    >>> logsf(jnp.array([1.0, 2.0]), 3.0)
    Array([-0.08370926, -0.39056212], dtype=float32)
    """
    return _tails.log_gammaincc(a, x)
