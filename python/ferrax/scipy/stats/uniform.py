"""The uniform distribution on [0, 1], which is [loc, loc + scale].

>>> cdf(3.0, loc=1.0, scale=4.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous(low=0, high=1)


@_family
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """0 on the interval.

    >>> logpdf(jnp.array([0.5, 1.0]), 0.0, 2.0)
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return jnp.zeros_like(x)


pdf = _family.density(logpdf, "Array([0.5, 0.5], dtype=float32)")


@_family
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """`x` on the interval.

    >>> cdf(jnp.array([0.5, 1.0]), 0.0, 2.0)
    Array([0.25, 0.5 ], dtype=float32)
    """
    return x


@_family
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """q.

    >>> ppf(jnp.array([0.25, 0.5]), 0.0, 2.0)
    Array([0.5, 1. ], dtype=float32)
    """
    return q
