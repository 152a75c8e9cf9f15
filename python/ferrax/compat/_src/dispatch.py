"""`jax._src.dispatch`: primitives as compiled functions, tokens, names of events.

Invariant: a device's queue keeps the order of effects, so there are no tokens.
"""

import functools

from ... import _core
from ..._tracing.trace import effects_barrier
from ...interpreters.xla import apply_primitive
from .xla_bridge import logger

__all__ = [
    "BACKEND_COMPILE_EVENT",
    "JAXPR_TRACE_EVENT",
    "apply_primitive",
    "logger",
    "prim_requires_devices_during_lowering",
    "primitive_callable",
    "runtime_tokens",
    "wait_for_tokens",
]


wait_for_tokens = effects_barrier
JAXPR_TRACE_EVENT = "/jax/core/compile/jaxpr_trace_duration"
BACKEND_COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"
prim_requires_devices_during_lowering = set()  # lowerings get no devices here, so entries have no effect


class _Tokens:
    """The tokens of ordered effects. Empty, because a device's queue keeps their order."""

    def clear(self):
        """Removes the tokens; there are none."""

    def block_until_ready(self):
        """Waits until effects have happened."""
        effects_barrier()


runtime_tokens = _Tokens()


@functools.lru_cache(maxsize=256)
def primitive_callable(prim, **params):
    """A primitive with parameters as a compiled function of its operands;
    `primitive_callable.cache_clear` forgets all of them.
    """
    return _core.jit(lambda *args: prim.bind(*args, **params))
