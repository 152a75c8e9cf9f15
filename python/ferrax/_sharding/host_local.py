"""Arrays over a mesh and each process's part of them.

    host_local_array_to_global_array(rows, mesh, P("d"))        # the rows of all processes, one below the other

Invariant: with a single process the part is the whole array.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, overload

from .._core import Array, Tracer
from .._runtime.devices import device_put
from .._trees.prefixes import broadcast_prefix
from ..tree_util import tree_flatten
from .parts import make_array_from_single_device_arrays
from .shardings import NamedSharding
from .spec import PartitionSpec as P

if TYPE_CHECKING:
    from .._runtime.mesh import Mesh
    from ..typing import ArrayLike
    from .spec import PartitionSpec


def _each(convert, arrays, mesh, pspecs):
    leaves, tree = tree_flatten(arrays)
    specs = broadcast_prefix(pspecs, arrays, prefix_is_leaf=lambda s: isinstance(s, P) or s is None)
    return tree.unflatten([convert(x, global_mesh=mesh, pspec=s) for x, s in zip(leaves, specs, strict=True)])


def _shapes(mesh, spec, shape, of_process):
    """The shape of a process's part of an array, from that of the whole array; or the reverse."""
    local = mesh.local_mesh
    times = [math.prod(mesh.shape[a] // local.shape[a] for a in (spec.axes_of(d) if d < len(spec) else ())) for d in range(len(shape))]
    return tuple(n // k if of_process else n * k for n, k in zip(shape, times, strict=True))


@overload
def host_local_array_to_global_array(local_inputs: ArrayLike, global_mesh: Mesh, pspecs: Any) -> Array: ...


@overload
def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any: ...


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays over a mesh, made of each process's part: the shards of its devices.

    A single process passes the whole array.

    Args:
        local_inputs: pytree of arrays, this process's parts. A dimension that is partitioned over
          processes has the size of the part.
        global_mesh: Mesh.
        pspecs: tree prefix of `PartitionSpec`s; None: replicated.

    Returns:
        Pytree of arrays.
    """
    return _each(host_local_array_to_global_array_impl, local_inputs, global_mesh, pspecs)


@overload
def global_array_to_host_local_array(global_inputs: ArrayLike, global_mesh: Mesh, pspecs: Any) -> Array: ...


@overload
def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any: ...


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """This process's part of arrays that are sharded over a mesh.

    With a single process that is the whole array.

    Args:
        global_inputs: pytree of arrays.
        global_mesh: Mesh.
        pspecs: tree prefix of `PartitionSpec`s; None: replicated.

    Returns:
        Pytree of arrays.
    """
    return _each(global_array_to_host_local_array_impl, global_inputs, global_mesh, pspecs)


def host_local_array_to_global_array_impl(arr: ArrayLike, *, global_mesh: Mesh, pspec: PartitionSpec | None) -> Array:
    """One array over a mesh, made of the part of each process.

    Args:
        arr: array.
        global_mesh: Mesh.
        pspec: PartitionSpec; None: replicated.

    Returns:
        Array.
    """
    spec = P() if pspec is None else pspec
    sharding = NamedSharding(global_mesh, spec)
    if isinstance(arr, Tracer) or not global_mesh.is_multi_process:
        return device_put(arr, sharding)
    if isinstance(arr, Array) and not arr.is_fully_addressable:
        return arr
    parts = device_put(arr, NamedSharding(global_mesh.local_mesh, spec))
    shape = _shapes(global_mesh, spec, parts.shape, of_process=False)
    return make_array_from_single_device_arrays(shape, sharding, [s.data for s in parts.addressable_shards])


def global_array_to_host_local_array_impl(arr: ArrayLike, *, global_mesh: Mesh, pspec: PartitionSpec | None) -> Array:
    """The part of this process of one array that is laid out over a mesh.

    Args:
        arr: array.
        global_mesh: Mesh.
        pspec: PartitionSpec; None: replicated.

    Returns:
        Array.
    """
    spec = P() if pspec is None else pspec
    sharding = NamedSharding(global_mesh, spec)
    if isinstance(arr, Tracer) or not global_mesh.is_multi_process:
        return device_put(arr, sharding)
    if isinstance(arr, Array) and arr.is_fully_addressable:
        return arr
    parts = device_put(arr, sharding)
    shape = _shapes(global_mesh, spec, parts.shape, of_process=True)
    return make_array_from_single_device_arrays(shape, NamedSharding(global_mesh.local_mesh, spec), [s.data for s in parts.addressable_shards])


# The module in which they are public.
for _f in (
    host_local_array_to_global_array,
    global_array_to_host_local_array,
    host_local_array_to_global_array_impl,
    global_array_to_host_local_array_impl,
):
    _f.__module__ = "ferrax.experimental.multihost_utils"
