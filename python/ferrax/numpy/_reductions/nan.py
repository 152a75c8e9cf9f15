"""Reductions that leave nans out.

Invariant: an array without nans has the result of the plain reduction.

    >>> jnp.nansum(jnp.array([1.0, jnp.nan]))
    Array(1., dtype=float32)
"""

from __future__ import annotations

import builtins
import operator
from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import (
    canonicalize_dtype,
    is_bool,
    is_complex,
    is_inexact,
    requested,
    summed_in,
    to_inexact,
    to_real,
)
from ..._core import bind
from .._indexing.selecting import where as choose
from .._math.complex import real
from .._support import sections
from .._support.arguments import as_array, constant, convert, jitted, unsupported
from .averages import _refuse_real, _spread, computation_of_variance, mean, root
from .plain import all, argmax, argmin, check_mask, max, min, prod, sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike


def _nanarg(a, axis, keepdims, fill, fun):
    if not is_inexact(a.dtype):
        return fun(a, axis=axis, keepdims=keepdims)
    missing = bind("ne", a, a)
    out = fun(choose(missing, a if fill is None else fill, a), axis=axis, keepdims=keepdims)
    return choose(all(missing, axis=axis, keepdims=keepdims), -1, out)


@jitted("_nanargmax", static=("axis", "keepdims"))
def _nanargmax(a, axis, keepdims):
    return _nanarg(a, axis, keepdims, -float("inf"), argmax)


@jitted("_nanargmin", static=("axis", "keepdims"))
def _nanargmin(a, axis, keepdims):
    return _nanarg(a, axis, keepdims, float("inf"), argmin)


@sections.position
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """`argmax` of the elements that are not nan; -1 if all are nan.

    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2, dtype=int32)
    """
    unsupported("jnp.nanargmax", out=out)
    return _nanargmax(as_array("nanargmax", a), axis=None if axis is None else operator.index(axis), keepdims=builtins.bool(keepdims))


@sections.position
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """`argmin` of the elements that are not nan; -1 if all are nan.

    >>> jnp.nanargmin(jnp.array([jnp.nan, 3.0, 2.0]))
    Array(2, dtype=int32)
    """
    unsupported("jnp.nanargmin", out=out)
    return _nanargmin(as_array("nanargmin", a), axis=None if axis is None else operator.index(axis), keepdims=builtins.bool(keepdims))


# ---- reductions that skip nan


def _tuple_axis(axis):
    return tuple(axis) if isinstance(axis, list) else axis


def _nan_filled(a, value):
    return choose(bind("ne", a, a), _core.asarray(constant(value, a.dtype)), a) if is_inexact(a.dtype) else a


@jitted("nansum", static=("axis", "dtype", "keepdims"))
def _nansum(a, axis, dtype, keepdims, initial=None, where=None):
    return sum(_nan_filled(a, 0), axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)


@jitted("nanprod", static=("axis", "dtype", "keepdims"))
def _nanprod(a, axis, dtype, keepdims, initial=None, where=None):
    return prod(_nan_filled(a, 1), axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)


def _nanextreme(a, axis, keepdims, initial, where, fun, fill):
    if not is_inexact(a.dtype):
        return fun(a, axis=axis, keepdims=keepdims, initial=initial, where=where)
    out = fun(_nan_filled(a, fill), axis=axis, keepdims=keepdims, initial=initial, where=where)
    if initial is not None:
        return out
    return choose(all(bind("ne", a, a), axis=axis, keepdims=keepdims), _core.asarray(constant(np.nan, a.dtype)), out)


@jitted("nanmax", static=("axis", "keepdims"))
def _nanmax(a, axis, keepdims, initial=None, where=None):
    return _nanextreme(a, axis, keepdims, initial, where, max, -np.inf)


@jitted("nanmin", static=("axis", "keepdims"))
def _nanmin(a, axis, keepdims, initial=None, where=None):
    return _nanextreme(a, axis, keepdims, initial, where, min, np.inf)


