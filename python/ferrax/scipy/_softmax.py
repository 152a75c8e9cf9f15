"""softmax and its logarithm.

Invariant: masked-out elements (`where` false) take no part, and a slice that is masked out whole
gives no NaN derivative elsewhere.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _core, lax, numpy as jnp
from .._base.config import config
from .._base.dtypes import summed_in
from .._tracing.jit import jit
from ..custom_derivatives import custom_jvp
from ..numpy._support.arguments import as_array

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike


def _shifted(name, x, axis, where):
    """x minus its maximum, -inf where masked out, in a dtype that sums of exponentials fit; and the
    dtype of the result.
    """
    x = as_array(name, x)
    if where is not None:
        # With -inf among its elements an integer array is of the default float, whatever its width.
        x, _ = _core.promote_dtypes(x, -jnp.inf)
    elif x.dtype != bool:
        (x,) = _core.promote_dtypes_inexact(x)
    top = jnp.max(x, axis, where=where, initial=-jnp.inf, keepdims=True)
    result, wide = x.dtype, x.dtype if x.dtype == bool else summed_in(x.dtype)
    if wide != result:
        x, top = x.astype(wide), top.astype(wide)
    return (x if where is None else jnp.where(where, x, -jnp.inf)) - lax.stop_gradient(top), result


@jit(static_argnames=("axis",))
def log_softmax(x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None) -> Array:
    """x - logsumexp(x), along an axis.

    Args:
        x: an array.
        axis: an axis or a tuple of them; None for all.
        where: which elements to include, a boolean array that broadcasts to x; the result is -inf
          at the others.

    Returns:
        an array of x's shape.

    >>> nn.log_softmax(jnp.array([0.0, 0.0]))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    shifted, result = _shifted("log_softmax", x, axis, where)
    out = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis, where=where, keepdims=True))
    out = out if result == shifted.dtype else out.astype(result)
    return out if where is None else jnp.where(where, out, -jnp.inf)


def softmax(x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) / sum(exp(x)), along an axis.

    Args:
        x: an array.
        axis: an axis or a tuple of them; None for all.
        where: which elements to include, a boolean array that broadcasts to x; the result is 0 at
          the others.

    Returns:
        an array of x's shape.

    >>> nn.softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    if config.jax_softmax_custom_jvp:
        return _softmax(x, axis, where)
    return _softmax_of(x, axis, where)


def _softmax_of(x, axis, where):
    shifted, result = _shifted("softmax", x, axis, where)
    e = jnp.exp(shifted)
    out = e / jnp.sum(e, axis, where=where, keepdims=True)
    out = out if result == out.dtype else out.astype(result)
    return out if where is None else jnp.where(where, out, 0)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _softmax(x, axis, where):
    return _softmax_of(x, axis, where)


@_softmax.defjvp
def _softmax_jvp(axis, primals, tangents):
    # The derivative in terms of the result alone: neither x nor its exponential is kept.
    (x, where), (dx, _) = primals, tangents
    out = _softmax(x, axis, where)
    wide = summed_in(out.dtype)
    y, dx = (out, dx) if wide == out.dtype else (out.astype(wide), dx.astype(wide))
    dy = y * (dx - (y * dx).sum(axis, where=where, keepdims=True))
    return out, dy if wide == out.dtype else dy.astype(out.dtype)
