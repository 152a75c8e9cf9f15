"""Initial values of parameters: each initializer is a function `init(key, shape, dtype) -> array`."""

from collections.abc import Sequence
from ferrax._core import Array
from ferrax.sharding import NamedSharding, PartitionSpec
from ferrax.typing import ArrayLike, DTypeLike
from typing import Literal, Protocol

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

class Initializer(Protocol):
    def __call__(
        self, key: Array, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: NamedSharding | PartitionSpec | None = None
    ) -> Array: ...

def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer: ...
def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer: ...
def glorot_normal(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None
) -> Initializer: ...
def glorot_uniform(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None
) -> Initializer: ...
def he_normal(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None
) -> Initializer: ...
def he_uniform(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None
) -> Initializer: ...
def kaiming_normal(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None
) -> Initializer: ...
def kaiming_uniform(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None
) -> Initializer: ...
def lecun_normal(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None
) -> Initializer: ...
def lecun_uniform(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None
) -> Initializer: ...
def normal(stddev: ArrayLike = 0.01, dtype: DTypeLike | None = None) -> Initializer: ...
def ones(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array: ...
def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer: ...
def truncated_normal(stddev: ArrayLike = 0.01, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0) -> Initializer: ...
def uniform(scale: ArrayLike = 0.01, dtype: DTypeLike | None = None) -> Initializer: ...
def variance_scaling(
    scale: ArrayLike,
    mode: Literal["fan_in"] | Literal["fan_out"] | Literal["fan_avg"] | Literal["fan_geo_avg"],
    distribution: Literal["truncated_normal"] | Literal["normal"] | Literal["uniform"],
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> Initializer: ...
def xavier_normal(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None
) -> Initializer: ...
def xavier_uniform(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None
) -> Initializer: ...
def zeros(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array: ...
