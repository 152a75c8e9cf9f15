"""Sharded arrays: made from callbacks and from arrays of single devices, resharded, and split into
their parts.

Invariant: this module computes nothing. It calls methods of shardings and does not import their
classes, because `_sharding.shardings` imports `_runtime.mesh` only.

    x = device_put(jnp.arange(8.0), NamedSharding(make_mesh((2,), ("x",)), P("x")))
    [s.data.shape for s in x.addressable_shards]   # [(4,), (4,)]
"""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .. import _core
from .._base.layouts import sharding_of
from .._runtime.devices import check_fit, is_sharding, is_spec, put_alike, same_on
from .._runtime.mesh import AxisType, get_abstract_mesh
from .._trees.prefixes import broadcast_prefix
from ..errors import UnexpectedTracerError
from ..tree_util import tree_flatten

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike, DTypeLike


@overload
def reshard(xs: ArrayLike, out_shardings: Any) -> Array: ...


@overload
def reshard(xs: Any, out_shardings: Any) -> Any: ...


def reshard(xs: Any, out_shardings: Any) -> Any:
    """A pytree's arrays laid out by `out_shardings`, a tree prefix of shardings or of
    `PartitionSpec`s in the mesh in use.

    Args:
        xs: pytree of arrays.
        out_shardings: tree prefix of xs, of shardings or of `PartitionSpec`s in the mesh in use.

    Returns:
        Pytree of arrays.

    Raises:
        ValueError: a specification is given and no mesh is in use, or a sharding does not fit its
          array.
        TypeError: an argument is not a sharding.
    """
    leaves, tree = tree_flatten(xs)
    is_place = lambda s: s is None or is_sharding(s) or is_spec(s)
    places = broadcast_prefix(out_shardings, xs, prefix_is_leaf=is_place)
    out = []
    for x, place in zip(leaves, places, strict=True):
        if place is None:
            raise ValueError(f"Reshard should only be used with out_shardings which are non-None and have a non-empty mesh. Got sharding {place}.")
        if is_spec(place):
            place = _in_use(place)
        if not is_sharding(place):
            raise TypeError(
                f"`out_sharding` argument of reshard only supports instances of `NamedSharding` or `PartitionSpec`. Got {place} of type: {type(place)}"
            )
        _check_explicit(place, "reshard")
        out.append(_cut(x, place))
    return tree.unflatten(out)


def _check_explicit(place, name):
    """Raises ValueError, with JAX's message, if a sharding names axes that are not explicit."""
    if not hasattr(place, "spec"):
        return
    spec = place.spec
    types = dict(zip(place.mesh.axis_names, place.mesh.axis_types, strict=True))
    for axis in [*(a for d in range(len(spec)) for a in spec.axes_of(d)), *spec.unreduced, *spec.reduced]:
        if types[axis] is not AxisType.Explicit:
            raise ValueError(
                f"PartitionSpec passed to {name} cannot contain axis names that are of type Auto or Manual. Got PartitionSpec: {spec} with axis name:"
                f" {axis} of type: {types[axis]}."
            )


def _check_mesh(place, name):
    """Raises ValueError, with JAX's message, if a sharding's mesh is not the mesh in use."""
    mesh, around = getattr(place, "mesh", None), get_abstract_mesh()
    if mesh is None or mesh.empty or around.empty or mesh.abstract_mesh == around:
        return
    if not (mesh.are_all_axes_auto and around.are_all_axes_auto):
        raise ValueError(f"Context mesh {around} should match the mesh of sharding {mesh.abstract_mesh} passed to {name}.")


def _in_use(spec):
    """The sharding that a specification means in the mesh in use."""
    if get_abstract_mesh().empty:
        raise ValueError(
            "Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a NamedSharding instance or enter into a mesh"
            f" context via `jax.set_mesh`. Got {spec}"
        )
    return spec.in_context("reshard", "out_shardings")


def _cut(x, place):
    """One array with a sharding; for a traced array, its type has the sharding."""
    mesh = getattr(place, "mesh", None)
    if mesh is None or not mesh.explicit_axes:
        place.shard_shape(np.shape(x))
    else:
        place = place._shortened(np.ndim(x))
        place.check_type(np.shape(x))
        place = place._of_rank(np.ndim(x))
    if mesh is not None and not mesh.explicit_axes and isinstance(x, _core.Tracer):
        x = _core.reshard(x, place)  # removes the partitioning from its type
    if mesh is None or (mesh.abstract_mesh is not mesh and not isinstance(x, _core.Tracer)):
        return _core.device_put(x, place)
    return _core.reshard(x, place) if mesh.explicit_axes else place._constrain(x)


