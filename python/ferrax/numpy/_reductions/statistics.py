"""Order statistics and covariances.

Invariant: a nan among the elements gives nan, except in the nan-skipping forms.

    >>> jnp.median(jnp.array([3.0, 1.0, 2.0]))
    Array(2., dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import canonicalize_dtype, is_complex, is_inexact, is_narrow, requested, summed_in, to_inexact
from ..._base.shapes import common_shape, listed_axes
from ..._core import bind
from ..._sharding.parts import sharded
from ...lax import GatherDimensionNumbers, gather
from .._creation.arrays import astype
from .._creation.filled import empty, full
from .._creation.matrices import diag
from .._indexing.selecting import clip, where
from .._indexing.taking import take_along_axis
from .._manipulation.joining import concatenate
from .._manipulation.shaping import atleast_2d, broadcast_to, expand_dims, moveaxis, reshape
from .._math.arithmetic import absolute
from .._math.complex import conj, real
from .._math.exponential import sqrt
from .._math.floating_point import isnan
from .._math.operators import add, multiply
from .._products.products import dot
from .._support import sections
from .._support.arguments import as_array, check_arraylike, check_promotion, constant, convert, jitted, ndim_of, scalar_like, shape_of
from . import plain as _reductions
from .averages import average
from .cumulative import cumsum
from .plain import argmax

if TYPE_CHECKING:
    from ..._core import Array
    from ...sharding import NamedSharding, PartitionSpec
    from ...typing import ArrayLike, DTypeLike


_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def _at_ends(a, axis):
    """a with the reduced axes merged into one, that axis, and the result's shape with keepdims."""
    if axis is None:
        kept = [1] * a.ndim
        return (a if a.ndim == 1 else reshape(a, (a.size,))), 0, kept
    axes = listed_axes(axis, a.ndim)
    if len(set(axes)) != len(axes):
        raise ValueError("repeated axis")
    kept = [1 if d in axes else n for d, n in enumerate(a.shape)]
    if len(axes) == 1:
        return a, axes[0], kept
    rest = [d for d in range(a.ndim) if d not in axes]
    merged = reshape(moveaxis(a, axes, tuple(range(len(rest), a.ndim))), tuple([a.shape[d] for d in rest]) + (-1,))
    return merged, len(rest), kept


def _quantile(a, q, axis, method, keepdims, skip_nan, weights=None):
    (a,) = _core.promote_dtypes_inexact(a)
    dtype = a.dtype
    if is_complex(dtype):
        raise ValueError("quantile does not support complex input, as the operation is poorly defined.")
    if is_complex(q.dtype):
        raise TypeError(f"floor does not accept dtype {q.dtype.name}. Accepted dtypes are subtypes of floating.")
    (q,) = _core.promote_dtypes_inexact(q)
    q = convert(q, summed_in(q.dtype))
    whole, axes = a.shape, axis
    a, axis, kept = _at_ends(a, axis)
    n = a.shape[axis]
    if n == 0:
        # As numpy's median: nan of the shape that a reduction has.
        return full(tuple(q.shape) + tuple(kept if keepdims else a.shape[:axis] + a.shape[axis + 1 :]), np.nan, dtype)
    missing = isnan(a)
    # Positions are computed in q's dtype, values have a's.
    one, zero = scalar_like(1, q), scalar_like(0, q)
    if weights is not None:
        return _weighted_quantile(a, q, axis, kept, keepdims, weights, skip_nan, whole, axes)
    a = convert(a, np.float32) if is_narrow(dtype) else a
    if skip_nan:
        a = where(missing, float("nan"), a)
    else:
        a = where(_reductions.any(missing, axis=axis, keepdims=True), float("nan"), a)
    a = bind("sort", a, dimension=axis, is_stable=True, num_keys=1)
    a = a[0] if isinstance(a, (tuple, list)) else a
    lead = q.ndim
    if skip_nan:
        count = _reductions.sum(bind("not", isnan(a)), axis=axis, dtype=q.dtype)
        if count.ndim or lead:
            count = expand_dims(count, tuple(range(lead))) if lead else count
            wide_q = (
                bind("broadcast_in_dim", q, shape=tuple(q.shape) + (1,) * (count.ndim - lead), broadcast_dimensions=tuple(range(lead)))
                if count.ndim > lead
                else q
            )
        else:
            wide_q = q
        top = bind("sub", count, one)
        position = bind("mul", *_core.promote_shapes(wide_q, top))
        low, high = bind("floor", position), bind("ceil", position)
        share = bind("sub", position, low)
        other = bind("sub", one, share)
        last = bind("sub", count, one)
        low = bind("max", zero, bind("min", *_core.promote_shapes(low, last)))
        high = bind("max", zero, bind("min", *_core.promote_shapes(high, bind("sub", count, one))))
        shape = common_shape(tuple(q.shape) + (1,) * (a.ndim - 1), (1,) * lead + tuple(a.shape[:axis] + a.shape[axis + 1 :]))
        low_value, high_value = (_pick(a, i, axis, lead, shape) for i in (low, high))
    else:
        n_minus_one = lambda: bind("sub", scalar_like(n, q), one)
        position = bind("mul", q, n_minus_one())
        low, high = bind("floor", position), bind("ceil", position)
        share = bind("sub", position, low)
        other = bind("sub", one, share)
        low = bind("clamp", zero, low, n_minus_one())
        high = bind("clamp", zero, high, n_minus_one())
        low, high = convert(low, np.int32), convert(high, np.int32)
        low_value, high_value = (_take_rows(a, i, axis) for i in (low, high))
        if lead and low_value.ndim > lead:
            dims = tuple(range(lead))
            wide = tuple(q.shape) + (1,) * (low_value.ndim - lead)
            share, other = (bind("broadcast_in_dim", v, shape=wide, broadcast_dimensions=dims) for v in (share, other))
    if method == "linear":
        out = add(multiply(low_value, other), multiply(high_value, share))
    elif method == "lower" or method == "inverted_cdf":
        out = low_value
    elif method == "higher":
        out = high_value
    elif method == "nearest":
        half = bind("le", share, scalar_like(0.5, share))
        half = half if half.ndim == 0 or tuple(half.shape) == tuple(low_value.shape) else _core.broadcast_to(half, low_value.shape)
        out = bind("select_n", half, high_value, low_value)
    else:
        out = bind("mul", bind("add", low_value, high_value), constant(0.5, a.dtype))
    if keepdims:
        out = reshape(out, tuple(q.shape) + tuple(kept))
    return convert(out, dtype)


