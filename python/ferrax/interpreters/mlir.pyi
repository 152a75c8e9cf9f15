"""Lowerings of primitives defined in Python."""

from collections.abc import Callable
from ferrax._core import Primitive
from typing import Any

__all__ = ["lower_fun", "register_lowering"]

def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]: ...
def register_lowering(prim: Primitive, rule: Any, platform: str | None = None) -> None: ...
