"""Making, reshaping, joining and converting arrays.

Invariant: each function emits at most one primitive (a few emit two where JAX does); shapes are tuples of Python integers.

    >>> lax.broadcasted_iota(jnp.int32, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
"""

from __future__ import annotations

import math
import operator

import numpy as np

from .. import _core
from .._core import bind
from .._dtypes import canonicalize_dtype, dtype_of, is_bool, is_complex, is_integer, is_key, is_weak, requested
from .._parts import sharded
from .._shapes import canonicalize_axis, canonicalize_shape, common_shape


def integer_scalar(value, dtype):
    """A Python integer as a scalar of `dtype`, converted as an array's elements are: it wraps where an integer dtype is too narrow."""
    if not is_integer(dtype):
        return np.bool_(value) if is_bool(dtype) else dtype.type(float(value))
    array = np.asarray(value)
    if array.dtype == object:
        raise OverflowError("Python int too large to convert to C long")
    return array.astype(dtype)[()]


def convert_element_type(operand, new_dtype):
    """`operand` converted to `new_dtype`: float to integer truncates, complex to real drops the imaginary part, any number is True but 0.

    Args:
        operand: array or scalar.
        new_dtype: dtype.

    Returns:
        Array of operand's shape and of `new_dtype`.

    Raises:
        ValueError: if new_dtype is None.

    >>> lax.convert_element_type(jnp.array([1.9]), "int32")
    Array([1], dtype=int32)
    """
    if new_dtype is None:
        raise ValueError("dtype must be specified.")
    new_dtype = requested("convert_element_type", new_dtype)
    if type(operand) is int:
        operand = integer_scalar(operand, new_dtype)
    if type(operand) is complex and not is_complex(new_dtype):
        operand = float(operand)  # Python's refusal
    if isinstance(operand, (bool, int, float, complex, np.generic, np.ndarray)):
        return _core.asarray(operand, new_dtype)
    if hasattr(operand, "__jax_array__"):
        operand = operand.__jax_array__()
    if dtype_of(operand) == new_dtype and not is_weak(operand):
        return operand
    return bind("convert_element_type", operand, new_dtype=new_dtype, weak_type=False)


def bitcast_convert_type(operand, new_dtype):
    """The same bits read as `new_dtype`. A narrower dtype adds a trailing axis, a wider one consumes the last axis.

    Args:
        operand: array of numbers.
        new_dtype: dtype.

    Returns:
        Array of `new_dtype`, of operand's shape where the widths agree.

    Raises:
        ValueError: if the last axis does not fit a wider dtype.

    >>> lax.bitcast_convert_type(jnp.array([1.0]), "uint32")
    Array([1065353216], dtype=uint32)
    """
    return bind("bitcast_convert_type", operand, new_dtype=requested("bitcast_convert_type", new_dtype))


def dtype(x):
    """The dtype of an array or scalar, or of the arrays that a scalar type, a dtype or its name stands for.

    Args:
        x: array, scalar, scalar type, dtype or its name.

    Returns:
        numpy dtype.

    Raises:
        TypeError: for anything else.

    >>> lax.dtype(1.5)
    dtype('float32')
    """
    if isinstance(x, (type, np.dtype, str)):
        return canonicalize_dtype(x)
    if isinstance(x, (list, tuple)):
        raise TypeError(f"Cannot determine dtype of {x}")
    return dtype_of(x)


def full(shape, fill_value, dtype=None, *, sharding=None):
    """An array of `shape` filled with the scalar `fill_value`, of `dtype` or else of the value's.

    Args:
        shape: sequence of ints.
        fill_value: scalar.
        dtype: dtype of the result; None: the value's.
        sharding: where the result lives; None: the default device.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        TypeError: for a value that is no scalar.

    >>> lax.full((2,), 7.0)
    Array([7., 7.], dtype=float32, weak_type=True)
    """
    shape = canonicalize_shape(shape)
    if np.shape(fill_value):
        raise TypeError(f"full must be called with scalar fill_value, got fill_value.shape {np.shape(fill_value)}.")
    dtype = None if dtype is None else requested("full", dtype)
    if is_key(dtype) and not isinstance(fill_value, _core.Array):
        out = keys_of(fill_value, shape, dtype)
    else:
        out = broadcast(fill_value if dtype is None else convert_element_type(fill_value, dtype), shape)
    return out if sharding is None else _core.device_put(out, sharding)


