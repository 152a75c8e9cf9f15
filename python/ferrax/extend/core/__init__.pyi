"""Primitives defined in Python, and programs as objects."""

from collections.abc import Iterator, Set
from typing import Any, NamedTuple

from . import primitives as primitives
from ferrax._core import Var as Var
from ferrax._core import Tracer as Tracer
from ferrax._core import ShapedArray as ShapedArray
from ferrax._core import Primitive as Primitive
from ferrax._core import Literal as Literal
from ferrax._core import JaxprEqn as JaxprEqn
from ferrax._core import Jaxpr as Jaxpr
from ferrax.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from ferrax._core import ClosedJaxpr as ClosedJaxpr
from ferrax.lax._tokens import Token as Token

__all__ = [
    "AbstractToken",
    "CallPrimitive",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Effect",
    "Effects",
    "InconclusiveDimensionOperation",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Primitive",
    "ShapedArray",
    "Token",
    "TraceTag",
    "Tracer",
    "Var",
    "abstract_token",
    "array_types",
    "call_impl",
    "check_jaxpr",
    "concrete_or_error",
    "find_top_trace",
    "gensym",
    "get_opaque_trace_state",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "primitives",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]

class CallPrimitive:
    name: str
    multiple_results: bool
    call_primitive: bool
    def __init__(self, name: str) -> None: ...
    def def_impl(self, impl: Any) -> Any: ...
    def bind(self, f: Any, *args: Any, **params: Any) -> Any: ...

class AbstractToken:
    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str: ...

class DebugInfo(NamedTuple):
    traced_for: str
    func_src_info: str
    arg_names: Any = ...
    result_paths: Any = ...
    @property
    def func_name(self) -> str: ...
    @property
    def func_filename(self) -> str | None: ...
    def replace_func_name(self, name: str) -> DebugInfo: ...
    def resolve_result_paths(self) -> DebugInfo: ...
    def with_unknown_names(self) -> DebugInfo: ...
    def safe_arg_names(self, expected: int) -> tuple[str, ...]: ...
    def safe_result_paths(self, expected: int) -> tuple[str, ...]: ...

class DropVar(Var): ...
class Effect: ...

Effects = Set[Effect]

class TraceTag: ...

abstract_token: AbstractToken
array_types: set[Any]

def call_impl(f: Any, *args: Any, **params: Any) -> Any: ...
def check_jaxpr(jaxpr: Jaxpr) -> Any: ...
def concrete_or_error(force: Any, val: Any, context: str = "") -> Any: ...
def find_top_trace(_: Any) -> Any: ...
def gensym() -> type[Var]: ...
def get_opaque_trace_state(convention: Any = None) -> Any: ...
def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> Any: ...
def jaxprs_in_params(params: Any) -> Iterator[Jaxpr]: ...
def mapped_aval(size: int, axis: Any, aval: ShapedArray) -> ShapedArray: ...
def new_jaxpr_eqn(invars: Any, outvars: Any, primitive: Any, params: Any, effects: Any = ..., source_info: Any = None, ctx: Any = None) -> JaxprEqn: ...

no_effects: frozenset[Any]

def nonempty_axis_env_DO_NOT_USE() -> bool: ...
def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any: ...
def set_current_trace(trace: Any) -> Any: ...
def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]: ...
def take_current_trace() -> Any: ...
def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None) -> ShapedArray: ...
def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool: ...
def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool: ...
def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]: ...
def valid_jaxtype(x: Any) -> bool: ...
