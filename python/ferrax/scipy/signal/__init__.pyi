"""Signal processing: convolutions, spectra, trends."""

import numpy as np
from collections.abc import Sequence
from ferrax._core import Array
from ferrax.typing import ArrayLike
from typing import Any

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch"]

def convolve(in1: Array, in2: Array, mode: str = "full", method: str = "auto", precision: Any = None) -> Array: ...
def convolve2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None) -> Array: ...
def correlate(in1: Array, in2: Array, mode: str = "full", method: str = "auto", precision: Any = None) -> Array: ...
def correlate2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None) -> Array: ...
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
) -> tuple[Array, Array]: ...
def detrend(data: ArrayLike, axis: int = -1, type: str = "linear", bp: int | Sequence[int] | np.ndarray = 0, overwrite_data: None = None) -> Array: ...
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Sequence[int] | None = None) -> Array: ...
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
) -> tuple[Array, Array]: ...
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
) -> tuple[Array, Array, Array]: ...
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
) -> tuple[Array, Array]: ...