def placed(out, device):
    """`out` as the argument `device` of the function that made it requires: on a device, or with a
    sharding.

    None leaves it where it is.
    """
    if device is None:
        return out
    if getattr(device, "mesh", None) is not None:
        device = device._shortened(np.ndim(out))
    if not isinstance(out, _core.Tracer):
        return put_alike(out, device)
    if getattr(device, "mesh", None) is not None:
        return _cut(out, device)
    if is_sharding(device):
        (device,) = device.device_set
    return same_on(device)(out) if isinstance(device, _core.Device) else _core.device_put(out, device)


def sharded(function, given):
    """The result of `function`, with the sharding of the argument `out_sharding`; None leaves the
    sharding open.
    """
    place, args, kwargs = given["out_sharding"], [], {}
    for name, p in inspect.signature(function).parameters.items():
        if name == "out_sharding":
            given = {**given, name: None}
        if p.kind is p.VAR_POSITIONAL:
            args += given[name]
        elif p.kind is p.VAR_KEYWORD:
            kwargs |= given[name]
        elif p.kind is p.KEYWORD_ONLY:
            kwargs[name] = given[name]
        else:
            args.append(given[name])
    place = _in_use(place) if is_spec(place) else place
    _check_mesh(place, function.__name__)
    _check_explicit(place, function.__name__)
    if getattr(place, "memory_kind", None) not in (None, "device"):
        raise ValueError(f"`out_sharding` sharding with memory_kind is not allowed. Got memory_kind={place.memory_kind}")
    if _core.at_root() and getattr(getattr(place, "spec", None), "unreduced", None):
        # one program computes the terms and returns them unreduced
        leaves, tree = tree_flatten((tuple(args), kwargs))
        traced = [isinstance(x, _core.Array) for x in leaves]

        def whole(*arrays):
            rest = iter(arrays)
            args, kwargs = tree.unflatten([next(rest) if t else x for x, t in zip(leaves, traced, strict=True)])
            return _laid(_core.resolved(function, args, kwargs), place)

        return _core.jit(whole)(*[x for x, t in zip(leaves, traced, strict=True) if t])
    return _laid(_core.resolved(function, tuple(args), kwargs), place)


def _laid(out, place):
    if getattr(getattr(place, "mesh", None), "axis_names", None) == ():  # a type without partitioning
        return out
    leaves, tree = tree_flatten(out)
    return tree.unflatten([_cut(x, place) for x in leaves])


def make_array_from_callback(shape: Any, sharding: Any, data_callback: Any, dtype: DTypeLike | None = None) -> Array:
    """An array whose part on each device is `data_callback(index)`, for the index of that part.

    Args:
        shape: of the whole array.
        sharding: the sharding of the result.
        data_callback: takes a tuple of slices, and returns the elements there. It is called once
          for a part that all devices hold.
        dtype: of the elements; by default that of the first part.

    Returns:
        Array of `shape`.

    Raises:
        ValueError: a part has another shape than its index or another dtype than the first one.
    """
    shape, sharding = tuple(shape), _sharding_of(sharding)
    whole = sharding.is_fully_replicated
    indices = sharding.addressable_devices_indices_map(shape)

    def read(index):
        part = data_callback(index)
        if isinstance(part, _core.Tracer):
            raise UnexpectedTracerError("jax.make_array_from_callback cannot be called within a traced context.")
        return part if isinstance(part, _core.Array) else np.asarray(_core.asarray(part)) if np.isscalar(part) else part

    once = read(tuple(slice(None) for _ in shape)) if whole else None
    parts = [(d, once if whole else read(index)) for d, index in indices.items()]
    first = _core.asarray(parts[0][1]) if dtype is None else None
    arrays = [_core.device_put(p, d) for d, p in parts]
    return _assembled(shape, sharding, arrays, _dtype_of(arrays, dtype, "make_array_from_callback"), first is not None and first.weak_type)


