"""The order of elements in memory, which is always row-major. Public as `experimental.layout`.

    x.format                        # Format(Layout((0, 1)), x.sharding)

Invariant: any other order is refused.
"""

import dataclasses
from typing import Any, ClassVar

__all__ = ["Format", "Layout", "check_layout", "row_major", "sharding_of", "without_layout"]


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
            raise ValueError(f"arrays are stored in row-major order; the layout {self.major_to_minor} with tiling {self.tiling} is not supported")


@dataclasses.dataclass(frozen=True)
class Format:
    """A layout and a sharding, either of which may be None.

    Raises:
        TypeError: one of them is something else.
        ValueError: there is a layout without a sharding.
    """

    layout: Any = None
    sharding: Any = None

    def __post_init__(self):
        if not (self.layout is None or self.layout is Layout.AUTO or isinstance(self.layout, Layout)):
            raise TypeError(
                "Invalid value received for the layout argument. Expected values are `None`, `Layout.AUTO` or an instance of `Layout`."
                f" Got {self.layout} of type {type(self.layout)}"
            )
        if not (self.sharding is None or hasattr(type(self.sharding), "shard_shape")):
            raise TypeError(
                "Invalid value received for the sharding argument. Expected values are `None` or an instance of `jax.Sharding`."
                f" Got {self.sharding} of type {type(self.sharding)}"
            )
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(
                f"Sharding has to be concrete when layout is of type {Layout}. Please pass a `jax.sharding.NamedSharding` or"
                " `jax.sharding.SingleDeviceSharding` to the sharding argument. Got sharding None"
            )


class _Auto:
    """The layout that the compiler chooses: the one there is."""

    def __repr__(self):
        return "AUTO"

    def __reduce__(self):
        return "AUTO"


Layout.AUTO = AUTO = _Auto()
Layout.__module__ = Format.__module__ = "ferrax.experimental.layout"


def row_major(ndim, sharding):
    """The format of an array of this rank and sharding."""
    return Format(Layout(tuple(range(ndim)), ()), sharding)


def check_layout(layout, shape, what):
    """Raises ValueError, with JAX's message, if arrays of the shape cannot have this layout; `what`
    describes them in the error.
    """
    if isinstance(layout, Layout) and len(layout.major_to_minor) != len(shape):
        raise ValueError(
            f"One of {what} is incompatible with its layout annotation {layout}: Length of major_to_minor and the rank of the value should match."
            f" Got major_to_minor={layout.major_to_minor} and shape={tuple(shape)}"
        )


def sharding_of(place):
    """The sharding of a `Format`; anything else is returned as it is."""
    return place.sharding if isinstance(place, Format) else place


def without_layout(place, shape, what):
    """As `sharding_of`, of a `Format` whose layout arrays of the shape can have."""
    if isinstance(place, Format):
        check_layout(place.layout, shape, what)
    return sharding_of(place)
