"""`jax._src.distributed`: the state of a run of several processes.

Invariant: `client` is None where the run is one process; MPI connects the others, so that there is no service to start.
"""

from ..._runtime import devices

__all__ = ["global_state"]


class State:
    """The state of this process's run."""

    coordinator_address = service = preemption_sync_manager = None

    @property
    def process_id(self):
        """The number of this process."""
        return devices.process_index()

    @property
    def num_processes(self):
        """The number of processes."""
        return devices.process_count()

    @property
    def client(self):
        """Keys and barriers that the processes share."""
        from ..._runtime import coordination

        return coordination.client()


global_state = State()
