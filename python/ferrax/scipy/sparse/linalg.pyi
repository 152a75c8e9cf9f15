"""Iterative solvers of linear systems: cg, bicgstab, gmres."""

from typing import Any

__all__ = ["bicgstab", "cg", "gmres"]

def bicgstab(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-05, atol: float = 0.0, maxiter: Any = None, M: Any = None) -> Any: ...
def cg(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-05, atol: float = 0.0, maxiter: Any = None, M: Any = None) -> Any: ...
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: Any = None,
    M: Any = None,
    solve_method: str = "batched",
) -> Any: ...
