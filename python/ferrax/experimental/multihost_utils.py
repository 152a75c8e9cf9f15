"""Operations that all processes of a run perform together.

    process_allgather(jnp.arange(3))          # [[0, 1, 2]] where there is one process: the values of each

Invariant: all processes call the same functions in the same order. A different call raises an error
that names both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .._core import Array
from .._runtime import processes as _processes
from .._runtime.devices import device_put, process_index
from .._sharding.host_local import (
    global_array_to_host_local_array,
    global_array_to_host_local_array_impl,
    host_local_array_to_global_array,
    host_local_array_to_global_array_impl,
)
from ..interpreters._composed import composed
from ..sharding import NamedSharding, PartitionSpec as P
from ..tree_util import tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .._core import Device, Primitive, ShapedArray
    from .._sharding.spec import PartitionSpec
    from ..sharding import Mesh
    from ..typing import ArrayLike

__all__ = [
    "P",
    "ProcessFailureError",
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "global_array_to_host_local_array_impl",
    "global_array_to_host_local_array_p",
    "gtl_abstract_eval",
    "host_local_array_to_global_array",
    "host_local_array_to_global_array_impl",
    "host_local_array_to_global_array_p",
    "live_devices",
    "ltg_abstract_eval",
    "ltg_batcher",
    "process_allgather",
    "reached_preemption_sync_point",
    "safe_zip",
    "sync_global_devices",
    "tree_unflatten",
]


class ProcessFailureError(RuntimeError):
    """Some process has failed; `failed_devices` are its devices."""

    def __init__(self, failed_devices: set[Device]) -> None:
        super().__init__(f"devices have failed: {failed_devices}")
        self.failed_devices = failed_devices


def _of_all(what, in_tree):
    """The leaves of a pytree on all processes, as lists of numpy arrays."""
    leaves, tree = tree_flatten(in_tree)
    engine = _processes.engine()
    if engine is None or engine.size == 1:
        return [[np.asarray(x)] for x in leaves], tree
    found = engine.allgather(f"{what} of {len(leaves)} leaves, {tree}", _packed(leaves))
    return list(map(list, zip(*(_unpacked(message, len(leaves)) for message in found), strict=True))), tree


def _packed(leaves):
    """Arrays as one message."""
    packed = [_processes.pack(x) for x in leaves]
    return b"".join([np.array([len(p) for p in packed], np.int64).tobytes(), *packed])


def _unpacked(message, count):
    """The arrays that `_packed` wrote."""
    ends = 8 * count + np.cumsum(np.frombuffer(message[: 8 * count], np.int64))
    return [_processes.unpack(message[a:b]) for a, b in zip([8 * count, *ends], ends, strict=False)]


@overload
def process_allgather(in_tree: ArrayLike, tiled: bool = False) -> np.ndarray: ...


@overload
def process_allgather(in_tree: Any, tiled: bool = False) -> Any: ...


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of a pytree on all processes. An array over several processes is given whole.

    Args:
        in_tree: pytree of arrays, of one structure on all processes.
        tiled: bool; whether the arrays are concatenated along their first axis instead of stacked
          along a new one.

    Returns:
        Pytree of numpy arrays, of shape (processes, ...), or (processes * n, ...) if `tiled`.

    Raises:
        ValueError: shapes differ between processes.
    """
    leaves, tree = tree_flatten(in_tree)
    whole = [isinstance(x, Array) and not x.is_fully_addressable for x in leaves]
    if any(whole):
        leaves = [_replicated(x) if w else x for x, w in zip(leaves, whole, strict=True)]
    found, _ = _of_all("process_allgather", [x for x, w in zip(leaves, whole, strict=True) if not w])
    found = iter(found)
    join = lambda parts: np.concatenate([np.atleast_1d(p) for p in parts]) if tiled else np.stack(parts)
    return tree.unflatten([x if w else join(next(found)) for x, w in zip(leaves, whole, strict=True)])


def _replicated(x):
    """The whole of an array in parts, as a numpy array."""
    return np.asarray(device_put(x, NamedSharding(x.sharding.mesh, P())).addressable_data(0))


@overload
def broadcast_one_to_all(in_tree: ArrayLike, is_source: bool | None = None) -> np.ndarray: ...


