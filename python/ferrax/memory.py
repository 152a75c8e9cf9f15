"""Kinds of memory. A device has one here, so an array that is put into any of them stays where it is.

jax.device_put(x, memory.Space.Device)
"""

import enum

__all__ = ["Space"]


class Space(enum.Enum):
    """The memory of an array: of the device, of the host, any."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    is_memory = property(lambda self: True)

    def __repr__(self):
        return f"MemorySpace.{self.name}"
