"""Polynomials as vectors of coefficients, highest power first.

Invariant: only `roots` and `polyfit` need a decomposition, from `linalg` and `lax.linalg`.

    >>> jnp.polyval(jnp.array([1, 2, 3]), 2)
    Array(11, dtype=int32)
"""

from __future__ import annotations

import contextlib
import operator
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from ... import _core
from ..._base.config import enable_x64
from ..._base.dtypes import finfo, to_inexact
from ..._base.shapes import common_shape
from ..._core import bind
from ...lax import scan
from .. import linalg
from .._creation.filled import full_like, ones, zeros
from .._creation.matrices import diag, vander
from .._creation.ranges import arange
from .._indexing.selecting import where
from .._manipulation.inserting import trim_zeros
from .._manipulation.joining import concatenate, stack
from .._manipulation.rearranging import roll
from .._manipulation.shaping import atleast_1d
from .._math.arithmetic import absolute
from .._math.exponential import sqrt
from .._math.operators import add, multiply, negative
from .._products.convolving import convolve
from .._products.products import dot
from .._reductions import plain as _reductions
from .._sorting.sorting import argsort
from .._support.arguments import as_array, check_arraylike, concrete_or_error, constant, convert, jitted, ndim_of

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


@jitted("polyval", static=("unroll",))
def _polyval(p, x, unroll):
    p, x = _core.promote_dtypes(p, x)
    shape = common_shape(p.shape[1:], x.shape)
    y = full_like(x, 0, shape=shape, dtype=x.dtype)
    out, _ = scan(lambda y, c: (add(multiply(y, x), c), None), y, p, unroll=unroll)
    return out


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The polynomial with coefficients p at x, by Horner's rule.

    Args:
        p: coefficients, the highest power first: an array of rank 1 or more whose first axis is the
          powers.
        x: array of numbers.
        unroll: coefficients per step of the loop.

    Returns:
        Array of x's shape and the promoted dtype.

    >>> jnp.polyval(jnp.array([1, 0, 2]), 3)
    Array(11, dtype=int32)
    """
    check_arraylike("polyval", p, x)
    return _polyval(_core.asarray(p), _core.asarray(x), unroll=unroll)


@jitted("polyadd")
def _polyadd(a1, a2):
    a1, a2 = _core.promote_dtypes(a1, a2)
    if a2.shape[0] > a1.shape[0]:
        a1, a2 = a2, a1
    n, k = a1.shape[0], a2.shape[0]
    if not k:
        return a1
    low = a1 if n == k else a1[n - k :]
    low = bind("add", low, _core.broadcast_to(a2, low.shape))
    return low if n == k else concatenate([a1[: n - k], low])


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Args:
        a1, a2: vectors of coefficients, the highest power first.

    Returns:
        Vector of the longer's size, of the promoted dtype.

    Raises:
        TypeError: for bool.

    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([3]))
    Array([1, 5], dtype=int32)
    """
    check_arraylike("polyadd", a1, a2)
    return _polyadd(_core.asarray(a1), _core.asarray(a2))


@jitted("polysub")
def _polysub(a1, a2):
    a1, a2 = _core.promote_dtypes(a1, a2)
    return polyadd(a1, negative(a2))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Args:
        a1, a2: vectors of coefficients, the highest power first.

    Returns:
        Vector of the longer's size, of the promoted dtype.

    Raises:
        TypeError: for bool.

    >>> jnp.polysub(jnp.array([1, 2]), jnp.array([3]))
    Array([ 1, -1], dtype=int32)
    """
    check_arraylike("polysub", a1, a2)
    return _polysub(_core.asarray(a1), _core.asarray(a2))


def _trimmed(*arrays):
    return [trim_zeros(a, trim="f") if a.size > 1 else a for a in arrays]


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
        a1, a2: vectors of coefficients, the highest power first.
        trim_leading_zeros: bool; drop leading zeros first, as numpy does; the values must then be
          known.

    Returns:
        Vector of the promoted dtype made float.

    >>> jnp.polymul(jnp.array([1, 1]), jnp.array([1, -1]))
    Array([ 1.,  0., -1.], dtype=float32)
    """
    check_arraylike("polymul", a1, a2)
    if not ndim_of(a1) or not ndim_of(a2):
        raise TypeError("len() of unsized object")
    a1, a2 = _core.promote_dtypes_inexact(a1, a2)
    if trim_leading_zeros and (a1.shape[0] > 1 or a2.shape[0] > 1):
        a1, a2 = _trimmed(a1, a2)
    if a1.shape[0] == 0:
        a1 = _core.asarray(np.zeros(1, a2.dtype))
    if a2.shape[0] == 0:
        a2 = _core.asarray(np.zeros(1, a1.dtype))
    return convolve(a1, a2, mode="full")


