"""The older spelling of `ferrax.jit` with shardings."""

from ferrax.lax import with_sharding_constraint as with_sharding_constraint
from ferrax import jit as pjit

__all__ = ["pjit", "with_sharding_constraint"]
