"""The gamma distribution, of density x^(a-1) exp(-x) / gamma(a) for x >= 0.

>>> sf(1.0, 1)
Array(0.3678795, dtype=float32, weak_type=True)
"""

from ..special import gammainc, gammaincc, gammaln, xlogy
from ._families import Continuous
from ._tails import log_gammainc, log_gammaincc

_family = Continuous(low=0, valid=lambda a: a > 0, a="the shape, positive")


@_family
def logpdf(x, a):
    """(a - 1) log(x) - x - log(gamma(a))."""
    return xlogy(a - 1, x) - x - gammaln(a)


pdf = _family.density(logpdf)


@_family
def cdf(x, a):
    """the regularised lower incomplete gamma function."""
    return gammainc(a, x)


@_family
def logcdf(x, a):
    """log(gammainc(a, x))."""
    return log_gammainc(a, x)


@_family
def sf(x, a):
    """the regularised upper incomplete gamma function."""
    return gammaincc(a, x)


@_family
def logsf(x, a):
    """log(gammaincc(a, x))."""
    return log_gammaincc(a, x)
