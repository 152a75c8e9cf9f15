"""Segment reductions, and the older functional updates."""

from ferrax._core import Array
from ferrax.lax import GatherScatterMode
from ferrax.sharding import NamedSharding, PartitionSpec
from ferrax.typing import ArrayLike
from typing import Any

__all__ = ["index", "index_add", "index_max", "index_min", "index_mul", "index_update", "segment_max", "segment_min", "segment_prod", "segment_sum"]

index: Any

def index_add(x: Any, idx: Any, y: Any, indices_are_sorted: bool = False, unique_indices: bool = False) -> Any: ...
def index_max(x: Any, idx: Any, y: Any, indices_are_sorted: bool = False, unique_indices: bool = False) -> Any: ...
def index_min(x: Any, idx: Any, y: Any, indices_are_sorted: bool = False, unique_indices: bool = False) -> Any: ...
def index_mul(x: Any, idx: Any, y: Any, indices_are_sorted: bool = False, unique_indices: bool = False) -> Any: ...
def index_update(x: Any, idx: Any, y: Any, indices_are_sorted: bool = False, unique_indices: bool = False) -> Any: ...
def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
