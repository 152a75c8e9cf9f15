"""The standard normal distribution truncated to [a, b].

With location and scale the interval is [loc + a scale, loc + b scale].

>>> cdf(0.0, -2.0, 2.0)
Array(0.5, dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..special import log_ndtr, ndtr
from . import _tails
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous(
    low=lambda a, b: a, high=lambda a, b: b, valid=lambda a, b: a < b, a="the lower bound of the standard variable", b="its upper bound"
)  # fmt: skip


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def _log_small_mass(a, b):
    """log(ndtr(b) - ndtr(a)) where the density falls little between a and b, by Gauss's rule."""
    middle, half = (a + b) / 2, (b - a) / 2
    total = sum(w * jnp.exp(-t * half * (middle + t * half / 2)) for t, w in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True))
    return -(middle * middle + float(np.log(2 * np.pi))) / 2 + jnp.log(half) + jnp.log(total)


def _log_mass(a, b):
    """log(ndtr(b) - ndtr(a)) for a <= b."""
    small = (b - a) * jnp.maximum(jnp.abs(a), jnp.abs(b)) < 1
    return jnp.where(small, _log_small_mass(jnp.where(small, a, 0), jnp.where(small, b, 0)), _log_large_mass(a, b))


def _log_large_mass(a, b):
    # An interval above 0 is reflected: the logarithms of small probabilities keep their precision.
    above = a > 0
    low, high = jnp.where(above, -b, a), jnp.where(above, -a, b)
    across = high > 0
    return jnp.where(across, jnp.log1p(-ndtr(low) - ndtr(-high)), _tails.log_difference(log_ndtr(jnp.where(across, 0, high)), log_ndtr(low)))


def _log_share(part, rest, whole):
    """The logarithm of a part's share, given those of the part, of the rest and of the whole; by
    the rest where the part is nearly all.
    """
    share = part - whole
    return jnp.where(share > -0.1, jnp.log1p(0.0 - jnp.exp(rest - whole)), share)


@_family
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-x^2 / 2 - log(2 pi) / 2 - log(ndtr(b) - ndtr(a)).

    >>> logpdf(jnp.array([0.0, 1.0]), -1.0, 1.0)
    Array([-0.53722334, -1.0372233 ], dtype=float32)
    """
    return -(x * x + float(np.log(2 * np.pi))) / 2 - _log_mass(a, b)


pdf = _family.density(logpdf, "Array([0.5843686 , 0.35443747], dtype=float32)")


@_family
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(ndtr(x) - ndtr(a)) - log(ndtr(b) - ndtr(a)).

    >>> logcdf(jnp.array([0.0, 1.0]), -1.0, 1.0)
    Array([-0.6931472,  0.       ], dtype=float32)
    """
    return _log_share(_log_mass(a, x), _log_mass(x, b), _log_mass(a, b))


@_family
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """(ndtr(x) - ndtr(a)) / (ndtr(b) - ndtr(a)).

    >>> cdf(jnp.array([0.0, 1.0]), -1.0, 1.0)
    Array([0.5, 1. ], dtype=float32)
    """
    return jnp.exp(_log_share(_log_mass(a, x), _log_mass(x, b), _log_mass(a, b)))


@_family
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(ndtr(b) - ndtr(x)) - log(ndtr(b) - ndtr(a)).

    >>> logsf(jnp.array([-1.0, 0.0]), -1.0, 1.0)
    Array([ 0.       , -0.6931473], dtype=float32)
    """
    return _log_share(_log_mass(x, b), _log_mass(a, x), _log_mass(a, b))


@_family
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """(ndtr(b) - ndtr(x)) / (ndtr(b) - ndtr(a)).

    >>> sf(jnp.array([-1.0, 0.0]), -1.0, 1.0)
    Array([1.        , 0.49999994], dtype=float32)
    """
    return jnp.exp(_log_share(_log_mass(x, b), _log_mass(a, x), _log_mass(a, b)))
