"""`jax._src.pickle_util`: objects as bytes, with their functions and classes by value.

Invariant: `cloudpickle` is imported at the first use.
"""

import pkgutil

__all__ = ["dumps", "loads"]


def dumps(obj):
    """The object as bytes, its functions and classes by value: by `cloudpickle`."""
    return pkgutil.resolve_name("cloudpickle:dumps")(obj)


def loads(data):
    """Loads an object from bytes with `cloudpickle`."""
    return pkgutil.resolve_name("cloudpickle:loads")(data)
