"""Older spellings of modules that have moved: `stax` and `optimizers` now live in `example_libraries`. And what is still on trial."""

from .._callback import io_callback

__all__ = ["io_callback"]
