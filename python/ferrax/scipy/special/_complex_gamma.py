"""log(gamma(z)) for complex z.

Invariant: the result is the continuation of the real log(gamma(x)), x > 0, with one cut, along the
negative reals; so gamma's phase is in it whole, where log(gamma(z)) would lose turns of 2 pi.

    Stirling    log gamma(z) = (z - 1/2) log z - z + log(2 pi) / 2 + sum_k B_2k / (2k (2k-1) z^(2k-1)),      far from the origin
    recurrence  log gamma(z) = log gamma(z + 7) - sum_(k<7) log(z + k),                                      near it, on the right
    reflection  log gamma(z) = log pi - log sin(pi z) - log gamma(1 - z) + 2 pi i floor(Re z / 2 + 1/4),     near it, on the left, above the cut
"""

import numpy as np

from ... import lax, numpy as jnp
from ..._tracing.jit import jit

_FAR = 7
# B_2k / (2k (2k - 1)), the last first.
_STIRLING = (-3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)


def _stirling(z):
    inverse = 1 / z
    square = inverse * inverse
    series = _STIRLING[0]
    for c in _STIRLING[1:]:
        series = series * square + c
    return (z - 0.5) * jnp.log(z) - z + 0.5 * float(np.log(2 * np.pi)) + series * inverse


def _log_sin_pi(z):
    """log(sin(pi z)), the principal branch.

    The distance to the nearest zero is exact, and a zero imaginary part keeps its sign.
    """
    real = jnp.real(z)
    nearest = jnp.round(real)
    s = jnp.sin(lax.complex(np.pi * (real - nearest), np.pi * jnp.imag(z)))
    return jnp.log(jnp.where(nearest % 2 == 0, s, -s))


@jit
def log_gamma(z):
    """log(gamma(z)) of a complex array: NaN at the poles."""
    real, imag = lax.stop_gradient(jnp.real(z)), lax.stop_gradient(jnp.imag(z))
    near = jnp.abs(imag) < _FAR
    pole = (imag == 0) & (real <= 0) & (real == jnp.floor(real))
    left = near & (real < 0.5) & ~pole
    # Where an expansion is not taken it runs at a point where it and its derivative are finite.
    right = jnp.where(left, 1 - z, jnp.where(pole, 1, z))
    short = near & (jnp.real(right) < _FAR)
    w = jnp.where(short, right, 1)
    # Pairs have an angle within pi, so that their logarithm is the sum of two.
    passed = jnp.log(w * (w + 1)) + jnp.log((w + 2) * (w + 3)) + jnp.log((w + 4) * (w + 5)) + jnp.log(w + 6)
    out = _stirling(jnp.where(short, w + _FAR, right)) - jnp.where(short, passed, 0)
    half_turns = jnp.floor(jnp.where(left, real, 0.5) / 2 + 0.25)
    turns = lax.complex(jnp.zeros_like(real), 2 * np.pi * jnp.where(jnp.signbit(imag), -half_turns, half_turns))
    reflected = float(np.log(np.pi)) + turns - _log_sin_pi(jnp.where(left, z, 0.5)) - out
    return jnp.where(pole, z.dtype.type(complex(np.nan, np.nan)), jnp.where(left, reflected, out))
