"""Where an array's parts stand.

Invariant: a sharding is a value: equal ones compare equal and hash alike.

    >>> jnp.ones(3).sharding
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
"""

from ._config import refused

__all__ = ["PmapSharding", "Shard", "Sharding", "SingleDeviceSharding"]


class Sharding:
    """How an array is laid out over devices."""

    memory_kind = "device"
    is_fully_addressable = True

    @property
    def device_set(self):
        """The devices that hold a part."""
        return set(self._devices)

    addressable_devices = device_set

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
        return self == other

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


class Shard:
    """One device's part of an array.

    Attributes:
      device: the device. index: which slice of the array. replica_id: always 0. data: the part as an array.
    """

    def __init__(self, device, index, data, replica_id=0):
        self.device, self.index, self.data, self.replica_id = device, index, data, replica_id

    def __repr__(self):
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


def _of_devices(devices):
    return SingleDeviceSharding(devices[0]) if len(devices) == 1 else PmapSharding(devices)


def _shards(x, parts):
    index = x.sharding.devices_indices_map(x.shape)
    return [Shard(device, index[device], data) for device, data in parts]
