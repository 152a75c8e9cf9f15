"""What libraries take of `jax._src.mesh` and `jax._src.sharding_impls` beside the public names.

Invariant: the mesh in use is the one that `set_mesh` or `with mesh:` said.
"""

from .._mesh import get_abstract_mesh, get_mesh
from ..interpreters.pxla import ResourceEnv, thread_resources
from ..sharding import AbstractMesh, NamedSharding

__all__ = ["EMPTY_ENV", "UNSPECIFIED", "ResourceEnv", "UnspecifiedValue", "empty_abstract_mesh", "get_abstract_mesh", "get_concrete_mesh", "thread_resources"]


class UnspecifiedValue:
    """What stands where no sharding is said."""

    def __repr__(self):
        return "UnspecifiedValue"


UNSPECIFIED = UnspecifiedValue()
empty_abstract_mesh = AbstractMesh((), ())
array_mapping_to_axis_resources = dict


EMPTY_ENV = ResourceEnv()


def get_concrete_mesh():
    """The mesh in use; an empty one where there is none."""
    return get_mesh()


def is_unspecified(s):
    """Whether no sharding was said."""
    return isinstance(s, UnspecifiedValue)


def cached_named_sharding(mesh, pspec, memory_kind=None):
    """A `NamedSharding`."""
    return NamedSharding(mesh, pspec, memory_kind=memory_kind)
