"""Modified Bessel functions of orders 0 and 1, also times exp(-|x|).

Invariant: each is the derivative of the other, up to terms of 1 / x.

    >>> i0(0.0)
    Array(1., dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...numpy._math.bessel import modified_bessel_0, modified_bessel_1
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
    return modified_bessel_0(_floats("i0", x))


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
    return modified_bessel_1(_floats("i1", x))
