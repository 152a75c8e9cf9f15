"""Running sums and products.

Invariant: axis is an integer, or None for the flattened array; no result is weakly typed; bool
counts as integer, and only `cumulative_sum` widens integers narrower than the default.

    >>> jnp.cumsum(jnp.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import canonicalize_dtype, is_bool, is_inexact, is_integer, is_unsigned, requested
from ..._base.shapes import canonicalize_axis
from ..._core import bind
from .._indexing.selecting import where as choose
from .._support import sections
from .._support.arguments import as_array, constant, convert, jitted, unsupported

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike


def _cumulate(a, axis, dtype, primitive, fill_nan, widen):
    if a.ndim == 0:
        a, axis = bind("reshape", a, new_sizes=(1,), dimensions=None), 0
    if axis is None:
        if a.ndim != 1:
            a = bind("reshape", a, new_sizes=(a.size,), dimensions=None)
        axis = 0
    axis = canonicalize_axis(axis, a.ndim)
    if fill_nan is not None and is_inexact(a.dtype):
        a = choose(bind("ne", a, a), _core.asarray(constant(fill_nan, a.dtype)), a)
    if dtype is None:
        if is_bool(a.dtype):
            dtype = canonicalize_dtype(int)
        elif widen and is_integer(a.dtype) and a.dtype.itemsize < canonicalize_dtype(int).itemsize:
            dtype = canonicalize_dtype(np.uint64 if is_unsigned(a.dtype) else int)
    a = convert(a, a.dtype if dtype is None else dtype)
    if is_bool(a.dtype):
        # Sums of booleans are their maxima, products their minima.
        counts = bind({"cumsum": "cummax", "cumprod": "cummin"}[primitive], convert(a, np.uint8), axis=axis, reverse=False)
        return convert(counts, np.bool_)
    return bind(primitive, a, axis=axis, reverse=False)


@jitted("cumsum", static=("axis", "dtype"))
def _cumsum(a, axis, dtype):
    return _cumulate(a, axis, dtype, "cumsum", None, False)


@jitted("cumprod", static=("axis", "dtype"))
def _cumprod(a, axis, dtype):
    return _cumulate(a, axis, dtype, "cumprod", None, False)


@jitted("nancumsum", static=("axis", "dtype"))
def _nancumsum(a, axis, dtype):
    return _cumulate(a, axis, dtype, "cumsum", 0, False)


@jitted("nancumprod", static=("axis", "dtype"))
def _nancumprod(a, axis, dtype):
    return _cumulate(a, axis, dtype, "cumprod", 1, False)


@jitted("_cumsum_with_promotion", static=("axis", "dtype"))
def _cumsum_with_promotion(a, axis, dtype):
    return _cumulate(a, axis, dtype, "cumsum", None, True)


def _run(name, fun, a, axis, dtype):
    a = as_array(name, a)
    if axis is not None:
        axis = canonicalize_axis(axis, max(a.ndim, 1))
    return fun(a, axis=axis, dtype=requested(name, dtype))


@sections.cumulative
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running sum along `axis` (flattened if None).

    >>> jnp.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    unsupported("jnp.cumsum", out=out)
    return _run("cumsum", _cumsum, a, axis, dtype)


@sections.cumulative
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running product along `axis` (flattened if None).

    >>> jnp.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    unsupported("jnp.cumprod", out=out)
    return _run("cumprod", _cumprod, a, axis, dtype)


@sections.cumulative
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """`cumsum` with nan counted as 0.

    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 2.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    unsupported("jnp.nancumsum", out=out)
    return _run("nancumsum", _nancumsum, a, axis, dtype)


@sections.cumulative
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """`cumprod` with nan counted as 1.

    >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    unsupported("jnp.nancumprod", out=out)
    return _run("nancumprod", _nancumprod, a, axis, dtype)


def _cumulative(name, fun, x, axis, dtype, include_initial, identity):
    x = as_array(name, x)
    if x.ndim == 0:
        raise ValueError(
            f"The input must be non-scalar to take a cumulative {'product' if identity else 'sum'}, however a scalar value or scalar array was given."
        )
    if axis is None:
        if x.ndim > 1:
            raise ValueError(
                f"The input array has rank {x.ndim}, however axis was not set to an explicit value. The axis argument is only optional for one-dimensional arrays."
            )
        axis = 0
    axis = canonicalize_axis(axis, x.ndim)
    out = fun(x, axis, requested(name, dtype))
    if include_initial:
        shape = list(x.shape)
        shape[axis] = 1
        first = bind("broadcast_in_dim", constant(identity, out.dtype), shape=tuple(shape), broadcast_dimensions=())
        out = bind("concatenate", first, out, dimension=axis)
    return out


@sections.cumulative_along
def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False) -> Array:
    """Running sum along `axis`, optional only for vectors; with a 0 in front if `include_initial`.

    >>> jnp.cumulative_sum(jnp.array([1, 2]), include_initial=True)
    Array([0, 1, 3], dtype=int32)
    """
    return _cumulative("cumulative_sum", lambda a, d, t: _cumsum_with_promotion(a, axis=d, dtype=t), x, axis, dtype, include_initial, 0)


@sections.cumulative_along
def cumulative_prod(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False) -> Array:
    """Running product along `axis`, optional only for vectors; with a 1 in front if
    `include_initial`.

    >>> jnp.cumulative_prod(jnp.array([2, 3]), include_initial=True)
    Array([1, 2, 6], dtype=int32)
    """
    return _cumulative("cumulative_prod", lambda a, d, t: _cumulate(a, d, t, "cumprod", None, False), x, axis, dtype, include_initial, 1)
