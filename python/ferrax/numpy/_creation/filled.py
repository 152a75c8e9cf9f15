"""Arrays from a shape or from one value: zeros, ones, full, and those like another array.

Invariant: 64-bit dtypes become 32-bit ones unless x64 is on; an array like another one has its
dtype and, unless a dtype is given, its weak type.

    >>> jnp.full((2,), 7.0)
    Array([7., 7.], dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from ... import _core
from ..._base.dtypes import canonicalize_dtype, dtype_of, float0, integer_of_float, is_integer, is_key, is_weak, requested
from ..._base.shapes import canonicalize_shape
from ..._core import bind
from ..._sharding.parts import placed, sharded
from ...lax._creation import beside, integer_scalar, keys_of, varying_like
from .._support import sections
from .._support.arguments import Array, check_arraylike, constant, convert, is_arraylike, ndim_of, shape_of
from .arrays import _SCALARS, _placed, _real_if_needed, _scalar, array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core import Device
    from ...sharding import NamedSharding, PartitionSpec, Sharding
    from ...typing import ArrayLike


def _uniform(value, shape, dtype, device):
    """The number `value` in every element of `shape`: in each word of keys.

    Arrays of float0 are NumPy's.
    """
    if is_key(dtype):
        return _keys(value, shape, dtype, device)
    return np.zeros(shape, float0) if dtype == float0 else _filled(constant(value, dtype), shape, device)


def _filled(value, shape, device):
    if any(n < 0 for n in shape):
        raise TypeError(f"broadcast_in_dim shape must have every element be nonnegative, got {shape}.")
    out = bind("broadcast_in_dim", value, shape=shape, broadcast_dimensions=()) if shape else _core.asarray(value)
    return _placed(out, device)


def _dtype_beside(name, shape, dtype):
    """The requested dtype, float by default. Recognizes a second size given in its place."""
    if isinstance(dtype, int) and ndim_of(shape) == 0:
        raise TypeError(
            f"Cannot interpret '{dtype}' as a data type.\n\nDid you accidentally write `jax.numpy.{name}({shape}, {dtype})` "
            f"when you meant `jax.numpy.{name}(({shape}, {dtype}))`, i.e. with a single tuple argument for the shape?"
        )
    return requested(name, dtype, float)


@sections.filled
def zeros(
    shape: SupportsIndex | Sequence[SupportsIndex] | np.ndarray,
    dtype: Any = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Zeros of `shape` (an integer or a sequence of them) and `dtype` (default float).

    >>> jnp.zeros((2, 2))
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(zeros, locals())
    dtype = _dtype_beside("zeros", shape, dtype)
    return _uniform(0, canonicalize_shape(shape), dtype, device)


@sections.filled
def ones(
    shape: SupportsIndex | Sequence[SupportsIndex] | np.ndarray,
    dtype: Any = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Ones of `shape` and `dtype` (default float).

    >>> jnp.ones(3, dtype="int32")
    Array([1, 1, 1], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(ones, locals())
    dtype = _dtype_beside("ones", shape, dtype)
    return _uniform(1, canonicalize_shape(shape), dtype, device)


@sections.filled
def empty(
    shape: SupportsIndex | Sequence[SupportsIndex] | np.ndarray,
    dtype: Any = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The same as `zeros`.

    >>> jnp.empty((0, 2)).shape
    (0, 2)
    """
    if out_sharding is not None:
        return sharded(empty, locals())
    dtype = _dtype_beside("empty", shape, dtype)
    return _uniform(0, canonicalize_shape(shape), dtype, device)


