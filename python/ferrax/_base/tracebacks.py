"""The frames that the traceback of an error shows: those of the user's code, not of this library
between them.

    @api_boundary
    def scan(f, init, xs): ...          # an error in f shows the call of scan and the line in f

Invariant: a traceback is filtered once, at the outermost boundary, as `jax_traceback_filtering`
says; without an error a boundary is one call.
"""

from __future__ import annotations

import builtins
import functools
import os
import sys
import types
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _core

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")

# Files, and folders, whose frames are not the user's.
exclude_paths = [os.path.dirname(os.path.dirname(__file__)) + os.sep]
# Modules of the standard library that call functions on behalf of this one.
_BETWEEN = frozenset({"contextlib", "functools", "threading", "_weakrefset", "weakref"})

_REMOVED = (
    "For simplicity, JAX has removed its internal frames from the traceback of the following exception. Set FERRAX_TRACEBACK_FILTERING=off to include these."
)
_WHOLE = "The stack trace below excludes JAX-internal frames.\nThe preceding is the original exception that occurred, unmodified.\n\n--------------------"


class UnfilteredStackTrace(Exception):
    """The cause of an error whose traceback was filtered: its own has all frames."""


class SimplifiedTraceback(Exception):
    """Says that frames were left out of a traceback."""

    def __str__(self):
        return _REMOVED


SimplifiedTraceback.__module__ = "ferrax.errors"


def include_filename(filename: str) -> bool:
    """Whether the frames of a file are shown."""
    return not filename.startswith(tuple(exclude_paths))


def include_frame(frame: types.FrameType) -> bool:
    """Whether a frame is the user's: its file is not excluded."""
    return include_filename(frame.f_code.co_filename)


def _hidden(frames):
    """For each frame whether it is hidden: those that are excluded, and helpers of the standard
    library between them and what they call.
    """
    hidden = False
    for frame in frames:
        hidden = not include_frame(frame) or (hidden and frame.f_globals.get("__name__") in _BETWEEN)
        yield hidden


def _entries(tb):
    """The entries of a traceback, from the outermost frame on."""
    entries = []
    while tb is not None:
        entries.append(tb)
        tb = tb.tb_next
    return entries


def filter_traceback(tb: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback with only the user's frames."""
    entries, out = _entries(tb), None
    for entry, hidden in reversed(list(zip(entries, _hidden([e.tb_frame for e in entries]), strict=True))):
        if not hidden:
            out = types.TracebackType(out, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return out


def _mode():
    mode = _core.config_get("jax_traceback_filtering")
    if mode not in (None, "auto"):
        return mode
    return "tracebackhide" if _in_notebook() else "quiet_remove_frames"


def _in_notebook():
    """Whether the code runs in an IPython session, which does not show frames that are marked."""
    ipython = sys.modules.get("IPython")  # IPython adds this function to the builtins while it runs a cell
    return hasattr(builtins, "get_ipython") and getattr(ipython, "version_info", (7, 17))[:2] >= (7, 17)


def _under_boundary(frame):
    """Whether a boundary is at work from this frame outwards."""
    while frame is not None:
        if frame.f_code is _BOUNDARY:
            return True
        frame = frame.f_back
    return False


def _hide(tb):
    frames = [entry.tb_frame for entry in _entries(tb)]
    for frame, hidden in zip(frames, _hidden(frames), strict=True):
        if hidden and frame.f_code is not _BOUNDARY:
            frame.f_locals["__tracebackhide__"] = True


def _with_callers(tb, frame):
    """A traceback with the frames that called it in front, up to the code of a module: a session's
    own frames lie above.
    """
    module = False
    import traceback

    for caller, line in traceback.walk_stack(frame):
        if "importlib._bootstrap" in caller.f_code.co_filename:
            continue
        if module and caller.f_code.co_name != "<module>":
            break
        if include_frame(caller):
            tb = types.TracebackType(tb, caller, caller.f_lasti, line)
        module = module or caller.f_code.co_name == "<module>"
    return tb


def filtered(error: BaseException, frame: types.FrameType | None, nested: bool = False) -> None:
    """Filters the traceback of an error that leaves the library, unless a boundary further out
    will.

    Args:
        error: an exception whose traceback begins below `frame`.
        frame: the frame that called the library.
        nested: whether something is traced, which a function further out began.
    """
    mode, tb = _mode(), error.__traceback__
    if mode == "off" or (nested and mode == "remove_frames") or not isinstance(error, Exception) or _under_boundary(frame):
        return
    if mode == "tracebackhide":
        _hide(tb)
        return
    error.with_traceback(filter_traceback(tb))
    if mode == "quiet_remove_frames":
        note = "--------------------\n" + _REMOVED
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        return
    if isinstance(error.__cause__, UnfilteredStackTrace):
        return
    import traceback

    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    whole = UnfilteredStackTrace(f"{text}\n\n{_WHOLE}").with_traceback(_with_callers(tb, frame))
    whole.__cause__, whole.__context__ = error.__cause__, error.__context__
    whole.__suppress_context__ = error.__suppress_context__
    error.__cause__ = whole
    error.__context__ = None


def left(error: BaseException, nested: bool) -> BaseException:
    """An error that leaves a jitted function, whose own frame no traceback has."""
    filtered(error, sys._getframe(1), nested)
    return error


def api_boundary(fun: _F, **_: Any) -> _F:
    """`fun`, from which errors come without the frames of this library."""

    @functools.wraps(fun)
    def reraise_with_filtered_traceback(*args, **kwargs):
        __tracebackhide__ = True
        try:
            return fun(*args, **kwargs)
        except Exception as e:
            filtered(e, sys._getframe(1), not _core.at_root())
            raise

    return reraise_with_filtered_traceback  # type: ignore[return-value]


# The code that all boundaries share.
_BOUNDARY = api_boundary(include_frame).__code__
