"""`jax._src.compiler`: the function that libraries replace in order to observe compilations, or to
refuse them.

    compiler.backend_compile_and_load = wrapper        # chex.restrict_backends: its wrapper(client) raises for some platforms

Invariant: before a program is compiled, the current value of this name is called with the client of
the device's platform.
"""

import sys

from ... import _core
from ..._runtime.devices import client_of

__all__ = ["backend_compile_and_load"]


def backend_compile_and_load(backend, *args, **kwargs):
    """Runs the compilation.

    The compiler calls the current value of this name, and continues when it returns.

    Args:
        backend: the client of the platform.
        *args, **kwargs: anything.
    """


def _before_compiling(device):
    there = sys.modules.get("jax._src.compiler")
    if there is not None:
        there.backend_compile_and_load(client_of(device.platform))


_core.before_compiling(_before_compiling)
