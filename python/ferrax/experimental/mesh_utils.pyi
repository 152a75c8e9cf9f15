"""Devices in a grid."""

import numpy as np
from collections.abc import Sequence
from typing import Any

__all__ = ["create_device_mesh"]

def create_device_mesh(
    mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, *, contiguous_submeshes: bool = False, allow_split_physical_axes: bool = False
) -> np.ndarray: ...
def create_hybrid_device_mesh(
    mesh_shape: Any,
    dcn_mesh_shape: Any,
    devices: Any = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> Any: ...
