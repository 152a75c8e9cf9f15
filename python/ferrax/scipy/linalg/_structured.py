"""Matrices of given structure: toeplitz and related ones, companions, and those with names.

Invariant: leading axes of their vectors are batch axes; numpy computes values that depend only on
sizes.

    >>> toeplitz(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 1, 2],
           [3, 2, 1]], dtype=int32)
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..._base.dtypes import canonicalize_dtype, requested
from ..._base.shapes import common_shape
from ...numpy._support.arguments import check_arraylike, check_promotion

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike


def block_diag(*arrs: ArrayLike) -> Array:
    """Matrices (or vectors as rows, or numbers) along the diagonal of one, zeros elsewhere.

    Args:
        *arrs: matrices, vectors (as rows) or numbers.

    Returns:
        Matrix of the promoted dtype.

    Raises:
        ValueError: for more than two axes.

    >>> block_diag(jnp.ones((1, 2)), 3.0)
    Array([[1., 1., 0.],
           [0., 0., 3.]], dtype=float32)
    """
    if len(arrs) == 0:
        arrs = (jnp.zeros((1, 0)),)
    check_arraylike("block_diag", *arrs)
    arrs = [jnp.asarray(a) for a in arrs]
    for i, a in enumerate(arrs):
        if a.ndim > 2:
            raise ValueError(f"Arguments to jax.scipy.linalg.block_diag must have at most 2 dimensions, got {a.aval.str_short()} at argument {i}.")
    check_promotion(*arrs)
    dtype = jnp.result_type(*arrs)
    arrs = [jnp.atleast_2d(a).astype(dtype) for a in arrs]
    out = jnp.zeros((sum(a.shape[0] for a in arrs), sum(a.shape[1] for a in arrs)), dtype)
    i = j = 0
    for a in arrs:
        m, n = a.shape
        if a.size:
            out = out.at[i : i + m, j : j + n].set(a)
        i, j = i + m, j + n
    return out


def _vectors(name, *xs):
    check_arraylike(name, *xs)
    return [jnp.atleast_1d(jnp.asarray(x)) for x in xs]


def _paired(x, y):
    """Both with one dtype and one set of leading axes."""
    check_promotion(x, y)
    dtype = jnp.result_type(x, y)
    lead = common_shape(x.shape[:-1], y.shape[:-1])
    return (jnp.broadcast_to(v.astype(dtype), (*lead, v.shape[-1])) for v in (x, y))


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices constant along diagonals.

    Args:
        c: first columns, shape (..., m).
        r: first rows, shape (..., n), whose first elements are not read; None: c's conjugate.

    Returns:
        Array of shape (..., m, n).

    >>> toeplitz(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 1, 2],
           [3, 2, 1]], dtype=int32)
    """
    (c,) = _vectors("toeplitz", c)
    r = c.conj() if r is None else _vectors("toeplitz", r)[0]
    c, r = _paired(c, r)
    m, n = c.shape[-1], r.shape[-1]
    both = jnp.concatenate([jnp.flip(r, -1)[..., : max(n - 1, 0)], c], axis=-1)
    return jnp.take(both, np.arange(m)[:, None] - np.arange(n)[None, :] + max(n - 1, 0), axis=-1)


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices constant along the other diagonals.

    Args:
        c: first columns, shape (..., m).
        r: last rows, shape (..., n), whose first elements are not read; None: zeros.

    Returns:
        Array of shape (..., m, n).

    >>> hankel(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 3, 0],
           [3, 0, 0]], dtype=int32)
    """
    (c,) = _vectors("hankel", c)
    r = jnp.zeros_like(c) if r is None else _vectors("hankel", r)[0]
    c, r = _paired(c, r)
    both = jnp.concatenate([c, r[..., 1:]], axis=-1)
    return jnp.take(both, np.arange(c.shape[-1])[:, None] + np.arange(r.shape[-1])[None, :], axis=-1)


def circulant(c: ArrayLike) -> Array:
    """Matrices whose columns are c, each moved down by one more.

    Args:
        c: shape (..., n).

    Returns:
        Array of shape (..., n, n).

    >>> circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    (c,) = _vectors("circulant", c)
    n = c.shape[-1]
    return jnp.take(c, (np.arange(n)[:, None] - np.arange(n)[None, :]) % max(n, 1), axis=-1)


