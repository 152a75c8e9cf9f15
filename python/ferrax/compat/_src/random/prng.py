"""Names from the modules in which JAX makes keys: `threefry_2x32`, seeds, and wrapping of keys.

Invariant: the bits are those of `jax.random`.
"""

from .... import random
from ....extend.random import threefry_2x32
from ....random import PRNGKey, fold_in, key_data, split, wrap_key_data

__all__ = [
    "random_fold_in",
    "random_seed",
    "random_split",
    "random_unwrap",
    "random_wrap",
    "threefry_2x32",
    "threefry_fold_in",
    "threefry_seed",
    "threefry_split",
]

random_unwrap, random_fold_in, random_split = key_data, fold_in, split


def random_wrap(base_arr, *, impl=None):
    """Words as keys."""
    return wrap_key_data(base_arr, impl=getattr(impl, "name", impl))


def random_seed(seeds, impl=None):
    """A key of a seed."""
    return random.key(seeds, impl=getattr(impl, "name", impl))


def threefry_seed(seed):
    """The words of a key of a seed."""
    return key_data(random.key(seed, impl="threefry2x32"))


def threefry_split(key, shape):
    """The words of keys that a key is split into."""
    return key_data(split(wrap_key_data(key, impl="threefry2x32"), shape))


def threefry_fold_in(key, data):
    """The words of a key with a number folded in."""
    return key_data(fold_in(wrap_key_data(key, impl="threefry2x32"), data))


PRNGKeyArray, threefry_prng_key = type(PRNGKey), PRNGKey
