"""Decompositions under scipy's names.

Invariant: options that save copies or checks (overwrite_a, check_finite, ..) are accepted without
effect.

    >>> cholesky(jnp.array([[4.0]]), lower=True)
    Array([[2.]], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from ... import numpy as jnp
from ..._base.shapes import common_shape
from ...lax import linalg as _lax
from ...numpy._support.arguments import jitted
from ...numpy.linalg._factorizations import floating
from ...numpy.linalg._solving import adjoint

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


def _floating(*xs):
    return floating("scipy", *xs) if len(xs) > 1 else floating("scipy", *xs)[0]


def _as_columns(a, b, name):
    """`b` as matrices, and a function that restores a result's shape; a vector is one column.

    Raises ValueError if rows differ.
    """
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    n = b.shape[-1] if vector else b.shape[-2]
    if n != a.shape[-1]:
        raise ValueError(f"{name}: inconsistent size for core dimension 'n': {n} vs {a.shape[-1]}, in shapes {tuple(a.shape)} and {tuple(b.shape)}")
    columns = b[..., None] if vector else b
    lead = common_shape(a.shape[:-2], columns.shape[:-2])
    columns = jnp.broadcast_to(columns, (*lead, *columns.shape[-2:]))
    return jnp.broadcast_to(a, (*lead, *a.shape[-2:])), columns, (lambda x: x[..., 0]) if vector else (lambda x: x)


def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The triangular factor of Hermitian positive definite matrices (..., n, n): upper u with
    ``u.T.conj() @ u == a``, or lower.

    Of a the triangle is read that the factor has, and differentiated by.

    Args:
        a: Hermitian positive definite matrices, shape (..., n, n).
        lower: the lower factor.
        overwrite_a: without effect: arrays are not written to.
        check_finite: without effect: nothing is checked.

    Returns:
        Array of shape (..., n, n), of a's dtype made float; nan where a is not positive definite.

    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    return jnp.linalg.cholesky(a, upper=not lower, symmetrize_input=False)


def cho_factor(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, bool]:
    """(c, lower): what `cho_solve` takes; c is the factor of `cholesky`.

    Args:
        a: Hermitian positive definite matrices, shape (..., n, n).
        lower: the lower factor.
        overwrite_a: without effect: arrays are not written to.
        check_finite: without effect: nothing is checked.

    Returns:
        (c, lower): an array of shape (..., n, n), and a bool.

    >>> cho_factor(jnp.array([[4.0]]))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower=lower), lower


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> tuple[Array, Array, Array]: ...


@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False], overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd"
) -> Array: ...


@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd"
) -> Array | tuple[Array, Array, Array]: ...


