"""The older spelling of `ferrax.shard_map`, with its older parameters."""

from typing import Any

__all__ = ["shard_map"]

def shard_map(f: Any, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True, auto: Any = ...) -> Any: ...
