"""The Cauchy distribution, of density 1 / (pi (1 + x^2)).

>>> cdf(-1e10)
Array(3.183099e-11, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import lax, numpy as jnp
from . import _tails
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous()


@_family
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-log(pi) - log(1 + x^2).

    >>> logpdf(jnp.array([0.0, 1.0]))
    Array([-1.1447299, -1.837877 ], dtype=float32)
    """
    return -float(np.log(np.pi)) - _tails.log1p_square(x)


pdf = _family.density(logpdf, "Array([0.3183099 , 0.15915495], dtype=float32)")


def _below(x):
    # The angle at which x is seen: arctan(x) + pi / 2 without cancellation.
    return jnp.arctan2(jnp.ones_like(x), -x) / np.pi


@_family
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """arctan(x) / pi + 1/2.

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.5 , 0.75], dtype=float32)
    """
    return _below(x)


@_family
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(cdf(x)).

    >>> logcdf(jnp.array([0.0, 1.0]))
    Array([-0.6931472 , -0.28768206], dtype=float32)
    """
    return _tails.log_of(_below(x), _below(-x))


@_family
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """cdf(-x).

    >>> sf(jnp.array([0.0, 1.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return _below(-x)


@_family
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """logcdf(-x).

    >>> logsf(jnp.array([0.0, 1.0]))
    Array([-0.6931472, -1.3862944], dtype=float32)
    """
    return _tails.log_of(_below(-x), _below(x))


@_family
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """tan(pi (q - 1/2)).

    >>> ppf(jnp.array([0.5, 0.75]))
    Array([0., 1.], dtype=float32)
    """
    # The distance from the nearer end, with the sign of the quantile.
    end = jnp.where(q < 0.5, -q, 1 - q)
    far = abs(lax.stop_gradient(end)) < 0.25
    return jnp.where(far, 1 / jnp.tan(np.pi * jnp.where(far, end, 0.25)), jnp.tan(np.pi * (jnp.where(far, 0.5, q) - 0.5)))


@_family
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-ppf(q).

    >>> isf(jnp.array([0.25, 0.75]))
    Array([ 1., -1.], dtype=float32)
    """
    return -ppf(q)
