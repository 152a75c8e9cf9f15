"""`ferrax.numpy.linalg`: linear algebra.

Invariant: this file is only the list of public names; a name's module is imported when it is first
used.

    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
"""

import importlib as _importlib
import typing as _typing

from ..._base.late import late as _late

if _typing.TYPE_CHECKING:
    from ._factorizations import (
        cholesky as cholesky, eig as eig, eigh as eigh, eigvals as eigvals, eigvalsh as eigvalsh, qr as qr, svd as svd, svdvals as svdvals,
    )
    from ._least_squares import lstsq as lstsq
    from ._norms import matrix_norm as matrix_norm, norm as norm, vector_norm as vector_norm
    from ._products import (
        cross as cross, diagonal as diagonal, matmul as matmul, matrix_power as matrix_power, matrix_transpose as matrix_transpose,
        multi_dot as multi_dot, outer as outer, tensordot as tensordot, trace as trace, vecdot as vecdot,
    )
    from ._solving import (
        cond as cond, det as det, inv as inv, matrix_rank as matrix_rank, pinv as pinv, slogdet as slogdet, solve as solve,
        tensorinv as tensorinv, tensorsolve as tensorsolve,
    )

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]

_NAMES = {
    "_factorizations": ("cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"),
    "_norms": ("matrix_norm", "norm", "vector_norm"),
    "_products": (
        "cross",
        "diagonal",
        "matmul",
        "matrix_power",
        "matrix_transpose",
        "multi_dot",
        "outer",
        "tensordot",
        "trace",
        "vecdot",
    ),
    "_least_squares": ("lstsq",),
    "_solving": ("cond", "det", "inv", "matrix_rank", "pinv", "slogdet", "solve", "tensorinv", "tensorsolve"),
}
_MODULE = {name: module for module, names in _NAMES.items() for name in names}


if not _typing.TYPE_CHECKING:  # a checker would take every name for one of the module's

    def __getattr__(name):
        if name not in _MODULE:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        value = getattr(_importlib.import_module(f"{__name__}.{_MODULE[name]}"), name)
        globals()[name] = value
        return value


def __dir__():
    return list(__all__)


_late(__name__)