def make_array_from_single_device_arrays(shape: Any, sharding: Any, arrays: Any, *, dtype: DTypeLike | None = None) -> Array:
    """An array with a sharding, made of one array for each device.

    Args:
        shape: of the whole array.
        sharding: the sharding of the result.
        arrays: a list or tuple of arrays, one on each device of the sharding, in any order.
        dtype: of the elements; it must be that of the arrays, and is needed if there are none.

    Returns:
        Array of `shape`.

    Raises:
        ValueError: the number of arrays is not the number of shards, or an array has another
          device, shape or dtype than its shard.
        TypeError: `arrays` is not a list or tuple.
    """
    shape, sharding = tuple(shape), _sharding_of(sharding)
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"jax.make_array_from_single_device_arrays `arrays` argument must be a list or tuple, but got {type(arrays)}.")
    if any(isinstance(x, _core.Tracer) for x in arrays):
        raise ValueError(f"jax.make_array_from_single_device_arrays requires a list of concrete arrays as input, but got types {set(map(type, arrays))}")
    dtype = _dtype_of(arrays, dtype, "make_array_from_single_device_arrays")
    devices = list(sharding.addressable_devices_indices_map(shape))
    if len(arrays) != len(devices):
        raise ValueError(f"Expected {len(devices)} per-device arrays (this is how many devices are addressable by the sharding), but got {len(arrays)}")
    for x in arrays:
        if isinstance(x, _core.Array) and (n := len(x.devices())) != 1:
            raise ValueError(f"When making an array from single-device arrays the input arrays must have one shard each. An argument array had {n} shard(s).")
    own = [next(iter(x.devices())) for x in arrays]
    by_device = dict(zip(own, arrays, strict=True))
    if len(by_device) < len(arrays):
        ids = [d.id for d in own]
        raise ValueError(f"When making an array from single-device arrays, the input arrays must be from distinct devices, but got device IDs {ids}")
    missing, strange = {d.id for d in devices} - {d.id for d in own}, {d.id for d in own} - {d.id for d in devices}
    if missing or strange:
        raise ValueError(
            "Addressable devices and per-device arrays devices do not match."
            + (f" Sharding contains devices {missing} that are not present in per-device arrays." if missing else "")
            + (f" Per-device arrays contain devices {strange} that are not present in the sharding." if strange else "")
        )
    return _assembled(shape, sharding, [by_device[d] for d in devices], dtype, False)


@overload
def make_array_from_process_local_data(sharding: Any, local_data: ArrayLike, global_shape: Any = None) -> Array: ...


@overload
def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any: ...


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """A pytree of arrays whose part in this process is `local_data`; with a single process, that is
    the whole array.

    Args:
        sharding: the sharding of the results, or their device; a tree prefix of those.
        local_data: a pytree of numpy arrays: the parts on the devices of this process, or the whole
          arrays.
        global_shape: the shapes of the results; None: derived from the shapes of the local data and
          the sharding.

    Returns:
        Pytree of arrays.

    Raises:
        ValueError: the data are neither the whole array nor the part of this process.
    """
    leaves, tree = tree_flatten(local_data)
    is_place = lambda s: is_sharding(s) or is_spec(s) or isinstance(s, _core.Device)
    places = broadcast_prefix(sharding, local_data, prefix_is_leaf=is_place)
    shapes = broadcast_prefix(global_shape, local_data, prefix_is_leaf=lambda s: s is None or isinstance(s, tuple))
    out = []
    for x, place, shape in zip(leaves, places, shapes, strict=True):
        if not getattr(place, "is_fully_addressable", True):
            out.append(_of_processes(place, np.asarray(x), shape))
            continue
        if shape is not None and tuple(shape) != np.shape(x):
            raise ValueError(
                "When calling `make_array_from_process_local_data` on a single process, global_shape should be None or equal to"
                f" local_data.shape.Got global_shape={shape} and local_data.shape={np.shape(x)}."
            )
        if is_spec(place):
            if get_abstract_mesh().empty:
                raise ValueError("Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to make_array_from_process_local_data")
            place = place.in_context("make_array_from_process_local_data", "sharding")
        if is_sharding(place):
            check_fit(place, np.shape(x), "device_put args")
        out.append(_core.device_put(x, place))
    return tree.unflatten(out)


