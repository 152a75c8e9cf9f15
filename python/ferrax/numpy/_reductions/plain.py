"""Reductions: sums, products, extremes and their positions, truth of all or any, counts.

Invariant: axis is None (all), an integer or several; half-precision sums accumulate in float32;
integers narrower than the default are widened for sums and products; no result is weakly typed.

    >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], dtype=int32)
"""

from __future__ import annotations

import builtins
import operator
from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import (
    canonicalize_dtype,
    dtype_of,
    highest,
    integer_of_float,
    is_bool,
    is_complex,
    is_inexact,
    is_integer,
    is_unsigned,
    lowest,
    requested,
)
from ..._base.shapes import canonicalize_axes, canonicalize_axis, hashable_axes
from ..._core import bind
from ...lax import pmax, pmin, psum
from .._indexing.selecting import where as choose
from .._support import sections
from .._support.arguments import Array, as_array, check_arraylike, constant, convert, jitted, ndim_of, shape_of, unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...typing import ArrayLike, DTypeLike


def _keep(out, shape, axes):
    """The reduced axes put back with size 1."""
    wide = tuple([1 if d in axes else n for d, n in enumerate(shape)])
    return bind("broadcast_in_dim", out, shape=wide, broadcast_dimensions=tuple([d for d in range(len(shape)) if d not in axes]))


def _named(axis):
    """The names among the axes: a mapped axis is reduced by a collective."""
    if isinstance(axis, str):
        return (axis,)
    return tuple([a for a in axis if isinstance(a, str)]) if isinstance(axis, (tuple, list)) else ()


def _positions(axis, ndim):
    """The axes that are the array's own rather than names, counted from the front."""
    names = _named(axis)
    if not names:
        return canonicalize_axes(axis, ndim)
    if isinstance(axis, str):
        return ()
    if len(set(names)) != len(names):
        raise ValueError(f"duplicate value in 'axis': {tuple(axis)}")
    return canonicalize_axes(tuple([a for a in axis if not isinstance(a, str)]), ndim)


def _static_axis(axis, ndim):
    """The axes as a static argument: None, or a tuple of names and of positions counted from the
    front.
    """
    return axis if axis is None else _named(axis) + _positions(axis, ndim)


def _over_names(primitive, name, out, names):
    """`out` reduced further, over mapped axes."""
    collective = {"reduce_sum": psum, "reduce_max": pmax, "reduce_min": pmin}.get(primitive)
    if collective is None:
        raise NotImplementedError(f"Named reductions not implemented for jnp.{name}()")
    for axis in names:
        try:
            _core.axis_size(axis)
        except NameError:
            raise NameError(f"Found an unbound axis name: {axis}. To fix this, please call psum under `jax.shard_map`.") from None
    return collective(out, names if len(names) > 1 else names[0])


def check_mask(name, where):
    """Raises ValueError unless `where` is None or boolean."""
    if where is not None:
        check_arraylike(name, where)
        if not is_bool(dtype_of(where)):
            raise ValueError(f"jnp.{name}: where must be None or a boolean array; got where.dtype={dtype_of(where)!r}.")


def _initial(value, dtype):
    return integer_of_float(float(_core.asarray(value)), dtype) if isinstance(value, float) and is_integer(dtype) else constant(value, dtype)


