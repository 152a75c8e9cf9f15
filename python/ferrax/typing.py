"""Types for annotations: `ArrayLike`, an operand of functions of arrays, and `DTypeLike`, anything
that names a dtype.
"""

from typing import Any, TypeAlias

import numpy as np

from ._core import Array

ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike: TypeAlias = str | type[Any] | np.dtype
ExtendedDType: TypeAlias = Any

__all__ = ["ArrayLike", "DTypeLike", "ExtendedDType"]
