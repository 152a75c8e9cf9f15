"""Matrices made: eye, tri, tril, triu, diagonals, vander.

Invariant: `k` counts diagonals from the main one, upwards; except for `eye` and `tri` it is known
when traced.

    >>> jnp.triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import dtype_of, is_integer, requested
from ..._base.shapes import canonicalize_axis, canonicalize_shape
from ..._core import bind
from ..._sharding.parts import placed
from .._indexing.selecting import where
from .._manipulation.shaping import moveaxis, ravel
from .._math.exponential import power
from .._math.operators import add, multiply
from .._support.arguments import Array, as_array, broadcast_constant, constant, convert, converted, is_arraylike, jitted, ndim_of, scalar_like
from .filled import zeros
from .ranges import arange

if TYPE_CHECKING:
    from ..._core import Device
    from ...sharding import Sharding
    from ...typing import ArrayLike, DTypeLike


def _diagonal_mask(shape, k, compare):
    """Booleans: where row + k is the column ("eq"), or not less than it ("ge")."""
    i32 = np.dtype(np.int32)
    rows = bind("iota", dtype=i32, shape=shape, dimension=0)
    if isinstance(k, Array):
        k = convert(k, i32)
    else:
        # Beyond the corners all diagonals are alike, whatever k fits in.
        k = np.int32(min(max(k, -shape[0] - 1), shape[1] + 1))
    if compare == "eq":
        columns = bind("iota", dtype=i32, shape=shape, dimension=1)
        return bind("eq", bind("add", rows, k), columns)
    rows = bind("add", rows, k)
    return bind("ge", rows, bind("iota", dtype=i32, shape=shape, dimension=1))


def _diagonal_number(k):
    """k as an integer, or as the traced scalar that it is. Raises ValueError for anything else."""
    k = converted(k)
    if isinstance(k, _core.Tracer):
        if is_integer(k.dtype) and k.ndim == 0:
            return k
    elif ndim_of(k) == 0 and is_arraylike(k) and is_integer(dtype_of(k)):
        return operator.index(k)
    raise ValueError(f"k must be a scalar integer; got {k}")


def _sizes(name, N, M):
    sizes = []
    for argument, n in (("N", N), ("M", N if M is None else M)):
        (size,) = canonicalize_shape((n,), f"argument of '{argument}' {name}.")
        if size < 0:
            raise ValueError(f"negative dimensions are not allowed, got {argument}={size}")
        sizes.append(size)
    return tuple(sizes)


def eye(N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike | None = None, *, device: Device | Sharding | None = None) -> Array:
    """Zeros with ones on a diagonal.

    Args:
        N: int, the number of rows.
        M: int, the number of columns; None: N.
        k: int, which diagonal, above (positive) or below.
        dtype: dtype of the result; None: the default float.
        device: where the result lives: a device or a sharding; None: the default device.

    Returns:
        Array of shape (N, M).

    Raises:
        ValueError: for negative sizes.

    >>> jnp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    shape = _sizes("jnp.eye()", N, M)
    dtype = requested("eye", dtype, float)
    out = convert(_diagonal_mask(shape, _diagonal_number(k), "eq"), dtype)
    return placed(out, device)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The [n, n] identity matrix.

    Args:
        n: int, the number of rows and of columns.
        dtype: dtype of the result; None: the default float.

    Returns:
        Array of shape (n, n).

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=requested("identity", dtype, float))


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Zeros with ones on and below a diagonal.

    Args:
        N: int, the number of rows.
        M: int, the number of columns; None: N.
        k: int, which diagonal, above (positive) or below.
        dtype: dtype of the result; None: float32, as in JAX.

    Returns:
        Array of shape (N, M).

    >>> jnp.tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    shape = _sizes("jnp.tri()", N, M)
    return convert(_diagonal_mask(shape, _diagonal_number(k), "ge"), requested("tri", dtype, np.float32))


def _triangle(m, k, lower):
    mask = _diagonal_mask(tuple(m.shape[-2:]), k if lower else k - 1, "ge")
    if m.ndim > 2:
        mask = bind("broadcast_in_dim", mask, shape=tuple(m.shape), broadcast_dimensions=(m.ndim - 2, m.ndim - 1))
    zero = broadcast_constant(constant(0, m.dtype), m.shape)
    return bind("select_n", mask, zero, m) if lower else bind("select_n", mask, m, zero)


@jitted("tril", static=("k",))
def _tril(m, k=0):
    return _triangle(m, k, True)


@jitted("triu", static=("k",))
def _triu(m, k=0):
    return _triangle(m, k, False)


