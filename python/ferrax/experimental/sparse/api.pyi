"""Sparse arrays of any format: empty ones, identities."""

from collections.abc import Sequence
from ferrax.experimental.sparse import JAXSparse
from ferrax.typing import DTypeLike
from typing import Any

__all__ = ["empty", "eye"]

def empty(shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32", sparse_format: str = "bcoo", **kwds: Any) -> JAXSparse: ...
def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32", sparse_format: str = "bcoo", **kwds: Any
) -> JAXSparse: ...
