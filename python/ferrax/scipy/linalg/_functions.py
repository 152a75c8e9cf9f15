"""Functions of matrices: expm and its derivative, sqrtm, funm, polar, and Sylvester's equation.

Invariant: derivatives come from the equation that the result solves, so they need no distinct
eigenvalues.

    >>> expm(jnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from ... import lax, numpy as jnp
from ..._base.dtypes import is_complex
from ..._base.shapes import common_shape
from ..._base.tracebacks import api_boundary
from ..._transforms.grad import jvp
from ...custom_derivatives import custom_jvp
from ...lax import linalg as _lax
from ...numpy._support.arguments import jitted
from ...numpy.linalg._factorizations import floating
from ...numpy.linalg._solving import adjoint

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

# The coefficients of Pade's approximants to exp, and the 1-norm up to which each is exact to rounding: Higham, SIAM J. Matrix Anal. 26 (2005), table 2.3.
_PADE_13 = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)
_PADE_7 = (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)
_REACH = {np.dtype(np.float64): 5.371920351148152, np.dtype(np.float32): 3.925724783138660}


# The powers from which the number of squarings is found, the reach of the approximant for those norms, and the first coefficient of its backward error: Al-Mohy
# and Higham, SIAM J. Matrix Anal. 31 (2009), for degrees 13 and 7.
_CHOICE = {
    np.dtype(np.float64): (((4, 6), (6, 8), (8, 10)), 4.25, 13, 1.0 / (math.comb(26, 13) * math.factorial(27))),
    np.dtype(np.float32): (((4, 6), (6, 8)), _REACH[np.dtype(np.float32)], 7, 1.0 / (math.comb(14, 7) * math.factorial(15))),
}


def _log_norm(a):
    """log2 of the 1-norm, without slope: -inf of zeros."""
    return jnp.log2(lax.stop_gradient(abs(a)).sum(axis=-2).max(axis=-1))


def _normalized(a):
    """`a` over a power of two near its norm, and the exponent.

    So neither powers of a large matrix overflow nor those of a small one vanish.
    """
    log = _log_norm(a)
    e = jnp.where(jnp.isfinite(log), jnp.floor(log), 0)
    return _times_power(a, -e), e


def _times_power(a, e):
    """a 2^e, exact. In two factors, for one alone may be beyond the dtype's numbers."""
    half = jnp.floor(e / 2)
    a = a * jnp.exp2(half)[..., None, None].astype(a.dtype)
    return a * jnp.exp2(e - half)[..., None, None].astype(a.dtype)


def _powers(a, count):
    """The even powers of a from the second on, each normalized, with its exponent."""
    one, e = _normalized(a)

    def times(x, y):
        out, more = _normalized(x[0] @ y[0])
        return out, more + x[1] + y[1]

    powers = {1: (one, e)}
    powers[2] = times(powers[1], powers[1])
    for p in range(4, 2 * count + 2, 2):
        powers[p] = times(powers[4] if p > 6 else powers[p - 2], powers[p - 4 if p > 6 else 2])
    return powers


def _log_norm_of_power(a, n):
    """log2 of the 1-norm of |a|^n."""
    a = lax.stop_gradient(abs(a))

    def step(_, state):
        v, log = state
        v = jnp.einsum("...i,...ij->...j", v, a)
        size = v.max(axis=-1)
        log = log + jnp.log2(size)
        return v / jnp.where(size > 0, size, 1)[..., None], log

    start = jnp.ones(a.shape[:-1], a.dtype), jnp.zeros(a.shape[:-2], a.dtype)
    return lax.fori_loop(0, n, step, start)[1]


def _excess(a, powers, most):
    """log2 of the factor by which a is too large for the approximant, by norms of powers; at most
    `most`, that by its own norm.
    """
    real = np.dtype(np.finfo(a.dtype).dtype)
    pairs, reach, degree, coefficient = _CHOICE[real]
    size = lambda p: (_log_norm(powers[p][0]) + powers[p][1]) / p
    log = functools.reduce(jnp.minimum, [jnp.maximum(size(p), size(q)) for p, q in pairs])
    diagonal = lax.stop_gradient(abs(jnp.diagonal(a, axis1=-2, axis2=-1))).max(axis=-1)
    log = jnp.maximum(log, jnp.log2(diagonal)) - float(np.log2(reach))
    one, e = powers[1]
    # |a|^n over |a|, of n = 2 degree + 1, against the unit roundoff
    growth = _log_norm_of_power(one, 2 * degree + 1) - _log_norm(one) + 2 * degree * e
    more = (growth + float(np.log2(coefficient) + 1 - np.log2(np.finfo(real).eps))) / (2 * degree)
    needed = jnp.maximum(jnp.maximum(log, more), 0)
    return jnp.where(jnp.isnan(needed), most, jnp.minimum(needed, most))


