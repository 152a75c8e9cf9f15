"""Random sparse arrays."""

from collections.abc import Callable, Sequence
from ferrax._core import Array
from ferrax.experimental.sparse.bcoo import BCOO
from typing import Any

__all__ = ["random_bcoo"]

def random_bcoo(
    key: Array,
    shape: Sequence[int],
    *,
    dtype: Any = ...,
    indices_dtype: Any = None,
    nse: float | int = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Array] = ...,
    **kwds: Any,
) -> BCOO: ...
