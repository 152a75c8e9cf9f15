"""Programs made of functions, and cut to what is used."""

from collections.abc import Sequence
from ferrax._core import Jaxpr, ShapedArray
from ferrax.extend.linear_util import WrappedFun
from typing import Any, NamedTuple

__all__ = [
    "DynamicJaxprTracer",
    "JaxprTracer",
    "PartialVal",
    "Val",
    "custom_partial_eval_rules",
    "dce_jaxpr",
    "dce_jaxpr_consts",
    "dce_rules",
    "partial_eval_jaxpr_custom_rules",
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]

Val = Any
custom_partial_eval_rules: dict[Any, Any]
dce_rules: dict[Any, Any]
partial_eval_jaxpr_custom_rules: dict[Any, Any]

class DynamicJaxprTracer: ...
class JaxprTracer: ...

class PartialVal(NamedTuple):
    aval: Any
    value: Any
    def get_aval(self) -> ShapedArray: ...
    def get_known(self) -> Any: ...
    def is_known(self) -> bool: ...
    @classmethod
    def known(cls, const: Any) -> Any: ...
    @classmethod
    def unknown(cls, aval: ShapedArray) -> Any: ...

def dce_jaxpr(jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[bool]]: ...
def dce_jaxpr_consts(jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[bool], list[bool]]: ...
def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[Any], *, keep_inputs: list[bool] | None = None, lower: bool = False, auto_dce: bool = False
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]: ...
def trace_to_jaxpr_nounits(fun: WrappedFun, pvals: Sequence[Any], instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[Any], list[Any]]: ...
