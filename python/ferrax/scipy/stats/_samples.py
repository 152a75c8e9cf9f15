"""Statistics of samples: the most frequent value, ranks, the standard error of the mean.

Invariant: a NaN in a sample makes the result NaN, unless it is to be omitted.

    >>> rankdata(jnp.array([30, 10, 20, 20]))
    Array([4. , 1. , 2.5, 2.5], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ... import numpy as jnp
from ..._base.shapes import canonicalize_axis
from ..._tracing.jit import jit
from ...numpy._support.arguments import Array, as_array, check_arraylike, promote_inexact

if TYPE_CHECKING:
    from ...typing import ArrayLike

_POLICIES = ("propagate", "omit", "raise")
_METHODS = ("average", "min", "max", "dense", "ordinal")


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Array
    count: Array


def _check_policy(nan_policy):
    if nan_policy not in _POLICIES:
        raise ValueError(f"Illegal nan_policy value {nan_policy!r}; expected one of {{'propagate', 'omit', 'raise'}}")
    if nan_policy == "omit":
        raise NotImplementedError(f"Logic for `nan_policy` of {nan_policy} is not implemented")


@jit(static_argnames=("axis", "nan_policy", "keepdims"))
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along an axis, the least of several; NaNs are equal among themselves
    and largest.

    Args:
        a: an array.
        axis: an axis, or None for all elements.
        nan_policy: "propagate" alone.
        keepdims: keep the reduced axis with size 1.

    Returns:
        a named tuple (mode, count): values of a's dtype, and their counts. Of no elements they are
        NaN and 0.

    Raises:
        TypeError: a is a list. ValueError, NotImplementedError: the nan_policy is not supported.

    >>> jax.scipy.stats.mode(jnp.array([1, 2, 2]))
    ModeResult(mode=Array(2, dtype=int32), count=Array(2, dtype=int32))
    """
    check_arraylike("mode", a)
    a = jnp.atleast_1d(as_array("mode", a))
    _check_policy(nan_policy)
    if nan_policy == "raise":
        raise NotImplementedError(
            "In order to best JIT compile `mode`, we cannot know whether `x` contains nans. Please check if nans exist in `x` outside of the `mode` function."
        )
    kept = (1,) * a.ndim
    if axis is None:
        a, axis = a.ravel(), 0
    else:
        axis = canonicalize_axis(axis, a.ndim)
        kept = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
    shape = kept if keepdims else (*a.shape[:axis], *a.shape[axis + 1 :])
    n = a.shape[axis]
    if n == 0:
        empty = jnp.full(shape, jnp.nan, a.dtype if a.dtype.kind in "fc" or a.dtype.kind == "V" else None)
        return ModeResult(empty, jnp.zeros(shape))
    x = jnp.sort(jnp.moveaxis(a, axis, 0), axis=0)
    same = jnp.ones((n, *x.shape[1:]), bool)
    # The length of the run that ends at each place: its place less that where the run began.
    differs = same.at[1:].set((x[1:] != x[:-1]) & ~((x[1:] != x[1:]) & (x[:-1] != x[:-1])))
    place = jnp.arange(n).reshape(-1, *[1] * (x.ndim - 1))
    began = jnp.maximum.accumulate(jnp.where(differs, place, 0), axis=0)
    length = place - began + 1
    best = jnp.argmax(length, axis=0, keepdims=True)
    take = lambda v: jnp.take_along_axis(v, best, axis=0).reshape(shape)
    return ModeResult(take(x), take(length))


@jit(static_argnames=("method", "axis", "nan_policy"))
def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """Ranks from 1 upwards along an axis.

    Args:
        a: an array.
        method: the rank of equal elements: the "average", the least ("min"), the greatest ("max"),
          their place among the distinct elements ("dense"), or by position ("ordinal").
        axis: an axis, or None for the ranks of all elements, which have one dimension.
        nan_policy: "propagate" alone: ranks among elements with a NaN are NaN.

    Returns:
        a float array of a's shape.

    Raises:
        TypeError: a is a list.
        ValueError: the method is unknown.
        NotImplementedError: the nan_policy is not supported.

    >>> jax.scipy.stats.rankdata(jnp.array([5, 1, 5]), "min")
    Array([2., 1., 2.], dtype=float32)
    """
    check_arraylike("rankdata", a)
    _check_policy(nan_policy)
    if nan_policy == "raise":
        raise NotImplementedError(
            "In order to best JIT compile `rankdata`, we cannot know whether `x` contains nans. "
            "Please check if nans exist in `x` outside of the `rankdata` function."
        )
    if method not in _METHODS:
        raise ValueError(f"unknown method '{method}'")
    a = jnp.atleast_1d(as_array("rankdata", a))
    a, axis = (a.ravel(), 0) if axis is None else (a, axis)
    x = jnp.moveaxis(a, axis, 0)
    dtype = jnp.result_type(float)
    order = jnp.argsort(x, axis=0)
    place = jnp.arange(x.shape[0]).reshape(-1, *[1] * (x.ndim - 1))
    sorted_x = jnp.take_along_axis(x, order, axis=0)
    back = lambda v: jnp.take_along_axis(v, jnp.argsort(order, axis=0), axis=0)
    new = jnp.ones(x.shape, bool).at[1:].set(sorted_x[1:] != sorted_x[:-1])
    # The places before the first and behind the last of each element's equals.
    before = jnp.maximum.accumulate(jnp.where(new, place, 0), axis=0)
    last = jnp.ones(x.shape, bool).at[:-1].set(new[1:])
    behind = jnp.minimum.accumulate(jnp.where(last, place + 1, x.shape[0])[::-1], axis=0)[::-1]
    ranks = {
        "average": lambda: (before + behind + 1).astype(dtype) / 2, "min": lambda: before + 1, "max": lambda: behind,
        "dense": lambda: jnp.cumsum(new, axis=0), "ordinal": lambda: jnp.broadcast_to(place + 1, x.shape),
    }[method]()  # fmt: skip
    ranks = back(ranks).astype(dtype)
    if a.dtype.kind not in "iub":
        ranks = jnp.where(jnp.any(jnp.isnan(x), axis=0), jnp.nan, ranks)
    return jnp.moveaxis(ranks, 0, axis)


@jit(static_argnames=("axis", "ddof", "nan_policy", "keepdims"))
def sem(a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Array:
    """The standard error of the mean: the standard deviation over the root of the number of
    elements.

    Args:
        a: an array.
        axis: an axis, or None for all elements.
        ddof: subtracted from the number of elements in the variance.
        nan_policy: "propagate", or "omit" to leave NaNs out.
        keepdims: keep the reduced axis with size 1.

    Returns:
        an array of a's shape without the axis, of its dtype, or the float dtype of integers.

    Raises:
        TypeError: a is a list.
        ValueError: the nan_policy is unknown.

    >>> jax.scipy.stats.sem(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    (a,) = promote_inexact("sem", a)
    if nan_policy == "propagate":
        n = a.size if axis is None else a.shape[canonicalize_axis(axis, a.ndim)]
        return (jnp.std(a, axis, ddof=ddof, keepdims=keepdims) / float(np.sqrt(n))).astype(a.dtype)
    if nan_policy == "omit":
        n = jnp.sum(~jnp.isnan(a), axis, keepdims=keepdims)
        return (jnp.nanstd(a, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(n).astype(a.real.dtype)).astype(a.dtype)
    raise ValueError(f"{nan_policy} is not supported")
