"""Mutable references, under the names of functions: `get`, `set`, `swap`, `addupdate`."""

import builtins
import numpy as np
from ferrax._core import ShapedArray
from typing import Any

from ferrax import new_ref as new_ref
from ferrax import freeze as freeze
from ferrax import free_ref as free_ref
from ferrax import empty_ref as empty_ref
from ferrax import Ref as Ref

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]

class AbstractRef:
    def __init__(self, inner_aval: ShapedArray) -> None: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def sharding(self) -> Any: ...
    @property
    def weak_type(self) -> bool: ...

def addupdate(ref: Any, idx: Any, x: Any) -> None: ...
def get(ref: Any, idx: Any = None) -> Any: ...
def set(ref: Any, idx: Any, value: Any) -> None: ...
def swap(ref: Any, idx: Any, value: Any, _function_name: str = "ref_swap") -> Any: ...
