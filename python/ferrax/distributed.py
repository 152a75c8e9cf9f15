"""Runs of several processes, which an MPI launcher or Slurm starts: `mpirun -n 4 python train.py`.

    jax.distributed.initialize()
    print(jax.process_index(), jax.process_count(), len(jax.devices()), len(jax.local_devices()))

Invariant: a program that does not call `initialize` is the only process of its run, however it was started.
"""

import atexit
import contextlib
import json

from . import _core, _processes, _watch
from ._processes import environment

__all__ = ["initialize", "is_initialized", "shutdown"]

_state = {"initialized": False}
_HOW = "mpirun -n 2 python program.py"


def initialize(
    coordinator_address=None,
    num_processes=None,
    process_id=None,
    local_device_ids=None,
    cluster_detection_method=None,
    initialization_timeout=300,
    heartbeat_timeout_seconds=100,
    shutdown_timeout_seconds=300,
    coordinator_bind_address=None,
    slice_index=None,
    partition_index=None,
):
    """Joins the run that this process was started for: its devices are then those of all processes.

    The launcher (`mpirun`, `mpiexec`, `srun`) says how many processes there are and which this one is, and MPI finds the others, so that no argument is needed. What
    one says about them is checked. Needs `mpi4py` (the extra `ferrax[mpi]`) where there are several processes.

    Args:
      num_processes, process_id: how many processes there are, and this one's number; checked against the launcher's.
      local_device_ids: the CPU devices of this process, of which there are as many as it names.
      cluster_detection_method: "mpi4py" asks MPI even where no launcher's variables are set; others are found by their variables.
      initialization_timeout: seconds after which processes that do not appear are an error.
      heartbeat_timeout_seconds: a process of which nothing was heard for so many seconds while another waits for it is an error there; so is one that has waited so
        long for others that wait too. One that computes or sleeps is heard. 0 for never.
      coordinator_address, coordinator_bind_address, slice_index, partition_index, shutdown_timeout_seconds: MPI has its own; accepted.

    Raises:
      RuntimeError: it was called before, there are devices already, several processes are asked for and no launcher started them, or there is no mpi4py.
      ValueError: the launcher says otherwise.
    """
    if _state["initialized"]:
        raise RuntimeError("distributed.initialize should only be called once.")
    launched = environment()
    if cluster_detection_method == "mpi4py" or (launched is not None and launched[1] > 1):
        if _core.has_cpus():
            raise RuntimeError(
                "distributed.initialize() must be called before the first computation, and before devices are asked for (jax.devices, jax.device_put and others)"
            )
        _join(num_processes, process_id, local_device_ids, initialization_timeout, heartbeat_timeout_seconds)
    elif num_processes not in (None, 1) or process_id not in (None, 0):
        raise RuntimeError(
            f"distributed.initialize: num_processes={num_processes}, process_id={process_id}, but no launcher started this process: processes find each other by MPI."
            f" Start them with one, as in: {_HOW}"
        )
    _state["initialized"] = True


def _join(num_processes, process_id, local_device_ids, timeout, heartbeat):
    engine = _processes.start(heartbeat or None)
    for name, said, found in (("num_processes", num_processes, engine.size), ("process_id", process_id, engine.rank)):
        if said not in (None, found):
            raise ValueError(f"distributed.initialize: {name}={said}, but MPI says {found}")
    if local_device_ids is not None:
        ids = [local_device_ids] if isinstance(local_device_ids, int) else list(local_device_ids)
        _core.config_set("jax_num_cpu_devices", len(ids))
    mine = {"cpus": _core.wanted_cpus(), **_watch.here()}
    begun = engine.begin(0, 0, engine.everybody(), [json.dumps(mine).encode()] * (engine.size - 1))
    found = [json.loads(n) for n in _processes.wait(begun, timeout)]
    people = [*found[: engine.rank], mine, *found[engine.rank :]]
    _core.set_processes(engine.rank, [p["cpus"] for p in people], engine)
    if engine.size > 1:
        engine.watched(people)
        _processes.abort_on_uncaught()
        atexit.register(_farewell)


def _farewell():
    """The end of this process: what it has begun with others is done, and they learn of it."""
    engine = _processes.engine()
    with contextlib.suppress(Exception):  # those that read results have seen their errors
        _core.effects_barrier()
    engine.watch.farewell()


def is_initialized():
    """Whether `initialize` was called."""
    return _state["initialized"]


def shutdown():
    """Ends the run: waits until all processes are here."""
    engine = _processes.engine()
    if engine is not None and engine.size > 1:
        engine.allgather("distributed.shutdown", b"")
    _state["initialized"] = False