def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd"
) -> Array | tuple[Array, Array, Array]:
    """Singular values and vectors of matrices (..., m, n): (u, s, vh), or s. See numpy.linalg.svd.

    Args:
        a: shape (..., m, n).
        full_matrices: u of m columns and vh of n rows; else of min(m, n).
        compute_uv: whether to compute vectors.
        overwrite_a: without effect: arrays are not written to.
        check_finite: without effect: nothing is checked.
        lapack_driver: without effect: one algorithm serves.

    Returns:
        (u, s, vh), or s: ``a == u * s[..., None, :] @ vh``, s descending.

    >>> svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    out = jnp.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(out) if compute_uv else out


@jitted("eigh", static=("lower", "eigvals_only", "type"))
def _eigh(a, b, lower, eigvals_only, type):
    if b is None:
        w, v = jnp.linalg.eigh(a, UPLO="L" if lower else "U", symmetrize_input=False)
        return w if eigvals_only else (w, v)
    a, b = (_hermitian(x, lower) for x in (a, b))
    factor = _lax.cholesky(b, symmetrize_input=False)
    solve = lambda x, adjoined: _lax.triangular_solve(factor, x, left_side=True, lower=True, transpose_a=adjoined, conjugate_a=adjoined)
    inner = adjoint(solve(adjoint(solve(a, False)), False)) if type == 1 else adjoint(factor) @ a @ factor
    w, y = jnp.linalg.eigh(inner)
    if eigvals_only:
        return w
    return w, factor @ y if type == 3 else solve(y, True)


def _hermitian(a, lower):
    strict = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
    d = jnp.diagonal(a, axis1=-2, axis2=-1).real.astype(a.dtype)
    return strict + adjoint(strict) + d[..., None] * jnp.eye(a.shape[-1], dtype=a.dtype)


@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: Literal[False] = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...


@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    *,
    eigvals_only: Literal[True],
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array: ...


@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]: ...


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a Hermitian matrix, or of two.

    Golub and Van Loan, Matrix Computations, 8.7.

    Args:
        a: shape (..., n, n); only one triangle is read.
        b: None, or positive definite matrices of the same shape.
        lower: which triangle.
        eigvals_only: eigenvalues alone.
        overwrite_a: without effect: arrays are not written to.
        overwrite_b: without effect: arrays are not written to.
        turbo: without effect.
        eigvals: must be None.
        type: of two matrices: 1 is ``a @ v == b @ v * w``, 2 is ``a @ b @ v == v * w``, 3 is ``b @
          a @ v == v * w``.
        check_finite: without effect: nothing is checked.

    Returns:
        (w, v), or w; of two matrices, ``v.T.conj() @ b @ v`` is one (type 3: with the inverse of
        b).

    Raises:
        NotImplementedError: eigvals, or another type without b.

    >>> eigh(jnp.array([[2.0]]), jnp.array([[4.0]]), eigvals_only=True)
    Array([0.5], dtype=float32)
    """
    if eigvals is not None:
        raise NotImplementedError("Only the eigvals=None case of eigh is implemented.")
    if type not in (1, 2, 3) or (b is None and type != 1):
        raise NotImplementedError("Only the type=1 case of eigh is implemented without b, and types 1, 2 and 3 with it.")
    (a,) = floating("eigh", a)
    if b is not None:
        a, b = _floating(a, b)
    return _eigh(a, b, lower=bool(lower), eigvals_only=bool(eigvals_only), type=int(type))


@jitted("eigh_tridiagonal", static=("eigvals_only", "subset"))
def _eigh_tridiagonal(d, e, eigvals_only, subset):
    n = d.shape[0]
    low = jnp.diag(d.astype(jnp.result_type(d, e))) + jnp.diag(jnp.conj(e), -1) if n > 1 else jnp.diag(d)
    v, w = _lax.eigh(low, symmetrize_input=False, subset_by_index=subset)
    return w if eigvals_only else (w, v)


@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[False] = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> tuple[Array, Array]: ...


@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[True],
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Array: ...


@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Array | tuple[Array, Array]: ...


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Array | tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a Hermitian tridiagonal matrix.

    Args:
        d: the diagonal, shape (n,), real.
        e: the elements above it, shape (n - 1,); those below are their conjugates.
        eigvals_only: eigenvalues alone.
        select: "a" (all) or "i" (those of the indices in select_range, both included).
        select_range: (first, last).
        tol: without effect: all are found to rounding.
        key: without effect: nothing is random.

    Returns:
        (w, v), or w.

    Raises:
        ValueError: select or select_range is wrong.
        NotImplementedError: select is "v": how many there are must be known.

    >>> eigh_tridiagonal(jnp.array([1.0, 1.0]), jnp.array([0.0]), eigvals_only=True)
    Array([1., 1.], dtype=float32)
    """
    if select not in ("a", "i", "v"):
        raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not implemented")
    if select == "i" and select_range is None:
        raise ValueError("for select='i', select_range must be specified.")
    _lax.warn_inert("eigh_tridiagonal", tol=tol, key=key)
    d, e = jnp.asarray(d), jnp.asarray(e)
    (d,) = floating("eigh_tridiagonal", d.real)
    (e,) = floating("eigh_tridiagonal", e)
    if d.ndim != 1 or e.ndim != 1 or e.shape[0] != d.shape[0] - 1:
        raise ValueError(f"eigh_tridiagonal takes n and n - 1 elements, got shapes {tuple(d.shape)} and {tuple(e.shape)}")
    subset = None if select == "a" else (int(select_range[0]), int(select_range[1]) + 1)
    return _eigh_tridiagonal(d, e, eigvals_only=bool(eigvals_only), subset=subset)


@jitted("hessenberg", static=("calc_q",))
def _hessenberg(a, calc_q):
    n = a.shape[-1]
    packed, taus = _lax.hessenberg(a)
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    q = jnp.broadcast_to(jnp.eye(n, dtype=a.dtype), a.shape)
    if n > 1:
        q = q.at[..., 1:, 1:].set(_lax.householder_product(packed[..., 1:, :-1], taus))
    return h, q


@overload
def hessenberg(a: ArrayLike, *, calc_q: Literal[False] = False, overwrite_a: bool = False, check_finite: bool = True) -> Array: ...


@overload
def hessenberg(a: ArrayLike, *, calc_q: Literal[True], overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]: ...


@overload
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array | tuple[Array, Array]: ...


def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array | tuple[Array, Array]:
    """h, or (h, q): ``a == q @ h @ q.T.conj()`` with h zero below its first subdiagonal; a of shape
    (..., n, n).

    Args:
        a: shape (..., n, n).
        calc_q: whether to compute q.
        overwrite_a: without effect: arrays are not written to.
        check_finite: without effect: nothing is checked.

    Returns:
        h, or (h, q), arrays of shape (..., n, n).

    >>> hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    (a,) = floating("hessenberg", a)
    return _hessenberg(a, calc_q=bool(calc_q))