def _pade(powers, scale, real):
    """Even and odd part of the numerator of the approximant of a 2^-scale."""
    a, a2, a4, a6 = (_times_power(x, e - p * scale) for p, (x, e) in powers.items() if p <= 6)
    eye = jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    if real == np.float32:
        b = _PADE_7
        return b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye, a @ (b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
    b = _PADE_13
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    odd = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye
    return even, a @ odd


@jitted("expm", static=("upper_triangular", "max_squarings"))
def _expm(a, upper_triangular, max_squarings):
    if a.shape[-1] == 0:
        return a
    real = np.dtype(np.finfo(a.dtype).dtype)
    by_norm = jnp.maximum(_log_norm(a) - float(np.log2(_REACH[real])), 0)
    known = jnp.isfinite(by_norm)
    by_norm = jnp.where(known, by_norm, 0)
    powers = _powers(a, _CHOICE[real][0][-1][1] // 2)
    needed = _excess(a, powers, by_norm)
    # As in JAX, whose count is rounded down.
    refused = jnp.floor(needed) > max_squarings
    count = jnp.where(known & ~refused, jnp.ceil(needed), 0)
    even, odd = _pade(powers, count, real)
    left, right = even - odd, even + odd
    r = _lax.triangular_solve(left, right, left_side=True) if upper_triangular else jnp.linalg.solve(left, right)
    squared = lambda i, r: jnp.where((i < count)[..., None, None], r @ r, r)
    r = lax.fori_loop(0, count.max(initial=0).astype(np.int32), squared, r)
    return jnp.where(refused[..., None, None], jnp.full_like(r, np.nan), r)


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponentials of square matrices.

    Args:
        A: shape (..., n, n).
        upper_triangular: the matrices are upper triangular.
        max_squarings: the result is nan if more squarings are needed: for norms above about
          2^(max_squarings + 3).

    Returns:
        an array of shape (..., n, n).

    Raises:
        ValueError: the matrices are not square.

    Scaling and squaring: Higham, SIAM J. Matrix Anal. 26 (2005), with as many squarings as powers
    of A ask for: Al-Mohy and Higham, ibid. 31 (2009).

    >>> expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    (A,) = floating("expm", A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got A.shape={tuple(A.shape)}.")
    return _expm(A, upper_triangular=bool(upper_triangular), max_squarings=int(max_squarings))


@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[True] = True) -> tuple[Array, Array]: ...


@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[False]) -> Array: ...


@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Array | tuple[Array, Array]: ...


def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Array | tuple[Array, Array]:
    """The exponential of A and its derivative at A along E.

    Args:
        A, E: shape (..., n, n).
        method: without effect: one algorithm serves.
        compute_expm: whether to compute the exponential too.

    Returns:
        (expm(A), derivative), or the derivative alone.

    Raises:
        ValueError: the matrices are not square, or their shapes differ.

    >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], dtype=float32)
    """
    _lax.warn_inert("expm_frechet", method=method)
    A, E = floating("expm_frechet", A, E)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"expected A to be a (batched) square matrix, got A.shape={tuple(A.shape)}")
    if E.ndim < 2 or E.shape[-1] != E.shape[-2]:
        raise ValueError(f"expected E to be a (batched) square matrix, got E.shape={tuple(E.shape)}")
    if A.shape != E.shape:
        raise ValueError(f"expected A and E to be the same shape, got A.shape={tuple(A.shape)} E.shape={tuple(E.shape)}")
    y, dy = jvp(expm, (A,), (E,))
    return (y, dy) if compute_expm else dy


# ---- Sylvester's equation


def _solve_schur(a, b, c):
    """x of ``a @ x + x @ b == c``, complex: column by column from the Schur forms."""
    n, k = c.shape[-2:]
    r, u = _lax.schur(a)
    s, v = _lax.schur(b)
    right = adjoint(u) @ c @ v
    eye = jnp.eye(n, dtype=c.dtype)

    def column(j, y):
        along = lax.dynamic_slice_in_dim(s, j, 1, axis=-1)
        rest = lax.dynamic_slice_in_dim(right, j, 1, axis=-1) - y @ along
        shift = lax.dynamic_slice_in_dim(along, j, 1, axis=-2)
        return lax.dynamic_update_slice_in_dim(y, _lax.triangular_solve(r + shift * eye, rest, left_side=True), j, axis=-1)

    y = lax.fori_loop(0, k, column, jnp.zeros_like(right))
    return u @ y @ adjoint(v)


