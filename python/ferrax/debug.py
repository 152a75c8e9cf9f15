"""Looking into programs while they run: `debug.print`, `debug.callback`.

    @jit
    def f(x):
        debug.print("x = {}", x)
        return x ** 2

Invariant: output appears once per run (once per element under `vmap`), and never changes a result.
"""

from __future__ import annotations

import builtins
import collections
import functools
import inspect
import logging
import string
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from ._base.flags import inert, refused
from ._base.tracebacks import api_boundary
from ._runtime import callback as _callback
from .tree_util import tree_leaves

if TYPE_CHECKING:
    from ._core import Array
    from .sharding import Sharding

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]

_logger = logging.getLogger(__name__)


class DebugEffect:
    """The effect of `print` and `callback`, named `IO` in programs."""


class OrderedDebugEffect:
    """The effect of ordered `print` and `callback`, named `OrderedIO` in programs."""


class _Formatter(string.Formatter):
    """Raises an error for arguments that the format does not use, since they were most likely meant
    to be printed.
    """

    def check_unused_args(self, used_args, args, kwargs):
        unused = [arg for i, arg in enumerate(args) if i not in used_args]
        if unused:
            raise ValueError(f"Unused positional arguments to `jax.debug.print`: {unused}")
        unused = [k for k in kwargs if k not in used_args]
        if unused:
            raise ValueError(
                f"Unused keyword arguments to `jax.debug.print`: {unused}. You may be passing an f-string (i.e, "
                '`f"{x}"`) into `jax.debug.print` and instead should pass in a regular string.'
            )


_formatter = _Formatter()


def _print(fmt, *args, **kwargs):
    # in one piece: several devices may print at a time
    builtins.print(fmt.format(*args, **kwargs) + "\n", end="")


def _log(fmt, *args, **kwargs):
    _logger.info(fmt.format(*args, **kwargs))


class _Placeholder:
    """Accepts any format specification, so that a format can be checked before its values exist."""

    def __init__(self, value):
        self.__dict__["_value"] = value

    def __repr__(self):
        return repr(self.__dict__["_value"])

    def __format__(self, spec):
        return ""

    def __getattr__(self, name):
        return self

    def __getitem__(self, key):
        return self


def _no_more(name, args, kwargs):
    """The two-call form, `print(ordered=True)("x = {}", x)`: the second call takes the
    arguments.
    """
    if args or kwargs:
        raise TypeError(f"{name} received unexpected arguments in the two-call form: {args=} {kwargs=}")


def _emit(write, ordered, skip_format_check, fmt, /, *args, **kwargs):
    if not isinstance(fmt, str):
        raise TypeError(f"expected str, got {type(fmt).__name__}")
    if not skip_format_check:
        _formatter.format(fmt, *map(_Placeholder, args), **{k: _Placeholder(v) for k, v in kwargs.items()})
    _callback.debug_callback(functools.partial(write, fmt), args, kwargs, ordered, "print")


def _call(ordered, fun, /, *args, **kwargs):
    if not callable(fun):
        raise TypeError(f"first argument to jax.debug.callback must be callable, but got an object of type {type(fun)}")
    _callback.debug_callback(fun, args, kwargs, ordered)


def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Prints values from inside a program, each time it runs.

    Args:
        fmt: a format string in the manner of `str.format`; None for the two-call form,
          `print(ordered=True)("x = {}", x)`.
        *args, **kwargs: the values: arrays, or anything else.
        ordered: bool; whether the lines appear in program order. An ordered print cannot be mapped.
        partitioned: bool; True is accepted with a warning, since values are printed whole.
        skip_format_check: bool; whether to leave the format unchecked until the values are there.

    Returns:
        None; in the two-call form, the function that takes the format and the values.

    Raises:
        TypeError: `fmt` is not a string.
        ValueError: the format does not use one of the values (most likely an f-string was given).
        IndexError: the format names more positional values than there are.
        KeyError: the format names a value that is not given.
    """
    if partitioned:
        inert("debug.print", "partitioned", "whole arrays are printed")
    emit = functools.partial(_emit, _log if _use_logging else _print, ordered, skip_format_check)
    if fmt is None:
        _no_more("debug_print", args, kwargs)
        return emit
    emit(fmt, *args, **kwargs)


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = True,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Writes values from inside a program to the logger `ferrax.debug` at level INFO, each time it
    runs.

    Args:
        fmt: a format string in the manner of `str.format`; None for the two-call form,
          `log(ordered=True)("x = {}", x)`.
        *args, **kwargs: the values: arrays, or anything else.
        ordered: bool; whether the lines appear in program order. Ordered output cannot be mapped.
        partitioned: bool; True is accepted with a warning, since values are written whole.
        skip_format_check: bool; whether to leave the format unchecked until the values are there.

    Returns:
        None; in the two-call form, the function that takes the format and the values.

    Raises:
        TypeError, ValueError, IndexError, KeyError: as `print` raises them.
    """
    return print(fmt, *args, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check, _use_logging=True, **kwargs)


@api_boundary
def callback(
    callback: Callable[..., None] | None = None, *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any
) -> Callable[..., None] | None:
    """Calls a Python function from inside a program, each time it runs; its result is not used.

    Args:
        callback: the function; None for the two-call form, `callback(ordered=True)(f, x)`.
        *args, **kwargs: its arguments, pytrees of arrays; they arrive as arrays on the host.
        ordered: bool; whether calls happen in program order. An ordered callback cannot be mapped.
        partitioned: bool; True is accepted with a warning, since arguments are passed whole.

    Returns:
        None; in the two-call form, the function that takes the callback and its arguments.

    Raises:
        TypeError: `callback` is not callable.
    """
    if partitioned:
        inert("debug.callback", "partitioned", "the callback gets whole arrays")
    if callback is None:
        _no_more("debug_callback", args, kwargs)
        return functools.partial(_call, ordered)
    _call(ordered, callback, *args, **kwargs)


