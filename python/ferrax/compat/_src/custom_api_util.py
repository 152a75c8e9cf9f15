"""`jax._src.custom_api_util`: classes of objects that wrap functions.

Invariant: they are noted, and not used.
"""

__all__ = ["register_custom_decorator_type"]


_wrapper_types = set()


def register_custom_decorator_type(cls):
    """Notes a class of objects that wrap functions, as `custom_vjp` is."""
    _wrapper_types.add(cls)
    return cls
