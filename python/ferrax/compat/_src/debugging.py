"""`jax._src.debugging`: callbacks for debugging.

Invariant: they run as often as the program says.
"""

from ..._runtime.callback import debug_callback
from .xla_bridge import logger

__all__ = ["debug_callback", "logger"]
