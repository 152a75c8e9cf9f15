"""Student's t distribution of df degrees of freedom, of density proportional to (1 + x^2 /
df)^-((df + 1) / 2).

>>> pdf(0.0, 1)
Array(0.3183099, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..special import betaln
from . import _tails
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous(valid=lambda df: df > 0, df="the degrees of freedom, positive; the normal distribution where infinite")


@_family
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """-(df + 1)/2 log(1 + x^2 / df) - log(df)/2 - log(B(1/2, df/2)).

    >>> logpdf(jnp.array([0.0, 1.0]), 3.0)
    Array([-1.0008888, -1.5762529], dtype=float32)
    """
    normal = jnp.isinf(df)
    df = jnp.where(normal, 1, df)
    student = -(df + 1) / 2 * _tails.log1p_square(x / jnp.sqrt(df)) - jnp.log(df) / 2 - betaln(0.5, df / 2)
    return jnp.where(normal, -(x * x + float(np.log(2 * np.pi))) / 2, student)


pdf = _family.density(logpdf, "Array([0.3675526 , 0.20674835], dtype=float32)")
