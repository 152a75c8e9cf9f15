"""The Dirichlet distribution on the simplex, of density prod x_i^(alpha_i - 1) / B(alpha).

>>> logpdf(jnp.array([0.25, 0.75]), jnp.array([1.0, 1.0]))
Array(0., dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._tracing.jit import jit
from ...numpy._support import arguments as _arguments
from .._domains import nan_outside
from ..special import _saddle_points, gammaln, xlogy
from . import _families

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


@jit
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the density: sum over i of (alpha_i - 1) log(x_i) - log(B(alpha)),
    B(alpha) = prod gamma(alpha_i) / gamma(sum alpha).

    Args:
        x: points, reals (outcomes, ...): the first axis is that of the coordinates. The last
          coordinate may be omitted; it is computed as 1 minus the others.
        alpha: the concentrations, positive reals (outcomes,).

    Returns:
        Float array of x's shape without the first axis; -inf off the simplex.

    Raises:
        TypeError: an argument is a list or complex.
        ValueError: alpha does not have one dimension, or x does not fit it.

    >>> logpdf(jnp.array([0.25, 0.25]), jnp.array([1.0, 1.0]))
        Array(-inf, dtype=float32)
    """
    x, alpha = _families.reals("dirichlet.logpdf", x, alpha)
    if alpha.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={tuple(alpha.shape)}")
    if x.ndim == 0 or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError(
            f"`x` must have either the same number of entries as `alpha` or one entry fewer; got x.shape={tuple(x.shape)}, alpha.shape={tuple(alpha.shape)}"
        )
    if x.shape[0] != alpha.shape[0]:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)], axis=0)
    on_simplex = jnp.all(x >= 0, axis=0) & (abs(jnp.sum(x, axis=0) - 1) <= 10 * jnp.finfo(x.dtype).eps)
    alpha = alpha.reshape(-1, *[1] * (x.ndim - 1))
    known = jnp.all(alpha > 0) & ~jnp.any(jnp.isnan(x), axis=0)
    inside = jnp.where(on_simplex, x, 1 / x.shape[0])
    plain = jnp.sum(xlogy(alpha - 1, inside) - gammaln(alpha), axis=0) + gammaln(jnp.sum(alpha))
    large = (jnp.sum(alpha) >= 10) & jnp.all(inside > 0, axis=0) & jnp.all((alpha > 0) & jnp.isfinite(alpha))
    points = jnp.where(large, inside, 1)
    about = _saddle_points.log_multinomial(*(jnp.moveaxis(v, 0, -1) for v in jnp.broadcast_arrays(jnp.where(large, alpha, 1), points)))
    value = jnp.where(large, about - jnp.sum(jnp.log(points), axis=0), plain)
    return nan_outside(known, jnp.where(on_simplex, value, -jnp.inf), jnp.sum(x, axis=0), jnp.sum(alpha))


@jit
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density, exp(logpdf(x, alpha)).

    Args:
        x: points, reals (outcomes, ...): the first axis is that of the coordinates. The last
          coordinate may be omitted; it is computed as 1 minus the others.
        alpha: the concentrations, positive reals (outcomes,).

    Returns:
        Float array of x's shape without the first axis; 0 off the simplex.

    Raises:
        TypeError: an argument is a list or complex.
        ValueError: alpha does not have one dimension, or x does not fit it.

    >>> pdf(jnp.array([0.25, 0.75]), jnp.array([2.0, 2.0]))
    Array(1.125, dtype=float32)
    """
    _arguments.check_promotion(x, alpha)
    return jnp.exp(logpdf(x, alpha))
