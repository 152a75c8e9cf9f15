"""Events, durations and numbers that libraries report, and who listens to them.

    register_event_duration_secs_listener(lambda event, seconds, **kw: print(event, seconds))
    record_event_duration_secs("/mine/load", 0.25)

While a listener of durations is registered, the runtime reports what tracing and compiling take, as
`/jax/core/compile/jaxpr_trace_duration` and `/jax/core/compile/backend_compile_duration`, with the
name of the function as `fun_name`.

Invariant: a listener is called once for each report, in the order in which they were registered, on
the thread that reports.
"""

from __future__ import annotations

from collections.abc import Callable

from ._runtime.compilation_log import Listener

__all__ = [
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]

_events, _durations, _spans, _scalars = [], [], [], []
_COMPILING = {"trace": "/jax/core/compile/jaxpr_trace_duration", "compile": "/jax/core/compile/backend_compile_duration"}


class _Runtime:
    """Listens to the runtime while there are listeners for durations."""

    def __init__(self):
        self.listener = None

    def settle(self):
        if _durations and self.listener is None:
            self.listener = Listener(lambda kind, name, start, seconds: record_event_duration_secs(_COMPILING[kind], seconds, fun_name=name)).open()
        elif not _durations and self.listener is not None:
            self.listener.close()
            self.listener = None


_runtime = _Runtime()


def record_event(event: str, **kwargs: str | int) -> None:
    """Reports an event: listeners are called with (event, **kwargs).

    Args:
        event: str, its name.
        **kwargs: details, strings or numbers.

    Returns:
        None.
    """
    for callback in list(_events):
        callback(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Reports a duration: listeners are called with (event, duration, **kwargs).

    Args:
        event: str, its name.
        duration: float, seconds.
        **kwargs: details, strings or numbers.

    Returns:
        None.
    """
    for callback in list(_durations):
        callback(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Reports a time span: listeners are called with (event, start_time, end_time, **kwargs).

    Args:
        event: str, its name.
        start_time, end_time: floats, seconds since a common origin.
        **kwargs: details, strings or numbers.

    Returns:
        None.
    """
    for callback in list(_spans):
        callback(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Reports a number: listeners are called with (event, value, **kwargs).

    Args:
        event: str, its name.
        value: number.
        **kwargs: details, strings or numbers.

    Returns:
        None.
    """
    for callback in list(_scalars):
        callback(event, value, **kwargs)


def register_event_listener(callback: Callable[..., None]) -> None:
    """Registers a function that is called for each event.

    Args:
        callback: `callback(event, **kwargs)`.

    Returns:
        None.
    """
    _events.append(callback)


def register_event_duration_secs_listener(callback: Callable[..., None]) -> None:
    """Registers a function that is called for each duration, those of Ferrax's own tracing and
    compiling included.

    Args:
        callback: `callback(event, duration, **kwargs)`.

    Returns:
        None.
    """
    _durations.append(callback)
    _runtime.settle()


def register_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Registers a function that is called for each time span.

    Args:
        callback: `callback(event, start_time, end_time, **kwargs)`.

    Returns:
        None.
    """
    _spans.append(callback)


def register_scalar_listener(callback: Callable[..., None]) -> None:
    """Registers a function that is called for each number.

    Args:
        callback: `callback(event, value, **kwargs)`.

    Returns:
        None.
    """
    _scalars.append(callback)


def _gone(listeners, callback):
    if callback not in listeners:
        raise ValueError(f"{callback} is not registered")
    listeners.remove(callback)


def unregister_event_listener(callback: Callable[..., None]) -> None:
    """Removes a listener of events.

    Args:
        callback: a registered function.

    Returns:
        None.

    Raises:
        ValueError: it is not registered.
    """
    _gone(_events, callback)


def unregister_event_duration_listener(callback: Callable[..., None]) -> None:
    """Removes a listener of durations.

    Args:
        callback: a registered function.

    Returns:
        None.

    Raises:
        ValueError: it is not registered.
    """
    _gone(_durations, callback)
    _runtime.settle()


def unregister_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Removes a listener of time spans.

    Args:
        callback: a registered function.

    Returns:
        None.

    Raises:
        ValueError: it is not registered.
    """
    _gone(_spans, callback)


def unregister_scalar_listener(callback: Callable[..., None]) -> None:
    """Removes a listener of numbers.

    Args:
        callback: a registered function.

    Returns:
        None.

    Raises:
        ValueError: it is not registered.
    """
    _gone(_scalars, callback)


def clear_event_listeners() -> None:
    """Removes all listeners.

    Returns:
        None.
    """
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()
    _runtime.settle()
