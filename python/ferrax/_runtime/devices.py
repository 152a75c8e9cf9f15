"""Devices and the arrays on them: listing devices, placing arrays, waiting for them and finding live
ones.

Invariant: nothing here computes; leaves of a pytree that are not arrays are returned
unchanged.

    >>> device_put({"w": jnp.ones(2)}, devices()[0])["w"].committed
    True
"""

from __future__ import annotations

import copyreg
import functools
import gc
import inspect
import platform
import sys
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from .. import _core
from .._base.config import __version__
from .._base.dtypes import float0, is_key
from .._base.layouts import Format, Layout, without_layout
from .._trees.prefixes import spread_prefix
from ..errors import JaxRuntimeError
from ..tree_util import tree_flatten, tree_leaves, tree_map
from .mesh import get_abstract_mesh

if TYPE_CHECKING:
    from .._core import Array, Device
    from ..typing import ArrayLike


_T = TypeVar("_T")


def is_place(x):
    """Whether x is a device, a sharding or None (no constraint)."""
    named = any(hasattr(type(x), a) for a in ("is_fully_replicated", "in_context", "is_memory"))
    return x is None or isinstance(x, (_core.Device, Format)) or named


class UnspecifiedValue:
    """The default of a sharding argument."""

    def __repr__(self):
        return "UnspecifiedValue"


UNSPECIFIED = UnspecifiedValue()


def specified(places):
    """A pytree of devices and shardings, with None where none is specified."""
    return places if places is None else tree_map(lambda p: None if p is UNSPECIFIED else p, places, is_leaf=is_place)


def is_sharding(x):
    """Whether x is a sharding. Its class decides, because a container may forward attributes to its
    contents (as a variable of Flax does).
    """
    return hasattr(type(x), "shard_shape")


def is_spec(x):
    """Whether x is a `PartitionSpec`."""
    return hasattr(type(x), "in_context")


def check_fit(sharding, shape, what, uneven=False):
    """Raises ValueError unless arrays of the shape can have this sharding; `what` describes them in
    the error.

    Args:
        uneven: whether dimensions may be split unevenly.
    """
    try:
        sharding.check_compatible_aval(shape)
    except ValueError as e:
        raise ValueError(f"One of {what} is incompatible with its sharding annotation {sharding}: {e}") from None
    if not uneven:
        sharding.shard_shape(shape)


