"""Making arrays from a shape or a value, and converting dtypes.

Invariant: each function emits at most one primitive (a few emit two where JAX does); shapes are
tuples of Python integers.

    >>> lax.broadcasted_iota(jnp.int32, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.dtypes import canonicalize_dtype, dtype_of, integer_of_float, is_bool, is_complex, is_integer, is_key, is_weak, requested
from .._base.shapes import canonicalize_shape
from .._core import bind
from .._runtime.mesh import place_in_use
from .._sharding.parts import placed, sharded
from ._shaping import broadcast

if TYPE_CHECKING:
    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec, Sharding
    from ..typing import ArrayLike, DTypeLike


def _filling(value, dtype):
    """A value to fill with, of the dtype; a float is made an integer with all its digits."""
    exact = isinstance(value, float) and not is_key(dtype) and is_integer(dtype)
    return convert_element_type(integer_of_float(value, canonicalize_dtype(dtype)) if exact else value, dtype)


def integer_scalar(value, dtype):
    """A Python integer as a scalar of `dtype`, converted as an array's elements are: it wraps where
    an integer dtype is too narrow.
    """
    if not is_integer(dtype):
        return np.bool_(value) if is_bool(dtype) else dtype.type(float(value))
    array = np.asarray(value)
    if array.dtype == object:
        raise OverflowError("Python int too large to convert to C long")
    return array.astype(dtype)[()]


def convert_element_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """`operand` converted to `new_dtype`: float to integer truncates, complex to real drops the
    imaginary part, any number is True but 0.

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


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The same bits read as `new_dtype`.

    A narrower dtype adds a trailing axis, a wider one consumes the last axis.

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


def dtype(x: Any) -> np.dtype[Any]:
    """The dtype of an array or scalar, or of the arrays for a scalar type, a dtype or its name.

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


def full(shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None, *, sharding: Sharding | None = None) -> Array:
    """An array of `shape` filled with the scalar `fill_value`, of `dtype` or else of the value's.

    Args:
        shape: sequence of ints.
        fill_value: scalar.
        dtype: dtype of the result; None: the value's.
        sharding: where the result lives; None: the default device.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        TypeError: for a value that is not a scalar.

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
        if dtype is not None:
            fill_value = _filling(fill_value, dtype)
        out = broadcast(fill_value, shape)
    return placed(out, sharding)


def keys_of(word, shape, dtype):
    """Random keys of `dtype` whose words are all `word`."""
    words = broadcast(np.uint32(operator.index(word)), (*shape, dtype.itemsize // np.dtype(np.uint32).itemsize))
    return bind("random_wrap", words, impl=dtype.name[len("key<") : -1])


def beside(out, x):
    """`out` on the device of `x`, if `x` is committed; with the sharding of `x` if the shapes are
    equal.
    """
    if isinstance(x, _core.Tracer) and out.shape == x.shape and x.aval.sharding.mesh.explicit_axes:
        return _core.reshard(out, x.aval.sharding)
    if not isinstance(x, _core.Array):
        return as_described(out, x)
    if isinstance(x, _core.Tracer) or isinstance(out, _core.Tracer) or not x.committed:
        return out
    if out.committed and place_in_use() is None:
        return out
    if out.shape == x.shape:
        return _core.device_put(out, x.sharding)
    devices = x.devices()
    return _core.device_put(out, *devices) if len(devices) == 1 else out


def as_described(out, x):
    """`out` with the sharding of a description (`ShapeDtypeStruct`) of an array of its shape; along
    explicit axes of a mesh without devices, on the mesh in use.
    """
    sharding = getattr(x, "sharding", None) if isinstance(getattr(x, "shape", None), tuple) else None
    mesh = getattr(sharding, "mesh", None)
    if sharding is None or out.shape != x.shape:
        return out
    if mesh is not None and mesh.abstract_mesh is mesh:
        return _core.reshard(out, sharding) if mesh.explicit_axes and (isinstance(out, _core.Tracer) or place_in_use() is not None) else out
    if isinstance(out, _core.Tracer):
        return out if mesh is None else _core.reshard(out, sharding) if mesh.are_all_axes_explicit else sharding._constrain(out)
    return _core.device_put(out, sharding)


def varying_like(out, x):
    """`out` as a value that varies over the manual axes that x varies over."""
    if isinstance(x, _core.Tracer):
        return _core.varying(out, x.aval.vma)
    mat = getattr(x, "manual_axis_type", None)
    return out if mat is None else _core.varying(out, mat.varying)


def full_like(x: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Sequence[int] | None = None, sharding: Sharding | None = None) -> Array:
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
    described = not isinstance(x, _core.Array) and hasattr(x, "weak_type")
    own = (x.dtype if is_key(x.dtype) else canonicalize_dtype(x.dtype)) if described else dtype_of(x)
    if dtype is None and (x.weak_type if described else is_weak(x)):
        value = _core.asarray(fill_value, own, weak_type=True)
    else:
        value, dtype = fill_value, own if dtype is None else dtype
        value = value if is_key(dtype) else _filling(value, dtype)
    out = full((x.shape if described else np.shape(x)) if shape is None else shape, value, dtype if is_key(dtype) else None, sharding=sharding)
    out = varying_like(out, x)
    return beside(out, x) if sharding is None else out


def zeros_like_array(x: ArrayLike) -> Array:
    """Zeros of x's shape and dtype.

    Args:
        x: array.

    Returns:
        Array of x's shape and dtype.

    >>> lax.zeros_like_array(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return full_like(x, 0)


def empty(shape: Any, dtype: DTypeLike, *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """An array of `shape` and `dtype` with unspecified contents (they are zeros).

    Args:
        shape: sequence of ints.
        dtype: dtype.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    >>> lax.empty((2,), "float32").shape
    (2,)
    """
    if out_sharding is not None:
        return sharded(empty, locals())
    return full(shape, 0, canonicalize_dtype(dtype))


def iota(dtype: DTypeLike, size: int) -> Array:
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


def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int, *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """An array of `shape` whose elements are their own index along `dimension`, as `dtype`.

    Args:
        dtype: dtype, integer, float or complex.
        shape: sequence of ints.
        dimension: int, an axis of the result.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

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


def shape_as_value(shape: Sequence[int]) -> np.ndarray | Array:
    """The shape as a NumPy vector of dtype int32, which is empty for a scalar's shape.

    Args:
        shape: sequence of ints.

    Returns:
        numpy array of int32.

    >>> lax.shape_as_value((2, 3))
    array([2, 3], dtype=int32)
    """
    return np.asarray(shape, dtype=np.int32) if len(shape) else full((0,), 0, np.int32)
