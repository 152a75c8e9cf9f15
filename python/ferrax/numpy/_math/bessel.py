"""The modified Bessel functions I0 and I1 and their derivatives of all orders, which are infinite and not NaN where the functions are.

Invariant: what is added is scaled by exp(-|x|), and multiplied by exp(|x|) once.
"""

from __future__ import annotations

import functools
import itertools
import math

from ... import lax
from ..._base.dtypes import finfo
from ...custom_derivatives import custom_jvp


def _unscaled(scaled, x):
    """exp(|x|) times scaled(x), in two steps, for the product may be finite where the exponential is
    not; at an infinity what it is at the largest number.
    """
    most = float(finfo(x.dtype).max)
    x = lax.clamp(lax.full_like(x, -most), x, lax.full_like(x, most))
    size = lax.abs(x)
    return lax.exp(lax.min(size, lax.full_like(x, 10))) * scaled(x) * lax.exp(lax.max(size - 10, lax.full_like(x, 0)))


def _polynomial(coefficients, x):
    """Coefficients of the constants first."""
    total = lax.full_like(x, 0)
    for c in reversed(coefficients):
        total = total * x + lax.full_like(x, c)
    return total


@functools.cache
def _combined(p, q):
    """p(1 / x) I0(x) + q(1 / x) I1(x), away from 0, p and q being coefficients; its slope is another such sum."""
    after = lambda c: (0.0, 0.0, *(-k * a for k, a in enumerate(c) if k))  # -u^2 dc / du, u being 1 / x
    plus = lambda *cs: tuple(map(math.fsum, itertools.zip_longest(*cs, fillvalue=0.0)))

    @custom_jvp
    def combined(x):
        return _unscaled(lambda x: _polynomial(p, 1 / x) * lax.bessel_i0e(x) + _polynomial(q, 1 / x) * lax.bessel_i1e(x), x)

    @combined.defjvp
    def _(primals, tangents):
        (x,), (dx,) = primals, tangents
        slope = _combined(plus(after(p), q), plus(after(q), p, (0.0, *(-a for a in q))))
        return combined(x), slope(x) * dx

    return combined


@custom_jvp
def modified_bessel_0(x):
    """I0(x)."""
    return _unscaled(lax.bessel_i0e, x)


@modified_bessel_0.defjvp
def _i0_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return modified_bessel_0(x), modified_bessel_1(x) * dx


@custom_jvp
def modified_bessel_1(x):
    """I1(x)."""
    return _unscaled(lax.bessel_i1e, x)


@modified_bessel_1.defjvp
def _i1_jvp(primals, tangents):
    """I1'(x) = I0(x) - I1(x) / x; the quotient by its series in x near 0, which has all derivatives
    there (Abramowitz and Stegun 9.6.10).
    """
    (x,), (dx,) = primals, tangents
    far = lax.abs(x) > 1
    near, beyond = lax.select(far, lax.full_like(x, 0), x), lax.select(far, x, lax.full_like(x, 1))
    series = [0.5 / (math.factorial(k) * math.factorial(k + 1)) for k in range(12)]
    slope = modified_bessel_0(near) - _polynomial(series, near * near / 4)
    return modified_bessel_1(x), lax.select(far, _combined((1.0,), (0.0, -1.0))(beyond), slope) * dx
