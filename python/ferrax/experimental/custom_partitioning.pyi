"""Functions with a rule of their own for being cut over devices. A program runs on one device here, so the function is called as it is, and the rule is kept."""

from typing import Any

class ArrayMapping: ...

BATCHING: Any

class CompoundFactor: ...

class SdyShardingRule:
    def __init__(
        self,
        operand_mappings: Any,
        result_mappings: Any,
        reduction_factors: Any = ...,
        need_replication_factors: Any = ...,
        permutation_factors: Any = ...,
        **factor_sizes: Any,
    ) -> None: ...

class custom_partitioning:
    def __init__(self, fun: Any, static_argnums: Any = ...) -> None: ...
    def def_partition(
        self,
        partition: Any,
        infer_sharding_from_operands: Any = None,
        propagate_user_sharding: Any = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: Any = None,
        need_replication_factors: Any = None,
        permutation_factors: Any = None,
        **factor_sizes: Any,
    ) -> Any: ...

custom_partitioning_p: Any