def _reduce(name, primitive, a, axis, keepdims, initial, where, combine, identity, dtype=None, widen=False, need_identity=False):
    """One reduction: select what `where` excludes, widen, reduce, put axes back, combine with
    `initial`.
    """
    a = as_array(name, a)
    check_mask(name, where)
    if initial is not None:
        check_arraylike(name, initial)
        if ndim_of(initial):
            raise ValueError(f"initial value must be a scalar. Got array of shape {tuple(shape_of(initial))}")
    names = _named(axis)
    axes = _positions(axis, a.ndim)
    if need_identity:
        if where is not None and initial is None:
            raise ValueError(f"reduction operation {name} does not have an identity, so to use a where mask one has to specify 'initial'")
        if initial is None and builtins.any(a.shape[d] == 0 for d in axes):
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    shape = a.shape
    result = a.dtype if dtype is None else requested(name, dtype)
    if dtype is None and widen:
        if is_bool(result):
            result = canonicalize_dtype(int)
        elif is_unsigned(result) and result.itemsize < canonicalize_dtype(np.uint64).itemsize:
            result = canonicalize_dtype(np.uint64)
        elif is_integer(result) and result.itemsize < canonicalize_dtype(int).itemsize:
            result = canonicalize_dtype(int)
    computation = np.dtype(np.float32) if dtype is None and widen and is_inexact(result) and result.itemsize <= 2 and not is_complex(result) else result
    if a.weak_type or a.dtype != computation:
        a = convert(a, computation)
    if where is not None:
        a = choose(where, a, _core.asarray(identity(a.dtype)))
        if tuple(a.shape) != tuple(shape):
            shape = a.shape
            axes = _positions(axis, a.ndim)
    if is_bool(computation):
        primitive = {"reduce_sum": "reduce_or", "reduce_prod": "reduce_and"}.get(primitive, primitive)
    out = bind(primitive, a, axes=axes) if axes or not names else a
    if names:
        out = _over_names(primitive, name, out, names)
    if keepdims:
        out = _keep(out, shape, axes)
    if computation != result:
        out = convert(out, result)
    if initial is not None:
        out = combine(convert(initial, out.dtype) if isinstance(initial, Array) else _initial(initial, out.dtype), out)
    return out


def _weak_free(dtype):
    return constant(0, dtype)


def sum(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Sum over `axis`.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        dtype: dtype to accumulate in and to return; None: a's.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar added to the result; None: nothing.
        where: array of bool that broadcasts with a: true for the elements to include; None: all.
        promote_integers: bool; if dtype is None, widen bool and narrow integers to the default
          integer of their signedness.

    Returns:
        Array of a's shape without the reduced axes.

    Raises:
        ValueError: for an axis out of bounds or named twice.
        NotImplementedError: if `out` is given.

    >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], dtype=int32)
    """
    unsupported("jnp.sum", out=out)
    check_arraylike("sum", a)
    if not promote_integers and dtype is None and not is_inexact(dtype_of(a)):
        dtype = np.int32 if is_bool(dtype_of(a)) else dtype_of(a)
    return _reduce("sum", "reduce_sum", a, axis, keepdims, initial, where, lambda x, y: bind("add", x, y), _weak_free, dtype, widen=True)


def prod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Product over `axis`.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        dtype: dtype to accumulate in and to return; None: a's.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar multiplied into the result; None: nothing.
        where: array of bool that broadcasts with a: true for the elements to include; None: all.
        promote_integers: bool; if dtype is None, widen bool and narrow integers to the default
          integer of their signedness.

    Returns:
        Array of a's shape without the reduced axes.

    Raises:
        ValueError: for an axis out of bounds or named twice.
        NotImplementedError: if `out` is given.

    >>> jnp.prod(jnp.array([2, 3]))
    Array(6, dtype=int32)
    """
    unsupported("jnp.prod", out=out)
    check_arraylike("prod", a)
    if not promote_integers and dtype is None and not is_inexact(dtype_of(a)):
        dtype = np.int32 if is_bool(dtype_of(a)) else dtype_of(a)
    return _reduce("prod", "reduce_prod", a, axis, keepdims, initial, where, lambda x, y: bind("mul", x, y), lambda d: constant(1, d), dtype, widen=True)


