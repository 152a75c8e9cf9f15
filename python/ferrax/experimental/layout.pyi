"""Where elements lie in memory: in row-major order, always."""

from typing import Any

__all__ = ["Format", "Layout", "with_layout_constraint"]

class Format:
    layout: Any
    sharding: Any
    def __init__(self, layout: Any = None, sharding: Any = None) -> None: ...

class Layout:
    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None
    sub_byte_element_size_in_bits: int
    def __init__(self, major_to_minor: tuple[int, ...], tiling: tuple[tuple[int, ...], ...] | None = None, sub_byte_element_size_in_bits: int = 0) -> None: ...

def with_layout_constraint(x: Any, layouts: Any) -> Any: ...
