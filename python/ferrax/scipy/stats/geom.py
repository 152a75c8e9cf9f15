"""The geometric distribution: trials of probability p up to the first success.

>>> pmf(2, 0.5)
Array(0.25, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..special import xlog1py
from ._families import Discrete

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Discrete(low=1, valid=lambda p: (p > 0) & (p <= 1), p="the probability of success, positive")


@_family
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """(k - 1) log(1 - p) + log(p).

    >>> logpmf(jnp.array([1, 2]), 0.5)
    Array([-0.6931472, -1.3862944], dtype=float32, weak_type=True)
    """
    return xlog1py(k - 1, -p) + jnp.log(p)


pmf = _family.density(logpmf, "Array([0.5 , 0.25], dtype=float32, weak_type=True)")
