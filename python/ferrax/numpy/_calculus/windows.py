"""Window functions.

Invariant: M points, symmetric, of the default float.

    >>> jnp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import canonicalize_dtype
from ..._base.shapes import whole
from ..._core import bind
from .._creation.filled import ones
from .._math.exponential import i0
from .._support import sections
from .._support.arguments import constant

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


def _points(M):
    M = whole(M)
    dtype = canonicalize_dtype(float)
    if M <= 1:
        return M, dtype, ones(max(M, 0), dtype)
    return M, dtype, bind("iota", dtype=dtype, shape=(M,), dimension=0)


@sections.window
def bartlett(M: int) -> Array:
    """The triangular window with zeros at its ends.

    >>> jnp.bartlett(3)
    Array([0., 1., 0.], dtype=float32)
    """
    M, dtype, n = _points(M)
    c = lambda v: constant(v, dtype)
    if M <= 1:
        return n
    distance = bind("abs", bind("sub", bind("add", bind("mul", c(2), n), c(1)), c(M)))
    return bind("sub", c(1), bind("div", distance, c(M - 1)))


def _cosine(n, k, M, dtype):
    c = lambda v: constant(v, dtype)
    return bind("cos", bind("div", bind("mul", c(2 * k * np.pi), n), c(M - 1)))


@sections.window
def blackman(M: int) -> Array:
    """0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1)).

    >>> jnp.blackman(3).round(3)
    Array([-0.,  1., -0.], dtype=float32)
    """
    M, dtype, n = _points(M)
    c = lambda v: constant(v, dtype)
    if M <= 1:
        return n
    first = bind("sub", c(0.42), bind("mul", c(0.5), _cosine(n, 1, M, dtype)))
    return bind("add", first, bind("mul", c(0.08), _cosine(n, 2, M, dtype)))


@sections.window
def hamming(M: int) -> Array:
    """0.54 - 0.46 cos(2 pi n / (M - 1)).

    >>> jnp.hamming(3).round(3)
    Array([0.08, 1.  , 0.08], dtype=float32)
    """
    M, dtype, n = _points(M)
    c = lambda v: constant(v, dtype)
    return n if M <= 1 else bind("sub", c(0.54), bind("mul", c(0.46), _cosine(n, 1, M, dtype)))


@sections.window
def hanning(M: int) -> Array:
    """0.5 (1 - cos(2 pi n / (M - 1))).

    >>> jnp.hanning(3)
    Array([0., 1., 0.], dtype=float32)
    """
    M, dtype, n = _points(M)
    c = lambda v: constant(v, dtype)
    return n if M <= 1 else bind("mul", c(0.5), bind("sub", c(1), _cosine(n, 1, M, dtype)))


def kaiser(M: int, beta: ArrayLike) -> Array:
    """I0(beta sqrt(1 - ((n - a) / a) ** 2)) / I0(beta), a = (M - 1) / 2.

    Args:
        M: int, the number of points.
        beta: scalar: how narrow; 0 is the rectangle.

    Returns:
        Vector of float, empty for M < 1.

    >>> jnp.kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    M, dtype, n = _points(M)
    if M <= 1:
        return n
    c = lambda v: constant(v, dtype)
    a = 0.5 * (M - 1)
    x = bind("integer_pow", bind("div", bind("sub", n, c(a)), c(a)), y=2)
    beta_c = c(beta) if isinstance(beta, (int, float)) else bind("convert_element_type", _core.asarray(beta), new_dtype=dtype, weak_type=False)
    top = i0(bind("mul", beta_c, bind("sqrt", bind("sub", c(1), x))))
    bottom = i0(beta)
    return bind(
        "div", top, bottom if bottom.dtype == dtype and not bottom.weak_type else bind("convert_element_type", bottom, new_dtype=dtype, weak_type=False)
    )
