"""Comparisons, selections and operations on bits, element by element: one primitive each.

Invariant: no promotion, and broadcasting as in `_arithmetic`.

    >>> lax.lt(jnp.array([1, 3]), 2)
    Array([ True, False], dtype=bool)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import bind
from . import _sections as sections

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike


def clz(x: ArrayLike) -> Array:
    """Number of leading zero bits.

    Args:
        x: array of integers.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.clz(jnp.array([1]))
    Array([31], dtype=int32)
    """
    return bind("clz", x)


def population_count(x: ArrayLike) -> Array:
    """Number of set bits.

    Args:
        x: array of integers.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.population_count(jnp.array([7]))
    Array([3], dtype=int32)
    """
    return bind("population_count", x)


@sections.bits
def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Bitwise and.

    >>> lax.bitwise_and(jnp.array([6]), jnp.array([3]))
    Array([2], dtype=int32)
    """
    return bind("and", x, y)


@sections.bits
def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Bitwise or.

    >>> lax.bitwise_or(jnp.array([6]), jnp.array([3]))
    Array([7], dtype=int32)
    """
    return bind("or", x, y)


@sections.bits
def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Bitwise exclusive or.

    >>> lax.bitwise_xor(jnp.array([6]), jnp.array([3]))
    Array([5], dtype=int32)
    """
    return bind("xor", x, y)


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """x == y, elementwise, as bool.

    Args:
        x, y: arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of bool of the broadcast shape.

    Raises:
        TypeError: if dtypes or shapes differ.

    >>> lax.eq(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([ True, False], dtype=bool)
    """
    return bind("eq", x, y)


@sections.order
def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """x >= y, elementwise, as bool.

    >>> lax.ge(jnp.array([1, 2]), jnp.array([2, 2]))
    Array([False,  True], dtype=bool)
    """
    return bind("ge", x, y)


@sections.order
def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """x > y, elementwise, as bool.

    >>> lax.gt(jnp.array([1, 3]), jnp.array([2, 2]))
    Array([False,  True], dtype=bool)
    """
    return bind("gt", x, y)


@sections.order
def le(x: ArrayLike, y: ArrayLike) -> Array:
    """x <= y, elementwise, as bool.

    >>> lax.le(jnp.array([1, 2]), jnp.array([2, 2]))
    Array([ True,  True], dtype=bool)
    """
    return bind("le", x, y)


@sections.order
def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """x < y, elementwise, as bool.

    >>> lax.lt(jnp.array([1, 2]), jnp.array([2, 2]))
    Array([ True, False], dtype=bool)
    """
    return bind("lt", x, y)


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """x != y, elementwise, as bool.

    Args:
        x, y: arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of bool of the broadcast shape.

    Raises:
        TypeError: if dtypes or shapes differ.

    >>> lax.ne(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([False,  True], dtype=bool)
    """
    return bind("ne", x, y)


@sections.integers
def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """x << y.

    >>> lax.shift_left(jnp.array([1, 2]), jnp.array([3, 3]))
    Array([ 8, 16], dtype=int32)
    """
    return bind("shift_left", x, y)


@sections.integers
def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """x >> y that repeats the sign bit.

    >>> lax.shift_right_arithmetic(jnp.array([-16]), jnp.array([2]))
    Array([-4], dtype=int32)
    """
    return bind("shift_right_arithmetic", x, y)


@sections.integers
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """x >> y that shifts in zeros.

    >>> lax.shift_right_logical(jnp.array([16]), jnp.array([2]))
    Array([4], dtype=int32)
    """
    return bind("shift_right_logical", x, y)


def bitwise_not(x: ArrayLike) -> Array:
    """Bitwise complement; logical not for bool.

    Args:
        x: array, integer or bool.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.bitwise_not(jnp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return bind("not", x)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where `pred`, else `on_false`.

    Args:
        pred: array of bool, a scalar or of the cases' shape.
        on_true, on_false: arrays of one shape and dtype.

    Returns:
        Array of the cases' shape and dtype.

    Raises:
        TypeError: if shapes or dtypes differ.

    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    return bind("select_n", pred, on_false, on_true)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """`cases[which]` element by element.

    Args:
        which: array of bool (up to two cases) or int32, a scalar or of the cases' shape.
        *cases: arrays of one shape and dtype.

    Returns:
        Array of the cases' shape and dtype.

    Raises:
        ValueError: for no case.
        TypeError: if shapes or dtypes differ.

    >>> lax.select_n(jnp.array([1, 0]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([3, 2], dtype=int32)
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return bind("select_n", which, *cases)
