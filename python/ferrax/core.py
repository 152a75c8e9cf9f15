"""Programs as objects, and how to run them equation by equation.

    closed = make_jaxpr(f)(x)
    for eqn in closed.jaxpr.eqns: print(eqn.primitive, eqn.params)
    eval_jaxpr(closed.jaxpr, closed.consts, x)

Invariant: the classes are the extension's; nothing here changes a program.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _core
from ._base.flags import inert
from ._core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, ShapedArray, Tracer, Var, get_aval
from ._tracing.trace import ensure_compile_time_eval
from .extend import core as _extended
from .extend.core import Primitive, _eval, _former, array_types, check_jaxpr, jaxpr_as_fun

__all__ = [
    "AbstractValue",
    "Atom",
    "ClosedJaxpr",
    "Effects",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "ParamDict",
    "Primitive",
    "ShapedArray",
    "Trace",
    "Tracer",
    "Value",
    "Var",
    "check_jaxpr",
    "ensure_compile_time_eval",
    "eval_context",
    "eval_jaxpr",
    "is_constant_dim",
    "is_constant_shape",
    "jaxpr_as_fun",
    "max_dim",
    "min_dim",
    "pytype_aval_mappings",
]

ParamDict: TypeAlias = dict[str, Any]
Atom: TypeAlias = Var | Literal
Value: TypeAlias = Any
Effects: Any = _extended.Effects
# How the type of a value is read, by its class. Libraries may read the table; entries that they add are not used.
pytype_aval_mappings: dict[Any, Any] = dict.fromkeys(array_types, get_aval)


class _Types(type):
    def __instancecheck__(cls, x):
        return isinstance(x, ShapedArray)


class AbstractValue(metaclass=_Types):
    """The base class of types of values: `ShapedArray` is the only subclass."""


class Trace:
    """The base class of traces of transformations written in Python.

    It can be subclassed, but `extend.core.set_current_trace` refuses it.
    """


def max_dim(d1: int, d2: int) -> int:
    """The larger of two sizes.

    Args:
        d1, d2: sizes, integers or symbolic expressions.

    Returns:
        int, or a symbolic expression where either is symbolic.
    """
    return _extremum("max", d1, d2)


def min_dim(d1: int, d2: int) -> int:
    """The smaller of two sizes.

    Args:
        d1, d2: sizes, integers or symbolic expressions.

    Returns:
        int, or a symbolic expression where either is symbolic.
    """
    return _extremum("min", d1, d2)


def eval_context() -> contextlib.AbstractContextManager[None]:
    """A context manager inside which operations on known values are evaluated at once, also where a
    program is being traced.

    Returns:
        The context manager.
    """
    return _core.eval_context()


def is_constant_dim(d: Any) -> bool:
    """Whether a size is a number, not a symbolic expression.

    Args:
        d: a size.

    Returns:
        bool.
    """
    return not hasattr(d, "extremum") and hasattr(d, "__index__")


def is_constant_shape(s: Any) -> bool:
    """Whether all sizes of a shape are numbers, none a symbolic expression.

    Args:
        s: sequence of sizes.

    Returns:
        bool.
    """
    return all(map(is_constant_dim, s))


def _extremum(name, a, b):
    for x, y in ((a, b), (b, a)):
        if hasattr(x, "extremum"):
            return x.extremum(name, y)
    return {"max": max, "min": min}[name](a, b)


def eval_jaxpr(jaxpr: Jaxpr, consts: Any, *args: Any, propagate_source_info: bool = True) -> list[Any]:
    """Evaluates a program.

    Args:
        jaxpr: an open program (`closed.jaxpr`).
        consts: list of arrays, the values of its `constvars`.
        *args: an array for each of its inputs.
        propagate_source_info: bool; False is accepted with a warning: equations keep the source
          lines of the program.

    Returns:
        List of arrays, its outputs.

    Raises:
        ValueError: there are too few or too many values.
    """
    if not propagate_source_info:
        inert("eval_jaxpr", "propagate_source_info", "equations keep their lines")
    return _eval(jaxpr, consts, args)


# Names that have moved to `extend.core`, and are still read here.
_MOVED = frozenset(
    {
        "AbstractToken",
        "CallPrimitive",
        "DebugInfo",
        "DropVar",
        "Effect",
        "InconclusiveDimensionOperation",
        "concrete_or_error",
        "abstract_token",
        "find_top_trace",
        "gensym",
        "get_opaque_trace_state",
        "jaxprs_in_params",
        "new_jaxpr_eqn",
        "no_effects",
        "nonempty_axis_env_DO_NOT_USE",
        "primal_dtype_to_tangent_dtype",
        "unsafe_am_i_under_a_jit_DO_NOT_USE",
        "unsafe_am_i_under_a_vmap_DO_NOT_USE",
        "unsafe_get_axis_names_DO_NOT_USE",
        "valid_jaxtype",
    }
)


if not TYPE_CHECKING:  # a checker would take every name for one of the module's

    def __getattr__(name):
        if name in _MOVED:
            warnings.warn(f"jax.core.{name} is deprecated: it is jax.extend.core.{name}", DeprecationWarning, stacklevel=2)
            return getattr(_extended, name)
        if name in _former.__all__ or name == "call":
            warnings.warn(f"jax.core.{name} is deprecated", DeprecationWarning, stacklevel=2)
            return getattr(_former, name) if name != "call" else _extended.primitives.call_p.bind
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
