"""Vector quantization."""

from ferrax._core import Array
from ferrax.typing import ArrayLike

__all__ = ["vq"]

def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]: ...
