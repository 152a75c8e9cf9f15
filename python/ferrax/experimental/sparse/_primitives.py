"""The operations of sparse arrays as primitives on their buffers, for libraries that bind them or
register rules for them.

    bcoo_todense_p.bind(M.data, M.indices, spinfo=types.SimpleNamespace(shape=M.shape))

Invariant: each is the public function of its name, applied to the buffers of a sparse array.
`spinfo` is any object with a `shape` (and `indices_sorted` and `unique_indices`, where they are
promised). The public functions do not bind these primitives; the primitives are implemented by the
public functions.

    >>> import ferrax.experimental.sparse as sparse, types
    >>> M = sparse.eye(2)
    >>> sparse.bcoo_todense_p.bind(M.data, M.indices, spinfo=types.SimpleNamespace(shape=(2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
"""

from ... import numpy as jnp
from ...interpreters._composed import composed
from ...tree_util import tree_unflatten
from ._construction import bcoo_extract, bcoo_fromdense, bcoo_todense
from ._duplicates import bcoo_sort_indices, bcoo_sum_duplicates
from ._products import bcoo_dot_general, bcoo_dot_general_sampled
from ._rules import todense
from ._shaping import bcoo_transpose
from .bcoo import BCOO
from .bcsr import BCSR, bcsr_dot_general, bcsr_extract, bcsr_fromdense, bcsr_todense
from .coo import COO, coo_fromdense, coo_matmat, coo_matvec, coo_todense
from .csr import CSR, csr_fromdense, csr_matmat, csr_matvec, csr_todense

__all__ = [
    "bcoo_dot_general_p", "bcoo_dot_general_sampled_p", "bcoo_extract_p", "bcoo_fromdense_p", "bcoo_sort_indices_p", "bcoo_spdot_general_p",
    "bcoo_sum_duplicates_p", "bcoo_todense_p", "bcoo_transpose_p", "bcsr_dot_general_p", "bcsr_extract_p", "bcsr_fromdense_p", "bcsr_todense_p",
    "coo_fromdense_p", "coo_matmat_p", "coo_matvec_p", "coo_todense_p", "csr_fromdense_p", "csr_matmat_p", "csr_matvec_p", "csr_todense_p", "todense_p",
]  # fmt: skip


def _bcoo(data, indices, info):
    sorted_, unique = getattr(info, "indices_sorted", False), getattr(info, "unique_indices", False)
    return BCOO((data, indices), shape=info.shape, indices_sorted=sorted_, unique_indices=unique)


def _bcsr(data, indices, indptr, info):
    sorted_, unique = getattr(info, "indices_sorted", False), getattr(info, "unique_indices", False)
    return BCSR((data, indices, indptr), shape=info.shape, indices_sorted=sorted_, unique_indices=unique)


def _coo(data, row, col, info):
    return COO((data, row, col), shape=info.shape)


def _csr(data, indices, indptr, shape):
    return CSR((data, indices, indptr), shape=shape)


def _of_bcoo(mat):
    return mat.data, mat.indices


def _of_rows(mat):
    return mat.data, mat.indices, mat.indptr


def _of_coo(mat):
    return mat.data, mat.row, mat.col


bcoo_fromdense_p = composed(
    "bcoo_fromdense",
    lambda mat, *, nse, n_batch, n_dense, index_dtype: _of_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)),
    multiple_results=True,
)
bcoo_todense_p = composed("bcoo_todense", lambda data, indices, *, spinfo: bcoo_todense(_bcoo(data, indices, spinfo)))


def _extract(indices, mat, *, assume_unique):
    # the pattern's own data are not read
    lead = indices.ndim - 1
    dense = mat.shape[lead - 1 + indices.shape[-1] :]
    pattern = BCOO((jnp.zeros((*indices.shape[:lead], *dense), mat.dtype), indices), shape=mat.shape)
    return bcoo_extract(pattern, mat, assume_unique=assume_unique).data


