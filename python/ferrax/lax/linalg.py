"""Decompositions and structured systems: the primitives of linear algebra, on the matrices that the
last two axes are.

Invariant: each function binds one primitive; leading axes are a batch. Operands are float32,
float64, complex64 or complex128: narrower floats raise NotImplementedError, other dtypes TypeError.

    >>> lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .. import _core
from .._base.dtypes import is_complex, is_inexact
from .._base.flags import inert
from .._base.late import late as _late
from .._core import bind, primitive as _primitive
from ._arithmetic import real
from ._comparisons import select
from ._creation import convert_element_type
from ._reductions import reduce_max

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike

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


class SvdAlgorithm(enum.Enum):
    """How singular values are found elsewhere; here one algorithm serves."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


class EigImplementation(enum.Enum):
    """How eigenvalues are found elsewhere; here one algorithm serves."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """How eigenvalues of Hermitian matrices are found elsewhere; here one algorithm serves."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


def _transposed(x):
    axes = tuple(range(x.ndim))
    return bind("transpose", x, permutation=(*axes[:-2], axes[-1], axes[-2]))


def _adjoint(x):
    x = _transposed(x)
    return bind("conj", x, input_dtype=x.dtype) if is_complex(x.dtype) else x


def _symmetrized(x):
    return (x + _adjoint(x)) / 2


def _checked(name, x):
    """`x` as an array.

    Raises ValueError for less than two axes and for matrices that are not square.
    """
    x = _core.asarray(x)
    if x.ndim < 2:
        raise TypeError(f"Input 0 to {name} must have rank at least 2, but got shape={tuple(x.shape)}")
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got shape {tuple(x.shape)}.")
    return x


def warn_inert(name: str, **options: Any) -> None:
    """Warns, once each, of options that choose how and not what."""
    for option, value in options.items():
        if value is not None:
            inert(name, option, "one algorithm serves all")


