"""Decompositions and structured systems: the primitives of linear algebra, on the matrices that the last two axes are."""

from collections.abc import Callable
from enum import Enum
from ferrax._core import Array
from ferrax.typing import ArrayLike
from typing import Any

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_update",
    "eig",
    "eigh",
    "hessenberg",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qdwh",
    "qr",
    "schur",
    "svd",
    "symmetric_product",
    "triangular_solve",
    "tridiagonal",
    "tridiagonal_solve",
]

class EigImplementation(Enum):
    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"

class EighImplementation(Enum):
    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"

class SvdAlgorithm(Enum):
    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"

def cholesky(x: Array, *, symmetrize_input: bool = True) -> Array: ...
def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array: ...
def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: Any = None,
    use_magma: bool | None = None,
) -> list[Array]: ...
def eigh(
    x: Array,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: Any = None,
) -> tuple[Array, Array]: ...
def hessenberg(a: ArrayLike) -> tuple[Array, Array]: ...
def householder_product(a: ArrayLike, taus: ArrayLike) -> Array: ...
def lu(x: ArrayLike) -> tuple[Array, Array, Array]: ...
def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array: ...
def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array: ...
def qdwh(
    x: Any, *, is_hermitian: bool = False, max_iterations: int | None = None, eps: float | None = None, dynamic_shape: tuple[int, int] | None = None
) -> Any: ...
def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> Any: ...
def schur(
    x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Callable[..., Any] | None = None
) -> tuple[Array, Array]: ...
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True, subset_by_index: tuple[int, int] | None = None, algorithm: Any = None) -> Any: ...
def symmetric_product(a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False) -> Any: ...
def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array: ...
def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]: ...
def tridiagonal_solve(dl: Array, d: Array, du: Array, b: Array, *, perturb_singular: bool = False) -> Array: ...
