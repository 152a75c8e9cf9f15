"""Making arrays: from Python values, from shapes, from ranges.

Invariant: 64-bit dtypes become 32-bit ones unless x64 is on; Python numbers alone make weakly typed arrays, lists of them do not.

    >>> jnp.array([1, 2.5])
    Array([1. , 2.5], dtype=float32)
"""

from __future__ import annotations

import operator
import warnings

import numpy as np

from .. import _core, dlpack
from .._batching import vmap
from .._core import bind
from .._dtypes import canonicalize_dtype, dtype_of, float0, is_bool, is_complex, is_inexact, is_integer, is_key, is_narrow, is_weak, requested, to_inexact
from .._parts import sharded
from .._shapes import canonicalize_axis, canonicalize_shape, common_shape, static_size
from ..lax._shaping import beside, integer_scalar, keys_of, varying_like
from ._arguments import Array, as_array, check_arraylike, check_promotion, concrete_or_error, constant, convert, is_arraylike, jitted, ndim_of, shape_of
from ._exponential import log10, power
from ._rounding import floor
from ._shaping import moveaxis

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


def array(object, dtype=None, *args, copy=True, order="K", ndmin=0, device=None, out_sharding=None):
    """An array of `object`: a number, an array, nested lists of those, or anything with __array__.

    Args:
        object: number, array, nested lists of those, or anything with __array__.
        dtype: dtype of the result; None: that of the values, promoted.
        *args: copy, order and ndmin by position, which is deprecated.
        copy: bool: copy what is an array already.
        order: "K", "C", "A" or None, all the same: arrays lie row by row.
        ndmin: int: leading axes of size 1 are added up to this rank.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

    Returns:
        Array of the values' shape.

    Raises:
        ValueError: for ragged lists.
        TypeError: for values that are no numbers.
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
    return out if device is None else _core.device_put(out, device)


def _from_sequence(values, dtype):
    if any(v is None for v in _leaves(values)):
        raise ValueError("None is not a valid value for jnp.array")
    if not _contains_arrays(values):
        out = np.asarray(values)
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
        return _core.asarray(out, dtype)
    if dtype is None:
        dtype = _core.result_type(*_leaves(values))
    parts = [_element(v, dtype) for v in values]
    shapes = {tuple(p.shape) for p in parts}
    if len(shapes) > 1:
        raise ValueError(
            "setting an array element with a sequence. The requested array has an inhomogeneous shape after 1 dimensions. "
            f"The detected shape was ({len(parts)},) + inhomogeneous part."
        )
    rows = []
    for p in parts:
        rows.append(bind("broadcast_in_dim", p, shape=(1, *p.shape), broadcast_dimensions=tuple(range(1, p.ndim + 1))))
    return rows[0] if len(rows) == 1 else bind("concatenate", *rows, dimension=0)


def _promoted(values, dtype):
    """The dtype of nested lists that numpy gives `dtype`: beside scalars of a dtype, Python's numbers are weak."""
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