@jitted("solve_sylvester")
def _sylvester(a, b, c):
    lead = common_shape(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    a, b, c = (jnp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b, c))
    if c.size == 0:
        return c
    wide = jnp.result_type(c.dtype, jnp.complex64)
    fixed = [lax.stop_gradient(x) for x in (a, b)]
    back = lambda x: x.astype(c.dtype) if is_complex(c.dtype) else x.real

    def solve(transposed):
        # of the transposed system a' x + x b' == c
        p, q = (jnp.swapaxes(x, -1, -2) if transposed else x for x in fixed)
        return lambda _, c: back(_solve_schur(p.astype(wide), q.astype(wide), c.astype(wide)))

    x = lax.custom_linear_solve(lambda x: a @ x + x @ b, c, solve(False), solve(True))
    # where a and -b share an eigenvalue there is no solution, or many
    va, vb = (lax.stop_gradient(jnp.linalg.eigvals(x)) for x in fixed)
    apart = abs(va[..., :, None] + vb[..., None, :]).min(axis=(-2, -1))
    most = abs(va).max(axis=-1) + abs(vb).max(axis=-1)
    eps = float(np.finfo(c.dtype).eps) * max(a.shape[-1], b.shape[-1])
    singular = apart <= jnp.maximum(most * eps, 0)
    return jnp.where(singular[..., None, None], jnp.full_like(x, np.nan), x)


def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """x of ``A @ x + x @ B == C``.

    Args:
        A: shape (..., m, m).
        B: shape (..., n, n).
        C: shape (..., m, n).
        method: "schur" or "eigen"; Schur forms serve both.
        tol: without effect.

    Returns:
        an array of shape (..., m, n); nan where A and -B share an eigenvalue.

    Raises:
        ValueError: shapes do not fit, or the method is not known.

    Bartels and Stewart, Communications of the ACM 15 (1972).

    >>> solve_sylvester(jnp.array([[1.0]]), jnp.array([[3.0]]), jnp.array([[8.0]]))
    Array([[2.]], dtype=float32)
    """
    A, B, C = floating("solve_sylvester", A, B, C)
    if method not in ("schur", "eigen"):
        raise ValueError(f'Unrecognized method {method}. The two valid methods are either "schur" or "eigen".')
    m, n = C.shape[-2:] if C.ndim > 1 else (-1, -1)
    if A.shape[-2:] != (m, m) or B.shape[-2:] != (n, n):
        raise ValueError(f"Incompatible shapes for Sylvester equation:\nA: {tuple(A.shape)}\nB: {tuple(B.shape)}\nC: {tuple(C.shape)}")
    _lax.warn_inert("solve_sylvester", tol=None if tol == 1e-8 else tol)
    return _sylvester(A, B, C)


# ---- by Schur forms


def _triangular_root(t):
    """The square root of upper triangular matrices, column by column: Bjorck and Hammarling, Linear
    Algebra Appl.

    52/53 (1983).
    """
    n = t.shape[-1]
    d = jnp.sqrt(jnp.diagonal(t, axis1=-2, axis2=-1))
    eye, index = jnp.eye(n, dtype=t.dtype), jnp.arange(n)

    def column(j, u):
        top = lax.dynamic_index_in_dim(d, j, axis=-1, keepdims=True)
        known = (index < j).astype(t.dtype)
        # rows from j on are those of the identity
        divisors = known * (d + top) + (1 - known)
        left = u * known[:, None] * known[None, :] * (1 - eye) + eye * jnp.where(divisors == 0, 1, divisors)[..., None, :]
        right = lax.dynamic_slice_in_dim(t, j, 1, axis=-1) * known[:, None]
        x = _lax.triangular_solve(left, right, left_side=True)
        # 0 divided by 0 is 0, which keeps the root of singular matrices; anything else has no root
        x = jnp.where((divisors == 0)[..., None] & (x != 0), jnp.nan, x)
        x = jnp.where((index == j)[:, None], top[..., None], x)
        return lax.dynamic_update_slice_in_dim(u, x, j, axis=-1)

    return lax.fori_loop(0, n, column, jnp.zeros_like(t))


@custom_jvp
def _sqrtm(a):
    t, z = _lax.schur(a)
    return z @ _triangular_root(t) @ adjoint(z)


