"""Exchange of arrays with other libraries, without copying where the memory allows."""

from ferrax._core import Device
from ferrax.sharding import Sharding
from ferrax.typing import DTypeLike
from typing import Any

__all__ = ["from_dlpack", "is_supported_dtype"]

def from_dlpack(external_array: Any, device: Device | Sharding | None = None, copy: bool | None = None) -> Any: ...
def is_supported_dtype(dtype: DTypeLike) -> bool: ...
