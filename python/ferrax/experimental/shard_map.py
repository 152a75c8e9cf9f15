"""The older spelling of `ferrax.shard_map`, with its older parameters."""

from .._shard_map import shard_map as _shard_map

__all__ = ["shard_map"]


def shard_map(f, mesh, in_specs, out_specs, check_rep=True, auto=frozenset()):
    """Maps a function over the parts of arrays; see `ferrax.shard_map`.

    check_rep: its `check_vma`. auto: the mesh axes that `f` is not mapped over.
    """
    names = frozenset(a for a in mesh.axis_names if a not in auto)
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep, axis_names=names)
