"""Integrals of samples.

Invariant: this file is only the list of public names.

    >>> import ferrax.scipy.integrate
    >>> ferrax.scipy.integrate.trapezoid(jnp.array([0.0, 1.0, 4.0]))
    Array(3., dtype=float32)
"""

from ..numpy import trapezoid

__all__ = ["trapezoid"]
