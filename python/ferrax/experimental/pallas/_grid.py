"""Where in the grid a call of a kernel is.

    row = pl.program_id(0)

Invariant: only a kernel, or an index map, that runs now is somewhere.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..._core import Array

__all__ = ["at", "num_programs", "program_id"]


class _Places(threading.local):
    def __init__(self):
        self.stack = []


_places = _Places()


@contextlib.contextmanager
def at(ids, grid):
    """Sets the position in a grid for the code inside."""
    _places.stack.append((tuple(ids), tuple(grid)))
    try:
        yield
    finally:
        _places.stack.pop()


def _here(what, axis):
    if not _places.stack:
        raise ValueError(f"{what}: no kernel runs here; call it inside of a function passed to `pallas_call`")
    ids, grid = _places.stack[-1]
    if not 0 <= axis < len(grid):
        raise ValueError(f"Axis {axis} is out of bounds for grid {grid}")
    return ids[axis], grid[axis]


def program_id(axis: int) -> Array:
    """The index of this call of the kernel along an axis of the grid.

    Args:
        axis: int, the axis of the grid.

    Returns:
        int32 scalar array.

    Raises:
        ValueError: no kernel is being traced, or the grid has no such axis.
    """
    return _here("program_id", axis)[0]


def num_programs(axis: int) -> int | Array:
    """The size of the grid along an axis, in a kernel.

    Args:
        axis: int, the axis of the grid.

    Returns:
        int or int32 scalar array.

    Raises:
        ValueError: no kernel is being traced, or the grid has no such axis.
    """
    return _here("num_programs", axis)[1]
