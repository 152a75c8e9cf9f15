"""Where compiled programs are kept between runs: see `compilation_cache`."""

from . import compilation_cache

__all__ = ["compilation_cache"]