bcoo_extract_p = composed("bcoo_extract", _extract)
bcoo_transpose_p = composed(
    "bcoo_transpose",
    lambda data, indices, *, permutation, spinfo: _of_bcoo(bcoo_transpose(_bcoo(data, indices, spinfo), permutation=permutation)),
    multiple_results=True,
)
bcoo_sort_indices_p = composed(
    "bcoo_sort_indices", lambda data, indices, *, spinfo: _of_bcoo(bcoo_sort_indices(_bcoo(data, indices, spinfo))), multiple_results=True
)
bcoo_sum_duplicates_p = composed(
    "bcoo_sum_duplicates",
    lambda data, indices, *, spinfo, nse: _of_bcoo(bcoo_sum_duplicates(_bcoo(data, indices, spinfo), nse=nse)),
    multiple_results=True,
)
bcoo_dot_general_p = composed(
    "bcoo_dot_general",
    lambda data, indices, rhs, *, dimension_numbers, preferred_element_type, lhs_spinfo: bcoo_dot_general(
        _bcoo(data, indices, lhs_spinfo), rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    ),
)
bcoo_dot_general_sampled_p = composed(
    "bcoo_dot_general_sampled",
    lambda a, b, indices, *, dimension_numbers: bcoo_dot_general_sampled(a, b, indices, dimension_numbers=dimension_numbers),
)


def _spdot(lhs_data, lhs_indices, rhs_data, rhs_indices, *, lhs_spinfo, rhs_spinfo, dimension_numbers, preferred_element_type):
    lhs, rhs = _bcoo(lhs_data, lhs_indices, lhs_spinfo), _bcoo(rhs_data, rhs_indices, rhs_spinfo)
    return _of_bcoo(bcoo_dot_general(lhs, rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type))


bcoo_spdot_general_p = composed("bcoo_spdot_general", _spdot, multiple_results=True)

bcsr_fromdense_p = composed(
    "bcsr_fromdense",
    lambda mat, *, nse, n_batch, n_dense, index_dtype: _of_rows(bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)),
    multiple_results=True,
)
bcsr_todense_p = composed("bcsr_todense", lambda data, indices, indptr, *, spinfo: bcsr_todense(_bcsr(data, indices, indptr, spinfo)))
bcsr_extract_p = composed("bcsr_extract", lambda indices, indptr, mat: bcsr_extract(indices, indptr, mat))
bcsr_dot_general_p = composed(
    "bcsr_dot_general",
    lambda data, indices, indptr, rhs, *, dimension_numbers, preferred_element_type, lhs_spinfo: bcsr_dot_general(
        _bcsr(data, indices, indptr, lhs_spinfo), rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    ),
)

coo_fromdense_p = composed(
    "coo_fromdense", lambda mat, *, nse, index_dtype: _of_coo(coo_fromdense(mat, nse=nse, index_dtype=index_dtype)), multiple_results=True
)
coo_todense_p = composed("coo_todense", lambda data, row, col, *, spinfo: coo_todense(_coo(data, row, col, spinfo)))
coo_matvec_p = composed("coo_matvec", lambda data, row, col, v, *, spinfo, transpose: coo_matvec(_coo(data, row, col, spinfo), v, transpose=transpose))
coo_matmat_p = composed("coo_matmat", lambda data, row, col, B, *, spinfo, transpose: coo_matmat(_coo(data, row, col, spinfo), B, transpose=transpose))

csr_fromdense_p = composed(
    "csr_fromdense", lambda mat, *, nse, index_dtype: _of_rows(csr_fromdense(mat, nse=nse, index_dtype=index_dtype)), multiple_results=True
)
csr_todense_p = composed("csr_todense", lambda data, indices, indptr, *, shape: csr_todense(_csr(data, indices, indptr, shape)))
csr_matvec_p = composed(
    "csr_matvec", lambda data, indices, indptr, v, *, shape, transpose: csr_matvec(_csr(data, indices, indptr, shape), v, transpose=transpose)
)
csr_matmat_p = composed(
    "csr_matmat", lambda data, indices, indptr, B, *, shape, transpose: csr_matmat(_csr(data, indices, indptr, shape), B, transpose=transpose)
)

todense_p = composed("todense", lambda *buffers, tree: todense(tree_unflatten(tree, buffers)))
