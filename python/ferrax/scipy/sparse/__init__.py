"""`ferrax.scipy.sparse`: `linalg`, the solvers of large linear systems.

Invariant: this file is only the list of public names.

    >>> linalg.cg(jnp.array([[2.0]]), jnp.array([4.0]))[0]
    Array([2.], dtype=float32)
"""

from . import linalg as linalg
