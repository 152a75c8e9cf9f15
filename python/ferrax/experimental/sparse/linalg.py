"""Linear algebra with sparse matrices: `spsolve` and `lobpcg_standard`.

Invariant: this file is only the list of public names.

    >>> spsolve(jnp.array([2.0, 4.0]), jnp.array([0, 1]), jnp.array([0, 1, 2]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
"""

from ._lobpcg import (
    _lobpcg_standard_callable as _lobpcg_standard_callable,
    _lobpcg_standard_matrix as _lobpcg_standard_matrix,
    lobpcg_standard as lobpcg_standard,
)
from ._spsolve import spsolve as spsolve
