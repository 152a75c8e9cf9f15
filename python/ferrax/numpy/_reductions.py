"""Reductions: sums, products, extremes, means, variances, their nan-skipping forms, arg-extremes.

Invariant: axis is None (all), an integer or several; half-precision sums and means accumulate in float32; integers narrower than the
default are widened for sums and products; no result is weakly typed.

    >>> jnp.sum(jnp.ones((2, 3)), axis=0)
    Array([2., 2., 2.], dtype=float32)
"""

from __future__ import annotations

import builtins
import math
import operator

import numpy as np

from .. import _core
from .._core import bind
from .._dtypes import (
    canonicalize_dtype,
    dtype_of,
    highest,
    is_bool,
    is_complex,
    is_inexact,
    is_integer,
    is_narrow,
    is_unsigned,
    lowest,
    requested,
    to_inexact,
    to_real,
)
from .._shapes import canonicalize_axes, canonicalize_axis
from ..lax import pmax, pmin, psum
from ._arguments import Array, as_array, check_arraylike, constant, convert, jitted, ndim_of, scalar_like, shape_of, unsupported
from ._complex import real
from ._selecting import where as choose


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
    """Those of the axes that are the array's own, counted from the front."""
    names = _named(axis)
    if not names:
        return canonicalize_axes(axis, ndim)
    if isinstance(axis, str):
        return ()
    if len(set(names)) != len(names):
        raise ValueError(f"duplicate value in 'axis': {tuple(axis)}")
    return canonicalize_axes(tuple([a for a in axis if not isinstance(a, str)]), ndim)


def _static_axis(axis, ndim):
    """The axes as a static argument: None, or a tuple of names and of positions counted from the front."""
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


def _reduce(name, primitive, a, axis, keepdims, initial, where, combine, identity, dtype=None, widen=False, need_identity=False):
    """One reduction: select what `where` excludes, widen, reduce, put axes back, combine with `initial`."""
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
        out = combine(convert(initial, out.dtype) if isinstance(initial, Array) else constant(initial, out.dtype), out)
    return out


def _weak_free(dtype):
    return constant(0, dtype)


def sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, promote_integers=True):
    """Sum over `axis`.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        dtype: dtype to accumulate in and to return; None: a's.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar added to the result; None: nothing.
        where: array of bool that broadcasts with a: which elements take part; None: all.
        promote_integers: bool: where dtype is None, widen bool and narrow integers to the default integer of their signedness.

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


def prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, promote_integers=True):
    """Product over `axis`.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        dtype: dtype to accumulate in and to return; None: a's.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar multiplied into the result; None: nothing.
        where: array of bool that broadcasts with a: which elements take part; None: all.
        promote_integers: bool: where dtype is None, widen bool and narrow integers to the default integer of their signedness.

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


