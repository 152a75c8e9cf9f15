"""Batching rules of primitives defined in Python.

    primitive_batchers[p] = lambda xs, dims, **params: (p.bind(*xs, **params), dims[0])

Invariant: `primitive_batchers[primitive]` is a rule `rule(args, dims, **params) -> (out, out_dim)`
(lists, if the primitive has multiple results); `not_mapped` (None) is the dim of an argument
without lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._base.flags import refused
from .._tracing.vmappable import (
    from_elt_handlers as from_elt_handlers,
    is_vmappable as is_vmappable,
    make_iota_handlers as make_iota_handlers,
    register_vmappable,
    spec_types as spec_types,
    to_elt_handlers as to_elt_handlers,
    unregister_vmappable,
    vmappables as vmappables,
)

if TYPE_CHECKING:
    from .._core import Array
    from ..extend.core import Primitive

__all__ = [
    "AxisData",
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "not_mapped",
    "primitive_batchers",
    "register_vmappable",
    "unregister_vmappable",
]

not_mapped: None = None
primitive_batchers: dict[Any, Any] = {}
# Rules that also take the axis: `rule(axis_data, args, dims, **params)`.
fancy_primitive_batchers: dict[Any, Any] = {}


class AxisData(NamedTuple):
    """The axis that a `vmap` adds: its name, or None, and its size."""

    name: Any
    size: int
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


class _AxisRules:
    """The older table of such rules:
    `rule(axis_size, axis_name, main_type, args, dims, **params)`.
    """

    def __repr__(self):
        return "axis_primitive_batchers"

    def __setitem__(self, prim, rule):
        fancy_primitive_batchers[prim] = lambda axis, args, dims, **params: rule(axis.size, axis.name, None, args, dims, **params)


axis_primitive_batchers: Any = _AxisRules()


def moveaxis(x: Array, source: int, destination: int) -> Array:
    """`x` with one axis moved."""
    rank = x.ndim
    source, destination = source % rank, destination % rank
    if source == destination:
        return x
    order = [i for i in range(rank) if i != source]
    order.insert(destination, source)
    return _core.bind("transpose", x, permutation=tuple(order))


def broadcast(x: Array, sz: int, axis: int, mesh_axis: Any = None) -> Array:
    """An array repeated along a new axis.

    Args:
        x: array.
        sz: int, the size of the new axis.
        axis: int, its position in the result.
        mesh_axis: must be None.

    Returns:
        Array with one dimension more.

    Raises:
        NotImplementedError: `mesh_axis` is given.
    """
    if mesh_axis is not None:
        refused("broadcast", "mesh_axis", mesh_axis, "types of batched axes name no axis of a mesh")
    shape = list(x.shape)
    shape.insert(axis, sz)
    dims = tuple(i for i in range(len(shape)) if i != axis)
    return _core.bind("broadcast_in_dim", x, shape=tuple(shape), broadcast_dimensions=dims, sharding=None)


def bdim_at_front(x: Array, bdim: Any, size: int, mesh_axis: Any = None) -> Array:
    """An array with its batch axis in front.

    Args:
        x: array.
        bdim: int, the batch axis, or `not_mapped`.
        size: int, the size of the batch: an array without batch axis is repeated.
        mesh_axis: must be None.

    Returns:
        Array of shape (size, ...).
    """
    return broadcast(x, size, 0, mesh_axis) if bdim is not_mapped else moveaxis(x, bdim, 0)


def defvectorized(prim: Primitive) -> None:
    """Gives a primitive the batching rule of elementwise operations: all inputs have one shape, and
    the batch axis stays where it is.

    Args:
        prim: Primitive.

    Returns:
        None.
    """

    def rule(args, dims, **params):
        first = next(d for d in dims if d is not not_mapped)
        if any(d != first for d in dims):
            size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not not_mapped)
            args, first = [bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)], 0
        return prim.bind(*args, **params), first

    primitive_batchers[prim] = rule


def defbroadcasting(prim: Primitive) -> None:
    """Gives a primitive the batching rule of elementwise operations whose inputs broadcast along
    axes of size 1.

    Args:
        prim: Primitive.

    Returns:
        None.
    """

    def rule(args, dims, **params):
        rank = max(x.ndim if d is not_mapped else x.ndim - 1 for x, d in zip(args, dims, strict=True))

        def front(x, d):
            x = x if d is not_mapped else moveaxis(x, d, 0)
            lanes = () if d is not_mapped else x.shape[:1]
            own = x.shape if d is not_mapped else x.shape[1:]
            shape = (*(lanes or (1,)), *(1,) * (rank - len(own)), *own)
            return x if shape == x.shape else _core.bind("reshape", x, new_sizes=tuple(shape), dimensions=None, sharding=None)

        return prim.bind(*[front(x, d) for x, d in zip(args, dims, strict=True)], **params), 0

    primitive_batchers[prim] = rule


def defreducer(prim: Primitive) -> None:
    """Gives a primitive of one input the batching rule of reductions over the axes that its
    parameter `axes` lists.

    Args:
        prim: Primitive.

    Returns:
        None.
    """

    def rule(args, dims, axes, **params):
        (x,), (d,) = args, dims
        moved = tuple(a + (a >= d) for a in axes)
        return prim.bind(x, axes=moved, **params), d - sum(a < d for a in moved)

    primitive_batchers[prim] = rule
