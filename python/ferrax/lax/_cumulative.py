"""Running sums, products and extremes along an axis.

Invariant: the result has the operand's shape; element i combines the elements up to i, or from i on
where `reverse` is True.

    >>> lax.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from .._core import bind

if TYPE_CHECKING:
    from .._core import Array


def _cumulative(name, operand, axis, reverse):
    axis = operator.index(axis)
    if axis < 0:
        raise ValueError("negative axes are not allowed here")
    if axis >= np.ndim(operand):
        raise ValueError(f"axis {axis} is out of bounds for array of shape {np.shape(operand)}")
    return bind(name, operand, axis=axis, reverse=bool(reverse))


def cumsum(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Running sum along `axis`, from the end if `reverse`.

    Args:
        operand: array of numbers.
        axis: int, not negative.
        reverse: bool: from the end.

    Returns:
        Array of operand's shape and dtype.

    Raises:
        ValueError: for an axis out of bounds.

    >>> lax.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _cumulative("cumsum", operand, axis, reverse)


def cumprod(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Running product along `axis`, from the end if `reverse`.

    Args:
        operand: array of numbers.
        axis: int, not negative.
        reverse: bool: from the end.

    Returns:
        Array of operand's shape and dtype.

    Raises:
        ValueError: for an axis out of bounds.

    >>> lax.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _cumulative("cumprod", operand, axis, reverse)


def cummax(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Running maximum along `axis`, from the end if `reverse`.

    Args:
        operand: array of numbers.
        axis: int, not negative.
        reverse: bool: from the end.

    Returns:
        Array of operand's shape and dtype.

    Raises:
        ValueError: for an axis out of bounds.

    >>> lax.cummax(jnp.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return _cumulative("cummax", operand, axis, reverse)


def cummin(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Running minimum along `axis`, from the end if `reverse`.

    Args:
        operand: array of numbers.
        axis: int, not negative.
        reverse: bool: from the end.

    Returns:
        Array of operand's shape and dtype.

    Raises:
        ValueError: for an axis out of bounds.

    >>> lax.cummin(jnp.array([3, 1, 2]), reverse=True)
    Array([1, 1, 2], dtype=int32)
    """
    return _cumulative("cummin", operand, axis, reverse)


def cumlogsumexp(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Running log(sum(exp(x))) along `axis`, from the end if `reverse`.

    Args:
        operand: array of numbers.
        axis: int, not negative.
        reverse: bool: from the end.

    Returns:
        Array of operand's shape and dtype.

    Raises:
        ValueError: for an axis out of bounds.

    >>> lax.cumlogsumexp(jnp.array([0.0, 0.0]))
    Array([0.       , 0.6931472], dtype=float32)
    """
    return _cumulative("cumlogsumexp", operand, axis, reverse)
