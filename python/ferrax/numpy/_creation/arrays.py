"""Arrays from existing data: Python values, arrays of other libraries, bytes, files.

Invariant: 64-bit dtypes become 32-bit ones unless x64 is on; Python numbers alone make weakly typed
arrays, lists of them do not.

    >>> jnp.array([1, 2.5])
    Array([1. , 2.5], dtype=float32)
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ... import _core, dlpack
from ..._base.dtypes import canonicalize_dtype, float0, iinfo, integer_of_float, is_bool, is_complex, is_integer, is_key, requested
from ..._core import bind
from ..._runtime.devices import default_backend
from ..._runtime.mesh import place_in_use
from ..._sharding.parts import placed, sharded
from .._support.arguments import Array, check_arraylike, constant, convert, is_arraylike

if TYPE_CHECKING:
    from ..._core import Device
    from ...sharding import NamedSharding, PartitionSpec, Sharding
    from ...typing import ArrayLike, DTypeLike


_SCALARS = (bool, int, float, complex)


def _invalid(value, dtype):
    return TypeError(f"Value '{value}' with dtype {dtype} is not a valid JAX array type. Only arrays of numeric types are supported by JAX.")


def _contains_arrays(x):
    if isinstance(x, (list, tuple)):
        return any(_contains_arrays(v) for v in x)
    # a symbolic size is a number of the program, of another value at each call
    return type(x) not in _SCALARS and (isinstance(x, Array) or hasattr(x, "__jax_array__") or hasattr(x, "slicing"))


def _leaves(x):
    if isinstance(x, (list, tuple)):
        for v in x:
            yield from _leaves(v)
    else:
        yield x


def _check_integers(x, dtype):
    # numpy would make an int64 array, and narrowing would wrap silently.
    info = np.iinfo(dtype)
    for v in _leaves(x):
        if type(v) is int and not info.min <= v <= info.max:
            raise OverflowError(f"Python integer {v} out of bounds for {dtype}")


def _beyond_doubles(x):
    """Whether nested lists contain integers that float64, in which numpy joins unlike ones, may
    round.
    """
    for v in _leaves(x):
        integers = isinstance(v, int) or (isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind in "iu" and v.dtype.itemsize == 8)
        if integers and np.size(v) and max(abs(int(np.max(v))), abs(int(np.min(v)))) > 1 << 53:
            return True
    return False


def _exact_integers(x, dtype):
    """The array of an integer dtype of nested lists of numbers: of floats their whole part.

    Raises:
        OverflowError: an integer does not fit.
    """
    info = np.iinfo(dtype)
    values = np.array(x, object)
    flat = [int(v) if isinstance(v, (int, np.integer, np.bool_)) else v for v in values.ravel().tolist()]
    for v in flat:
        if isinstance(v, int) and not info.min <= v <= info.max:
            raise OverflowError(f"Python integer {v} out of bounds for {np.dtype(dtype)}")
        _check_range(v, dtype)
    flat = [_real_if_needed(v, dtype) for v in flat]
    return np.array([integer_of_float(v, dtype) if isinstance(v, float) else v for v in flat], dtype).reshape(values.shape)


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array of `object`: a number, an array, nested lists of those, or anything with __array__.

    Args:
        object: number, array, nested lists of those, or anything with __array__.
        dtype: dtype of the result; None: that of the values, promoted.
        *args: copy, order and ndmin by position, which is deprecated.
        copy: bool; copy even if it is an array already.
        order: "K", "C", "A" or None, without effect: arrays are row-major.
        ndmin: int, leading axes of size 1 are added up to this rank.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of the values' shape.

    Raises:
        ValueError: for ragged lists.
        TypeError: for values that are not numbers.
        OverflowError: for integers that do not fit the dtype.
        NotImplementedError: for another order.

    >>> jnp.array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(array, locals())
    if args:
        warnings.warn(
            "Passing the copy, order, and ndmin arguments to jnp.array positionally is deprecated. Use keyword arguments instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        copy, order, ndmin = (*args, *(copy, order, ndmin)[len(args) :])
    return _made("array", object, dtype, copy, order, ndmin, device)


def _made(name, object, dtype=None, copy=True, order="K", ndmin=0, device=None):
    if order is not None and order not in ("K", "C", "A"):
        raise NotImplementedError("Only implemented for order='K'")
    dtype = requested(name, dtype)
    if dtype is not None and dtype == float0:
        return np.array(object, float0, copy=copy or None, ndmin=ndmin)
    if isinstance(object, Array):
        out = object if dtype is None else convert(object, dtype)
        if copy:
            out = bind("copy", out) if out is object else out
    elif isinstance(object, _SCALARS) and not isinstance(object, np.generic):
        if dtype is not None:
            object = _real_if_needed(object, dtype)
            if isinstance(object, float) and is_integer(dtype):
                _check_range(object, dtype)
                object = integer_of_float(object, dtype)
        out = _core.asarray(object, dtype)
    elif isinstance(object, (list, tuple)):
        out = _from_sequence(object, dtype)
    elif object is None:
        raise ValueError("None is not a valid value for jnp.array")
    elif hasattr(object, "__jax_array__"):
        return _made(name, object.__jax_array__(), dtype, copy, order, ndmin, device)
    else:
        values = object if isinstance(object, np.ndarray) else np.asarray(object)
        if dtype is None and values.dtype == float0:
            return np.array(values, copy=copy or None, ndmin=ndmin)
        if values.dtype == np.dtype("O") and dtype is not None and not is_key(dtype):
            values = values.astype(dtype)
        if values.dtype == np.dtype("O") or values.dtype.kind in "USMm" or (values.dtype.kind == "V" and values.dtype.names):
            raise _invalid(object, values.dtype)
        out = _core.asarray(values, dtype)
    if out.ndim < ndmin:
        k = ndmin - out.ndim
        out = bind("broadcast_in_dim", out, shape=(1,) * k + tuple(out.shape), broadcast_dimensions=tuple(range(k, ndmin)))
    return out if isinstance(object, Array) and device is None else _placed(out, device)


def _placed(out, device):
    """A new array, placed on the requested device or with the requested sharding; without a
    request, on the mesh in use.
    """
    if device is not None:
        return placed(out, device)
    place = place_in_use()
    if place is None or isinstance(out, _core.Tracer) or out.committed or not _core.at_root():
        return out
    return _core.device_put(out, place)


def _check_range(value, dtype):
    """Raises numpy's ValueError or OverflowError for a Python float that is nan or beyond an
    integer dtype.
    """
    if isinstance(value, float) and is_integer(dtype) and not iinfo(dtype).min - 1 < value < iinfo(dtype).max + 1:
        np.asarray(float(value), dtype)


def _from_sequence(values, dtype):
    if any(v is None for v in _leaves(values)):
        raise ValueError("None is not a valid value for jnp.array")
    if not _contains_arrays(values):
        out = np.asarray(values)
        if out.dtype.kind in "fO" and _beyond_doubles(values):
            if dtype is None and all(isinstance(v, (int, np.integer, np.bool_)) or getattr(v, "dtype", np.dtype(float)).kind in "iub" for v in _leaves(values)):
                dtype = _promoted(values, canonicalize_dtype(int))
            if dtype is not None and np.dtype(dtype).kind in "iu":
                out = _exact_integers(values, dtype)
        if out.dtype == np.dtype("O"):
            for v in _leaves(values):
                if not is_arraylike(v) and not hasattr(v, "__array__"):
                    raise _invalid(values, out.dtype)
            if dtype is None or is_integer(dtype):
                _check_integers(values, canonicalize_dtype(int) if dtype is None else dtype)
            else:
                out = out.astype(np.complex128 if is_complex(dtype) else np.float64)  # integers beyond 64 bits
        elif out.dtype.kind in "USMm":
            raise _invalid(values, out.dtype)
        if dtype is not None and out.dtype.kind == "c":
            for v in _leaves(values):
                _real_if_needed(v, dtype)
        if out.size == 0 and dtype is None and out.dtype == np.float64:
            dtype = canonicalize_dtype(float)
        if dtype is None:
            dtype = _promoted(values, out.dtype)
        if is_integer(dtype) and np.dtype(dtype).kind in "iu" and out.dtype.kind in "iu" and out.dtype != dtype and out.size:
            info = np.iinfo(dtype)
            if out.min() < info.min or out.max() > info.max:
                _check_integers(values, dtype)
        if is_integer(dtype) and out.dtype.kind == "f":
            for v in _leaves(values):
                _check_range(v, dtype)
        return _core.asarray(out, dtype)
    if dtype is None:
        dtype = _core.result_type(*_leaves(values))
    parts = [_element(v, dtype) for v in values]
    rows = []
    for p in parts:
        rows.append(bind("broadcast_in_dim", p, shape=(1, *p.shape), broadcast_dimensions=tuple(range(1, p.ndim + 1))))
    return rows[0] if len(rows) == 1 else bind("concatenate", *rows, dimension=0)


def _promoted(values, dtype):
    """The dtype of nested lists to which numpy gives `dtype`: Python numbers are weak when combined
    with scalars of a dtype.
    """
    kinds = {getattr(v, "dtype", type(v)): v for v in _leaves(values)}
    if not any(isinstance(v, (np.ndarray, np.generic)) for v in kinds.values()):
        return canonicalize_dtype(dtype)
    return _core.result_type(*[v if is_arraylike(v) else np.asarray(v) for v in kinds.values()])


def _element(v, dtype):
    if isinstance(v, (list, tuple)):
        return _from_sequence(v, dtype)
    if type(v) in _SCALARS:
        return _scalar(v, dtype)
    return convert(v, dtype) if isinstance(v, Array) else _core.asarray(v, dtype)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """`a` as an array; the same object if nothing changes.

    Args:
        a: number, array, nested lists of those, or anything with __array__.
        dtype: dtype of the result; None: that of the values, promoted.
        order: "K", "C", "A" or None, without effect: arrays are row-major.
        copy: True to copy, False to refuse memory of the host that has to be copied to a device,
          None to copy where needed.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of the values' shape.

    Raises:
        ValueError: if copy is False, and the memory of a buffer would have to be copied to another
          device.
        NotImplementedError: for another order.

    >>> jnp.asarray([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(asarray, locals())
    if copy is False and not isinstance(a, Array) and (platform := _platform(device)) != "cpu" and _is_buffer(a):
        raise ValueError(
            f"jnp.asarray: cannot convert object of type {type(a)} to JAX Array on platform={platform} with copy=False. Consider using copy=None or copy=True"
            " instead."
        )
    return _made("asarray", a, dtype, bool(copy), order, 0, device)


def _platform(device):
    """The platform that the argument `device` of a function means."""
    if device is None:
        return default_backend()
    return device.platform if hasattr(device, "platform") else next(iter(device.device_set)).platform


def _is_buffer(a):
    """Whether an object lets its memory be read."""
    try:
        memoryview(a)
    except TypeError:
        return False
    return True


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of a.

    Args:
        a: array or number.
        order: "K", "C", "A" or None, without effect: arrays are row-major.

    Returns:
        Array of a's shape and dtype, with its own memory.

    Raises:
        NotImplementedError: for another order.

    >>> jnp.copy(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: Device | Sharding | None = None) -> Array:
    """`x` converted to `dtype`.

    Complex to real drops the imaginary part; keys are returned unchanged.

    Args:
        x: array.
        dtype: dtype of the result; None: the default float.
        copy: bool; copy where the dtype is the same.
        device: where the result lives: a device or a sharding; None: the default device.

    Returns:
        Array of x's shape.

    Raises:
        ValueError: for keys to numbers and numbers to keys.

    >>> jnp.astype(jnp.array([1.9, -1.9]), "int32")
    Array([ 1, -1], dtype=int32)
    """
    check_arraylike("astype", x)
    x = _core.asarray(x) if not isinstance(x, Array) else x
    if is_key(x.dtype) or is_key(dtype):
        if x.dtype != dtype:
            raise ValueError(f"Cannot convert_element_type from {x.dtype} to {dtype if is_key(dtype) else np.dtype(dtype)}")
        return placed(x, device)
    dtype = requested("astype", dtype, float)
    if is_complex(x.dtype) and not is_complex(dtype) and not is_bool(dtype):
        warnings.warn(
            "Casting from complex to real dtypes will soon raise a ValueError. Please first use jnp.real or jnp.imag to take the real/imaginary component "
            "of your input.",
            DeprecationWarning,
            stacklevel=2,
        )
        x = bind("real", x)
    out = convert(x, dtype)
    if copy and out is x:
        out = bind("copy", out)
    return placed(out, device)


def _real_if_needed(value, dtype):
    """The number itself.

    Raises TypeError, as Python does, for a complex one where the dtype is real.
    """
    if isinstance(value, complex) and not is_complex(dtype) and not is_bool(dtype):
        return int(value) if is_integer(dtype) else float(value)
    return value


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """A vector of the bytes of a buffer.

    Args:
        buffer: object with a buffer, such as bytes.
        dtype: dtype of the elements.
        count: int, how many elements; -1: all.
        offset: int, how many bytes to skip.

    Returns:
        Vector of `dtype`.

    Raises:
        ValueError: if the buffer's size is not a multiple of the element's.

    >>> jnp.frombuffer(bytes([1, 2]), "uint8")
    Array([1, 2], dtype=uint8)
    """
    return array(
        np.frombuffer(
            buffer,
            dtype=np.dtype(
                getattr(dtype, "dtype", dtype) if not isinstance(dtype, type) or (hasattr(dtype, "dtype") and isinstance(dtype.dtype, np.dtype)) else dtype
            ),
            count=count,
            offset=offset,
        )
    )


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """A vector of the numbers in a text.

    Args:
        string: text of numbers.
        dtype: dtype of the numbers.
        count: int, how many; -1: all.
        sep: the separator of the numbers.

    Returns:
        Vector of `dtype`.

    >>> jnp.fromstring("1 2 3", sep=" ")
    Array([1., 2., 3.], dtype=float32)
    """
    return array(np.fromstring(string, dtype=np.dtype(dtype), count=count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> NoReturn:
    """Not offered: files are read outside; use numpy.fromfile and jnp.asarray.

    Args:
        *args, **kwargs: not read.

    Returns:
        Nothing: it always raises.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "jnp.fromfile() is not implemented because it may be non-pure and thus unsafe for use with JIT and other JAX transformations. "
        "Consider using jnp.asarray(np.fromfile(...)) instead, although care should be taken if np.fromfile is used within a jax transformations "
        "because of its potential side-effect of consuming the file object; for more information see Common Gotchas: Pure Functions"
    )


def fromiter(*args: Any, **kwargs: Any) -> NoReturn:
    """Not offered: iterators are consumed outside; use numpy.fromiter and jnp.asarray.

    Args:
        *args, **kwargs: not read.

    Returns:
        Nothing: it always raises.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "jnp.fromiter() is not implemented because it may be non-pure and thus unsafe for use with JIT and other JAX transformations. "
        "Consider using jnp.asarray(np.fromiter(...)) instead, although care should be taken if np.fromiter is used within a jax transformations "
        "because of its potential side-effect of consuming the iterable object; for more information see Common Gotchas: Pure Functions"
    )


def from_dlpack(x: Any, /, *, device: Device | Sharding | None = None, copy: bool | None = None) -> Array:
    """An array sharing memory with any object that offers __dlpack__; a copy where it cannot be
    shared or `copy` is set.

    Args:
        x: object with __dlpack__ and __dlpack_device__.
        device: where the result lives: a device or a sharding; None: the default device.
        copy: True to copy, False to raise an error if a copy is needed, None to copy only if memory
          cannot be shared.

    Returns:
        Array of x's shape and dtype; 64-bit numbers become 32-bit ones unless x64 is enabled.

    Raises:
        TypeError: for objects without these methods.

    >>> jnp.from_dlpack(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return dlpack.from_dlpack(x, device=device, copy=copy)


def _scalar(value, dtype):
    with np.errstate(all="ignore"):
        value = _real_if_needed(value, dtype)
        if isinstance(value, float) and is_integer(dtype) and value == value and abs(value) != float("inf"):
            value = int(value)
        return np.asarray(value).astype(dtype)[()] if not isinstance(value, int) or is_bool(dtype) else constant(value, dtype)
