"""The wrapped Cauchy distribution on [0, 2 pi], of density (1 - c^2) / (2 pi (1 + c^2 - 2 c
cos(x))).

>>> pdf(0.0, 0.5)
Array(0.47746485, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous(low=0, high=2 * np.pi, valid=lambda c: (c > 0) & (c < 1), c="the concentration, between 0 and 1")


@_family
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """log(1 - c^2) - log(2 pi) - log((1 - c)^2 + 4 c sin(x/2)^2).

    >>> logpdf(jnp.array([0.0, 1.0]), 0.5)
    Array([-0.7392647, -1.782643 ], dtype=float32)
    """
    return jnp.log1p(-c) + jnp.log1p(c) - float(np.log(2 * np.pi)) - jnp.log((1 - c) ** 2 + 4 * c * jnp.sin(x / 2) ** 2)


pdf = _family.density(logpdf, "Array([0.47746485, 0.16819303], dtype=float32)")
