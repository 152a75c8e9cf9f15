"""Functions over an axis: softmax and its kin, standardize, one_hot.

Invariant: masked-out elements (`where` false) take no part, and a slice that is masked out whole gives no NaN derivative elsewhere.
"""

import functools
import operator

import numpy as np

from .. import _core, lax
from .. import numpy as jnp
from .._api import jit
from .._config import config
from .._dtypes import canonicalize_dtype
from ..custom_derivatives import custom_jvp
from ..numpy._arguments import as_array
from ..scipy.special import logsumexp
from ._activations import _inexact


def _shifted(name, x, axis, where):
    """x minus its maximum, -inf where masked out."""
    x = as_array(name, x)
    if where is not None:
        # With -inf among its elements an integer array is of the default float, whatever its width.
        x, _ = _core.promote_dtypes(x, -jnp.inf)
    elif x.dtype != bool:
        (x,) = _core.promote_dtypes_inexact(x)
    top = jnp.max(x, axis, where=where, initial=-jnp.inf, keepdims=True)
    return (x if where is None else jnp.where(where, x, -jnp.inf)) - lax.stop_gradient(top)


@functools.partial(jit, static_argnames=("axis",))
def log_softmax(x, axis=-1, where=None):
    """x - logsumexp(x), along an axis.

    Args:
      x: an array.
      axis: an axis or a tuple of them; None for all.
      where: which elements to include, a boolean array that broadcasts to x; the result is -inf at the others.

    Returns:
      an array of x's shape.
    """
    shifted = _shifted("log_softmax", x, axis, where)
    out = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis, where=where, keepdims=True))
    return out if where is None else jnp.where(where, out, -jnp.inf)


def softmax(x, axis=-1, where=None):
    """exp(x) / sum(exp(x)), along an axis.

    Args:
      x: an array.
      axis: an axis or a tuple of them; None for all.
      where: which elements to include, a boolean array that broadcasts to x; the result is 0 at the others.

    Returns:
      an array of x's shape.
    """
    if config.jax_softmax_custom_jvp:
        return _softmax(x, axis, where)
    return _softmax_of(x, axis, where)


def _softmax_of(x, axis, where):
    e = jnp.exp(_shifted("softmax", x, axis, where))
    out = e / jnp.sum(e, axis, where=where, keepdims=True)
    return out if where is None else jnp.where(where, out, 0)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _softmax(x, axis, where):
    return _softmax_of(x, axis, where)


@_softmax.defjvp
def _softmax_jvp(axis, primals, tangents):
    # The derivative in terms of the result alone: neither x nor its exponential is kept.
    (x, where), (dx, _) = primals, tangents
    y = _softmax(x, axis, where)
    return y, y * (dx - (y * dx).sum(axis, where=where, keepdims=True))


@functools.partial(jit, static_argnames=("axis", "keepdims"))
def logmeanexp(x, axis=None, where=None, keepdims=False):
    """log(mean(exp(x))), without overflow.

    Args:
      x: an array.
      axis: an axis or a tuple of them; None for all.
      where: which elements to include.
      keepdims: keep reduced axes with size 1.
    """
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    if where is None:
        axes = tuple(range(jnp.ndim(x))) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        count = float(np.prod([jnp.shape(x)[a] for a in axes], dtype=float))
    else:
        count = jnp.sum(jnp.broadcast_to(where, jnp.shape(x)), axis=axis, keepdims=keepdims).astype(total.dtype)
    return total - jnp.log(jnp.asarray(count, total.dtype))


@functools.partial(jit, static_argnames=("axis", "algorithm"))
def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None, *, algorithm="fast"):
    """(x - mean) / sqrt(variance + epsilon), along an axis.

    Args:
      x: an array.
      axis: an axis or a tuple of them.
      mean, variance: computed from x where None.
      epsilon: added to the variance.
      where: which elements mean and variance take in.
      algorithm: "fast" (mean of squares minus square of the mean) or "stable" (mean of squared deviations: exact near a large mean).

    Raises:
      ValueError: the algorithm is unknown.
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"Unknown algorithm {algorithm!r}. Expected 'fast' or 'stable'.")
    x = _inexact("standardize", x)
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "stable":
            variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
        else:
            # Rounding may put a small variance below 0.
            variance = jnp.clip(jnp.mean(jnp.square(x), axis, keepdims=True, where=where) - jnp.square(mean), 0)
    return (x - mean) * lax.rsqrt(variance + epsilon)


def one_hot(x, num_classes, *, dtype=None, axis=-1):
    """1 at the positions that x names, 0 elsewhere; all 0 where x is out of range.

    Args:
      x: an array of indices.
      num_classes: the size of the new axis, an int.
      dtype: the result's dtype; by default the default float.
      axis: where the new axis goes; or the name of a mapped axis, on which the classes are spread.

    Returns:
      an array of x's shape with one axis more.

    Raises:
      TypeError: num_classes is no integer.
    """
    num_classes = operator.index(num_classes)
    return _one_hot(jnp.asarray(x), num_classes=num_classes, dtype=canonicalize_dtype(float if dtype is None else dtype), axis=axis)


@functools.partial(jit, static_argnames=("num_classes", "dtype", "axis"), inline=True)
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
