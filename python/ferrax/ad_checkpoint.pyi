"""Rematerialisation: `checkpoint`, names for the values that a policy may keep, and the list of what a function keeps."""

from typing import Any, NamedTuple

from ferrax import checkpoint as remat
from ferrax import checkpoint_policies as checkpoint_policies
from ferrax import checkpoint as checkpoint

__all__ = ["Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals", "remat"]

class Offloadable(NamedTuple):
    src: str
    dst: str

Recompute: Any
Saveable: Any

def checkpoint_name(x: Any, name: Any) -> Any: ...
def print_saved_residuals(f: Any, *args: Any, **kwargs: Any) -> Any: ...
