"""Minima of functions of several variables.

Invariant: this file is only the list of public names.

    >>> import ferrax.scipy.optimize
    >>> ferrax.scipy.optimize.minimize(lambda x: ((x - 2.0) ** 2).sum(), jnp.zeros(2), method="BFGS").x.round(3)
    Array([2., 2.], dtype=float32)
"""

from ._minimize import OptimizeResults as OptimizeResults, minimize as minimize

__all__ = ["OptimizeResults", "minimize"]