@overload
def device_put(x: ArrayLike, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Array: ...


@overload
def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any: ...


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """A pytree's leaves as arrays on a device.

    Args:
        x: a pytree of arrays, numpy arrays and scalars.
        device: a `Device`, a sharding, or a pytree prefix of them; None leaves arrays where they
            are.
        src: the device or sharding for cotangents, if it is not that of the leaves.
        donate: bool, or a pytree prefix of bools: whether an array may be deleted. It is deleted if
            it is copied to another place; otherwise it shares its memory with the result.
        may_alias: bool; False: the result is a new array, which can be deleted or donated by
            itself. Otherwise an array that is already on the device is returned as it is.

    Returns:
        Pytree of arrays.

    Raises:
        TypeError: a leaf is neither an array nor a number.
        ValueError: `device` is neither a device nor a sharding, or belongs to another process;
            `donate` and `may_alias` are both True.
        AssertionError: the sharding is over several processes, and a leaf on the host has different
            values in them.

    >>> jax.device_put([1.0, 2.0])
    [Array(1., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True)]
    """
    if donate is True and may_alias is True:
        raise ValueError("may_alias and donate cannot be True at the same time.")
    leaves, treedef = tree_flatten(x)
    if is_place(device):
        devices = [device] * len(leaves)
    elif isinstance(device, (tuple, list, dict)):
        devices = spread_prefix(device, x, "device_put device")
    else:
        raise ValueError(
            "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device`, `Format`, `jax.memory.Space` or a"
            f" pytree of these values. Received invalid value: {device}"
        )
    for i, (leaf, d) in enumerate(zip(leaves, devices, strict=True)):
        if getattr(d, "is_memory", False):  # a memory.Space: devices have one kind of memory
            d = devices[i] = None
        if isinstance(d, Format):
            if d.layout is Layout.AUTO:
                raise ValueError(f"a format passed to device_put must have a layout or None, got {d}")
            d = devices[i] = without_layout(d, np.shape(leaf), "device_put args")
        if is_spec(d):
            if get_abstract_mesh().empty:
                raise ValueError("Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put")
            d = devices[i] = d.in_context("device_put", "device")
        if is_sharding(d):
            check_fit(d, np.shape(leaf), "device_put args")
    if _core.process_count() > 1:
        _check_alike(leaves, devices)
    out = [_put(leaf, d, src, may_alias) for leaf, d in zip(leaves, devices, strict=True)]
    if donate:
        given = [donate] * len(leaves) if isinstance(donate, bool) else spread_prefix(donate, x, "device_put donate")
        for leaf, made, up in zip(leaves, out, given, strict=True):
            if up and _is_elsewhere(leaf, made):
                leaf.delete()
    return treedef.unflatten(out)


def _check_alike(leaves, places):
    """Raises AssertionError, with JAX's message, if a leaf that is put on devices of several
    processes has different values in them.

    All of these processes must call this together.
    """
    import hashlib

    from .processes import engine as engine_of_processes

    own = {}
    for leaf, place in zip(leaves, places, strict=True):
        whole = not isinstance(leaf, _core.Tracer) and getattr(leaf, "is_fully_addressable", True)
        if is_sharding(place) and not place.is_fully_addressable and whole and getattr(leaf, "dtype", None) != float0:
            own.setdefault(tuple(sorted({d.process_index for d in place.device_set})), []).append(leaf)
    engine, here = engine_of_processes(), _core.process_index()
    for processes, given in own.items():
        if here not in processes:
            continue
        peers = [p for p in processes if p != here]
        arrays = [np.asarray(x.__reduce__()[1][0] if is_key(getattr(x, "dtype", None)) else x) for x in given]
        types = ", ".join(f"{a.dtype}{list(a.shape)}" for a in arrays)
        digests = b"".join(hashlib.blake2b(np.ascontiguousarray(a).tobytes(), digest_size=16).digest() for a in arrays)
        for peer, theirs in zip(peers, engine.exchange(f"device_put of {types}", peers, [digests] * len(peers)), strict=True):
            for k, leaf in enumerate(given):
                if theirs[16 * k : 16 * k + 16] != digests[16 * k : 16 * k + 16]:
                    raise AssertionError(
                        f"{type(leaf)} passed to device_put is not the same on each process. Make sure you are passing the same value of {type(leaf)} on each"
                        f" process. Leaf {k} of those that go to several processes differs on processes {here} and {peer}. Where each process has a part of the"
                        " array: jax.make_array_from_process_local_data."
                    )


def put_alike(x, place):
    """An array on a device or with a sharding. Raises AssertionError if the sharding is over several
    processes and they have different values.
    """
    if _core.process_count() > 1:
        _check_alike([x], [place])
    return _core.device_put(x, place)


@functools.cache
def same_on(device):
    """The identity on a device: a program that contains it runs there, like one that contains a
    function jitted for the device.
    """
    return _core.jit(lambda x: x, device=device, inline=True)


def _put(leaf, device, src, may_alias):
    if getattr(leaf, "dtype", None) == float0:  # it holds no data
        return leaf
    if isinstance(leaf, _core.Tracer):
        return _put_traced(leaf, device, src)
    is_there = isinstance(leaf, _core.Array) and (device is None or (leaf.committed and _is_on(leaf, device)))
    if not is_there:
        return _core.device_put(leaf, device, src)
    return _core.device_put(_core.asarray(leaf, copy=True), device, src) if may_alias is False else leaf


def _put_traced(x, place, src):
    """A traced value on a device or with a sharding. Its cotangent goes to src, or by default to
    where its value is, if that is known.
    """
    if place is None:
        return x
    own = _place_of_value(x) if src is None else src
    if _is_over_mesh(own):
        x = own._constrain(x)
    elif own is not None and _is_over_mesh(place):
        x = _core.device_put(x, own, own)
    if _is_over_mesh(place):
        return _core.reshard(x, place._of_rank(np.ndim(x))) if place.mesh.explicit_axes else place._constrain(x)
    out = _core.device_put(x, place, None if _is_over_mesh(own) else own)
    # A program has one place, which a sharding in it decides and a device does not.
    return same_on(*place.device_set)(out) if is_sharding(place) else out


def _is_over_mesh(place):
    return hasattr(place, "mesh")


def _place_of_value(x):
    """The sharding of the value that is being differentiated; None where it is not known, or where
    the type of a cotangent says how it is cut.
    """
    while isinstance(x, _core.Tracer):
        x = getattr(x, "primal", None)
    own = getattr(x, "sharding", None)
    return None if _is_over_mesh(own) and own.mesh.explicit_axes else own


def _is_elsewhere(x, y):
    """Whether `device_put` copied x to y: then their shardings differ."""
    concrete = all(isinstance(v, _core.Array) and not isinstance(v, _core.Tracer) for v in (x, y))
    return concrete and not x.is_deleted() and x.sharding != y.sharding


def _is_on(x, device):
    return x.sharding == device if is_sharding(device) else x.device == device


def device_get(x: Any) -> Any:
    """A pytree with its arrays as numpy arrays. Other leaves are unchanged, and so are keys, for
    which numpy has no dtype.

    Args:
        x: pytree.

    Returns:
        Pytree of numpy arrays.

    >>> jax.device_get(jnp.arange(3))
    array([0, 1, 2], dtype=int32)
    """

    def fetched(leaf):
        moves = isinstance(leaf, _core.Array) and not isinstance(leaf, _core.Tracer) and not is_key(leaf.dtype)
        return np.asarray(leaf) if moves else leaf

    return tree_map(fetched, x)


def copy_to_host_async(x: _T) -> _T:
    """Starts to copy a pytree's arrays to the host, so that a later `device_get` need not wait.

    Args:
        x: pytree.

    Returns:
        x.
    """
    for leaf in tree_leaves(x):
        begin = None if isinstance(leaf, _core.Tracer) else getattr(leaf, "copy_to_host_async", None)
        if begin is not None:
            begin()
    return x


def block_until_ready(x: _T) -> _T:
    """Waits until a pytree's arrays are computed, and returns the pytree.

    Args:
        x: pytree.

    Returns:
        x.

    >>> jax.block_until_ready({"a": jnp.arange(3)})
    {'a': Array([0, 1, 2], dtype=int32)}
    """
    for leaf in tree_leaves(x):
        wait = getattr(leaf, "block_until_ready", None)
        if wait is not None:
            wait()
    return x


def devices(backend: Any = None) -> list[Device]:
    """All devices of a backend.

    Args:
        backend: platform ("cpu" or "gpu"); None: the default one.

    Returns:
        List of `Device`.

    Raises:
        RuntimeError: the backend does not exist.
    """
    return _core.devices(backend)


def local_devices(process_index: int | None = None, backend: Any = None, host_id: int | None = None) -> list[Device]:
    """The devices of this process.

    Args:
        process_index: a process's number; None: this one's.
        backend: platform ("cpu" or "gpu"); None: the default one.
        host_id: the older name of process_index.

    Returns:
        List of `Device`.
    """
    if process_index is None:
        process_index = _core.process_index() if host_id is None else host_id
    return [d for d in _core.devices(backend) if d.process_index == process_index]


def device_count(backend: Any = None) -> int:
    """How many devices a backend has.

    Args:
        backend: platform ("cpu" or "gpu"); None: the default one.

    Returns:
        int.

    Raises:
        RuntimeError: the backend does not exist.
    """
    return len(devices(backend))


def local_device_count(backend: Any = None) -> int:
    """How many devices of a backend belong to this process.

    Args:
        backend: platform ("cpu" or "gpu"); None: the default one.

    Returns:
        int.

    Raises:
        RuntimeError: the backend does not exist.
    """
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """The platform of the default device: "cpu" or "gpu".

    Returns:
        str.
    """
    return _core.default_backend()


class Client:
    """The client that runs programs on the devices of one platform."""

    runtime_type = "ferrax"

    def __init__(self, platform):
        self.platform, self.platform_version = platform, f"ferrax {__version__}"

    def devices(self):
        """Its devices."""
        return devices(self.platform)

    def device_count(self):
        """How many there are."""
        return len(self.devices())

    def live_executables(self):
        """The compiled programs that jitted functions hold, for its devices."""
        return _core.live_executables(self.platform)

    def process_index(self):
        """The index of this process."""
        return _core.process_index()


@functools.cache
def client_of(platform):
    """The client of a platform: always the same object."""
    return Client(platform)


class Memory:
    """The memory of a device. Each device has one, of kind "device"."""

    kind = "device"

    def __init__(self, device):
        self._device, self.platform = device, device.platform

    def addressable_by_devices(self):
        """The devices that can address it."""
        return [self._device]

    def __eq__(self, other):
        return type(other) is Memory and self._device == other._device

    def __hash__(self):
        return hash((Memory, self._device))

    def __repr__(self):
        return f"Memory({self._device})"


def memories_of(device):
    """The memories that a device can address."""
    return [Memory(device)]


def memory_of(device, kind):
    """The memory of a kind.

    Raises JaxRuntimeError if the device cannot address one of that kind.
    """
    if kind != Memory.kind:
        raise JaxRuntimeError(
            f"INVALID_ARGUMENT: Could not find memory addressable by device {device.device_kind}. Device {device.device_kind} can address the"
            f" following memory kinds: {Memory.kind}. Got memory kind: {kind}"
        )
    return Memory(device)


def process_index(backend: Any = None) -> int:
    """This process's index in a distributed run; 0 in a single process.

    Args:
        backend: platform ("cpu" or "gpu"); None: the default one.

    Returns:
        int.

    Raises:
        RuntimeError: the backend does not exist.
    """
    return _core.process_index() if backend is None else _core.devices(backend)[0].process_index


def process_count(backend: Any = None) -> int:
    """The number of processes of a distributed run.

    Args:
        backend: platform ("cpu" or "gpu"); None: the default one.

    Returns:
        int.

    Raises:
        RuntimeError: the backend does not exist.
    """
    return _core.process_count() if backend is None else 1 + max(d.process_index for d in _core.devices(backend))


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes.

    Args:
        backend: platform ("cpu" or "gpu"); None: the default one.

    Returns:
        List of ints.
    """
    return list(range(process_count(backend)))


host_id, host_count, host_ids = process_index, process_count, process_indices


def live_arrays(platform: str | None = None) -> list[Array]:
    """The live arrays that Python objects refer to, found by a search of all containers and running
    frames.

    The whole heap is searched, so that nothing has to be recorded when an array is made. Arrays
    that only programs refer to are not found.

    Args:
        platform: "cpu" or "gpu"; None: all.

    Returns:
        List of arrays.

    Raises:
        RuntimeError: the platform does not exist.
    """
    devices = None if platform is None else set(_core.devices(platform))
    gc.collect()  # objects that only reference cycles hold are not alive
    frames = []
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code is not live_arrays.__code__:
                variables = frame.f_locals
                frames.append(dict(variables))
                if frame.f_code.co_flags & inspect.CO_OPTIMIZED and type(variables) is dict:
                    variables.clear()  # up to Python 3.12 a copy that the frame keeps: it must not keep the arrays alive
            frame = frame.f_back
    seen, found = set(), []
    level = [*gc.get_objects(), *frames]
    tracked = {id(x) for x in level}
    while level:
        following = []
        for x in gc.get_referents(*level):
            if id(x) in seen:
                continue
            seen.add(id(x))
            if isinstance(x, _core.Array):
                found.append(x)
            elif type(x) in (tuple, dict) and id(x) not in tracked:
                following.append(x)  # not tracked by the collector: a tuple or dict of plain values
        level = following
    return [
        x
        for x in found
        if not isinstance(x, _core.Tracer) and not is_key(x.dtype) and not x.is_deleted() and (devices is None or not devices.isdisjoint(x.devices()))
    ]


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints, or returns, the facts that a bug report needs: versions, platform, devices.

    Args:
        return_string: bool; True: return the text instead of printing it.

    Returns:
        str or None.
    """
    lines = [
        f"ferrax:  {__version__}",
        f"numpy:   {np.__version__}",
        f"python:  {sys.version}",
        f"device info: {', '.join(map(str, devices()))}",
        f"process_count: {process_count()}",
        f"platform: {platform.uname()}",
    ]
    text = "\n".join(lines)
    return text if return_string else print(text)


def _again(platform, number):
    """The device with this id. Raises RuntimeError if it does not exist."""
    for device in _core.devices(platform):
        if device.id == number:
            return device
    raise RuntimeError(f"a pickled value belongs to the device {platform}:{number}, which does not exist here")


copyreg.pickle(_core.Device, lambda d: (_again, (d.platform, d.id)))
