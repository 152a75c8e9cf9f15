"""Interpolation on grids."""

from typing import Any

__all__ = ["RegularGridInterpolator"]

class RegularGridInterpolator:
    def __call__(self, xi: Any, method: Any = None) -> Any: ...
    def __init__(self, points: Any, values: Any, method: str = "linear", bounds_error: bool = False, fill_value: float = ...) -> None: ...
