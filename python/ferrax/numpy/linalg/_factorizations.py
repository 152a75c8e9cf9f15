"""Factorizations: cholesky, qr, singular values, eigenvalues.

Invariant: each is one primitive of `lax.linalg` on operands promoted to floating point.

    >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], dtype=float32)
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Literal, overload

from ... import _core
from ...lax import linalg as _lax, sort
from .._indexing.taking import take_along_axis
from .._manipulation.shaping import swapaxes
from .._math.complex import conj
from .._support.arguments import Array, check_arraylike, jitted

if TYPE_CHECKING:
    from ...typing import ArrayLike


class QRResult(typing.NamedTuple):
    """The factors of `qr`."""

    Q: Array
    R: Array


class SVDResult(typing.NamedTuple):
    """Both sets of vectors, and the values, of `svd`."""

    U: Array
    S: Array
    Vh: Array


class EigResult(typing.NamedTuple):
    """The result of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(typing.NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


def floating(name, *xs):
    """The operands as arrays of one float or complex dtype."""
    check_arraylike(f"jnp.linalg.{name}", *xs)
    return _core.promote_dtypes_inexact(*xs)


@jitted("cholesky", static=("upper", "symmetrize_input"))
def _cholesky(a, upper, symmetrize_input):
    if upper and not symmetrize_input:
        a = conj(swapaxes(a, -1, -2))
    low = _lax.cholesky(a, symmetrize_input=symmetrize_input)
    return conj(swapaxes(low, -1, -2)) if upper else low


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The triangular factor l with a positive diagonal and ``l @ l.T.conj() == a``.

    Args:
        a: Hermitian positive definite matrices, shape (..., n, n).
        upper: the adjoint of l instead.
        symmetrize_input: use the mean of a and its adjoint; else only one triangle is read, the
          upper one if `upper`.

    Returns:
        an array of shape (..., n, n); nan where a is not positive definite.

    Raises:
        ValueError: the matrices are not square.

    Golub and Van Loan, Matrix Computations, 4.2.

    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    (a,) = floating("cholesky", a)
    return _cholesky(a, upper=bool(upper), symmetrize_input=bool(symmetrize_input))


@jitted("qr", static=("mode",))
def _qr(a, mode):
    q, r = _lax.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@jitted("qr")
def _packed_qr(a):
    h, taus = _core.bind("geqrf", a)
    return QRResult(swapaxes(h, -1, -2), taus)


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "full", "raw"] = "reduced") -> QRResult: ...


@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...


@overload
def qr(a: ArrayLike, mode: str) -> Array | QRResult: ...


def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """``a == Q @ R``, Q with orthonormal columns and R upper triangular.

    Args:
        a: shape (..., m, n).
        mode: "reduced" (Q of min(m, n) columns), "complete" (of m columns), "r" (R alone), or "raw"
          (the reflections whose product Q is).

    Returns:
        (Q, R), or R. If raw, (h, taus): R in the upper triangle of h's transpose and, below it, the
        vectors v of the reflections ``1 - taus[k] v v'``,
        whose first element, a 1, is omitted: the format of `lax.linalg.ormqr`.

    Raises:
        ValueError: the mode is not known.

    Golub and Van Loan, Matrix Computations, 5.2.

    >>> qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]), mode="r").shape
    (2, 2)
    """
    (a,) = floating("qr", a)
    if mode == "raw":
        return _packed_qr(a)
    if mode not in ("reduced", "full", "complete", "r"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    return _qr(a, mode=mode)


@jitted("svd", static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def _svd(a, full_matrices, compute_uv, hermitian, subset_by_index):
    if not hermitian:
        out = _lax.svd(a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index)
        return SVDResult(*out) if compute_uv else out
    v, w = _lax.eigh(a)
    s = abs(w)
    if compute_uv:
        order = (-s).argsort(axis=-1)
        signs = take_along_axis(abs(w) / (abs(w) + (w == 0)) * ((w >= 0) * 2 - 1) + (w == 0), order, -1)
        s = take_along_axis(s, order, -1)
        u = take_along_axis(v, order[..., None, :], -1)
        vh = conj(swapaxes(u * signs[..., None, :].astype(u.dtype), -1, -2))
    else:
        s = sort(s, dimension=-1)[..., ::-1]
    if subset_by_index is not None:
        first, end = subset_by_index
        s = s[..., first:end]
        if compute_uv:
            u, vh = u[..., first:end], vh[..., first:end, :]
    return SVDResult(u, s, vh) if compute_uv else s


@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True, hermitian: bool = False, subset_by_index: tuple[int, int] | None = None
) -> SVDResult: ...


@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False], hermitian: bool = False, subset_by_index: tuple[int, int] | None = None
) -> Array: ...


