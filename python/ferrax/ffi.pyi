"""Calls of functions that are compiled elsewhere: C and C++ as handlers of the typed interface, or as plain functions of pointers."""

from typing import Any

def build_ffi_lowering_function(
    call_target_name: Any,
    *,
    operand_layouts: Any = None,
    result_layouts: Any = None,
    backend_config: Any = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Any: ...
def ffi_call(
    target_name: Any,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: Any = None,
    input_layouts: Any = None,
    output_layouts: Any = None,
    input_output_aliases: Any = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: Any = None,
) -> Any: ...
def ffi_lowering(
    call_target_name: Any,
    *,
    operand_layouts: Any = None,
    result_layouts: Any = None,
    backend_config: Any = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Any: ...
def include_dir() -> Any: ...
def pycapsule(funcptr: Any) -> Any: ...
def register_ffi_target(name: Any, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> Any: ...
def register_ffi_target_as_batch_partitionable(name: Any) -> Any: ...
def register_ffi_type(name: Any, type_registration: Any, platform: str = "cpu") -> Any: ...
def register_ffi_type_id(name: Any, obj: Any, platform: str = "cpu") -> Any: ...
