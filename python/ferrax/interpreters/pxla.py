"""Names from the module in which JAX runs programs over meshes: the mesh in use.

    thread_resources.env.physical_mesh

Invariant: the mesh is that of `set_mesh` or `with mesh:`; an empty mesh outside of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..sharding import NamedSharding, PartitionSpec, get_mesh

if TYPE_CHECKING:
    from .._runtime.mesh import Mesh

__all__ = ["Index", "MeshAxisName", "NamedSharding", "PartitionSpec", "ResourceEnv", "global_result_handlers", "thread_resources"]

MeshAxisName, Index = str, tuple
# How results of each type become arrays, as libraries expect it. Entries that are added here are not used.
global_result_handlers = {}


class ResourceEnv:
    """The mesh in use."""

    @property
    def physical_mesh(self) -> Mesh:
        """The mesh; an empty mesh if none is set."""
        return get_mesh()

    mesh = physical_mesh

    def __repr__(self):
        return f"ResourceEnv(mesh={self.physical_mesh!r})"


class _ThreadResources:
    """The settings of this thread."""

    env = ResourceEnv()

    def __repr__(self):
        return f"thread_resources(env={self.env!r})"


thread_resources = _ThreadResources()
