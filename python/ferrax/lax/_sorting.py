"""Sorting and the largest elements.

Invariant: nan sorts last, -0 and 0 are equal, and ties keep their order if `is_stable`.

    >>> lax.sort((jnp.array([3, 1, 2]), jnp.array([0, 1, 2])), num_keys=1)
    (Array([1, 2, 3], dtype=int32), Array([1, 2, 0], dtype=int32))
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from .._base.dtypes import dtype_of, is_floating, refuse_sorted_keys
from .._base.shapes import canonicalize_axis
from .._core import bind
from . import _sections as sections

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike


@overload
def sort(operand: Array, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Array: ...


@overload
def sort(operand: Sequence[Array], dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> tuple[Array, ...]: ...


def sort(operand: Array | Sequence[Array], dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Array | tuple[Array, ...]:
    """`operand` sorted in ascending order along an axis; several operands are sorted together.

    Args:
        operand: array, or a sequence of arrays of one shape.
        dimension: int.
        is_stable: bool; equal elements keep their order.
        num_keys: int, how many of the operands are keys.

    Returns:
        Array, or a tuple of arrays, like operand.

    Raises:
        ValueError: for a `num_keys` out of range.
        TypeError: for no operand.

    >>> lax.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    if isinstance(operand, (tuple, list)):
        if len(operand) == 0:
            raise TypeError("Sort requires at least one operand")
        if not (1 <= num_keys <= len(operand)):
            raise ValueError(f"num_keys={num_keys} must be between 1 and len(operand)={len(operand)}")
        axis = canonicalize_axis(dimension, np.ndim(operand[0]))
        refuse_sorted_keys(*map(dtype_of, operand[:num_keys]))
        out = bind("sort", *operand, dimension=axis, is_stable=bool(is_stable), num_keys=operator.index(num_keys))
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)
    if num_keys != 1:
        raise ValueError(f"num_keys={num_keys} must equal 1 for a single operand.")
    refuse_sorted_keys(dtype_of(operand))
    out = bind("sort", operand, dimension=canonicalize_axis(dimension, np.ndim(operand)), is_stable=bool(is_stable), num_keys=1)
    return out[0] if isinstance(out, (tuple, list)) else out


def sort_key_val(keys: Array, values: ArrayLike, dimension: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """`keys` sorted along `dimension`, and `values` carried along.

    Args:
        keys: array.
        values: array of keys' shape.
        dimension: int.
        is_stable: bool; equal elements keep their order.

    Returns:
        (keys, values): two arrays.

    >>> lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([0, 1, 2]))
    (Array([1, 2, 3], dtype=int32), Array([1, 2, 0], dtype=int32))
    """
    return sort((keys, values), dimension, is_stable, num_keys=1)


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """The k largest elements along an axis, in descending order.

    Args:
        operand: array of real numbers or bool, of rank 1 or more.
        k: int, at most the size of the axis.
        axis: int.

    Returns:
        (values, indices): two arrays of size k along `axis`, of operand's dtype and int32.

    Raises:
        ValueError: for a negative k or one above the size of the axis, and for complex operands.
        TypeError: for a scalar.

    >>> lax.top_k(jnp.array([3, 1, 2]), 2)
    [Array([3, 2], dtype=int32), Array([0, 2], dtype=int32)]
    """
    k = operator.index(k)
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    if np.ndim(operand) == 0:
        raise TypeError("top_k operand must have >= 1 dimension, got ()")
    axis = canonicalize_axis(axis, np.ndim(operand))
    return list(bind("top_k", operand, k=k, axis=axis))


def _approx(operand, k, is_max_k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk):
    if not is_floating(dtype_of(operand)):
        raise ValueError("operand must be a floating type")
    return list(
        bind(
            "approx_top_k",
            operand,
            k=operator.index(k),
            reduction_dimension=operator.index(reduction_dimension),
            recall_target=recall_target,
            is_max_k=is_max_k,
            reduction_input_size_override=reduction_input_size_override,
            aggregate_to_topk=aggregate_to_topk,
        )
    )


@sections.approximate
def approx_max_k(
    operand: Array, k: int, reduction_dimension: int = -1, recall_target: float = 0.95, reduction_input_size_override: int = -1, aggregate_to_topk: bool = True
) -> tuple[Array, Array]:
    """The k largest elements along `reduction_dimension` and their indices; ours are exact, so
    `recall_target` is always met.

    >>> lax.approx_max_k(jnp.array([3.0, 1.0, 2.0]), 2)
    [Array([3., 2.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    return _approx(operand, k, True, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk)


@sections.approximate
def approx_min_k(
    operand: Array, k: int, reduction_dimension: int = -1, recall_target: float = 0.95, reduction_input_size_override: int = -1, aggregate_to_topk: bool = True
) -> tuple[Array, Array]:
    """The k smallest elements along `reduction_dimension` and their indices; ours are exact, so
    `recall_target` is always met.

    >>> lax.approx_min_k(jnp.array([3.0, 1.0, 2.0]), 2)
    [Array([1., 2.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    return _approx(operand, k, False, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk)
