"""Spectra of signals in overlapping segments, and back.

Invariant: a segment is less its trend, times the window, padded to nfft; segments are
`nperseg - noverlap` apart. P. D. Welch, "The use of fast Fourier transform for the estimation of
power spectra", IEEE Trans. Audio and Electroacoustics 15, 1967; inversion by overlap-add: D.
Griffin and J. Lim, IEEE Trans. ASSP 32, 1984.

    >>> f, p = welch(jnp.array([1.0, -1.0] * 8), nperseg=8)
    >>> f[p.argmax()]
    Array(0.5, dtype=float32)
"""

from __future__ import annotations

import operator
import warnings
from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..._base.dtypes import is_complex, to_complex, to_inexact
from ..._base.shapes import canonicalize_axis, common_shape
from ...numpy._support.arguments import as_array, promote_inexact
from ._trends import detrend as _detrend
from ._windows import window as _named

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_BOUNDARIES = ("even", "odd", "constant", "zeros", None)


def _single(x):
    """`x` in a dtype that has a Fourier transform."""
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


def _segments(window, nperseg, noverlap, nfft, length, default):
    """(window, nperseg, noverlap, nfft), each with its default, for signals of that length."""
    if nperseg is not None and (nperseg := operator.index(nperseg)) < 1:
        raise ValueError("nperseg must be a positive integer")
    if isinstance(window, (str, tuple, int, float)):
        nperseg = default if nperseg is None else nperseg
        if nperseg > length:
            warnings.warn(f"nperseg={nperseg} is greater than input_length={length}, using nperseg={length}", stacklevel=3)
            nperseg = length
        window = _named(window, nperseg)
    else:
        window = as_array("window", window)
        if window.ndim != 1:
            raise ValueError("window must be 1-D")
        if window.shape[0] > length:
            raise ValueError("window is longer than input signal")
        if nperseg is not None and nperseg != window.shape[0]:
            raise ValueError("value specified for nperseg is different from length of window")
        nperseg = window.shape[0]
    return window, nperseg, *_lengths(nperseg, noverlap, nfft)


def _lengths(nperseg, noverlap, nfft):
    """(noverlap, nfft)."""
    nfft = nperseg if nfft is None else operator.index(nfft)
    if nfft < nperseg:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    noverlap = nperseg // 2 if noverlap is None else operator.index(noverlap)
    if noverlap >= nperseg:
        raise ValueError("noverlap must be less than nperseg.")
    return noverlap, nfft


def _extended(x, boundary, n):
    """x[..] with n more elements at both ends: mirrored, mirrored through the ends, the ends'
    again, or zeros.
    """
    if boundary == "zeros":
        return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)])
    if boundary == "constant":
        return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode="edge")
    if n > x.shape[-1] - 1:
        raise ValueError(f"The extension length n ({n}) is too big. It must not exceed x.shape[axis]-1, which is {x.shape[-1] - 1}.")
    left, right = x[..., n:0:-1], x[..., -2 : -n - 2 : -1]
    if boundary == "odd":
        left, right = 2 * x[..., :1] - left, 2 * x[..., -1:] - right
    return jnp.concatenate([left, x, right], axis=-1)


def _trendless(detrend):
    if not detrend:
        return lambda x: x
    return detrend if callable(detrend) else lambda x: _detrend(x, type=detrend, axis=-1)


def _scale(scaling, window, fs, mode):
    total = window.sum()
    if scaling == "density":
        scale = 1 / (fs * (window * window).sum())
    elif scaling == "spectrum":
        scale = 1 / (total * total)
    else:
        raise ValueError(f"Unknown scaling: {scaling}")
    return jnp.sqrt(scale) if mode == "stft" else scale


