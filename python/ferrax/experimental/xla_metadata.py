"""Metadata for another compiler, attached to operations.

Ferrax ignores it; values do not depend on it.
"""

from __future__ import annotations

import contextlib
from typing import Any, TypeVar, overload

_T = TypeVar("_T")

__all__ = ["set_xla_metadata"]


@overload
def set_xla_metadata(x: _T, **kwargs: Any) -> _T: ...


@overload
def set_xla_metadata(x: None = None, **kwargs: Any) -> _Words: ...


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Metadata for a compiler, which is ignored: of the operations that make a value, or,
    as a context manager and decorator, of all inside.

    Args:
        x: pytree of arrays, or None.
        **kwargs: the metadata.

    Returns:
        `x`; without it the context manager.
    """
    return _Words() if x is None else x


class _Words(contextlib.ContextDecorator):
    """A block that is as it would be without."""

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return False
