"""`check`: a condition in a program, with a message that shows values.

    check(x > 0, "x is {}", x)

Invariant: a check raises where its program runs, unless `checkify` has transformed the function.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ... import _core, lax
from ..._base.dtypes import is_key
from ..._base.tracebacks import api_boundary
from ...lax._bodies import as_array
from ...random import key_data, wrap_key_data
from ...tree_util import tree_flatten
from ._errors import Error, FailedCheckError, JaxRuntimeError, Site, Sites, exception_of, slots_of


class CheckFunction:
    """The function of a `check` in a program. It raises unless `checkify` has transformed it."""

    inner = False  # whether it is the result of checks that a `checkify` of one element has made

    def __init__(self, site, slots, debug):
        self.site, self.slots, self.debug = site, slots, debug
        self.__name__ = "check"

    def __call__(self, pred, *values):
        pred = np.asarray(pred)
        if not self.debug and not pred.all():
            index = np.unravel_index(int(np.argmin(pred)), pred.shape)
            values = [np.asarray(v)[index] for v in values]
            raise JaxRuntimeError(str(self.site.kind(self.site.text(dict(zip(self.slots, values, strict=True)), Sites()))))
        return []


@api_boundary
def check(pred: bool, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Fails with a message unless a condition holds.

    Inside a function that `checkify` transforms, the failure is part of the returned error.
    Elsewhere it raises: at once, or when the program runs.

    Args:
        pred: boolean scalar.
        msg: a format string in the manner of `str.format`.
        *fmt_args, **fmt_kwargs: values for the format: pytrees of arrays.
        debug: bool; True: do nothing outside functions that `checkify` transforms.

    Returns:
        None.

    Raises:
        TypeError: `pred` is not a boolean scalar, or a value for the format is not an array.
        IndexError, KeyError: the format names a value that is not given.
        JaxRuntimeError: outside of programs, the check failed.

    >>> from ferrax.experimental import checkify
    >>> f = checkify.checkify(lambda x: checkify.check(x > 0, "x is {}", x))
    >>> err, _ = f(jnp.float32(-1))
    >>> err.get()
    'x is -1.0 (`check` failed)'
    """
    aval = _core.get_aval(pred) if not isinstance(pred, (list, tuple, dict, str, type(None))) else None
    if aval is None or tuple(aval.shape) != () or aval.dtype != np.bool_:
        raise TypeError(f"check takes a scalar pred as argument, got {pred}")
    leaves, tree = tree_flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not isinstance(x, (_core.Array, np.ndarray, np.generic, bool, int, float, complex)):
            raise TypeError(f"Formatting arguments to checkify.check need to be PyTrees of arrays, but got {x!r} of type {type(x)}.")
    leaves = [as_array(x) for x in leaves]
    # What an error carries are numbers: of a key, its words.
    generators = [x.dtype.implementation if is_key(x.dtype) else None for x in leaves]
    leaves = [x if g is None else key_data(x) for g, x in zip(generators, leaves, strict=True)]

    def shown(values):
        values = [_core.asarray(v) if g is None else wrap_key_data(v, impl=g) for g, v in zip(generators, values, strict=True)]
        args, kwargs = tree.unflatten(values)
        return msg.format(*args, **kwargs)

    with _core.eval_context():
        shown([np.zeros(x.shape, x.dtype) for x in leaves])
    slots = slots_of([x.aval for x in leaves])

    def text(values, _):
        with _core.eval_context():
            return shown([values[s] for s in slots]) + " (`check` failed)"

    emit(CheckFunction(Site(FailedCheckError, text), slots, debug), as_array(pred), leaves)


@api_boundary
def debug_check(pred: bool, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """A `check` inside functions that `checkify` transforms; elsewhere it does nothing.

    Args:
        pred: boolean scalar.
        msg: a format string in the manner of `str.format`.
        *fmt_args, **fmt_kwargs: values for the format: pytrees of arrays.

    Returns:
        None.

    Raises:
        TypeError: `pred` is not a boolean scalar, or a value for the format is not an array.
        IndexError, KeyError: the format names a value that is not given.
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


@api_boundary
def check_error(error: Error) -> None:
    """Fails if an error says that a check failed: raises, or, inside a program, is a `check`.

    Args:
        error: Error, as a function that `checkify` transformed returns it.

    Returns:
        None.

    Raises:
        TypeError: `error` is not an `Error`.
        JaxRuntimeError: outside of programs, the error says that a check failed.
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    code, payload = as_array(error._code), [as_array(x) for x in error._payload]
    if not any(isinstance(x, _core.Tracer) for x in (code, *payload)):
        error.throw()
        return
    if code.ndim:
        first = lax.argmax(lax.reshape(lax.ge(code, lax.full_like(code, 0)), (code.size,)), 0, np.int32)
        pick = lambda x: lax.dynamic_index_in_dim(lax.reshape(x, (code.size, *x.shape[code.ndim :])), first, keepdims=False)
        code, payload = pick(code), [pick(x) for x in payload]
    values = [code, *payload]
    slots = slots_of([x.aval for x in values])
    own, sites = error._slots, error._sites  # the program keeps these, and not the error, whose code is traced

    def text(found, _):
        inner, *rest = [found[s] for s in slots]
        return str(exception_of(int(inner), dict(zip(own, rest, strict=True)), sites))

    emit(CheckFunction(Site(FailedCheckError, text), slots, False), lax.lt(code, np.int32(0)), values)


# While a function with a derivative rule runs for its derivative alone: its checks are those of the walk.
_silent = threading.local()


def silently(f):
    """`f`, with no checks in it."""

    def run(*args):
        outer, _silent.on = getattr(_silent, "on", False), True
        try:
            return f(*args)
        finally:
            _silent.on = outer

    return run


def emit(function, pred, values):
    """Puts a check into the program; outside of any, it is run."""
    if getattr(_silent, "on", False):
        return
    if _core.at_root() and not any(isinstance(v, _core.Tracer) for v in (pred, *values)):
        function(pred, *values)
    else:
        _core.callback(function, [pred, *values], [], "debug", False, "broadcast_all")
