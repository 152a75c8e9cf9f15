"""What stands between a function and its run: `jit(f).trace(x)`, `.lower(x)`, `.compile()`.

    lowered = jit(f).lower(x); print(lowered.as_text()); lowered.compile()(x)

Invariant: each stage holds the one before it and can be printed.
"""

from ._core import Compiled, JitFunction as Wrapped, Lowered, Traced

__all__ = ["Compiled", "Lowered", "Traced", "Wrapped"]
