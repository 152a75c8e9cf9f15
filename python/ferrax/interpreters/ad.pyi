"""Derivative rules of primitives defined in Python."""

from ferrax._core import Array, ShapedArray
from typing import Any

__all__ = [
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]

class JVPTracer: ...

class UndefinedPrimal:
    def __init__(self, aval: Any) -> None: ...

class Zero:
    def __init__(self, aval: ShapedArray) -> None: ...
    @staticmethod
    def from_primal_value(val: Any) -> Any: ...

def add_tangents(x: Any, y: Any) -> Any: ...
def defbilinear(prim: Any, lhs_rule: Any, rhs_rule: Any) -> Any: ...
def defjvp(primitive: Any, *jvprules: Any) -> Any: ...
def defjvp2(primitive: Any, *jvprules: Any) -> Any: ...
def deflinear(primitive: Any, transpose_rule: Any) -> Any: ...
def deflinear2(primitive: Any, transpose_rule: Any) -> Any: ...
def get_primitive_transpose(p: Any) -> Any: ...
def instantiate_zeros(tangent: Any) -> Any: ...
def is_undefined_primal(x: Any) -> Any: ...

primitive_jvps: dict[Any, Any]
primitive_transposes: dict[Any, Any]

def zeros_like_aval(aval: ShapedArray) -> Array: ...
