"""`jax._src.compiler`: the function that libraries replace to hear of each compilation, or to refuse it.

    compiler.backend_compile_and_load = wrapper        # chex.restrict_backends: its wrapper(client) raises for some platforms

Invariant: what stands there when a program is about to be compiled is called with the client of the device's platform.
"""

import sys

from .. import _core
from .._devices import client_of

__all__ = ["backend_compile_and_load"]


def backend_compile_and_load(backend, *args, **kwargs):
    """Lets the compilation begin. The compiler calls what stands under this name, and goes on when it returns.

    Args:
      backend: the client of the platform.
      *args, **kwargs: anything.
    """


def _before_compiling(device):
    there = sys.modules.get("jax._src.compiler")
    if there is not None:
        there.backend_compile_and_load(client_of(device.platform))


_core.before_compiling(_before_compiling)