@sections.nan_total
def nansum(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`sum` with nan counted as 0.

    >>> jnp.nansum(jnp.array([1.0, jnp.nan]))
    Array(1., dtype=float32)
    """
    unsupported("jnp.nansum", out=out)
    check_mask("nansum", where)
    return _nansum(
        as_array("nansum", a),
        axis=_tuple_axis(axis),
        dtype=requested("nansum", dtype),
        keepdims=builtins.bool(keepdims),
        initial=initial,
        where=where,
    )


@sections.nan_total
def nanprod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`prod` with nan counted as 1.

    >>> jnp.nanprod(jnp.array([2.0, jnp.nan]))
    Array(2., dtype=float32)
    """
    unsupported("jnp.nanprod", out=out)
    check_mask("nanprod", where)
    return _nanprod(
        as_array("nanprod", a),
        axis=_tuple_axis(axis),
        dtype=requested("nanprod", dtype),
        keepdims=builtins.bool(keepdims),
        initial=initial,
        where=where,
    )


@sections.nan_extreme
def nanmax(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`max` of the elements that are not nan; nan if all are nan.

    >>> jnp.nanmax(jnp.array([2.0, jnp.nan]))
    Array(2., dtype=float32)
    """
    unsupported("jnp.nanmax", out=out)
    check_mask("nanmax", where)
    return _nanmax(as_array("nanmax", a), axis=_tuple_axis(axis), keepdims=builtins.bool(keepdims), initial=initial, where=where)


@sections.nan_extreme
def nanmin(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`min` of the elements that are not nan; nan if all are nan.

    >>> jnp.nanmin(jnp.array([2.0, jnp.nan]))
    Array(2., dtype=float32)
    """
    unsupported("jnp.nanmin", out=out)
    check_mask("nanmin", where)
    return _nanmin(as_array("nanmin", a), axis=_tuple_axis(axis), keepdims=builtins.bool(keepdims), initial=initial, where=where)


@jitted("nanmean", static=("axis", "dtype", "keepdims"))
def _nanmean(a, axis, dtype, keepdims, where=None):
    if not is_inexact(a.dtype):
        return mean(a, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    dtype = a.dtype if dtype is None else dtype
    wide = summed_in(dtype) if is_inexact(dtype) else dtype
    present = convert(bind("not", bind("ne", a, a)), canonicalize_dtype(int))
    count = sum(present, axis=axis, dtype=wide, keepdims=keepdims, where=where)
    total = nansum(a, axis=axis, dtype=None if wide == a.dtype else wide, keepdims=keepdims, where=where)
    out = bind("div", total, count)
    return out if wide == dtype else convert(out, dtype)


def nanmean(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """`mean` of the elements that are not nan.

    Args:
        a: array of numbers or bool.
        axis: int, tuple of ints or None (all).
        dtype: dtype to accumulate in and to return; None: a's, made float.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: true for the elements to include; None: all.

    Returns:
        Array of a's shape without the reduced axes.

    Raises:
        ValueError: if `where` is not bool, or an axis is out of bounds or named twice.
        NotImplementedError: if `out` is given.

    >>> jnp.nanmean(jnp.array([2.0, jnp.nan]))
    Array(2., dtype=float32)
    """
    unsupported("jnp.nanmean", out=out)
    check_mask("nanmean", where)
    a = as_array("nanmean", a)
    if is_bool(a.dtype):
        return mean(a, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    return _nanmean(a, axis=_tuple_axis(axis), dtype=requested("nanmean", dtype), keepdims=builtins.bool(keepdims), where=where)


@jitted("nanvar", static=("axis", "dtype", "keepdims"))
def _nanvar(a, axis, dtype, ddof, keepdims, where=None, mean=None):
    result = to_real(to_inexact(a.dtype)) if dtype is None else canonicalize_dtype(dtype)
    _refuse_real(a, dtype)
    wide = computation_of_variance(a.dtype, result)
    a = convert(a, wide)
    middle = nanmean(a, axis=axis, dtype=wide, keepdims=True, where=where) if mean is None else convert(_core.asarray(mean), wide)
    missing = bind("ne", a, a)
    centered = choose(missing, 0, bind("sub", *_core.promote_shapes(a, middle)))
    if is_complex(centered.dtype):
        centered = real(bind("mul", centered, bind("conj", centered, input_dtype=centered.dtype)))
    else:
        centered = bind("square", centered)
    count = sum(convert(bind("not", missing), canonicalize_dtype(int)), axis=axis, keepdims=keepdims, where=where)
    total = sum(centered, axis=axis, keepdims=keepdims, where=where)
    total = convert(total, to_inexact(total.dtype))
    rest = bind("sub", convert(count, total.dtype), convert(_core.asarray(ddof), total.dtype))
    nothing = bind("le", rest, constant(0, rest.dtype))
    safe = choose(nothing, 1, rest)
    return convert(choose(nothing, float("nan"), bind("div", total, safe)), result)


@sections.nan_spread
def nanvar(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """`var` of the elements that are not nan.

    >>> jnp.nanvar(jnp.array([2.0, jnp.nan]))
    Array(0., dtype=float32)
    """
    return _spread("nanvar", _nanvar, a, axis, requested("nanvar", dtype), out, keepdims, where, mean=mean, ddof=ddof)


@jitted("nanstd", static=("axis", "dtype", "keepdims"))
def _nanstd(a, axis, dtype, ddof, keepdims, where=None, mean=None):
    result = to_real(to_inexact(a.dtype)) if dtype is None else canonicalize_dtype(dtype)
    wide = summed_in(result) if is_inexact(result) else result
    out = root(nanvar(a, axis=axis, dtype=dtype if wide == result else wide, ddof=ddof, keepdims=keepdims, where=where, mean=mean))
    return out if wide == result else convert(out, result)


@sections.nan_spread
def nanstd(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """`std` of the elements that are not nan.

    >>> jnp.nanstd(jnp.array([2.0, jnp.nan]))
    Array(0., dtype=float32)
    """
    return _spread("nanstd", _nanstd, a, axis, requested("nanstd", dtype), out, keepdims, where, mean=mean, ddof=ddof)
