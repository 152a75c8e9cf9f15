"""Sections of docstrings that functions of one kind have in common.

Invariant: the decorator changes the docstring alone, which is then as if it had been written whole.

    as_float = sections("Args: ..")

    @as_float
    def exp(x): ...
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")
# From Python 3.13 on docstrings are without their indentation.
_INDENT = "" if sys.version_info >= (3, 13) else "    "
_EXAMPLE = f"\n\n{_INDENT}>>> "


def sections(text: str) -> Callable[[_F], _F]:
    """Decorator: the docstring with these sections, indented by four spaces, before its example or
    at its end.
    """
    text = f"\n\n    {text.strip()}".replace("\n    ", f"\n{_INDENT}")

    def decorate(f):
        if f.__doc__:  # -OO drops docstrings
            head, mark, example = f.__doc__.partition(_EXAMPLE)
            f.__doc__ = f"{head.rstrip()}{text}{mark}{example}"
        return f

    return decorate
