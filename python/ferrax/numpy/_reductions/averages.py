"""Means, variances and standard deviations.

Invariant: results are inexact and not weakly typed; half-precision means accumulate in float32.

    >>> jnp.mean(jnp.array([1.0, 2.0, 6.0]))
    Array(3., dtype=float32)
"""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from ... import _core
from ..._base.dtypes import (
    canonicalize_dtype,
    is_bool,
    is_complex,
    is_inexact,
    is_narrow,
    requested,
    summed_in,
    to_inexact,
    to_real,
)
from ..._base.shapes import canonicalize_axes
from ..._core import bind
from .._indexing.selecting import where as choose
from .._math.complex import real
from .._support.arguments import as_array, check_arraylike, constant, convert, jitted, scalar_like, unsupported
from .plain import _named, _positions, _static_axis, check_mask, full_of, sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike


def _count(a, axis):
    """How many elements a reduction over `axis` takes together."""
    return math.prod([a.shape[d] for d in _positions(axis, a.ndim)]) * math.prod([_core.axis_size(n) for n in _named(axis)])


def _counted(a, axis, dtype):
    """`_count` as a constant of `dtype`, in which it may wrap."""
    n = _count(a, axis)
    return constant(n, dtype) if is_inexact(dtype) else convert(constant(n, canonicalize_dtype(int)), dtype)


def _masked_count(where, a, axis, dtype, keepdims):
    """The number of included elements, as `dtype`."""
    mask = _core.broadcast_to(as_array("where", where), a.shape)
    return sum(convert(mask, canonicalize_dtype(int)), axis=axis, dtype=dtype, keepdims=keepdims)


