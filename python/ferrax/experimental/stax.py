"""An older name of `ferrax.example_libraries.stax`."""

from ..example_libraries.stax import *  # noqa: F403
