"""The primitives of the language as objects, by JAX's names: `add_p`, `scan_p`, `jit_p`."""

from ferrax._core import Primitive

__all__ = ["call_p", "closed_call_p", "jit_p", "random_bits_p", "remat_p"]

call_p: Primitive
closed_call_p: Primitive
jit_p: Primitive
random_bits_p: Primitive
remat_p: Primitive
add_jaxvals_p: Primitive
empty2_p: Primitive
get_p: Primitive
name_p: Primitive
random_gamma_p: Primitive
swap_p: Primitive
