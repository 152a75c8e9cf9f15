"""How values of each type become arrays."""

from typing import Any

__all__ = ["canonicalize_dtype_handlers"]

canonicalize_dtype_handlers: dict[Any, Any]
