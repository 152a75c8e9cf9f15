"""Source lines of equations and errors.

    register_exclusion(__file__)            # never from this file of a library

Invariant: the innermost line that is neither Ferrax's nor excluded. A user-defined line is that of
the caller; names around operations are `jax.named_scope`'s.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core import exclude_source
from .._tracing.trace import named_scope

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "NameStack",
    "SourceInfo",
    "current",
    "current_name_stack",
    "extend_name_stack",
    "new_name_stack",
    "new_source_info",
    "register_exclusion",
    "reset_name_stack",
    "set_name_stack",
    "summarize",
    "transform_name_stack",
    "user_context",
]


class NameStack(tuple):
    """Names around operations."""

    __slots__ = ()

    def extend(self, name: str) -> NameStack:
        """The stack with one more name."""
        return NameStack((*self, name))

    transform = extend

    def __str__(self):
        return "/".join(self)


class SourceInfo(NamedTuple):
    """A line, and the names around it."""

    traceback: Any = None
    name_stack: NameStack = NameStack()

    def replace(self, *, traceback: Any = None, name_stack: NameStack | None = None) -> SourceInfo:
        """With another line, or other names."""
        return SourceInfo(traceback or self.traceback, self.name_stack if name_stack is None else name_stack)


def register_exclusion(path: str) -> None:
    """Excludes a file from the source lines that equations and errors name.

    Args:
        path: str, a file, or a folder whose files are all excluded.

    Returns:
        None.
    """
    exclude_source(path)


def new_name_stack(name: str = "") -> NameStack:
    """Names around operations.

    Args:
        name: str, the only name; "" for none.

    Returns:
        NameStack.
    """
    return NameStack((name,) if name else ())


def new_source_info() -> SourceInfo:
    """An unknown source line.

    Returns:
        SourceInfo without frames.
    """
    return SourceInfo()


def current() -> SourceInfo:
    """The source line of the caller.

    Returns:
        SourceInfo.
    """
    return SourceInfo(sys._getframe(1))


def current_name_stack() -> NameStack:
    """The names around operations; always empty, because programs store the names of
    `jax.named_scope` themselves.

    Returns:
        NameStack, empty.
    """
    return NameStack()


class Frame(NamedTuple):
    """A place in a source file."""

    file_name: str
    function_name: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int


def user_frames(source_info: Any) -> list[Frame]:
    """The places that an equation's `source_info`, a traceback or a frame names, the innermost
    first: one, or none where none is known.
    """
    at = getattr(source_info, "traceback", source_info)
    while getattr(at, "tb_next", None) is not None:
        at = at.tb_next
    if hasattr(at, "file_name"):
        return [Frame(*(getattr(at, field) for field in Frame._fields))]
    at = getattr(at, "tb_frame", at)
    if not hasattr(at, "f_code"):
        return []
    line = at.f_lineno
    _, end, column, end_column = next(itertools.islice(at.f_code.co_positions(), max(at.f_lasti, 0) // 2, None), (None,) * 4)
    return [Frame(at.f_code.co_filename, at.f_code.co_qualname, line, column or 0, end or line, end_column or 0)]


def user_frame(source_info: Any) -> Frame | None:
    """The innermost location that it contains; None if there is none."""
    return next(iter(user_frames(source_info)), None)


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Source lines as text.

    Args:
        source_info: SourceInfo.
        num_frames: int, how many frames, the innermost first.

    Returns:
        str: `file:line:column (function)` for each frame, or "unknown".
    """
    return "\n".join(f"{f.file_name}:{f.start_line}:{f.start_column} ({f.function_name})" for f in user_frames(source_info)[:num_frames]) or "unknown"


@contextlib.contextmanager
def user_context(tb: Any = None, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """A context manager without effect: equations that are traced inside have their own source
    lines.

    Args:
        tb: accepted without effect.
        name_stack: accepted without effect.

    Yields:
        None.
    """
    yield


def extend_name_stack(name: str) -> named_scope:
    """A context manager that adds a name to the equations traced inside, as `jax.named_scope` does.

    Args:
        name: str.

    Returns:
        The context manager.
    """
    return named_scope(name)


transform_name_stack = extend_name_stack


@contextlib.contextmanager
def reset_name_stack() -> Iterator[NameStack]:
    """A context manager without effect: the equations traced inside have the names around it.

    Yields:
        NameStack, empty.
    """
    yield NameStack()


@contextlib.contextmanager
def set_name_stack(name_stack: NameStack) -> Iterator[NameStack]:
    """A context manager that adds names to the equations traced inside.

    Args:
        name_stack: NameStack, or a sequence of strings.

    Yields:
        `name_stack`.
    """
    with contextlib.ExitStack() as stack:
        for name in name_stack:
            stack.enter_context(named_scope(name))
        yield name_stack
