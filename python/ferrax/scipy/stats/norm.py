"""The normal distribution, of density exp(-x^2 / 2) / sqrt(2 pi).

>>> logpdf(0.0, scale=2.0)
Array(-1.6120857, dtype=float32, weak_type=True)
"""

import numpy as np

from ..special import log_ndtr, ndtr, ndtri
from ._families import Continuous

_family = Continuous()


@_family
def logpdf(x):
    """-x^2 / 2 - log(2 pi) / 2."""
    return -(x * x + float(np.log(2 * np.pi))) / 2


pdf = _family.density(logpdf)


@_family
def cdf(x):
    """erfc(-x / sqrt(2)) / 2."""
    return ndtr(x)


@_family
def logcdf(x):
    """log(ndtr(x))."""
    return log_ndtr(x)


@_family
def sf(x):
    """cdf(-x)."""
    return ndtr(-x)


@_family
def logsf(x):
    """logcdf(-x)."""
    return log_ndtr(-x)


@_family
def ppf(q):
    """ndtri(q)."""
    return ndtri(q)


@_family
def isf(q):
    """-ndtri(q)."""
    return -ndtri(q)
