"""Events, durations and numbers that libraries report, and who listens to them.

    register_event_duration_secs_listener(lambda event, seconds, **kw: print(event, seconds))
    record_event_duration_secs("/mine/load", 0.25)

While somebody listens to durations, the runtime reports what tracing and compiling take, as `/jax/core/compile/jaxpr_trace_duration` and
`/jax/core/compile/backend_compile_duration`, with the name of the function as `fun_name`.

Invariant: a listener is called once for each report, in the order in which they were registered, on the thread that reports.
"""

from ._compilations import Listener

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
    """Listens to the runtime while somebody listens to durations."""

    def __init__(self):
        self.listener = None

    def settle(self):
        if _durations and self.listener is None:
            self.listener = Listener(lambda kind, name, start, seconds: record_event_duration_secs(_COMPILING[kind], seconds, fun_name=name)).open()
        elif not _durations and self.listener is not None:
            self.listener.close()
            self.listener = None


_runtime = _Runtime()


def record_event(event, **kwargs):
    """Reports that something happened: listeners are called with (event, **kwargs)."""
    for callback in list(_events):
        callback(event, **kwargs)


def record_event_duration_secs(event, duration, **kwargs):
    """Reports how long something took: listeners are called with (event, seconds, **kwargs)."""
    for callback in list(_durations):
        callback(event, duration, **kwargs)


def record_event_time_span(event, start_time, end_time, **kwargs):
    """Reports when something began and ended: listeners are called with (event, start, end, **kwargs)."""
    for callback in list(_spans):
        callback(event, start_time, end_time, **kwargs)


def record_scalar(event, value, **kwargs):
    """Reports a number: listeners are called with (event, value, **kwargs)."""
    for callback in list(_scalars):
        callback(event, value, **kwargs)


def register_event_listener(callback):
    """Has `callback` called for each event."""
    _events.append(callback)


def register_event_duration_secs_listener(callback):
    """Has `callback` called for each duration."""
    _durations.append(callback)
    _runtime.settle()


def register_event_time_span_listener(callback):
    """Has `callback` called for each time span."""
    _spans.append(callback)


def register_scalar_listener(callback):
    """Has `callback` called for each number."""
    _scalars.append(callback)


def _gone(listeners, callback):
    if callback not in listeners:
        raise ValueError(f"{callback} is not registered")
    listeners.remove(callback)


def unregister_event_listener(callback):
    """Calls `callback` for events no more. ValueError where it is not registered."""
    _gone(_events, callback)


def unregister_event_duration_listener(callback):
    """Calls `callback` for durations no more. ValueError where it is not registered."""
    _gone(_durations, callback)
    _runtime.settle()


def unregister_event_time_span_listener(callback):
    """Calls `callback` for time spans no more. ValueError where it is not registered."""
    _gone(_spans, callback)


def unregister_scalar_listener(callback):
    """Calls `callback` for numbers no more. ValueError where it is not registered."""
    _gone(_scalars, callback)


def clear_event_listeners():
    """Removes the listener."""
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()
    _runtime.settle()
