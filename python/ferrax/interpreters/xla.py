"""The conversion of values of each type to arrays, and the eager evaluation of one operation.

Invariant: the table is for reading; entries that are added are not used. `__jax_array__` makes a user-defined type an argument.
"""

from __future__ import annotations

from typing import Any

from .._runtime.devices import Client as Backend
from ..extend.core import array_types
from ..numpy import asarray

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]

canonicalize_dtype_handlers = dict.fromkeys(array_types, asarray)


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Evaluates a primitive.

    Args:
        prim: Primitive.
        *args: arrays.
        **params: the primitive's parameters.

    Returns:
        Array, or a list of arrays for a primitive of several results.
    """
    return prim.bind(*args, **params)