def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """(lu, pivots) of matrices (..., m, n): both factors in one array; row k was exchanged with row
    pivots[k].

    Args:
        a: shape (..., m, n).
        overwrite_a: without effect: arrays are not written to.
        check_finite: without effect: nothing is checked.

    Returns:
        (lu, pivots): an array of shape (..., m, n), and int32 of shape (..., min(m, n)).

    >>> lu_factor(jnp.array([[2.0]]))[0]
    Array([[2.]], dtype=float32)
    """
    (a,) = floating("lu_factor", a)
    lu, pivots, _ = _lax.lu(a)
    return lu, pivots


@jitted("lu", static=("permute_l",))
def _lu(a, permute_l):
    lu, _, order = _lax.lu(a)
    m, n = a.shape[-2:]
    k = min(m, n)
    l = jnp.tril(lu, -1)[..., :, :k] + jnp.eye(m, k, dtype=a.dtype)
    u = jnp.triu(lu)[..., :k, :]
    p = (jnp.arange(m)[:, None] == order[..., None, :]).astype(jnp.finfo(a.dtype).dtype)
    return (p.astype(a.dtype) @ l, u) if permute_l else (p, l, u)


@overload
def lu(a: ArrayLike, permute_l: Literal[False] = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array, Array]: ...


@overload
def lu(a: ArrayLike, permute_l: Literal[True], overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]: ...


@overload
def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array] | tuple[Array, Array, Array]: ...


def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """(p, l, u) with ``a == p @ l @ u``, or (p @ l, u); a of shape (..., m, n).

    Args:
        a: shape (..., m, n).
        permute_l: return p @ l in place of p and l.
        overwrite_a: without effect: arrays are not written to.
        check_finite: without effect: nothing is checked.

    Returns:
        (p, l, u), or (p @ l, u).

    >>> lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))[2]
    Array([[2., 2.],
           [0., 1.]], dtype=float32)
    """
    (a,) = floating("lu", a)
    return _lu(a, permute_l=bool(permute_l))


@jitted("qr", static=("mode", "pivoting"))
def _qr(a, mode, pivoting):
    out = _lax.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(out[1:]) if mode == "r" else tuple(out)


