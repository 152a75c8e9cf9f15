"""Conversions of another compiler's sharding messages, which do not exist in Ferrax.

Invariant: each name can be imported; its use raises NotImplementedError.
"""

from .._base.refused import refused

_WHY = "shardings have no form in another compiler's language here: jax.sharding.NamedSharding says how an array is cut"
_NAMES = ("GSPMDSharding", "get_hlo_sharding_from_serialized_proto", "get_op_sharding_from_serialized_proto", "get_serialized_proto_from_hlo_sharding")
GSPMDSharding, get_hlo_sharding_from_serialized_proto, get_op_sharding_from_serialized_proto, get_serialized_proto_from_hlo_sharding = (
    refused(f"jax.extend.sharding.{name}", _WHY) for name in _NAMES
)

__all__ = list(_NAMES)
