"""Which lines of a program its equations and errors are said to come from."""

from typing import Any

__all__ = ["register_exclusion"]

def register_exclusion(path: str) -> Any: ...
