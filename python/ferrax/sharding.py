"""Where an array's parts stand.

Invariant: a sharding is a value: equal ones compare equal and hash alike. Specifications over any mesh can be written and asked what they mean; arrays are put
where all parts lie on one device.

    >>> NamedSharding(make_mesh((1,), ("x",)), P("x")).shard_shape((4, 2))
    (4, 2)
"""

import math

import numpy as np

from . import _core
from ._config import inert, refused
from ._mesh import AbstractDevice, AbstractMesh, AxisType, ManualAxisType, Mesh, current, get_abstract_mesh, get_mesh, make_mesh, set_mesh, use_abstract_mesh
from .tree_util import broadcast_prefix, tree_flatten, tree_map

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "DuplicateSpecError",
    "ManualAxisType",
    "Mesh",
    "NamedSharding",
    "P",
    "PartitionSpec",
    "PmapSharding",
    "Shard",
    "Sharding",
    "SingleDeviceSharding",
    "auto_axes",
    "explicit_axes",
    "get_abstract_mesh",
    "get_mesh",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_mesh",
    "make_single_device_sharding",
    "reshard",
    "set_mesh",
    "use_abstract_mesh",
]


class Sharding:
    """How an array is laid out over devices."""

    memory_kind = "device"
    is_fully_addressable = True

    def _repr_html_(self):
        from ._html import sharding

        return sharding(self)

    @property
    def device_set(self):
        """The devices that hold a part."""
        return set(self._devices)

    addressable_devices = device_set

    @property
    def _device_assignment(self):
        return tuple(self._devices)

    _addressable_device_assignment = _device_assignment

    @property
    def num_devices(self):
        """How many devices hold a part."""
        return len(self._devices)

    def devices_indices_map(self, global_shape):
        """Which slice of an array of `global_shape` each device holds."""
        n = len(self._devices)
        if n == 1:
            return {self._devices[0]: tuple(slice(None) for _ in global_shape)}
        return {d: (slice(i, i + 1), *(slice(None) for _ in global_shape[1:])) for i, d in enumerate(self._devices)}

    addressable_devices_indices_map = devices_indices_map

    def shard_shape(self, global_shape):
        """The shape of one device's part."""
        n = len(self._devices)
        return tuple(global_shape) if n == 1 else (global_shape[0] // n, *global_shape[1:])

    def is_equivalent_to(self, other, ndim):
        """Whether arrays of that rank are laid out alike."""
        if self.num_devices == other.num_devices == 1:
            return self.device_set == other.device_set
        shape = (math.lcm(self.num_devices, other.num_devices) ** 2,) * ndim
        return self.devices_indices_map(shape) == other.devices_indices_map(shape)

    def __eq__(self, other):
        return type(self) is type(other) and self._devices == other._devices

    def __hash__(self):
        return hash((type(self), self._devices))


class SingleDeviceSharding(Sharding):
    """The whole array on one device."""

    is_fully_replicated = True

    def __init__(self, device, *, memory_kind=None):
        if memory_kind not in (None, "device"):
            refused("SingleDeviceSharding", "memory_kind", memory_kind, "a device has one kind of memory, 'device'")
        self._devices = (device,)

    @property
    def _device(self):
        return self._devices[0]

    def __repr__(self):
        return f"SingleDeviceSharding(device={self._devices[0]!r}, memory_kind=device)"


class PmapSharding(Sharding):
    """Equal parts along axis 0, one a device, in order: what `pmap` returns."""

    is_fully_replicated = False

    def __init__(self, devices, sharding_spec=None):
        if sharding_spec is not None:
            refused("PmapSharding", "sharding_spec", sharding_spec, "the parts are equal and lie along axis 0")
        self._devices = tuple(devices)

    @property
    def devices(self):
        """The devices in order."""
        return list(self._devices)

    def __repr__(self):
        return f"PmapSharding(devices={list(self._devices)})"


class _Unconstrained:
    def __repr__(self):
        return "UNCONSTRAINED"


class DuplicateSpecError(ValueError):
    """A specification maps one mesh axis to several dimensions."""


class PartitionSpec:
    """Which mesh axes each dimension of an array is cut along: a name, a tuple of names (the first cuts coarsest) or None; dimensions left out are not cut.

    >>> PartitionSpec("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("partitions", "reduced", "unreduced")
    UNCONSTRAINED = _Unconstrained()

    def __init__(self, *partitions, unreduced=frozenset(), reduced=frozenset()):
        self.partitions = tuple([tuple(p) if isinstance(p, list) else p for p in partitions])
        self.unreduced, self.reduced = frozenset(unreduced), frozenset(reduced)

    def __iter__(self):
        return iter(self.partitions)

    def __len__(self):
        return len(self.partitions)

    def __getitem__(self, i):
        return self.partitions[i]

    def __add__(self, other):
        return PartitionSpec(*self.partitions, *other, unreduced=self.unreduced, reduced=self.reduced)

    def index(self, value):
        """The first dimension cut along `value`. ValueError where there is none."""
        return self.partitions.index(value)

    def count(self, value):
        """How many dimensions are cut along `value`."""
        return self.partitions.count(value)

    def update(self, **kwargs):
        """A specification with `partitions`, `unreduced` or `reduced` changed."""
        new = {"partitions": self.partitions, "unreduced": self.unreduced, "reduced": self.reduced, **kwargs}
        return PartitionSpec(*new.pop("partitions"), **new)

    def axes_of(self, dim):
        """The mesh axes that a dimension is cut along, coarsest first."""
        p = self.partitions[dim] if dim < len(self.partitions) else None
        return () if p is None or p is PartitionSpec.UNCONSTRAINED else p if isinstance(p, tuple) else (p,)

    def in_context(self, what, argument):
        """The sharding it means in the mesh in use.

        Raises:
          RuntimeError: there is none.
        """
        mesh = current()
        if mesh is None or mesh.empty:
            raise RuntimeError(
                f"{what} requires a non-empty mesh in context if you are passing `PartitionSpec`s to {argument}. You can define a context mesh via"
                f" `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to {argument} and then the mesh context manager is not required."
            )
        return NamedSharding(mesh, self)

    def _key(self):
        return self.partitions, self.unreduced, self.reduced

    def __eq__(self, other):
        return type(other) is PartitionSpec and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        marks = [f"{k}={set(v)}" for k, v in (("unreduced", self.unreduced), ("reduced", self.reduced)) if v]
        if len(self.partitions) == 1 and not marks:
            return f"P({self.partitions[0]!r},)"
        return f"P({', '.join([*map(repr, self.partitions), *marks])})"

    def __reduce__(self):
        return _spec_again, self._key()


def _spec_again(partitions, unreduced, reduced):
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


P = PartitionSpec
_NO_AXES = AbstractMesh((), ())


class NamedSharding(Sharding):
    """Parts over a mesh, as a `PartitionSpec` says.

    Raises:
      ValueError: the specification names an axis that the mesh has not, or one twice.

    Over an abstract mesh it can be asked for shapes, not for devices.
    """

    def __init__(self, mesh, spec, *, memory_kind=None, _logical_device_ids=None):
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise TypeError(f"NamedSharding: mesh must be a `jax.sharding.Mesh` or `AbstractMesh`, got {mesh} of type {type(mesh)}")
        spec = PartitionSpec() if spec is None else spec
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"Unexpected annotation {spec!r}. NamedSharding needs a `jax.sharding.PartitionSpec`.")
        if memory_kind not in (None, "device"):
            refused("NamedSharding", "memory_kind", memory_kind, "a device has one kind of memory, 'device'")
        seen = set()
        for dim in range(len(spec)):
            for axis in spec.axes_of(dim):
                if axis not in mesh.axis_names:
                    raise ValueError(f"Resource axis: {axis} of {spec} is not found in mesh: {mesh.axis_names}.")
                if axis in seen:
                    raise DuplicateSpecError(
                        "A single NamedSharding spec specification can map every mesh axis to at most one positional dimension, but"
                        f" {spec} has duplicate entries for `{axis}`"
                    )
                seen.add(axis)
        self.mesh, self.spec = mesh, spec

    @property
    def _devices(self):
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("device_set is not implemented for a NamedSharding over an `AbstractMesh`: it has no devices")
        return tuple(self.mesh.devices.flat)

    @property
    def num_devices(self):
        """How many devices hold a part."""
        return self.mesh.size

    def _cuts(self, dim):
        return [self.mesh.shape[a] for a in self.spec.axes_of(dim)]

    @property
    def is_fully_replicated(self):
        """Whether each device holds the whole array."""
        return all(math.prod(self._cuts(d)) == 1 for d in range(len(self.spec)))

    @property
    def replicated_axes(self):
        """The mesh axes along which the parts are equal."""
        used = {a for d in range(len(self.spec)) for a in self.spec.axes_of(d)}
        return frozenset(a for a in self.mesh.axis_names if a not in used)

    def check_compatible_aval(self, aval_shape):
        """Raises ValueError unless arrays of the shape have the specification's dimensions, of sizes that can be cut."""
        if len(self.spec) > len(aval_shape):
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but was applied to a value of rank {len(aval_shape)}"
            )
        for d, n in enumerate(aval_shape):
            if n % math.prod(self._cuts(d)):
                raise ValueError(
                    f"One of the arguments was given the sharding of {self}, which implies that the global size of its dimension {d} should be divisible by"
                    f" {math.prod(self._cuts(d))}, but it is equal to {n} (full shape: {tuple(aval_shape)})"
                )

    def shard_shape(self, global_shape):
        """The shape of one device's part. ValueError where a dimension cannot be cut evenly."""
        self.check_compatible_aval(global_shape)
        return tuple(n // math.prod(self._cuts(d)) for d, n in enumerate(global_shape))

    def devices_indices_map(self, global_shape):
        """Which slice of an array of `global_shape` each device holds."""
        part, out = self.shard_shape(global_shape), {}
        for place, device in np.ndenumerate(self.mesh.devices):
            at = dict(zip(self.mesh.axis_names, place, strict=True))
            index = []
            for d, n in enumerate(part):
                axes, k = self.spec.axes_of(d), 0
                for a in axes:
                    k = k * self.mesh.shape[a] + at[a]
                index.append(slice(None) if n == global_shape[d] else slice(k * n, (k + 1) * n))
            out[device] = tuple(index)
        return out

    addressable_devices_indices_map = devices_indices_map
    has_addressable_devices = True

    def __deepcopy__(self, _memo):
        return self

    def with_memory_kind(self, kind):
        """The same in another kind of memory."""
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def update(self, **kwargs):
        """A sharding with `mesh`, `spec` or `memory_kind` changed."""
        return NamedSharding(**{"mesh": self.mesh, "spec": self.spec, **kwargs})

    def __eq__(self, other):
        return type(other) is NamedSharding and (self.mesh, self.spec) == (other.mesh, other.spec)

    def __hash__(self):
        return hash((NamedSharding, self.mesh, self.spec))

    def __repr__(self):
        kind = "" if isinstance(self.mesh, AbstractMesh) else ", memory_kind=device"
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"


def make_single_device_sharding(device, *, memory_kind=None):
    """The sharding of whole arrays on one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


# ---------------------------------------------------------------- arrays from parts, and parts from arrays


def reshard(xs, out_shardings):
    """A pytree's arrays laid out by `out_shardings`, a tree prefix of shardings or of `PartitionSpec`s in the mesh in use.

    Raises:
      ValueError: a specification is given where no mesh is in use.
      NotImplementedError: the parts would lie on several devices.
    """
    leaves, tree = tree_flatten(xs)
    is_place = lambda s: s is None or isinstance(s, (Sharding, PartitionSpec))
    places = broadcast_prefix(out_shardings, xs, prefix_is_leaf=is_place)
    out = []
    for x, place in zip(leaves, places, strict=True):
        if isinstance(place, PartitionSpec):
            if get_abstract_mesh().empty:
                raise ValueError(
                    "Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a NamedSharding instance or enter into a mesh"
                    f" context via `jax.set_mesh`. Got {place}"
                )
            place = place.in_context("reshard", "out_shardings")
        if isinstance(place, NamedSharding):
            place.check_compatible_aval(np.shape(x))
            _on_one_device(place)
        out.append(x if isinstance(x, _core.Tracer) else _core.device_put(x, place))
    return tree.unflatten(out)


def _on_one_device(sharding):
    """Raises NotImplementedError unless all parts lie on one device."""
    if sharding.num_devices != 1:
        raise NotImplementedError(f"{sharding} has {sharding.num_devices} devices; arrays in parts over several devices are not there. Use pmap or shard_map")


def make_array_from_callback(shape, sharding, data_callback, dtype=None):
    """An array whose part on each device is `data_callback(index)`, for the index of that part.

    Raises:
      NotImplementedError: the parts would lie on several devices.
    """
    _on_one_device(sharding)
    ((device, index),) = sharding.devices_indices_map(tuple(shape)).items()
    return make_array_from_single_device_arrays(shape, sharding, [_core.device_put(_core.asarray(data_callback(index), dtype), device)])


def make_array_from_single_device_arrays(shape, sharding, arrays, *, dtype=None):
    """An array of parts that lie where `sharding` says.

    Raises:
      ValueError: there is another number of arrays than of parts, or one has another shape.
      NotImplementedError: the parts would lie on several devices.
    """
    _on_one_device(sharding)
    arrays = list(arrays)
    if len(arrays) != 1 or tuple(arrays[0].shape) != sharding.shard_shape(tuple(shape)):
        raise ValueError(f"{sharding} of shape {tuple(shape)} has one part of that shape, but the arrays given have shapes {[tuple(x.shape) for x in arrays]}")
    return _core.device_put(arrays[0] if dtype is None else _core.asarray(arrays[0], dtype), sharding)


def make_array_from_process_local_data(sharding, local_data, global_shape=None):
    """A pytree of arrays of which this process has the part `local_data`: there is one process, so it is the whole.

    Raises:
      ValueError: `global_shape` is another than that of the data.
    """

    def one(x):
        if global_shape is not None and tuple(global_shape) != np.shape(x):
            raise ValueError(f"there is one process, whose data of shape {np.shape(x)} is the whole array, but global_shape={global_shape}")
        return make_array_from_callback(np.shape(x), sharding, lambda index: np.asarray(x)[index])

    return tree_map(one, local_data)


def auto_axes(f=None, /, *, axes=None, out_sharding=None):
    """`f`, in which the compiler decides how arrays lie along `axes`: where all lie on one device, `f` with `out_sharding` for its result."""
    if f is None:
        return lambda f: auto_axes(f, axes=axes, out_sharding=out_sharding)
    if axes is not None:
        inert("auto_axes", "axes", "types do not say how arrays lie")

    def decorated(*args, out_sharding=out_sharding, **kwargs):
        out = f(*args, **kwargs)
        return out if out_sharding is None else reshard(out, out_sharding)

    return decorated


def explicit_axes(f=None, /, *, axes=None, in_sharding=None):
    """`f`, in which types say how arrays lie along `axes`: where all lie on one device, `f` with `in_sharding` for its arguments."""
    if f is None:
        return lambda f: explicit_axes(f, axes=axes, in_sharding=in_sharding)
    if axes is not None:
        inert("explicit_axes", "axes", "types do not say how arrays lie")

    def decorated(*args, in_sharding=in_sharding, **kwargs):
        return f(*(args if in_sharding is None else reshard(args, in_sharding)), **kwargs)

    return decorated


class Shard:
    """One device's part of an array.

    Attributes:
      device: the device. index: which slice of the array. replica_id: always 0. data: the part as an array.
    """

    def __init__(self, device, index, data, replica_id=0):
        self.device, self.index, self.data, self.replica_id = device, index, data, replica_id

    def __repr__(self):
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


def _of_type(ndim):
    return NamedSharding(_NO_AXES, PartitionSpec(*[None] * ndim))


def _of_devices(devices):
    return SingleDeviceSharding(devices[0]) if len(devices) == 1 else PmapSharding(devices)


def _shards(x, parts):
    index = x.sharding.devices_indices_map(x.shape)
    return [Shard(device, index[device], data) for device, data in parts]
