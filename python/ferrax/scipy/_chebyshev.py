"""Functions from their Chebyshev coefficients, piece by piece (tables in `_chebyshev_tables`).

Invariant: the sum runs from the smallest term to the largest (Clenshaw 1955), and for 32-bit types
stops where terms cannot be seen.

    evaluate(SI, x * x) is Si(x) / x
"""

from .. import numpy as jnp


def _needed(coefficients, dtype):
    """The coefficients that the dtype can show."""
    if dtype.itemsize == 8:
        return coefficients
    seen = max(map(abs, coefficients)) * 2.0**-28
    return coefficients[: max(i for i, c in enumerate(coefficients) if abs(c) > seen) + 1]


def evaluate(table, t):
    """The function that the table describes, at t; outside its intervals, at the nearest point of
    them.
    """
    out = None
    for low, high, coefficients in reversed(table):
        s = (2 * jnp.clip(t, low, high) - (low + high)) / (high - low)
        b1 = b2 = 0.0
        for c in reversed(_needed(coefficients, t.dtype)[1:]):
            b1, b2 = 2 * s * b1 - b2 + c, b1
        value = s * b1 - b2 + coefficients[0]
        out = value if out is None else jnp.where(t > high, out, value)
    return out
