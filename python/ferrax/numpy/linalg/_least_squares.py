"""Least squares, in double precision whatever the operands', as numpy computes them.

Invariant: the rank is that of the given numbers, and not of what rounding in their precision makes
of them.

    >>> jnp.linalg.lstsq(jnp.array([[1.0, 0.0], [0.0, 2.0]]), jnp.array([1.0, 2.0]))[0]
    Array([1., 1.], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.config import enable_x64
from ..._base.dtypes import float0
from ..._transforms.grad import jvp
from ...custom_derivatives import custom_jvp
from ...lax import stop_gradient
from .._creation import filled as _filling
from .._indexing.selecting import where
from .._reductions import plain as _reductions
from .._support.arguments import jitted
from ._factorizations import floating, svd
from ._norms import norm
from ._solving import _pinv_of, _wide

if TYPE_CHECKING:
    from ...typing import ArrayLike
    from .._support.arguments import Array


def _wide_lstsq(a, b, rcond):
    """(x, squared norms of the residuals, rank, singular values) in double precision, of which 64
    bits have to be on.
    """
    a, b = (x.astype(_wide(x.dtype)) for x in (a, b))
    s = svd(a, compute_uv=False)
    rtol = where(rcond < 0, float(np.finfo(np.float64).eps), rcond.astype(np.float64))
    rank = _reductions.sum((s > 0) & (s >= rtol * s[0]), dtype=np.int32)
    x = _pinv_of(a, stop_gradient(rtol)) @ b
    return x, norm(b - a @ x, axis=0) ** 2, rank, s


def _narrowed(out, dtype):
    x, squares, rank, s = out
    real = np.finfo(dtype).dtype
    return x.astype(dtype), squares.astype(real), rank, s.astype(real)


@custom_jvp
def _in_double(a, b, rcond):
    """As numpy: of single precision too, the rank is that of the given numbers, and not of what
    rounding makes of them.
    """
    with enable_x64(True):
        return _narrowed(_wide_lstsq(a, b, rcond), a.dtype)


@_in_double.defjvp
def _in_double_rule(primals, tangents):
    (a, b, rcond), (da, db, _) = primals, tangents
    with enable_x64(True):
        out, dout = jvp(lambda a, b: _wide_lstsq(a, b, rcond), (a, b), (da, db))
        dx, dsquares, _, ds = dout
        real = np.finfo(a.dtype).dtype
        none = np.zeros(out[2].shape, float0)
        return _narrowed(out, a.dtype), (dx.astype(a.dtype), dsquares.astype(real), none, ds.astype(real))


@jitted("lstsq", static=("numpy_resid",))
def _lstsq(a, b, rcond, numpy_resid):
    a, b = _core.promote_dtypes_inexact(a, b)
    m, n = a.shape
    vector = b.ndim == 1
    b = b[:, None] if vector else b
    if a.size == 0:
        s = _filling.zeros(0, np.finfo(a.dtype).dtype)
        rank, x = _core.asarray(np.int32(0)), _filling.zeros((n, b.shape[1]), a.dtype)
        squares = norm(b, axis=0) ** 2
    else:
        x, squares, rank, s = _in_double(a, b, stop_gradient(rcond))
    if not numpy_resid:
        residuals = squares
    elif m > n:
        residuals = where(rank == n, squares, np.nan)
    else:
        residuals = _filling.zeros(0, s.dtype)
    return x[:, 0] if vector else x, residuals, rank, s


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False) -> tuple[Array, Array, Array, Array]:
    """The x of least norm that makes ``norm(b - a @ x)`` least.

    Args:
        a: a matrix (m, n).
        b: a vector (m,), or a matrix (m, k).
        rcond: singular values below rcond times the largest count as zero; by default max(m, n)
          eps, and eps where it is negative. It is the eps of double precision, in which all is
          computed.
        numpy_resid: residuals as numpy gives them: none where the rank is not n, or m <= n.

    Returns:
        (x, residuals, rank, s): the solution, squared norms of the residuals, and the singular
        values of a.

    Raises:
        ValueError: the numbers of rows differ.
        TypeError: a does not have two axes, or b does not have one or two.

    >>> lstsq(jnp.array([[1.0, 0.0], [0.0, 2.0]]), jnp.array([1.0, 2.0]))[0]
    Array([1., 1.], dtype=float32)
    """
    a, b = floating("lstsq", a, b)
    if a.ndim != 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim not in (1, 2):
        raise TypeError(f"{b.ndim}-dimensional array given. Array must be one or two-dimensional")
    if a.shape[0] != b.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match")
    real = np.finfo(a.dtype)
    rcond = float(np.finfo(np.float64).eps) * max(a.shape) if rcond is None else rcond
    x, residuals, rank, s = _lstsq(a, b, _core.asarray(rcond, real.dtype), numpy_resid=bool(numpy_resid))
    if numpy_resid and residuals.size and not isinstance(rank, _core.Tracer) and int(rank) < a.shape[1]:
        residuals = _filling.zeros(0, s.dtype)
    return x, residuals, rank, s
