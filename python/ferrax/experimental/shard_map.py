"""An older name of `ferrax.shard_map`, with its older parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .._maps.shard_map import shard_map as _shard_map

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._runtime.mesh import AbstractMesh, Mesh

_P = ParamSpec("_P")
_R = TypeVar("_R")

__all__ = ["shard_map"]


def shard_map(
    f: Callable[_P, _R], mesh: Mesh | AbstractMesh, in_specs: Any, out_specs: Any, check_rep: bool = True, auto: Any = frozenset()
) -> Callable[_P, _R]:
    """Maps a function over the parts of arrays, as `ferrax.shard_map` does, with the argument names
    of earlier versions.

    Args:
        f: function of the parts.
        mesh: Mesh.
        in_specs: tree prefix of the arguments, of `PartitionSpec`s.
        out_specs: tree prefix of the results, of `PartitionSpec`s.
        check_rep: bool; `check_vma` of `ferrax.shard_map`.
        auto: frozenset of names, the mesh axes over which `f` is not mapped.

    Returns:
        A function of the whole arrays.
    """
    names = frozenset(a for a in mesh.axis_names if a not in auto)
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep, axis_names=names)
