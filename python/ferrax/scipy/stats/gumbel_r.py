"""The right-skewed Gumbel distribution, of density exp(-(x + exp(-x))).

>>> cdf(0.0)
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
    """-(x + exp(-x)).

    >>> logpdf(jnp.array([0.0, 1.0]))
    Array([-1.       , -1.3678794], dtype=float32)
    """
    return -(x + jnp.exp(-x))


pdf = _family.density(logpdf, "Array([0.36787945, 0.2546464 ], dtype=float32)")


@_family
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """exp(-exp(-x)).

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.36787945, 0.6922006 ], dtype=float32)
    """
    return jnp.exp(-jnp.exp(-x))


@_family
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-exp(-x).

    >>> logcdf(jnp.array([0.0, 1.0]))
    Array([-1.        , -0.36787945], dtype=float32)
    """
    return -jnp.exp(-x)


@_family
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """1 - exp(-exp(-x)).

    >>> sf(jnp.array([0.0, 1.0]))
    Array([0.63212055, 0.30779937], dtype=float32)
    """
    return -jnp.expm1(-jnp.exp(-x))


@_family
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log(1 - exp(-exp(-x))).

    >>> logsf(jnp.array([0.0, 1.0]))
    Array([-0.45867515, -1.178307  ], dtype=float32)
    """
    return _tails.log1mexpexp(x)


@_family
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-log(-log(p)).

    >>> ppf(jnp.array([0.5, 0.75]))
    Array([0.36651292, 1.2458994 ], dtype=float32)
    """
    return -_tails.log_minus_log(p)
