"""Kinds of memory. A device has one here, so an array that is put into any of them stays where it is."""

from enum import Enum
from typing import Any

class Space(Enum):
    Device = 1
    Host = 2
    Any = 3
    @property
    def is_memory(self) -> bool: ...