def _of_processes(sharding, data, shape):
    """An array over several processes. `data` is the part of this process, or the whole array."""
    probe = tuple(math.prod(sharding._cuts(d)) for d in range(data.ndim))  # a shape with one element for each part
    held = sharding.addressable_devices_indices_map(probe)
    along = [sorted({(index[d].start or 0, index[d].stop or n) for index in held.values()}) for d, n in enumerate(probe)]
    first, own = [a[0][0] for a in along], [sum(stop - start for start, stop in a) for a in along]
    if any(a[k][1] != a[k + 1][0] for a in along for k in range(len(a) - 1)):
        raise ValueError(f"the devices of this process hold no block of an array laid out by {sharding}")
    if shape is None:
        if any(n % k for n, k in zip(data.shape, own, strict=True)):
            raise ValueError(f"local data of shape {data.shape} is not part of an array laid out by {sharding}")
        shape = tuple(n // k * p for n, k, p in zip(data.shape, own, probe, strict=True))
    whole = tuple(shape) == data.shape
    if not whole and data.shape != tuple(n // p * k for n, p, k in zip(shape, probe, own, strict=True)):
        raise ValueError(f"local data of shape {data.shape} is neither the whole of an array of shape {tuple(shape)} nor the part of this process")
    start = [0 if whole else n // p * f for n, p, f in zip(shape, probe, first, strict=True)]

    def part(index):
        return data[tuple(slice((s.start or 0) - o, (n if s.stop is None else s.stop) - o) for s, o, n in zip(index, start, shape, strict=True))]

    return make_array_from_callback(tuple(shape), sharding, part)


def _sharding_of(x):
    """The sharding of a sharding, or of a layout with one (experimental.layout.Format)."""
    x = sharding_of(x)
    if not is_sharding(x):
        raise TypeError(f"sharding should be an instance of `jax.sharding`. Got {x} of type {type(x)}")
    return x


def _dtype_of(arrays, dtype, name):
    if dtype is None:
        if not arrays:
            raise ValueError(f"If the Array has no addressable shards, `dtype` must be provided via the `dtype` argument to `jax.{name}`.")
        return arrays[0].dtype
    dtype = _core.asarray(np.zeros((), dtype)).dtype if not hasattr(dtype, "_impl") else dtype
    if arrays and arrays[0].dtype != dtype:
        raise ValueError(
            f"If `dtype` is provided to `jax.{name}`, it must match the dtype of the addressable shards. Got dtype={dtype} and shard dtype={arrays[0].dtype}`."
        )
    return dtype


def _assembled(shape, sharding, arrays, dtype, weak):
    part = sharding.shard_shape(shape)
    for x in arrays:
        if x.dtype != dtype:
            raise ValueError(f"Input buffers to `Array` must have matching dtypes. Got {x.dtype}, expected {dtype} for buffer: {x}")
        if x.shape != part:
            text = f"{getattr(dtype, 'name', dtype)}[{','.join(map(str, shape))}]"
            raise ValueError(
                f"Expected shard shape {part} doesn't match the single device array shape {x.shape}. Shape of Array is {text} with sharding {sharding}"
            )
    return _core.array_of_parts(shape, sharding, arrays, weak)


class Shard:
    """One device's part of an array.

    Attributes:
        device: the device.
        index: which slice of the array.
        replica_id: which of the parts with this index it is, 0 for the first.
        data: the part as an array.
    """

    def __init__(self, device: Any, index: Any, data: Any, replica_id: int = 0) -> None:
        self.device, self.index, self.data, self.replica_id = device, index, data, replica_id

    def __repr__(self):
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


def shards_of(x, parts):
    """The parts of an array on the devices of this process as `Shard`s, in the order of the devices
    of its sharding.
    """
    here = _core.process_index()
    return [s for s in _shards(x, parts) if s.device.process_index == here]


def global_shards(x):
    """The parts of an array on the devices of all processes; those of others have no data."""
    return _shards(x, [s.data for s in x.addressable_shards])


def _shards(x, parts):
    here, parts, seen, out = _core.process_index(), iter(parts), {}, []
    regions = getattr(x.sharding, "_regions", x.sharding.devices_indices_map)  # also those of an unreduced array
    for device, index in regions(x.shape).items():
        key = tuple((s.start, s.stop) for s in index)
        out.append(Shard(device, index, next(parts) if device.process_index == here else None, seen.setdefault(key, 0)))
        seen[key] += 1
    return out
