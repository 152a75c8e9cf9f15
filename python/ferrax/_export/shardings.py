"""The devices of an exported program: their number, and the shardings of its arguments and results
over a mesh.

    found = Layouts.of(jitted, traced, leaves)
    on(found.ins[0], mesh)               # NamedSharding(mesh, P('x',))

Invariant: a layout names the axes of a mesh, with their sizes and types, and no devices.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from .._runtime.mesh import AbstractMesh, AxisType, get_abstract_mesh
from .._sharding.shardings import NamedSharding
from .._sharding.spec import PartitionSpec
from .._tracing.jit import given_shardings
from .._trees.prefixes import broadcast_prefix
from ..tree_util import tree_leaves

__all__ = ["Layouts", "on"]


@dataclasses.dataclass(frozen=True)
class Layouts:
    """The number of devices, and a `NamedSharding` over an abstract mesh or None for each argument
    and result.
    """

    devices: int
    ins: tuple[Any, ...]
    outs: tuple[Any, ...]

    @classmethod
    def none(cls, n_in: int, n_out: int) -> Layouts:
        """The layouts of a program of one device."""
        return cls(1, (None,) * n_in, (None,) * n_out)

    @classmethod
    def of(cls, jitted: Any, traced: Any, leaves: Any) -> Layouts:
        """The layouts of a jitted function that was traced on some leaves."""
        ins, outs = given_shardings(jitted)
        args, kwargs = traced.in_tree.unflatten(range(traced.in_tree.num_leaves))
        n_args = traced.in_tree.num_leaves - len(tree_leaves(kwargs))
        whole = _spread(ins, args, n_args) + [None] * (traced.in_tree.num_leaves - n_args)
        found_in = [_abstract(s) or _abstract(getattr(x, "sharding", None)) for s, x in zip(whole, leaves, strict=True)]
        n_out = traced.out_tree.num_leaves
        found_out = [_abstract(s) for s in _spread(outs, traced.out_tree.unflatten(range(n_out)), n_out)]
        sizes = [math.prod(s.mesh.axis_sizes) for s in (*found_in, *found_out) if s is not None]
        return cls(max([1, *sizes, *_devices(traced.jaxpr)]), tuple(found_in), tuple(found_out))

    def to_json(self) -> Any:
        """As JSON."""
        return [self.devices, [*map(_written, self.ins)], [*map(_written, self.outs)]]

    @classmethod
    def from_json(cls, found: Any) -> Layouts:
        """From JSON."""
        devices, ins, outs = found
        return cls(devices, tuple(map(_read, ins)), tuple(map(_read, outs)))


def on(sharding: Any, mesh: Any) -> Any:
    """An abstract sharding on a mesh of the same axes.

    Raises:
        ValueError: the mesh has other axes.
    """
    if sharding is None:
        return None
    of = lambda m: (tuple(m.axis_names), tuple(m.axis_sizes))
    if of(mesh) != of(sharding.mesh):
        raise ValueError(f"NamedSharding new mesh {mesh} does not match the mesh used for export {sharding.mesh}.")
    return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)


def _spread(prefix, tree, n):
    is_leaf = lambda x: x is None or isinstance(x, (NamedSharding, PartitionSpec)) or hasattr(x, "device_set")
    return [None] * n if prefix is None else list(broadcast_prefix(prefix, tree, prefix_is_leaf=is_leaf))


def _abstract(sharding):
    if isinstance(sharding, PartitionSpec):
        sharding = NamedSharding(get_abstract_mesh(), sharding)
    if not isinstance(sharding, NamedSharding) or math.prod(sharding.mesh.axis_sizes) == 1:
        return None
    mesh = sharding.mesh if isinstance(sharding.mesh, AbstractMesh) else sharding.mesh.abstract_mesh
    return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)


def _devices(jaxpr):
    """The numbers of devices that equations name."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    for eqn in jaxpr.eqns:
        if eqn.params.get("mesh") and eqn.params.get("devices") is not None:
            yield len(eqn.params["devices"])
        for value in eqn.params.values():
            for body in value if isinstance(value, (tuple, list)) else [value]:
                if hasattr(getattr(body, "jaxpr", body), "eqns"):
                    yield from _devices(body)


def _written(sharding):
    if sharding is None:
        return None
    mesh, spec = sharding.mesh, sharding.spec
    axes = [[name, size, kind.name] for name, size, kind in zip(mesh.axis_names, mesh.axis_sizes, mesh.axis_types, strict=True)]
    marks = [sorted(spec.unreduced), sorted(spec.reduced)]
    return [axes, [list(p) if isinstance(p, tuple) else p for p in spec.partitions], *marks, sharding.memory_kind]


def _read(found):
    if found is None:
        return None
    axes, partitions, unreduced, reduced, memory_kind = found
    names, sizes, kinds = zip(*axes, strict=True)
    mesh = AbstractMesh(tuple(sizes), tuple(names), axis_types=tuple(AxisType[k] for k in kinds))
    spec = PartitionSpec(*[tuple(p) if isinstance(p, list) else p for p in partitions], unreduced=frozenset(unreduced), reduced=frozenset(reduced))
    return NamedSharding(mesh, spec, memory_kind=memory_kind)
