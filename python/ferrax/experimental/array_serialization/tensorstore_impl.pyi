"""How arrays are written and read by TensorStore: a Zarr array each, in files of its own or in a store that many share."""

from collections.abc import Sequence
from typing import Any

from ferrax._core import Array

def is_tensorstore_spec_leaf(leaf: Any) -> bool: ...
def merge_nested_ts_specs(dict1: dict[Any, Any], dict2: dict[Any, Any] | None) -> dict[Any, Any]: ...
def get_tensorstore_spec(
    ckpt_path: Any, ocdbt: bool = True, process_idx: int | None = None, arr: Array | None = None, driver: str = "zarr3"
) -> dict[str, Any]: ...
async def async_serialize(
    arr_inp: Array,
    tensorstore_spec: dict[str, Any],
    commit_future: list[Any] | None = None,
    context: Any = ...,
    chunk_layout: Any = ...,
    primary_host: int | None = None,
    replica_id: int = 0,
    transaction: Any = None,
) -> list[Any]: ...
def estimate_read_memory_footprint(t: Any, domain: Any) -> int: ...
async def async_deserialize(
    in_type: Any,
    tensorstore_spec: Any,
    global_shape: Sequence[int] | None = None,
    dtype: Any = None,
    byte_limiter: Any = None,
    context: Any = ...,
    chunk_layout: Any = ...,
    assume_metadata: bool = False,
) -> Array: ...
def run_serialization(arrays: Sequence[Array], tensorstore_specs: Sequence[Any]) -> None: ...
def run_deserialization(
    shardings: Sequence[Any], tensorstore_specs: Sequence[Any], global_shapes: Any = None, dtypes: Any = None, concurrent_gb: int = 32
) -> list[Array]: ...
