"""Looking into programs while they run: `debug.print`, `debug.callback`.

    @jit
    def f(x):
        debug.print("x = {}", x)
        return x ** 2

Invariant: output appears once per run (once per element under `vmap`), and never changes a result.
"""

import builtins
import functools
import logging
import string

from . import _callback
from ._config import inert

__all__ = ["callback", "log", "print"]

_logger = logging.getLogger(__name__)


class _Formatter(string.Formatter):
    """Refuses arguments that the format does not use, as they are most likely meant to be printed."""

    def check_unused_args(self, used_args, args, kwargs):
        unused = [arg for i, arg in enumerate(args) if i not in used_args]
        if unused:
            raise ValueError(f"Unused positional arguments to `jax.debug.print`: {unused}")
        unused = [k for k in kwargs if k not in used_args]
        if unused:
            raise ValueError(
                f"Unused keyword arguments to `jax.debug.print`: {unused}. You may be passing an f-string (i.e, "
                '`f"{x}"`) to `jax.debug.print` and instead should pass in a regular string.'
            )


_formatter = _Formatter()


def _print(fmt, *args, **kwargs):
    builtins.print(fmt.format(*args, **kwargs))


def _log(fmt, *args, **kwargs):
    _logger.info(fmt.format(*args, **kwargs))


class _Placeholder:
    """Accepts any format specification, so that a format can be checked before its values exist."""

    def __format__(self, spec):
        return ""

    def __getattr__(self, name):
        return self

    def __getitem__(self, key):
        return self


def _no_more(name, args, kwargs):
    """The two-call form, `print(ordered=True)("x = {}", x)`, takes what is printed in its second call."""
    if args or kwargs:
        raise TypeError(f"{name} received unexpected arguments in the two-call form: {args=} {kwargs=}")


def _emit(write, ordered, skip_format_check, fmt, /, *args, **kwargs):
    if not isinstance(fmt, str):
        raise TypeError(f"expected str, got {type(fmt).__name__}")
    if not skip_format_check:
        stand_in = _Placeholder()
        _formatter.format(fmt, *[stand_in] * len(args), **{k: stand_in for k in kwargs})
    _callback.debug_callback(functools.partial(write, fmt), args, kwargs, ordered)


def _call(ordered, fun, /, *args, **kwargs):
    if not callable(fun):
        raise TypeError(f"first argument to jax.debug.callback must be callable, but got an object of type {type(fun)}")
    _callback.debug_callback(fun, args, kwargs, ordered)


def print(fmt=None, *args, ordered=False, partitioned=False, skip_format_check=False, _use_logging=False, **kwargs):
    """Prints values from inside a program, each time it runs.

    Args:
      fmt: a format string in the manner of `str.format`.
      *args, **kwargs: the values: arrays, or anything else.
      ordered: prints appear in program order. An ordered print cannot be mapped.
      partitioned: print per device what it holds.
      skip_format_check: do not check the format against the values beforehand.

    Raises:
      ValueError: a value is not used by the format (most likely an f-string was given). IndexError, KeyError: a value is missing.
    """
    if partitioned:
        inert("debug.print", "partitioned", "values are whole")
    emit = functools.partial(_emit, _log if _use_logging else _print, ordered, skip_format_check)
    if fmt is None:
        _no_more("debug_print", args, kwargs)
        return emit
    emit(fmt, *args, **kwargs)


def log(fmt=None, *args, ordered=False, partitioned=False, skip_format_check=False, _use_logging=True, **kwargs):
    """As `print`, to this module's logger at level INFO."""
    return print(fmt, *args, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check, _use_logging=True, **kwargs)


def callback(callback=None, *args, ordered=False, partitioned=False, **kwargs):
    """Calls a Python function from inside a program, each time it runs; its result is not used.

    Args:
      callback: a function.
      *args, **kwargs: its arguments, pytrees of arrays; they arrive as arrays on the host.
      ordered: calls happen in program order. An ordered callback cannot be mapped.
      partitioned: call per device with what it holds.

    Raises:
      TypeError: `callback` is not callable.
    """
    if partitioned:
        inert("debug.callback", "partitioned", "arguments are whole")
    if callback is None:
        _no_more("debug_callback", args, kwargs)
        return functools.partial(_call, ordered)
    _call(ordered, callback, *args, **kwargs)
