"""Groups of operations that a compiler is to schedule together.

Kernels run in the order of their plan, and values do not depend on it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_R = TypeVar("_R")

__all__ = ["scheduling_group", "xla_metadata_call"]


def scheduling_group(name: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Declares the operations of a function one scheduling group. It has no effect.

    Args:
        name: str, the name of the group.

    Returns:
        A decorator.
    """
    return xla_metadata_call(scheduling_group=name)


@overload
def xla_metadata_call(f: Callable[_P, _R], **meta: Any) -> Callable[_P, _R]: ...


@overload
def xla_metadata_call(f: None = None, **meta: Any) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...


def xla_metadata_call(f: Callable[..., Any] | None = None, **meta: Any) -> Callable[..., Any]:
    """A function with metadata for a compiler. The metadata are ignored.

    Args:
        f: function of pytrees of arrays; None: a decorator is returned.
        **meta: the metadata.

    Returns:
        A function of the same arguments and results.
    """
    if f is None:
        return functools.partial(xla_metadata_call, **meta)
    return functools.wraps(f)(lambda *args, **kwargs: f(*args, **kwargs))
