"""Probability distributions, and statistics of samples.

A distribution is a module with functions `logpdf` and `pdf` (`logpmf` and `pmf` where it is discrete), and as far as JAX has them `cdf`, `logcdf`, `sf`,
`logsf`, `ppf` and `isf`. Invariant: each is loaded when it is first used.

    >>> jax.scipy.stats.norm.cdf(0.0)
    Array(0.5, dtype=float32)
"""

import importlib as _importlib

from ..._late import late as _late
from ._samples import mode, rankdata, sem

__all__ = [
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gaussian_kde",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "mode",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rankdata",
    "sem",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
]


def __getattr__(name):
    if name == "gaussian_kde":
        return _importlib.import_module(f"{__name__}._kde").gaussian_kde
    if name in __all__:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return __all__


_late(__name__)