def qr(
    a: ArrayLike, overwrite_a: bool = False, lwork: int | None = None, mode: str = "full", pivoting: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """``a == q @ r``, or with pivoting ``a[:, order] == q @ r``.

    Args:
        a: shape (..., m, n).
        overwrite_a: without effect: arrays are not written to.
        lwork: without effect.
        mode: "full" (q of m columns), "economic" (of min(m, n)) or "r" (r alone).
        pivoting: choose the longest remaining column first.
        check_finite: without effect: nothing is checked.

    Returns:
        a tuple: q (but for mode "r"), r, and order with pivoting.

    Raises:
        ValueError: the mode is not known.

    >>> qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]), mode="r")[0].shape
    (2, 2)
    """
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    (a,) = floating("qr", a)
    return _qr(a, mode=mode, pivoting=bool(pivoting))


@jitted("qr_multiply", static=("mode", "pivoting", "conjugate"))
def _qr_multiply(a, c, mode, pivoting, conjugate):
    q, r, *order = _lax.qr(a, pivoting=pivoting, full_matrices=False)
    q = q.conj() if conjugate else q
    return (q @ c if mode == "left" else c @ q, r, *order)


def qr_multiply(
    a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False, conjugate: bool = False, overwrite_a: bool = False, overwrite_c: bool = False
) -> tuple[Array, ...]:
    """The product of c and the factor q of a, and r: ``c @ q``, or ``q @ c``.

    Args:
        a: shape (..., m, n).
        c: shape (..., k, m) or (m,) for "right", (..., min(m, n), k) or (min(m, n),) for "left";
          leading axes are broadcast against a's.
        mode: the side of q: "left" or "right".
        pivoting: as `qr` has it.
        conjugate: of q.
        overwrite_a: without effect: arrays are not written to.
        overwrite_c: without effect: arrays are not written to.

    Returns:
        (product, r), and the order of columns with pivoting.

    Raises:
        ValueError: shapes do not fit, or the mode is not known.

    >>> qr_multiply(jnp.eye(2), jnp.ones((1, 2)))[0].shape
    (1, 2)
    """
    if mode not in ("left", "right"):
        raise ValueError(f"mode must be 'right' or 'left', got {mode!r}")
    a, c = _floating(a, c)
    m, k = a.shape[-2], min(a.shape[-2:])
    vector = c.ndim == 1
    if vector:
        c = c[:, None] if mode == "left" else c[None, :]
    size, wanted = (c.shape[-2], k) if mode == "left" else (c.shape[-1], m)
    if size != wanted:
        product, what = ("Q @ c", f"{k} columns") if mode == "left" else ("c @ Q", f"{m} rows")
        axis = "rows" if mode == "left" else "columns"
        raise ValueError(
            f"Array shapes are not compatible for {product} operation: a has shape {tuple(a.shape)} so Q has {what}, but c has {size} {axis} (expected {wanted})."
        )
    batch = common_shape(a.shape[:-2], c.shape[:-2])
    a, c = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, c))
    out, *rest = _qr_multiply(a, c, mode=mode, pivoting=bool(pivoting), conjugate=bool(conjugate))
    return (out.reshape(-1) if vector else out, *rest)


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """(t, z) with ``a == z @ t @ z.T.conj()``.

    Args:
        a: shape (..., n, n).
        output: "real" (of a real a, t has blocks of two rows for conjugate eigenvalues) or
          "complex" (t is triangular).

    Returns:
        (t, z), arrays of shape (..., n, n).

    Raises:
        ValueError: the matrices are not square, or output is another word.

    >>> schur(jnp.array([[1.0, 5.0], [0.0, 2.0]]))[0]
    Array([[1., 5.],
           [0., 2.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"Expected 'output' to be either 'real' or 'complex', got output={output!r}.")
    (a,) = floating("schur", a)
    if output == "complex":
        a = a.astype(jnp.result_type(a.dtype, jnp.complex64))
    return tuple(_lax.schur(a))


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form (t, z) of matrices with real Schur form (T, Z): t triangular.

    Args:
        T, Z: the real form, both of shape (..., n, n), whose leading axes broadcast.
        check_finite: without effect: nothing is checked.

    Returns:
        (t, z), complex arrays of shape (..., n, n).

    Raises:
        ValueError: the matrices are not square, or of two sizes.

    >>> rsf2csf(jnp.array([[1.0, 5.0], [0.0, 2.0]]), jnp.eye(2))[0].dtype
    dtype('complex64')
    """
    T, Z = _floating(T, Z)
    for name, x in (("Z", Z), ("T", T)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"Input '{name}' must be square.")
    if T.shape[-1] != Z.shape[-1]:
        raise ValueError(f"Input array shapes must match: Z: {tuple(Z.shape)} vs. T: {tuple(T.shape)}")
    batch = jnp.broadcast_shapes(T.shape[:-2], Z.shape[:-2])
    T, Z = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (T, Z))
    complex_dtype = jnp.result_type(T.dtype, jnp.complex64)
    t, turn = _lax.schur(T.astype(complex_dtype))
    return t, Z.astype(complex_dtype) @ turn
