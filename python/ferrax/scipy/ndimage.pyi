"""Arrays read between their elements."""

from collections.abc import Sequence
from ferrax.typing import ArrayLike
from typing import Any

__all__ = ["map_coordinates"]

def map_coordinates(input: ArrayLike, coordinates: Sequence[ArrayLike], order: int, mode: str = "constant", cval: ArrayLike = 0.0) -> Any: ...
