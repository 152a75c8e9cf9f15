"""Where compiled programs are kept between runs: see `compilation_cache`."""

from typing import Any

from ferrax.experimental.compilation_cache import compilation_cache as compilation_cache
