"""Types for annotations: `ArrayLike`, what functions of arrays accept, and `DTypeLike`, what stands for a dtype."""

import numpy as np
from ferrax._core import Array
from typing import Any, TypeAlias

__all__ = ["ArrayLike", "DTypeLike", "ExtendedDType"]

ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike: TypeAlias = str | type[Any] | np.dtype
ExtendedDType: TypeAlias = Any
