"""Differences, integrals, interpolation.

Invariant: other axes than the one that a function works along are batch axes.

    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, overload

import numpy as np

from ... import _core
from ..._base.dtypes import is_bool, is_complex, summed_in
from ..._base.shapes import canonicalize_axis, listed_axes
from ..._core import bind
from ...lax import slice_in_dim
from .._indexing.selecting import clip, where
from .._logic.elementwise import equal
from .._manipulation.joining import concatenate
from .._manipulation.shaping import broadcast_to, moveaxis, ravel
from .._math.arithmetic import absolute, remainder
from .._reductions import plain as _reductions
from .._reductions.cumulative import cumsum
from .._sorting.searching import searchsorted
from .._support.arguments import as_array, check_arraylike, check_promotion, constant, convert, jitted, ndim_of, scalar_like, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core import Array
    from ...typing import ArrayLike


def _along(axis, s):
    return (slice(None),) * axis + (s,)


@jitted("diff", static=("n", "axis"))
def _diff(a, n, axis, prepend, append):
    pieces = []
    for extra, front in ((prepend, True), (append, False)):
        if extra is None:
            continue
        if ndim_of(extra) == 0:
            shape = list(a.shape)
            shape[axis] = 1
            extra = broadcast_to(extra, tuple(shape))
        pieces.append((extra, front))
    if pieces:
        a = concatenate([e for e, f in pieces if f] + [a] + [e for e, f in pieces if not f], axis=axis)
    op = "ne" if is_bool(a.dtype) else "sub"
    for _ in range(n):
        a = bind(op, a[_along(axis, slice(1, None))], a[_along(axis, slice(None, -1))])
    return a


def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None) -> Array:
    """The n-th difference along an axis: a[i + 1] - a[i], n times.

    Args:
        a: array of numbers or bool, of rank 1 or more.
        n: int, how often to take differences; 0: a itself.
        axis: int.
        prepend, append: values to join at the front and at the end first, scalars or arrays that
          fit along `axis`; None: nothing.

    Returns:
        Array of a's shape with the size along `axis` less n, of the promoted dtype; bool stays
        (whether neighbours differ).

    Raises:
        ValueError: for a negative n or a scalar.

    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    check_arraylike("diff", a, *[v for v in (prepend, append) if v is not None])
    a = _core.asarray(a)
    n = operator.index(n)
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional; got 0-dimensional")
    check_promotion(*[v for v in (prepend, a, append) if v is not None])
    return _diff(a, n=n, axis=canonicalize_axis(axis, a.ndim), prepend=prepend, append=append)


