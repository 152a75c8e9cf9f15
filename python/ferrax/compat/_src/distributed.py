"""`jax._src.distributed`: the state of a run of several processes.

Invariant: there is no coordinator.
"""

import types

__all__ = ["global_state"]


# A run is one process, without a coordinator.
global_state = types.SimpleNamespace(process_id=0, num_processes=1, client=None)
