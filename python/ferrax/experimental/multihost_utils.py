"""What the processes of a run do together, where there is one.

    process_allgather(jnp.arange(3))          # [[0, 1, 2]]: the values of each process

Invariant: the result is that of a run of one process; there is nobody to wait for.
"""

import contextlib

import numpy as np

from .._devices import device_put
from ..sharding import NamedSharding, PartitionSpec as P
from ..tree_util import broadcast_prefix, tree_flatten, tree_map

__all__ = [
    "P",
    "ProcessFailureError",
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "live_devices",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
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
    """Whether the run is about to be stopped, and this is the step at which all processes save: nobody stops it."""
    return step_id < 0


def _placed(arrays, mesh, pspecs):
    leaves, tree = tree_flatten(arrays)
    specs = broadcast_prefix(pspecs, arrays, prefix_is_leaf=lambda s: isinstance(s, P) or s is None)
    return tree.unflatten([device_put(x, NamedSharding(mesh, P() if s is None else s)) for x, s in zip(leaves, specs, strict=True)])


def host_local_array_to_global_array(local_inputs, global_mesh, pspecs):
    """Arrays made of each process's part, laid out by specifications over a mesh: the parts of the one process are the whole."""
    return _placed(local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs, global_mesh, pspecs):
    """Each process's part of arrays that are laid out by specifications over a mesh: the whole."""
    return _placed(global_inputs, global_mesh, pspecs)
