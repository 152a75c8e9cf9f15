"""The transforms: along one axis, two, or any; of complex numbers, real ones, and those whose
transform is real.

Invariant: each is `lax.fft` along axes moved to the end, of operands padded with zeros or truncated
to the requested lengths.
Factors: with `norm` "backward" the inverse divides by the number of elements N, with "forward" the
forward transform does, with "ortho" both by sqrt(N).

    >>> jnp.fft.ifft(jnp.fft.fft(jnp.array([1.0, 2.0, 3.0]))).real
    Array([1., 2., 3.], dtype=float32)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..._base.dtypes import is_complex, to_complex, to_inexact
from ..._base.shapes import canonicalize_axis
from ..._core import bind
from ...lax import FftType
from .._support.arguments import as_array

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _factor(kind, norm, size):
    """The factor for the result of lax.fft."""
    if norm not in _OPPOSITE:
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    if norm is None or norm == "backward":
        return 1.0
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    root = math.sqrt(size) if norm == "ortho" else size
    return root if inverse else 1.0 / root


def _fitted(x, shape):
    """x[.., *shape]: its last axes padded with zeros at their ends, or cut."""
    lead = x.ndim - len(shape)
    if tuple(x.shape[lead:]) == tuple(shape):
        return x
    kept = (*x.shape[:lead], *[min(n, m) for n, m in zip(x.shape[lead:], shape, strict=True)])
    if kept != tuple(x.shape):
        x = bind("slice", x, start_indices=(0,) * x.ndim, limit_indices=kept, strides=None)
    wider = [(0, 0, 0)] * lead + [(0, m - n, 0) for n, m in zip(kept[lead:], shape, strict=True)]
    return bind("pad", x, x.dtype.type(0), padding_config=tuple(wider)) if any(hi for _, hi, _ in wider) else x


def _apply(kind, x, shape):
    """lax.fft along the last axes, however many: three at a time, the real one with the last
    three.
    """
    axes = len(shape)
    half = lambda n: n // 2 + 1 if kind == FftType.IRFFT else n
    x = _fitted(x, (*shape[:-1], half(shape[-1])))
    groups = [(max(hi - 3, 0), hi) for hi in range(axes, 0, -3)]
    if kind == FftType.IRFFT:
        groups.reverse()
    for lo, hi in groups:
        last = hi == axes
        one = kind if last else FftType.FFT if kind in (FftType.FFT, FftType.RFFT) else FftType.IFFT
        lead = x.ndim - axes
        order = None if last else [k for k in range(x.ndim) if not lead + lo <= k < lead + hi] + list(range(lead + lo, lead + hi))
        y = x if last else bind("transpose", x, permutation=tuple(order))
        y = bind("fft", y, fft_type=int(one), fft_lengths=tuple(shape[lo:hi]))
        x = y if last else bind("transpose", y, permutation=tuple([order.index(k) for k in range(x.ndim)]))
    return x


def _transform(name, kind, a, s, axes, norm):
    a = as_array(name, a)
    if s is not None:
        s = tuple([operator.index(n) for n in s])
        if axes is not None and len(s) != len(axes):
            raise ValueError("Shape and axes have different lengths.")
        if any(n <= 0 for n in s):
            raise ValueError("Shape should be positive.")
        if len(s) > a.ndim:
            raise ValueError(f"jax.numpy.fft.{name} got a shape of {len(s)} lengths, {s}, for an array of dimension {a.ndim}.")
    given = axes
    if axes is None:
        axes = range(a.ndim if s is None else len(s))
        axes = [k - len(axes) for k in axes]
    axes = tuple([canonicalize_axis(k, a.ndim) for k in axes])
    if len(set(axes)) != len(axes):
        raise ValueError(f"jax.numpy.fft.{name} does not support repeated axes. Got axes {tuple(given)}.")
    dtype = to_inexact(a.dtype)
    if kind == FftType.RFFT:
        if is_complex(dtype):
            raise ValueError("only real valued inputs supported for rfft")
    else:
        dtype = to_complex(dtype)
    _factor(kind, norm, 1)
    if not axes:
        return a if kind == FftType.RFFT else _converted(a, dtype)
    if s is None:
        s = [a.shape[k] for k in axes]
        if kind == FftType.IRFFT:
            s[-1] = max(0, 2 * (s[-1] - 1))
    order = [k for k in range(a.ndim) if k not in axes] + list(axes)
    moved = order != list(range(a.ndim))
    x = _converted(a, dtype)
    if moved:
        x = bind("transpose", x, permutation=tuple(order))
    x = _apply(kind, x, tuple(s))
    factor = _factor(kind, norm, math.prod(s))
    if factor != 1.0:
        x = bind("mul", x, x.dtype.type(factor))
    return bind("transpose", x, permutation=tuple([order.index(k) for k in range(a.ndim)])) if moved else x


def _converted(x, dtype):
    return x if x.dtype == dtype else bind("convert_element_type", x, new_dtype=dtype, weak_type=False)


def _along(name, kind, a, n, axis, norm):
    if isinstance(axis, (tuple, list)):
        raise ValueError(f"jax.numpy.fft.{name} does not support multiple axes. Please use jax.numpy.fft.{name}n. Got axis = {axis!r}.")
    # As in JAX no axis is all of them, or the last if n is given.
    return _transform(name, kind, a, None if n is None else (n,), None if axis is None else (axis,), norm)


def _plane(name, kind, a, s, axes, norm):
    if len(axes) != 2:
        raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes!r}.")
    return _transform(name, kind, a, s, axes, norm)


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along an axis: `y[k] = sum_j a[j] exp(-2 pi i jk / n)`.

    Args:
        a: an array, of rank 1 or more.
        n: the length; a is padded with zeros at the end, or cut.
        axis: the axis.
        norm: "backward" (the default), "ortho" or "forward".

    Returns:
        complex, of a's shape except for n along the axis.

    Raises:
        ValueError: for an axis that does not exist, an n below 1, or another norm.

    >>> jnp.fft.fft(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
    return _along("fft", FftType.FFT, a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `fft`: `y[k] = sum_j a[j] exp(+2 pi i jk / n) / n`.

    Args:
        a: array of numbers, of rank 1 or more.
        n: the length; a is padded with zeros at the end, or cut; None: a's.
        axis: int.
        norm: "backward" or None, "ortho" or "forward": the direction that is scaled.

    Returns:
        Complex array of a's shape except for n along the axis.

    Raises:
        ValueError: for an axis that does not exist, an n below 1, or another norm.

    >>> jnp.fft.ifft(jnp.array([2.0, 0.0]))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _along("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The first n // 2 + 1 elements of the transform of real numbers; the others are conjugates of
    these.

    Args:
        a: array of real numbers, of rank 1 or more.
        n: the length; a is padded with zeros at the end, or cut; None: a's.
        axis: int.
        norm: "backward" or None, "ortho" or "forward": the direction that is scaled.

    Returns:
        Complex array of a's shape except for n // 2 + 1 along the axis.

    Raises:
        ValueError: for complex arrays, an axis that does not exist, an n below 1, or another norm.

    >>> jnp.fft.rfft(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _along("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real numbers whose `rfft` is a.

    Args:
        a: array of numbers, of rank 1 or more.
        n: the length of the result; None: 2 (m - 1), m being a's length.
        axis: int.
        norm: "backward" or None, "ortho" or "forward": the direction that is scaled.

    Returns:
        Real array of a's shape except for n along the axis.

    Raises:
        ValueError: for an axis that does not exist, an n below 1, or another norm.

    >>> jnp.fft.irfft(jnp.array([3.0, 0.0, 0.0]), n=4)
    Array([0.75, 0.75, 0.75, 0.75], dtype=float32)
    """
    return _along("irfft", FftType.IRFFT, a, n, axis, norm)


