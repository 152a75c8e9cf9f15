"""Programs as objects, and how to run them equation by equation."""

from typing import Any, TypeAlias

from ferrax.extend.core import jaxpr_as_fun as jaxpr_as_fun
from ferrax._core import eval_context as eval_context
from ferrax import ensure_compile_time_eval as ensure_compile_time_eval
from ferrax.extend.core import check_jaxpr as check_jaxpr
from ferrax._core import Var as Var
from ferrax._core import Tracer as Tracer
from ferrax._core import ShapedArray as ShapedArray
from ferrax._core import Primitive as Primitive
from ferrax._core import Literal as Literal
from ferrax._core import JaxprEqn as JaxprEqn
from ferrax._core import Jaxpr as Jaxpr
from ferrax._core import ClosedJaxpr as ClosedJaxpr

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

class AbstractValue: ...

Atom: TypeAlias = Any
ParamDict: TypeAlias = Any

class Trace: ...

Value: TypeAlias = Any

def eval_jaxpr(jaxpr: Jaxpr, consts: Any, *args: Any, propagate_source_info: bool = True) -> list[Any]: ...
def max_dim(d1: int, d2: int) -> int: ...
def min_dim(d1: int, d2: int) -> int: ...

pytype_aval_mappings: dict[Any, Any]

Effects: Any

def is_constant_dim(d: Any) -> bool: ...
def is_constant_shape(s: Any) -> bool: ...
