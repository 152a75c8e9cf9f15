"""Calls from programs back into Python.

Invariant: a callback gets arrays of the operands' shapes and dtypes, on the host, and its results
are checked against the declared types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .. import _core
from .._base.flags import refused
from .._base.tracebacks import api_boundary
from .._trees.flat import describe
from ..dtypes import canonicalize_dtype
from ..errors import JaxRuntimeError
from ..tree_util import tree_flatten, tree_leaves

if TYPE_CHECKING:
    from .._core import Array
    from .._tracing.trace import ShapeDtypeStruct
    from ..sharding import Sharding

_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


def _avals(result_shape_dtypes):
    leaves, tree = tree_flatten(result_shape_dtypes)
    if any(canonicalize_dtype(x.dtype) != x.dtype for x in leaves):
        raise ValueError(
            "result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled\n"
            "help: promise 32 bits, or set the flag (ferrax.config.update('jax_enable_x64', True))"
        )
    return [_core.ShapedArray(tuple(x.shape), canonicalize_dtype(x.dtype)) for x in leaves], tree


def _checked(fun, avals, in_tree):
    """`fun` over flat arrays, with its results' leaves checked."""
    who = lambda: f"\nThe callback is {describe(fun)}."

    def call(*leaves):
        args, kwargs = in_tree.unflatten(leaves)
        outs = tree_leaves(fun(*args, **kwargs))
        if len(outs) != len(avals):
            raise RuntimeError(f"Mismatched number of outputs from callback. Expected: {len(avals)}, Actual: {len(outs)}{who()}")
        checked = []
        for i, (out, aval) in enumerate(zip(outs, avals, strict=True)):
            out = np.asarray(out)
            if tuple(out.shape[out.ndim - len(aval.shape) :]) != tuple(aval.shape) or out.ndim < len(aval.shape):
                raise RuntimeError(f"Incorrect output shape for return value #{i}: Expected: {tuple(aval.shape)}, Actual: {out.shape}{who()}")
            if out.dtype != aval.dtype:
                if not np.can_cast(out.dtype, aval.dtype, "same_kind") or out.dtype.kind != aval.dtype.kind:
                    raise RuntimeError(f"Incorrect output dtype for return value #{i}: Expected: {aval.dtype}, Actual: {out.dtype}{who()}")
                out = out.astype(aval.dtype)
            checked.append(out)
        return checked

    return call


def _of_one_device(sharding):
    return sharding is None or len(getattr(sharding, "device_set", ())) == 1


@overload
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: ShapeDtypeStruct | Array,
    *args: Any,
    sharding: Sharding | None = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Array: ...


@overload
def pure_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Sharding | None = None, vmap_method: str | None = None, **kwargs: Any
) -> Any: ...


@api_boundary
def pure_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Sharding | None = None, vmap_method: str | None = None, **kwargs: Any
) -> Any:
    """Calls a pure Python function from inside a program.

    Args:
        callback: a function of arrays on the host. It may be called any number of times, or never
            if its result is not used.
        result_shape_dtypes: a pytree of `ShapeDtypeStruct`s or arrays. Only its leaves matter, not
            its structure: the callback may return another pytree with the same leaves.
        *args, **kwargs: the arguments of the callback, pytrees of arrays.
        sharding: a `SingleDeviceSharding`. It has no effect: the callback runs in this process, for
            the whole array.
        vmap_method: what `vmap` does: "sequential" (one call per element), "expand_dims" (one call,
            unmapped arguments get an axis of size 1), "broadcast_all" (one call, all arguments get
            the axis), "legacy_vectorized" (one call, unmapped arguments are passed unchanged).

    Returns:
        A pytree of arrays, with the structure of `result_shape_dtypes`.

    Raises:
        ValueError: the vmap method is unknown, or 64-bit results are declared while 64-bit types
            are disabled.
        NotImplementedError: the sharding is over several devices.
        JaxRuntimeError: when the program runs, the callback raised an exception, or its result does
            not have the declared types.

    >>> jax.pure_callback(lambda x: 2 * x, jax.ShapeDtypeStruct((), "float32"), jnp.float32(3.0))
    Array(6., dtype=float32)
    """
    if not _of_one_device(sharding):
        refused("pure_callback", "sharding", sharding, "callbacks run in this process, for the whole array")
    if vmap_method is not None and vmap_method not in _METHODS:
        raise ValueError(f"vmap_method must be on of the allowed methods {[*_METHODS, None]}, but got: {vmap_method}")
    leaves, in_tree = tree_flatten((args, kwargs))
    avals, out_tree = _avals(result_shape_dtypes)
    outs = _core.callback(_checked(callback, avals, in_tree), leaves, avals, "pure", False, vmap_method)
    return out_tree.unflatten(outs)


@overload
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: ShapeDtypeStruct | Array,
    *args: Any,
    sharding: Sharding | None = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Array: ...


@overload
def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Sharding | None = None, ordered: bool = False, **kwargs: Any
) -> Any: ...


@api_boundary
def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Sharding | None = None, ordered: bool = False, **kwargs: Any
) -> Any:
    """Calls a Python function with side effects from inside a program: exactly once in each run.

    Args:
        callback: a function of arrays on the host.
        result_shape_dtypes: the types of its result, as a pytree of `ShapeDtypeStruct`s or arrays.
        *args, **kwargs: the arguments of the callback, pytrees of arrays.
        sharding: a `SingleDeviceSharding`. It has no effect: the callback runs in this process, for
            the whole array.
        ordered: bool; whether calls happen in program order. An ordered callback cannot be mapped.

    Returns:
        A pytree of arrays, with the structure of `result_shape_dtypes`.

    Raises:
        ValueError: 64-bit results are declared while 64-bit types are disabled.
        NotImplementedError: the sharding is over several devices.
        JaxRuntimeError: when the program runs, the callback raised an exception, or its result does
            not have the declared types.
    """
    if not _of_one_device(sharding):
        refused("io_callback", "sharding", sharding, "callbacks run in this process, for the whole array")
    leaves, in_tree = tree_flatten((args, kwargs))
    avals, out_tree = _avals(result_shape_dtypes)
    outs = _core.callback(_checked(callback, avals, in_tree), leaves, avals, "io", bool(ordered), None)
    return out_tree.unflatten(outs)


def debug_callback(callback, args, kwargs, ordered, kind="debug"):
    """Calls a Python function for its side effects: under `vmap` once per element, under `grad` in
    the forward pass.
    """
    leaves, in_tree = tree_flatten((args, kwargs))
    is_array, weak = [], []
    for x in leaves:
        try:
            weak.append(_core.get_aval(x).weak_type)
            is_array.append(True)
        except TypeError:
            is_array.append(False)
    others = [None if a else x for x, a in zip(leaves, is_array, strict=True)]
    raised = []  # the exception of a callback that was called directly, outside of any program

    def call(*arrays):
        if here:  # restore the weak types of the arguments; programs pass strongly typed arrays
            arrays = [_core.asarray(x, weak_type=True) if w else x for x, w in zip(arrays, weak, strict=True)]
        rest = iter(arrays)
        args, kwargs = in_tree.unflatten([next(rest) if a else x for a, x in zip(is_array, others, strict=True)])
        try:
            callback(*args, **kwargs)
        except Exception as e:
            if here:
                raised.append(e)
            raise
        return []

    here = True
    try:
        _core.callback(call, [x for x, a in zip(leaves, is_array, strict=True) if a], [], kind, bool(ordered), None)
    except JaxRuntimeError:
        if not raised:
            raise
    finally:
        here = False
    if raised:
        raise raised[0]
