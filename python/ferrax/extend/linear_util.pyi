"""Functions with transformations around them, as libraries written on JAX's internals make them."""

from collections.abc import Callable, Hashable
from typing import Any

__all__ = [
    "StoreException",
    "WrappedFun",
    "cache",
    "merge_linear_aux",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]

class StoreException(Exception): ...

class WrappedFun:
    def __init__(
        self,
        f: Callable[..., Any],
        transforms: tuple[tuple[Callable[..., Any], tuple[Hashable, ...]], ...] = (),
        stores: tuple[Any, ...] = (),
        params: tuple[tuple[str, Hashable], ...] = (),
        in_type: Any = None,
        debug_info: Any = None,
    ) -> None: ...
    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any: ...
    def wrap(self, gen: Any, gen_static_args: Any, out_store: Any) -> WrappedFun: ...

def cache(call: Callable[..., Any], *, explain: Callable[[WrappedFun, bool, dict[Any, Any], tuple[Any, ...], float], None] | None = None) -> Any: ...
def merge_linear_aux(aux1: Any, aux2: Any) -> Any: ...
def transformation(gen: Any, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun: ...
def transformation2(gen: Any, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun: ...
def transformation_with_aux(gen: Any, fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False) -> WrappedFun: ...
def transformation_with_aux2(gen: Any, fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False) -> tuple[WrappedFun, Callable[[], Any]]: ...
def wrap_init(f: Callable[..., Any], params: Any = None, *, debug_info: Any = None) -> WrappedFun: ...
