"""`Sharding` and its classes: the devices that hold an array, and the part of the array that each
device holds.

Invariant: a sharding is a value: equal ones compare equal and have equal hashes. It refers to no
array; `_sharding.parts` makes arrays of several parts.

    >>> NamedSharding(jax.make_mesh((1,), ("x",)), PartitionSpec("x")).shard_shape((4, 2))
    (4, 2)
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.flags import FLAGS
from .._runtime.mesh import AbstractMesh, Mesh, _by_label, get_abstract_mesh, shardings
from .spec import PartitionSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .._core import Device

__all__ = ["DuplicateSpecError", "IndivisibleError", "NamedSharding", "Sharding", "SingleDeviceSharding", "make_single_device_sharding"]


class Sharding:
    """How an array is laid out over devices."""

    memory_kind = "device"

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        here = _core.process_index()
        return all(d.process_index == here for d in self._devices)

    def _repr_html_(self):
        from .._base.html import sharding

        return sharding(self)

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold a shard."""
        return set(self._devices)

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices of this process that hold a shard."""
        return set(self._addressable_device_assignment)

    @property
    def has_addressable_devices(self) -> bool:
        """Whether a device of this process holds a shard."""
        return bool(self._addressable_device_assignment)

    @property
    def _device_assignment(self):
        return tuple(self._devices)

    @property
    def _addressable_device_assignment(self):
        here = _core.process_index()
        return tuple(d for d in self._devices if d.process_index == here)

    @property
    def num_devices(self) -> int:
        """The number of devices that hold a shard."""
        return len(self._devices)

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Any]:
        """The slice of an array of `global_shape` that each device holds."""
        return {d: tuple(slice(None) for _ in global_shape) for d in self._devices}

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Any]:
        """The slice of an array of `global_shape` that each device of this process holds."""
        here = _core.process_index()
        return {d: index for d, index in self.devices_indices_map(global_shape).items() if d.process_index == here}

    def shard_shape(self, global_shape: Sequence[int]) -> Sequence[int]:
        """The shape of one device's shard."""
        return tuple(global_shape)

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raises ValueError if arrays of the shape cannot have this sharding."""

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether arrays of rank `ndim` have the same layout under both shardings."""
        if self.num_devices == other.num_devices == 1:
            return self.device_set == other.device_set
        shape = (math.lcm(self.num_devices, other.num_devices) ** 2,) * ndim
        mine, others = self.devices_indices_map(shape), other.devices_indices_map(shape)
        return mine == others and list(mine) == list(others)

    def __eq__(self, other):
        return type(self) is type(other) and self._devices == other._devices

    def __hash__(self):
        return hash((type(self), self._devices))


_MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


def _memory_kind(kind):
    """The memory kind, if it is one of JAX's. All kinds denote the same memory.

    Raises:
        ValueError: the kind does not exist.
    """
    if kind is not None and kind not in _MEMORY_KINDS:
        raise ValueError(f"Got invalid memory kind: {kind}. Valid memory kinds are: {set(_MEMORY_KINDS)}")
    return kind


class SingleDeviceSharding(Sharding):
    """The whole array on one device."""

    is_fully_replicated = True

    def __init__(self, device: Any, *, memory_kind: Any = None) -> None:
        self._devices, self.memory_kind = (device,), _memory_kind(memory_kind) or "device"

    @property
    def _device(self):
        return self._devices[0]

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The same sharding with another memory kind."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def __repr__(self):
        return f"SingleDeviceSharding(device={self._devices[0]!r}, memory_kind={self.memory_kind})"

    def __eq__(self, other):
        return type(other) is SingleDeviceSharding and (self._devices, self.memory_kind) == (other._devices, other.memory_kind)

    __hash__ = Sharding.__hash__


class IndivisibleError(ValueError):
    """A dimension of an array cannot be divided into the number of equal parts that a sharding
    requires.
    """


class DuplicateSpecError(ValueError):
    """A specification maps one mesh axis to several dimensions."""


