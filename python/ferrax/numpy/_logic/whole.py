"""Whole-array comparisons and predicates on objects.

Invariant: a result that depends on values is an array of bool; one that depends on types alone is a
Python bool.

    >>> jnp.allclose(1.0, 1.0 + 1e-9)
    Array(True, dtype=bool)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._base.dtypes import dtype_of, is_bool, is_inexact, is_key
from .._creation.arrays import asarray
from .._indexing.selecting import where
from .._math.arithmetic import absolute
from .._math.floating_point import isfinite, isnan
from .._math.operators import add, multiply, subtract
from .._reductions import plain as _reductions
from .._support.arguments import Array, check_arraylike, check_promotion, is_arraylike, jitted, ndim_of
from .elementwise import equal, less_equal, logical_and, logical_or

if TYPE_CHECKING:
    from ...typing import ArrayLike


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and elements.

    Args:
        a1, a2: arrays of numbers.
        equal_nan: whether nan equals nan.

    Returns:
        Scalar array of bool.

    >>> jnp.array_equal(jnp.arange(2), jnp.array([0, 1]))
    Array(True, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    if tuple(a1.shape) != tuple(a2.shape):
        return _core.asarray(np.False_)
    check_promotion(a1, a2)
    same = equal(a1, a2)
    if equal_nan:
        same = logical_or(same, logical_and(isnan(a1), isnan(a2)))
    return _reductions.all(same)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays are equal once broadcast to a common shape; False where they do not
    broadcast.

    Args:
        a1, a2: arrays of numbers.

    Returns:
        Scalar array of bool.

    >>> jnp.array_equiv(jnp.ones((2, 2)), jnp.ones(2))
    Array(True, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    try:
        check_promotion(a1, a2)
        same = equal(a1, a2)
    except ValueError:
        return _core.asarray(np.False_)
    return _reductions.all(same)


def _flag(value):
    """A flag that may be traced; anything else is true or false as Python has it."""
    return value if isinstance(value, _core.Array) else bool(value)


@jitted("isclose")
def _isclose(a, b, rtol, atol, equal_nan):
    a, b = _core.promote_dtypes(a, b)
    dtype = a.dtype
    if is_bool(dtype) or is_key(dtype):
        return equal(a, b)
    if not is_inexact(dtype):
        a, b = _core.promote_dtypes_inexact(a, b)
    close = less_equal(absolute(subtract(a, b)), add(atol, multiply(rtol, absolute(b))))
    finite = logical_and(isfinite(a), isfinite(b))
    # Infinities are close to themselves alone.
    out = where(finite, close, equal(a, b))
    return logical_or(out, logical_and(logical_and(isnan(a), isnan(b)), equal_nan))


def isclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False) -> Array:
    """|a - b| <= atol + rtol |b|, elementwise; infinities are close to themselves.

    Args:
        a, b: arrays of numbers that broadcast.
        rtol: relative tolerance, of |b|.
        atol: absolute tolerance.
        equal_nan: whether nan is close to nan.

    Returns:
        Array of bool of the broadcast shape.

    >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.1]))
    Array([ True, False], dtype=bool)
    """
    check_arraylike("isclose", a, b)
    check_promotion(a, b, ranks=True)
    return _isclose(a, b, rtol, atol, _flag(equal_nan))


@jitted("allclose")
def _allclose(a, b, rtol, atol, equal_nan):
    return _reductions.all(isclose(a, b, rtol, atol, equal_nan))


def allclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False) -> Array:
    """Whether all elements are close (see `isclose`).

    Args:
        a, b: arrays of numbers that broadcast.
        rtol: relative tolerance, of |b|.
        atol: absolute tolerance.
        equal_nan: whether nan is close to nan.

    Returns:
        Scalar array of bool.

    >>> jnp.allclose(jnp.array([1.0]), jnp.array([1.0 + 1e-7]))
    Array(True, dtype=bool)
    """
    check_arraylike("allclose", a, b)
    check_promotion(a, b, ranks=True)
    return _allclose(a, b, rtol, atol, _flag(equal_nan))


def iscomplexobj(x: Any) -> bool:
    """Whether x's dtype is complex, independent of its values.

    Args:
        x: array, number or nested lists of them.

    Returns:
        bool.

    >>> jnp.iscomplexobj(jnp.array([1j]))
    True
    """
    if x is None:
        return False
    if isinstance(x, (list, tuple)):
        return any(iscomplexobj(v) for v in x)
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        dtype = dtype_of(x) if is_arraylike(x) else np.asarray(x).dtype
    return getattr(dtype, "kind", None) == "c"


def isrealobj(x: Any) -> bool:
    """Whether x's dtype is not complex.

    Args:
        x: array, number or nested lists of them.

    Returns:
        bool.

    >>> jnp.isrealobj(jnp.array([1.0]))
    True
    """
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether element is a number or an array of rank 0 (or a string, as in numpy).

    Args:
        element: any object.

    Returns:
        bool.

    >>> jnp.isscalar(3.0)
    True
    """
    if isinstance(element, (Array, np.ndarray)) or hasattr(element, "__jax_array__"):
        return ndim_of(element) == 0
    return np.isscalar(element)


def iterable(y: Any) -> bool:
    """Whether y can be iterated over.

    Args:
        y: any object.

    Returns:
        bool.

    >>> jnp.iterable(3.0)
    False
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True