def _spectral(x, y, fs, window, nperseg, noverlap, nfft, detrend, onesided, scaling, axis, mode, boundary, padded, default):
    """(frequencies, times, spectra), the spectra with frequencies at `axis` and segments last. y is
    None for x itself.
    """
    if boundary not in _BOUNDARIES:
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: {list(_BOUNDARIES)}")
    if y is None:
        (x,) = promote_inexact(mode, x)
        other = x
    else:
        x, other = promote_inexact(mode, x, y)
        if x.ndim != other.ndim:
            raise ValueError(f"two-arguments must have the same rank ({x.ndim} vs {other.ndim}).")
    axis = canonicalize_axis(axis, x.ndim)
    x = jnp.moveaxis(_single(x), axis, -1)
    other = x if y is None else jnp.moveaxis(_single(other), axis, -1)
    real = x.real.dtype
    lead = common_shape(tuple(x.shape[:-1]), tuple(other.shape[:-1]))
    if x.size == 0 or other.size == 0:
        empty = (*lead, min(x.shape[-1], other.shape[-1]))
        spectrum = jnp.zeros(empty, real if y is None and mode == "psd" else to_complex(real))
        return jnp.zeros(empty, real), jnp.zeros(empty, real), spectrum
    length = max(x.shape[-1], other.shape[-1])
    grown = lambda v: v if v.shape[-1] == length else jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, length - v.shape[-1])])
    window, nperseg, noverlap, nfft = _segments(window, nperseg, noverlap, nfft, length, default or length)
    step = nperseg - noverlap
    trendless = _trendless(detrend)
    window = jnp.asarray(window, real)
    if is_complex(x.dtype) and onesided:
        warnings.warn("Input data is complex, switching to return_onesided=False", stacklevel=3)
        onesided = False
    transform = jnp.fft.rfft if onesided else jnp.fft.fft

    def spectra(v):
        v = grown(v)
        if boundary is not None:
            v = _extended(v, boundary, nperseg // 2)
        if padded:
            v = jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, -(v.shape[-1] - nperseg) % step)])
        at = np.arange(0, v.shape[-1] - nperseg + 1, step)[:, None] + np.arange(nperseg)
        return transform(trendless(v[..., at]) * window, n=nfft), v.shape[-1]

    fx, reached = spectra(x)
    scale = _scale(scaling, window, fs, mode)
    if mode == "psd":
        result = abs(fx) ** 2 if y is None else fx.conj() * spectra(other)[0]
        scales = np.full(result.shape[-1], 2.0 if onesided else 1.0)
        scales[0] = 1
        if nfft % 2 == 0:
            scales[-1] = 1 if onesided else scales[-1]
        result = result * (jnp.asarray(scales, real) * scale)
    else:
        result = fx * scale
    frequencies = (jnp.fft.rfftfreq if onesided else jnp.fft.fftfreq)(nfft, dtype=real) * fs
    times = jnp.arange(nperseg / 2, reached - nperseg / 2 + 1, step, dtype=real)
    times = (times - (nperseg / 2 if boundary is not None else 0)) / fs
    result = result.astype(real) if y is None and mode == "psd" else result
    return frequencies.astype(real), times.astype(real), jnp.moveaxis(jnp.swapaxes(result, -1, -2), -2, axis)


