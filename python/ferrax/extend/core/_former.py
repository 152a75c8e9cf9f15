"""Names that stood in `jax.core` once, and are read there with a warning.

Invariant: tables here are not read; types of values and of rules are the extension's.
"""

import enum
from collections import defaultdict
from typing import NamedTuple

from ... import _core
from ...errors import ConcretizationTypeError, JaxprTypeError as JaxprTypeError, TracerBoolConversionError, TracerIntegerConversionError

__all__ = [
    "JaxprPpContext",
    "JaxprPpSettings",
    "JaxprTypeError",
    "OutputType",
    "aval_mapping_handlers",
    "concretization_function_error",
    "custom_typechecks",
    "is_concrete",
    "literalable_types",
    "no_axis_name",
    "trace_ctx",
]

aval_mapping_handlers, custom_typechecks = {}, {}
literalable_types = {bool, int, float, complex}
no_axis_name = object()


class OutputType(enum.Enum):
    """The result of a tracing function."""

    Jaxpr = 0
    ClosedJaxpr = 1


class JaxprPpContext:
    """The names of variables in a printed program."""

    def __init__(self, var_names=None):
        self.shared_jaxprs, self.shared_jaxpr_names = {}, set()
        self.var_names = defaultdict(str, var_names or {})


class JaxprPpSettings(NamedTuple):
    """How a program is printed."""

    print_shapes: bool = True
    source_info: bool = False
    name_stack: bool = False
    custom_pp_eqn_rules: bool = True
    print_effects: bool = False


class _TraceContext:
    """The transformations at work."""

    @property
    def trace(self):
        """The innermost."""
        traces = _core.traces()
        return traces[-1] if traces else None

    def is_top_level(self):
        """Whether there are none."""
        return all(t.what == "eval" for t in _core.traces())


trace_ctx = _TraceContext()


def is_concrete(x):
    """Whether the value of `x` is known now: true for an array, and for a tracer of a derivative
    whose primal is one.
    """
    if not isinstance(x, _core.Tracer):
        return True
    try:
        return bool((x != x).any()) in (False, True)
    except TypeError:
        return False


def concretization_function_error(fun, suggest_astype=False):
    """A function of a context and a value that raises the error for the conversion of a traced
    value by `fun`.
    """
    context = f"The problem arose with the `{getattr(fun, '__name__', fun)}` function. "
    if suggest_astype:
        context += f"If trying to convert the data type of a value, try using `x.astype({fun.__name__})` or `jnp.array(x, {fun.__name__})` instead."

    def error(_, arg):
        if fun is bool:
            raise TracerBoolConversionError(arg)
        if fun in (hex, oct) or getattr(fun, "__name__", "") == "index":
            raise TracerIntegerConversionError(arg)
        raise ConcretizationTypeError(arg, context)

    return error
