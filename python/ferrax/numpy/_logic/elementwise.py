"""Comparisons and logic of elements.

Invariant: the result is an array of bool. `_functional.ufuncs` turns `logical_and`, `logical_or`
and `logical_xor` into ufuncs.

    >>> jnp.less(jnp.arange(3), 1)
    Array([ True, False, False], dtype=bool)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _core
from ..._base.dtypes import is_bool
from ..._core import bind
from .._support import sections
from .._support.arguments import as_array, check_arraylike, filled_like, pointwise

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


@sections.comparison
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x == y as bool.

    >>> jnp.equal(jnp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return pointwise("equal", "eq", x, y)


@sections.comparison
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x != y as bool.

    >>> jnp.not_equal(jnp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return pointwise("not_equal", "ne", x, y)


@sections.comparison
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x < y as bool; complex numbers compare by real, then imaginary part.

    >>> jnp.less(jnp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return pointwise("less", "lt", x, y)


@sections.comparison
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x <= y as bool; complex numbers compare by real, then imaginary part.

    >>> jnp.less_equal(jnp.array([1, 2]), 2)
    Array([ True,  True], dtype=bool)
    """
    return pointwise("less_equal", "le", x, y)


@sections.comparison
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x > y as bool; complex numbers compare by real, then imaginary part.

    >>> jnp.greater(jnp.array([1, 2]), 1)
    Array([False,  True], dtype=bool)
    """
    return pointwise("greater", "gt", x, y)


@sections.comparison
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x >= y as bool; complex numbers compare by real, then imaginary part.

    >>> jnp.greater_equal(jnp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return pointwise("greater_equal", "ge", x, y)


def logical_truth(x):
    """x != 0 as bool."""
    return x if is_bool(x.dtype) else bind("ne", x, filled_like(0, x))


@sections.predicate
def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is zero.

    >>> jnp.logical_not(jnp.array([0, 3]))
    Array([ True, False], dtype=bool)
    """
    return bind("not", logical_truth(as_array("logical_not", x)))


def _logical(name, primitive, x, y):
    check_arraylike(name, x, y)
    x, y = _core.promote_shapes(*_core.promote_dtypes(x, y))
    if not is_bool(x.dtype):
        zero = filled_like(0, x if x.ndim else y)
        x, y = bind("ne", x, zero), bind("ne", y, zero)
    return bind(primitive, x, y)


@sections.comparison
def logical_and(x, y, /):
    """Whether x and y are both nonzero.

    >>> jnp.logical_and(jnp.array([True, False]), True)
    Array([ True, False], dtype=bool)
    """
    return _logical("logical_and", "and", x, y)


@sections.comparison
def logical_or(x, y, /):
    """Whether x or y is nonzero.

    >>> jnp.logical_or(jnp.array([True, False]), False)
    Array([ True, False], dtype=bool)
    """
    return _logical("logical_or", "or", x, y)


@sections.comparison
def logical_xor(x, y, /):
    """Whether exactly one of x and y is nonzero.

    >>> jnp.logical_xor(jnp.array([True, False]), True)
    Array([False,  True], dtype=bool)
    """
    return _logical("logical_xor", "xor", x, y)