def asarray(a, dtype=None, order=None, *, copy=None, device=None, out_sharding=None):
    """a as an array, the same object where nothing changes.

    Args:
        a: number, array, nested lists of those, or anything with __array__.
        dtype: dtype of the result; None: that of the values, promoted.
        order: "K", "C", "A" or None, all the same: arrays lie row by row.
        copy: True to copy, False to refuse values that need one, None to copy where needed.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

    Returns:
        Array of the values' shape.

    Raises:
        ValueError: if copy is False and a is no array.
        NotImplementedError: for another order.

    >>> jnp.asarray([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(asarray, locals())
    if copy is False and not isinstance(a, (Array, np.ndarray)):
        raise ValueError("jnp.asarray: cannot convert object to an array without a copy; consider copy=None")
    return _made("asarray", a, dtype, bool(copy), order, 0, device)


def copy(a, order=None):
    """A copy of a.

    Args:
        a: array or number.
        order: "K", "C", "A" or None, all the same: arrays lie row by row.

    Returns:
        Array of a's shape and dtype, in memory of its own.

    Raises:
        NotImplementedError: for another order.

    >>> jnp.copy(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(x, dtype, /, *, copy=False, device=None):
    """x converted to `dtype`. Complex to real drops the imaginary part; keys stay as they are.

    Args:
        x: array.
        dtype: dtype of the result; None: the default float.
        copy: bool: copy where the dtype is the same.
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
        return x if device is None else _core.device_put(x, device)
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
    return out if device is None else _core.device_put(out, device)


def _uniform(value, shape, dtype, device):
    """`value`, a number, spread over `shape`: each word of a key. Of float0 there are numpy's arrays alone."""
    if is_key(dtype):
        return _keys(value, shape, dtype, device)
    return np.zeros(shape, float0) if dtype == float0 else _filled(constant(value, dtype), shape, device)


def _filled(value, shape, device):
    if any(n < 0 for n in shape):
        raise TypeError(f"broadcast_in_dim shape must have every element be nonnegative, got {shape}.")
    out = bind("broadcast_in_dim", value, shape=shape, broadcast_dimensions=()) if shape else _core.asarray(value)
    return out if device is None else _core.device_put(out, device)


def _dtype_beside(name, shape, dtype):
    """The dtype asked for, float by default. A second size in its place is recognized."""
    if isinstance(dtype, int) and ndim_of(shape) == 0:
        raise TypeError(
            f"Cannot interpret '{dtype}' as a data type.\n\nDid you accidentally write `jax.numpy.{name}({shape}, {dtype})` "
            f"when you meant `jax.numpy.{name}(({shape}, {dtype}))`, i.e. with a single tuple argument for the shape?"
        )
    return requested(name, dtype, float)


def zeros(shape, dtype=None, *, device=None, out_sharding=None):
    """Zeros of `shape` (an integer or a sequence of them) and `dtype` (default float).

    Args:
        shape: int or sequence of ints.
        dtype: dtype of the result; None: the default float.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        TypeError: for sizes that are no integers or are negative.

    >>> jnp.zeros((2, 2))
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(zeros, locals())
    dtype = _dtype_beside("zeros", shape, dtype)
    return _uniform(0, canonicalize_shape(shape), dtype, device)


def ones(shape, dtype=None, *, device=None, out_sharding=None):
    """Ones of `shape` and `dtype` (default float).

    Args:
        shape: int or sequence of ints.
        dtype: dtype of the result; None: the default float.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        TypeError: for sizes that are no integers or are negative.

    >>> jnp.ones(3, dtype="int32")
    Array([1, 1, 1], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(ones, locals())
    dtype = _dtype_beside("ones", shape, dtype)
    return _uniform(1, canonicalize_shape(shape), dtype, device)


def empty(shape, dtype=None, *, device=None, out_sharding=None):
    """The same as `zeros`.

    Args:
        shape: int or sequence of ints.
        dtype: dtype of the result; None: the default float.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        TypeError: for sizes that are no integers or are negative.

    >>> jnp.empty((0, 2)).shape
    (0, 2)
    """
    if out_sharding is not None:
        return sharded(empty, locals())
    dtype = _dtype_beside("empty", shape, dtype)
    return _uniform(0, canonicalize_shape(shape), dtype, device)


def full(shape, fill_value, dtype=None, *, device=None, out_sharding=None):
    """One value in every place.

    Args:
        shape: int or sequence of ints.
        fill_value: scalar, or an array that broadcasts to `shape`.
        dtype: dtype of the result; None: that of fill_value.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        TypeError: for sizes that are no integers or are negative.

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
    return _on(_core.broadcast_to(convert(fill_value, dtype, weak), shape), device)


def _real_if_needed(value, dtype):
    """The number itself. Raises TypeError, as Python does, for a complex one where the dtype is real."""
    if isinstance(value, complex) and not is_complex(dtype) and not is_bool(dtype):
        return int(value) if is_integer(dtype) else float(value)
    return value


def _scalar(value, dtype):
    with np.errstate(all="ignore"):
        value = _real_if_needed(value, dtype)
        if isinstance(value, float) and is_integer(dtype) and value == value and abs(value) != float("inf"):
            value = int(value)
        return np.asarray(value).astype(dtype)[()] if not isinstance(value, int) or is_bool(dtype) else constant(value, dtype)


def _fill_scalar(value, dtype):
    """What an array is filled with: integers wrap, as in a conversion."""
    if type(value) is int:
        return integer_scalar(value, dtype)
    return _scalar(value, dtype) if isinstance(value, _SCALARS) else _core.asarray(value, dtype)


def _on(out, device):
    return out if device is None else _core.device_put(out, device)


def _keys(word, shape, dtype, device):
    return _on(keys_of(word, shape, dtype), device)


def _filled_like(a, value, dtype, shape, weak, device):
    """`value` spread over a shape like a's: a number, for an array of `dtype`, weakly typed or not."""
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


def zeros_like(a, dtype=None, shape=None, *, device=None, out_sharding=None):
    """Zeros of a's shape and dtype, unless given.

    Args:
        a: array.
        dtype: dtype of the result; None: a's.
        shape: int or sequence of ints; None: a's.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

    Returns:
        Array of `shape` and `dtype`.

    >>> jnp.zeros_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(zeros_like, locals())
    dtype, shape, weak = _like("zeros_like", a, dtype, shape)
    return _filled_like(a, 0, dtype, shape, weak, device)


def ones_like(a, dtype=None, shape=None, *, device=None, out_sharding=None):
    """Ones of a's shape and dtype, unless given.

    Args:
        a: array.
        dtype: dtype of the result; None: a's.
        shape: int or sequence of ints; None: a's.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

    Returns:
        Array of `shape` and `dtype`.

    >>> jnp.ones_like(jnp.arange(3))
    Array([1, 1, 1], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(ones_like, locals())
    dtype, shape, weak = _like("ones_like", a, dtype, shape)
    return _filled_like(a, 1, dtype, shape, weak, device)


def empty_like(prototype, dtype=None, shape=None, *, device=None):
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


def full_like(a, fill_value, dtype=None, shape=None, *, device=None, out_sharding=None):
    """One value in an array shaped like a.

    Args:
        a: array.
        fill_value: scalar, or an array that broadcasts to `shape`.
        dtype: dtype of the result; None: a's.
        shape: int or sequence of ints; None: a's.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

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
    return _on(varying_like(_core.broadcast_to(array(fill_value, dtype, copy=False), shape), a), device)


def _static_number(x, name):
    if isinstance(x, Array):
        return concrete_or_error(x, f"It arose in the jnp.arange argument '{name}'")[()]
    return x


def arange(start, stop=None, step=None, dtype=None, *, device=None, out_sharding=None):
    """start, start + step, ... up to stop, which is not included.

    Args:
        start: the first number; alone, it is `stop` and the numbers begin at 0.
        stop: the end; None: `start` is.
        step: the distance; None: 1.
        dtype: dtype of the result; None: the one that the arguments promote to.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: how the result lies along the explicit axes of a mesh, a `NamedSharding` or `PartitionSpec`; None: as its operands do.

    Returns:
        Vector of ceil((stop - start) / step) numbers.

    Raises:
        ValueError: for complex arguments.
        TypeError: for a bool dtype.
        ZeroDivisionError: for a step of 0.
        ConcretizationTypeError: for bounds that are traced.

    >>> jnp.arange(2, 10, 3)
    Array([2, 5, 8], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(arange, locals())
    start = _static_number(start, "stop" if stop is None else "start")
    stop, step = _static_number(stop, "stop"), _static_number(step, "step")
    for name, v in (("stop" if stop is None else "start", start), ("stop", stop), ("step", step)):
        if v is not None and np.ndim(v):
            raise ValueError(f"jax.numpy.arange: arguments must be scalars; got {name}={v}")
    if any(isinstance(v, (complex, np.complexfloating)) for v in (start, stop, step)):
        raise ValueError("Passing complex start/stop/step to jnp.arange is no longer supported starting in JAX v0.10.0.")
    if stop is None and step is not None:
        stop = start
        start = 0
    if stop is None:
        start, stop = 0, start
        from_zero = True
    else:
        from_zero = False
    if step is not None and step == 0:
        raise ZeroDivisionError("division by zero")
    if dtype is None:
        dtype = _core.result_type(*([] if from_zero else [start]), stop, *([] if step is None else [step]))
    dtype = requested("arange", dtype)
    if not (is_integer(dtype) or is_inexact(dtype)):
        raise TypeError(f"iota does not accept dtype {dtype.name}. Accepted dtypes are subtypes of integer, floating, complexfloating.")
    if is_complex(dtype):
        return convert(arange(start, stop, step, to_inexact(np.dtype(np.float32))), dtype)
    n = (
        int(max(0, np.ceil(np.divide(np.subtract(stop, start), 1 if step is None else step))))
        if not _all_int(start, stop, step)
        else len(range(int(start), int(stop), 1 if step is None else int(step)))
    )
    out = bind("iota", dtype=dtype, shape=(n,), dimension=0)
    if step is not None:
        out = bind("mul", _scalar(_plain(step), dtype), out)
    if not from_zero and (step is not None or start != 0):
        out = bind("add", _scalar(_plain(start), dtype), out)
    return out if device is None else _core.device_put(out, device)


def _plain(x):
    return x.item() if isinstance(x, np.generic) else x


def _all_int(*values):
    return all(v is None or isinstance(v, (int, np.integer)) for v in values)


@jitted("_linspace", static=("num", "endpoint", "retstep", "dtype", "axis"), mixes=True)
def _linspace(start, stop, num, endpoint, retstep, dtype, axis):
    start, stop = as_array("linspace", start), as_array("linspace", stop)
    inner = to_inexact(_core.result_type(start, stop))
    computation = inner if dtype is None or not is_inexact(dtype) or is_narrow(dtype) else _core.result_type(inner, dtype)
    dtype = computation if dtype is None else dtype
    start, stop = convert(start, computation), convert(stop, computation)
    bounds = common_shape(start.shape, stop.shape)
    start, stop = _core.broadcast_to(start, bounds), _core.broadcast_to(stop, bounds)
    axis = canonicalize_axis(axis, len(bounds) + 1)
    div = num - 1 if endpoint else num
    wide = list(bounds)
    wide.insert(axis, 1)
    if num > 1:
        delta = bind("div", bind("sub", stop, start), constant(div, computation))
        n = div if endpoint else num
        real = computation if not is_complex(computation) else np.dtype(np.float32 if computation == np.complex64 else np.float64)
        steps = bind("iota", dtype=real, shape=(n,), dimension=0)
        shape = [1] * len(wide)
        shape[axis] = n
        if len(shape) > 1:
            steps = bind("reshape", steps, new_sizes=tuple(shape), dimensions=None)
        steps = convert(bind("div", steps, constant(div, real)), computation)
        # start (1 - t) + stop t, so that the last value is stop itself.
        a = _mul(bind("reshape", start, new_sizes=tuple(wide), dimensions=None), bind("sub", constant(1, computation), steps))
        b = _mul(bind("reshape", stop, new_sizes=tuple(wide), dimensions=None), steps)
        out = bind("add", a, b)
        if endpoint:
            dims = tuple([d for d in range(len(wide)) if d != axis])
            last = bind("broadcast_in_dim", stop, shape=tuple(wide), broadcast_dimensions=dims)
            out = bind("concatenate", out, last, dimension=axis)
    elif num == 1:
        delta = _core.asarray(constant(np.nan, computation)) if endpoint else bind("sub", stop, start)
        out = bind("reshape", start, new_sizes=tuple(wide), dimensions=None)
    else:
        wide[axis] = 0
        delta = _core.asarray(constant(np.nan, computation))
        out = _filled(constant(0, computation), tuple(wide), None)
    if is_integer(dtype) and not is_integer(out.dtype):
        out = floor(out)
    out = astype(out, dtype)
    return (out, delta) if retstep else out


def _mul(x, y):
    return bind("mul", x, y)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """Numbers evenly spaced from start to stop.

    Args:
        start, stop: scalars or arrays that broadcast.
        num: int: how many.
        endpoint: whether stop is the last of them.
        retstep: also return the spacing.
        dtype: dtype of the result; None: the promoted one made float; integers are rounded down.
        axis: int: where the new axis stands.
        device: where the result lives: a device or a sharding; None: the default device.

    Returns:
        Array with a new axis of size `num`; with retstep, (array, spacing).

    Raises:
        ValueError: for negative num.

    >>> jnp.linspace(0.0, 1.0, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = operator.index(concrete_or_error(num, "'num' argument of jnp.linspace")[()]) if isinstance(num, Array) else static_size(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    check_arraylike("linspace", start, stop)
    check_promotion(start, stop)
    dtype = requested("linspace", dtype)
    out = _linspace(start, stop, num=num, endpoint=bool(endpoint), retstep=bool(retstep), dtype=dtype, axis=operator.index(axis))
    return (_on(out[0], device), out[1]) if retstep else _on(out, device)


@jitted("_logspace", static=("num", "endpoint", "dtype", "axis"))
def _logspace(start, stop, base, num, endpoint, dtype, axis):
    inner = to_inexact(_core.result_type(start, stop))
    start, stop = convert(_core.asarray(start), inner), convert(_core.asarray(stop), inner)
    exponents = linspace(start, stop, num=num, endpoint=endpoint, axis=axis)
    out = power(convert(_core.asarray(base), inner), exponents)
    return astype(out, inner if dtype is None else dtype)


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """base ** linspace(start, stop, num, ...).

    Args:
        start, stop: exponents of the ends, scalars or arrays that broadcast.
        num: int: how many.
        endpoint: whether base ** stop is the last of them.
        base: the base, a scalar or an array.
        dtype: dtype of the result; None: the promoted one made float.
        axis: int: where the new axis stands.

    Returns:
        Array with a new axis of size `num`.

    Raises:
        ValueError: for negative num.

    >>> jnp.logspace(0.0, 2.0, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    check_arraylike("logspace", start, stop)
    dtype = requested("logspace", dtype)
    return _logspace(start, stop, base, num=operator.index(num), endpoint=bool(endpoint), dtype=dtype, axis=operator.index(axis))


@jitted("_geomspace", static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start, stop, num, endpoint, dtype, axis):
    inner = to_inexact(_core.result_type(start, stop))
    start, stop = convert(_core.asarray(start), inner), convert(_core.asarray(stop), inner)
    # Follow the sign of start, so that negative and complex ranges work.
    sign = bind("sign", start)
    out = logspace(log10(_div(start, sign)), log10(_div(stop, sign)), num, endpoint=endpoint, base=10.0, axis=0)
    if sign.ndim:
        out = bind("mul", bind("broadcast_in_dim", sign, shape=(1, *sign.shape), broadcast_dimensions=tuple(range(1, sign.ndim + 1))), out)
    else:
        out = bind("mul", sign, out)
    if axis != 0:
        out = moveaxis(out, 0, axis)
    return astype(out, inner if dtype is None else dtype)


def _div(x, y):
    return bind("div", *_core.promote_shapes(x, y))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """`num` numbers from start to stop, each a constant multiple of the one before.

    Args:
        start, stop: scalars or arrays that broadcast.
        num: int: how many.
        endpoint: whether stop is the last of them.
        dtype: dtype of the result; None: the promoted one made float.
        axis: int: where the new axis stands.

    Returns:
        Array with a new axis of size `num`; nan where real start and stop differ in sign.

    Raises:
        ValueError: for negative num.

    >>> jnp.geomspace(1.0, 8.0, 4)
    Array([1.       , 2.       , 4.0000005, 8.       ], dtype=float32)
    """
    check_arraylike("geomspace", start, stop)
    dtype = requested("geomspace", dtype)
    return _geomspace(start, stop, num=operator.index(num), endpoint=bool(endpoint), dtype=dtype, axis=operator.index(axis))


def fromfunction(function, shape, *, dtype=float, **kwargs):
    """function(i, j, ...) of the index arrays of a grid of `shape`.

    Args:
        function: function of as many index arrays as `shape` has sizes.
        shape: sequence of ints.
        dtype: dtype of the indices.
        **kwargs: passed to `function`.

    Returns:
        What `function` returns.

    >>> jnp.fromfunction(lambda i, j: i + j, (2, 2), dtype=int)
    Array([[0, 1],
           [1, 2]], dtype=int32)
    """
    shape = canonicalize_shape(shape)
    for i in range(len(shape)):
        in_axes = [0 if i == j else None for j in range(len(shape))]
        function = vmap(function, in_axes=tuple(in_axes[::-1]))
    return function(*[arange(s, dtype=dtype) for s in shape], **kwargs)


def frombuffer(buffer, dtype=float, count=-1, offset=0):
    """A vector of the bytes of a buffer.

    Args:
        buffer: object with a buffer, such as bytes.
        dtype: dtype of the elements.
        count: int: how many elements; -1: all.
        offset: int: how many bytes to skip.

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


def fromstring(string, dtype=float, count=-1, *, sep):
    """A vector of the numbers in a text.

    Args:
        string: text of numbers.
        dtype: dtype of the numbers.
        count: int: how many; -1: all.
        sep: what separates the numbers.

    Returns:
        Vector of `dtype`.

    >>> jnp.fromstring("1 2 3", sep=" ")
    Array([1., 2., 3.], dtype=float32)
    """
    return array(np.fromstring(string, dtype=np.dtype(dtype), count=count, sep=sep))


def fromfile(*args, **kwargs):
    """Not offered: files are read outside; use numpy.fromfile and jnp.asarray.

    Args:
        *args, **kwargs: not read.

    Returns:
        Nothing.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "jnp.fromfile() is not implemented because it may be non-pure and thus unsafe for use with JIT and other JAX transformations. "
        "Consider using jnp.asarray(np.fromfile(...)) instead, although care should be taken if np.fromfile is used within a jax transformations "
        "because of its potential side-effect of consuming the file object; for more information see Common Gotchas: Pure Functions"
    )


def fromiter(*args, **kwargs):
    """Not offered: iterators are consumed outside; use numpy.fromiter and jnp.asarray.

    Args:
        *args, **kwargs: not read.

    Returns:
        Nothing.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "jnp.fromiter() is not implemented because it may be non-pure and thus unsafe for use with JIT and other JAX transformations. "
        "Consider using jnp.asarray(np.fromiter(...)) instead, although care should be taken if np.fromiter is used within a jax transformations "
        "because of its potential side-effect of consuming the iterable object; for more information see Common Gotchas: Pure Functions"
    )


def from_dlpack(x, /, *, device=None, copy=None):
    """An array sharing memory with any object that offers __dlpack__; a copy where it cannot be shared or `copy` is set.

    Args:
        x: object with __dlpack__ and __dlpack_device__.
        device: where the result lives: a device or a sharding; None: the default device.
        copy: True to copy, False to refuse what needs one, None to copy where memory cannot be shared.

    Returns:
        Array of x's shape and dtype; 64-bit numbers become 32-bit ones unless x64 is enabled.

    Raises:
        TypeError: for objects without these methods.

    >>> jnp.from_dlpack(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return dlpack.from_dlpack(x, device=device, copy=copy)
