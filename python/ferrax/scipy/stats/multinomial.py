"""The multinomial distribution: counts of the outcomes of n trials, the outcomes having
probabilities p.

>>> pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))
Array(0.5, dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._tracing.jit import jit
from ...numpy._support import arguments as _arguments
from ..special import _saddle_points
from . import _families

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


@jit
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability: log(n!) + sum over i of x_i log(p_i) - log(x_i!).

    Args:
        x: counts of the outcomes, integers (..., outcomes).
        n: numbers of trials, integers (...).
        p: probabilities, reals (..., outcomes).

    Returns:
        Float array of the common shape without the last axis; -inf where the counts do not sum to
        n, or one is negative.

    Raises:
        TypeError: an argument is a list.
        ValueError: x or n does not have an integer dtype.

    >>> logpmf(jnp.array([3, 0]), 2, jnp.array([0.5, 0.5]))
        Array(-inf, dtype=float32)
    """
    _arguments.check_arraylike("multinomial.logpmf", x, n, p)
    # Booleans count beside a number.
    counts, n, _ = _arguments.promote("multinomial.logpmf", x, n, 0)
    if not jnp.issubdtype(counts.dtype, jnp.integer):
        raise ValueError(f"x and n must be of integer type; got x.dtype={counts.dtype}, n.dtype={n.dtype}")
    (p,) = _families.reals("multinomial.logpmf", p)
    possible = jnp.all(counts >= 0, axis=-1) & (jnp.sum(counts, axis=-1) == n)
    k = jnp.where(counts >= 0, counts, 0).astype(p.dtype)
    of_factorials = lambda m: jnp.log(jnp.where(m > 0, m, 1))  # m! = m gamma(m)
    value = _saddle_points.log_multinomial(*jnp.broadcast_arrays(k, p)) + of_factorials(n.astype(p.dtype)) - jnp.sum(of_factorials(k), axis=-1)
    return jnp.where(possible, value, -jnp.inf)


@jit
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability, exp(logpmf(x, n, p)).

    Args:
        x: counts of the outcomes, integers (..., outcomes).
        n: numbers of trials, integers (...).
        p: probabilities, reals (..., outcomes).

    Returns:
        Float array of the common shape without the last axis; 0 where the counts do not sum to n,
        or one is negative.

    Raises:
        TypeError: an argument is a list.
        ValueError: x or n does not have an integer dtype.

    >>> pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))
    Array(0.5, dtype=float32)
    """
    return jnp.exp(logpmf(x, n, p))
