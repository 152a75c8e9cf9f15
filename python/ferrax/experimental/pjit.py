"""An older name of `ferrax.jit` with shardings."""

from .._tracing.jit import jit as pjit
from ..lax import with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]
