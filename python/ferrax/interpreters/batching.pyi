"""Batching rules of primitives defined in Python."""

from typing import Any, NamedTuple

__all__ = [
    "AxisData",
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "not_mapped",
    "primitive_batchers",
]

class AxisData(NamedTuple):
    name: Any
    size: int
    spmd_name: Any = None
    explicit_mesh_axis: Any = None

axis_primitive_batchers: Any

def bdim_at_front(x: Any, bdim: Any, size: Any, mesh_axis: Any = None) -> Any: ...
def broadcast(x: Any, sz: Any, axis: Any, mesh_axis: Any = None) -> Any: ...
def defbroadcasting(prim: Any) -> Any: ...
def defreducer(prim: Any) -> Any: ...
def defvectorized(prim: Any) -> Any: ...

fancy_primitive_batchers: dict[Any, Any]
not_mapped: None
primitive_batchers: dict[Any, Any]
from_elt_handlers: dict[type, Any]
make_iota_handlers: dict[type, Any]
spec_types: set[type]
to_elt_handlers: dict[type, Any]
vmappables: dict[type, tuple[type, type]]

def is_vmappable(x: Any) -> bool: ...
def register_vmappable(data_type: type, spec_type: type, axis_size_type: type, to_elt: Any, from_elt: Any, make_iota: Any) -> None: ...
def unregister_vmappable(data_type: type) -> None: ...