def max(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Maximum over `axis`; nan if any element is nan.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar the result starts from; None: the operation's identity.
        where: array of bool that broadcasts with a: which elements take part; None: all.

    Returns:
        Array of a's dtype and of its shape without the reduced axes.

    Raises:
        ValueError: for no elements, or for `where`, unless `initial` is given; for an axis out of bounds or named twice.
        NotImplementedError: if `out` is given.

    >>> jnp.max(jnp.array([2, 3]))
    Array(3, dtype=int32)
    """
    unsupported("jnp.max", out=out)
    return _reduce("max", "reduce_max", a, axis, keepdims, initial, where, lambda x, y: bind("max", x, y), lowest, need_identity=True)


def min(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Minimum over `axis`; nan if any element is nan.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar the result starts from; None: the operation's identity.
        where: array of bool that broadcasts with a: which elements take part; None: all.

    Returns:
        Array of a's dtype and of its shape without the reduced axes.

    Raises:
        ValueError: for no elements, or for `where`, unless `initial` is given; for an axis out of bounds or named twice.
        NotImplementedError: if `out` is given.

    >>> jnp.min(jnp.array([2, 3]))
    Array(2, dtype=int32)
    """
    unsupported("jnp.min", out=out)
    return _reduce("min", "reduce_min", a, axis, keepdims, initial, where, lambda x, y: bind("min", x, y), highest, need_identity=True)


def amax(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The same as `max`.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar the result starts from; None: the operation's identity.
        where: array of bool that broadcasts with a: which elements take part; None: all.

    Returns:
        Array of a's dtype and of its shape without the reduced axes.

    Raises:
        ValueError: for no elements, or for `where`, unless `initial` is given; for an axis out of bounds or named twice.

    >>> jnp.amax(jnp.array([[1, 3], [2, 0]]), axis=0)
    Array([2, 3], dtype=int32)
    """
    return max(a, axis, out, keepdims, initial, where)


def amin(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The same as `min`.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar the result starts from; None: the operation's identity.
        where: array of bool that broadcasts with a: which elements take part; None: all.

    Returns:
        Array of a's dtype and of its shape without the reduced axes.

    Raises:
        ValueError: for no elements, or for `where`, unless `initial` is given; for an axis out of bounds or named twice.

    >>> jnp.amin(jnp.array([[1, 3], [2, 0]]), axis=0)
    Array([1, 0], dtype=int32)
    """
    return min(a, axis, out, keepdims, initial, where)


def _logical(name, primitive, a, axis, keepdims, where, identity):
    a = as_array(name, a)
    return _reduce(name, primitive, convert(a, bool), axis, keepdims, None, where, None, lambda d: np.bool_(identity))


def all(a, axis=None, out=None, keepdims=False, *, where=None):
    """Whether all elements along `axis` are nonzero.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: which elements take part; None: all.

    Returns:
        Array of bool, of a's shape without the reduced axes.

    Raises:
        ValueError: for an axis out of bounds or named twice.
        NotImplementedError: if `out` is given.

    >>> jnp.all(jnp.array([True, False]))
    Array(False, dtype=bool)
    """
    unsupported("jnp.all", out=out)
    return _logical("all", "reduce_and", a, axis, keepdims, where, True)


def any(a, axis=None, out=None, keepdims=False, *, where=None):
    """Whether any element along `axis` is nonzero.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: which elements take part; None: all.

    Returns:
        Array of bool, of a's shape without the reduced axes.

    Raises:
        ValueError: for an axis out of bounds or named twice.
        NotImplementedError: if `out` is given.

    >>> jnp.any(jnp.array([True, False]))
    Array(True, dtype=bool)
    """
    unsupported("jnp.any", out=out)
    return _logical("any", "reduce_or", a, axis, keepdims, where, False)


def _count(a, axis):
    """How many elements a reduction over `axis` takes together."""
    return math.prod([a.shape[d] for d in _positions(axis, a.ndim)]) * math.prod([_core.axis_size(n) for n in _named(axis)])


def _masked_count(where, a, axis, dtype, keepdims):
    """How many elements take part, as `dtype`."""
    mask = _core.broadcast_to(as_array("where", where), a.shape)
    return sum(convert(mask, canonicalize_dtype(int)), axis=axis, dtype=dtype, keepdims=keepdims)


def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """Arithmetic mean over `axis`; integers become float, half precision is summed in float32.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        dtype: dtype to accumulate in and to return; None: a's, made float.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: which elements take part; None: all.

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
        n = constant(_count(a, axis), computation)
    else:
        n = _masked_count(where, a, axis, computation, keepdims)
    total = (
        sum(a, axis=axis, dtype=computation, keepdims=keepdims, where=where) if a.dtype != computation else sum(a, axis=axis, keepdims=keepdims, where=where)
    )
    out = bind("div", *_core.promote_shapes(total, n)) if where is not None else bind("div", total, n)
    return convert(out, result, weak=out.weak_type and out.dtype == result)


def average(a, axis=None, weights=None, returned=False, keepdims=False):
    """Mean over `axis`, weighted: sum(a * weights) / sum(weights).

    Args:
        a: array of numbers.
        axis: int, tuple of ints or None (all).
        weights: array of a's shape, or a vector along `axis`; None: all 1.
        returned: bool: also return the sum of weights.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Array of a's shape without the reduced axes, of the promoted dtype made float; with `returned`, (mean, sum of weights).

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
    if returned:
        return out, _core.broadcast_to(total, out.shape)
    return out


def full_of(x, value):
    """`value` in the shape and dtype of x."""
    return bind("broadcast_in_dim", constant(value, x.dtype), shape=tuple(x.shape), broadcast_dimensions=()) if x.ndim else _core.asarray(value, x.dtype)


def _refuse_real(a, dtype):
    if dtype is not None and is_complex(a.dtype) and not is_complex(dtype):
        raise ValueError(
            "jax.numpy.var does not yet support real dtype parameters when computing the variance of an array of complex values. "
            "The semantics of numpy.var seem unclear in this case."
        )


@jitted("_var", static=("axis", "dtype", "keepdims"), mixes=True)
def _var(a, axis, dtype, correction, keepdims, where=None, mean=None):
    result = to_real(to_inexact(a.dtype)) if dtype is None else canonicalize_dtype(dtype)
    _refuse_real(a, dtype)
    computation = to_inexact(a.dtype if dtype is None else result if is_narrow(a.dtype) else _core.result_type(a.dtype, result))
    if computation.itemsize <= 2:
        computation = np.dtype(np.float32)
    a = convert(a, computation)
    middle = globals()["mean"](a, axis=axis, dtype=computation, keepdims=True, where=where) if mean is None else convert(_core.asarray(mean), computation)
    centered = bind("sub", *_core.promote_shapes(a, middle))
    if is_complex(centered.dtype):
        centered = real(bind("mul", centered, bind("conj", centered, input_dtype=centered.dtype)))
        computation = centered.dtype
    else:
        centered = bind("square", centered)
    if where is None:
        n = constant(_count(a, axis), computation)
    else:
        n = _masked_count(where, a, axis, computation, keepdims)
    correction = convert(_core.asarray(correction), computation)
    n = bind("sub", *_core.promote_shapes(n, correction)) if where is not None else bind("sub", n, correction)
    out = bind("div", *_core.promote_shapes(sum(centered, axis=axis, keepdims=keepdims, where=where), n))
    out = choose(bind("gt", n, constant(0, computation)), out, float("nan"))
    return convert(out, result)


def _correction(ddof, correction):
    if correction is None:
        return ddof
    if isinstance(ddof, (int, float)) and ddof == 0:
        return correction
    raise ValueError("ddof and correction can't be provided simultaneously.")


def _spread(name, computation, a, axis, dtype, out, keepdims, where, **rest):
    """What the four measures of spread share: their arguments, read and checked, handed to the jitted `computation`."""
    unsupported(f"jnp.{name}", out=out)
    a = as_array(name, a)
    check_mask(name, where)
    axis = _static_axis(axis, a.ndim)
    return computation(a, axis=axis, dtype=dtype, keepdims=builtins.bool(keepdims), where=where, **rest)


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None, correction=None):
    """Variance over `axis`: mean squared distance from the mean, the sum over n - ddof.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        dtype: dtype to accumulate in and to return; None: a's real part's, made float.
        out: not supported; must be None.
        ddof: number subtracted from the count.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: which elements take part; None: all.
        mean: the mean, with reduced axes kept, if known; None: computed.
        correction: another name for ddof; None: ddof counts.

    Returns:
        Array of a's shape without the reduced axes, real unless `dtype` is complex; nan where n <= ddof.

    Raises:
        ValueError: if ddof and correction are both given, or for a real dtype and complex a.

    >>> jnp.var(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    return _spread("var", _var, a, axis, requested("var", dtype), out, keepdims, where, mean=mean, correction=_correction(ddof, correction))


def root(s):
    """sqrt(s) of a sum of squares; where s is 0 its derivative is that of s, which is 0, and not the pole's."""
    nothing = bind("eq", s, scalar_like(0, s))
    safe = bind("select_n", nothing, s, _core.broadcast_to(scalar_like(1, s), s.shape))
    return bind("select_n", nothing, bind("sqrt", safe), s)


@jitted("_std", static=("axis", "dtype", "keepdims"))
def _std(a, axis, dtype, correction, keepdims, where=None, mean=None):
    if dtype is not None and not is_inexact(dtype):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    return root(_var(a, axis=axis, dtype=dtype, correction=correction, keepdims=keepdims, where=where, mean=mean))


def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None, correction=None):
    """Standard deviation over `axis`: the square root of `var`.

    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        dtype: float or complex dtype to accumulate in and to return; None: a's real part's, made float.
        out: not supported; must be None.
        ddof: number subtracted from the count.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: which elements take part; None: all.
        mean: the mean, with reduced axes kept, if known; None: computed.
        correction: another name for ddof; None: ddof counts.

    Returns:
        Array of a's shape without the reduced axes, real unless `dtype` is complex; nan where n <= ddof.

    Raises:
        ValueError: if ddof and correction are both given, or for a dtype that is no float.

    >>> jnp.std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    return _spread("std", _std, a, axis, requested("std", dtype), out, keepdims, where, mean=mean, correction=_correction(ddof, correction))


@jitted("_ptp", static=("axis", "keepdims"))
def _ptp(a, axis, keepdims):
    return bind("sub", max(a, axis=axis, keepdims=keepdims), min(a, axis=axis, keepdims=keepdims))


def ptp(a, axis=None, out=None, keepdims=False):
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
    return _ptp(as_array("ptp", a), axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=builtins.bool(keepdims))


@jitted("count_nonzero", static=("axis", "keepdims"))
def _count_nonzero(a, axis, keepdims):
    nonzero = bind("ne", a, constant(0, a.dtype))
    return sum(nonzero, axis=axis, dtype=canonicalize_dtype(int), keepdims=keepdims)


def count_nonzero(a, axis=None, keepdims=False):
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


def argmax(a, axis=None, out=None, keepdims=None):
    """The index of the first maximum along `axis` (in the flattened array if None), nan counting as largest.

    Args:
        a: array of real numbers or bool.
        axis: int, or None for the flattened array.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Array of the default integer, of a's shape without `axis`.

    Raises:
        ValueError: for no elements, and an axis out of bounds.
        TypeError: for complex a.
        NotImplementedError: if `out` is given.

    >>> jnp.argmax(jnp.array([1, 5, 2]))
    Array(1, dtype=int32)
    """
    unsupported("jnp.argmax", out=out)
    return _arg("argmax", "argmax", a, axis, keepdims)


def argmin(a, axis=None, out=None, keepdims=None):
    """The index of the first minimum along `axis` (in the flattened array if None), nan counting as smallest.

    Args:
        a: array of real numbers or bool.
        axis: int, or None for the flattened array.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Array of the default integer, of a's shape without `axis`.

    Raises:
        ValueError: for no elements, and an axis out of bounds.
        TypeError: for complex a.
        NotImplementedError: if `out` is given.

    >>> jnp.argmin(jnp.array([4, 1, 2]))
    Array(1, dtype=int32)
    """
    unsupported("jnp.argmin", out=out)
    return _arg("argmin", "argmin", a, axis, keepdims)


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


def nanargmax(a, axis=None, out=None, keepdims=None):
    """`argmax` of what is not nan; -1 where everything is.

    Args:
        a: array of real numbers or bool.
        axis: int, or None for the flattened array.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Array of the default integer, of a's shape without `axis`.

    Raises:
        ValueError: for no elements, and an axis out of bounds.
        TypeError: for complex a.
        NotImplementedError: if `out` is given.

    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2, dtype=int32)
    """
    unsupported("jnp.nanargmax", out=out)
    return _nanargmax(as_array("nanargmax", a), axis=None if axis is None else operator.index(axis), keepdims=builtins.bool(keepdims))


def nanargmin(a, axis=None, out=None, keepdims=None):
    """`argmin` of what is not nan; -1 where everything is.

    Args:
        a: array of real numbers or bool.
        axis: int, or None for the flattened array.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Array of the default integer, of a's shape without `axis`.

    Raises:
        ValueError: for no elements, and an axis out of bounds.
        TypeError: for complex a.
        NotImplementedError: if `out` is given.

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


def nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """`sum` with nan counted as 0.

    Args:
        a: array of numbers or bool.
        axis: int, tuple of ints or None (all).
        dtype: dtype to accumulate in and to return; None: a's, bool and narrow integers widened.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar the result starts from; None: the operation's identity.
        where: array of bool that broadcasts with a: which elements take part; None: all.

    Returns:
        Array of a's shape without the reduced axes.

    Raises:
        ValueError: if `where` is not bool, or an axis is out of bounds or named twice.
        NotImplementedError: if `out` is given.

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


def nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """`prod` with nan counted as 1.

    Args:
        a: array of numbers or bool.
        axis: int, tuple of ints or None (all).
        dtype: dtype to accumulate in and to return; None: a's, bool and narrow integers widened.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar the result starts from; None: the operation's identity.
        where: array of bool that broadcasts with a: which elements take part; None: all.

    Returns:
        Array of a's shape without the reduced axes.

    Raises:
        ValueError: if `where` is not bool, or an axis is out of bounds or named twice.
        NotImplementedError: if `out` is given.

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


def nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """`max` of what is not nan; nan where everything is.

    Args:
        a: array of numbers or bool.
        axis: int, tuple of ints or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar the result starts from; None: the operation's identity.
        where: array of bool that broadcasts with a: which elements take part; None: all.

    Returns:
        Array of a's dtype and of its shape without the reduced axes.

    Raises:
        ValueError: for no elements, or for `where`, unless `initial` is given.
        NotImplementedError: if `out` is given.

    >>> jnp.nanmax(jnp.array([2.0, jnp.nan]))
    Array(2., dtype=float32)
    """
    unsupported("jnp.nanmax", out=out)
    check_mask("nanmax", where)
    return _nanmax(as_array("nanmax", a), axis=_tuple_axis(axis), keepdims=builtins.bool(keepdims), initial=initial, where=where)


def nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """`min` of what is not nan; nan where everything is.

    Args:
        a: array of numbers or bool.
        axis: int, tuple of ints or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar the result starts from; None: the operation's identity.
        where: array of bool that broadcasts with a: which elements take part; None: all.

    Returns:
        Array of a's dtype and of its shape without the reduced axes.

    Raises:
        ValueError: for no elements, or for `where`, unless `initial` is given.
        NotImplementedError: if `out` is given.

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
    present = convert(bind("not", bind("ne", a, a)), canonicalize_dtype(int))
    count = sum(present, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    total = nansum(a, axis=axis, dtype=None if dtype == a.dtype else dtype, keepdims=keepdims, where=where)
    return bind("div", total, count)


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, where=None):
    """`mean` of what is not nan.

    Args:
        a: array of numbers or bool.
        axis: int, tuple of ints or None (all).
        dtype: dtype to accumulate in and to return; None: a's, made float.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: which elements take part; None: all.

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
    a = convert(a, to_inexact(a.dtype))
    middle = nanmean(a, axis=axis, keepdims=True, where=where) if mean is None else mean
    missing = bind("ne", a, a)
    centered = choose(missing, 0, bind("sub", *_core.promote_shapes(a, middle)))
    if is_complex(centered.dtype):
        centered = real(bind("mul", centered, bind("conj", centered, input_dtype=centered.dtype)))
    else:
        centered = bind("square", centered)
    count = sum(convert(bind("not", missing), canonicalize_dtype(int)), axis=axis, keepdims=keepdims, where=where)
    rest = bind("sub", convert(count, centered.dtype), convert(_core.asarray(ddof), centered.dtype))
    nothing = bind("le", rest, constant(0, rest.dtype))
    total = sum(centered, axis=axis, keepdims=keepdims, where=where)
    safe = choose(nothing, 1, rest)
    return convert(choose(nothing, float("nan"), bind("div", total, safe)), result)


