"""Broadcasting, reshaping, joining and splitting arrays.

Invariant: each function emits at most one primitive (a few emit two where JAX does); shapes are
tuples of Python integers.

    >>> lax.broadcast(jnp.array([1, 2]), (2,))
    Array([[1, 2],
           [1, 2]], dtype=int32)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._base.shapes import canonicalize_axis, canonicalize_shape, common_shape
from .._core import bind
from .._sharding.parts import sharded

if TYPE_CHECKING:
    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec
    from ..typing import ArrayLike


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """`operand` with new leading axes of `sizes`.

    Args:
        operand: array.
        sizes: sequence of ints.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of shape (*sizes, *operand.shape).

    >>> lax.broadcast(jnp.arange(2), (2,))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(broadcast, locals())
    sizes = tuple(sizes)
    shape = np.shape(operand)
    if not sizes:
        return _core.asarray(operand)
    return broadcast_in_dim(operand, sizes + shape, tuple(range(len(sizes), len(sizes) + len(shape))))


def broadcast_in_dim(
    operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """`operand` placed so that its axis i is axis broadcast_dimensions[i] of the result; axes of
    size 1, and all others, repeat.

    Args:
        operand: array.
        shape: sequence of ints.
        broadcast_dimensions: sequence of ints, one for each axis of operand, increasing.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and of operand's dtype.

    Raises:
        TypeError: for negative sizes or axes that do not fit.

    >>> lax.broadcast_in_dim(jnp.arange(2), (2, 2), (0,))
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(broadcast_in_dim, locals())
    shape = canonicalize_shape(shape)
    if any(n < 0 for n in shape):
        raise TypeError(f"broadcast_in_dim shape must have every element be nonnegative, got {shape}.")
    dims = tuple(broadcast_dimensions)
    if np.shape(operand) == shape and dims == tuple(range(len(shape))) and isinstance(operand, _core.Array):
        return operand
    return bind("broadcast_in_dim", operand, shape=shape, broadcast_dimensions=dims)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of `shapes` broadcast to.

    Args:
        *shapes: sequences of ints.

    Returns:
        Tuple of ints.

    Raises:
        ValueError: if the shapes do not broadcast.
        TypeError: for negative sizes.

    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    for shape in shapes:
        if any(n < 0 for n in shape):
            raise TypeError(f"Only non-negative indices are allowed when broadcasting static shapes, but got shape {tuple(shape)}.")
    return common_shape(*shapes)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """`x` with leading axes of size 1 up to `rank` axes.

    Args:
        x: array.
        rank: int.

    Returns:
        Array of x's dtype.

    >>> lax.broadcast_to_rank(jnp.array([1, 2]), 2)
    Array([[1, 2]], dtype=int32)
    """
    shape = np.shape(x)
    if len(shape) >= rank:
        return x
    return broadcast_in_dim(x, (1,) * (rank - len(shape)) + shape, tuple(range(rank - len(shape), rank)))


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """`arr` broadcast to the shape of `like_arr`.

    Args:
        arr: array.
        like_arr: array.

    Returns:
        Array of like_arr's shape and arr's dtype, along explicit axes of a mesh with like_arr's
        sharding.

    >>> lax.broadcast_like(jnp.array([1, 2]), jnp.zeros((2, 2)))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    out, own = _core.broadcast_to(arr, np.shape(like_arr)), _core.get_aval(like_arr).sharding
    return _core.reshard(out, own) if own.mesh.explicit_axes else out


def collapse(operand: Array, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Neighbouring axes merged into one.

    Args:
        operand: array.
        start_dimension: int, the first of them.
        stop_dimension: int, the one behind the last; None: all that follow.

    Returns:
        Array of operand's dtype.

    Raises:
        ValueError: for an empty range of axes.

    >>> lax.collapse(jnp.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    shape = np.shape(operand)
    lo, hi, _ = slice_bounds(start_dimension, stop_dimension, len(shape))
    if hi < lo:
        raise ValueError(f"Invalid dimension range passed to collapse: {shape}[{start_dimension}:{stop_dimension}]")
    return reshape(operand, shape[:lo] + (math.prod(shape[lo:hi]),) + shape[hi:])


def slice_bounds(start, stop, n):
    """Python's reading of start:stop on a sequence of n."""
    return _slice(start, stop).indices(n)


def concatenate(operands: Array | Sequence[ArrayLike], dimension: int) -> Array:
    """The operands joined along an axis.

    Args:
        operands: sequence of arrays of one dtype and rank, and of one size along the other axes.
        dimension: int, not negative.

    Returns:
        Array of their dtype.

    Raises:
        ValueError: for no operands.
        TypeError: if they do not agree, or the axis is out of bounds.

    >>> lax.concatenate([jnp.arange(2), jnp.arange(2)], 0)
    Array([0, 1, 0, 1], dtype=int32)
    """
    operands = tuple(operands)
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and isinstance(operands[0], _core.Array):
        return operands[0]
    dimension = operator.index(dimension)
    if dimension < 0:
        shapes = ", ".join([str(np.shape(x)) for x in operands])
        raise TypeError(f"concatenate dimension out of bounds: dimension {dimension} for shapes {shapes}.")
    return bind("concatenate", *operands, dimension=dimension)


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """The operands, all of one shape and dtype, joined along a new axis.

    Args:
        operands: sequence of arrays of one shape and dtype.
        axis: int, position of the new axis.

    Returns:
        Array with one axis more.

    Raises:
        ValueError: for no operands.
        TypeError: where they do not agree.

    >>> lax.stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    operands = tuple(operands)
    if not operands:
        raise ValueError("stack requires a non-empty sequences of arrays")
    return bind("stack", *operands, axis=canonicalize_axis(axis, np.ndim(operands[0]) + 1))


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of x along `axis`, as a tuple.

    Args:
        x: array of rank 1 or more.
        axis: int.

    Returns:
        Tuple of arrays without the axis.

    >>> lax.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    return bind("unstack", x, axis=canonicalize_axis(axis, np.ndim(x)))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> Sequence[Array]:
    """Pieces of `operand`, cut along an axis.

    Args:
        operand: array.
        sizes: sequence of ints that sum to the size of the axis.
        axis: int.

    Returns:
        List of arrays.

    Raises:
        ValueError: for other sizes.

    >>> lax.split(jnp.arange(3), (1, 2))
    [Array([0], dtype=int32), Array([1, 2], dtype=int32)]
    """
    sizes = tuple([operator.index(n) for n in sizes])
    if any(n < 0 for n in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
    return list(bind("split", operand, sizes=sizes, axis=canonicalize_axis(axis, np.ndim(operand))))


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """`array` with axes of size 1 inserted at `dimensions` of the result.

    Args:
        array: array.
        dimensions: sequence of ints, positions in the result.

    Returns:
        Array of rank array.ndim + len(dimensions).

    Raises:
        ValueError: for repeats.

    >>> lax.expand_dims(jnp.arange(2), (0,))
    Array([[0, 1]], dtype=int32)
    """
    if not dimensions:
        return _core.asarray(array)
    shape = np.shape(array)
    rank = len(shape) + len(dimensions)
    dims = {canonicalize_axis(d, rank) for d in dimensions}
    if len(dims) != len(dimensions):
        raise ValueError(f"repeated axis in lax.expand_dims: {tuple(dimensions)}")
    kept = tuple([d for d in range(rank) if d not in dims])
    sizes = iter(shape)
    return broadcast_in_dim(array, tuple([1 if d in dims else next(sizes) for d in range(rank)]), kept)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """`array` without the axes `dimensions`, each of size 1.

    Args:
        array: array.
        dimensions: sequence of ints: axes of size 1.

    Returns:
        Array without these axes.

    Raises:
        ValueError: for other sizes and for repeats.

    >>> lax.squeeze(jnp.ones((1, 2)), (0,))
    Array([1., 1.], dtype=float32)
    """
    ndim = np.ndim(array)
    dims = tuple(sorted([canonicalize_axis(d, ndim) for d in dimensions]))
    if not dims and isinstance(array, _core.Array):
        return array
    return bind("squeeze", array, dimensions=dims)


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """`operand` with copies of a value around and between its elements.

    Args:
        operand: array.
        padding_value: scalar of operand's dtype.
        padding_config: for each axis (low, high, interior): how many copies in front, behind and
          between elements; negative low and high cut off.

    Returns:
        Array of operand's dtype.

    Raises:
        TypeError: if dtypes differ.
        ValueError: unless there are three ints for each axis.

    >>> lax.pad(jnp.array([1, 2]), 0, [(1, 1, 1)])
    Array([0, 1, 0, 2, 0], dtype=int32)
    """
    return bind("pad", operand, padding_value, padding_config=tuple([tuple([operator.index(n) for n in c]) for c in padding_config]))


def reshape(
    operand: ArrayLike, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """The elements of `operand` in row-major order in a new shape.

    Args:
        operand: array.
        new_sizes: sequence of ints.
        dimensions: sequence of ints: the order in which operand's axes are read; None: their own
          order.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of shape `new_sizes`.

    Raises:
        TypeError: if the number of elements differs, a size is negative, or `dimensions` is not a
          permutation.

    >>> lax.reshape(jnp.arange(4), (2, 2))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(reshape, locals())
    new_sizes = canonicalize_shape(new_sizes)
    shape = np.shape(operand)
    if dimensions is not None:
        dimensions = tuple(dimensions)
        if dimensions == tuple(range(len(shape))):
            dimensions = None
    if any(n < 0 for n in new_sizes):
        raise TypeError(f"reshape new_sizes must all be positive, got {new_sizes}.")
    if dimensions is not None:
        if sorted(dimensions) != list(range(len(shape))):
            raise TypeError(f"reshape dimensions must be a permutation of operand dimensions, got dimensions {dimensions} for shape {shape}.")
        operand = bind("transpose", operand, permutation=dimensions)
    if np.shape(operand) == new_sizes and isinstance(operand, _core.Array):
        return operand
    return bind("reshape", operand, new_sizes=new_sizes, dimensions=None)


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """`operand` with the order of elements reversed along `dimensions`.

    Args:
        operand: array.
        dimensions: sequence of ints.

    Returns:
        Array of operand's shape and dtype.

    Raises:
        TypeError: for repeats and axes out of bounds.

    >>> lax.rev(jnp.array([1, 2, 3]), (0,))
    Array([3, 2, 1], dtype=int32)
    """
    return bind("rev", operand, dimensions=tuple(dimensions))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """`operand` repeated reps[i] times along each axis i.

    Args:
        operand: array.
        reps: sequence of ints, one for each axis.

    Returns:
        Array of shape operand.shape * reps.

    >>> lax.tile(jnp.array([1, 2]), (2,))
    Array([1, 2, 1, 2], dtype=int32)
    """
    return bind("tile", operand, reps=tuple(reps))


def transpose(operand: ArrayLike, permutation: Sequence[int] | np.ndarray) -> Array:
    """`operand` with axis permutation[i] as its axis i.

    Args:
        operand: array.
        permutation: sequence of ints.

    Returns:
        Array of operand's dtype.

    Raises:
        TypeError: if `permutation` is not one.

    >>> lax.transpose(jnp.array([[1, 2], [3, 4]]), (1, 0))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    permutation = tuple([operator.index(d) for d in permutation])
    if sorted(permutation) != list(range(np.ndim(operand))):
        shape = np.shape(operand)
        raise TypeError(f"transpose permutation isn't a permutation of operand dimensions, got permutation {permutation} for operand shape {shape}.")
    if permutation == tuple(range(np.ndim(operand))) and isinstance(operand, _core.Array):
        return operand
    return bind("transpose", operand, permutation=permutation)


_slice = slice
