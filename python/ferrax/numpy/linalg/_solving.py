"""Systems of equations, inverses, determinants, and functions of singular values.

Invariant: derivatives are those of the solution, not of the way to it: none needs distinct singular
values.

    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
"""

from __future__ import annotations

import contextlib
import math
import typing
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._base.config import enable_x64
from ..._base.dtypes import is_complex
from ..._base.shapes import common_shape
from ..._transforms.grad import jvp, vjp
from ...custom_derivatives import custom_jvp
from ...lax import cond as _cond, custom_linear_solve, fori_loop, linalg as _lax, stop_gradient
from .._creation import filled as _filling, matrices as _matrices
from .._indexing.selecting import where
from .._indexing.taking import take_along_axis
from .._manipulation.shaping import moveaxis, swapaxes
from .._math.complex import conj
from .._math.exponential import log
from .._reductions import plain as _reductions
from .._support.arguments import Array, as_array, check_arraylike, jitted
from ._factorizations import eigh, floating, qr, svd
from ._norms import norm

if TYPE_CHECKING:
    from ...typing import ArrayLike


# Steps of a division-free determinant that are written out, and not a loop.
MAX_UNROLLED_PRODUCTS = 8


class SlogdetResult(typing.NamedTuple):
    """The result of `slogdet`."""

    sign: Array
    logabsdet: Array


def adjoint(a):
    """The conjugate transpose of the last two axes."""
    return conj(swapaxes(a, -1, -2))


def _squares(name, a):
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got {tuple(a.shape)}.")


def _rows(b, order):
    index = _core.broadcast_to(order[..., None], b.shape)
    return take_along_axis(b, index, -2)


def lu_solve(lu, permutation, b, trans=0):
    """x of ``op(a) @ x == b`` for matrices, from a's factors; trans: 0, 1 (transposed) or 2
    (adjoint).
    """
    if trans == 0:
        y = _lax.triangular_solve(lu, _rows(b, permutation), left_side=True, lower=True, unit_diagonal=True)
        return _lax.triangular_solve(lu, y, left_side=True)
    conjugate = trans == 2
    y = _lax.triangular_solve(lu, b, left_side=True, transpose_a=True, conjugate_a=conjugate)
    x = _lax.triangular_solve(lu, y, left_side=True, lower=True, unit_diagonal=True, transpose_a=True, conjugate_a=conjugate)
    return _rows(x, permutation.argsort(axis=-1))


def _solve_matrices(a, b):
    """x of a @ x == b; both of shape (..., n, .), with one set of leading axes."""
    if 0 in b.shape:
        return b
    lu, _, permutation = _lax.lu(stop_gradient(a))
    return custom_linear_solve(
        lambda x: a @ x,
        b,
        lambda _, b: lu_solve(lu, permutation, b),
        lambda _, b: lu_solve(lu, permutation, b, trans=1),
    )


@jitted("solve")
def _solve(a, b):
    a, b = _core.promote_dtypes_inexact(a, b)
    if b.ndim == 1:
        return _solve(a, b[:, None])[..., 0]
    if a.ndim == 2 and b.ndim > 2:
        # one factorization: all right-hand sides are columns of one matrix
        n = a.shape[0]
        columns = moveaxis(b, -2, 0)
        x = _solve_matrices(a, columns.reshape(n, math.prod(columns.shape[1:])))
        return moveaxis(x.reshape(columns.shape), 0, -2)
    lead = common_shape(a.shape[:-2], b.shape[:-2])
    return _solve_matrices(_core.broadcast_to(a, (*lead, *a.shape[-2:])), _core.broadcast_to(b, (*lead, *b.shape[-2:])))


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x of ``a @ x == b``.

    Args:
        a: square matrices, shape (..., n, n).
        b: one vector (n,), or matrices (..., n, k); leading axes broadcast.

    Returns:
        an array like b with the leading axes of both.

    Raises:
        ValueError: shapes do not fit.

    By triangular factors: Golub and Van Loan, Matrix Computations, 3.4.

    >>> solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    check_arraylike("jnp.linalg.solve", a, b)
    a, b = _core.asarray(a), _core.asarray(b)
    if a.ndim < 2:
        raise ValueError(f"left hand array must be at least two dimensional; got a.shape={tuple(a.shape)}")
    if b.ndim == 0:
        raise ValueError("input with shape () does not have enough dimensions for all core dimensions ('m', 'n')")
    rows = b.shape[0] if b.ndim == 1 else b.shape[-2]
    if a.shape[-1] != a.shape[-2] or rows != a.shape[-1]:
        if b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]:
            raise ValueError(f"Invalid shapes for solve: {tuple(a.shape)}, {tuple(b.shape)}. A batch of vectors is solve(a, b[..., None]).squeeze(-1).")
        sizes = (a.shape[-2], a.shape[-1]) if a.shape[-1] != a.shape[-2] else (a.shape[-1], rows)
        raise ValueError(f"inconsistent size for core dimension 'm': {sizes[0]} vs {sizes[1]} in solve of {tuple(a.shape)} and {tuple(b.shape)}")
    return _solve(a, b)


