"""How values of each type become arrays."""

from typing import Any

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]

Backend: Any

def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any: ...

canonicalize_dtype_handlers: dict[Any, Any]