def stft(
    x: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform.

    Args:
        x: a signal, or several; integers become floats.
        fs: samples in a unit of time.
        window: a name, a tuple of a name and parameters, or nperseg numbers.
        nperseg: samples in a segment, at most as many as x has.
        noverlap: how many of these are the next one's too; by default half.
        nfft: the transform's length, by default nperseg.
        detrend: "constant", "linear", a function of segments along the last axis, or False.
        return_onesided: for real signals, whether to leave out negative frequencies.
        boundary: the padding before and after x: "zeros", "even", "odd", "constant" or None.
        padded: whether the last segment is padded with zeros instead of dropped.
        axis: of time.

    Returns:
        (frequencies, times, transforms): the transforms with frequencies at `axis`, and times last.

    Raises:
        ValueError: for an unknown window or boundary, and lengths that do not fit.

    >>> import ferrax.scipy.signal
    >>> f, t, z = ferrax.scipy.signal.stft(jnp.ones(8), nperseg=4)
    >>> z.shape
    (3, 5)
    """
    return _spectral(
        x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, "spectrum", axis, "stft", boundary, padded, 256
    )  # fmt: skip


def csd(
    x: Array,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross power spectral density of two signals, by Welch's method.

    Args:
        x, y: signals of one rank, their other axes broadcast; the shorter one is padded with zeros.
          y may be None: x again.
        nperseg: samples in a segment, by default all.
        scaling: "density" for powers per unit of frequency, "spectrum" for powers.
        average: of the segments: "mean", or "median", which is robust against outliers.
        fs, window, noverlap, nfft, detrend, return_onesided, axis: as in `stft`.

    Returns:
        (frequencies, densities): real if y is None, else complex, `mean(conj(X) Y)`.

    Raises:
        ValueError: for another scaling or average, and as `stft`.

    >>> import ferrax.scipy.signal
    >>> x = jnp.array([1.0, -1.0] * 4)
    >>> ferrax.scipy.signal.csd(x, x, nperseg=4, window="boxcar")[1].real.round(6)
    Array([0., 0., 4.], dtype=float32)
    """
    if average not in ("mean", "median"):
        raise ValueError(f'average must be "median" or "mean", got {average}')
    frequencies, _, p = _spectral(
        x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, "psd", None, False, None
    )  # fmt: skip
    if p.ndim < 2 or p.size == 0:
        return frequencies, p.reshape(frequencies.shape)
    n = p.shape[-1]
    if n == 1:
        return frequencies, p[..., 0]
    if average == "mean":
        return frequencies, p.mean(-1)
    # of an exponential distribution, as powers have: the median of n over the mean
    pairs = 2.0 * np.arange(1, (n - 1) // 2 + 1)
    bias = 1 + float((1 / (pairs + 1) - 1 / pairs).sum())
    middle = lambda v: jnp.median(v, axis=-1) / bias
    return frequencies, middle(p.real) + 1j * middle(p.imag) if is_complex(p.dtype) else middle(p)


def welch(
    x: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal, by Welch's method: `csd` of x and itself, real.

    Arguments are those of `csd`.

    Args:
        x: a signal, or several; integers become floats.
        fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average: as
          for `csd`.

    Returns:
        (frequencies, density): a vector, and a real array with the frequencies along the axis.

    >>> import ferrax.scipy.signal
    >>> ferrax.scipy.signal.welch(jnp.array([1.0, -1.0] * 4), nperseg=4, window="boxcar")[1].round(6)
    Array([0., 0., 4.], dtype=float32)
    """
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


def istft(
    Zxx: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signal of a short-time Fourier transform, by overlap-add; exact where squares of the
    windows that overlap add up to no zero.

    Args:
        Zxx: complex[.., frequencies, times].
        fs, window, noverlap: as they were passed to `stft`.
        nperseg: by default derived from the number of frequencies.
        nfft: by default nperseg; for a one-sided transform of odd length nperseg must say so.
        input_onesided: whether negative frequencies are omitted.
        boundary: whether the signal had been extended.
        time_axis, freq_axis: where Zxx has these.

    Returns:
        (times, the signal, real where the input is one-sided).

    Raises:
        ValueError: for axes or lengths that do not fit.

    >>> import ferrax.scipy.signal
    >>> x = jnp.arange(1.0, 9.0)
    >>> _, _, z = ferrax.scipy.signal.stft(x, nperseg=4)
    >>> ferrax.scipy.signal.istft(z, nperseg=4)[1].round(4)
    Array([1., 2., 3., 4., 5., 6., 7., 8.], dtype=float32)
    """
    z = as_array("istft", Zxx)
    if z.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    freq_axis, time_axis = canonicalize_axis(freq_axis, z.ndim), canonicalize_axis(time_axis, z.ndim)
    if freq_axis == time_axis:
        raise ValueError("Must specify differing time and frequency axes!")
    z = _single(z.astype(to_inexact(z.dtype)))
    real = z.real.dtype
    segments = z.shape[time_axis]
    default = 2 * (z.shape[freq_axis] - 1) if input_onesided else z.shape[freq_axis]
    nperseg = default if nperseg is None else operator.index(nperseg)
    if nperseg < 1:
        raise ValueError("nperseg must be a positive integer")
    if nfft is None:
        nfft = nperseg if input_onesided and nperseg == default + 1 else default
    noverlap, nfft = _lengths(nperseg, noverlap, nfft)
    step = nperseg - noverlap
    window = _named(window, nperseg) if isinstance(window, (str, tuple, int, float)) else as_array("window", window)
    if window.ndim != 1:
        raise ValueError("window must be 1-D")
    if window.shape[0] != nperseg:
        raise ValueError(f"window must have length of {nperseg}")
    window = jnp.asarray(window, real)
    z = jnp.moveaxis(z, (time_axis, freq_axis), (-2, -1))
    parts = (jnp.fft.irfft if input_onesided else jnp.fft.ifft)(z, n=nfft)[..., :nperseg] * (window * window.sum())
    length = nperseg + (segments - 1) * step
    at = np.arange(segments)[:, None] * step + np.arange(nperseg)
    x = jnp.zeros((*parts.shape[:-2], length), parts.dtype).at[..., at].add(parts)
    squares = jnp.zeros(length, real).at[at].add(jnp.broadcast_to(window * window, at.shape))
    if boundary:
        x, squares = x[..., nperseg // 2 : length - nperseg // 2], squares[nperseg // 2 : length - nperseg // 2]
    x = x / jnp.where(squares > 1e-10, squares, 1)
    if x.ndim > 1 and time_axis != z.ndim - 1:
        x = jnp.moveaxis(x, -1, time_axis - (freq_axis < time_axis))
    # As in SciPy there are as many times as the first axis of the signal is long, wherever its axis of time is.
    times = (jnp.arange(x.shape[0], dtype=real) / fs).astype(real)
    return times, x
