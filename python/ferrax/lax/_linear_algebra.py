"""Products of arrays.

Invariant: `dot_general` is the one product; the others name its axes.

    >>> lax.dot(jnp.ones((2, 3)), jnp.ones((3, 4))).shape
    (2, 4)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.dtypes import requested
from .._core import bind
from .._sharding.parts import sharded
from ._parameters import DotAlgorithm, RaggedDotDimensionNumbers, canonicalize_precision

if TYPE_CHECKING:
    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec
    from ..typing import ArrayLike, DTypeLike


def _product_parameters(precision, preferred_element_type):
    parameters = {}
    precision = canonicalize_precision(precision)
    if precision is not None:
        parameters["precision"] = str(precision) if isinstance(precision, DotAlgorithm) else precision
    if preferred_element_type is not None:
        parameters["preferred_element_type"] = requested("dot", preferred_element_type)
    return parameters


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Product of lhs and rhs, summed over contracting axes and run together over batch axes.

    The result has the batch axes, then lhs's free axes, then rhs's.

    Args:
        lhs, rhs: arrays of numbers.
        dimension_numbers: ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)), tuples of
          ints.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype of the result.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array with the batch axes, then lhs's free axes, then rhs's.

    Raises:
        TypeError: where paired axes differ in size.

    >>> lax.dot_general(jnp.ones((2, 3)), jnp.ones((3, 2)), (((1,), (0,)), ((), ())))
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(dot_general, locals())
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    axes = [tuple([d.__index__() for d in dims]) for dims in (lhs_contract, rhs_contract, lhs_batch, rhs_batch)]
    numbers = ((axes[0], axes[1]), (axes[2], axes[3]))
    for side, rank, contracting, batch in (("lhs", np.ndim(lhs), axes[0], axes[2]), ("rhs", np.ndim(rhs), axes[1], axes[3])):
        if any(d < 0 for d in (*contracting, *batch)):
            raise TypeError(
                f"dot_general requires {side} dimension numbers to be nonnegative and less than the number of axes of the {side} value, got {side}_batch of"
                f" {batch} and {side}_contracting of {contracting} for {side} of rank {rank}"
            )
    return bind("dot_general", lhs, rhs, dimension_numbers=numbers, **_product_parameters(precision, preferred_element_type))


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Product of vectors and matrices, or `dot_general` where `dimension_numbers` are given.

    Args:
        lhs, rhs: arrays of numbers, of rank 1 or 2 unless `dimension_numbers` are given.
        dimension_numbers: as for `dot_general`; None: the last axis of lhs against the first of
          rhs.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array with lhs's free axes, then rhs's.

    Raises:
        ValueError: where shapes do not fit, or ranks are higher and no dimension numbers given.

    >>> lax.dot(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(dot, locals())
    if dimension_numbers is None:
        ls, rs = np.shape(lhs), np.shape(rhs)
        if not (1 <= len(ls) <= 2 and 1 <= len(rs) <= 2 and ls[-1] == rs[0]):
            raise ValueError(
                "jax.lax.dot: dimension_numbers must be specified when not performing simple un-batched matrix-matrix, "
                f"matrix-vector, or vector-vector products; got lhs_shape={ls} rhs_shape={rs}"
            )
        dimension_numbers = (((len(ls) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Array, rhs: Array, precision: Any = None) -> Array:
    """Matrix product over the last two axes, run together over all leading ones.

    Args:
        lhs: array of shape (..., m, k).
        rhs: array of shape (..., k, n).
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).

    Returns:
        Array of shape (..., m, n).

    Raises:
        ValueError: below rank 2.

    >>> lax.batch_matmul(jnp.ones((1, 2, 3)), jnp.ones((1, 3, 1)))
    Array([[[3.],
            [3.]]], dtype=float32)
    """
    ndim = np.ndim(lhs)
    if min(ndim, np.ndim(rhs)) < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {ndim}, {np.ndim(rhs)}")
    if ndim != np.ndim(rhs):
        raise ValueError(f"Arguments to batch_matmul must have same ndim, got {ndim}, {np.ndim(rhs)}")
    batch = tuple(range(ndim - 2))
    return dot_general(lhs, rhs, (((ndim - 1,), (ndim - 2,)), (batch, batch)), precision)


def ragged_dot_general(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: Array | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """`dot_general` with the rows of lhs split into groups of `group_sizes`, each multiplied by its
    own slice of rhs.

    Args:
        lhs, rhs: arrays of numbers.
        group_sizes: array of integers: how many rows of lhs each group has.
        ragged_dot_dimension_numbers: `RaggedDotDimensionNumbers`.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.
        group_offset: not supported; must be None.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of the product's shape.

    Raises:
        NotImplementedError: for a group_offset.
        TypeError: for numbers that do not fit the operands.

    >>> lax.ragged_dot_general(jnp.ones((3, 2)), jnp.ones((1, 2, 1)), jnp.array([3]), lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0])).shape
    (3, 1)
    """
    if group_offset is not None:
        raise NotImplementedError("Unimplemented group_offset support.")
    if out_sharding is not None:
        return sharded(ragged_dot_general, locals())
    return bind(
        "ragged_dot_general",
        lhs,
        rhs,
        _core.asarray(group_sizes),
        ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
        **_product_parameters(precision, preferred_element_type),
    )


def ragged_dot(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: Array | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Rows of lhs in groups, each group multiplied by its own matrix.

    Args:
        lhs: array of shape (m, k).
        rhs: array of shape (g, k, n).
        group_sizes: vector of g integers.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.
        group_offset: not supported; must be None.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of shape (m, n).

    Raises:
        NotImplementedError: for a group_offset.

    >>> lax.ragged_dot(jnp.ones((3, 2)), jnp.array([[[1.0], [1.0]], [[5.0], [5.0]]]), jnp.array([1, 2]))
    Array([[ 2.],
           [10.],
           [10.]], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(ragged_dot, locals())
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset)


def _check_scale(name, x, scale, contract):
    """The size of each axis of a scale is its operand's, except for the contracted one, whose size
    it divides.
    """
    for d, (n, m) in enumerate(zip(x.shape, scale.shape, strict=True)):
        if d != contract and n != m:
            raise TypeError(f"{name} dim {d} of size {n} does not match scale dim size {m}.")
    n, m = x.shape[contract], scale.shape[contract]
    if not m or n % m:
        raise TypeError(f"{name} contracting dim {contract} of size {n} must be divisible by its scale's dim size {m}.")
    if n // m < 2:
        raise TypeError(f"The ratio of {name} contracting dim {contract} to its scale's dim size ({n // m}) must be at least 2.")


def _scaled(name, x, scale, contract):
    """`x` in float32, each block of the contracted axis times its scale."""
    x = bind("convert_element_type", x, new_dtype=np.dtype(np.float32), weak_type=False)
    if scale is None:
        return x
    _check_scale(name, x, scale, contract)
    scale = bind("convert_element_type", scale, new_dtype=np.dtype(np.float32), weak_type=False)
    blocks = scale.shape[contract]
    apart = (*x.shape[:contract], blocks, x.shape[contract] // blocks, *x.shape[contract + 1 :])
    axes = tuple([d for d in range(len(apart)) if d != contract + 1])
    spread = bind("broadcast_in_dim", scale, shape=apart, broadcast_dimensions=axes)
    return bind("mul", x, bind("reshape", spread, new_sizes=tuple(x.shape), dimensions=None))


def scaled_dot(
    lhs: Array,
    rhs: Array,
    *,
    lhs_scale: Array | None = None,
    rhs_scale: Array | None = None,
    dimension_numbers: tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]] | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The product of lhs and rhs with a scale for each block along the contracted axis; computed in
    float32.

    Args:
        lhs, rhs: operands of one rank, 2 or more.
        lhs_scale, rhs_scale: of the operand's shape, except for the contracted axis, whose size is
          a divisor of the operand's and at most half of it.
        dimension_numbers: as in `dot_general`, of one contracted axis; by default those of a
          (batched) matrix product.
        preferred_element_type: the result's dtype, by default bfloat16.

    Returns:
        the product.

    Raises:
        TypeError: ranks or sizes do not fit.

    >>> lax.scaled_dot(jnp.ones((1, 4)), jnp.ones((4, 1)), lhs_scale=jnp.full((1, 2), 0.5))
    Array([[2]], dtype=bfloat16)
    """
    lhs, rhs = _core.asarray(lhs), _core.asarray(rhs)
    scales = [None if s is None else _core.asarray(s) for s in (lhs_scale, rhs_scale)]
    ranks = [lhs.ndim, rhs.ndim, *[x.ndim if s is None else s.ndim for x, s in zip((lhs, rhs), scales, strict=True)]]
    if len(set(ranks)) != 1:
        shown = " ".join(f"{name} rank: {rank}" for name, rank in zip(("lhs", "rhs", "lhs_scale", "rhs_scale"), ranks, strict=True))
        raise TypeError(f"All input tensors must have the same rank. Got {shown}.")
    if lhs.ndim < 2:
        raise TypeError("scaled_dot does not support 0-rank and 1-rank operands.")
    if dimension_numbers is None:
        batch = tuple(range(lhs.ndim - 2))
        dimension_numbers = (((lhs.ndim - 1,), (lhs.ndim - 2,)), (batch, batch))
    ((left,), (right,)), _ = dimension_numbers
    if lhs.shape[left] != rhs.shape[right]:
        raise TypeError(f"LHS contracting dim {left} of size {lhs.shape[left]} does not match RHS contracting dim {right} of size {rhs.shape[right]}.")
    dtype = requested("scaled_dot", preferred_element_type, "bfloat16")
    product = dot_general(_scaled("LHS", lhs, scales[0], left), _scaled("RHS", rhs, scales[1], right), dimension_numbers)
    return bind("convert_element_type", product, new_dtype=dtype, weak_type=False)