@jitted("polydiv")
def _polydiv(u, v):
    u, v = _core.promote_dtypes_inexact(u, v)
    m, n = u.shape[0] - 1, v.shape[0] - 1
    quotient = zeros(max(m - n + 1, 1), u.dtype)
    for k in range(m - n + 1):
        d = bind("div", u[k], v[0])
        quotient = quotient.at[k].set(d)
        u = u.at[k : k + n + 1].add(-d * v)
    return quotient, u


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """(quotient, remainder) of two polynomials.

    Args:
        u, v: vectors of coefficients, the highest power first.
        trim_leading_zeros: of the remainder; the values must then be known.

    Returns:
        (quotient, remainder): vectors of the promoted dtype made float.

    >>> jnp.polydiv(jnp.array([1.0, 0.0, -1.0]), jnp.array([1.0, 1.0]))
    (Array([ 1., -1.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    check_arraylike("polydiv", u, v)
    quotient, rest = _polydiv(_core.asarray(u), _core.asarray(v))
    if trim_leading_zeros:
        rest = trim_zeros(rest, trim="f")
    return quotient, rest


def _order(name, m):
    m = operator.index(concrete_or_error(m, f"'m' argument of jnp.{name}")[()] if hasattr(m, "ndim") else m)
    if m < 0:
        raise ValueError("Order of derivative must be positive" if name == "polyder" else "Order of integral must be positive (see polyder)")
    return m


@jitted("polyder", static=("m",))
def _polyder(p, m):
    n = max(p.shape[0] - m, 0)
    factors = np.ones(n)
    for k in range(m):
        factors = factors * (np.arange(n)[::-1] + 1 + k)
    left = p[:-m]
    return bind("mul", left, convert(np.broadcast_to(factors, np.broadcast_shapes(factors.shape, left.shape)), p.dtype))


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The m-th derivative of a polynomial.

    Args:
        p: vector of coefficients, the highest power first.
        m: int, the order.

    Returns:
        Vector of m elements less, of p's dtype made float.

    Raises:
        ValueError: for negative m.

    >>> jnp.polyder(jnp.array([1, 2, 3]))
    Array([2., 2.], dtype=float32)
    """
    check_arraylike("polyder", p)
    m = _order("polyder", m)
    (p,) = _core.promote_dtypes_inexact(p)
    return p if m == 0 else _polyder(p, m=m)


@jitted("polyint", static=("m",))
def _polyint(p, k, m):
    p, k = _core.promote_dtypes_inexact(p, k)
    if m == 0:
        return p
    k = _core.broadcast_to(k, (m,)) if k.ndim == 0 or k.shape[0] == 1 else k
    if tuple(k.shape) != (m,):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    n = p.shape[0]
    # Term i of the result is divided by the m factors that integrating it m times brings.
    divisors = np.ones(n + m)
    powers = np.arange(n + m)[::-1]
    for step in range(m):
        divisors = divisors * np.where(powers - step > 0, powers - step, 1)
    out = concatenate([p, k])
    return bind("div", out, convert(np.asarray(divisors), p.dtype))


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The m-th integral of a polynomial, with integration constants k (0).

    Args:
        p: vector of coefficients, the highest power first.
        m: int, the order.
        k: scalar or vector of m integration constants; None: 0.

    Returns:
        Vector of m elements more, of the promoted dtype made float.

    Raises:
        ValueError: for negative m, or another number of constants.

    >>> jnp.polyint(jnp.array([2, 2]))
    Array([1., 2., 0.], dtype=float32)
    """
    m = _order("polyint", m)
    k = 0 if k is None else k
    check_arraylike("polyint", p, k)
    return _polyint(_core.asarray(p), _core.asarray(k), m=m)


@jitted("poly")
def _poly(seq):
    (seq,) = _core.promote_dtypes_inexact(seq)
    out = ones((1,), seq.dtype)
    for k in range(seq.shape[0]):
        out = convolve(out, stack([_core.asarray(constant(1, seq.dtype)), -seq[k]]), mode="full")
    return out


def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with these zeros, or of a square matrix's characteristic
    polynomial.

    Args:
        seq_of_zeros: vector, or a square matrix.

    Returns:
        Vector of n + 1 coefficients, the highest power first, of the dtype made float.

    Raises:
        ValueError: for other shapes.

    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    seq = atleast_1d(as_array("poly", seq_of_zeros))
    if seq.ndim == 2 and seq.shape[0] == seq.shape[1] and seq.shape[0]:
        seq = linalg.eigvals(seq)
    if seq.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if seq.shape[0] == 0:
        return _core.asarray(constant(1, to_inexact(seq.dtype)))
    return _poly(seq)


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial, as eigenvalues of its companion matrix.

    Args:
        p: vector of coefficients, the highest power first.
        strip_zeros: bool; drop leading zeros; the values must then be known.

    Returns:
        Vector of complex numbers.

    Raises:
        ValueError: for other ranks.

    >>> jnp.roots(jnp.array([1.0, -3.0, 2.0])).round(3)
    Array([2.+0.j, 1.+0.j], dtype=complex64)
    """
    (p,) = _core.promote_dtypes_inexact(as_array("roots", p))
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    result = np.dtype(np.complex128 if p.dtype in (np.float64, np.complex128) else np.complex64)
    if p.shape[0] < 2:
        return zeros(0, result)
    if not strip_zeros:
        return _roots_with_zeros(p)
    values = concrete_or_error(p, "The error arose in the jnp.roots function with strip_zeros=True; use strip_zeros=False under jit.")
    nonzero = np.nonzero(values)[0]
    if nonzero.size == 0:
        return zeros(0, result)
    trailing = values.shape[0] - 1 - int(nonzero[-1])
    p = p[int(nonzero[0]) : int(nonzero[-1]) + 1]
    if p.shape[0] < 2:
        return zeros(trailing, result)
    out = linalg.eigvals(_companion(p, ones(p.shape[0] - 2, p.dtype)))
    return concatenate([out, zeros(trailing, out.dtype)]) if trailing else out


