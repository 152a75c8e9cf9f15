"""`jax._src.interpreters.batching`: indices and elements of batches.

Invariant: elements of a batch are made by `vmap` alone.
"""

from .... import lax
from ...._base.refused import refused

__all__ = ["is_vmappable", "make_iota", "to_elt"]


to_elt = refused("jax._src.interpreters.batching.to_elt", "elements of a batch are made by jax.vmap alone")


def make_iota(axis_size):
    """The indices of a batch."""
    return lax.iota("int32", int(axis_size))


def is_vmappable(x):
    """Whether `x` is of a type that a library gave rules for `vmap`: no such rules can be given, so
    never.
    """
    return False
