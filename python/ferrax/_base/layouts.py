"""The order of elements in memory, which is always row-major. Public as `experimental.layout`.

    x.format                        # Format(Layout((0, 1)), x.sharding)

Invariant: any other order is refused.
"""

import dataclasses
from typing import Any, ClassVar

__all__ = ["Format", "Layout", "format_of"]


@dataclasses.dataclass(frozen=True)
class Layout:
    """An order of axes in memory, the one that varies slowest first.

    Raises:
      ValueError: it is not row-major, or tiled.
    """

    AUTO: ClassVar[Any]  # for a `Format`: the layout that the compiler chooses
    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    def __post_init__(self):
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))
        if self.major_to_minor != tuple(range(len(self.major_to_minor))) or self.tiling:
            raise ValueError(f"arrays lie in row-major order here; the layout {self.major_to_minor} with tiling {self.tiling} cannot be had")


@dataclasses.dataclass(frozen=True)
class Format:
    """A layout and a sharding, either of which may be None."""

    layout: Layout | None = None
    sharding: Any = None


class _Auto:
    """The layout that the compiler chooses: the one there is."""

    def __repr__(self):
        return "AUTO"

    def __reduce__(self):
        return "AUTO"


Layout.AUTO = AUTO = _Auto()
Layout.__module__ = Format.__module__ = "ferrax.experimental.layout"


def format_of(x):
    """The order of an array's axes in memory, and its sharding."""
    return Format(Layout(tuple(range(x.ndim)), ()), x.sharding)