def _companion(p, below):
    return diag(below, -1).at[0, :].set(-p[1:] / p[0])


@jitted("roots")
def _roots_with_zeros(p):
    # Leading zeros become trailing ones. They are cut off from the companion matrix, so that their roots are exactly 0: the smallest
    # ones, which are put last and are nan.
    n = p.shape[0]
    nothing = _reductions.all(p == 0)
    leading = where(nothing, n, _reductions.argmin(p == 0))
    p = roll(where(nothing, 1, p), -leading)
    found = linalg.eigvals(_companion(p, (arange(n - 2) < n - 2 - leading).astype(p.dtype)))
    smallest = argsort(argsort(absolute(found))) < leading
    found = found[argsort(where(smallest, 2, found == 0))]
    return where(arange(n - 1) < n - 1 - leading, found, constant(complex(np.nan, np.nan), found.dtype))


@overload
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: Literal[False] = False, w: ArrayLike | None = None, cov: Literal[False] = False
) -> Array: ...


@overload
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: Literal[False] = False, w: ArrayLike | None = None, *, cov: Literal[True]
) -> tuple[Array, Array]: ...


@overload
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False, w: ArrayLike | None = None, cov: bool = False
) -> Array | tuple[Array, ...]: ...


def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False, w: ArrayLike | None = None, cov: bool = False
) -> Array | tuple[Array, ...]:
    """The polynomial nearest to points (x, y) in the least-squares sense.

    Args:
        x: vector of coordinates.
        y: vector, or a matrix with a column for each fit.
        deg: int, the degree.
        rcond: singular values below this times the largest count as 0; None: x.size times the
          precision.
        full: bool; also return residuals, rank, singular values and rcond.
        w: vector: weights of the differences; None: 1.
        cov: bool; also return the covariance of the coefficients, scaled by the residuals;
          "unscaled": not scaled.

    Returns:
        Array of deg + 1 coefficients, the highest power first; a tuple with `full` or `cov`.

    Raises:
        ValueError: for a negative degree, or too few points for a scaled covariance.
        TypeError: for x, y or w of other ranks or sizes.

    >>> jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(3)
    Array([2., 1.], dtype=float32)
    """
    check_arraylike("polyfit", x, y)
    deg = int(deg)
    if deg < 0:
        raise ValueError("expected deg >= 0")
    x, y = _core.promote_dtypes_inexact(x, y)
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    if rcond is None:
        rcond = x.shape[0] * float(finfo(x.dtype).eps)
    if w is not None:
        w = as_array("polyfit", w)
        if w.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if w.shape[0] != y.shape[0]:
            raise TypeError("expected w and y to have the same length")
    # As numpy, in double precision, to which powers of single precision are not rounded.
    wide = {"float32": "float64", "complex64": "complex128"}.get(x.dtype.name)
    with contextlib.nullcontext() if wide is None else enable_x64(True):
        lhs, rhs = (vander(x, deg + 1), y) if wide is None else (vander(x.astype(wide), deg + 1), y.astype(wide))
        if w is not None:
            lhs = lhs * w[:, None]
            rhs = rhs * (w[:, None] if rhs.ndim == 2 else w)
        # Columns of unit length keep the problem well scaled.
        scale = sqrt(_reductions.sum(lhs * lhs, axis=0))
        unit = lhs / scale[None, :]
        c, residuals, rank, s = linalg.lstsq(unit, rhs, rcond)
        c = c / (scale[:, None] if c.ndim == 2 else scale)
        if wide is not None:
            c, unit, scale = (v.astype(x.dtype) for v in (c, unit, scale))
            residuals, s = (v.astype(finfo(x.dtype).dtype) for v in (residuals, s))
    if full:
        return c, residuals, rank, s, _core.asarray(rcond)
    if cov:
        base = linalg.inv(dot(unit.T, unit)) / (scale[:, None] * scale[None, :])
        if isinstance(cov, str) and cov == "unscaled":
            factor = 1
        else:
            if x.shape[0] <= deg + 1:
                raise ValueError("the number of data points must exceed order to scale the covariance matrix")
            factor = residuals / (x.shape[0] - deg - 1)
        return c, base * factor if y.ndim == 1 else base[:, :, None] * factor
    return c
