"""Images resized, scaled and moved: products with one matrix of weights for each axis."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

class ResizeMethod(Enum):
    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6
    @staticmethod
    def from_string(s: Any) -> Any: ...

def resize(image: Any, shape: Sequence[int], method: str | ResizeMethod, antialias: bool = True, precision: Any = ...) -> Any: ...
def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = ...,
) -> Any: ...