@overload
def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any: ...


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The values of a pytree on one process, on all processes.

    Args:
        in_tree: pytree of arrays, of one structure on all processes.
        is_source: bool, whether this process is the source; None: the first process is.

    Returns:
        Pytree of numpy arrays.

    Raises:
        ValueError: no process is the source, or several are.
    """
    if is_source is None:
        is_source = process_index() == 0
    sources, _ = _of_all("broadcast_one_to_all: who is the source", [np.array(bool(is_source))])
    if sum(map(bool, sources[0])) != 1:
        raise ValueError(f"broadcast_one_to_all: exactly one process must be the source, but these are: {[i for i, s in enumerate(sources[0]) if s]}")
    leaves, tree = tree_flatten(in_tree)
    engine = _processes.engine()
    if engine is None or engine.size == 1:
        return tree.unflatten(map(np.asarray, leaves))
    message = engine.broadcast(f"broadcast_one_to_all of {len(leaves)} leaves, {tree}", int(np.argmax(sources[0])), _packed(leaves) if is_source else b"")
    return tree.unflatten(_unpacked(message, len(leaves)))


def sync_global_devices(name: str) -> None:
    """Waits until all processes have called this.

    Args:
        name: str, the name of this place, the same on all processes.

    Returns:
        None.

    Raises:
        TypeError: the name is not a string.
        AssertionError: another process waits at another name.
    """
    if not isinstance(name, str):
        raise TypeError(f"sync_global_devices: the name must be a string, got {name!r}")
    engine = _processes.engine()
    if engine is not None and engine.size > 1:
        names = [m.decode() for m in engine.allgather("sync_global_devices", name.encode())]
        assert len(set(names)) == 1, f"sync_global_devices name mismatch ({names})"


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Checks that a pytree has the same values on all processes.

    An array that is cut over several of them is one array, and its own.

    Args:
        in_tree: pytree of arrays, of one structure on all processes.
        fail_message: str, the message of the error.

    Returns:
        None.

    Raises:
        AssertionError: shapes or values differ.
    """
    leaves = [x for x in tree_flatten(in_tree)[0] if not (isinstance(x, Array) and not x.is_fully_addressable and not x.is_fully_replicated)]
    found, _ = _of_all("assert_equal", leaves)
    same = all(x.shape == xs[0].shape and np.array_equal(x, xs[0], equal_nan=x.dtype.kind in "fc") for xs in found for x in xs)
    assert same, fail_message


@contextlib.contextmanager
def live_devices(devices: Iterable[Device]) -> Iterator[list[Device]]:
    """Context manager that gives the devices whose processes are alive, which are all of them.

    Args:
        devices: sequence of devices.

    Yields:
        List of the devices.
    """
    yield list(devices)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the run will soon be stopped and all processes should save at this step, which is
    never announced here.

    Args:
        step_id: int, the step.

    Returns:
        bool: False for steps from 0 on.
    """
    return step_id < 0


def ltg_abstract_eval(arr: ShapedArray, *, global_mesh: Mesh, pspec: PartitionSpec | None) -> ShapedArray:
    """The type of the whole array, from the type of this process's part.

    Args:
        arr: ShapedArray, the type of the part.
        global_mesh: Mesh.
        pspec: PartitionSpec; None: replicated.

    Returns:
        ShapedArray; it is `arr`.

    Raises:
        ValueError: the specification does not fit the shape.
    """
    NamedSharding(global_mesh, P() if pspec is None else pspec).check_compatible_aval(arr.shape)
    return arr


def gtl_abstract_eval(arr: ShapedArray, *, global_mesh: Mesh, pspec: PartitionSpec | None) -> ShapedArray:
    """The type of this process's part of an array.

    Args:
        arr: ShapedArray, the type of the whole.
        global_mesh: Mesh.
        pspec: PartitionSpec; None: replicated.

    Returns:
        ShapedArray; it is `arr`.

    Raises:
        ValueError: the specification does not fit the shape.
    """
    return ltg_abstract_eval(arr, global_mesh=global_mesh, pspec=pspec)


host_local_array_to_global_array_p: Primitive = composed("host_local_array_to_global_array", host_local_array_to_global_array_impl)
global_array_to_host_local_array_p: Primitive = composed("global_array_to_host_local_array", global_array_to_host_local_array_impl)


def ltg_batcher(
    insert_axis: bool, axis_data: Any, vals_in: Sequence[Any], dims_in: Sequence[int], global_mesh: Mesh, pspec: PartitionSpec | None
) -> tuple[Array, int]:
    """The batching rule of `host_local_array_to_global_array_p`.

    Args:
        insert_axis: bool; whether the batch axis is divided along the mesh axis of the mapping.
        axis_data: the mapping, with its attribute `spmd_name`.
        vals_in: tuple of one array.
        dims_in: tuple of its batch axis.
        global_mesh: Mesh.
        pspec: PartitionSpec; None: replicated.

    Returns:
        Pair: the array, and its batch axis.
    """
    (x,), (d,) = vals_in, dims_in
    parts = [*(() if pspec is None else pspec)]
    parts += [None] * (d - len(parts))
    parts.insert(d, axis_data.spmd_name if insert_axis else None)
    return host_local_array_to_global_array_p.bind(x, global_mesh=global_mesh, pspec=P(*parts)), d


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The elements of sequences of equal length, side by side.

    Args:
        *args: sequences.

    Returns:
        List of tuples.

    Raises:
        ValueError: the lengths differ.
    """
    return list(zip(*map(list, args), strict=True))
