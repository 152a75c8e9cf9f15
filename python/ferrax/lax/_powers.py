"""Powers, roots, exponential functions and logarithms, element by element: one primitive each.

Invariant: no promotion, and broadcasting as in `_arithmetic`.

    >>> lax.exp(jnp.zeros(2))
    Array([1., 1.], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from .._base.dtypes import is_inexact
from .._core import bind
from . import _sections as sections
from ._parameters import accuracy_parameters

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike
    from ._parameters import AccuracyMode, Tolerance


def cbrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Cube root.

    Args:
        x: array of floats.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one
          implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.cbrt(jnp.array([8.0]))
    Array([2.], dtype=float32)
    """
    return bind("cbrt", x, **accuracy_parameters(accuracy))


@sections.accurate
def exp(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """e ** x.

    >>> lax.exp(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return bind("exp", x, **accuracy_parameters(accuracy))


@sections.accurate
def exp2(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """2 ** x.

    >>> lax.exp2(jnp.array([3.0]))
    Array([8.], dtype=float32)
    """
    return bind("exp2", x, **accuracy_parameters(accuracy))


@sections.accurate
def expm1(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """e ** x - 1, accurate near zero.

    >>> lax.expm1(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("expm1", x, **accuracy_parameters(accuracy))


@sections.accurate
def log(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Natural logarithm.

    >>> lax.log(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return bind("log", x, **accuracy_parameters(accuracy))


@sections.accurate
def log1p(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """log(1 + x), accurate near zero.

    >>> lax.log1p(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("log1p", x, **accuracy_parameters(accuracy))


@sections.accurate
def logistic(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """1 / (1 + exp(-x)).

    >>> lax.logistic(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return bind("logistic", x, **accuracy_parameters(accuracy))


@sections.accurate
def rsqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """1 / sqrt(x).

    >>> lax.rsqrt(jnp.array([4.0]))
    Array([0.5], dtype=float32)
    """
    return bind("rsqrt", x, **accuracy_parameters(accuracy))


@sections.accurate
def sqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Square root.

    >>> lax.sqrt(jnp.array([9.0]))
    Array([3.], dtype=float32)
    """
    return bind("sqrt", x, **accuracy_parameters(accuracy))


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x ** y.

    Args:
        x: array, float or complex.
        y: array of x's dtype or of integers; of x's rank, where sizes of 1 broadcast, or a scalar.

    Returns:
        Array of the broadcast shape and of x's dtype.

    Raises:
        TypeError: for other dtypes and shapes.

    >>> lax.pow(jnp.array([2.0]), jnp.array([3.0]))
    Array([8.], dtype=float32)
    """
    return bind("pow", x, y)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x ** y for a Python integer y.

    Args:
        x: array of numbers.
        y: int.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: where an integer x meets a negative y.

    >>> lax.integer_pow(jnp.array([2.0]), 3)
    Array([8.], dtype=float32)
    """
    aval = _core.get_aval(x)
    if y < 0 and not is_inexact(aval.dtype):
        raise TypeError(f"Integers cannot be raised to negative powers, got integer_pow({aval.dtype.name}[{','.join([str(n) for n in aval.shape])}], {y})")
    return bind("integer_pow", x, y=y)
