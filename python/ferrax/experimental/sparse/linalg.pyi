"""Linear algebra with sparse matrices: `spsolve` and `lobpcg_standard`."""

from collections.abc import Callable
from ferrax._core import Array
from typing import Any

def lobpcg_standard(A: Array | Callable[[Array], Array], X: Array, m: int = 100, tol: Array | float | None = None) -> Any: ...
def spsolve(data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-06, reorder: int = 1) -> Any: ...