def full(
    shape: SupportsIndex | Sequence[SupportsIndex] | np.ndarray,
    fill_value: ArrayLike,
    dtype: Any = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """One value in every place.

    Args:
        shape: int or sequence of ints.
        fill_value: scalar, or an array that broadcasts to `shape`.
        dtype: dtype of the result; None: that of fill_value.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        TypeError: for sizes that are not integers or are negative.

    >>> jnp.full((2,), 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    if out_sharding is not None:
        return sharded(full, locals())
    check_arraylike("full", fill_value)
    shape = canonicalize_shape(shape)
    weak = dtype is None and is_weak(fill_value)
    dtype = requested("full", dtype) if dtype is not None else dtype_of(fill_value)
    if dtype == float0:
        return np.zeros(shape, float0)
    if is_key(dtype) and not isinstance(fill_value, Array):
        return _keys(fill_value, shape, dtype, device)
    if ndim_of(fill_value) == 0:
        if isinstance(fill_value, Array):
            return _filled(convert(fill_value, dtype, weak), shape, device)
        if weak:
            return _filled(fill_value, shape, device)
        return _filled(_fill_scalar(fill_value, dtype), shape, device)
    return placed(_core.broadcast_to(convert(fill_value, dtype, weak), shape), device)


def _fill_scalar(value, dtype):
    """The fill value in the array's dtype: integers wrap, as in a conversion."""
    if type(value) is int:
        return integer_scalar(value, dtype)
    if isinstance(value, float) and is_integer(dtype):
        return integer_of_float(value, dtype)
    return _scalar(value, dtype) if isinstance(value, _SCALARS) else _core.asarray(value, dtype)


def _keys(word, shape, dtype, device):
    return placed(keys_of(word, shape, dtype), device)


def _filled_like(a, value, dtype, shape, weak, device):
    """`value` spread over a shape like a's: a number, for an array of `dtype`, weakly typed or
    not.
    """
    if is_key(dtype):
        return _keys(value, shape, dtype, device)
    if dtype == float0:
        return np.zeros(shape, float0)
    out = varying_like(_filled(_weak_constant(value, dtype) if weak else constant(value, dtype), shape, device), a)
    return out if device is not None else beside(out, a)


def _like(name, a, dtype, shape):
    if not (hasattr(a, "dtype") and hasattr(a, "shape")):
        check_arraylike(name, a)
        a = a.__jax_array__() if hasattr(a, "__jax_array__") else a
    weak = dtype is None and getattr(a, "weak_type", type(a) in (int, float, complex))
    dtype = dtype_of_like(a) if dtype is None else requested(name, dtype)
    return dtype, shape_of(a) if shape is None else canonicalize_shape(shape), weak


def dtype_of_like(a):
    """The dtype of an array or of a description of one."""
    return dtype_of(a) if is_arraylike(a) else a.dtype if is_key(a.dtype) else canonicalize_dtype(a.dtype)


def _weak_constant(value, dtype):
    """The Python number that becomes a weakly typed scalar of a default dtype."""
    return {"f": float, "c": complex}.get(dtype.kind, int)(value)


@sections.filled_like
def zeros_like(
    a: Any,
    dtype: Any = None,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Zeros of a's shape and dtype, unless given.

    >>> jnp.zeros_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(zeros_like, locals())
    dtype, shape, weak = _like("zeros_like", a, dtype, shape)
    return _filled_like(a, 0, dtype, shape, weak, device)


@sections.filled_like
def ones_like(
    a: Any,
    dtype: Any = None,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Ones of a's shape and dtype, unless given.

    >>> jnp.ones_like(jnp.arange(3))
    Array([1, 1, 1], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(ones_like, locals())
    dtype, shape, weak = _like("ones_like", a, dtype, shape)
    return _filled_like(a, 1, dtype, shape, weak, device)


def empty_like(
    prototype: Any, dtype: Any = None, shape: SupportsIndex | Sequence[SupportsIndex] | None = None, *, device: Device | Sharding | None = None
) -> Array:
    """The same as `zeros_like`.

    Args:
        prototype: array.
        dtype: dtype of the result; None: that of `prototype`.
        shape: int or sequence of ints; None: that of `prototype`.
        device: where the result lives: a device or a sharding; None: the default device.

    Returns:
        Array of zeros of `shape` and `dtype`.

    >>> jnp.empty_like(jnp.ones((2, 3))).shape
    (2, 3)
    """
    dtype, shape, weak = _like("empty_like", prototype, dtype, shape)
    return _filled_like(prototype, 0, dtype, shape, weak, device)


def full_like(
    a: Any,
    fill_value: ArrayLike,
    dtype: Any = None,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """One value in an array shaped like a.

    Args:
        a: array.
        fill_value: scalar, or an array that broadcasts to `shape`.
        dtype: dtype of the result; None: a's.
        shape: int or sequence of ints; None: a's.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    >>> jnp.full_like(jnp.arange(3), 7)
    Array([7, 7, 7], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(full_like, locals())
    check_arraylike("full_like", 0, fill_value)
    dtype, shape, weak = _like("full_like", a, dtype, shape)
    if is_key(dtype):
        return _keys(fill_value, shape, dtype, device)
    if dtype == float0:
        return np.zeros(shape, float0)
    if ndim_of(fill_value) == 0:
        fill_value = _real_if_needed(fill_value, dtype)
        if weak:
            value = convert(_core.asarray(fill_value), dtype, weak)
        else:
            value = convert(fill_value, dtype) if isinstance(fill_value, Array) else _fill_scalar(fill_value, dtype)
        out = varying_like(_filled(value, shape, device), a)
        return out if device is not None else beside(out, a)
    return placed(varying_like(_core.broadcast_to(array(fill_value, dtype, copy=False), shape), a), device)