def cholesky(x: Array, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular l with a positive diagonal and ``l @ l.T.conj() == x``.

    Args:
        x: Hermitian positive definite matrices, shape (..., n, n).
        symmetrize_input: use the mean of x and its adjoint; else only the lower triangle is read.

    Returns:
        an array of shape (..., n, n); nan where x is not positive definite.

    Raises:
        ValueError: the matrices are not square.

    Golub and Van Loan, Matrix Computations, 4.2.

    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = _checked("cholesky", x)
    if symmetrize_input:
        x = _symmetrized(x)
    return bind("cholesky", x)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper factor of ``r.T @ r + outer(w, w)``, given the upper factor r (n, n) and w (n,), in
    O(n^2).

    Golub and Van Loan, Matrix Computations, 6.5.4.

    Args:
        r_matrix: upper triangular matrix (n, n).
        w_vector: vector (n,).

    Returns:
        Upper triangular matrix (n, n).

    Raises:
        ValueError: shapes do not fit.

    >>> cholesky_update(jnp.array([[3.0]]), jnp.array([4.0]))
    Array([[5.]], dtype=float32)
    """
    return bind("cholesky_update", _core.asarray(r_matrix), _core.asarray(w_vector))


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: Any = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Eigenvalues and eigenvectors of any square matrices.

    Golub and Van Loan, Matrix Computations, 7.5 and 7.6.

    Args:
        x: shape (..., n, n).
        compute_left_eigenvectors: whether to compute vl: ``vl.T.conj() @ x == diag(w) @
          vl.T.conj()``.
        compute_right_eigenvectors: whether to compute vr: ``x @ vr == vr @ diag(w)``.
        enable_eigvec_derivs: without effect: eigenvectors of distinct eigenvalues have derivatives,
          each orthogonal to its vector.
        implementation, use_magma: without effect: one algorithm serves.

    Returns:
        [w, vl, vr], complex, without those that were not requested; columns have length 1.

    Raises:
        ValueError: the matrices are not square.

    >>> eig(jnp.array([[0.0, -1.0], [1.0, 0.0]]))[0]
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    warn_inert("eig", implementation=implementation, use_magma=use_magma)
    return list(
        bind(
            "eig",
            _core.asarray(x),
            compute_left_eigenvectors=bool(compute_left_eigenvectors),
            compute_right_eigenvectors=bool(compute_right_eigenvectors),
            enable_eigvec_derivs=bool(enable_eigvec_derivs),
        )
    )


def eigh(
    x: Array,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: Any = None,
) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of Hermitian matrices: ``x @ v == v * w[..., None, :]``.

    Golub and Van Loan, Matrix Computations, 8.3.

    Args:
        x: shape (..., n, n).
        lower: which triangle is read, where the input is not symmetrized.
        symmetrize_input: use the mean of x and its adjoint.
        sort_eigenvalues: without effect: they ascend.
        subset_by_index: (first, end): only these, in ascending order.
        implementation: without effect: one algorithm serves.

    Returns:
        (v, w): v with orthonormal columns, w real.

    Raises:
        ValueError: the matrices are not square, or the subset is not a range of the eigenvalues.

    >>> eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))[1]
    Array([1., 2.], dtype=float32)
    """
    warn_inert("eigh", implementation=implementation)
    x = _checked("eigh", x)
    if symmetrize_input:
        x = _symmetrized(x)
    subset = None if subset_by_index is None else tuple(int(k) for k in subset_by_index)
    v, w = bind("eigh", x, lower=bool(lower), sort_eigenvalues=bool(sort_eigenvalues), subset_by_index=subset)
    return v, w


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """The reduction ``a == q @ h @ q.T.conj()``, h zero below its first subdiagonal.

    Args:
        a: shape (..., n, n).

    Returns:
        [packed, taus]: h in the upper triangle and first subdiagonal of `packed`, the reflections
        that make q below it.

    Raises:
        ValueError: the matrices are not square.

    Golub and Van Loan, Matrix Computations, 7.4.

    >>> [x.shape for x in hessenberg(jnp.ones((3, 3)))]
    [(3, 3), (2,)]
    """
    return list(bind("hessenberg", _core.asarray(a)))


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first n columns of the product of the reflections ``1 - taus[k] v v'``, whose v are
    stored below the diagonal of a, with 1 on the diagonal.

    Args:
        a: shape (..., m, n), m >= n.
        taus: shape (..., k), k <= n.

    Returns:
        an array like a, with orthonormal columns.

    Raises:
        ValueError: shapes do not fit.

    Golub and Van Loan, Matrix Computations, 5.1.6.

    >>> householder_product(jnp.zeros((2, 1)), jnp.array([2.0]))
    Array([[-1.],
           [ 0.]], dtype=float32)
    """
    return bind("householder_product", _core.asarray(a), _core.asarray(taus))


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """Triangular factors with exchanges of rows: ``x[permutation] == l @ u``.

    Args:
        x: shape (..., m, n).

    Returns:
        [lu, pivots, permutation]: u in the upper triangle of `lu` and l, whose diagonal is 1,
        below; row k was exchanged with row pivots[k].

    Golub and Van Loan, Matrix Computations, 3.4.

    >>> lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))[0]
    Array([[2. , 2. ],
           [0.5, 1. ]], dtype=float32)
    """
    return list(bind("lu", _core.asarray(x)))


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The origin of each row after row k was exchanged with row ``pivots[k]`` for each k in turn;
    int32.

    Args:
        pivots: integers, shape (..., k).
        permutation_size: int, the number of rows, at least k.

    Returns:
        int32, shape (..., permutation_size).

    Raises:
        ValueError: there are more pivots than rows.

    >>> lu_pivots_to_permutation(jnp.array([1, 1]), 3)
    Array([1, 0, 2], dtype=int32)
    """
    return bind("lu_pivots_to_permutation", _core.asarray(pivots), permutation_size=int(permutation_size))


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """``q @ c``, or ``c @ q``, for the product q of the reflections in a and taus, which is not
    formed.

    Args:
        a: shape (..., m, k), as `householder_product` takes it.
        taus: shape (..., k).
        c: shape (..., m, n), or (..., n, m) from the right.
        left: whether q is the left factor.
        transpose: the adjoint of q instead.

    Returns:
        Array like c.

    Raises:
        ValueError: shapes do not fit.

    >>> ormqr(jnp.zeros((2, 1)), jnp.array([2.0]), jnp.ones((2, 1)))
    Array([[-1.],
           [ 1.]], dtype=float32)
    """
    return bind("ormqr", _core.asarray(a), _core.asarray(taus), _core.asarray(c), left=bool(left), transpose=bool(transpose))


@overload
def qr(x: ArrayLike, *, pivoting: Literal[False] = False, full_matrices: bool = True, use_magma: bool | None = None) -> tuple[Array, Array]: ...


@overload
def qr(x: ArrayLike, *, pivoting: Literal[True], full_matrices: bool = True, use_magma: bool | None = None) -> tuple[Array, Array, Array]: ...


@overload
def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, Array] | tuple[Array, Array, Array]: ...


def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """``x == q @ r`` with orthonormal columns of q and upper triangular r; with pivoting ``x[:,
    order] == q @ r``.

    Golub and Van Loan, Matrix Computations, 5.2 and 5.4.

    Args:
        x: shape (..., m, n).
        pivoting: choose the longest remaining column first.
        full_matrices: q of shape (..., m, m); else of min(m, n) columns.
        use_magma: without effect: one algorithm serves.

    Returns:
        (q, r), or (q, r, order) with pivoting.

    >>> qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))[1].shape
    (2, 2)
    """
    warn_inert("qr", use_magma=use_magma)
    return tuple(bind("qr", _core.asarray(x), pivoting=bool(pivoting), full_matrices=bool(full_matrices)))


