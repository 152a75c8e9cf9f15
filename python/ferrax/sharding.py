"""Meshes, shardings and partition specifications: the public names.

Invariant: the definitions are in `_runtime.mesh`, `_sharding.spec`, `_sharding.shardings`,
`_sharding.explicit_axes` and `_sharding.parts`.

    >>> NamedSharding(make_mesh((1,), ("x",)), P("x")).shard_shape((4, 2))
    (4, 2)
"""

from __future__ import annotations

from ._runtime.mesh import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    ManualAxisType,
    Mesh,
    get_abstract_mesh,
    get_mesh,
    make_mesh,
    set_mesh,
    use_abstract_mesh,
)
from ._sharding.explicit_axes import auto_axes, explicit_axes
from ._sharding.parts import (
    Shard,
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
    reshard,
)
from ._sharding.shardings import (
    DuplicateSpecError,
    IndivisibleError,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    make_single_device_sharding,
)
from ._sharding.spec import PartitionSpec

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "DuplicateSpecError",
    "IndivisibleError",
    "ManualAxisType",
    "Mesh",
    "NamedSharding",
    "P",
    "PartitionSpec",
    "Shard",
    "Sharding",
    "SingleDeviceSharding",
    "auto_axes",
    "explicit_axes",
    "get_abstract_mesh",
    "get_mesh",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_mesh",
    "make_single_device_sharding",
    "reshard",
    "set_mesh",
    "use_abstract_mesh",
]

P = PartitionSpec