def keys_of(word, shape, dtype):
    """Random keys of `dtype` of which each word is `word`."""
    words = broadcast(np.uint32(operator.index(word)), (*shape, dtype.itemsize // np.dtype(np.uint32).itemsize))
    return bind("random_wrap", words, impl=dtype.name[len("key<") : -1])


def beside(out, x):
    """`out`, where x is committed to: a new array stays with what it is like, laid out as it where it has x's shape."""
    if isinstance(x, _core.Tracer) or not isinstance(x, _core.Array) or isinstance(out, _core.Tracer) or not x.committed or out.committed:
        return out
    if out.shape == x.shape:
        return _core.device_put(out, x.sharding)
    devices = x.devices()
    return _core.device_put(out, *devices) if len(devices) == 1 else out


def varying_like(out, x):
    """`out` as a value that varies over the manual axes that x varies over."""
    return _core.varying(out, x.aval.vma) if isinstance(x, _core.Tracer) else out


def full_like(x, fill_value, dtype=None, shape=None, sharding=None):
    """An array filled with one value, of x's shape, dtype and device, weakly typed as x is.

    Args:
        x: array.
        fill_value: scalar.
        dtype: dtype of the result; None: x's.
        shape: sequence of ints; None: x's.
        sharding: where the result lives; None: where x does.

    Returns:
        Array of `shape` and `dtype`.

    >>> lax.full_like(jnp.arange(2), 7)
    Array([7, 7], dtype=int32)
    """
    if dtype is None and is_weak(x):
        value = _core.asarray(fill_value, dtype_of(x), weak_type=True)
    else:
        value, dtype = fill_value, dtype_of(x) if dtype is None else dtype
        value = value if is_key(dtype) else convert_element_type(value, dtype)
    out = full(np.shape(x) if shape is None else shape, value, dtype if is_key(dtype) else None, sharding=sharding)
    out = varying_like(out, x)
    return beside(out, x) if sharding is None else out


def zeros_like_array(x):
    """Zeros of x's shape and dtype.

    Args:
        x: array.

    Returns:
        Array of x's shape and dtype.

    >>> lax.zeros_like_array(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return full_like(x, 0)


def empty(shape, dtype, *, out_sharding=None):
    """An array of `shape` and `dtype` whose contents mean nothing (they are zeros).

    Args:
        shape: sequence of ints.
        dtype: dtype.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

    Returns:
        Array of `shape` and `dtype`.

    >>> lax.empty((2,), "float32").shape
    (2,)
    """
    if out_sharding is not None:
        return sharded(empty, locals())
    return full(shape, 0, canonicalize_dtype(dtype))


def iota(dtype, size):
    """0, 1, ..., size - 1 as `dtype`.

    Args:
        dtype: dtype, integer, float or complex.
        size: int.

    Returns:
        Vector of `size` elements.

    Raises:
        TypeError: for bool and negative sizes.

    >>> lax.iota("int32", 3)
    Array([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype, shape, dimension, *, out_sharding=None):
    """An array of `shape` whose elements are their own index along `dimension`, as `dtype`.

    Args:
        dtype: dtype, integer, float or complex.
        shape: sequence of ints.
        dimension: int: an axis of the result.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        ValueError: for a dimension out of bounds.

    >>> lax.broadcasted_iota("int32", (2, 2), 1)
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(broadcasted_iota, locals())
    shape, dimension = canonicalize_shape(shape), operator.index(dimension)
    if dimension < 0:
        raise ValueError(f"iota dimension must be between 0 and len(shape), got dimension={dimension} for shape={shape}")
    return bind("iota", dtype=requested("broadcasted_iota", dtype), shape=shape, dimension=dimension)


def broadcast(operand, sizes, *, out_sharding=None):
    """`operand` with new leading axes of `sizes`.

    Args:
        operand: array.
        sizes: sequence of ints.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

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


def broadcast_in_dim(operand, shape, broadcast_dimensions, *, out_sharding=None):
    """`operand` placed so that its axis i is axis broadcast_dimensions[i] of the result; axes of size 1, and all others, repeat.

    Args:
        operand: array.
        shape: sequence of ints.
        broadcast_dimensions: sequence of ints, one for each axis of operand, increasing.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

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


def broadcast_shapes(*shapes):
    """The shape that arrays of `shapes` broadcast to.

    Args:
        *shapes: sequences of ints.

    Returns:
        Tuple of ints.

    Raises:
        ValueError: where there is none.
        TypeError: for negative sizes.

    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    for shape in shapes:
        if any(n < 0 for n in shape):
            raise TypeError(f"Only non-negative indices are allowed when broadcasting static shapes, but got shape {tuple(shape)}.")
    return common_shape(*shapes)


def broadcast_to_rank(x, rank):
    """x with leading axes of size 1 up to `rank` axes.

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


def broadcast_like(arr, like_arr):
    """`arr` broadcast to the shape of `like_arr`.

    Args:
        arr: array.
        like_arr: array.

    Returns:
        Array of like_arr's shape and arr's dtype.

    >>> lax.broadcast_like(jnp.array([1, 2]), jnp.zeros((2, 2)))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    return _core.broadcast_to(arr, np.shape(like_arr))


def collapse(operand, start_dimension, stop_dimension=None):
    """Neighbouring axes merged into one.

    Args:
        operand: array.
        start_dimension: int: the first of them.
        stop_dimension: int: the one behind the last; None: all that follow.

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


def concatenate(operands, dimension):
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


def stack(operands, axis=0):
    """The operands, all of one shape and dtype, joined along a new axis.

    Args:
        operands: sequence of arrays of one shape and dtype.
        axis: int: where the new axis stands.

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


def unstack(x, axis=0):
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


def split(operand, sizes, axis=0):
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


def expand_dims(array, dimensions):
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


def squeeze(array, dimensions):
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


def pad(operand, padding_value, padding_config):
    """`operand` with copies of a value around and between its elements.

    Args:
        operand: array.
        padding_value: scalar of operand's dtype.
        padding_config: for each axis (low, high, interior): how many copies in front, behind and between elements; negative low and high cut off.

    Returns:
        Array of operand's dtype.

    Raises:
        TypeError: if dtypes differ.
        ValueError: unless there are three ints for each axis.

    >>> lax.pad(jnp.array([1, 2]), 0, [(1, 1, 1)])
    Array([0, 1, 0, 2, 0], dtype=int32)
    """
    return bind("pad", operand, padding_value, padding_config=tuple([tuple([operator.index(n) for n in c]) for c in padding_config]))


def reshape(operand, new_sizes, dimensions=None, *, out_sharding=None):
    """The elements of `operand` in row-major order in a new shape.

    Args:
        operand: array.
        new_sizes: sequence of ints.
        dimensions: sequence of ints: the order in which operand's axes are read; None: as they are.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

    Returns:
        Array of shape `new_sizes`.

    Raises:
        TypeError: if the number of elements differs, a size is negative, or `dimensions` is no permutation.

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


def rev(operand, dimensions):
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


def tile(operand, reps):
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


def transpose(operand, permutation):
    """`operand` with axis permutation[i] as its axis i.

    Args:
        operand: array.
        permutation: sequence of ints.

    Returns:
        Array of operand's dtype.

    Raises:
        TypeError: if `permutation` is none.

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


def shape_as_value(shape):
    """The shape as a vector of numpy's, of dtype int32; of no dimensions, an array without elements.

    Args:
        shape: sequence of ints.

    Returns:
        numpy array of int32.

    >>> lax.shape_as_value((2, 3))
    array([2, 3], dtype=int32)
    """
    return np.asarray(shape, dtype=np.int32) if len(shape) else full((0,), 0, np.int32)


_slice = slice
