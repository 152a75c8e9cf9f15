"""What libraries take of how JAX runs programs over meshes: the mesh in use."""

from typing import Any

from ferrax.sharding import NamedSharding as NamedSharding
from ferrax.sharding import PartitionSpec as PartitionSpec

Index = tuple[Any, ...]
MeshAxisName = str

class ResourceEnv:
    @property
    def physical_mesh(self) -> Any: ...
    @property
    def mesh(self) -> Any: ...

global_result_handlers: Any
thread_resources: Any
