"""The interface of the persistent compilation cache: see `compilation_cache`."""

from . import compilation_cache

__all__ = ["compilation_cache"]
