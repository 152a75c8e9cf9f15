"""Runs of several processes: there is one."""

from collections.abc import Sequence
from typing import Any

__all__ = ["initialize", "is_initialized", "shutdown"]

def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> Any: ...
def is_initialized() -> bool: ...
def shutdown() -> Any: ...
