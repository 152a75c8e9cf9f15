"""The von Mises distribution on the circle, of density exp(kappa cos(x)) / (2 pi I0(kappa)),
periodic in x.

>>> pdf(0.0, 0.0) * 6.2831855
Array(1.0000001, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..special import i0e
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous(valid=lambda kappa: kappa >= 0, kappa="the concentration, not negative")


@_family
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """kappa (cos(x) - 1) - log(2 pi I0(kappa) exp(-kappa)).

    >>> logpdf(jnp.array([0.0, 1.0]), 2.0)
    Array([-0.66187066, -1.5812662 ], dtype=float32)
    """
    return -2 * kappa * jnp.sin(x / 2) ** 2 - jnp.log(2 * np.pi * i0e(kappa))


pdf = _family.density(logpdf, "Array([0.5158854 , 0.20571446], dtype=float32)")
