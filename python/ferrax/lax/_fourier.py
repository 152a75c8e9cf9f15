"""The discrete Fourier transform.

Invariant: a transform runs along the last axes, whose lengths are arguments; real operands of
complex transforms become complex.

    >>> lax.fft(jnp.array([1.0, 2.0, 3.0, 4.0]), "RFFT", (4,))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _core
from .._base.dtypes import is_complex, to_complex, to_inexact
from .._core import bind
from ._parameters import FftType

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike


def _kind(fft_type) -> FftType:
    if isinstance(fft_type, FftType):
        return fft_type
    if isinstance(fft_type, str):
        try:
            return FftType[fft_type.upper()]
        except KeyError:
            raise ValueError(f"Unknown FFT type '{fft_type}'") from None
    raise TypeError(f"Unknown FFT type value '{fft_type}'")


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform along the last `len(fft_lengths)` axes, up to three:
    `sum_j x[j] exp(-2 pi i jk / n)` along each.

    IFFT and IRFFT divide by the product of the lengths.

    Args:
        x: array of shape (..., *lengths): complex for FFT and IFFT, float32 or float64 for RFFT;
            for IRFFT complex, with n // 2 + 1 elements along the last axis.
        fft_type: an `FftType` or its name.
        fft_lengths: sequence of one to three ints.

    Returns:
        Array with the transform along the last axes, complex except for IRFFT.

    Raises:
        ValueError: for shapes that do not fit the lengths, for complex operands of RFFT, and for a
          kind that does not exist.

    >>> lax.fft(jnp.array([1.0, 2.0]), "FFT", (2,))
    Array([ 3.+0.j, -1.+0.j], dtype=complex64)
    """
    kind = _kind(fft_type)
    lengths = tuple([operator.index(fft_lengths[k]) for k in range(len(fft_lengths))])
    x = _core.asarray(x)
    if kind == FftType.RFFT:
        if is_complex(x.dtype):
            raise ValueError("only real valued inputs supported for rfft")
        dtype = to_inexact(x.dtype)
    else:
        dtype = to_complex(to_inexact(x.dtype))
    if any(n < 0 for n in lengths):
        raise ValueError(f"{kind.name} input shape {tuple(x.shape)} minor dimensions must be equal to fft_lengths {lengths}")
    if x.dtype != dtype:
        x = bind("convert_element_type", x, new_dtype=dtype, weak_type=False)
    return bind("fft", x, fft_type=int(kind), fft_lengths=lengths) if lengths else x
