"""An older name of `ferrax.example_libraries.optimizers`."""

from ..example_libraries.optimizers import *  # noqa: F403
