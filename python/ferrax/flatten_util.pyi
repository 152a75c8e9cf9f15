"""A pytree as one vector."""

from collections.abc import Callable
from ferrax._core import Array
from typing import Any

__all__ = ["ravel_pytree"]

def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Array], Any]]: ...