def companion(a: ArrayLike) -> Array:
    """The companion matrices of polynomials.

    Args:
        a: coefficients, the highest power first, shape (..., n).

    Returns:
        Array of shape (..., n - 1, n - 1).

    Raises:
        ValueError: for n < 2.

    >>> companion(jnp.array([1.0, 2.0, 3.0]))
    Array([[-2., -3.],
           [ 1.,  0.]], dtype=float32)
    """
    (a,) = _vectors("companion", a)
    n = a.shape[-1]
    if n < 2:
        raise ValueError(f"The length of `a` along the last axis must be at least 2; got shape {tuple(a.shape)}.")
    first = -(a[..., 1:] / a[..., :1])
    below = np.eye(n - 1, k=-1)[1:]
    rest = jnp.broadcast_to(jnp.asarray(below, first.dtype), (*first.shape[:-1], n - 2, n - 1))
    return jnp.concatenate([first[..., None, :], rest], axis=-2)


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix whose product with a vector of n elements is their convolution with a (..., m).

    Args:
        a: vectors.
        n: how many columns.
        mode: which rows: "full", "same" or "valid", as numpy.convolve has them.

    Returns:
        Array of shape (..., rows, n).

    Raises:
        ValueError: n is not positive, a is empty, or the mode is not known.

    >>> convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    (a,) = _vectors("convolution_matrix", a)
    n = operator.index(n)
    if n <= 0:
        raise ValueError(f"n must be a positive integer; got {n}.")
    m = a.shape[-1]
    if m == 0:
        raise ValueError("len(a) must be at least 1.")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    zeros = jnp.zeros((*a.shape[:-1], n - 1), a.dtype)
    column = jnp.concatenate([a, zeros], axis=-1)
    full = toeplitz(column, jnp.zeros((*a.shape[:-1], n), a.dtype))
    if mode == "full":
        return full
    if mode == "valid":
        low, rows = min(m, n) - 1, max(m, n) - min(m, n) + 1
    else:
        rows = max(m, n)
        low = (m + n - 1 - rows) // 2
    return full[..., low : low + rows, :]


def _order(name, n):
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"{name}: the size must not be negative, got {n}")
    return n


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform.

    Args:
        n: int, the size.
        scale: the divisor of the matrix: None, "sqrtn" (unitary) or "n".
        dtype: complex dtype; None: the default one.

    Returns:
        Array of shape (n, n).

    Raises:
        ValueError: for another scale, and for a real dtype.

    >>> dft(2).shape
    (2, 2)
    """
    n = _order("dft", n)
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    dtype = requested("dft", dtype, complex)
    if dtype.kind != "c":
        raise ValueError(f"dtype must be a complex floating-point type; got {dtype}.")
    # powers of the root reduced first, so that the angle is exact
    power = np.arange(n)[:, None] * np.arange(n)[None, :] % max(n, 1)
    out = np.exp(-2j * np.pi * power / max(n, 1)) * {None: 1.0, "sqrtn": 1 / math.sqrt(max(n, 1)), "n": 1 / max(n, 1)}[scale]
    return jnp.asarray(out.astype(dtype))


def fiedler(a: ArrayLike) -> Array:
    """Matrices of the distances ``abs(a[i] - a[j])``.

    Args:
        a: shape (..., n).

    Returns:
        Array of shape (..., n, n).

    >>> fiedler(jnp.array([1, 3]))
    Array([[0, 2],
           [2, 0]], dtype=int32)
    """
    (a,) = _vectors("fiedler", a)
    return abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """Pentadiagonal matrices with the eigenvalues of `companion`, for coefficients a (..., n).

    Fiedler, Linear Algebra Appl. 372 (2003).

    Args:
        a: coefficients, the highest power first, shape (..., n).

    Returns:
        Array of shape (..., n - 1, n - 1).

    Raises:
        ValueError: there are no coefficients.

    >>> fiedler_companion(jnp.array([1.0, 2.0, 3.0]))
    Array([[-2., -3.],
           [ 1.,  0.]], dtype=float32)
    """
    (a,) = _vectors("fiedler_companion", a)
    n = a.shape[-1] - 1
    if n < 0:
        raise ValueError(f"fiedler_companion requires the last axis of 'a' to have nonzero length, but got an array of shape {tuple(a.shape)}.")
    if n == 0:
        return jnp.zeros((*a.shape[:-1], 0, 0), (a[..., :0] / 1).dtype)
    c = a / a[..., :1]
    if n == 1:
        return -c[..., 1:, None]
    out = jnp.zeros((*a.shape[:-1], n, n), c.dtype)
    out = out.at[..., np.arange(0, n - 2, 2), np.arange(2, n, 2)].set(1)
    out = out.at[..., np.arange(1, n - 2, 2) + 2, np.arange(1, n - 2, 2)].set(1) if n > 3 else out
    rows = np.arange(0, n - 1, 2)
    out = out.at[..., rows, rows + 1].set(-c[..., rows + 2])
    columns = np.arange(1, n - 1, 2)
    out = out.at[..., columns + 1, columns].set(-c[..., columns + 2])
    return out.at[..., 0, 0].set(-c[..., 1]).at[..., 1, 0].set(1)


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Sylvester's matrix (n, n) of ones and minus ones with orthogonal rows.

    Args:
        n: int, a power of 2.
        dtype: dtype.

    Returns:
        Array of shape (n, n).

    Raises:
        ValueError: unless n is a power of 2.

    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = operator.index(n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    signs = [[1 - 2 * ((i & j).bit_count() % 2) for j in range(n)] for i in range(n)]
    return jnp.asarray(np.array(signs), dtype)


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's orthogonal matrix: (n - 1, n), or (n, n) with the row of equal elements.

    Args:
        n: int, 1 or more.
        full: with the row of equal elements.

    Returns:
        Array of shape (n - 1, n), or (n, n).

    Raises:
        ValueError: for n < 1.

    >>> helmert(2).shape
    (1, 2)
    """
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    out = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    out[0] = 1
    out /= np.sqrt((out * out).sum(axis=1))[:, None]
    return jnp.asarray((out if full else out[1:]).astype(canonicalize_dtype(float)))


