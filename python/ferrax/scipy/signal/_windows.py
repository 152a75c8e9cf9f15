"""Windows by name, made on the host.

Invariant: n points of a period: the window of n + 1 points, symmetric, without its last.
Definitions: F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier
transform", Proceedings of the IEEE 66, 1978; A. H. Nuttall, IEEE Trans. ASSP 29, 1981.

    >>> window("hann", 4)
    array([0. , 0.5, 1. , 0.5])
"""

from __future__ import annotations

import numpy as np


def _cosines(*a):
    """sum (-1)^k a_k cos(2 pi k x), over x from 0 to 1."""
    return lambda x: sum((-1) ** k * c * np.cos(2 * np.pi * k * x) for k, c in enumerate(a))


def _parzen(x):
    # as the n points of a window of length n: distances from the centre over n / 2
    m = len(x)
    d = abs(np.arange(m) - (m - 1) / 2) / (m / 2)
    return np.where(d <= 0.5 - 0.5 / m + 0.5 / m, 1 - 6 * d**2 * (1 - d), 2 * (1 - d) ** 3)


def _triangle(x):
    m = len(x)
    d = abs(np.arange(m) - (m - 1) / 2)
    return 1 - d / ((m + 1) / 2) if m % 2 else 1 - d / (m / 2)


def _bohman(x):
    d = abs(2 * x - 1)
    w = (1 - d) * np.cos(np.pi * d) + np.sin(np.pi * d) / np.pi
    w[[0, -1]] = 0
    return w


def _cosine(x):
    m = len(x)
    return np.sin(np.pi / m * (np.arange(m) + 0.5))


def _tukey(x, alpha=0.5):
    if alpha <= 0:
        return np.ones_like(x)
    edge = np.minimum(x, 1 - x)
    return np.where(edge < min(alpha, 1) / 2, 0.5 * (1 - np.cos(2 * np.pi * edge / min(alpha, 1))), 1.0)


def _kaiser(x, beta):
    return np.i0(beta * np.sqrt(np.clip(1 - (2 * x - 1) ** 2, 0, None))) / np.i0(beta)


def _from_centre(x):
    return np.arange(len(x)) - (len(x) - 1) / 2


def _exponential(x, center=None, tau=1.0):
    if center is not None:
        raise ValueError("If sym==True, center must be None.")
    return np.exp(-abs(_from_centre(x)) / tau)


_WINDOWS = {
    "boxcar": np.ones_like,
    "triang": _triangle,
    "bartlett": lambda x: 1 - abs(2 * x - 1),
    "hann": _cosines(0.5, 0.5),
    "hamming": _cosines(0.54, 0.46),
    "blackman": _cosines(0.42, 0.5, 0.08),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "barthann": lambda x: 0.62 - 0.48 * abs(x - 0.5) + 0.38 * np.cos(2 * np.pi * (x - 0.5)),
    "parzen": _parzen,
    "bohman": _bohman,
    "cosine": _cosine,
    "lanczos": lambda x: np.sinc(2 * x - 1),
    "tukey": _tukey,
    "exponential": _exponential,
    "kaiser": _kaiser,
    "gaussian": lambda x, std: np.exp(-0.5 * (_from_centre(x) / std) ** 2),
    "general_cosine": lambda x, a: _cosines(*a)(x),
    "general_gaussian": lambda x, p, sig: np.exp(-0.5 * abs(_from_centre(x) / sig) ** (2 * p)),
    "general_hamming": lambda x, alpha: _cosines(alpha, 1 - alpha)(x),
}
_NEED = {"kaiser", "gaussian", "general_cosine", "general_gaussian", "general_hamming"}
_SHORT = {
    "box": "boxcar", "ones": "boxcar", "rect": "boxcar", "rectangular": "boxcar", "tri": "triang", "triangle": "triang", "bart": "bartlett",
    "brt": "bartlett", "hanning": "hann", "han": "hann", "hamm": "hamming", "ham": "hamming", "black": "blackman", "blk": "blackman", "nutl": "nuttall",
    "nut": "nuttall", "bkh": "blackmanharris", "blackharr": "blackmanharris", "flat": "flattop", "flt": "flattop", "brthan": "barthann", "bth": "barthann",
    "parz": "parzen", "par": "parzen", "bman": "bohman", "bmn": "bohman", "halfcosine": "cosine", "sinc": "lanczos", "tuk": "tukey", "poisson": "exponential",
    "ksr": "kaiser", "gauss": "gaussian", "gss": "gaussian", "general gauss": "general_gaussian", "general cosine": "general_cosine",
}  # fmt: skip


def window(name, n):
    """The n points, float64. name: a name, a tuple of one and its parameters, or a number, the beta
    of "kaiser".

    Raises ValueError for another.
    """
    if isinstance(name, tuple):
        name, *parameters = name
    elif isinstance(name, str):
        parameters = []
    else:
        name, parameters = "kaiser", [float(name)]
    key = _SHORT.get(name, name)
    if key not in _WINDOWS:
        raise ValueError(f"Invalid window name '{name}' in parameter window={name!r}!")
    if key in _NEED and not parameters:
        raise ValueError(f"The '{key}' window needs one or more parameters -- pass a tuple.")
    if n < 1:
        return np.ones(max(n, 0))
    if n == 1:
        return np.ones(1)
    w = np.asarray(_WINDOWS[key](np.arange(n + 1) / n, *parameters), float)
    return w[:-1]
