"""`ferrax.numpy.linalg`: linear algebra.

Invariant: this file is only the list of public names.

    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
"""

from ._norms import matrix_norm as matrix_norm, norm as norm, vector_norm as vector_norm
from ._products import (
    cross as cross,
    diagonal as diagonal,
    matmul as matmul,
    matrix_power as matrix_power,
    matrix_transpose as matrix_transpose,
    multi_dot as multi_dot,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
    vecdot as vecdot,
)
