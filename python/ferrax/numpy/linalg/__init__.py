"""`ferrax.numpy.linalg`: linear algebra.

Invariant: this file is only the list of public names.

    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
"""

from ._norms import matrix_norm as matrix_norm
from ._norms import norm as norm
from ._norms import vector_norm as vector_norm
from ._products import (
    cross as cross,
)
from ._products import (
    diagonal as diagonal,
)
from ._products import (
    matmul as matmul,
)
from ._products import (
    matrix_power as matrix_power,
)
from ._products import (
    matrix_transpose as matrix_transpose,
)
from ._products import (
    multi_dot as multi_dot,
)
from ._products import (
    outer as outer,
)
from ._products import (
    tensordot as tensordot,
)
from ._products import (
    trace as trace,
)
from ._products import (
    vecdot as vecdot,
)
