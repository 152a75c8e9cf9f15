"""Checks of values inside programs: `check` and automatic ones, made part of what a function returns."""

from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = [
    "DivisionByZeroError",
    "Error",
    "ErrorCategory",
    "FailedCheckError",
    "JaxException",
    "JaxRuntimeError",
    "NaNError",
    "OOBError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]

class DivisionByZeroError(JaxException): ...

class Error:
    def __init__(self, _pred: Any, _code: Any, _metadata: Any, _payload: Any) -> None: ...
    def get(self) -> str | None: ...
    def get_exception(self) -> Any: ...
    def throw(self) -> Any: ...

ErrorCategory: TypeAlias = Any

class FailedCheckError(JaxException): ...
class JaxException(Exception): ...
class JaxRuntimeError(ValueError): ...
class NaNError(JaxException): ...
class OOBError(JaxException): ...

all_checks: frozenset[Any]
automatic_checks: frozenset[Any]

def check(pred: bool, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None: ...
def check_error(error: Error) -> None: ...
def checkify(f: Callable[..., Any], errors: frozenset[Any] = ...) -> Callable[..., tuple[Error, Any]]: ...
def debug_check(pred: bool, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None: ...

div_checks: frozenset[Any]
float_checks: frozenset[Any]
index_checks: frozenset[Any]
init_error: Error
nan_checks: frozenset[Any]
user_checks: frozenset[Any]