# ---------------------------------------------------------------- where arrays are


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Calls a function with the sharding of an array: at once, or, for a traced array, each time
    the program runs.

    Args:
        value: array, or a pytree of arrays.
        callback: function of one sharding; it is called once for each leaf.

    Returns:
        None.

    >>> inspect_array_sharding(jnp.ones(3), callback=lambda s: builtins.print(s.num_devices))
    1
    """
    for x in tree_leaves(value):
        if isinstance(x, _core.Tracer):
            _callback.debug_callback(lambda x: callback(x.sharding), (x,), {}, False)
        else:
            callback(_core.asarray(x).sharding)


def visualize_sharding(
    shape: Sequence[int], sharding: Sharding, *, use_color: bool = True, scale: float = 1.0, min_width: int = 9, max_width: int = 80, color_map: Any = None
) -> None:
    """Prints the shards of an array of one or two dimensions as boxes with the names of their
    devices.

    Args:
        shape: tuple of one or two ints, the array's shape.
        sharding: Sharding, where the array's parts are.
        use_color: bool; False is accepted with a warning, since the picture has no colors.
        scale: number; a picture of n columns is 12 n `scale` characters wide, within the two bounds
          that follow.
        min_width: int, the least width of the picture in characters.
        max_width: int, the greatest width of the picture in characters.
        color_map: accepted with a warning, since the picture has no colors.

    Returns:
        None.

    Raises:
        ValueError: the array has no dimension, or more than two.
    """
    if color_map is not None:
        inert("visualize_sharding", "color_map", "the picture is text")
    if not use_color:
        inert("visualize_sharding", "use_color", "the picture is text")
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    places = collections.defaultdict(list)
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        rows, columns = index if len(shape) == 2 else (slice(None), index[0])
        places[rows.start or 0, columns.start or 0].append(device)
    rows, columns = (sorted({place[d] for place in places}) for d in (0, 1))
    width = int(min(max(12 * scale * len(columns), min_width), max_width)) // len(columns)
    names = {place: f"{ds[0].platform.upper()} {','.join(str(d.id) for d in ds)}" for place, ds in places.items()}
    width = max([width, *[len(n) + 2 for n in names.values()]])
    line = lambda left, between, right: left + between.join(["─" * width] * len(columns)) + right
    text = [line("┌", "┬", "┐")]
    for i, r in enumerate(rows):
        text += [line("├", "┼", "┤")] if i else []
        text.append("│" + "│".join(names.get((r, c), "").center(width) for c in columns) + "│")
    builtins.print("\n".join([*text, line("└", "┴", "┘")]))


def visualize_array_sharding(arr: Array, **kwargs: Any) -> None:
    """Prints the parts of an array as `visualize_sharding` does: at once, or, for a traced array,
    each time the program runs.

    Args:
        arr: array of one or two dimensions.
        **kwargs: options of `visualize_sharding`.

    Returns:
        None.

    Raises:
        ValueError: the array has no dimension, or more than two.

    >>> visualize_array_sharding(jnp.ones(4))
    ┌────────────┐
    │   CPU 0    │
    └────────────┘
    """
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs))


# ---------------------------------------------------------------- stopping


def breakpoint(
    *, backend: str | None = None, filter_frames: bool = True, num_frames: int | None = None, ordered: bool = False, token: Any = None, **kwargs: Any
) -> None:
    """Stops here with Python's debugger (`sys.breakpointhook`): at once, or, in a program, each
    time it runs.

    The debugger shows a frame with the caller's variables, arrays with the values that they have at
    that time: `p x`. `c` continues.

    Args:
        backend: must be None: there is only Python's debugger.
        filter_frames: bool; False is accepted with a warning, since one frame is shown.
        num_frames: accepted with a warning, since one frame is shown.
        ordered: bool; whether stops happen in program order.
        token: accepted with a warning, since `ordered` alone determines the order.
        **kwargs: passed to `sys.breakpointhook`.

    Returns:
        None.

    Raises:
        NotImplementedError: a backend is given.
    """
    if backend is not None:
        refused("breakpoint", "backend", backend, "it starts Python's debugger")
    if not filter_frames:
        inert("breakpoint", "filter_frames", "one frame is shown")
    if num_frames is not None:
        inert("breakpoint", "num_frames", "one frame is shown")
    if token is not None:
        inert("breakpoint", "token", "`ordered` decides on the order")
    frame = inspect.currentframe().f_back
    where = f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"
    variables = {name: x for name, x in frame.f_locals.items() if name.isidentifier() and not name.startswith("__")}
    traced = {name for name, x in variables.items() if any(isinstance(leaf, _core.Tracer) for leaf in tree_leaves(x))}
    known = {name: x for name, x in variables.items() if name not in traced}

    def stop(arrays):
        scope = {}
        exec(f"def stopped({', '.join(variables)}):\n    _stop()", {"_stop": functools.partial(builtins.breakpoint, **kwargs)}, scope)
        builtins.print(f"stopped at {where}")
        scope["stopped"](**known, **arrays)

    _callback.debug_callback(stop, ({name: variables[name] for name in sorted(traced)},), {}, ordered)