class NamedSharding(Sharding):
    """An array partitioned over a mesh along the axes of a `PartitionSpec`.

    Raises:
        ValueError: the specification names an axis that is not an axis of the mesh, or names one
          twice.

    Over an abstract mesh, shapes are available and devices are not.
    """

    def __init__(self, mesh: Any, spec: Any, *, memory_kind: Any = None, _logical_device_ids: Any = None) -> None:
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise TypeError(f"NamedSharding: mesh must be a `jax.sharding.Mesh` or `AbstractMesh`, got {mesh} of type {type(mesh)}")
        if spec is None:
            raise TypeError("Unexpected None passed as spec for NamedSharding. Did you mean P()?")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"Unexpected annotation {spec!r}. NamedSharding needs a `jax.sharding.PartitionSpec`.")
        self.memory_kind = _memory_kind(memory_kind) or (None if isinstance(mesh, AbstractMesh) else "device")
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
        if mesh.axis_names and not mesh.auto_axes and any(p is PartitionSpec.UNCONSTRAINED for p in spec.partitions):
            raise ValueError(f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got mesh axis_types: {mesh.axis_types}")
        _check_sums(mesh, spec, "Unreduced", spec.unreduced)
        _check_sums(mesh, spec, "Reduced", spec.reduced)
        self.mesh, self.spec, self._known_cuts = mesh, spec, None

    @property
    def _devices(self):
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("device_set is not implemented for `jax.sharding.AbstractMesh`.")
        return tuple(self.mesh.devices.flat)

    @property
    def num_devices(self):
        """The number of devices that hold a shard."""
        return self.mesh.size

    def is_equivalent_to(self, other, ndim):
        """Whether arrays of rank `ndim` have the same layout under both shardings."""
        if isinstance(self.mesh, AbstractMesh) and type(other) is NamedSharding and self.mesh == other.mesh:
            return self._sums() == other._sums() and all(self.spec.axes_of(d) == other.spec.axes_of(d) for d in range(ndim))
        sums = other._sums() if type(other) is NamedSharding else (frozenset(), frozenset())
        return self._sums() == sums and super().is_equivalent_to(other, ndim)

    def _sums(self):
        return self.spec.unreduced, self.spec.reduced

    def _cuts(self, dim):
        return [self.mesh.shape[a] for a in self.spec.axes_of(dim)]

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        return not self.spec.unreduced and all(math.prod(self._cuts(d)) == 1 for d in range(len(self.spec)))

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The mesh axes along which the shards are equal."""
        used = {a for d in range(len(self.spec)) for a in self.spec.axes_of(d)} | self.spec.unreduced | self.spec.reduced
        return frozenset(a for a in self.mesh.axis_names if a not in used)

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raises ValueError if the shape has fewer dimensions than the specification."""
        if len(self.spec) > len(aval_shape):
            extra = "" if aval_shape else " For scalars the PartitionSpec should be P()"
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but was applied to a value of rank {len(aval_shape)}.{extra}"
            )

    def shard_shape(self, global_shape):
        """The shape of one device's shard.

        Raises:
            IndivisibleError: a dimension cannot be divided evenly.
            ValueError: the specification partitions a dimension that the shape does not have.
              Entries that partition nothing may exceed the rank.
        """
        global_shape = tuple(global_shape)
        if any(self.spec.axes_of(d) for d in range(len(global_shape), len(self.spec))):
            self.check_compatible_aval(global_shape)
        pieces = [math.prod(self._cuts(d)) for d in range(len(global_shape))]
        for d, (n, k) in enumerate(zip(global_shape, pieces, strict=True)):
            if n % k:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {d} is partitioned {k} times, but the dimension size is {n} (full shape: {global_shape},"
                    f" per-dimension tiling factors: {pieces} should evenly divide the shape)"
                )
        return tuple(n // k for n, k in zip(global_shape, pieces, strict=True))

    def check_type(self, shape: Sequence[int]) -> None:
        """Raises ValueError, as JAX does, if a type of the shape cannot have this sharding."""
        self.check_compatible_aval(shape)
        for d, n in enumerate(shape):
            k = math.prod(self._cuts(d))
            if n % k:
                raise ValueError(
                    f"Sharding spec {self.spec.axes_of(d)} implies that array axis {d} is partitioned {k} times, but does not evenly divide the dimension"
                    f" size {n}. Got shape: {tuple(shape)} and sharding {NamedSharding(self.mesh.abstract_mesh, self.spec)}"
                )

    def _shortened(self, ndim):
        """Without the entries of the specification beyond the rank, if those partition nothing."""
        if len(self.spec) <= ndim or any(self.spec.axes_of(d) for d in range(ndim, len(self.spec))):
            return self
        return self.update(spec=self.spec.update(partitions=self.spec.partitions[:ndim]))

    def _of_rank(self, ndim):
        """The same sharding with one entry of the specification for each dimension."""
        entries = self.spec.partitions[:ndim] + (None,) * (ndim - len(self.spec))
        return self if entries == self.spec.partitions else self.update(spec=self.spec.update(partitions=entries))

    def devices_indices_map(self, global_shape):
        """The slice of an array of `global_shape` that each device holds."""
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("_device_assignment is not implemented for `jax.sharding.AbstractMesh`.")
        if self.spec.unreduced:
            raise NotImplementedError("device_indices_map doesn't work with unreduced: sum the terms first, by `reshard`")
        return self._regions(global_shape)

    def _regions(self, global_shape):
        """The slice whose shape is that of each device's shard."""
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

    def _cuts_of_devices(self):
        """The devices, and the numbers of the axes that partition each dimension, in the
        extension's format; None if the mesh has no devices.
        """
        if self._known_cuts is None:
            if isinstance(self.mesh, AbstractMesh) or self.mesh.empty:
                return None
            self._known_cuts = self.mesh._for_extension(), self._numbers()
        return self._known_cuts

    def _numbers(self):
        """The numbers of the mesh axes that partition each dimension, of the unreduced axes and of
        the reduced axes.
        """
        number = {name: i for i, name in enumerate(self.mesh.axis_names)}
        of = lambda axes: [number[a] for a in axes]
        return [of(self.spec.axes_of(d)) for d in range(len(self.spec))], of(self.spec.unreduced), of(self.spec.reduced)

    def _typed(self):
        """The part of a type that describes this sharding; None if no axis is explicit.

        Returns:
            Tuple of the axes, a flag for each whether it is explicit, the mesh's name, and the axes
            that partition each dimension.
        """
        typed = self.mesh.abstract_mesh._typed()
        if typed is None:
            return None
        return (*typed, self._numbers())

    def _constrain(self, x):
        """A traced value constrained to this sharding when the program is partitioned.

        Dimensions that cannot be divided evenly are not partitioned.
        """
        shape = np.shape(x)
        concrete = isinstance(self.mesh, Mesh) and not self.mesh.empty
        spec = [[] if n % math.prod(self._cuts(d)) else [str(a) for a in self.spec.axes_of(d)] for d, n in enumerate(shape)]
        free = [d for d, p in enumerate(self.spec.partitions) if p is PartitionSpec.UNCONSTRAINED]
        axes = [(str(name), n) for name, n in self.mesh.shape.items()]
        return _core.constrain(x, axes, spec, free, list(self.mesh.devices.flat) if concrete else [])

    def __reduce__(self):
        return functools.partial(NamedSharding, memory_kind=self.memory_kind), (self.mesh, self.spec)

    def __deepcopy__(self, _memo):
        return self

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same sharding with another memory kind."""
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def update(self, **kwargs: Any) -> NamedSharding:
        """A sharding with `mesh`, `spec` or `memory_kind` changed."""
        return NamedSharding(**{"mesh": self.mesh, "spec": self.spec, "memory_kind": self.memory_kind, **kwargs})

    def __eq__(self, other):
        return type(other) is NamedSharding and (self.mesh, self.spec, self.memory_kind) == (other.mesh, other.spec, other.memory_kind)

    def __hash__(self):
        return hash((NamedSharding, self.mesh, self.spec))

    def __repr__(self):
        kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"


shardings["named"] = NamedSharding
shardings["whole"] = lambda mesh: NamedSharding(mesh, PartitionSpec())


def _check_sums(mesh, spec, name, axes):
    """Raises ValueError if `axes` contains a name that is not an explicit axis of the mesh."""
    for a in axes:
        if a not in mesh.axis_names:
            raise ValueError(f"{name} axes {a} is not found in mesh.axis_names={mesh.axis_names}. Got pspec={spec}")
        if a not in mesh.explicit_axes:
            raise ValueError(f"{name} axes can only refer to mesh axes that is of type `Explicit`. Got {name.lower()} axes: {axes} and mesh: {mesh}")


def make_single_device_sharding(device: Any, *, memory_kind: Any = None) -> SingleDeviceSharding:
    """The sharding of arrays on a single device.

    Args:
        device: Device.
        memory_kind: None or "device": a device has one kind of memory.

    Returns:
        SingleDeviceSharding.

    Raises:
        ValueError: the memory kind does not exist.
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


_SIZE_ONE = FLAGS["jax_remove_size_one_mesh_axis_from_type"]


def _of_type(ndim, label, dims, unreduced=(), reduced=()):
    if label is None:
        return NamedSharding(get_abstract_mesh(), PartitionSpec(*[None] * ndim))
    mesh = _by_label[label]
    if _SIZE_ONE.changed and _SIZE_ONE.get():
        sizes = [mesh.shape[name] for name in mesh.axis_names]
        dims = [[i for i in d if sizes[i] > 1] for d in dims]
    return _of_cuts(mesh, dims, unreduced, reduced)


def _of_cuts(mesh, dims, unreduced, reduced):
    """The sharding of a computed array: `dims` contains the numbers of the mesh axes that partition
    each dimension.
    """
    names = [None if not d else mesh.axis_names[d[0]] if len(d) == 1 else tuple(mesh.axis_names[i] for i in d) for d in dims]
    while names and names[-1] is None and not mesh.explicit_axes:
        names.pop()
    sums = {name: {mesh.axis_names[i] for i in axes} for name, axes in (("unreduced", unreduced), ("reduced", reduced))}
    return NamedSharding(mesh, PartitionSpec(*names, **sums))
