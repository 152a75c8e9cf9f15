"""Runs of several processes, which an MPI launcher or Slurm starts: `mpirun -n 4 python train.py`.

    jax.distributed.initialize()
    print(jax.process_index(), jax.process_count(), len(jax.devices()), len(jax.local_devices()))

Invariant: a program that does not call `initialize` is the only process of its run, however it was
started.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import time
from collections.abc import Sequence

from . import _core
from ._runtime import processes as _processes, watch as _watch
from ._runtime.processes import environment

__all__ = ["initialize", "is_initialized", "shutdown"]

_state: dict = {"initialized": False, "shutdown_timeout": None}
_HOW = "mpirun -n 2 python program.py"


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 10,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Joins the run that this process was started for: its devices are then those of all processes.

    The launcher (`mpirun`, `mpiexec`, `srun`) gives the number of processes and the number of this
    one, and MPI finds the others, so that no argument is needed. Where arguments are given, they
    are checked. Several processes need `mpi4py` (the extra `ferrax[mpi]`).

    Args:
        coordinator_address: accepted without effect: MPI connects the processes.
        num_processes: int, the number of processes; checked against the launcher's.
        process_id: int, the number of this process; checked against the launcher's.
        local_device_ids: int or sequence of ints: this process has as many CPU devices as there are
          numbers.
        cluster_detection_method: "mpi4py" uses MPI even if no launcher's variables are set; other
          methods read the variables.
        initialization_timeout: seconds after which it is an error that other processes have not
            appeared: the process ends with a message, as MPI cannot be interrupted.
        heartbeat_timeout_seconds: seconds. If an awaited process does not answer for this long,
            because its host is lost or it is stopped, an error is raised, and also if processes
            wait for each other for ten times as long. A process that computes or sleeps answers, by
            a thread that needs no interpreter. 0: never.
        shutdown_timeout_seconds: seconds. A process that has come to its end waits for the others
          to end; if this takes longer, it ends all of them. 0: never.
        coordinator_bind_address: accepted without effect.
        slice_index: accepted without effect.
        partition_index: accepted without effect.

    Returns:
        None.

    Raises:
        RuntimeError: it was called before, devices were already used, several processes are
            requested and no launcher started them, mpi4py is missing, or its MPI has another number
            of processes than the launcher has started.
        ValueError: an argument contradicts the launcher.
    """
    if _state["initialized"]:
        raise RuntimeError("distributed.initialize should only be called once.")
    launched = environment()
    if cluster_detection_method == "mpi4py" or (launched is not None and launched[1] > 1):
        if _core.has_cpus():
            raise RuntimeError(
                "distributed.initialize() must be called before the first computation, and before devices are listed (jax.devices, jax.device_put and others)"
            )
        _join(launched, num_processes, process_id, local_device_ids, (initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds))
    elif num_processes not in (None, 1) or process_id not in (None, 0):
        raise RuntimeError(
            f"distributed.initialize: num_processes={num_processes}, process_id={process_id}, but no launcher started this process: processes find each other by MPI."
            f" Start them with one, as in: {_HOW}"
        )
    _state["initialized"] = True


def _join(launched, num_processes, process_id, local_device_ids, timeouts):
    limit, heartbeat, ending = (t or None for t in timeouts)
    ends = math.inf if limit is None else time.monotonic() + limit
    engine = _processes.start(heartbeat, limit)
    if launched is not None and launched[1] != engine.size and num_processes != engine.size:
        raise RuntimeError(
            f"distributed.initialize: the launcher says that this is process {launched[0]} of {launched[1]}, and MPI has {engine.size}: each would be a run of its own."
            f" mpi4py uses {engine.name_of_mpi()}, which this launcher does not connect. Use the mpirun of that MPI (mpirun -n {launched[1]} python program.py); under"
            " Slurm, `srun --mpi=pmix` (or pmi2) with an MPI that was built for it. Where runs of one process are meant:"
            " jax.distributed.initialize(num_processes=1)"
        )
    for name, given, found in (("num_processes", num_processes, engine.size), ("process_id", process_id, engine.rank)):
        if given not in (None, found):
            raise ValueError(f"distributed.initialize: {name}={given}, but MPI has {found}")
    if local_device_ids is not None:
        ids = [local_device_ids] if isinstance(local_device_ids, int) else list(local_device_ids)
        _core.config_set("jax_num_cpu_devices", len(ids))
    mine = {"cpus": _core.wanted_cpus(), **_watch.here()}
    begun = engine.begin(0, 0, engine.others(), [json.dumps(mine).encode()] * (engine.size - 1))
    found = [json.loads(n) for n in _processes.wait(begun, None if limit is None else max(ends - time.monotonic(), 1))]
    people = [*found[: engine.rank], mine, *found[engine.rank :]]
    engine.watched(people)
    _core.set_processes(engine.rank, [p["cpus"] for p in people], engine, engine.transport, engine.watch.core)
    _processes.use(engine)
    if engine.size > 1:
        _state["shutdown_timeout"] = ending
        _processes.abort_on_uncaught()
        atexit.register(_farewell, engine, ending, heartbeat)
        from ._runtime import coordination

        coordination.join(engine, people)


def _farewell(engine, timeout, heartbeat):
    """Ends this process's part in the run: completes its communication and notifies the others."""
    with contextlib.suppress(Exception):  # those that read results have seen their errors
        _core.effects_barrier()
    engine.watch.farewell(timeout, heartbeat)
    if not engine.is_of_parent():
        engine.transport.close()


def is_initialized() -> bool:
    """Whether `initialize` was called.

    Returns:
        bool.
    """
    return _state["initialized"]


def shutdown() -> None:
    """Leaves the run, once all its processes have called this.

    Returns:
        None.

    Raises:
        TimeoutError: not all have called it within `shutdown_timeout_seconds`.
    """
    engine = _processes.engine()
    if engine is not None and engine.size > 1:
        engine.allgather("distributed.shutdown", b"", _state["shutdown_timeout"])
    _state["initialized"] = False
