"""How another compiler writes shardings. There is no such text here, so nothing can be read from it."""

from typing import Any

GSPMDSharding: Any
get_hlo_sharding_from_serialized_proto: Any
get_op_sharding_from_serialized_proto: Any
get_serialized_proto_from_hlo_sharding: Any
