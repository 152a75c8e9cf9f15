"""What the processes of a run do together, where there is one."""

from ferrax._core import Device
from ferrax.sharding import Mesh
from typing import Any

from ferrax.sharding import PartitionSpec as P

__all__ = [
    "P",
    "ProcessFailureError",
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "live_devices",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]

class ProcessFailureError(RuntimeError):
    def __init__(self, failed_devices: set[Device]) -> None: ...

def assert_equal(in_tree: Any, fail_message: str = "") -> Any: ...
def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any: ...
def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any: ...
def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any: ...
def live_devices(devices: Any) -> Any: ...
def process_allgather(in_tree: Any, tiled: bool = False) -> Any: ...
def reached_preemption_sync_point(step_id: int) -> bool: ...
def sync_global_devices(name: str) -> Any: ...
