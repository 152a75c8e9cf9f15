"""Looking into programs while they run: `debug.print`, `debug.callback`."""

from collections.abc import Callable, Sequence
from ferrax.sharding import Sharding
from typing import Any

__all__ = ["breakpoint", "callback", "inspect_array_sharding", "log", "print", "visualize_array_sharding", "visualize_sharding"]

def breakpoint(
    *, backend: str | None = None, filter_frames: bool = True, num_frames: int | None = None, ordered: bool = False, token: Any = None, **kwargs: Any
) -> Any: ...
def callback(
    callback: Callable[..., None] | None = None, *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any
) -> Callable[..., None] | None: ...
def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> Any: ...
def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = True,
    **kwargs: Any,
) -> Callable[..., None] | None: ...
def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None: ...
def visualize_array_sharding(arr: Any, **kwargs: Any) -> Any: ...
def visualize_sharding(
    shape: Sequence[int], sharding: Sharding, *, use_color: bool = True, scale: float = 1.0, min_width: int = 9, max_width: int = 80, color_map: Any = None
) -> Any: ...

class DebugEffect: ...
class OrderedDebugEffect: ...
