"""Signal processing: convolutions, spectra, trends.

Invariant: this file is only the list of public names.

    >>> import ferrax.scipy.signal
    >>> ferrax.scipy.signal.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 5., 3.], dtype=float32)
"""

from ._convolving import (
    convolve as convolve,
    convolve2d as convolve2d,
    correlate as correlate,
    correlate2d as correlate2d,
    fftconvolve as fftconvolve,
)
from ._spectra import csd as csd, istft as istft, stft as stft, welch as welch
from ._trends import detrend as detrend

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch"]