def _take_rows(a, i, axis):
    """a[..., i, ...] along axis with i's axes in front."""
    k = i.ndim
    offset = tuple(range(k, k + a.ndim - 1))
    index = bind("broadcast_in_dim", i, shape=(*i.shape, 1), broadcast_dimensions=tuple(range(k)))
    sizes = tuple([1 if d == axis else n for d, n in enumerate(a.shape)])
    return gather(a, index, GatherDimensionNumbers(offset, (axis,), (axis,)), sizes)


def _pick(a, i, axis, lead, shape):
    """The element of each vector of a along axis at the positions i, which already vary with the
    other axes.
    """
    i = broadcast_to(convert(i, np.int32), shape)
    rows = moveaxis(a, axis, -1)
    if lead == 0:
        return take_along_axis(rows, i[..., None], axis=-1, mode="promise_in_bounds", wrap_negative_indices=False)[..., 0]
    flat = i.reshape((-1, *shape[lead:]))
    picked = take_along_axis(rows, moveaxis(flat, 0, -1), axis=-1, mode="promise_in_bounds", wrap_negative_indices=False)
    return moveaxis(picked, -1, 0).reshape(shape)


def _weighted_quantile(a, q, axis, kept, keepdims, weights, skip_nan, whole, axes):
    """The weights are of a's whole shape before its axes were merged, or a vector along the axis.

    They promote with a.
    """
    a, weights = _core.promote_dtypes(a, weights)
    if weights.shape == whole:
        weights = _at_ends(weights, axes)[0]
    a = moveaxis(a, axis, -1)
    weights = broadcast_to(weights if weights.ndim == 1 else moveaxis(weights, axis, -1), a.shape)
    missing = isnan(a)
    if skip_nan:
        weights = where(missing, 0, weights)
    a, weights = bind("sort", a, weights, dimension=a.ndim - 1, is_stable=True, num_keys=1)
    total = cumsum(weights, axis=-1)
    share = total / total[..., -1:]
    flat = reshape(q, (q.size,))
    reached = share[None] >= flat.reshape((-1,) + (1,) * share.ndim)
    index = argmax(reached, axis=-1)

    out = moveaxis(take_along_axis(convert(a, a.dtype), moveaxis(index, 0, -1), axis=-1), -1, 0)
    if not skip_nan:
        out = where(missing.any(axis=-1)[None], float("nan"), out)
    out = reshape(out, tuple(q.shape) + tuple(out.shape[1:]))
    return reshape(out, tuple(q.shape) + tuple(kept)) if keepdims else out


@jitted("quantile", static=("axis", "method", "keepdims"))
def _quantile_jit(a, q, weights, axis, method, keepdims):
    return _quantile(a, q, axis, method, keepdims, False, weights)


@jitted("nanquantile", static=("axis", "method", "keepdims"), mixes=True)
def _nanquantile_jit(a, q, weights, axis, method, keepdims):
    return _quantile(a, q, axis, method, keepdims, True, weights)


