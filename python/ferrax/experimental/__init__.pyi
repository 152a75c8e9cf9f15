"""Older spellings of modules that have moved: `stax` and `optimizers` now live in `example_libraries`. And what is still on trial."""

from collections.abc import Callable
from ferrax.sharding import Sharding
from typing import Any

__all__ = ["io_callback"]

def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Sharding | None = None, ordered: bool = False, **kwargs: Any
) -> Any: ...
