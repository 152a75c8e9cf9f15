"""Functions over an axis: standardize, logmeanexp, one_hot.

Invariant: masked-out elements (`where` false) take no part, and a slice that is masked out whole
gives no NaN derivative elsewhere.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, lax, numpy as jnp
from .._base.dtypes import is_integer, requested, summed_in
from .._base.shapes import hashable_axes
from .._tracing.jit import jit
from ..errors import ConcretizationTypeError
from ..numpy._support.arguments import jitted
from ..scipy.special import logsumexp
from ._activations import _inexact

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike


def logmeanexp(x: ArrayLike, axis: int | Sequence[int] | None = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))), without overflow.

    Args:
        x: an array.
        axis: an axis or a tuple of them; None for all.
        where: which elements to include.
        keepdims: keep reduced axes with size 1.

    Returns:
        Array of x's shape without the reduced axes.

    >>> nn.logmeanexp(jnp.array([0.0, 0.0]))
    Array(0., dtype=float32)
    """
    return _logmeanexp(x, axis=hashable_axes(axis), where=where, keepdims=bool(keepdims))


@jitted("logmeanexp", static=("axis", "keepdims"))
def _logmeanexp(x, axis, where, keepdims):
    (x,) = _core.promote_dtypes_inexact(x)
    result, wide = x.dtype, summed_in(x.dtype)
    total = logsumexp(x if wide == result else x.astype(wide), axis=axis, where=where, keepdims=keepdims)
    if where is None:
        axes = tuple(range(jnp.ndim(x))) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        count = float(np.prod([jnp.shape(x)[a] for a in axes], dtype=float))
    else:
        count = jnp.sum(jnp.broadcast_to(where, jnp.shape(x)), axis=axis, keepdims=keepdims).astype(total.dtype)
    out = total - jnp.log(jnp.asarray(count, total.dtype))
    return out if wide == result else out.astype(result)


@jit(static_argnames=("axis", "algorithm"))
def standardize(
    x: ArrayLike,
    axis: int | Sequence[int] | None = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean) / sqrt(variance + epsilon), along an axis.

    Args:
        x: an array.
        axis: an axis or a tuple of them.
        mean, variance: computed from x where None.
        epsilon: added to the variance.
        where: the elements over which mean and variance are computed.
        algorithm: "fast" (mean of squares minus square of the mean) or "stable" (mean of squared
          deviations: exact near a large mean).

    Returns:
        Array of x's shape, of its dtype made float.

    Raises:
        ValueError: the algorithm is unknown.

    >>> nn.standardize(jnp.array([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"Unknown algorithm {algorithm!r}. Expected 'fast' or 'stable'.")
    x = _inexact("standardize", x)
    result, wide = x.dtype, summed_in(x.dtype)
    if wide != result:
        x, epsilon = x.astype(wide), jnp.asarray(epsilon, wide)
        mean, variance = (v if v is None else jnp.asarray(v, wide) for v in (mean, variance))
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "stable":
            variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
        else:
            # Rounding may put a small variance below 0.
            variance = jnp.clip(jnp.mean(jnp.square(x), axis, keepdims=True, where=where) - jnp.square(mean), 0)
    out = (x - mean) * lax.rsqrt(variance + epsilon)
    return out if wide == result else out.astype(result)


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: Any = -1) -> Array:
    """1 at the positions that x names, 0 elsewhere; all 0 where x is out of range.

    Args:
        x: an array of indices.
        num_classes: the size of the new axis, an int.
        dtype: the result's dtype; by default the default float.
        axis: position of the new axis; or the name of a mapped axis, along which the classes are
          distributed.

    Returns:
        an array of x's shape with one axis more.

    Raises:
        TypeError: num_classes is not an integer.

    >>> nn.one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    if isinstance(num_classes, _core.Tracer):
        raise ConcretizationTypeError(num_classes, "The error arose in jax.nn.one_hot argument `num_classes`.")
    num_classes = operator.index(num_classes)
    x = jnp.asarray(x)
    if not is_integer(x.dtype):
        warnings.warn(f"jax.nn.one_hot input should be integer-typed; got dtype={x.dtype}", DeprecationWarning, stacklevel=2)
    return _one_hot(x, num_classes=num_classes, dtype=requested("astype", dtype, float), axis=axis)


@jit(static_argnames=("num_classes", "dtype", "axis"), inline=True)
def _one_hot(x, *, num_classes, dtype, axis):
    try:
        position = operator.index(axis)
    except TypeError:
        size = lax.axis_size(axis)
        if num_classes != size:
            raise ValueError(f"Expected num_classes to match the size of axis {axis}, but {num_classes} != {size}") from None
        return jnp.asarray(x == lax.axis_index(axis), dtype)
    if not -x.ndim - 1 <= position <= x.ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {x.ndim + 1}")
    position %= x.ndim + 1
    column = jnp.expand_dims(x, position)
    shape = [1] * (x.ndim + 1)
    shape[position] = num_classes
    classes = lax.broadcasted_iota(x.dtype, tuple(shape), position)
    return jnp.asarray(column == classes, dtype)