def _opposite(norm):
    if norm not in _OPPOSITE:
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    return _OPPOSITE[norm]


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real transform of a Hermitian-symmetric sequence whose first half is a.

    Args:
        a: array of numbers, of rank 1 or more.
        n: the length of the result; None: 2 (m - 1), m being a's length.
        axis: int.
        norm: "backward" or None, "ortho" or "forward": the direction that is scaled.

    Returns:
        Real array of a's shape except for n along the axis.

    Raises:
        ValueError: for an axis that does not exist, an n below 1, or another norm.

    >>> jnp.fft.hfft(jnp.array([1.0, 2.0, 3.0]))
    Array([ 8., -2.,  0., -2.], dtype=float32)
    """
    return _along("hfft", FftType.IRFFT, as_array("hfft", a).conj(), n, axis, _opposite(norm))


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`: n // 2 + 1 elements of a transform of real numbers, conjugated.

    Args:
        a: array of real numbers, of rank 1 or more.
        n: the length; a is padded with zeros at the end, or cut; None: a's.
        axis: int.
        norm: "backward" or None, "ortho" or "forward": the direction that is scaled.

    Returns:
        Complex array of a's shape except for n // 2 + 1 along the axis.

    Raises:
        ValueError: for complex arrays, an axis that does not exist, an n below 1, or another norm.

    >>> jnp.fft.ihfft(jnp.array([8.0, -2.0, 0.0, -2.0])).real
    Array([1., 2., 3.], dtype=float32)
    """
    return _along("ihfft", FftType.RFFT, a, n, axis, _opposite(norm)).conj()


def fftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The transform along several axes: all of them, or the last ones if s is given.

    Args:
        a: an array.
        s: the lengths along the axes; a is padded with zeros at their ends, or cut.
        axes: which, by default all, or the last `len(s)`.
        norm: as in `fft`.

    Returns:
        Complex array of a's shape except for `s` along the axes.

    Raises:
        ValueError: for repeated axes, or lengths that are not one for each axis, or below 1.

    >>> jnp.fft.fftn(jnp.ones((2, 2))).real
    Array([[4., 0.],
           [0., 0.]], dtype=float32)
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The inverse of `fftn`.

    Args:
        a: array of numbers.
        s: the lengths along the axes; a is padded with zeros at their ends, or cut; None: a's.
        axes: sequence of ints; None: all, or the last `len(s)`.
        norm: "backward" or None, "ortho" or "forward": the direction that is scaled.

    Returns:
        Complex array of a's shape except for `s` along the axes.

    Raises:
        ValueError: for repeated axes, or lengths that are not one for each axis, or below 1.

    >>> jnp.fft.ifftn(jnp.ones((2, 2))).real
    Array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The transform of real numbers along several axes.

    Args:
        a: array of real numbers.
        s: the lengths along the axes; a is padded with zeros at their ends, or cut; None: a's.
        axes: sequence of ints; None: all, or the last `len(s)`.
        norm: "backward" or None, "ortho" or "forward": the direction that is scaled.

    Returns:
        Complex array of a's shape except for `s` along the axes, and n // 2 + 1 along the last of
        them.

    Raises:
        ValueError: for complex arrays, repeated axes, or lengths that are not one for each axis, or
          below 1.

    >>> jnp.fft.rfftn(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The inverse of `rfftn`.

    Args:
        a: array of numbers.
        s: the lengths of the result along the axes; None: a's, and 2 (m - 1) along the last, m
          being a's length there.
        axes: sequence of ints; None: all, or the last `len(s)`.
        norm: "backward" or None, "ortho" or "forward": the direction that is scaled.

    Returns:
        Real array of a's shape except for `s` along the axes.

    Raises:
        ValueError: for repeated axes, or lengths that are not one for each axis, or below 1.

    >>> jnp.fft.irfftn(jnp.ones((2, 3))).shape
    (2, 4)
    """
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm)


def fft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """`fftn` along two axes, by default the last ones.

    Args:
        a: array of numbers (real ones for rfft2), of rank 2 or more.
        s: the lengths along the axes; a is padded with zeros at their ends, or cut; None: a's.
        axes: pair of ints.
        norm: "backward" or None, "ortho" or "forward": the direction that is scaled.

    Returns:
        Complex array of a's shape except for `s` along the axes.

    Raises:
        ValueError: for another number of axes, and as `fftn` does.

    >>> jnp.fft.fft2(jnp.eye(2)).real
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    return _plane("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """`ifftn` along two axes, by default the last ones.

    Args:
        a: array of numbers (real ones for rfft2), of rank 2 or more.
        s: the lengths along the axes; a is padded with zeros at their ends, or cut; None: a's.
        axes: pair of ints.
        norm: "backward" or None, "ortho" or "forward": the direction that is scaled.

    Returns:
        Complex array of a's shape except for `s` along the axes.

    Raises:
        ValueError: for another number of axes, and as `fftn` does.

    >>> jnp.fft.ifft2(jnp.eye(2)).real
    Array([[0.5, 0. ],
           [0. , 0.5]], dtype=float32)
    """
    return _plane("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """`rfftn` along two axes, by default the last ones.

    Args:
        a: array of numbers (real ones for rfft2), of rank 2 or more.
        s: the lengths along the axes; a is padded with zeros at their ends, or cut; None: a's.
        axes: pair of ints.
        norm: "backward" or None, "ortho" or "forward": the direction that is scaled.

    Returns:
        Complex array of a's shape except for `s` along the axes.

    Raises:
        ValueError: for another number of axes, and as `fftn` does.

    >>> jnp.fft.rfft2(jnp.eye(2)).real
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    return _plane("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """`irfftn` along two axes, by default the last ones.

    Args:
        a: array of numbers, of rank 2 or more.
        s: the lengths of the result along the axes; None: a's, and 2 (m - 1) along the last, m
          being a's length there.
        axes: pair of ints.
        norm: "backward" or None, "ortho" or "forward": the direction that is scaled.

    Returns:
        Real array of a's shape except for `s` along the axes.

    Raises:
        ValueError: for another number of axes, and as `irfftn` does.

    >>> jnp.fft.irfft2(jnp.ones((2, 2)))
    Array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    return _plane("irfft2", FftType.IRFFT, a, s, axes, norm)
