"""Probability distributions, and statistics of samples."""

from collections.abc import Callable
from ferrax._core import Array
from ferrax.typing import ArrayLike
from typing import Any

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

class gaussian_kde:
    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array
    def __call__(self, points: Any) -> Any: ...
    def __init__(self, dataset: Any, bw_method: str | Array | Callable[[Any], Array] | None = None, weights: Any = None) -> None: ...
    @property
    def d(self) -> Any: ...
    def evaluate(self, points: Any) -> Any: ...
    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any: ...
    def integrate_box_1d(self, low: Any, high: Any) -> Any: ...
    def integrate_gaussian(self, mean: Any, cov: Any) -> Any: ...
    def integrate_kde(self, other: Any) -> Any: ...
    def logpdf(self, x: Any) -> Any: ...
    @property
    def n(self) -> Any: ...
    def pdf(self, x: Any) -> Any: ...
    def resample(self, key: Any, shape: Any = ()) -> Any: ...
    def set_bandwidth(self, bw_method: Any = None) -> Any: ...
    def tree_flatten(self) -> Any: ...
    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Any: ...

def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> Any: ...
def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array: ...
def sem(a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Array: ...
