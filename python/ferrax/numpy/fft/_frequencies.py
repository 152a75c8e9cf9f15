"""Frequencies of the elements of a transform, and shifts of the zero frequency to the middle and
back.

Invariant: element k of a transform of n samples `d` apart has the frequency `fftfreq(n, d)[k]`.

    >>> jnp.fft.fftfreq(4, d=0.5)
    Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import canonicalize_dtype, requested
from ..._base.shapes import hashable_axes, whole
from ..._core import bind
from ..._sharding.parts import placed
from .._manipulation.joining import concatenate
from .._manipulation.rearranging import roll
from .._math.arithmetic import divide, multiply
from .._support.arguments import as_array

if TYPE_CHECKING:
    from ..._core import Array, Device
    from ...sharding import Sharding
    from ...typing import ArrayLike, DTypeLike


def _counts(name, n, d):
    if isinstance(n, (list, tuple)):
        raise ValueError(f"The n argument of jax.numpy.fft.{name} only takes an int. Got n = {list(n)}.")
    if isinstance(d, (list, tuple)):
        raise ValueError(f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {list(d)}.")
    if np.ndim(d) > 0:
        raise ValueError(f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {d}.")
    return whole(n)


def _over(k, n, d, dtype, device):
    # times first, as numpy does: one rounding less
    y = divide(k, multiply(d, n).astype(dtype) if isinstance(d, _core.Array) else np.dtype(dtype).type(d * n))
    return placed(y, device)


def _iota(n, dtype):
    return bind("iota", dtype=dtype, shape=(max(n, 0),), dimension=0)


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Device | Sharding | None = None) -> Array:
    """The frequencies of `fft`: `[0, 1, .., (n - 1) // 2, -(n // 2), .., -1] / (d n)`.

    Args:
        n: int, the number of samples.
        d: the distance between samples.
        dtype: float dtype of the result; None: the default float.
        device: where the result lives: a device or a sharding; None: the default device.

    Returns:
        Array of shape (n,).

    Raises:
        ValueError: for a sequence as n or d.
        TypeError: for an n that is not an integer.

    >>> jnp.fft.fftfreq(5)
    Array([ 0. ,  0.2,  0.4, -0.4, -0.2], dtype=float32)
    """
    n = _counts("fftfreq", n, d)
    dtype = canonicalize_dtype(float) if dtype is None else requested("fftfreq", dtype)
    first, half = (n - 1) // 2 + 1, n // 2
    k = concatenate([_iota(first, dtype), bind("sub", _iota(half, dtype), np.dtype(dtype).type(half))]) if n > 0 else _iota(0, dtype)
    return _over(k, n, d, dtype, device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Device | Sharding | None = None) -> Array:
    """The frequencies of `rfft`: `[0, 1, .., n // 2] / (d n)`.

    Args:
        n: int, the number of samples.
        d: the distance between samples.
        dtype: float dtype of the result; None: the default float.
        device: where the result lives: a device or a sharding; None: the default device.

    Returns:
        Array of shape (n // 2 + 1,).

    Raises:
        ValueError: for a sequence as n or d.
        TypeError: for an n that is not an integer.

    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    n = _counts("rfftfreq", n, d)
    dtype = canonicalize_dtype(float) if dtype is None else requested("rfftfreq", dtype)
    return _over(_iota(n // 2 + 1 if n >= 0 else 0, dtype), n, d, dtype, device)


def _shifted(name, x, axes, by):
    x = as_array(name, x)
    if axes is None:
        axes = tuple(range(x.ndim))
    else:
        axes = hashable_axes(axes)
        axes = axes if isinstance(axes, tuple) else (axes,)
    for a in axes:
        if not -x.ndim <= a < x.ndim:
            raise IndexError(f"axis {a} is out of bounds for array of dimension {x.ndim}")
    return roll(x, tuple([by(x.shape[a]) for a in axes]), tuple(axes)) if axes else x


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """`x` with the zero frequency in the middle: each axis rolled by half its length.

    Args:
        x: array.
        axes: int, sequence of ints or None (all).

    Returns:
        Array of x's shape and dtype.

    Raises:
        IndexError: for an axis that does not exist.

    >>> jnp.fft.fftshift(jnp.array([0, 1, 2, -2, -1]))
    Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    return _shifted("fftshift", x, axes, lambda n: n // 2)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`, which differs from it for odd lengths.

    Args:
        x: array.
        axes: int, sequence of ints or None (all).

    Returns:
        Array of x's shape and dtype.

    Raises:
        IndexError: for an axis that does not exist.

    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1, 2]))
    Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))