@overload
def svd(a: ArrayLike, full_matrices: bool, compute_uv: bool, hermitian: bool = False, subset_by_index: tuple[int, int] | None = None) -> Array | SVDResult: ...


def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False, subset_by_index: tuple[int, int] | None = None
) -> Array | SVDResult:
    """``a == U * S[..., None, :] @ Vh``, with orthonormal columns of U and rows of Vh, S
    descending.

    Args:
        a: shape (..., m, n).
        full_matrices: U of m columns and Vh of n rows; else of min(m, n).
        compute_uv: whether to compute vectors.
        hermitian: a is Hermitian, and its eigenvectors serve.
        subset_by_index: (first, end): only these, by descending value; full_matrices must be False.

    Returns:
        (U, S, Vh), or S.

    Raises:
        ValueError: a subset of full matrices, or one that is not a range of the values.

    Golub and Van Loan, Matrix Computations, 8.6.

    >>> svd(jnp.array([[3.0, 0.0], [0.0, 4.0]])).S
    Array([4., 3.], dtype=float32)
    """
    (a,) = floating("svd", a)
    subset = None if subset_by_index is None else tuple(int(k) for k in subset_by_index)
    return _svd(a, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv), hermitian=bool(hermitian), subset_by_index=subset)


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of x, shape (..., m, n), in descending order.

    Args:
        x: array of shape (..., m, n).

    Returns:
        Real array of shape (..., min(m, n)).

    >>> svdvals(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
    Array([2., 1.], dtype=float32)
    """
    return svd(x, full_matrices=False, compute_uv=False)


@jitted("eig")
def _eig(a):
    w, v = _lax.eig(a, compute_left_eigenvectors=False)
    return EigResult(w, v)


def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and right eigenvectors of square matrices: ``a @ v == v * w[..., None, :]``,
    complex.

    Args:
        a: shape (..., n, n).

    Returns:
        (eigenvalues, eigenvectors): shapes (..., n), (..., n, n); eigenvectors are columns of
        length 1.

    Raises:
        ValueError: the matrices are not square.

    >>> eig(jnp.array([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    (a,) = floating("eig", a)
    return _eig(a)


@jitted("eigvals")
def _eigvals(a):
    return _lax.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices (..., n, n), complex, in no order.

    Args:
        a: array of shape (..., n, n).

    Returns:
        Complex array of shape (..., n).

    Raises:
        ValueError: unless they are square.

    >>> eigvals(jnp.array([[0.0, -1.0], [1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    (a,) = floating("eigvals", a)
    return _eigvals(a)


def _lower(UPLO):
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    return UPLO != "U"


@jitted("eigh", static=("lower", "symmetrize_input"))
def _eigh(a, lower, symmetrize_input):
    v, w = _lax.eigh(a, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues, ascending, and orthonormal eigenvectors of Hermitian matrices.

    Args:
        a: shape (..., n, n).
        UPLO: "L" or "U": the triangle that is read where the input is not symmetrized.
        symmetrize_input: use the mean of a and its adjoint.

    Returns:
        (eigenvalues, eigenvectors): ``a @ v == v * w[..., None, :]``.

    Raises:
        ValueError: the matrices are not square, or UPLO is another letter.

    Golub and Van Loan, Matrix Computations, 8.3.

    >>> eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.], dtype=float32)
    """
    (a,) = floating("eigh", a)
    return _eigh(a, lower=_lower(UPLO), symmetrize_input=bool(symmetrize_input))


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices (..., n, n), ascending; options as `eigh` has them.

    Args:
        a: array of shape (..., n, n).
        UPLO: "L" or "U": the triangle that is read where the input is not symmetrized.
        symmetrize_input: use the mean of a and its adjoint.

    Returns:
        Real array of shape (..., n).

    Raises:
        ValueError: the matrices are not square, or UPLO is another word.

    >>> eigvalsh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input=symmetrize_input)[0]