@jitted("ediff1d")
def _ediff1d(ary, to_end, to_begin):
    ary = ravel(ary)
    out = bind("sub", ary[1:], ary[:-1])
    if to_begin is not None:
        out = concatenate([convert(ravel(to_begin), ary.dtype), out])
    if to_end is not None:
        out = concatenate([out, convert(ravel(to_end), ary.dtype)])
    return out


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """Differences of the flattened array, with values joined at the ends.

    Args:
        ary: array of numbers, not bool; flattened first.
        to_end, to_begin: values to join at the end and at the front, cast to ary's dtype; None:
          nothing.

    Returns:
        Vector of ary's dtype.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    check_arraylike("ediff1d", ary, *[v for v in (to_end, to_begin) if v is not None])
    return _ediff1d(_core.asarray(ary), to_end, to_begin)


def _gradient_along(a, h, axis):
    """Second-order central differences, first-order ones at the ends; h: a scalar or the
    coordinates, of a's dtype, or None for 1.
    """
    n = a.shape[axis]
    part = lambda x, lo, hi: slice_in_dim(x, lo, hi, axis=axis)
    first = bind("sub", part(a, 1, 2), part(a, 0, 1))
    last = bind("sub", part(a, n - 1, n), part(a, n - 2, n - 1))
    if ndim_of(h) == 0:
        inner = bind("mul", bind("sub", part(a, 2, n), part(a, 0, n - 2)), scalar_like(0.5, a))
        h = scalar_like(1, a) if h is None else h
        inner, last, first = bind("div", inner, h), bind("div", last, h), bind("div", first, h)
    else:
        shape = [1] * a.ndim
        shape[axis] = n
        x = h.reshape(shape) if a.ndim > 1 else h
        first = bind("div", first, bind("sub", part(x, 1, 2), part(x, 0, 1)))
        last = bind("div", last, bind("sub", part(x, n - 1, n), part(x, n - 2, n - 1)))
        left, right = bind("sub", part(x, 1, n - 1), part(x, 0, n - 2)), bind("sub", part(x, 2, n), part(x, 1, n - 1))
        total = left + right
        # The parabola through three points of uneven spacing.
        inner = -right / (left * total) * part(a, 0, n - 2) + (right - left) / (left * right) * part(a, 1, n - 1) + left / (right * total) * part(a, 2, n)
    return concatenate([first, inner, last], axis=axis)


@jitted("gradient", static=("axes",))
def _gradient(f, spacing, axes):
    given = [h for h in spacing if h is not None]
    f, *given = _core.promote_dtypes_inexact(f, *given)
    rest = iter(given)
    return [_gradient_along(f, None if h is None else next(rest), d) for d, h in zip(axes, spacing, strict=True)]


@overload
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int, edge_order: int | None = None) -> Array: ...


@overload
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None, edge_order: int | None = None) -> Array | list[Array]: ...


def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None, edge_order: int | None = None) -> Array | list[Array]:
    """The derivative of f along axes, by central differences.

    Args:
        f: array of numbers.
        *varargs: the spacing: one scalar for all axes, or for each axis a scalar or the vector of
          coordinates; none: 1.
        axis: int, tuple of ints or None (all).
        edge_order: not supported; must be None.

    Returns:
        Array of f's shape, of its dtype made float; a list of them where there are several axes.

    Raises:
        ValueError: for fewer than two elements along an axis, or coordinates of another length.
        TypeError: for the wrong number of spacings.
        NotImplementedError: if `edge_order` is given.

    >>> jnp.gradient(jnp.array([1.0, 2.0, 4.0]))
    Array([1. , 1.5, 2. ], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    check_arraylike("gradient", f, *varargs)
    f = _core.asarray(f)
    axes = tuple(range(f.ndim)) if axis is None else listed_axes(axis, f.ndim)
    if any(f.shape[d] < 2 for d in axes):
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least 2 elements are required.")
    if not axes:
        return []
    if len(varargs) == 0:
        spacing = [None] * len(axes)
    elif len(varargs) == 1:
        spacing = [varargs[0]] * len(axes)
    elif len(varargs) == len(axes):
        spacing = list(varargs)
    else:
        raise TypeError(f"Invalid number of spacing arguments {len(varargs)} for axis={axis if axis is None or isinstance(axis, int) else axes}")
    for d, h in zip(axes, spacing, strict=True):
        if h is not None and ndim_of(h) and shape_of(h) != (f.shape[d],):
            raise ValueError("Spacing arrays must have the same length as the dimension along which the gradient is calculated.")
    out = _gradient(f, spacing, axes=axes)
    return out[0] if len(axes) == 1 else list(out)


def _equally_spaced(y, axis, dx):
    (y,) = _core.promote_dtypes_inexact(y)
    dtype = y.dtype
    y = moveaxis(convert(y, summed_in(dtype)), axis, -1)
    total = _reductions.sum(y, axis=-1)
    ends = bind("mul", constant(0.5, y.dtype), bind("add", y[..., 0], y[..., -1]))
    return convert(bind("mul", dx(y.dtype), bind("sub", total, ends)), dtype)


@jitted("trapezoid", static=("axis",))
def _trapezoid(y, x, dx, axis):
    if x is None:
        return _equally_spaced(y, axis, lambda dtype: convert(dx, dtype))
    y, x = _core.promote_dtypes_inexact(y, x)
    wide = summed_in(y.dtype)
    if wide != y.dtype:
        return convert(_trapezoid(convert(y, wide), convert(x, wide), dx, axis=axis), y.dtype)
    # The axis of x is that of y, counted from the end; a vector has one.
    steps = diff(x) if x.ndim == 1 else moveaxis(diff(x, axis=axis - y.ndim), axis - y.ndim, -1)
    y = moveaxis(y, axis, -1)
    pairs = bind("add", y[..., 1:], y[..., :-1])
    return bind("mul", constant(0.5, y.dtype), _reductions.sum(bind("mul", *_core.promote_shapes(steps, pairs)), axis=-1))


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of y along `axis` by the trapezoidal rule, over coordinates x or steps dx.

    Args:
        y: array of numbers.
        x: coordinates, a vector or an array that broadcasts with y; None: equal steps.
        dx: the step if x is None.
        axis: int.

    Returns:
        Array of y's shape without `axis`, of the promoted dtype made float.

    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]))
    Array(4., dtype=float32)
    """
    check_arraylike("trapezoid", y, *([] if x is None else [x]))
    y = _core.asarray(y)
    axis = canonicalize_axis(axis, y.ndim)
    if x is None and isinstance(dx, (int, float)) and dx == 1:
        return _unit_trapezoid(y, axis=axis)
    return _trapezoid(y, x, None if x is not None else dx, axis=axis)


@jitted("trapezoid", static=("axis",))
def _unit_trapezoid(y, axis):
    return _equally_spaced(y, axis, lambda dtype: constant(1, dtype))


@jitted("_interp", static=("outside",))
def _interp(x, xp, fp, left, right, period, outside):
    if period is not None:
        period = absolute(period)
        x, xp = remainder(x, period), remainder(xp, period)
        xp, fp = bind("sort", xp, fp, dimension=0, is_stable=True, num_keys=1)
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    n = xp.shape[0]
    i = clip(searchsorted(xp, x, side="right"), 1, n - 1)
    df = fp[i] - fp[i - 1]
    dx = xp[i] - xp[i - 1]
    delta = x - xp[i - 1]
    # Where two coordinates coincide the step has no slope.
    flat = bind("le", absolute(dx), constant(np.spacing(np.finfo(dx.dtype).eps), dx.dtype)) if dx.dtype.kind == "f" else equal(dx, 0)
    f = where(flat, fp[i - 1], fp[i - 1] + (delta / where(flat, 1, dx)) * df)
    if period is None and "left" not in outside:
        f = where(x < xp[0], fp[0] if left is None else left, f)
    if period is None and "right" not in outside:
        f = where(x > xp[-1], fp[-1] if right is None else right, f)
    return f


def interp(
    x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | str | None = None, right: ArrayLike | str | None = None, period: ArrayLike | None = None
) -> Array:
    """Linear interpolation at x between the points (xp, fp).

    Args:
        x: array of real coordinates.
        xp: vector of coordinates, increasing.
        fp: vector of values, real or complex, of xp's size.
        left, right: values below and above xp; None: the first and last of fp; "extrapolate": a
          straight line.
        period: scalar: the period of the coordinates, which are taken modulo it; None: not
          periodic.

    Returns:
        Array of x's shape, of the promoted dtype made float.

    Raises:
        ValueError: xp and fp are not vectors of one size, x is complex, or `left` or `right` is
          another string.

    >>> jnp.interp(1.5, jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0]))
    Array(15., dtype=float32)
    """
    check_arraylike("interp", x, xp, fp)
    if shape_of(xp) != shape_of(fp) or ndim_of(xp) != 1:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    x, xp = _core.promote_dtypes_inexact(x, xp)
    if is_complex(x.dtype):
        raise ValueError("jnp.interp: complex x values not supported.")
    (fp,) = _core.promote_dtypes_inexact(fp)
    check_promotion(x, fp)
    outside = tuple(side for side, value in (("left", left), ("right", right)) if isinstance(value, str))
    for side, value in (("left", left), ("right", right)):
        if side in outside and value != "extrapolate":
            raise ValueError(f"the only valid string value of `{side}` is 'extrapolate', but got: {value!r}")
    if period is not None:
        if ndim_of(period) != 0:
            raise ValueError(f"period must be a scalar; got {period}")
        left = right = None
    return _interp(x, xp, fp, None if "left" in outside else left, None if "right" in outside else right, period, outside=outside)


@jitted("unwrap", static=("axis", "period"))
def _unwrap(p, discont, axis, period):
    p = convert(p, _core.result_type(p, period))
    if p.size == 0:
        return p
    step = diff(p, axis=axis)
    if p.dtype.kind in "iub":
        half = period // 2
    else:
        half = period / 2
    wrapped = remainder(step + half, period) - half
    wrapped = where((wrapped == -half) & (step > 0), half, wrapped)
    correction = wrapped - step
    correction = where(absolute(step) < (half if discont is None else discont), 0, correction)
    return concatenate([p[_along(axis, slice(0, 1))], p[_along(axis, slice(1, None))] + cumsum(correction, axis=axis)], axis=axis)


def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * np.pi) -> Array:
    """p with jumps of more than max(discont, period / 2) along an axis replaced by their complement
    to the period.

    Args:
        p: array of real numbers, angles in radians by default.
        discont: the smallest jump that is replaced; None: period / 2.
        axis: int.
        period: the period, 2 pi by default.

    Returns:
        Array of p's shape, of the dtype that p and period promote to.

    Raises:
        ValueError: for complex values.
        IndexError: for scalars.

    >>> jnp.unwrap(jnp.array([0.0, 3.0, 9.0]), period=6.0)
    Array([0., 3., 3.], dtype=float32)
    """
    p = as_array("unwrap", p)
    if is_complex(p.dtype):
        raise ValueError("jnp.unwrap does not support complex inputs.")
    if p.ndim == 0:
        raise IndexError("tuple index out of range: unwrap requires an array of at least one dimension")
    return _unwrap(p, discont, axis=canonicalize_axis(axis, p.ndim), period=period)