@jitted("inv")
def _inv(a):
    eye = _matrices.eye(a.shape[-1], dtype=a.dtype)
    return solve(a, _core.broadcast_to(eye, a.shape))


def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices (..., n, n); inf and nan if there is none.

    Args:
        a: array of shape (..., n, n).

    Returns:
        Array of a's shape and of its dtype made float.

    Raises:
        ValueError: the matrices are not square.

    >>> inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    (a,) = floating("inv", a)
    _squares("inv", a)
    return _inv(a)


# ---- determinants


def _parity(pivots, n):
    """1 or -1: the sign of the exchanges."""
    moved = pivots != np.arange(n, dtype=np.int32)
    return 1 - 2 * (_reductions.sum(moved, axis=-1) % 2)


def _trace(a):
    return _reductions.sum(_matrices.diagonal(a, axis1=-2, axis2=-1), axis=-1)


def _minors_of(s):
    """For each, the product of the others."""
    n = s.shape[-1]
    others = _core.broadcast_to(s[..., None, :], (*s.shape, n))
    return _reductions.prod(where(np.eye(n, dtype=bool), others.dtype.type(1), others), axis=-1)


def _det_by_products(a):
    """The determinant without a quotient, so that all its derivatives are those of a polynomial
    (Bird's algorithm).
    """
    n = a.shape[-1]
    upper, after = np.triu(np.ones((n, n), bool), 1), np.triu(np.ones((n, n)), 1).astype(a.dtype)
    eye = np.eye(n, dtype=bool)

    def step(_, f):
        # of the part above the diagonal, and minus the sums of what follows on it
        tails = after @ _matrices.diagonal(f, axis1=-2, axis2=-1)[..., None]
        return (where(upper, f, a.dtype.type(0)) - where(eye, tails, a.dtype.type(0))) @ a

    f = a
    if n <= MAX_UNROLLED_PRODUCTS:
        for k in range(n - 1):
            f = step(k, f)
    else:
        f = fori_loop(0, n - 1, step, f)
    return (-1) ** (n - 1) * f[..., 0, 0]


@custom_jvp
def _adjugate(a):
    """The transposed cofactors, for any rank: ``det(u @ vh) * v @ cofactors(s) @ u'``."""
    u, s, vh = svd(a)
    turn = _factored_det(u @ vh)
    return turn[..., None, None] * (adjoint(vh) * _minors_of(s)[..., None, :].astype(a.dtype)) @ adjoint(u)


@_adjugate.defjvp
def _adjugate_rule(primals, tangents):
    (a,), (da,) = primals, tangents
    middle = stop_gradient(a)
    u, s, vh = stop_gradient(svd(middle))
    turn = _factored_det(u @ vh)
    v, back = adjoint(vh), adjoint(u)

    # Singular values are constants here: the determinant is that of a diagonal matrix and a change, a polynomial in the change.
    def cofactors(a):
        at = where(np.eye(s.shape[-1], dtype=bool), s[..., None, :].astype(a.dtype), a.dtype.type(0)) + back @ (a - middle) @ v
        _, pull = vjp(_det_by_products, at)
        (grad,) = pull(_filling.ones(at.shape[:-2], at.dtype))
        return turn[..., None, None] * v @ swapaxes(grad, -1, -2) @ back

    return _adjugate(a), jvp(cofactors, (a,), (da,))[1]


def _factored_det(a):
    lu, pivots, _ = _lax.lu(a)
    d = _reductions.prod(_matrices.diagonal(lu, axis1=-2, axis2=-1), axis=-1)
    return d * _parity(pivots, a.shape[-1]).astype(a.dtype)