def schur(
    x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Callable[..., Any] | None = None
) -> tuple[Array, Array]:
    """``x == z @ t @ z.T.conj()`` with unitary z; t is triangular, of a real x except for blocks of
    two rows with conjugate eigenvalues.

    Golub and Van Loan, Matrix Computations, 7.5.

    Args:
        x: shape (..., n, n).
        compute_schur_vectors: whether to compute z.
        sort_eig_vals: must be False.
        select_callable: without effect.

    Returns:
        [t, z], or [t].

    Raises:
        ValueError: the matrices are not square.
        NotImplementedError: sorting of eigenvalues is requested.

    >>> schur(jnp.array([[1.0, 5.0], [0.0, 2.0]]))[0]
    Array([[1., 5.],
           [0., 2.]], dtype=float32)
    """
    warn_inert("schur", select_callable=select_callable)
    return list(bind("schur", _core.asarray(x), compute_schur_vectors=bool(compute_schur_vectors), sort_eig_vals=bool(sort_eig_vals)))


@overload
def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: Literal[True] = True, subset_by_index: tuple[int, int] | None = None, algorithm: Any = None
) -> tuple[Array, Array, Array]: ...


@overload
def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: Literal[False], subset_by_index: tuple[int, int] | None = None, algorithm: Any = None
) -> Array: ...


@overload
def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True, subset_by_index: tuple[int, int] | None = None, algorithm: Any = None
) -> Array | tuple[Array, Array, Array]: ...