def mean(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Arithmetic mean over `axis`; integers become float, half precision is summed in float32.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        dtype: dtype to accumulate in and to return; None: a's, made float.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: true for the elements to include; None: all.

    Returns:
        Array of a's shape without the reduced axes.

    Raises:
        ValueError: if `where` is not bool, or an axis is out of bounds or named twice.
        NotImplementedError: if `out` is given.

    >>> jnp.mean(jnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=1)
    Array([1.5, 3.5], dtype=float32)
    """
    unsupported("jnp.mean", out=out)
    a = as_array("mean", a)
    check_mask("mean", where)
    result = requested("mean", dtype) if dtype is not None else to_inexact(a.dtype)
    computation = np.dtype(np.float32) if is_inexact(result) and result.itemsize <= 2 else result
    if is_bool(a.dtype):
        a = convert(a, canonicalize_dtype(int))
    if where is None:
        n = _counted(a, axis, computation)
    else:
        n = _masked_count(where, a, axis, computation, keepdims)
    # a sum without a dtype is weakly typed as `a` is, and integers are widened in it
    given = None if a.dtype == computation and is_inexact(computation) else computation
    total = sum(a, axis=axis, dtype=given, keepdims=keepdims, where=where)
    out = bind("div", *_core.promote_shapes(total, n)) if where is not None else bind("div", total, n)
    return convert(out, result, weak=out.weak_type and out.dtype == result)


@overload
def average(
    a: ArrayLike, axis: int | Sequence[int] | None = None, weights: ArrayLike | None = None, returned: Literal[False] = False, keepdims: bool = False
) -> Array: ...


@overload
def average(
    a: ArrayLike, axis: int | Sequence[int] | None = None, weights: ArrayLike | None = None, *, returned: Literal[True], keepdims: bool = False
) -> tuple[Array, Array]: ...


@overload
def average(
    a: ArrayLike, axis: int | Sequence[int] | None = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Array | tuple[Array, Array]: ...


def average(
    a: ArrayLike, axis: int | Sequence[int] | None = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Array | tuple[Array, Array]:
    """Mean over `axis`, weighted: sum(a * weights) / sum(weights).

    Args:
        a: array of numbers.
        axis: int, tuple of ints or None (all).
        weights: array of a's shape, or a vector along `axis`; None: all 1.
        returned: bool; also return the sum of weights.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Array of a's shape without the reduced axes, of the promoted dtype made float; with
        `returned`, (mean, sum of weights).

    Raises:
        ValueError: for weights of other shapes.

    >>> jnp.average(jnp.array([1.0, 3.0]), weights=jnp.array([3.0, 1.0]))
    Array(1.5, dtype=float32)
    """
    check_arraylike("average", a)
    if weights is None:
        out = mean(a, axis=axis, keepdims=keepdims)
        a = _core.asarray(a)
        total = full_of(out, _count(a, axis))
    else:
        check_arraylike("average", a, weights)
        a, weights = _core.promote_dtypes_inexact(a, weights)
        result, wide = a.dtype, summed_in(a.dtype)
        a, weights = convert(a, wide), convert(weights, wide)
        shape = a.shape
        if axis is not None:
            axes = canonicalize_axes(axis, a.ndim)
        else:
            axes = None
        if tuple(weights.shape) != tuple(shape):
            if axis is None:
                raise ValueError("Axis must be specified when shapes of a and weights differ.")
            if weights.ndim != len(axes):
                raise ValueError("1D weights expected when shapes of a and weights differ.")
            if tuple(weights.shape) != tuple([shape[d] for d in axes]):
                raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
            wide = [1] * a.ndim
            for d, n in zip(axes, weights.shape, strict=True):
                wide[d] = n
            order = tuple(np.argsort(axes).tolist())
            if order != tuple(range(len(axes))):
                weights = bind("transpose", weights, permutation=order)
            weights = bind("reshape", weights, new_sizes=tuple(wide), dimensions=None) if tuple(wide) != tuple(weights.shape) else weights
        total = sum(weights, axis=axis, keepdims=keepdims)
        out = bind("div", *_core.promote_shapes(sum(bind("mul", a, weights), axis=axis, keepdims=keepdims), total))
        if wide != result:
            out, total = convert(out, result), convert(total, result)
    if returned:
        return out, _core.broadcast_to(total, out.shape)
    return out


def _refuse_real(a, dtype):
    if dtype is not None and is_complex(a.dtype) and not is_complex(dtype):
        raise ValueError(
            "jax.numpy.var does not yet support real dtype parameters when computing the variance of an array of complex values. "
            "The semantics of numpy.var seem unclear in this case."
        )


def computation_of_variance(dtype, result):
    """What a variance of `dtype` is computed in: an integer result in its integers, others in a float or complex dtype that is not narrow."""
    if not is_inexact(result):
        return result
    computation = to_inexact(result if is_narrow(dtype) else _core.result_type(dtype, result))
    return np.dtype(np.float32) if computation.itemsize <= 2 else computation


@jitted("_var", static=("axis", "dtype", "keepdims"), mixes=True)
def _var(a, axis, dtype, correction, keepdims, where=None, mean=None):
    result = to_real(to_inexact(a.dtype)) if dtype is None else canonicalize_dtype(dtype)
    _refuse_real(a, dtype)
    whole = not is_inexact(result)
    computation = computation_of_variance(a.dtype, result)
    a = convert(a, computation)
    middle = globals()["mean"](a, axis=axis, dtype=computation, keepdims=True, where=where) if mean is None else convert(_core.asarray(mean), computation)
    centered = bind("sub", *_core.promote_shapes(a, middle))
    if is_complex(centered.dtype):
        centered = real(bind("mul", centered, bind("conj", centered, input_dtype=centered.dtype)))
        computation = centered.dtype
    else:
        centered = bind("square", centered)
    if where is None:
        n = _counted(a, axis, computation)
    else:
        n = _masked_count(where, a, axis, computation, keepdims)
    correction = convert(_core.asarray(correction), computation)
    n = bind("sub", *_core.promote_shapes(n, correction)) if where is not None else bind("sub", n, correction)
    out = bind("div", *_core.promote_shapes(sum(centered, axis=axis, dtype=computation, keepdims=keepdims, where=where), n))
    out = choose(bind("gt", n, constant(0, computation)), out, float("nan"))
    return out if whole else convert(out, result)


def _correction(ddof, correction):
    if correction is None:
        return ddof
    if isinstance(ddof, (int, float)) and ddof == 0:
        return correction
    raise ValueError("ddof and correction can't be provided simultaneously.")


def _spread(name, computation, a, axis, dtype, out, keepdims, where, **rest):
    """The common part of the four measures of spread: reads and checks their arguments, and calls
    the jitted `computation`.
    """
    unsupported(f"jnp.{name}", out=out)
    a = as_array(name, a)
    check_mask(name, where)
    axis = _static_axis(axis, a.ndim)
    return computation(a, axis=axis, dtype=dtype, keepdims=builtins.bool(keepdims), where=where, **rest)


def var(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """Variance over `axis`: mean squared distance from the mean, the sum over n - ddof.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        dtype: dtype to accumulate in and to return; None: a's real part's, made float. An integer dtype computes in its
          integers, as JAX does, and gives the default float.
        out: not supported; must be None.
        ddof: number subtracted from the count.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: true for the elements to include; None: all.
        mean: the mean, with reduced axes kept, if known; None: computed.
        correction: another name for ddof; None: ddof counts.

    Returns:
        Array of a's shape without the reduced axes, real unless `dtype` is complex; nan where n <=
        ddof.

    Raises:
        ValueError: if ddof and correction are both given, or for a real dtype and complex a.

    >>> jnp.var(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    return _spread("var", _var, a, axis, requested("var", dtype), out, keepdims, where, mean=mean, correction=_correction(ddof, correction))


def root(s):
    """sqrt(s) of a sum of squares; where s is 0 its derivative is that of s, which is 0, and not
    the pole's.
    """
    nothing = bind("eq", s, scalar_like(0, s))
    safe = bind("select_n", nothing, s, _core.broadcast_to(scalar_like(1, s), s.shape))
    return bind("select_n", nothing, bind("sqrt", safe), s)


@jitted("_std", static=("axis", "dtype", "keepdims"))
def _std(a, axis, dtype, correction, keepdims, where=None, mean=None):
    if dtype is not None and not is_inexact(dtype):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    # the variance of a narrow float leaves its range where the root does not
    result = to_real(to_inexact(a.dtype)) if dtype is None else canonicalize_dtype(dtype)
    wide = summed_in(result)
    out = root(_var(a, axis=axis, dtype=dtype if wide == result else wide, correction=correction, keepdims=keepdims, where=where, mean=mean))
    return out if wide == result else convert(out, result)


def std(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """Standard deviation over `axis`: the square root of `var`.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        dtype: float or complex dtype to accumulate in and to return; None: a's real part's, made
          float.
        out: not supported; must be None.
        ddof: number subtracted from the count.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: true for the elements to include; None: all.
        mean: the mean, with reduced axes kept, if known; None: computed.
        correction: another name for ddof; None: ddof counts.

    Returns:
        Array of a's shape without the reduced axes, real unless `dtype` is complex; nan where n <=
        ddof.

    Raises:
        ValueError: if ddof and correction are both given, or for a dtype that is not a float.

    >>> jnp.std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    return _spread("std", _std, a, axis, requested("std", dtype), out, keepdims, where, mean=mean, correction=_correction(ddof, correction))
