"""Profiles: a trace of annotations, tracing and compilation, as a file for https://ui.perfetto.dev
or chrome://tracing.

    with trace("/tmp/profile"):
        with StepTraceAnnotation("train", step_num=1):
            step(params, batch).block_until_ready()

The file is DIR/plugins/profile/TIME/perfetto_trace.json.gz. It has the annotated spans of each
thread, and those of tracing and compiling by the function's name; when kernels ran is not in it.

Invariant: one trace at a time; annotations outside of a trace cost next to nothing.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import gzip
import json
import os
import pathlib
import threading
import time
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Self, TypeVar

from ._base.flags import inert, refused
from ._runtime.compilation_log import Listener
from ._runtime.devices import devices, live_arrays
from ._runtime.xspace import ProfileData, ProfileEvent, ProfilePlane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

_P = ParamSpec("_P")
_R = TypeVar("_R")


__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileOptions",
    "ProfilePlane",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]


class ProfileOptions:
    """Options of a profile. Every option can be set; none has an effect."""


class _Profile:
    """The current trace."""

    def __init__(self, log_dir):
        self.log_dir, self.events, self.started = pathlib.Path(log_dir), [], time.perf_counter()
        self.lock, self.names = threading.Lock(), {}
        self.listener = Listener(lambda kind, name, start, seconds: self.span(f"{kind} {name}", start, seconds, kind, {"fun_name": name})).open()

    def span(self, name, start, seconds, category, args):
        thread = threading.current_thread()
        event = {"name": name, "cat": category, "ph": "X", "pid": os.getpid(), "tid": thread.ident, "args": args}
        with self.lock:
            self.names[thread.ident] = thread.name
            self.events.append(event | {"ts": (start - self.started) * 1e6, "dur": seconds * 1e6})

    def write(self):
        self.listener.close()
        place = self.log_dir / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")
        place.mkdir(parents=True, exist_ok=True)
        named = [{"name": "thread_name", "ph": "M", "pid": os.getpid(), "tid": i, "args": {"name": n}} for i, n in self.names.items()]
        with gzip.open(place / "perfetto_trace.json.gz", "wt") as f:
            json.dump({"displayTimeUnit": "ms", "traceEvents": [*named, *self.events]}, f)


_open = []


def start_trace(
    log_dir: PathLike[str] | str, create_perfetto_link: bool = False, create_perfetto_trace: bool = False, profiler_options: ProfileOptions | None = None
) -> None:
    """Starts a trace, which `stop_trace` writes to a directory.

    Args:
        log_dir: path of a directory, made if it does not exist.
        create_perfetto_link: must be False: there is no server that could show the trace.
        create_perfetto_trace: bool; True is accepted with a warning, since the file is written in
          any case.
        profiler_options: ProfileOptions, accepted with a warning, since a trace contains
          everything.

    Returns:
        None.

    Raises:
        RuntimeError: a trace is running already.
        NotImplementedError: `create_perfetto_link` is True.
    """
    if create_perfetto_link:
        refused("start_trace", "create_perfetto_link", create_perfetto_link, "nothing is served; open the file at https://ui.perfetto.dev")
    if create_perfetto_trace:
        inert("start_trace", "create_perfetto_trace", "the file is always written")
    if profiler_options is not None:
        inert("start_trace", "profiler_options", "a trace holds all there is")
    if _open:
        raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
    _open.append(_Profile(log_dir))


def stop_trace() -> None:
    """Ends the trace and writes it.

    Returns:
        None.

    Raises:
        RuntimeError: no trace is running.
    """
    if not _open:
        raise RuntimeError("No profile started")
    _open.pop().write()


@contextlib.contextmanager
def trace(
    log_dir: PathLike[str] | str, create_perfetto_link: bool = False, create_perfetto_trace: bool = False, profiler_options: ProfileOptions | None = None
) -> Iterator[None]:
    """A context manager that takes a trace of its block.

    Args:
        log_dir: path of a directory, made if it does not exist.
        create_perfetto_link: must be False: there is no server that could show the trace.
        create_perfetto_trace: bool; True is accepted with a warning, since the file is written in
          any case.
        profiler_options: ProfileOptions, accepted with a warning, since a trace contains
          everything.

    Yields:
        None.

    Raises:
        RuntimeError: a trace is running already.
        NotImplementedError: `create_perfetto_link` is True.
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation(contextlib.ContextDecorator):
    """Context manager and decorator: a span of this name in the trace.

    Args:
        name: the name of the span.
        **kwargs: data shown with the span.
    """

    def __init__(self, name: Any, **kwargs: Any) -> None:
        self.name, self.kwargs, self._starts = name, kwargs, []

    @staticmethod
    def is_enabled() -> bool:
        """Whether spans are written somewhere else than by `trace`: never."""
        return False

    def __enter__(self) -> Self:
        self._starts.append(time.perf_counter())
        return self

    def __exit__(self, *exc: Any) -> None:
        start = self._starts.pop()
        if _open:
            _open[0].span(self.name, start, time.perf_counter() - start, "annotation", {k: str(v) for k, v in self.kwargs.items()})

    def _recreate_cm(self):
        return type(self)(self.name, **self.kwargs)


class StepTraceAnnotation(TraceAnnotation):
    """A `TraceAnnotation` of step `step_num` of a loop."""


def annotate_function(func: Callable[_P, _R], name: str | None = None, **decorator_kwargs: Any) -> Callable[_P, _R]:
    """A function each call of which is a named span of the trace.

    Args:
        func: the function.
        name: str; by default the function's qualified name.
        **decorator_kwargs: details of the span.

    Returns:
        A function of the same arguments and results.
    """
    name = name or getattr(func, "__qualname__", None) or func.__name__

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        with TraceAnnotation(name, **decorator_kwargs):
            return func(*args, **kwargs)

    return wrapper


def start_server(port: int, requires_backend: bool = True) -> NoReturn:
    """Not supported, because there is no server: use `start_trace` and `stop_trace` in the process
    itself.

    Args:
        port: int.
        requires_backend: bool.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(f"start_server({port}, {requires_backend=}): nothing is served; use start_trace and stop_trace")


def stop_server() -> NoReturn:
    """Refused: no server was started.

    Raises:
        ValueError: always.
    """
    raise ValueError("No active profiler server.")


def device_memory_profile(backend: str | None = None) -> bytes:
    """The memory that arrays take on the devices of a platform.

    Args:
        backend: str, a platform; by default the default one.

    Returns:
        bytes of JSON: for each device, by name, a list of the type, count and bytes of the arrays
        that Python refers to.
    """
    out = {}
    for device in devices(backend):
        kinds = collections.Counter()
        for x in live_arrays(device.platform):
            if device in x.devices():
                kinds[x.aval.str_short(), x.nbytes // len(x.devices())] += 1
        out[str(device)] = [{"type": t, "count": n, "bytes": n * size} for (t, size), n in sorted(kinds.items())]
    return json.dumps(out).encode()


def save_device_memory_profile(filename: Any, backend: str | None = None) -> None:
    """Writes `device_memory_profile(backend)` to a file.

    Args:
        filename: path.
        backend: str, a platform; by default the default one.

    Returns:
        None.
    """
    pathlib.Path(filename).write_bytes(device_memory_profile(backend))


def register_subprocess(pid: int, port: int) -> None:
    """Accepted without effect: a profile contains only its own process.

    Args:
        pid: int, the other process.
        port: int, where its server listens.

    Returns:
        None.
    """
