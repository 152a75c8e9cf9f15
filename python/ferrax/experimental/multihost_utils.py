"""What the processes of a run do together, where there is one.

    process_allgather(jnp.arange(3))          # [[0, 1, 2]]: the values of each process

Invariant: the result is that of a run of one process; there is no other process to wait for.
"""

import contextlib

import numpy as np

from .._devices import device_put
from ..interpreters._composed import composed
from ..sharding import NamedSharding, PartitionSpec as P
from ..tree_util import broadcast_prefix, tree_flatten, tree_map, tree_unflatten

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

    def __init__(self, failed_devices):
        super().__init__(f"devices have failed: {failed_devices}")
        self.failed_devices = failed_devices


def process_allgather(in_tree, tiled=False):
    """The values of a pytree on all processes, as numpy arrays: with a first axis for the processes, or joined along the first axis if `tiled`."""
    return tree_map(lambda x: np.asarray(x) if tiled else np.asarray(x)[None], in_tree)


def broadcast_one_to_all(in_tree, is_source=None):
    """The values of a pytree on the first process (or that which `is_source`), as numpy arrays.

    Raises:
      ValueError: this process, the only one, is said not to be the source.
    """
    if is_source is False:
        raise ValueError("broadcast_one_to_all: there is one process, and it is not the source")
    return tree_map(np.asarray, in_tree)


def sync_global_devices(name):
    """Waits for all processes to get here; `name` says where that is."""
    if not isinstance(name, str):
        raise TypeError(f"sync_global_devices: the name must be a string, got {name!r}")


def assert_equal(in_tree, fail_message=""):
    """Raises AssertionError with `fail_message` unless a pytree has the same values on all processes: with one it has."""
    leaves, _ = tree_flatten(process_allgather(in_tree))
    assert all(len(x) == 1 for x in leaves), fail_message


@contextlib.contextmanager
def live_devices(devices):
    """Context manager: those of the devices whose processes are alive, all of them."""
    yield list(devices)


def reached_preemption_sync_point(step_id):
    """Whether the run is about to be stopped, and this is the step at which all processes save: runs here are not stopped."""
    return step_id < 0


def _placed(arrays, mesh, pspecs):
    leaves, tree = tree_flatten(arrays)
    specs = broadcast_prefix(pspecs, arrays, prefix_is_leaf=lambda s: isinstance(s, P) or s is None)
    return tree.unflatten([_placed_one(x, mesh, s) for x, s in zip(leaves, specs, strict=True)])


def _placed_one(x, mesh, pspec):
    return device_put(x, NamedSharding(mesh, P() if pspec is None else pspec))


def host_local_array_to_global_array(local_inputs, global_mesh, pspecs):
    """Arrays made of each process's part, laid out by specifications over a mesh: the parts of the one process are the whole."""
    return _placed(local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs, global_mesh, pspecs):
    """Each process's part of arrays that are laid out by specifications over a mesh: the whole."""
    return _placed(global_inputs, global_mesh, pspecs)


def host_local_array_to_global_array_impl(arr, *, global_mesh, pspec):
    """One array made of each process's part."""
    return _placed_one(arr, global_mesh, pspec)


def global_array_to_host_local_array_impl(arr, *, global_mesh, pspec):
    """Each process's part of one array."""
    return _placed_one(arr, global_mesh, pspec)


def ltg_abstract_eval(arr, *, global_mesh, pspec):
    """The type of the whole, of that of a part: the same. Raises ValueError where the specification does not fit."""
    NamedSharding(global_mesh, P() if pspec is None else pspec).check_compatible_aval(arr.shape)
    return arr


def gtl_abstract_eval(arr, *, global_mesh, pspec):
    """The type of a part, of that of the whole: the same. Raises ValueError where the specification does not fit."""
    return ltg_abstract_eval(arr, global_mesh=global_mesh, pspec=pspec)


host_local_array_to_global_array_p = composed("host_local_array_to_global_array", host_local_array_to_global_array_impl)
global_array_to_host_local_array_p = composed("global_array_to_host_local_array", global_array_to_host_local_array_impl)


def ltg_batcher(insert_axis, axis_data, vals_in, dims_in, global_mesh, pspec):
    """The batching rule of `host_local_array_to_global_array_p`: the axis of lanes, where the operand has it, is not split unless `insert_axis` says so.

    Returns:
      the result, and where its lanes are.
    """
    (x,), (d,) = vals_in, dims_in
    parts = [*(() if pspec is None else pspec)]
    parts += [None] * (d - len(parts))
    parts.insert(d, axis_data.spmd_name if insert_axis else None)
    return host_local_array_to_global_array_p.bind(x, global_mesh=global_mesh, pspec=P(*parts)), d


def safe_zip(*args):
    """Sequences of one length, side by side, as a list. Raises ValueError for other lengths."""
    return list(zip(*map(list, args), strict=True))
