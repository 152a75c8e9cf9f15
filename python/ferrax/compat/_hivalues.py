"""Values of hijax types: objects that consist of arrays and pass through transformations as them.

    register_hitype(QArray, lambda q: QArrayTy(q.qvalue.shape))
    jit(lambda q: dequantize(q))(q)

A value is flattened into the arrays of `lower_val` and then one array for each array of its tangent type: zeros, whose tangents are the value's. So the
tangent of a value may be of another type, such as a float array for a value of integers.

Invariant: a value that is made of others by an operation carries its tangent; one that Python makes has none.
"""

from __future__ import annotations

import contextlib

from .._flat import zeros
from ..interpreters import ad
from ..tree_util import register_pytree_node

__all__ = ["array_types", "arrays_of", "arrays_of_change", "change_of", "cotangent_type", "count", "is_type", "is_value", "register", "tangent_types", "type_of", "value_of"]

_types = {}


def is_type(aval):
    """Whether a type is a hijax type."""
    return hasattr(aval, "lower_val")


def is_value(x):
    """Whether x is a value of such a type."""
    return type(x) in _types


def type_of(x):
    """The type of a value."""
    return _types[type(x)](x)


def tangent_types(aval):
    """The types of the arrays that carry a tangent; none where the type has no tangents."""
    try:
        tangent = aval.to_tangent_aval()
    except (AssertionError, NotImplementedError):
        return []
    return list(tangent.lo_ty()) if is_type(tangent) else [tangent]


def cotangent_type(aval):
    """The type of cotangents."""
    return aval.to_ct_aval() if is_type(aval) else aval.to_tangent_aval()


def array_types(aval):
    """The types of all arrays of a value."""
    return [*aval.lo_ty(), *tangent_types(aval)]


def count(aval):
    """The number of arrays of a value."""
    return len(array_types(aval))


def _carriers(x):
    """The arrays that carry the tangent of a value that an operation made; None for another."""
    return getattr(x, "__dict__", {}).get("_hijax_carriers")


def arrays_of(aval, x):
    """The arrays of a value."""
    own = _carriers(x)
    kinds = tangent_types(aval)
    if own is None or len(own) != len(kinds):
        own = [zeros(t) for t in kinds]
    return [*aval.lower_val(x), *own]


def value_of(aval, arrays):
    """The value of a type that consists of arrays."""
    n = len(aval.lo_ty())
    x = aval.raise_val(*arrays[:n])
    if len(arrays) > n:
        with contextlib.suppress(AttributeError):  # of a class with slots: its values have no tangents
            object.__setattr__(x, "_hijax_carriers", tuple(arrays[n:]))
    return x


def change_of(aval, arrays):
    """A tangent or cotangent, from the arrays that carry it, which may be `Zero`."""
    tangent = aval.to_tangent_aval() if arrays else None
    if not arrays or all(type(t) is ad.Zero for t in arrays):
        return ad.Zero(tangent)
    if not is_type(tangent):
        return arrays[0]
    return tangent.raise_val(*map(ad.instantiate_zeros, arrays))


def arrays_of_change(aval, change):
    """The opposite."""
    kinds = tangent_types(aval)
    if change is None or type(change) is ad.Zero:
        return [ad.Zero(t) for t in kinds]
    tangent = aval.to_tangent_aval()
    return list(tangent.lower_val(change)) if is_type(tangent) else [change]


def register(cls, type_of_value):
    """Makes a class the class of values of a hijax type: a node of pytrees whose children are its arrays."""
    new = cls not in _types
    _types[cls] = type_of_value
    if not new:
        return

    def flatten(x):
        aval = type_of_value(x)
        return tuple(arrays_of(aval, x)), aval

    register_pytree_node(cls, flatten, lambda aval, arrays: value_of(aval, list(arrays)))
