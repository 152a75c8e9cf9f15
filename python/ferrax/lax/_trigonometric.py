"""Trigonometric and hyperbolic functions, element by element: one primitive each.

Invariant: no promotion, and broadcasting as in `_arithmetic`.

    >>> lax.cos(jnp.zeros(2))
    Array([1., 1.], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import bind
from ._parameters import accuracy_parameters

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike
    from ._parameters import AccuracyMode, Tolerance


def acos(x: ArrayLike) -> Array:
    """Arc cosine in radians.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.acos(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return bind("acos", x)


def acosh(x: ArrayLike) -> Array:
    """Inverse hyperbolic cosine.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.acosh(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return bind("acosh", x)


def asin(x: ArrayLike) -> Array:
    """Arc sine in radians.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.asin(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("asin", x)


def asinh(x: ArrayLike) -> Array:
    """Inverse hyperbolic sine.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.asinh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("asinh", x)


def atan(x: ArrayLike) -> Array:
    """Arc tangent in radians.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.atan(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("atan", x)


def atanh(x: ArrayLike) -> Array:
    """Inverse hyperbolic tangent.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.atanh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("atanh", x)


def cosh(x: ArrayLike) -> Array:
    """Hyperbolic cosine.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.cosh(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return bind("cosh", x)


def sinh(x: ArrayLike) -> Array:
    """Hyperbolic sine.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.sinh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("sinh", x)


def cos(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Cosine of x radians.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one
          implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.cos(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return bind("cos", x, **accuracy_parameters(accuracy))


def sin(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Sine of x radians.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one
          implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.sin(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("sin", x, **accuracy_parameters(accuracy))


def tan(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Tangent of x radians.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one
          implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.tan(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("tan", x, **accuracy_parameters(accuracy))


def tanh(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Hyperbolic tangent.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one
          implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.tanh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("tanh", x, **accuracy_parameters(accuracy))


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """Angle of the point (y, x), that is arctan(x / y) in the right quadrant.

    Args:
        x, y: arrays of one dtype, float or complex, and of one rank, where sizes of 1 broadcast; or
          scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for bool.

    >>> lax.atan2(jnp.array([0.0]), jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return bind("atan2", x, y)