def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True, subset_by_index: tuple[int, int] | None = None, algorithm: Any = None
) -> Array | tuple[Array, Array, Array]:
    """``x == u * s[..., None, :] @ vt`` with orthonormal columns of u and rows of vt; s descends.

    Golub and Van Loan, Matrix Computations, 8.6.

    Args:
        x: shape (..., m, n).
        full_matrices: u of shape (..., m, m) and vt of (..., n, n); else of min(m, n) columns and
          rows.
        compute_uv: whether to compute vectors.
        subset_by_index: (first, end): only these, by descending value.
        algorithm: without effect: one algorithm serves.

    Returns:
        (u, s, vt), or s.

    Raises:
        ValueError: a subset of full matrices, or one that is not a range of the values.

    >>> svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    warn_inert("svd", algorithm=None if algorithm is SvdAlgorithm.DEFAULT else algorithm)
    subset = None if subset_by_index is None else tuple(int(k) for k in subset_by_index)
    out = bind("svd", _core.asarray(x), full_matrices=bool(full_matrices), compute_uv=bool(compute_uv), subset_by_index=subset)
    if not compute_uv:
        return out[0]
    s, u, vt = out
    return u, s, vt


def symmetric_product(a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False) -> Array:
    """``alpha * a @ a.T + beta * c``.

    Args:
        a_matrix: array of shape (n, k).
        c_matrix: symmetric array of shape (n, n).
        alpha, beta: scalars.
        symmetrize_output: without effect, since the result is symmetric where c is.

    Returns:
        Array of shape (n, n).

    Raises:
        ValueError: shapes do not fit.

    >>> symmetric_product(jnp.array([[1.0], [2.0]]), jnp.zeros((2, 2)))
    Array([[1., 2.],
           [2., 4.]], dtype=float32)
    """
    warn_inert("symmetric_product", symmetrize_output=symmetrize_output or None)
    a, c, back = _no_narrower(_core.asarray(a_matrix), _core.asarray(c_matrix))
    return back(bind("symmetric_product", a, c, alpha=float(alpha), beta=float(beta)))


def _no_narrower(a, b):
    """Two operands, and a function that converts a result back: floats narrower than single
    precision are computed in single precision and rounded once.
    """
    if a.dtype != b.dtype or a.dtype.itemsize >= 4 or not is_inexact(a.dtype):
        return a, b, lambda x: x
    dtype = a.dtype
    return a.astype("float32"), b.astype("float32"), lambda x: x.astype(dtype)


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """x of ``op(a) @ x == b`` (left_side) or ``x @ op(a) == b``, for a triangular a.

    Args:
        a: shape (..., n, n); only one triangle is read.
        b: shape (..., n, k) or (..., k, n); a vector (n,) counts as one column, or row.
        left_side: whether a is the left factor of x.
        lower: which triangle.
        transpose_a: op transposes.
        conjugate_a: op conjugates.
        unit_diagonal: the diagonal is 1, and not read.

    Returns:
        an array like b.

    Raises:
        ValueError: shapes do not fit.
        TypeError: dtypes differ.

    >>> triangular_solve(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([2.0, 3.0]), left_side=True, lower=True)
    Array([1., 2.], dtype=float32)
    """
    a, b, back = _no_narrower(_core.asarray(a), _core.asarray(b))
    vector = b.ndim == a.ndim - 1
    if vector:
        axis = b.ndim if left_side else b.ndim - 1
        shape = (*b.shape[:axis], 1, *b.shape[axis:])
        b = bind("reshape", b, new_sizes=shape, dimensions=None)
    out = bind(
        "triangular_solve",
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a),
        unit_diagonal=bool(unit_diagonal),
    )
    return back(bind("squeeze", out, dimensions=(axis,)) if vector else out)


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """The reduction of Hermitian matrices ``a == q @ t @ q.T.conj()`` to a real tridiagonal t.

    Args:
        a: shape (..., n, n); only one triangle is read, and of the diagonal only the real part.
        lower: which triangle.

    Returns:
        [packed, d, e, taus]: the diagonals of t, and the reflections that make q, packed beyond the
        diagonal next to the main one.

    Raises:
        ValueError: the matrices are not square.

    Golub and Van Loan, Matrix Computations, 8.3.1.

    >>> tridiagonal(jnp.array([[1.0, 2.0], [2.0, 3.0]]))[1]
    Array([1., 3.], dtype=float32)
    """
    a = _core.asarray(a)
    if is_complex(a.dtype) and a.ndim > 1:
        # as in LAPACK, imaginary parts that a Hermitian matrix cannot have are ignored
        a = select(np.broadcast_to(np.eye(*a.shape[-2:], dtype=bool), a.shape), convert_element_type(real(a), a.dtype), a)
    return list(bind("tridiagonal", a, lower=bool(lower)))


def tridiagonal_solve(dl: Array, d: Array, du: Array, b: Array, *, perturb_singular: bool = False) -> Array:
    """x of ``t @ x == b`` for tridiagonal t.

    Args:
        dl: below the diagonal, shape (..., n); its first element is not read.
        d: the diagonal.
        du: above it; its last element is not read.
        b: shape (..., n, k).
        perturb_singular: without effect: rows are exchanged, so that a pivot is zero for singular
          matrices alone.

    Returns:
        an array like b.

    Raises:
        TypeError: shapes or dtypes differ.

    Golub and Van Loan, Matrix Computations, 4.3.

    >>> tridiagonal_solve(jnp.array([0.0, 1.0]), jnp.array([2.0, 2.0]), jnp.array([1.0, 0.0]), jnp.array([[3.0], [3.0]]))
    Array([[1.],
           [1.]], dtype=float32)
    """
    return bind("tridiagonal_solve", *[_core.asarray(x) for x in (dl, d, du, b)], perturb_singular=bool(perturb_singular))


def qdwh(
    x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None, eps: float | None = None, dynamic_shape: tuple[int, int] | None = None
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition ``x == u @ h``, u with orthonormal columns and h Hermitian and
    positive semidefinite.

    By singular values: Higham, Functions of Matrices (2008), 8.1; the options of an iteration have
    no effect.

    Args:
        x: a matrix (m, n), m >= n.
        is_hermitian, max_iterations, eps, dynamic_shape: without effect.

    Returns:
        (u, h, iterations, converged).

    Raises:
        ValueError: x is not of two axes, or is wide.

    >>> qdwh(jnp.array([[2.0, 0.0], [0.0, 3.0]]))[1]
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    warn_inert("qdwh", dynamic_shape=dynamic_shape, is_hermitian=is_hermitian or None, max_iterations=max_iterations, eps=eps)
    x = _core.asarray(x)
    if x.ndim != 2 or x.shape[0] < x.shape[1]:
        raise ValueError(f"The input `x` must be a matrix of at least as many rows as columns, got shape {tuple(x.shape)}.")
    u, s, vt = svd(x, full_matrices=False)
    v = _adjoint(vt)
    h = v * s[None, :].astype(x.dtype) @ vt
    iterations, converged = _core.asarray(np.int32(0)), reduce_max(s, (0,)) >= 0 if x.size else _core.asarray(True)
    return u @ vt, _symmetrized(h), iterations, converged


@functools.cache
def _names():
    return frozenset(f"{name}_p" for name in __all__)


if not TYPE_CHECKING:  # a checker would take every name for one of the module's

    def __getattr__(name):
        if name in _names() and (value := _primitive(name.removesuffix("_p"))) is not None:
            return value
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted({*__all__, *(n for n in _names() if _primitive(n.removesuffix("_p")) is not None)})


_late(__name__)
