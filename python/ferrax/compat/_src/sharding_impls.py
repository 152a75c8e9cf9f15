"""Further names of `jax._src.mesh` and `jax._src.sharding_impls` that libraries use.

Invariant: the mesh in use is the one that `set_mesh` or `with mesh:` set.
"""

from ..._runtime.devices import UNSPECIFIED, UnspecifiedValue
from ..._runtime.mesh import get_abstract_mesh, get_mesh
from ...interpreters.pxla import ResourceEnv, thread_resources
from ...sharding import AbstractMesh, NamedSharding, PartitionSpec

__all__ = ["EMPTY_ENV", "UNSPECIFIED", "ResourceEnv", "UnspecifiedValue", "empty_abstract_mesh", "get_abstract_mesh", "get_concrete_mesh", "thread_resources"]


empty_abstract_mesh = AbstractMesh((), ())
array_mapping_to_axis_resources = dict


EMPTY_ENV = ResourceEnv()


def get_concrete_mesh():
    """The mesh in use; an empty one if there is none."""
    return get_mesh()


def is_unspecified(s):
    """Whether no sharding was given."""
    return isinstance(s, UnspecifiedValue)


def cached_named_sharding(mesh, pspec, memory_kind=None):
    """A `NamedSharding`."""
    return NamedSharding(mesh, pspec, memory_kind=memory_kind)


def canonicalize_sharding(sharding, api_name, check_mesh_consistency=True):
    """A `NamedSharding` over the mesh in use; None if nothing is specified or the mesh is empty."""
    if sharding is None or (isinstance(sharding, NamedSharding) and sharding.mesh.empty):
        return None
    if not isinstance(sharding, (NamedSharding, PartitionSpec)):
        raise TypeError(
            f"`out_sharding` argument of {api_name} only supports instances of `NamedSharding` or `PartitionSpec`. Got {sharding} of type: {type(sharding)}"
        )
    mesh = get_abstract_mesh()
    if isinstance(sharding, NamedSharding):
        own = getattr(sharding.mesh, "abstract_mesh", sharding.mesh)
        free = own.are_all_axes_auto and mesh.are_all_axes_auto
        if check_mesh_consistency and not free and not mesh.empty and own != mesh:
            raise ValueError(f"Context mesh {mesh} should match the mesh of sharding {own} passed to {api_name}.")
        return NamedSharding(own, sharding.spec)
    if mesh.empty:
        raise ValueError(
            "Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a NamedSharding instance or enter into a mesh"
            f" context via `jax.set_mesh`. Got {sharding}"
        )
    return NamedSharding(mesh, sharding)
