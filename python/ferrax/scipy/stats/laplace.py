"""The Laplace distribution, of density exp(-|x|) / 2.

>>> cdf(0.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous()


@_family
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-|x| - log(2).

    >>> logpdf(jnp.array([0.0, 1.0]))
    Array([-0.6931472, -1.6931472], dtype=float32)
    """
    return -abs(x) - float(np.log(2))


pdf = _family.density(logpdf, "Array([0.5       , 0.18393973], dtype=float32)")


@_family
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """exp(x) / 2 below 0, 1 - exp(-x) / 2 above.

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.5      , 0.8160603], dtype=float32)
    """
    tail = jnp.exp(-abs(x)) / 2
    return jnp.where(x < 0, tail, 1 - tail)
