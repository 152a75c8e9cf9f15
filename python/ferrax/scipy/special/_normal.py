"""The error function and its inverse, and probabilities and quantiles of the standard normal
distribution.

Invariant: tails keep their relative accuracy until they underflow.

    >>> ndtr(0.0)
    Array(0.5, dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import lax, numpy as jnp
from ..._tracing.jit import jit
from ...custom_derivatives import custom_jvp
from .._halves import in_single
from ._arguments import _floats, _of_floats
from ._error_functions import log_ndtr

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

# ---------------------------------------------------------------- errors and normal probabilities


def erf(x: ArrayLike) -> Array:
    """The error function.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or not an array or number.

    >>> erf(jnp.array([0.0, 0.5]))
    Array([0.       , 0.5204999], dtype=float32)
    """
    return _of_floats("erf", "erf", x)


def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), accurate for large x.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or not an array or number.

    >>> erfc(jnp.array([0.0, 0.5]))
    Array([1.        , 0.47950011], dtype=float32)
    """
    return _of_floats("erfc", "erfc", x)


def erfinv(x: ArrayLike) -> Array:
    """The inverse of the error function.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or not an array or number.

    >>> erfinv(jnp.array([0.0, 0.5]))
    Array([0.        , 0.47693628], dtype=float32)
    """
    return _of_floats("erfinv", "erf_inv", x)


@in_single
def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the standard normal.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or not an array or number.

    >>> ndtr(jnp.array([0.0, 1.0]))
    Array([0.5      , 0.8413447], dtype=float32)
    """
    x = _floats("ndtr", x)
    return 0.5 * lax.erfc(-x * x.dtype.type(np.sqrt(0.5)))


@in_single
def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`: -inf at 0, inf at 1.

    Args:
        p: probabilities, an array or number.

    Returns:
        Array of p's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: p is complex, or not an array or number.

    >>> ndtri(jnp.array([0.5, 0.8413447]))
    Array([0.       , 0.9999999], dtype=float32)
    """
    return _ndtri(_floats("ndtri", p))


@custom_jvp
@jit
def _ndtri(p):
    root2 = p.dtype.type(np.sqrt(2))
    # Below one half by symmetry, so that small probabilities keep their precision.
    upper = p > 0.5
    q = jnp.where(upper, 1 - p, p)
    small = _ndtri_tail(jnp.where(q < 1e-3, q, 1e-3))
    x = jnp.where(q < 1e-3, small, root2 * lax.erf_inv(2 * jnp.where(q < 1e-3, 0.25, q) - 1))
    x = jnp.where(upper, -x, x)
    return jnp.where(p == 0, -jnp.inf, jnp.where(p == 1, jnp.inf, jnp.where((p < 0) | (p > 1), jnp.nan * p, x)))


@_ndtri.defjvp
def _ndtri_jvp(primals, tangents):
    # One over the density, infinite at both ends.
    (p,), (dp,) = primals, tangents
    x = _ndtri(p)
    return x, dp * (float(np.sqrt(2 * np.pi)) * jnp.exp(0.5 * x * x))


def _ndtri_tail(q):
    """For small q: a start from the asymptotic expansion, made exact by Newton's method on
    log_ndtr.
    """
    t = jnp.sqrt(-2 * jnp.log(jnp.where(q > 0, q, 1e-3)))
    x = -(t - (jnp.log(t) + 0.5 * float(np.log(2 * np.pi))) / t)
    log_q = jnp.log(jnp.where(q > 0, q, 1e-3))
    for _ in range(4):
        log_p = log_ndtr(x)
        x = x - (log_p - log_q) * jnp.exp(log_p + 0.5 * x * x + 0.5 * float(np.log(2 * np.pi)))
    return x
