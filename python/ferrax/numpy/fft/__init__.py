"""`ferrax.numpy.fft`: discrete Fourier transforms.

Invariant: this file is only the list of public names.

    >>> jnp.fft.rfft(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
"""

from ._frequencies import fftfreq as fftfreq, fftshift as fftshift, ifftshift as ifftshift, rfftfreq as rfftfreq
from ._transforms import (
    fft as fft,
    fft2 as fft2,
    fftn as fftn,
    hfft as hfft,
    ifft as ifft,
    ifft2 as ifft2,
    ifftn as ifftn,
    ihfft as ihfft,
    irfft as irfft,
    irfft2 as irfft2,
    irfftn as irfftn,
    rfft as rfft,
    rfft2 as rfft2,
    rfftn as rfftn,
)
