"""`ferrax.numpy.linalg`: linear algebra.

Invariant: this file is only the list of public names; a name's module is imported when it is first used.

    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
"""

import importlib as _importlib

from ..._late import late as _late

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
    "_solving": ("cond", "det", "inv", "lstsq", "matrix_rank", "pinv", "slogdet", "solve", "tensorinv", "tensorsolve"),
}
_MODULE = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name):
    if name not in _MODULE:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(_importlib.import_module(f"{__name__}.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return list(__all__)


_late(__name__)
