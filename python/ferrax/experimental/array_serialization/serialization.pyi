"""Arrays written while the program goes on: `GlobalAsyncCheckpointManager`."""

import abc
from collections.abc import Callable, Sequence
from typing import Any

from ferrax._core import Array
from .tensorstore_impl import (
    async_deserialize as async_deserialize,
    async_serialize as async_serialize,
    run_deserialization as run_deserialization,
    run_serialization as run_serialization,
)

TS_CONTEXT: Any

class BarrierTimeoutError(Exception): ...

def get_tensorstore_spec(
    ckpt_path: Any, ocdbt: bool = False, process_idx: int | None = None, arr: Array | None = None, driver: str = "zarr"
) -> dict[str, Any]: ...
def is_remote_storage(tspec: dict[str, Any] | str) -> bool: ...

class GlobalAsyncCheckpointManagerBase(abc.ABC):
    @abc.abstractmethod
    def check_for_errors(self) -> None: ...
    @abc.abstractmethod
    def wait_until_finished(self) -> None: ...
    @abc.abstractmethod
    def serialize(self, arrays: Sequence[Array], tensorstore_specs: Sequence[Any], *, on_commit_callback: Callable[[], None]) -> None: ...
    @abc.abstractmethod
    def deserialize(self, shardings: Sequence[Any], tensorstore_specs: Sequence[Any], global_shapes: Any = None, dtypes: Any = None) -> list[Array]: ...

class AsyncManager:
    def __init__(self, timeout_secs: float = 300) -> None: ...
    def check_for_errors(self) -> None: ...
    def wait_until_finished(self) -> None: ...

class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    def serialize(
        self, arrays: Sequence[Array], tensorstore_specs: Sequence[Any], *, on_commit_callback: Callable[[], None] | None = None, transaction: Any = None
    ) -> None: ...
    def serialize_with_paths(
        self, arrays: Sequence[Array], paths: Sequence[str], *, on_commit_callback: Callable[[], None] | None = None, transaction: Any = None
    ) -> None: ...
    def deserialize(
        self, shardings: Sequence[Any], tensorstore_specs: Sequence[Any], global_shapes: Any = None, dtypes: Any = None, concurrent_gb: int = 32
    ) -> list[Array]: ...
    def deserialize_with_paths(
        self, shardings: Sequence[Any], paths: Sequence[str], global_shapes: Any = None, dtypes: Any = None, concurrent_gb: int = 32
    ) -> list[Array]: ...
