"""Probability distributions, and statistics of samples.

A distribution is a module with functions `logpdf` and `pdf` (`logpmf` and `pmf` where it is
discrete), and as far as JAX has them `cdf`, `logcdf`, `sf`,
`logsf`, `ppf` and `isf`. Invariant: each is loaded when it is first used.

    >>> jax.scipy.stats.norm.cdf(0.0)
    Array(0.5, dtype=float32)
"""

from __future__ import annotations

import importlib as _importlib
import typing as _typing

from ..._base.late import late as _late
from ._samples import mode, rankdata, sem

if _typing.TYPE_CHECKING:
    from ._kde import gaussian_kde as gaussian_kde
    from . import wrapcauchy as wrapcauchy
    from . import vonmises as vonmises
    from . import uniform as uniform
    from . import truncnorm as truncnorm
    from . import t as t
    from . import poisson as poisson
    from . import pareto as pareto
    from . import norm as norm
    from . import nbinom as nbinom
    from . import multivariate_normal as multivariate_normal
    from . import multinomial as multinomial
    from . import logistic as logistic
    from . import laplace as laplace
    from . import gumbel_r as gumbel_r
    from . import gumbel_l as gumbel_l
    from . import geom as geom
    from . import gennorm as gennorm
    from . import gamma as gamma
    from . import expon as expon
    from . import dirichlet as dirichlet
    from . import chi2 as chi2
    from . import cauchy as cauchy
    from . import binom as binom
    from . import betabinom as betabinom
    from . import beta as beta
    from . import bernoulli as bernoulli

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


if not _typing.TYPE_CHECKING:  # a checker would take every name for one of the module's

    def __getattr__(name):
        if name == "gaussian_kde":
            return _importlib.import_module(f"{__name__}._kde").gaussian_kde
        if name in __all__:
            return _importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return __all__


_late(__name__)
