"""Trigonometric and hyperbolic functions, element by element: one primitive each.

Invariant: no promotion, and broadcasting as in `_arithmetic`.

    >>> lax.cos(jnp.zeros(2))
    Array([1., 1.], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import bind
from . import _sections as sections
from ._parameters import accuracy_parameters

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike
    from ._parameters import AccuracyMode, Tolerance


@sections.analytic
def acos(x: ArrayLike) -> Array:
    """Arc cosine in radians.

    >>> lax.acos(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return bind("acos", x)


@sections.analytic
def acosh(x: ArrayLike) -> Array:
    """Inverse hyperbolic cosine.

    >>> lax.acosh(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return bind("acosh", x)


@sections.analytic
def asin(x: ArrayLike) -> Array:
    """Arc sine in radians.

    >>> lax.asin(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("asin", x)


@sections.analytic
def asinh(x: ArrayLike) -> Array:
    """Inverse hyperbolic sine.

    >>> lax.asinh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("asinh", x)


@sections.analytic
def atan(x: ArrayLike) -> Array:
    """Arc tangent in radians.

    >>> lax.atan(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("atan", x)


@sections.analytic
def atanh(x: ArrayLike) -> Array:
    """Inverse hyperbolic tangent.

    >>> lax.atanh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("atanh", x)


@sections.analytic
def cosh(x: ArrayLike) -> Array:
    """Hyperbolic cosine.

    >>> lax.cosh(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return bind("cosh", x)


@sections.analytic
def sinh(x: ArrayLike) -> Array:
    """Hyperbolic sine.

    >>> lax.sinh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("sinh", x)


@sections.accurate
def cos(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Cosine of x radians.

    >>> lax.cos(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return bind("cos", x, **accuracy_parameters(accuracy))


@sections.accurate
def sin(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Sine of x radians.

    >>> lax.sin(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("sin", x, **accuracy_parameters(accuracy))


@sections.accurate
def tan(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Tangent of x radians.

    >>> lax.tan(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("tan", x, **accuracy_parameters(accuracy))


@sections.accurate
def tanh(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Hyperbolic tangent.

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
