"""Loops that show how far they are, under `jit` too: `lax`'s loops with a bar."""

from collections.abc import Callable
from typing import IO, Any, Protocol, TypeVar

__all__ = ["Line", "fori_loop", "scan", "while_loop"]

_Carry = TypeVar("_Carry")
_X = TypeVar("_X")
_Y = TypeVar("_Y")
_T = TypeVar("_T")

class _Bar(Protocol):
    def update(self, n: int, /) -> Any: ...
    def close(self) -> Any: ...

class Line:
    total: int | None
    desc: str | None
    file: IO[str]
    n: int
    def __init__(self, total: int | None, desc: str | None = None, file: IO[str] | None = None) -> None: ...
    def text(self, seconds: float) -> str: ...
    def update(self, n: int) -> None: ...
    def close(self) -> None: ...

def scan(
    f: Callable[[_Carry, _X], tuple[_Carry, _Y]],
    init: _Carry,
    xs: _X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    desc: str | None = None,
    bar: str | Callable[[int | None, str | None], _Bar] | None = None,
) -> tuple[_Carry, _Y]: ...
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, _T], _T],
    init_val: _T,
    *,
    unroll: int | bool | None = None,
    desc: str | None = None,
    bar: str | Callable[[int | None, str | None], _Bar] | None = None,
) -> _T: ...
def while_loop(
    cond_fun: Callable[[_T], Any],
    body_fun: Callable[[_T], _T],
    init_val: _T,
    *,
    total: int | None = None,
    desc: str | None = None,
    bar: str | Callable[[int | None, str | None], _Bar] | None = None,
) -> _T: ...
