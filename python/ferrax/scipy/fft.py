"""Discrete cosine transforms, of type 2, and their inverses.

Invariant: a cosine transform of n numbers is a Fourier transform of the same n numbers in another
order (J. Makhoul, "A fast cosine transform in one and two dimensions", IEEE Trans. ASSP 28, 1980):
the even ones, then the odd ones from the end.

    >>> import ferrax.scipy.fft
    >>> ferrax.scipy.fft.dct(jnp.array([1.0, 2.0, 4.0])).round(3)
    Array([14.   , -5.196,  1.   ], dtype=float32)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from .. import lax
from .._base.dtypes import is_complex, to_inexact
from .._base.shapes import canonicalize_axes, canonicalize_axis
from .._core import Array, bind
from ..numpy._support.arguments import as_array, jitted
from ..numpy.fft._transforms import _fitted

__all__ = ["dct", "dctn", "idct", "idctn"]


def _check(name, type, norm):
    if type != 2:
        raise NotImplementedError("Only DCT type 2 is implemented.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"jax.scipy.fft.{name}: norm={norm!r} is not implemented")


def _real(x):
    """`x` in float32, float64, or their complex kinds."""
    dtype = to_inexact(x.dtype)
    dtype = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
    return x if x.dtype == dtype else bind("convert_element_type", x, new_dtype=dtype, weak_type=False)


def _turns(n, count, dtype, sign):
    """exp(sign pi i k / 2n), k < count."""
    angle = np.arange(count) * (sign * math.pi / (2 * n))
    return (np.cos(angle) + 1j * np.sin(angle)).astype(np.complex64 if dtype == np.float32 else np.complex128)


def _scale(n, dtype):
    """The factors of the cosine transform for `norm="ortho"`."""
    return np.where(np.arange(n) == 0, math.sqrt(1 / (4 * n)), math.sqrt(1 / (2 * n))).astype(dtype)


@jitted("dct", static=("ortho",))
def _cosines(x, ortho):
    """Along the last axis; x real."""
    n = x.shape[-1]
    half = n // 2 + 1
    v = lax.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], x.ndim - 1)
    turned = lax.fft(v, lax.FftType.RFFT, (n,)) * _turns(n, half, x.dtype, -1)
    # y[n - k] is minus the imaginary part
    y = lax.concatenate([2 * turned.real, -2 * turned.imag[..., 1 : n - half + 1][..., ::-1]], x.ndim - 1)
    return y * _scale(n, x.dtype) if ortho else y


@jitted("idct", static=("ortho",))
def _uncosines(y, ortho):
    n = y.shape[-1]
    half = n // 2 + 1
    if ortho:
        y = y / _scale(n, y.dtype)
    zero = lax.full((*y.shape[:-1], 1), 0, y.dtype)
    back = lax.concatenate([zero, y[..., ::-1]], y.ndim - 1)
    spectrum = lax.complex(y[..., :half], -back[..., :half]) * (_turns(n, half, y.dtype, 1) * 0.5)
    v = lax.fft(spectrum, lax.FftType.IRFFT, (n,))
    first = (n + 1) // 2
    out = lax.full(y.shape, 0, y.dtype)
    out = out.at[..., ::2].set(v[..., :first])
    return out.at[..., 1::2].set(v[..., first:][..., ::-1])


def _along(f, x, n, axis, norm):
    """`f` along one axis; of complex numbers, that of their parts."""
    axis = canonicalize_axis(axis, x.ndim)
    if is_complex(x.dtype):
        return lax.complex(_along(f, x.real, n, axis, norm), _along(f, x.imag, n, axis, norm))
    order = [k for k in range(x.ndim) if k != axis] + [axis]
    moved = axis != x.ndim - 1
    x = _real(lax.transpose(x, order) if moved else x)
    if n is not None:
        n = operator.index(n)
        if n < 1:
            raise ValueError(f"Invalid number of data points ({n}) specified")
        x = _fitted(x, (n,))
    if x.size:
        x = f(x, ortho=norm == "ortho")
    return lax.transpose(x, [order.index(k) for k in range(x.ndim)]) if moved else x


def _over(f, x, s, axes, norm):
    if s is not None:
        s = tuple([operator.index(n) for n in ((s,) if hasattr(s, "__index__") else s)])
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(x.ndim)
    axes = canonicalize_axes(axes, x.ndim)
    if s is not None and len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    for k, axis in enumerate(axes):
        x = _along(f, x, None if s is None else s[k], axis, norm)
    return x if axes else _real(x)


def dct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete cosine transform: `y[k] = 2 sum_j x[j] cos(pi k (2 j + 1) / 2 n)`.

    Args:
        x: an array; of complex numbers the parts are transformed.
        type: 2; no other is supported.
        n: the length; x is padded with zeros at the end, or cut.
        axis: the axis.
        norm: None or "backward" for the sum above; "ortho" for it times sqrt(1 / 2 n), and y[0]
          times sqrt(1 / 2) again: an orthogonal matrix.

    Returns:
        float, of x's shape except for n along the axis.

    Raises:
        NotImplementedError: for another type.
        ValueError: for another norm, an axis that does not exist, or an n below 1.

    >>> import ferrax.scipy.fft
    >>> ferrax.scipy.fft.dct(jnp.ones(2))
    Array([4., 0.], dtype=float32)
    """
    _check("dct", type, norm)
    return _along(_cosines, as_array("dct", x), n, axis, norm)


def idct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `dct`.

    Args:
        x, type, n, axis, norm: as for `dct`.

    Returns:
        Float array of x's shape except for n along the axis.

    Raises:
        NotImplementedError: for another type.

    >>> import ferrax.scipy.fft
    >>> ferrax.scipy.fft.idct(jnp.array([4.0, 0.0]))
    Array([1., 1.], dtype=float32)
    """
    _check("idct", type, norm)
    return _along(_uncosines, as_array("idct", x), n, axis, norm)


def dctn(x: Array, type: int = 2, s: int | Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str | None = None) -> Array:
    """`dct` along several axes: all of them, or the last `len(s)`.

    Args:
        x: array.
        type: 2; no other is supported.
        s: the lengths along the axes; x is padded with zeros, or cut.
        axes: int or sequence of ints; None: all, or the last `len(s)`.
        norm: as for `dct`.

    Returns:
        Float array of x's shape except for `s` along the axes.

    Raises:
        ValueError: for repeated axes, and as `dct`.

    >>> import ferrax.scipy.fft
    >>> ferrax.scipy.fft.dctn(jnp.ones((2, 2)))
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    _check("dctn", type, norm)
    return _over(_cosines, as_array("dctn", x), s, axes, norm)


def idctn(x: Array, type: int = 2, s: int | Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The inverse of `dctn`.

    Args:
        x, type, s, axes, norm: as for `dctn`.

    Returns:
        Float array of x's shape except for `s` along the axes.

    Raises:
        NotImplementedError: for another type.

    >>> import ferrax.scipy.fft
    >>> ferrax.scipy.fft.idctn(jnp.array([[16.0, 0.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    _check("idctn", type, norm)
    return _over(_uncosines, as_array("idctn", x), s, axes, norm)