@custom_jvp
def _det_by_factors(a):
    return _factored_det(a)


@_det_by_factors.defjvp
def _det_rule(primals, tangents):
    (a,), (da,) = primals, tangents
    y = _det_by_factors(a)
    # Of a regular matrix by its inverse, of others by their cofactors: second derivatives have the difference of two terms that grow
    # with the square of the inverse.
    pivots = abs(_matrices.diagonal(_lax.lu(stop_gradient(a))[0], axis1=-2, axis2=-1))
    least, most = _reductions.min(pivots, axis=-1), _reductions.max(pivots, axis=-1)
    eps = float(np.finfo(pivots.dtype).eps)
    regular = _reductions.all((y != 0) & (least > math.sqrt(eps) * most))
    dy = _cond(regular, lambda a, da, y: y * _trace(_solve_matrices(a, da)), lambda a, da, y: _trace(_adjugate(a) @ da), a, da, y)
    return y, dy


@jitted("det")
def _det(a):
    n = a.shape[-1]
    x = lambda i, j: a[..., i, j]
    if n == 0:
        return _filling.ones(a.shape[:-2], a.dtype)
    if n == 1:
        return x(0, 0)
    if n == 2:
        return x(0, 0) * x(1, 1) - x(0, 1) * x(1, 0)
    if n == 3:
        return (
            x(0, 0) * x(1, 1) * x(2, 2)
            + x(0, 1) * x(1, 2) * x(2, 0)
            + x(0, 2) * x(1, 0) * x(2, 1)
            - x(0, 2) * x(1, 1) * x(2, 0)
            - x(0, 0) * x(1, 2) * x(2, 1)
            - x(0, 1) * x(1, 0) * x(2, 2)
        )
    return _det_by_factors(a)


