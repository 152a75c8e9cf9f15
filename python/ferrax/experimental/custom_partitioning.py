"""Functions with custom partitioning rules.

A program runs on one device, so the function is called unchanged, and the rule is only stored.

    f = custom_partitioning(f, static_argnums=(1,))
    f.def_partition(partition=..., sharding_rule="i j, j k -> i k")

Invariant: values are those of the function.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from .._core import Primitive

_T = TypeVar("_T")

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning", "custom_partitioning_p"]

BATCHING: Any = "…"
custom_partitioning_p: Any = Primitive("custom_partitioning")


class CompoundFactor(tuple):
    """Factors of one dimension in a rule."""

    __slots__ = ()

    def __new__(cls, *factors):
        """Of two factors at least."""
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        return super().__new__(cls, factors)


class ArrayMapping(tuple):
    """Factors of the dimensions of an array in a rule."""

    __slots__ = ()

    def __new__(cls, *dim_mappings):
        """A factor, or several, for each dimension."""
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """A rule that says which factors the dimensions of operands and results have.

    Args:
        operand_mappings, result_mappings: an `ArrayMapping` for each.
        reduction_factors, need_replication_factors, permutation_factors: names of factors.
        **factor_sizes: their sizes.
    """

    def __init__(
        self,
        operand_mappings: Any,
        result_mappings: Any,
        reduction_factors: Any = (),
        need_replication_factors: Any = (),
        permutation_factors: Any = (),
        **factor_sizes: Any,
    ) -> None:
        self.operand_mappings, self.result_mappings, self.factor_sizes = operand_mappings, result_mappings, factor_sizes
        self.reduction_factors, self.need_replication_factors = reduction_factors, need_replication_factors
        self.permutation_factors = permutation_factors


class custom_partitioning:
    """A function with a rule for being cut.

    Args:
        fun: the function.
        static_argnums: which arguments are not arrays.
    """

    def __init__(self, fun: Any, static_argnums: Any = ()) -> None:
        functools.update_wrapper(self, fun)
        self.fun, self.static_argnums = fun, static_argnums
        self.partition = self.infer_sharding_from_operands = self.propagate_user_sharding = self.sharding_rule = None

    def def_partition(
        self,
        partition: _T,
        infer_sharding_from_operands: Any = None,
        propagate_user_sharding: Any = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: Any = None,
        need_replication_factors: Any = None,
        permutation_factors: Any = None,
        **factor_sizes: Any,
    ) -> _T:
        """Stores the rule. It is not used, because an array is on one device.

        Args:
            partition, infer_sharding_from_operands, propagate_user_sharding: functions of
              shardings.
            decode_shardings, sharding_rule: how shardings are described.
            reduction_factors, need_replication_factors, permutation_factors, **factor_sizes: the
              same.
        """
        self.partition, self.infer_sharding_from_operands = partition, infer_sharding_from_operands
        self.propagate_user_sharding, self.sharding_rule = propagate_user_sharding, sharding_rule
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        return self.fun(*args, **kwargs)
