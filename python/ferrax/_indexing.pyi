"""Indexing in general: `x[idx]` and `x.at[idx]`."""

from collections.abc import Callable
from typing import Any

from ._core import Array
from .lax import GatherScatterMode
from .sharding import NamedSharding, PartitionSpec
from .typing import ArrayLike

class IndexUpdateHelper:
    """`x.at`: takes an index, `x.at[index]`."""

    array: Array
    def __init__(self, array: Array) -> None: ...
    def __getitem__(self, index: Any) -> IndexUpdateRef: ...

class IndexUpdateRef:
    """`x.at[index]`: its methods give a new array with the elements at the index changed."""

    array: Array
    index: Any
    def __init__(self, array: Array, index: Any) -> None: ...
    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        fill_value: ArrayLike | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The elements at the index, `x[index]`, with a say about those out of bounds."""

    def set(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x with `values` at the index."""

    def add(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x with `values` added at the index."""

    def subtract(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x with `values` subtracted at the index."""

    def multiply(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x with its elements at the index multiplied by `values`."""

    def divide(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x with its elements at the index divided by `values`."""

    def power(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x with its elements at the index raised to `values`."""

    def min(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x with the smaller of its elements at the index and `values`."""

    def max(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x with the larger of its elements at the index and `values`."""

    mul = multiply
    def apply(
        self,
        func: Callable[[Array], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x with `func` applied to its elements at the index."""
