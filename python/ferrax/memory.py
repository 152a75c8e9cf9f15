"""Kinds of memory.

A device has one here, so an array that is put into any of them stays where it is.

jax.device_put(x, memory.Space.Device)
"""

from __future__ import annotations

import enum

__all__ = ["Space"]


class Space(enum.Enum):
    """The memory of an array: of the device, of the host, any."""

    Device = 1
    Host = 2
    Any = 3

    @property
    def is_memory(self) -> bool:
        """Whether it is a kind of memory: always."""
        return True

    def __repr__(self):
        return f"MemorySpace.{self.name}"
