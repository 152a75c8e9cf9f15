"""Experimental modules, and old names of modules that have moved: `stax` and `optimizers` are now
in `example_libraries`.
"""

from .._runtime.callback import io_callback

__all__ = ["io_callback"]
