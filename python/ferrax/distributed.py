"""Runs of several processes: there is one.

Invariant: a program written for several processes runs as the only one of its run; asking for more is refused.
"""

__all__ = ["initialize", "is_initialized", "shutdown"]

_state = {"initialized": False}


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
    """Begins a run of one process.

    Args:
      num_processes, process_id: 1 and 0, or None.
      coordinator_address, coordinator_bind_address, cluster_detection_method, local_device_ids, slice_index, partition_index, initialization_timeout,
        heartbeat_timeout_seconds, shutdown_timeout_seconds: how processes find each other and wait; a single process has none to find.

    Raises:
      RuntimeError: it was called before.
      NotImplementedError: there are to be several processes.
    """
    if num_processes not in (None, 1) or process_id not in (None, 0):
        raise NotImplementedError(f"distributed.initialize: num_processes={num_processes}, process_id={process_id}: a run has one process")
    if _state["initialized"]:
        raise RuntimeError("distributed.initialize should only be called once.")
    _state["initialized"] = True


def is_initialized():
    """Whether `initialize` was called."""
    return _state["initialized"]


def shutdown():
    """Ends the run."""
    _state["initialized"] = False
