"""Arrays of equally spaced numbers, of their powers, and of functions of indices.

Invariant: the number of elements is known when a program is traced.

    >>> jnp.arange(3)
    Array([0, 1, 2], dtype=int32)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from ... import _core
from ..._base.dtypes import is_complex, is_inexact, is_integer, is_narrow, requested, to_inexact
from ..._base.shapes import canonicalize_axis, canonicalize_shape, common_shape, static_size
from ..._base.tracebacks import api_boundary
from ..._core import bind
from ..._sharding.parts import placed, sharded
from ..._transforms.vmap import vmap
from .._manipulation.shaping import moveaxis
from .._math.exponential import log10, power
from .._math.rounding import floor
from .._support.arguments import Array, as_array, check_arraylike, check_promotion, concrete_or_error, constant, convert, jitted
from .arrays import _scalar, astype
from .filled import _filled

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._core import Device
    from ...sharding import NamedSharding, PartitionSpec, Sharding
    from ...typing import ArrayLike, DTypeLike


def _static_number(x, name):
    if hasattr(x, "traced_size"):  # a symbolic size from around a function
        x = x.traced_size()
    if isinstance(x, Array):
        return concrete_or_error(x, f"It arose in the jnp.arange argument '{name}'")[()]
    return x


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """start, start + step, ... up to stop, which is not included.

    Args:
        start: the first number; if it is the only argument, it is `stop` and the numbers start
          at 0.
        stop: the end; None: `start` is.
        step: the distance; None: 1.
        dtype: dtype of the result; None: the one that the arguments promote to.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

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
    for i, (name, v) in enumerate((("stop" if stop is None else "start", start), ("stop", stop), ("step", step))):
        if isinstance(v, (list, tuple)):
            raise TypeError(f"arange requires ndarray, scalar, or None arguments, got {type(v)} at position {i}.")
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
        return placed(convert(arange(start, stop, step, to_inexact(np.dtype(np.float32))), dtype), device)
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
    return placed(out, device)


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


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Device | Sharding | None = None,
) -> Array: ...


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: Device | Sharding | None = None,
) -> tuple[Array, Array]: ...


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Device | Sharding | None = None,
) -> Array | tuple[Array, Array]: ...


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Device | Sharding | None = None,
) -> Array | tuple[Array, Array]:
    """Numbers evenly spaced from start to stop.

    Args:
        start, stop: scalars or arrays that broadcast.
        num: int, how many.
        endpoint: whether stop is the last of them.
        retstep: also return the spacing.
        dtype: dtype of the result; None: the promoted one made float; integers are rounded down.
        axis: int, position of the new axis.
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
    return (placed(out[0], device), out[1]) if retstep else placed(out, device)


@jitted("_logspace", static=("num", "endpoint", "dtype", "axis"))
def _logspace(start, stop, base, num, endpoint, dtype, axis):
    inner = to_inexact(_core.result_type(start, stop))
    start, stop = convert(_core.asarray(start), inner), convert(_core.asarray(stop), inner)
    exponents = linspace(start, stop, num=num, endpoint=endpoint, axis=axis)
    out = power(convert(_core.asarray(base), inner), exponents)
    return astype(out, inner if dtype is None else dtype)


def logspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, base: ArrayLike = 10.0, dtype: Any = None, axis: int = 0) -> Array:
    """base ** linspace(start, stop, num, ...).

    Args:
        start, stop: exponents of the ends, scalars or arrays that broadcast.
        num: int, how many.
        endpoint: whether base ** stop is the last of them.
        base: the base, a scalar or an array.
        dtype: dtype of the result; None: the promoted one made float.
        axis: int, position of the new axis.

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


def geomspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Array:
    """`num` numbers from start to stop, each a constant multiple of the one before.

    Args:
        start, stop: scalars or arrays that broadcast.
        num: int, how many.
        endpoint: whether stop is the last of them.
        dtype: dtype of the result; None: the promoted one made float.
        axis: int, position of the new axis.

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


@api_boundary
def fromfunction(function: Callable[..., Array], shape: Any, *, dtype: DTypeLike = float, **kwargs: Any) -> Array:
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
