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
from . import _sections as sections

if TYPE_CHECKING:
    from .._core import Array


def _cumulative(name, operand, axis, reverse):
    axis = operator.index(axis)
    if axis < 0:
        raise ValueError("negative axes are not allowed here")
    if axis >= np.ndim(operand):
        raise ValueError(f"axis {axis} is out of bounds for array of shape {np.shape(operand)}")
    return bind(name, operand, axis=axis, reverse=bool(reverse))


@sections.cumulative
def cumsum(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Running sum along `axis`, from the end if `reverse`.

    >>> lax.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _cumulative("cumsum", operand, axis, reverse)


@sections.cumulative
def cumprod(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Running product along `axis`, from the end if `reverse`.

    >>> lax.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _cumulative("cumprod", operand, axis, reverse)


@sections.cumulative
def cummax(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Running maximum along `axis`, from the end if `reverse`.

    >>> lax.cummax(jnp.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return _cumulative("cummax", operand, axis, reverse)


@sections.cumulative
def cummin(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Running minimum along `axis`, from the end if `reverse`.

    >>> lax.cummin(jnp.array([3, 1, 2]), reverse=True)
    Array([1, 1, 2], dtype=int32)
    """
    return _cumulative("cummin", operand, axis, reverse)


@sections.cumulative
def cumlogsumexp(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Running log(sum(exp(x))) along `axis`, from the end if `reverse`.

    >>> lax.cumlogsumexp(jnp.array([0.0, 0.0]))
    Array([0.       , 0.6931472], dtype=float32)
    """
    return _cumulative("cumlogsumexp", operand, axis, reverse)
