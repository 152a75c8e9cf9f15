"""Convolutions and correlations, by their sums or by transforms.

Invariant: a correlation is the convolution with the second operand turned around and conjugated;
both kinds have all three modes.

    >>> correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0]), mode="valid")
    Array([2., 3.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lax, numpy as jnp
from ..._base.dtypes import is_complex, to_inexact
from ..._base.shapes import canonicalize_axes
from ...numpy._support.arguments import jitted, promote_inexact

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_MODES = ("full", "same", "valid")


def _check_mode(mode, modes=_MODES):
    if mode not in modes:
        raise ValueError(f"mode must be one of {list(modes)}")


def _contained(a, b):
    """Whether b is the larger one in every dimension, for mode "valid".

    Raises ValueError unless one of them is.
    """
    if all(n >= m for n, m in zip(a.shape, b.shape, strict=True)):
        return False
    if all(n <= m for n, m in zip(a.shape, b.shape, strict=True)):
        return True
    raise ValueError("One input must be smaller than the other in every dimension.")


def _middle(y, shape, axes):
    """The part of y of these sizes around its centre."""
    at = [slice(None)] * y.ndim
    for k in axes:
        start = (y.shape[k] - shape[k]) // 2
        at[k] = slice(start, start + shape[k])
    return y[tuple(at)]


@jitted("_convolve_nd", static=("mode", "precision"))
def _direct(a, b, mode, precision):
    same = a.shape
    if mode == "valid" and _contained(a, b):
        a, b = b, a
    pads = [(0, 0) if mode == "valid" else (m - 1, m - 1) for m in b.shape]
    rank = a.ndim
    # batch and channel axes of size 1, as a convolution requires; windows are read from the end
    one = lambda a, b: lax.conv_general_dilated(a[None, None], jnp.flip(b)[None, None], (1,) * rank, pads, precision=precision, preferred_element_type=a.dtype)[
        0, 0
    ]
    y = one(a, b)
    return _middle(y, same, range(rank)) if mode == "same" else y


def _plain(name, in1, in2):
    """Arrays of one rank and inexact dtype, with elements."""
    a, b = promote_inexact(name, in1, in2)
    if a.ndim != b.ndim:
        raise ValueError("in1 and in2 must have the same number of dimensions")
    if a.size == 0 or b.size == 0:
        raise ValueError(f"zero-size arrays not supported in convolutions, got shapes {tuple(a.shape)} and {tuple(b.shape)}.")
    return a, b


def _by(a, b, mode, method, precision):
    _check_mode(mode)
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"Got method={method!r}; expected 'auto', 'fft', or 'direct'.")
    if a.ndim == 0:
        return a * b
    if method == "fft":
        return fftconvolve(a, b, mode=mode)
    return _direct(a, b, mode=mode, precision=precision)


def _turned(x):
    return jnp.flip(x.conj() if is_complex(x.dtype) else x)


def convolve(in1: Array, in2: Array, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """`y[k] = sum_j in1[j] in2[k - j]` in any number of dimensions.

    Args:
        in1, in2: arrays of one rank; integers become floats.
        mode: "full", of sizes n + m - 1; "same", the central part with in1's shape; "valid", the
          part where the smaller one lies completely within the other.
        method: "direct" or "auto" for the sums, "fft" for `fftconvolve`.
        precision: of the sums, as in `lax.conv_general_dilated`.

    Returns:
        Array of the mode's sizes, float or complex.

    Raises:
        ValueError: for another mode or method, ranks that differ, empty arrays, and in mode "valid"
          unless one operand is the larger everywhere.

    >>> import ferrax.scipy.signal
    >>> ferrax.scipy.signal.convolve(jnp.ones(3), jnp.ones(2), mode="same")
    Array([1., 2., 2.], dtype=float32)
    """
    return _by(*_plain("convolve", in1, in2), mode, method, precision)


def correlate(in1: Array, in2: Array, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """`y[k] = sum_j in1[j + k - m + 1] conj(in2[j])`, m being in2's size.

    Arguments and errors are those of `convolve`.

    Args:
        in1, in2: arrays of one rank; integers become floats.
        mode: "full", "same" or "valid", as for `convolve`.
        method: "direct" or "auto" for the sums, "fft" for transforms.
        precision: of the sums, as in `lax.conv_general_dilated`.

    Returns:
        Array of the mode's sizes, float or complex.

    Raises:
        ValueError: for another mode or method, and ranks that differ.

    >>> import ferrax.scipy.signal
    >>> ferrax.scipy.signal.correlate(jnp.array([1.0, 2.0]), jnp.array([0.0, 1.0]))
    Array([1., 2., 0.], dtype=float32)
    """
    a, b = _plain("correlate", in1, in2)
    return _by(a, _turned(b), mode, method, precision)


def _plane(name, in1, in2, boundary, fillvalue):
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(f"{name}() only supports boundary='fill', fillvalue=0")
    if jnp.ndim(in1) != 2 or jnp.ndim(in2) != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs.")
    return _plain(name, in1, in2)


def convolve2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None) -> Array:
    """`convolve` of matrices.

    Args:
        in1, in2: matrices; integers become floats.
        mode: "full", "same" or "valid", as for `convolve`.
        boundary: must be "fill".
        fillvalue: must be 0.
        precision: of the sums, as in `lax.conv_general_dilated`.

    Returns:
        Matrix of the mode's sizes, float or complex.

    Raises:
        ValueError: for another mode, and other ranks.
        NotImplementedError: for another boundary or fillvalue.

    >>> import ferrax.scipy.signal
    >>> ferrax.scipy.signal.convolve2d(jnp.eye(2), jnp.ones((1, 2)))
    Array([[1., 1., 0.],
           [0., 1., 1.]], dtype=float32)
    """
    return _by(*_plane("convolve2d", in1, in2, boundary, fillvalue), mode, "direct", precision)


def correlate2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None) -> Array:
    """`correlate` of matrices. Arguments are those of `convolve2d`.

    Args:
        in1, in2: matrices; integers become floats.
        mode: "full", "same" or "valid", as for `convolve`.
        boundary: must be "fill".
        fillvalue: must be 0.
        precision: of the sums, as in `lax.conv_general_dilated`.

    Returns:
        Matrix of the mode's sizes, float or complex.

    Raises:
        ValueError: for another mode, and other ranks.
        NotImplementedError: for another boundary or fillvalue.

    >>> import ferrax.scipy.signal
    >>> ferrax.scipy.signal.correlate2d(jnp.eye(2), jnp.array([[1.0, 2.0]]), mode="valid")
    Array([[1.],
           [2.]], dtype=float32)
    """
    a, b = _plane("correlate2d", in1, in2, boundary, fillvalue)
    if mode != "same":
        return _by(a, _turned(b), mode, "direct", precision)
    # its middle is that of the turned kernel: behind that of `correlate` where the size is even
    full = _by(a, _turned(b), "full", "direct", precision)
    return full[tuple(slice(k // 2, k // 2 + n) for n, k in zip(a.shape, b.shape, strict=True))]


def _fast_length(n):
    """The least product of 2, 3 and 5 from n on: lengths whose transforms are quick."""
    best = 1 << (n - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            m = three << max((-(-n // three) - 1).bit_length(), 0)
            best = min(best, m)
            three *= 3
        five *= 5
    return best


@jitted("fftconvolve", static=("mode", "axes"))
def _transformed(a, b, mode, axes):
    same = a.shape
    if mode == "valid":
        # along the axes alone; the others have one size
        part = lambda x: tuple([x.shape[k] for k in axes])
        if not all(n >= m for n, m in zip(part(a), part(b), strict=True)):
            if not all(n <= m for n, m in zip(part(a), part(b), strict=True)):
                raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
            a, b = b, a
    full = [a.shape[k] + b.shape[k] - 1 for k in axes]
    shape = [_fast_length(n) for n in full]
    real = not is_complex(a.dtype)
    f, g = (jnp.fft.rfftn, jnp.fft.irfftn) if real else (jnp.fft.fftn, jnp.fft.ifftn)
    y = g(f(a, shape, axes) * f(b, shape, axes), shape, axes)
    y = y[tuple([slice(full[axes.index(k)]) if k in axes else slice(None) for k in range(y.ndim)])]
    if mode == "full":
        return y
    sizes = same if mode == "same" else [n - m + 1 if k in axes else n for k, (n, m) in enumerate(zip(a.shape, b.shape, strict=True))]
    return _middle(y, sizes, axes)


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Sequence[int] | None = None) -> Array:
    """`convolve` as a product of Fourier transforms: quicker where both operands are long, with an
    error of the size of the largest result.

    Args:
        in1, in2: arrays of one rank; integers become floats.
        mode: as in `convolve`.
        axes: which axes are convolved, by default all; along the others both have one size.

    Returns:
        Array of the mode's sizes, float or complex.

    Raises:
        ValueError: for another mode, ranks that differ, an axis that does not exist, sizes that
          differ along other axes.

    >>> import ferrax.scipy.signal
    >>> ferrax.scipy.signal.fftconvolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0])).round(4)
    Array([1., 3., 2.], dtype=float32)
    """
    a, b = promote_inexact("fftconvolve", in1, in2)
    _check_mode(mode, ("same", "full", "valid"))
    if a.ndim != b.ndim:
        raise ValueError("in1 and in2 should have the same dimensionality")
    if a.ndim == 0:
        return a * b
    axes = tuple(sorted(set(canonicalize_axes(None if axes is None else axes if isinstance(axes, int) else tuple(dict.fromkeys(axes)), a.ndim))))
    if any(n != m for k, (n, m) in enumerate(zip(a.shape, b.shape, strict=True)) if k not in axes):
        raise ValueError(f"mapped axes must have same shape; got in1.shape={tuple(a.shape)} in2.shape={tuple(b.shape)} axes={axes}")
    if not axes:
        return a * b
    if a.size == 0 or b.size == 0:
        # sums of nothing
        full = [n + m - 1 if k in axes else n for k, (n, m) in enumerate(zip(a.shape, b.shape, strict=True))]
        return jnp.zeros([max(n, 0) for n in (full if mode == "full" else a.shape)], a.dtype)
    narrow = a.dtype if to_inexact(a.dtype).itemsize < 4 else None
    if narrow is not None:
        a, b = a.astype(np.float32), b.astype(np.float32)
    y = _transformed(a, b, mode=mode, axes=axes)
    return y if narrow is None else y.astype(narrow)