def tril(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros above the k-th diagonal of its last two axes.

    Args:
        m: array of rank 2 or more.
        k: int, which diagonal, above (positive) or below.

    Returns:
        Array of m's shape and dtype.

    Raises:
        ValueError: below rank 2.

    >>> jnp.tril(jnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    m = as_array("tril", m)
    if m.ndim < 2:
        raise ValueError("Argument to jax.numpy.tril must be at least 2D")
    return _tril(m, k=operator.index(k))


def triu(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros below the k-th diagonal of its last two axes.

    Args:
        m: array of rank 2 or more.
        k: int, which diagonal, above (positive) or below.

    Returns:
        Array of m's shape and dtype.

    Raises:
        ValueError: below rank 2.

    >>> jnp.triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    m = as_array("triu", m)
    if m.ndim < 2:
        raise ValueError("Argument to jax.numpy.triu must be at least 2D")
    return _triu(m, k=operator.index(k))


@jitted("diagonal", static=("offset", "axis1", "axis2"))
def _diagonal(a, offset, axis1, axis2):
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    n = max(0, min(a.shape[-2] + min(offset, 0), a.shape[-1] - max(offset, 0)))
    if n == 0:
        offset = 0
    i = bind("iota", dtype=np.dtype(np.int32), shape=(n,), dimension=0)
    j = bind("iota", dtype=np.dtype(np.int32), shape=(n,), dimension=0)
    # One of the two runs from 0, the other from the offset.
    if offset > 0:
        j = bind("add", np.int32(offset), j)
    elif offset < 0:
        i = bind("add", np.int32(-offset), i)
    return a[..., i, j]


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements a[..., i, i + offset] of the two axes, along a last axis.

    Args:
        a: array of rank 2 or more.
        offset: int, which diagonal, above (positive) or below.
        axis1, axis2: int: the two axes.

    Returns:
        Array of a's shape without the two axes and with the diagonal last, of a's dtype.

    Raises:
        ValueError: below rank 2.

    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    a = as_array("diagonal", a)
    if a.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    return _diagonal(a, offset=operator.index(offset), axis1=canonicalize_axis(axis1, a.ndim), axis2=canonicalize_axis(axis2, a.ndim))


@jitted("_diag", static=("k",))
def _diag(v, k):
    if v.ndim == 2:
        return diagonal(v, offset=k)
    zero = scalar_like(0, v)
    n = v.shape[0] + abs(k)
    v = bind("pad", v, zero, padding_config=((max(0, -k), max(0, k), 0),))
    mask = _diagonal_mask((n, n), k, "eq")
    return where(mask, bind("broadcast_in_dim", v, shape=(n, 1), broadcast_dimensions=(0,)), _core.asarray(zero))


def diag(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with v on its k-th diagonal, or the k-th diagonal of a matrix.

    Args:
        v: vector or matrix.
        k: int, which diagonal, above (positive) or below.

    Returns:
        Matrix of size n + |k|, or vector, of v's dtype.

    Raises:
        ValueError: for other ranks.

    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v = as_array("diag", v)
    if v.ndim not in (1, 2):
        raise ValueError("diag input must be 1d or 2d")
    return _diag(v, k=operator.index(k))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with v, flattened, on its k-th diagonal.

    Args:
        v: array; flattened first.
        k: int, which diagonal, above (positive) or below.

    Returns:
        Matrix of size v.size + |k|, of v's dtype.

    >>> jnp.diagflat(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v = ravel(as_array("diagflat", v))
    n = v.shape[0] + abs(k)
    out = zeros(n * n, dtype=v.dtype)
    i = arange(v.shape[0])
    position = add(add(i, max(0, k)), multiply(i if k >= 0 else add(i, -k), n))
    return out.at[position].set(v).reshape(n, n)


@jitted("vander", static=("N", "increasing"))
def _vander(x, N, increasing):
    dtype = x.dtype
    n = x.shape[0] if N is None else N
    exponents = bind("iota", dtype=dtype, shape=(n,), dimension=0)
    if not increasing:
        exponents = bind("sub", constant(n - 1, dtype), exponents)
    return power(x[:, None], exponents[None, :])


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of powers of x: column j is x ** (N - 1 - j), or x ** j if `increasing`.

    Args:
        x: vector.
        N: int, the number of columns; None: x's size.
        increasing: bool; the powers from left to right.

    Returns:
        Array of shape (x.size, N), of x's dtype.

    Raises:
        ValueError: for other ranks and negative N.

    >>> jnp.vander(jnp.array([1, 2, 3]))
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = as_array("vander", x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    N = None if N is None else operator.index(N)
    if N is not None and N < 0:
        raise ValueError("N must be nonnegative")
    return _vander(x, N=N, increasing=bool(increasing))
