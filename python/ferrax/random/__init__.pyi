"""Random numbers from explicit keys: equal keys give equal draws, and a key is split before it is used twice."""

from collections.abc import Sequence
from ferrax._core import Array, KeyTy
from ferrax.sharding import NamedSharding, PartitionSpec
from ferrax.typing import ArrayLike, DTypeLike
from typing import Any

__all__ = [
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]

def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array: ...
def ball(
    key: ArrayLike,
    d: int,
    p: float = 2,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def bernoulli(
    key: ArrayLike, p: ArrayLike = 0.5, shape: Sequence[int] | None = None, mode: str = "low", *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array: ...
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def binomial(key: Array, n: ArrayLike, p: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None) -> Array: ...
def bits(key: ArrayLike, shape: Sequence[int] = (), dtype: Any = None, *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array: ...
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Sequence[int] | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def cauchy(
    key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array: ...
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def choice(
    key: ArrayLike, a: ArrayLike, shape: Sequence[int] = (), replace: bool = True, p: ArrayLike | None = None, axis: int = 0, mode: str | None = None
) -> Array: ...
def clone(key: Any) -> Array: ...
def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def double_sided_maxwell(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array: ...
def exponential(
    key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array: ...
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def fold_in(key: ArrayLike, data: ArrayLike) -> Array: ...
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def generalized_normal(
    key: ArrayLike, p: float, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array: ...
def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def gumbel(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def key(seed: ArrayLike, *, impl: str | None = None, dtype: DTypeLike | None = None) -> Array: ...
def key_data(keys: ArrayLike) -> Array: ...
def key_dtype(impl_spec: str | None = None) -> KeyTy: ...
def key_impl(keys: ArrayLike) -> Any: ...
def laplace(
    key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array: ...
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def logistic(
    key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array: ...
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = ...,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def maxwell(
    key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array: ...
def multinomial(
    key: Array, n: ArrayLike, p: ArrayLike, *, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, unroll: int | bool = 1
) -> Array: ...
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def normal(
    key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array: ...
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def permutation(
    key: ArrayLike, x: ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array: ...
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def rademacher(
    key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array: ...
def randint(
    key: ArrayLike,
    shape: Sequence[int],
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array: ...
def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def uniform(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def weibull_min(key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array: ...
def wrap_key_data(key_bits_array: Array, *, impl: str | None = None, dtype: DTypeLike | None = None) -> Array: ...
