"""Minima of functions of several variables."""

from collections.abc import Callable, Mapping
from ferrax._core import Array
from typing import Any, NamedTuple

__all__ = ["OptimizeResults", "minimize"]

class OptimizeResults(NamedTuple):
    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any

def minimize(
    fun: Callable[..., Any], x0: Array, args: tuple[Any, ...] = (), *, method: str, tol: float | None = None, options: Mapping[str, Any] | None = None
) -> OptimizeResults: ...
