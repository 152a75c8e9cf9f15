"""The generators of random bits as objects, and the cipher threefry."""

from typing import Any

def define_prng_impl(*, key_shape: Any, seed: Any, split: Any, random_bits: Any, fold_in: Any, name: str = "<unnamed>", tag: str = "?") -> Any: ...
def random_seed(seeds: Any, impl: Any) -> Any: ...

rbg_prng_impl: Any

def seed_with_impl(impl: Any, seed: Any) -> Any: ...

threefry2x32_p: Any

def threefry_2x32(keypair: Any, count: Any) -> Any: ...

threefry_prng_impl: Any
unsafe_rbg_prng_impl: Any
