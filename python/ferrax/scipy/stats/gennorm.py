"""The generalised normal distribution, of density proportional to exp(-|x|^beta).

>>> cdf(0.0, 3)
Array(0.5, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..._transforms.grad import jvp
from ...custom_derivatives import custom_jvp
from ..special import gammaincc, gammaln
from ._families import Continuous

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_family = Continuous(valid=lambda beta: beta > 0, beta="the shape, positive: 1 for Laplace, 2 for a normal of variance 1/2")


@_family
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """log(beta / 2) - log(gamma(1 / beta)) - |x|^beta.

    >>> logpdf(jnp.array([0.0, 1.0]), 2.0)
    Array([-0.5723649, -1.5723649], dtype=float32)
    """
    return jnp.log(beta) - float(np.log(2)) - gammaln(1 / beta) - abs(x) ** beta


pdf = _family.density(logpdf, "Array([0.5641896 , 0.20755376], dtype=float32)")


@_family
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """gammaincc(1 / beta, |x|^beta) / 2 below 0, one less that above.

    >>> cdf(jnp.array([0.0, 1.0]), 2.0)
    Array([0.5       , 0.92135054], dtype=float32)
    """
    return _cdf(x, beta)


def _halves(x, beta):
    tail = gammaincc(1 / beta, abs(x) ** beta) / 2
    return jnp.where(x < 0, tail, 1 - tail)


_cdf = custom_jvp(_halves)


@_cdf.defjvp
def _cdf_jvp(primals, tangents):
    # The derivative by x is the density: the derivative of |x|^beta is 0 or infinite at 0.
    (x, beta), (dx, dbeta) = primals, tangents
    y = _halves(x, beta)
    away = jnp.where(x == 0, 1.0, x)
    by_beta = jnp.where(x == 0, 0.0, jvp(lambda beta: _halves(away, beta), (beta,), (dbeta,))[1])
    size = jnp.exp(jnp.log(beta) - gammaln(1 / beta) - abs(x) ** beta) / 2
    return y, size * dx + by_beta
