"""Comparisons of elements, and their truth values.

Invariant: the result is an array of bool. (`logical_and`, `logical_or` and `logical_xor` are `ufunc` objects, in `_ufuncs`.)

    >>> jnp.less(jnp.arange(3), 1)
    Array([ True, False, False], dtype=bool)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.dtypes import is_bool
from .._core import bind
from ._arguments import as_array, filled_like, pointwise

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike


def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x == y as bool.

    Args:
        x, y: arrays of numbers that broadcast.

    Returns:
        Array of bool of the broadcast shape.

    >>> jnp.equal(jnp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return pointwise("equal", "eq", x, y)


def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x != y as bool.

    Args:
        x, y: arrays of numbers that broadcast.

    Returns:
        Array of bool of the broadcast shape.

    >>> jnp.not_equal(jnp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return pointwise("not_equal", "ne", x, y)


def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x < y as bool; complex numbers compare by real, then imaginary part.

    Args:
        x, y: arrays of numbers that broadcast.

    Returns:
        Array of bool of the broadcast shape.

    >>> jnp.less(jnp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return pointwise("less", "lt", x, y)


def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x <= y as bool; complex numbers compare by real, then imaginary part.

    Args:
        x, y: arrays of numbers that broadcast.

    Returns:
        Array of bool of the broadcast shape.

    >>> jnp.less_equal(jnp.array([1, 2]), 2)
    Array([ True,  True], dtype=bool)
    """
    return pointwise("less_equal", "le", x, y)


def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x > y as bool; complex numbers compare by real, then imaginary part.

    Args:
        x, y: arrays of numbers that broadcast.

    Returns:
        Array of bool of the broadcast shape.

    >>> jnp.greater(jnp.array([1, 2]), 1)
    Array([False,  True], dtype=bool)
    """
    return pointwise("greater", "gt", x, y)


def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x >= y as bool; complex numbers compare by real, then imaginary part.

    Args:
        x, y: arrays of numbers that broadcast.

    Returns:
        Array of bool of the broadcast shape.

    >>> jnp.greater_equal(jnp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return pointwise("greater_equal", "ge", x, y)


def logical_truth(x):
    """x != 0 as bool."""
    return x if is_bool(x.dtype) else bind("ne", x, filled_like(0, x))


def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is zero.

    Args:
        x: array of numbers.

    Returns:
        Array of bool of x's shape.

    >>> jnp.logical_not(jnp.array([0, 3]))
    Array([ True, False], dtype=bool)
    """
    return bind("not", logical_truth(as_array("logical_not", x)))
