"""Sparse arrays: BCOO and BCSR with batch and dense dimensions, COO, CSR and CSC, and `sparsify`,
which lets functions of arrays take them.

    M = BCOO.fromdense(dense)
    M @ v                                                # gathers, multiplies, adds up: never dense
    sparsify(lambda M, v: 2 * jnp.dot(jnp.log1p(M.T), v))(M, v)
    grad(lambda M: (M @ v).sum())(M)                     # by the elements of M, at its indices

Sparse arrays are pytrees: they pass through `jit`, `vmap` (over batch dimensions), `scan` and
derivatives. Invariant: this file is only the list of public names.
"""

import importlib as _importlib

from ..._base.late import late as _late
from . import bcoo as _bcoo, bcsr as _bcsr, coo as _coo, csr as _csr, linalg as linalg
from ._base import (
    CuSparseEfficiencyWarning as CuSparseEfficiencyWarning,
    JAXSparse as JAXSparse,
    SparseEfficiencyError as SparseEfficiencyError,
    SparseEfficiencyWarning as SparseEfficiencyWarning,
)
from ._construction import bcoo_extract as bcoo_extract, bcoo_fromdense as bcoo_fromdense, bcoo_todense as bcoo_todense
from ._convolution import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from ._duplicates import bcoo_sort_indices as bcoo_sort_indices, bcoo_sum_duplicates as bcoo_sum_duplicates
from ._methods import *
from ._products import (
    bcoo_dot_general as bcoo_dot_general,
    bcoo_dot_general_sampled as bcoo_dot_general_sampled,
    bcoo_multiply_dense as bcoo_multiply_dense,
    bcoo_multiply_sparse as bcoo_multiply_sparse,
)
from ._rules import todense as todense
from ._shaping import (
    bcoo_broadcast_in_dim as bcoo_broadcast_in_dim,
    bcoo_concatenate as bcoo_concatenate,
    bcoo_reduce_sum as bcoo_reduce_sum,
    bcoo_reshape as bcoo_reshape,
    bcoo_rev as bcoo_rev,
    bcoo_squeeze as bcoo_squeeze,
    bcoo_transpose as bcoo_transpose,
)
from ._slicing import (
    bcoo_dynamic_slice as bcoo_dynamic_slice,
    bcoo_gather as bcoo_gather,
    bcoo_slice as bcoo_slice,
    bcoo_update_layout as bcoo_update_layout,
)
from .ad import grad as grad, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev, value_and_grad as value_and_grad
from .api import empty as empty, eye as eye
from .bcoo import BCOO as BCOO
from .bcsr import (
    BCSR as BCSR,
    bcsr_broadcast_in_dim as bcsr_broadcast_in_dim,
    bcsr_concatenate as bcsr_concatenate,
    bcsr_dot_general as bcsr_dot_general,
    bcsr_extract as bcsr_extract,
    bcsr_fromdense as bcsr_fromdense,
    bcsr_sum_duplicates as bcsr_sum_duplicates,
    bcsr_todense as bcsr_todense,
)
from .coo import COO as COO, coo_fromdense as coo_fromdense, coo_matmat as coo_matmat, coo_matvec as coo_matvec, coo_todense as coo_todense
from .csr import (
    CSC as CSC,
    CSR as CSR,
    csr_fromdense as csr_fromdense,
    csr_matmat as csr_matmat,
    csr_matvec as csr_matvec,
    csr_todense as csr_todense,
)
from .random import random_bcoo as random_bcoo
from .transform import sparsify as sparsify


def __getattr__(name):
    if name.endswith("_p"):
        return getattr(_importlib.import_module(f"{__name__}._primitives"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _offer(module, prefix):
    """Puts a format's functions and primitives into its module, which defines its class and is
    imported before them.
    """
    names = {n: v for n, v in globals().items() if n.startswith(prefix)}
    for name, function in names.items():
        vars(module).setdefault(name, function)

    def late(name):
        if name.startswith(prefix) and name.endswith("_p"):
            return __getattr__(name)
        raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")

    module.__getattr__ = late


for _module, _prefix in ((_bcoo, "bcoo_"), (_bcsr, "bcsr_"), (_coo, "coo_"), (_csr, "csr_")):
    _offer(_module, _prefix)


def __dir__():
    rules = _importlib.import_module(f"{__name__}._primitives")
    return sorted({*[n for n in globals() if not n.startswith("_")], *(n for n in vars(rules) if n.endswith("_p"))})


_late(__name__)
