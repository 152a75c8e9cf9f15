"""`jax._src.interpreters.partial_eval`: equations of a trace.

Invariant: a program takes no equations that were written in Python.
"""

from ...._base.refused import refused

__all__ = ["TracingEqn"]


TracingEqn = refused("jax._src.interpreters.partial_eval.TracingEqn", "programs take no equations that were written in Python; bind a primitive")