@sections.extreme
def max(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Maximum over `axis`; nan if any element is nan.

    >>> jnp.max(jnp.array([2, 3]))
    Array(3, dtype=int32)
    """
    unsupported("jnp.max", out=out)
    return _reduce("max", "reduce_max", a, axis, keepdims, initial, where, lambda x, y: bind("max", x, y), lowest, need_identity=True)


@sections.extreme
def min(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Minimum over `axis`; nan if any element is nan.

    >>> jnp.min(jnp.array([2, 3]))
    Array(2, dtype=int32)
    """
    unsupported("jnp.min", out=out)
    return _reduce("min", "reduce_min", a, axis, keepdims, initial, where, lambda x, y: bind("min", x, y), highest, need_identity=True)


@sections.extreme_alias
def amax(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The same as `max`.

    >>> jnp.amax(jnp.array([[1, 3], [2, 0]]), axis=0)
    Array([2, 3], dtype=int32)
    """
    return max(a, axis, out, keepdims, initial, where)


@sections.extreme_alias
def amin(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The same as `min`.

    >>> jnp.amin(jnp.array([[1, 3], [2, 0]]), axis=0)
    Array([1, 0], dtype=int32)
    """
    return min(a, axis, out, keepdims, initial, where)


def _logical(name, primitive, a, axis, keepdims, where, identity):
    a = as_array(name, a)
    return _reduce(name, primitive, convert(a, bool), axis, keepdims, None, where, None, lambda d: np.bool_(identity))


@sections.truth
def all(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
    """Whether all elements along `axis` are nonzero.

    >>> jnp.all(jnp.array([True, False]))
    Array(False, dtype=bool)
    """
    unsupported("jnp.all", out=out)
    return _logical("all", "reduce_and", a, axis, keepdims, where, True)


@sections.truth
def any(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
    """Whether any element along `axis` is nonzero.

    >>> jnp.any(jnp.array([True, False]))
    Array(True, dtype=bool)
    """
    unsupported("jnp.any", out=out)
    return _logical("any", "reduce_or", a, axis, keepdims, where, False)


def full_of(x, value):
    """`value` in the shape and dtype of x."""
    return bind("broadcast_in_dim", constant(value, x.dtype), shape=tuple(x.shape), broadcast_dimensions=()) if x.ndim else _core.asarray(value, x.dtype)


@jitted("_ptp", static=("axis", "keepdims"))
def _ptp(a, axis, keepdims):
    return bind("sub", max(a, axis=axis, keepdims=keepdims), min(a, axis=axis, keepdims=keepdims))


def ptp(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False) -> Array:
    """Maximum minus minimum over `axis`.

    Args:
        a: array of numbers.
        axis: int, tuple of ints or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Array of a's dtype and of its shape without the reduced axes.

    Raises:
        TypeError: for bool.
        NotImplementedError: if `out` is given.

    >>> jnp.ptp(jnp.array([1, 5]))
    Array(4, dtype=int32)
    """
    unsupported("jnp.ptp", out=out)
    return _ptp(as_array("ptp", a), axis=hashable_axes(axis), keepdims=builtins.bool(keepdims))


@jitted("count_nonzero", static=("axis", "keepdims"))
def _count_nonzero(a, axis, keepdims):
    nonzero = bind("ne", a, constant(0, a.dtype))
    return sum(nonzero, axis=axis, dtype=canonicalize_dtype(int), keepdims=keepdims)


def count_nonzero(a: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """How many elements along `axis` are nonzero.

    Args:
        a: array of numbers or bool.
        axis: int, tuple of ints or None (all).
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Array of the default integer, of a's shape without the reduced axes.

    >>> jnp.count_nonzero(jnp.array([0, 3, 4]))
    Array(2, dtype=int32)
    """
    a = as_array("count_nonzero", a)
    return _count_nonzero(a, axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=builtins.bool(keepdims))


# ---- positions of extremes


def _arg(name, primitive, a, axis, keepdims):
    a = as_array(name, a)
    shape = a.shape
    if axis is None:
        axes = tuple(range(a.ndim))
        if a.ndim != 1:
            a = bind("reshape", a, new_sizes=(a.size,), dimensions=None)
        d = 0
    else:
        d = axis = operator.index(axis)
        d = d + a.ndim if d < 0 else d
        if not 0 <= d < a.ndim:
            canonicalize_axis(axis, a.ndim)
        axes = (d,)
    if a.shape[d] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    out = bind(primitive, a, axes=(d,), index_dtype=canonicalize_dtype(int))
    return _keep(out, shape, axes) if keepdims else out


@sections.position
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the first maximum along `axis` (in the flattened array if None), nan counting as
    largest.

    >>> jnp.argmax(jnp.array([1, 5, 2]))
    Array(1, dtype=int32)
    """
    unsupported("jnp.argmax", out=out)
    return _arg("argmax", "argmax", a, axis, keepdims)


@sections.position
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the first minimum along `axis` (in the flattened array if None), nan counting as
    smallest.

    >>> jnp.argmin(jnp.array([4, 1, 2]))
    Array(1, dtype=int32)
    """
    unsupported("jnp.argmin", out=out)
    return _arg("argmin", "argmin", a, axis, keepdims)
