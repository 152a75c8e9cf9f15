"""Random numbers from explicit keys: equal keys give equal draws, and a key is split before it is
used twice.

    key = random.key(0)                        # or random.PRNGKey(0), a raw key
    key, sub = random.split(key)
    x = random.normal(sub, (3,))

The generator is threefry2x32, in both of JAX's counter layouts (`jax_threefry_partitionable`);
`impl="rbg"` and `impl="unsafe_rbg"` name those whose bits `lax.rng_bit_generator` draws, by
philox4x32. Under `vmap` those draw for all lanes from the first lane's key, as in JAX.
"""

from ._discrete import binomial, multinomial, poisson
from ._gamma import (
    ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, random_gamma_p as random_gamma_p, t,
)
from ._keys import PRNGKey, _unpickled as _unpickled, clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data
from ._multivariate import multivariate_normal, orthogonal
from ._permuted import choice, permutation
from ._transformed import (
    categorical, cauchy, double_sided_maxwell, exponential, geometric, gumbel, laplace, logistic, lognormal, maxwell, normal, pareto,
    rademacher, rayleigh, triangular, truncated_normal, wald, weibull_min,
)
from ._uniform import bernoulli, bits, randint, uniform

__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice", "clone", "dirichlet",
    "double_sided_maxwell", "exponential", "f", "fold_in", "gamma", "generalized_normal", "geometric", "gumbel", "key", "key_data",
    "key_dtype", "key_impl", "laplace", "loggamma", "logistic", "lognormal", "maxwell", "multinomial", "multivariate_normal", "normal",
    "orthogonal", "pareto", "permutation", "poisson", "rademacher", "randint", "rayleigh", "split", "t", "triangular",
    "truncated_normal", "uniform", "wald", "weibull_min", "wrap_key_data",
]
