"""The multivariate normal distribution, with density exp(-d' cov^-1 d / 2) / sqrt((2 pi)^n
det(cov)), d = x - mean.

>>> logpdf(jnp.ones(2), jnp.ones(2), jnp.eye(2)) + jnp.log(2 * jnp.pi)
Array(0., dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..._base import shapes as _shapes
from ..._tracing.jit import jit
from ...lax import linalg
from . import _families

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


_LOG_2PI = float(np.log(2 * np.pi))


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> ArrayLike:
    """The logarithm of the density.

    Args:
        x: points, reals (..., n).
        mean: the means, reals (..., n); for a distribution of one dimension a number.
        cov: the covariances, reals (..., n, n), symmetric and positive definite; a number means a
          multiple of the identity. All three broadcast.
        allow_singular: must be None.

    Returns:
        Float array of the common shape without the last axis; nan where cov is not positive
        definite.

    Raises:
        TypeError: an argument is a list.
        ValueError: an argument is complex, or the shapes do not fit.
        NotImplementedError: allow_singular is given.

    >>> logpdf(0.0, 0.0, 1.0)
        Array(-0.9189385, dtype=float32, weak_type=True)
    """
    if allow_singular is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
    return _logpdf(x, mean, cov)


@jit
def _logpdf(x, mean, cov):
    x, mean, cov = _families.reals("multivariate_normal.logpdf", x, mean, cov)
    if mean.ndim == 0 and cov.ndim == 0:
        return -((x - mean) ** 2 / cov + jnp.log(cov) + _LOG_2PI) / 2
    n = cov.shape[-1] if mean.ndim == 0 else mean.shape[-1]
    try:
        common = _shapes.common_shape(x.shape, mean.shape, (n,))
        fits = common[-1] == n
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"multivariate_normal.logpdf got incompatible shapes: x {tuple(x.shape)}, mean {tuple(mean.shape)}, for a distribution of {n} dimensions"
        )
    difference = jnp.broadcast_to(x - mean, common)
    if cov.ndim == 0:
        return -(jnp.sum(difference**2, axis=-1) / cov + n * (jnp.log(cov) + _LOG_2PI)) / 2
    if cov.ndim < 2 or tuple(cov.shape[-2:]) != (n, n):
        raise ValueError("multivariate_normal.logpdf got incompatible shapes")
    factor = linalg.cholesky(cov)
    log_det = 2 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    return -(jnp.sum(_whitened(factor, difference) ** 2, axis=-1) + n * _LOG_2PI + log_det) / 2


def _whitened(factor, vectors):
    """factor^-1 v for vectors (..., n) and lower triangular factors (..., n, n), which
    broadcast.
    """
    if factor.ndim == 2:
        # One factor: the vectors are the rows of one right-hand side.
        rows = vectors.reshape(-1, vectors.shape[-1])
        return linalg.triangular_solve(factor, rows, left_side=False, lower=True, transpose_a=True).reshape(vectors.shape)
    batch = _shapes.common_shape(vectors.shape[:-1], factor.shape[:-2])
    n = vectors.shape[-1]
    columns = jnp.broadcast_to(vectors, (*batch, n))[..., None]
    return linalg.triangular_solve(jnp.broadcast_to(factor, (*batch, n, n)), columns, left_side=True, lower=True)[..., 0]


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density, exp(logpdf(x, mean, cov)).

    Args:
        x: points, reals (..., n).
        mean: the means, reals (..., n); for a distribution of one dimension a number.
        cov: the covariances, reals (..., n, n), symmetric and positive definite; a number means a
          multiple of the identity. All three broadcast.

    Returns:
        Float array of the common shape without the last axis; nan where cov is not positive
        definite.

    Raises:
        TypeError: an argument is a list.
        ValueError: an argument is complex, or the shapes do not fit.

    >>> pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))
    Array(0.15915495, dtype=float32)
    """
    return jnp.exp(_logpdf(x, mean, cov))
