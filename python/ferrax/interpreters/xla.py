"""The conversion of values of each type to arrays, and the eager evaluation of one operation.

Invariant: the table is for reading; entries that are added are not used. `__jax_array__` makes a
user-defined type an argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._runtime.devices import Client as Backend
from ..extend.core import array_types
from ..numpy import asarray

if TYPE_CHECKING:
    from .._core import Array
    from ..extend.core import Primitive

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]

canonicalize_dtype_handlers = dict.fromkeys(array_types, asarray)


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Array | list[Array]:
    """Evaluates a primitive.

    Args:
        prim: Primitive.
        *args: arrays.
        **params: the primitive's parameters.

    Returns:
        Array, or a list of arrays for a primitive of several results.
    """
    return prim.bind(*args, **params)
