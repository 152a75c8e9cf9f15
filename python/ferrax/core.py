"""Programs as objects, and how to run them equation by equation.

    closed = make_jaxpr(f)(x)
    for eqn in closed.jaxpr.eqns: print(eqn.primitive, eqn.params)
    eval_jaxpr(closed.jaxpr, closed.consts, x)

Invariant: the classes are the extension's; nothing here changes a program.
"""

from typing import Any

from ._api import ensure_compile_time_eval
from ._config import inert
from ._core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, ShapedArray, Tracer, Var, eval_context
from .extend.core import Primitive, _eval, check_jaxpr, jaxpr_as_fun

__all__ = [
    "AbstractValue",
    "ClosedJaxpr",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "ParamDict",
    "Primitive",
    "ShapedArray",
    "Tracer",
    "Var",
    "check_jaxpr",
    "ensure_compile_time_eval",
    "eval_context",
    "eval_jaxpr",
    "jaxpr_as_fun",
    "max_dim",
    "min_dim",
]

ParamDict = dict[str, Any]


class _Types(type):
    def __instancecheck__(cls, x):
        return isinstance(x, ShapedArray)


class AbstractValue(metaclass=_Types):
    """What types of values are: `ShapedArray` is the one there is."""


def max_dim(d1, d2):
    """The larger of two sizes."""
    return max(d1, d2)


def min_dim(d1, d2):
    """The smaller of two sizes."""
    return min(d1, d2)


def eval_jaxpr(jaxpr, consts, *args, propagate_source_info=True):
    """Evaluates a program.

    Args:
      jaxpr: an open program (`closed.jaxpr`).
      consts: the values of its constvars.
      *args: one array per input.

    Returns:
      the list of its outputs.

    Raises:
      ValueError: there are too few or too many values.
    """
    if not propagate_source_info:
        inert("eval_jaxpr", "propagate_source_info", "equations keep their lines")
    return _eval(jaxpr, consts, args)
