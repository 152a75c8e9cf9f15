"""Modified Bessel functions of orders 0 and 1, also times exp(-|x|).

Invariant: each is the derivative of the other, up to terms of 1 / x.

    >>> i0(0.0)
    Array(1., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ... import lax, numpy as jnp
from ...custom_derivatives import custom_jvp
from .._halves import in_single
from ._arguments import _floats, _of_floats

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

# ---------------------------------------------------------------- Bessel functions, numbers


@in_single
def i0e(x: ArrayLike) -> Array:
    """exp(-|x|) times the modified Bessel function of order 0.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or not an array or number.

    >>> i0e(jnp.array([0.0, 1.0]))
    Array([1.       , 0.4657596], dtype=float32)
    """
    return _of_floats("i0e", "bessel_i0e", x)


def _unscaled(x, scaled):
    """exp(|x|) times `scaled`, in two steps, for the product may be finite where the exponential is
    not.
    """
    x = jnp.abs(x)
    return jnp.exp(lax.min(x, lax.full_like(x, 10))) * scaled * jnp.exp(lax.max(x - 10, lax.full_like(x, 0)))


@in_single
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or not an array or number.

    >>> i0(jnp.array([0.0, 1.0]))
    Array([1.       , 1.2660658], dtype=float32)
    """
    return _i0(_floats("i0", x))


@custom_jvp
def _i0(x):
    return _unscaled(x, lax.bessel_i0e(x))


@_i0.defjvp
def _i0_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _i0(x), _i1(x) * dx


@in_single
def i1e(x: ArrayLike) -> Array:
    """exp(-|x|) times the modified Bessel function of order 1.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or not an array or number.

    >>> i1e(jnp.array([0.0, 1.0]))
    Array([0.        , 0.20791042], dtype=float32)
    """
    return _of_floats("i1e", "bessel_i1e", x)


@in_single
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or not an array or number.

    >>> i1(jnp.array([0.0, 1.0]))
    Array([0.       , 0.5651591], dtype=float32)
    """
    return _i1(_floats("i1", x))


@custom_jvp
def _i1(x):
    return _unscaled(x, lax.bessel_i1e(x))


@_i1.defjvp
def _i1_jvp(primals, tangents):
    """I1'(x) = I0(x) - I1(x) / x; the quotient by its series in x near 0, which has all derivatives
    there (Abramowitz and Stegun 9.6.10).
    """
    (x,), (dx,) = primals, tangents
    far = jnp.abs(x) > 1
    quarter = jnp.square(jnp.where(far, 0, x)) / 4
    near = jnp.polyval(jnp.array([0.5 / (math.factorial(k) * math.factorial(k + 1)) for k in reversed(range(12))], x.dtype), quarter)
    return _i1(x), (_i0(x) - jnp.where(far, _i1(x) / jnp.where(far, x, 1), near)) * dx
