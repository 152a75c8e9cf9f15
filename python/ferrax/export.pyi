"""Programs in files: `export(jit(f))(x)` is a program by itself, `serialize` and `deserialize` carry it to other processes and to Rust."""

from collections.abc import Callable, Sequence
from ferrax._core import PyTreeDef, ShapedArray
from ferrax.sharding import AbstractMesh, Mesh, NamedSharding, Sharding
from typing import Any

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_shape",
]

class DisabledSafetyCheck:
    def __init__(self, _impl: str) -> None: ...
    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck: ...
    def is_custom_call(self) -> str | None: ...
    @classmethod
    def platform(cls) -> DisabledSafetyCheck: ...

class Exported:
    fun_name: str
    in_tree: Any
    in_avals: tuple[Any, ...]
    out_tree: Any
    out_avals: tuple[Any, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[Any, ...]
    ordered_effects: tuple[Any, ...]
    unordered_effects: tuple[Any, ...]
    disabled_safety_checks: tuple[Any, ...]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[Any, ...]
    uses_global_constants: bool
    def __init__(
        self,
        fun_name: str,
        in_tree: PyTreeDef,
        in_avals: tuple[ShapedArray, ...],
        out_tree: PyTreeDef,
        out_avals: tuple[ShapedArray, ...],
        _has_named_shardings: bool,
        _in_named_shardings: tuple[NamedSharding | None, ...],
        _out_named_shardings: tuple[NamedSharding | None, ...],
        in_shardings_hlo: tuple[Any, ...],
        out_shardings_hlo: tuple[Any, ...],
        nr_devices: int,
        platforms: tuple[str, ...],
        ordered_effects: tuple[Any, ...],
        unordered_effects: tuple[Any, ...],
        disabled_safety_checks: Sequence[DisabledSafetyCheck],
        mlir_module_serialized: bytes,
        calling_convention_version: int,
        module_kept_var_idx: tuple[int, ...],
        uses_global_constants: bool,
        _program: Any,
    ) -> None: ...
    def call(self, *args: Any, **kwargs: Any) -> Any: ...
    def has_vjp(self) -> bool: ...
    def in_shardings_jax(self, mesh: Mesh | AbstractMesh) -> Sequence[Sharding | None]: ...
    def mlir_module(self, serialized: bool = True) -> Any: ...
    def out_shardings_jax(self, mesh: Mesh | AbstractMesh) -> Sequence[Sharding | None]: ...
    def serialize(self, vjp_order: int = 0) -> bytearray: ...
    def vjp(self) -> Exported: ...

class SymbolicScope:
    def __init__(self, constraints_str: Sequence[str] = ()) -> None: ...

def default_export_platform() -> str: ...
def deserialize(blob: bytearray) -> Exported: ...
def export(
    fun_jit: Any,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Sequence[tuple[Any, Any]] | None = None,
) -> Callable[..., Exported]: ...
def is_symbolic_dim(p: int) -> bool: ...

maximum_supported_calling_convention_version: int
minimum_supported_calling_convention_version: int

def register_namedtuple_serialization(nodetype: type[Any], *, serialized_name: str) -> type[Any]: ...
def register_pytree_node_serialization(
    nodetype: type[Any], *, serialized_name: str, serialize_auxdata: Any, deserialize_auxdata: Any, from_children: Any = None
) -> type[Any]: ...
def symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None) -> Any: ...
def symbolic_shape(
    shape_spec: str | None, *, constraints: Sequence[str] = (), scope: SymbolicScope | None = None, like: Sequence[int | None] | None = None
) -> Sequence[int]: ...
