"""`jax._src.checkify`: type variables of `checkify`.

Invariant: they are for annotations.
"""

import typing

__all__ = ["Out"]


Out = typing.TypeVar("Out")