def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """`var` of what is not nan.

    Args:
        a: array of numbers or bool.
        axis: int, tuple of ints or None (all).
        dtype: dtype to accumulate in and to return; None: a's real part's, made float.
        out: not supported; must be None.
        ddof: number subtracted from the count.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: which elements take part; None: all.
        mean: the mean, with reduced axes kept, if known; None: computed.

    Returns:
        Array of a's shape without the reduced axes, real unless `dtype` is complex; nan where no more than ddof elements are left.

    Raises:
        ValueError: for a real dtype and complex a.

    >>> jnp.nanvar(jnp.array([2.0, jnp.nan]))
    Array(0., dtype=float32)
    """
    return _spread("nanvar", _nanvar, a, axis, requested("nanvar", dtype), out, keepdims, where, mean=mean, ddof=ddof)


@jitted("nanstd", static=("axis", "dtype", "keepdims"))
def _nanstd(a, axis, dtype, ddof, keepdims, where=None, mean=None):
    return root(nanvar(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean))


def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """`std` of what is not nan.

    Args:
        a: array of numbers or bool.
        axis: int, tuple of ints or None (all).
        dtype: dtype to accumulate in and to return; None: a's real part's, made float.
        out: not supported; must be None.
        ddof: number subtracted from the count.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: which elements take part; None: all.
        mean: the mean, with reduced axes kept, if known; None: computed.

    Returns:
        Array of a's shape without the reduced axes, real unless `dtype` is complex; nan where no more than ddof elements are left.

    Raises:
        ValueError: for a real dtype and complex a.

    >>> jnp.nanstd(jnp.array([2.0, jnp.nan]))
    Array(0., dtype=float32)
    """
    return _spread("nanstd", _nanstd, a, axis, requested("nanstd", dtype), out, keepdims, where, mean=mean, ddof=ddof)