def det(a: ArrayLike) -> Array:
    """The determinants of square matrices (..., n, n); differentiable at singular ones too.

    Args:
        a: array of shape (..., n, n).

    Returns:
        Array of shape (...), of a's dtype made float.

    Raises:
        ValueError: the matrices are not square.

    >>> det(jnp.array([[1.0, 2.0], [3.0, 5.0]]))
    Array(-1., dtype=float32)
    """
    (a,) = floating("det", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to _det() must have shape [..., n, n], got {tuple(a.shape)}")
    return _det(a)


def _slogdet_of(d, parity, dtype):
    size = abs(d)
    zero = _reductions.any(d == 0, axis=-1)
    sign = _reductions.prod(d / where(size == 0, size.dtype.type(1), size).astype(dtype), axis=-1) * parity.astype(dtype)
    return where(zero, dtype.type(0), sign), where(zero, size.dtype.type(-np.inf), _reductions.sum(log(size), axis=-1))


@custom_jvp
def _slogdet_by_lu(a):
    lu, pivots, _ = _lax.lu(a)
    return _slogdet_of(_matrices.diagonal(lu, axis1=-2, axis2=-1), _parity(pivots, a.shape[-1]), a.dtype)


@_slogdet_by_lu.defjvp
def _slogdet_rule(primals, tangents):
    (a,), (da,) = primals, tangents
    sign, size = _slogdet_by_lu(a)
    moved = _trace(_solve_matrices(a, da))
    if not is_complex(a.dtype):
        return (sign, size), (_filling.zeros_like(sign), moved)
    return (sign, size), (sign * (moved - moved.real.astype(a.dtype)), moved.real)


@jitted("slogdet", static=("method",))
def _slogdet(a, method):
    if method == "qr":
        # the determinant of q is the product of its reflections', which LU of q finds as well
        q, r = qr(a)
        first, size = _slogdet_of(_matrices.diagonal(r, axis1=-2, axis2=-1), _core.asarray(np.int32(1)), a.dtype)
        return SlogdetResult(first * _slogdet_by_lu(q)[0], size)
    return SlogdetResult(*_slogdet_by_lu(a))


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Sign and logarithm of the absolute value of determinants: ``det == sign * exp(logabsdet)``.

    Args:
        a: square matrices, shape (..., n, n).
        method: "lu" (the default) or "qr".

    Returns:
        (sign, logabsdet): 0 and -inf for singular matrices.

    Raises:
        ValueError: the matrices are not square, or the method is not known.

    >>> slogdet(jnp.array([[-1.0, 0.0], [0.0, 1.0]])).sign
    Array(-1., dtype=float32)
    """
    (a,) = floating("slogdet", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to slogdet() must have shape [..., n, n], got {tuple(a.shape)}")
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), and 'qr'.")
    if a.dtype.name in ("float16", "bfloat16"):  # in single precision, rounded once
        return SlogdetResult(*(x.astype(a.dtype) for x in _slogdet(a.astype("float32"), method=method or "lu")))
    return _slogdet(a, method=method or "lu")


# ---- by singular values


def _cutoff(s, a, rtol):
    """The threshold below which singular values count as zero, one for each matrix."""
    most = s[..., :1]
    if rtol is None:
        rtol = 10.0 * max(a.shape[-2:]) * float(np.finfo(s.dtype).eps)
    rtol = _core.asarray(rtol).astype(s.dtype)
    return rtol[..., None] * most


def _inverted(a, rtol):
    """(u, 1 / s, vh), with zeros for singular values that count as zero."""
    u, s, vh = svd(a, full_matrices=False)
    kept = (s > _cutoff(s, a, rtol)) & (s > 0)
    return u, where(kept, 1 / where(kept, s, s.dtype.type(1)), s.dtype.type(0)), vh


@custom_jvp
def _pinv_of(a, rtol):
    if 0 in a.shape:
        return swapaxes(a, -1, -2)
    u, s, vh = _inverted(a, rtol)
    return adjoint(vh) * s[..., None, :].astype(a.dtype) @ adjoint(u)


def _wide(dtype):
    return np.dtype(np.complex128 if is_complex(dtype) else np.float64)


@_pinv_of.defjvp
def _pinv_rule(primals, tangents):
    (a, rtol), (da, _) = primals, tangents
    # `lstsq` takes it in double precision whether 64 bits are on or not.
    with enable_x64(True) if a.dtype == _wide(a.dtype) else contextlib.nullcontext():
        p = _pinv_of(a, rtol)
        back = adjoint(da)
        rest = back - _thin(back, a, p)
        more = back - _thin(p, a, back)
        return p, -_thin(p, da, p) + _thin(p, adjoint(p), rest) + _thin(more, adjoint(p), p)


def _thin(x, y, z):
    """x @ y @ z, where x and z have one shape and y has that of their adjoints; no intermediate
    result is larger than the operands.
    """
    return x @ y @ z if x.shape[-2] <= x.shape[-1] else x @ (y @ z)


@jitted("pinv", static=("hermitian",))
def _pinv(a, rtol, hermitian):
    if not hermitian:
        return _pinv_of(a, rtol)
    return _pinv_of((a + adjoint(a)) / 2, rtol)


def pinv(a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None) -> Array:
    """The pseudo-inverses of Moore and Penrose.

    Args:
        a: shape (..., m, n).
        rtol: singular values up to rtol times the largest count as zero; by default 10 max(m, n)
          eps.
        hermitian: a is Hermitian: the mean of it and its adjoint is used.
        rcond: another name of rtol.

    Returns:
        an array of shape (..., n, m).

    Raises:
        ValueError: both rtol and rcond are given, or a has less than two axes.

    Derivative: Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973), at constant rank.

    >>> pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    (a,) = floating("pinv", a)
    rtol = rcond if rtol is None else rtol
    if a.ndim < 2:
        raise ValueError(f"pinv: matrices have at least two axes, got shape {tuple(a.shape)}")
    if rtol is None:
        rtol = 10.0 * max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)
    return _pinv(a, _core.asarray(rtol, np.finfo(a.dtype).dtype), hermitian=bool(hermitian))


@jitted("cond", static=("p",))
def _cond_number(x, p):
    if p in (None, 2, -2):
        s = svd(x, compute_uv=False)
        r = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        r = norm(x, ord=p, axis=(-2, -1)) * norm(inv(x), ord=p, axis=(-2, -1))
    # of a matrix without nan it is not nan
    bad = _reductions.any(x != x, axis=(-2, -1))
    return where((r != r) & ~bad, r.dtype.type(np.inf), r)


