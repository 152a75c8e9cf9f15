"""Two arrays that are to be cut over devices in the same way."""

from typing import Any

def shard_alike(x: Any, y: Any) -> Any: ...
