"""How values of each type become arrays.

Invariant: a table to read. A type of one's own is made an argument by `__jax_array__`; what is added here is not asked for.
"""

from ..extend.core import array_types
from ..numpy import asarray

__all__ = ["canonicalize_dtype_handlers"]

canonicalize_dtype_handlers = dict.fromkeys(array_types, asarray)