@_sqrtm.defjvp
def _sqrtm_rule(primals, tangents):
    (a,), (da,) = primals, tangents
    x = _sqrtm(a)
    # x x = a
    return x, solve_sylvester(x, x, da)


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square roots of square matrices (..., n, n), complex.

    Higham, Functions of Matrices (2008), chapter 6.

    Args:
        A: the matrices.
        blocksize: 1.

    Returns:
        Complex array of shape (..., n, n).

    Raises:
        ValueError: the matrices are not square.
        NotImplementedError: for another blocksize.

    >>> sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]]))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 3.+0.j]], dtype=complex64)
    """
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    (A,) = floating("sqrtm", A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"The input to schur must be a square matrix. Got shape {tuple(A.shape)}.")
    return jitted("sqrtm", fun=lambda a: _sqrtm(a))(A.astype(jnp.result_type(A.dtype, jnp.complex64)))


@overload
def funm(A: ArrayLike, func: Callable[[Array], Array], disp: Literal[True] = True) -> Array: ...


@overload
def funm(A: ArrayLike, func: Callable[[Array], Array], disp: Literal[False]) -> tuple[Array, Array]: ...


@overload
def funm(A: ArrayLike, func: Callable[[Array], Array], disp: bool = True) -> Array | tuple[Array, Array]: ...


@api_boundary
def funm(A: ArrayLike, func: Callable[[Array], Array], disp: bool = True) -> Array | tuple[Array, Array]:
    """The function of a matrix that `func`, of arrays element by element, extends to.

    Args:
        A: a matrix (n, n).
        func: a function of arrays.
        disp: the result alone; else (result, estimate of its error).

    Returns:
        a complex matrix.

    Raises:
        ValueError: A is not square.

    Parlett's recurrence on the Schur form, which requires distinct eigenvalues: Golub and Van Loan,
    Matrix Computations, 9.1.4.

    >>> funm(jnp.array([[2.0]]), lambda x: x * x)
    Array([[4.+0.j]], dtype=complex64)
    """
    (A,) = floating("funm", A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError("expected square array_like input")
    n = A.shape[0]
    t, z = _lax.schur(A.astype(jnp.result_type(A.dtype, jnp.complex64)))
    d = jnp.diag(t)
    f = jnp.diag(func(d).astype(t.dtype))
    gap = d[None, :] - d[:, None]
    diagonals = np.arange(n)[None, :] - np.arange(n)[:, None]

    def step(k, state):
        f, least = state
        here = diagonals == k
        s = t @ f - f @ t
        apart = gap != 0
        value = jnp.where(apart, s / jnp.where(apart, gap, 1), s)
        least = jnp.minimum(least, jnp.where(here, abs(gap), np.inf).min(initial=np.inf))
        return jnp.where(here, value, f), least

    eps = jnp.finfo(t.dtype).eps
    f, least = lax.fori_loop(1, n, step, (f, jnp.ones((), jnp.finfo(t.dtype).dtype)))
    out = z @ f @ adjoint(z)
    if disp:
        return out
    least = jnp.where(least == 0, eps, least)
    error = jnp.minimum(1, jnp.maximum(eps, eps / least * jnp.linalg.norm(jnp.triu(t, 1), 1)))
    bad = ~jnp.isfinite(out).all()
    return out, jnp.where(bad, jnp.inf, error)


@jitted("polar", static=("side",))
def _polar(a, side):
    w, _, vh = jnp.linalg.svd(a, full_matrices=False)
    u = w @ vh
    p = adjoint(u) @ a if side == "right" else a @ adjoint(u)
    return u, (p + adjoint(p)) / 2


def polar(a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None, max_iterations: int | None = None) -> tuple[Array, Array]:
    """The polar decomposition: ``a == u @ p``, or ``p @ u``, with p Hermitian and positive
    semidefinite.

    Args:
        a: shape (..., m, n).
        side: the side of p: "right" (n, n) or "left" (m, m).
        method: "qdwh" or "svd"; singular values serve both.
        eps, max_iterations: without effect: the method does not iterate.

    Returns:
        (u, p): u (m, n) with orthonormal columns, or rows.

    Raises:
        ValueError: side or method is another word, or a has fewer than two axes.

    Higham, Functions of Matrices (2008), chapter 8.

    >>> polar(jnp.array([[2.0, 0.0], [0.0, 3.0]]))[1]
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if side not in ("right", "left"):
        raise ValueError("The argument `side` must be either 'right' or 'left'.")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method}.")
    _lax.warn_inert("polar", eps=eps, max_iterations=max_iterations)
    (a,) = floating("polar", a)
    if a.ndim < 2:
        raise ValueError("The input `a` must be a 2-D array, or several.")
    return _polar(a, side=side)
