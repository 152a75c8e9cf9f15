"""`jax._src.array`: arrays in pickles that JAX wrote.

Invariant: the array has the pickle's elements.
"""

from ...numpy import asarray

__all__ = ["reconstruct_array"]


def reconstruct_array(make, args, state, type_):
    """The array in a pickle of JAX: its constructor, its state, and whether its type is weak."""
    value = make(*args)
    value.__setstate__(state)
    return asarray(value)