def _checked(name, fun, a, q, axis, out, overwrite_input, method, keepdims, weights):
    check_arraylike(name, a, q)
    if overwrite_input or out is not None:
        raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None")
    if method not in _METHODS:
        raise ValueError(f"method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest', or 'inverted_cdf', got {method!r}")
    if weights is not None and method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    axis = tuple(axis) if isinstance(axis, list) else axis
    if ndim_of(q) > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {shape_of(q)}")
    return fun(a if hasattr(a, "ndim") else _core.asarray(a), q, weights, axis=axis, method=method, keepdims=bool(keepdims))


@sections.quantiles
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The quantiles of a over an axis.

    >>> jnp.quantile(jnp.array([1.0, 2.0, 4.0]), 0.5)
    Array(2., dtype=float32)
    """
    return _checked("quantile", _quantile_jit, a, q, axis, out, overwrite_input, method, keepdims, weights)


@sections.quantiles
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The quantiles of a over an axis.

    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 4.0]), 0.5)
    Array(2.5, dtype=float32)
    """
    return _checked("nanquantile", _nanquantile_jit, a, q, axis, out, overwrite_input, method, keepdims, weights)


def _hundredth(name, q):
    check_arraylike(name, q)
    if isinstance(q, (int, float)):
        return q / 100
    (q,) = _core.promote_dtypes_inexact(q)
    q = convert(q, summed_in(q.dtype))
    return bind("div", q, constant(100, q.dtype))


def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """`quantile` with q in percent.

    Args:
        a: array of integers or real numbers.
        q: scalar or vector in [0, 100].
        axis: int, tuple of ints or None (all).
        out: not supported; must be None.
        overwrite_input: must be False: arrays are not written to.
        method: as for `quantile`.
        keepdims: keep the reduced axes, with size 1.
        weights: array of a's shape, or a vector along `axis`; None: all 1.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of q's shape and a's shape without the reduced axes, of the dtype made float.

    Raises:
        ValueError: for complex a, another method, or overwrite_input.

    >>> jnp.percentile(jnp.array([1.0, 2.0, 4.0]), 50)
    Array(2., dtype=float32)
    """
    if out_sharding is not None:
        return sharded(percentile, locals())
    check_arraylike("percentile", a, q)
    return quantile(a, _hundredth("percentile", q), axis, out, overwrite_input, method, keepdims, weights=weights)