def cond(x: ArrayLike, p: Any = None) -> Array:
    """Condition numbers: ``norm(x, p) * norm(inv(x), p)``, by default the ratio of the largest to
    the smallest singular value.

    Args:
        x: shape (..., m, n), square except for p of None, 2 and -2.
        p: a norm of matrices.

    Returns:
        Real array of shape (...).

    Raises:
        ValueError: the matrices are not square, or have less than two axes, or the norm is not
          known.

    >>> cond(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
    Array(2., dtype=float32)
    """
    (x,) = floating("cond", x)
    if x.ndim < 2:
        raise ValueError(f"jnp.linalg.cond: input array must be at least 2D; got arr.shape={tuple(x.shape)}")
    if 0 in x.shape[-2:]:
        raise ValueError(f"jnp.linalg.cond: input array must not be empty; got arr.shape={tuple(x.shape)}")
    if p not in (None, 2, -2) and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"jnp.linalg.cond: for p={p}, array must be square; got arr.shape={tuple(x.shape)}")
    return _cond_number(x, p=p)


@jitted("matrix_rank", static=("hermitian",))
def _matrix_rank(a, tol, rtol, hermitian):
    s = abs(eigh(a)[0]) if hermitian else svd(a, full_matrices=False, compute_uv=False)
    if tol is None:
        tol = rtol * _reductions.max(s, axis=-1, initial=0)
    return _reductions.sum(s > tol[..., None], axis=-1)


def matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None) -> Array:
    """How many singular values of matrices (..., m, n) are above tol, or above rtol times the
    largest; by default max(m, n) eps.

    Args:
        M: matrices; of a vector, whether it is not zero.
        rtol: a bound for each matrix, relative to its largest singular value.
        hermitian: the matrices are Hermitian, and eigenvalues serve.
        tol: a bound for each matrix.

    Returns:
        Array of int32 of shape (...).

    Raises:
        ValueError: both bounds are given.

    >>> matrix_rank(jnp.array([[1.0, 1.0], [1.0, 1.0]]))
    Array(1, dtype=int32)
    """
    (M,) = floating("matrix_rank", M)
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    if M.ndim < 2:
        return _reductions.any(M != 0).astype(np.int32)
    real = np.finfo(M.dtype)
    if tol is not None:
        return _matrix_rank(M, _core.asarray(tol, real.dtype), None, hermitian=bool(hermitian))
    rtol = float(real.eps) * max(M.shape[-2:]) if rtol is None else rtol
    return _matrix_rank(M, None, _core.asarray(rtol, real.dtype), hermitian=bool(hermitian))


# ---- of tensors


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of a as a map from its axes `ind`.. to its first `ind` axes.

    Args:
        a: shape (*p, *q), the first `ind` axes being p, with as many elements in p as in q.
        ind: int, how many axes are the result's last ones.

    Returns:
        an array of shape (*q, *p).

    Raises:
        ValueError: ind is not positive, or the sizes do not fit.

    >>> tensorinv(jnp.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    a = as_array("jnp.linalg.tensorinv", a)
    ind = int(ind)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    rows, columns = tuple(a.shape[:ind]), tuple(a.shape[ind:])
    if math.prod(rows) != math.prod(columns):
        raise ValueError(f"product of dimensions at axes before and from ind={ind} must be equal; got shape {tuple(a.shape)}")
    return inv(a.reshape(math.prod(rows), math.prod(columns))).reshape(*columns, *rows)


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """x with ``tensordot(a, x, x.ndim) == b``.

    Args:
        a: shape (*b.shape, *x.shape), both with as many elements.
        b: any shape.
        axes: axes of a that are moved to its end first.

    Returns:
        Array x.

    Raises:
        ValueError: the sizes do not fit.

    >>> tensorsolve(jnp.eye(4).reshape(2, 2, 2, 2), jnp.ones((2, 2)))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    check_arraylike("jnp.linalg.tensorsolve", a, b)
    a, b = _core.asarray(a), _core.asarray(b)
    if axes is not None:
        a = moveaxis(a, axes, tuple(range(-len(axes), 0)))
    rows, columns = tuple(a.shape[: b.ndim]), tuple(a.shape[b.ndim :])
    if math.prod(rows) != math.prod(columns):
        raise ValueError(f"Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); got a.shape={tuple(a.shape)}, b.ndim={b.ndim}.")
    if rows != tuple(b.shape):
        raise ValueError(f"After moving axes to end, leading shape of a must match shape of b. got a.shape={tuple(a.shape)}, b.shape={tuple(b.shape)}")
    return solve(a.reshape(math.prod(rows), math.prod(columns)), b.ravel()).reshape(columns)