def hilbert(n: int) -> Array:
    """Hilbert's matrix (n, n): ``1 / (i + j + 1)``.

    Args:
        n: int, the size.

    Returns:
        Array of shape (n, n).

    >>> hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    k = np.arange(_order("hilbert", n))
    return jnp.asarray((1.0 / (k[:, None] + k[None, :] + 1)).astype(canonicalize_dtype(float)))


def invhilbert(n: int) -> Array:
    """The inverse of Hilbert's matrix (n, n), of whole numbers, rounded once.

    Args:
        n: int, the size.

    Returns:
        Array of shape (n, n).

    >>> invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    n = _order("invhilbert", n)
    c = math.comb
    element = lambda i, j: (-1) ** (i + j) * (i + j + 1) * c(n + i, n - j - 1) * c(n + j, n - i - 1) * c(i + j, i) ** 2
    out = np.array([[float(element(i, j)) for j in range(n)] for i in range(n)]).reshape(n, n)
    return jnp.asarray(out.astype(canonicalize_dtype(float)))


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie's matrices: fecundities in the first row, survival below the diagonal.

    Args:
        f: fecundities, shape (..., n).
        s: survival, shape (..., n - 1).

    Returns:
        Array of shape (..., n, n).

    Raises:
        ValueError: for other lengths, and for fewer than two classes.

    >>> leslie(jnp.array([1.0, 2.0]), jnp.array([0.5]))
    Array([[1. , 2. ],
           [0.5, 0. ]], dtype=float32)
    """
    f, s = _vectors("leslie", f, s)
    if f.shape[-1] < 2:
        raise ValueError(f"The length of f along the last axis must be at least 2; got shape {tuple(f.shape)}.")
    if s.shape[-1] != f.shape[-1] - 1:
        raise ValueError(
            "Incorrect lengths for f and s. The length of s along the last axis must be one less than the length of f; "
            f"got f shape {tuple(f.shape)} and s shape {tuple(s.shape)}."
        )
    f, s = _paired(f, s)
    n = f.shape[-1]
    out = jnp.zeros((*f.shape[:-1], n, n), f.dtype).at[..., 0, :].set(f)
    return out.at[..., np.arange(1, n), np.arange(n - 1)].set(s)


def _pascal(n, kind):
    low = np.array([[math.comb(i, j) for j in range(n)] for i in range(n)], dtype=object).reshape(n, n)
    if kind in (None, "symmetric"):
        return low.dot(low.T) if n else low
    return low if kind == "lower" else low.T


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's matrix of binomial coefficients.

    Args:
        n: int, the size.
        kind: "symmetric" or None, "lower" or "upper".

    Returns:
        Array of shape (n, n).

    Raises:
        ValueError: for another kind.

    >>> pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(f"Expected kind to be on of: ['symmetric', 'lower', 'upper']; got {kind}")
    return jnp.asarray(_pascal(_order("pascal", n), kind).astype(float).astype(canonicalize_dtype(float)))


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal`, of whole numbers, rounded once.

    Args:
        n: int, the size.
        kind: "symmetric" or None, "lower" or "upper".

    Returns:
        Array of shape (n, n).

    Raises:
        ValueError: for another kind.

    >>> invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(f"Expected kind to be one of: ['symmetric', 'lower', 'upper']; got {kind}")
    n = _order("invpascal", n)
    signs = np.array([[(-1) ** (i + j) for j in range(n)] for i in range(n)], dtype=object).reshape(n, n)
    if kind in ("lower", "upper"):
        out = signs * _pascal(n, kind)
    else:
        low = _pascal(n, "lower") * signs
        out = low.T.dot(low) if n else low
    return jnp.asarray(out.astype(float).astype(canonicalize_dtype(float)))