def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`nanquantile` with q in percent.

    Args:
        a: array of integers or real numbers.
        q: scalar or vector in [0, 100].
        axis: int, tuple of ints or None (all).
        out: not supported; must be None.
        overwrite_input: must be False: arrays are not written to.
        method: as for `quantile`.
        keepdims: keep the reduced axes, with size 1.
        weights: array of a's shape, or a vector along `axis`; None: all 1.

    Returns:
        Array of q's shape and a's shape without the reduced axes, of the dtype made float.

    Raises:
        ValueError: for complex a, another method, or overwrite_input.

    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 4.0]), 50)
    Array(2.5, dtype=float32)
    """
    check_arraylike("nanpercentile", a, q)
    return nanquantile(a, _hundredth("nanpercentile", q), axis, out, overwrite_input, method, keepdims, weights=weights)


@sections.medians
def median(a: ArrayLike, axis: int | tuple[int, ...] | None = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """The middle of the sorted elements over `axis`; the mean of the two middle ones if their
    number is even.

    >>> jnp.median(jnp.array([1.0, 2.0, 4.0]))
    Array(2., dtype=float32)
    """
    check_arraylike("median", a)
    return quantile(a, 0.5, axis=axis, out=out, overwrite_input=overwrite_input, keepdims=keepdims)


@sections.medians
def nanmedian(a: ArrayLike, axis: int | tuple[int, ...] | None = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """`median` of the elements that are not nan.

    >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 4.0]))
    Array(2.5, dtype=float32)
    """
    check_arraylike("nanmedian", a)
    return nanquantile(a, 0.5, axis=axis, out=out, overwrite_input=overwrite_input, keepdims=keepdims)


@jitted("cov", static=("rowvar", "bias", "ddof", "dtype"))
def _cov(m, y, rowvar, bias, ddof, fweights, aweights, dtype):
    X = atleast_2d(m)
    if not rowvar and m.ndim != 1:
        X = X.T
    if X.shape[0] == 0:
        return empty((0, 0), X.dtype)
    if y is not None:
        other = atleast_2d(y)
        if not rowvar and other.shape[0] != 1:
            other = other.T
        X = concatenate([X, other], axis=0)
    result = to_inexact(X.dtype) if dtype is None else dtype
    X = astype(X, summed_in(result))
    if ddof is None:
        ddof = 1 if not bias else 0
    w = None
    if fweights is not None:
        w = absolute(_core.asarray(fweights))
    if aweights is not None:
        a = absolute(_core.asarray(aweights))
        w = a if w is None else w * a
    average_, total = average(X, axis=1, weights=w, returned=True)
    total = total[0]
    if w is None:
        scale = constant(X.shape[1] - ddof, X.dtype)
    elif ddof == 0:
        scale = total
    elif aweights is None:
        scale = total - ddof
    else:
        scale = total - ddof * _reductions.sum(w * _core.asarray(aweights) if fweights is not None else w * w) / total
    X = X - average_[:, None]
    right = X if w is None else X * w[None, :]
    out = dot(X, conj(right.T)) if w is None else dot(right, conj(X.T))
    out = bind("div", *_core.promote_shapes(*_core.promote_dtypes(out, scale)))
    out = out if summed_in(result) == result else astype(out, result)
    return bind("squeeze", out, dimensions=tuple([d for d, n in enumerate(out.shape) if n == 1])) if 1 in out.shape else out


def _check_inexact(name, dtype):
    if dtype is not None and not is_inexact(canonicalize_dtype(dtype)):
        raise ValueError(f"{name}: dtype must be a subclass of float or complex; got dtype={dtype!r}")


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Covariance matrix of variables: mean products of the deviations from the means, with sums
    divided by n - ddof.

    Args:
        m: vector, or matrix of observations, a variable in each row.
        y: more variables with as many observations, or None.
        rowvar: bool; variables are rows, not columns.
        bias: bool; ddof is 0 by default, not 1.
        ddof: number subtracted from the count; None: by `bias`.
        fweights: vector of integers: how often each observation counts; None: once.
        aweights: vector of weights of the observations; None: 1.
        dtype: float or complex dtype of the result; None: the promoted one.

    Returns:
        Array of shape (variables, variables); a scalar for one variable.

    Raises:
        ValueError: above rank 2 and for a dtype that is not a float.
        TypeError: for fweights that are not integers.
        RuntimeError: for weights of another rank or size.

    >>> jnp.cov(jnp.array([1.0, 3.0]))
    Array(2., dtype=float32)
    """
    check_arraylike("cov", m, *([] if y is None else [y]))
    m = as_array("cov", m)
    if m.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    if y is not None:
        y = as_array("cov", y)
        if y.ndim > 2:
            raise ValueError("y has more than 2 dimensions")
        m, y = _core.promote_dtypes_inexact(m, y)
    _check_inexact("cov", dtype)
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is not None:
            check_arraylike("cov", w)
            if ndim_of(w) > 1:
                raise RuntimeError(f"cannot handle multidimensional {name}")
            if shape_of(w)[:1] != ((1,) if m.ndim == 0 else m.shape[:1] if m.ndim == 1 or not rowvar else m.shape[1:]):
                raise RuntimeError(f"incompatible numbers of samples and {name}")
    if fweights is not None and is_inexact(_core.asarray(fweights).dtype):
        raise TypeError("fweights must be integer.")
    if aweights is not None and is_inexact(m.dtype):
        check_promotion(m, aweights)
    return _cov(m, y, rowvar=bool(rowvar), bias=bool(bias != 0), ddof=ddof, fweights=fweights, aweights=aweights, dtype=requested("cov", dtype))


@jitted("corrcoef", static=("rowvar", "dtype"))
def _corrcoef(x, y, rowvar, dtype):
    result = to_inexact(_core.result_type(*[v for v in (x, y) if v is not None])) if dtype is None else dtype
    if (wide := summed_in(result)) != result:
        return astype(_corrcoef(x, y, rowvar=rowvar, dtype=wide), result)
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0 or c.shape == (1, 1):
        return bind("div", c, c).reshape(())
    spread = sqrt(real(diag(c)))
    out = c / spread[:, None] / spread[None, :]
    if is_complex(out.dtype):
        return bind("complex", clip(out.real, -1, 1), clip(out.imag, -1, 1))
    return clip(out, -1, 1)


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """Correlation matrix: covariances over the product of standard deviations.

    Args:
        x: vector, or matrix of observations, a variable in each row.
        y: more variables with as many observations, or None.
        rowvar: bool; variables are rows, not columns.
        dtype: float or complex dtype of the result; None: the promoted one.

    Returns:
        Array of shape (variables, variables); a scalar for one variable.

    Raises:
        ValueError: above rank 2, and for a dtype that is not a float.

    >>> jnp.corrcoef(jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).round(3)
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    check_arraylike("corrcoef", x, *([] if y is None else [y]))
    if y is not None:
        check_promotion(x, y)
    _check_inexact("corrcoef", dtype)
    return _corrcoef(_core.asarray(x), None if y is None else _core.asarray(y), rowvar=bool(rowvar), dtype=requested("corrcoef", dtype))
