"""The beta distribution, of density x^(a-1) (1 - x)^(b-1) / B(a, b) on [0, 1].

>>> cdf(0.5, 2, 1)
Array(0.25, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..special import _saddle_points, betainc, betaln
from . import _tails
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous(low=0, high=1, valid=lambda a, b: (a > 0) & (b > 0), a="the first shape, positive", b="the second shape, positive")


@_family
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """(a - 1) log(x) + (b - 1) log(1 - x) - log(B(a, b)).

    >>> logpdf(jnp.array([0.25, 0.5]), 2.0, 2.0)
    Array([0.11778307, 0.40546513], dtype=float32)
    """
    return _saddle_points.beta_weight(a, b, x, less=1)


def _at_ends(x, a, b):
    left, right = (x == 0) & (a < 1), (x == 1) & (b < 1)
    low, high = _tails.without_slope(right, _tails.power(x, a - 1)), _tails.without_slope(left, _tails.power(1 - x, b - 1))
    return low * high * jnp.exp(-betaln(_tails.without_slope(left, a), _tails.without_slope(right, b)))


pdf = _family.density(logpdf, "Array([1.125, 1.5  ], dtype=float32)", _at_ends)


@_family
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The regularised incomplete beta function.

    >>> cdf(jnp.array([0.25, 0.5]), 2.0, 2.0)
    Array([0.15625001, 0.5       ], dtype=float32)
    """
    return betainc(a, b, x)


@_family
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(betainc(a, b, x)).

    >>> logcdf(jnp.array([0.25, 0.5]), 2.0, 2.0)
    Array([-1.8562979, -0.6931472], dtype=float32)
    """
    return _tails.log_betainc(a, b, x)


@_family
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """betainc(b, a, 1 - x).

    >>> sf(jnp.array([0.25, 0.5]), 2.0, 2.0)
    Array([0.84375, 0.5    ], dtype=float32)
    """
    return _tails.betaincc(a, b, x)


@_family
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(betainc(b, a, 1 - x)).

    >>> logsf(jnp.array([0.25, 0.5]), 2.0, 2.0)
    Array([-0.16989906, -0.6931472 ], dtype=float32)
    """
    return _tails.log_betainc(b, a, 1 - x, less=x)
