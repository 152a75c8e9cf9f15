"""`jax._src.clusters`: how the processes of a run find each other.

Invariant: a run is started by MPI; other environments are never present.
"""

from .xla_bridge import logger

__all__ = ["ClusterEnv", "SlurmCluster", "logger"]


class ClusterEnv:
    """How the processes of a run find each other; a run has one."""

    _cluster_types = ()

    @classmethod
    def is_env_present(cls):
        """Whether this process was started so."""
        return False


class SlurmCluster(ClusterEnv):
    """A run that Slurm started."""
