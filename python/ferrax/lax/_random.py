"""Random bits as primitives.

Invariant: the state goes in and comes out; nothing is kept.

    >>> key, bits = lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (3,))
"""
from __future__ import annotations

from .._core import bind
from .._dtypes import canonicalize_dtype
from ._parameters import RandomAlgorithm
from ._shaping import canonicalize_shape


def rng_bit_generator(key, shape, dtype=None, algorithm=RandomAlgorithm.RNG_DEFAULT, *, out_sharding=None):
    """The next state and random bits of `shape` and unsigned `dtype` (default uint32). key: uint32[4], or uint64[2] with x64."""
    import numpy as np

    dtype = canonicalize_dtype(np.uint32 if dtype is None else dtype)
    if np.dtype(dtype) not in (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64)):
        raise TypeError(f"rng_bit_generator: unsupported dtype {dtype}")
    return list(bind("rng_bit_generator", key, shape=canonicalize_shape(shape), dtype=dtype, algorithm=RandomAlgorithm(algorithm)))


def rng_uniform(a, b, shape):
    """Uniform numbers in [a, b), of a's dtype; not reproducible. a, b: scalars of one dtype."""
    return bind("rng_uniform", a, b, shape=canonicalize_shape(shape))
