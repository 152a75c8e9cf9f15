"""The generators of random bits as objects, and the cipher threefry.

    random_seed(0, impl=threefry_prng_impl)             # jax.random.key(0)
    threefry_2x32(key_data(key), jnp.arange(4, dtype=jnp.uint32))

Invariant: bits are those of `jax.random`; the generators are a closed list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from .. import numpy as jnp, random
from .._core import bind, primitive
from .._transforms.vmap import vmap

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike

__all__ = [
    "define_prng_impl",
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry2x32_p",
    "threefry_2x32",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]


class PRNGImpl(NamedTuple):
    """A generator: its name, the letters of its keys in printed types, the shape of a key's
    words.
    """

    name: str
    tag: str
    key_shape: tuple

    def __str__(self):
        return self.tag


threefry_prng_impl: Any = PRNGImpl("threefry2x32", "fry", (2,))
rbg_prng_impl: Any = PRNGImpl("rbg", "rbg", (4,))
unsafe_rbg_prng_impl: Any = PRNGImpl("unsafe_rbg", "urbg", (4,))
threefry2x32_p: Any = primitive("threefry2x32")


def define_prng_impl(*, key_shape: Any, seed: Any, split: Any, random_bits: Any, fold_in: Any, name: str = "<unnamed>", tag: str = "?") -> NoReturn:
    """Refused: the generators are "threefry2x32", "rbg" and "unsafe_rbg".

    Args:
        key_shape: shape of a key's data.
        seed, split, random_bits, fold_in: functions of the generator.
        name, tag: strings.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        f"define_prng_impl({name!r}): the generators are 'threefry2x32', 'rbg' and 'unsafe_rbg'; a function of one's own may draw bits from an array"
    )


def seed_with_impl(impl: Any, seed: ArrayLike) -> Array:
    """A random key from a seed.

    Args:
        impl: generator, or its name.
        seed: integer scalar.

    Returns:
        Scalar array of the key.
    """
    return random.key(seed, impl=getattr(impl, "name", impl))


def random_seed(seeds: ArrayLike, impl: Any) -> Array:
    """Random keys from seeds.

    Args:
        seeds: integers (...).
        impl: generator, or its name.

    Returns:
        Array of keys (...).
    """
    seeds = jnp.asarray(seeds)
    one = lambda seed: seed_with_impl(impl, seed)
    for _ in range(seeds.ndim):
        one = vmap(one)
    return one(seeds)


def threefry_2x32(keypair: ArrayLike, count: ArrayLike) -> Array:
    """The Threefry cipher with two words of 32 bits: the first half of the words is encrypted
    together with the second.

    Args:
        keypair: two uint32 scalars, the key.
        count: uint32 array of any shape, the words.

    Returns:
        uint32 array of the shape of `count`.

    Raises:
        TypeError: an argument is not uint32.
    """
    key1, key2 = keypair
    if not jnp.asarray(key1).dtype == jnp.asarray(key2).dtype == count.dtype == np.uint32:
        raise TypeError("threefry_2x32 requires uint32 arguments")
    flat = count.ravel()
    odd = flat.size % 2
    x = jnp.concatenate([flat, jnp.zeros(1, np.uint32)]) if odd else flat
    first, second = jnp.split(x, 2)
    over = lambda k: jnp.broadcast_to(k, first.shape)
    out = jnp.concatenate(list(bind("threefry2x32", over(key1), over(key2), first, second)))
    return (out[:-1] if odd else out).reshape(count.shape)
