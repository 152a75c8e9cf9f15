"""`sparsify`: a function of arrays as a function of sparse arrays."""

from typing import Any

__all__ = ["sparsify"]

def sparsify(f: Any, use_tracer: bool = False) -> Any: ...
