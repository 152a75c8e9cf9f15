"""Estimates of a density from a sample, by normal kernels.

Invariant: `gaussian_kde` is a frozen pytree of arrays: it passes through `jit`, `vmap` and `grad`,
and its bandwidth does not change.

    kde = gaussian_kde(sample)          # (n,), or (d, n): the observations are columns
    kde(points)                         # densities
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from ... import numpy as jnp, random
from ...lax import linalg
from ...numpy._support.arguments import Array, check_arraylike, ndim_of, promote_inexact
from ...tree_util import register_pytree_node_class
from ..special import logsumexp, ndtr
from .multivariate_normal import _whitened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...typing import ArrayLike

_BANDWIDTH = "`bw_method` should be 'scott', 'silverman', a scalar, or a callable."


def _factor(kde, bw_method):
    if bw_method is None or bw_method == "scott":
        return kde.neff ** (-1 / (kde.d + 4))
    if isinstance(bw_method, str):
        if bw_method != "silverman":
            raise ValueError(_BANDWIDTH)
        return (kde.neff * (kde.d + 2) / 4) ** (-1 / (kde.d + 4))
    if callable(bw_method):
        return bw_method(kde)
    check_arraylike("gaussian_kde", bw_method)
    if ndim_of(bw_method):
        raise ValueError(_BANDWIDTH)
    return bw_method


@register_pytree_node_class
@dataclasses.dataclass(frozen=True, init=False)
class gaussian_kde:
    """A density estimated as the mean of normal densities about the observations (Scott 1992,
    Multivariate Density Estimation).

    Args:
        dataset: the observations, (n,) or (d, n), real.
        bw_method: the factor of the kernels' width: "scott" (the default), neff^(-1 / (d + 4)),
          "silverman", (neff (d + 2) / 4)^(-1 / (d + 4)), a number, or a function of the object.
        weights: of the observations, (n,); by default equal.

    Attributes:
        neff: the effective number of observations, 1 / sum(weights^2).
        dataset: (d, n). weights: (n,), of sum 1.
        covariance: of the kernels, (d, d): that of the data times the squared factor. inv_cov: its
          inverse.

    Raises:
        TypeError: the data or the weights are a list.
        ValueError: there are fewer than two elements, the weights do not fit, or bw_method is
          unknown.
        NotImplementedError: the data are complex.

    >>> gaussian_kde(jnp.array([1.0, 2.0, 3.0]), 1.0)(2.0)
    Array([0.29429457], dtype=float32)
    """

    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array

    def __init__(self, dataset: Any, bw_method: str | Array | Callable[[Any], Array] | None = None, weights: Any = None) -> None:
        check_arraylike("gaussian_kde", dataset)
        dataset = jnp.atleast_2d(dataset)
        if jnp.issubdtype(dataset.dtype, np.complexfloating):
            raise NotImplementedError("gaussian_kde does not support complex data")
        if not dataset.size > 1:
            raise ValueError("`dataset` input should have multiple elements.")
        if dataset.ndim != 2:
            raise ValueError(f"`dataset` input should have one or two dimensions, got {dataset.ndim}")
        n = dataset.shape[1]
        if weights is None:
            (dataset,) = promote_inexact("gaussian_kde", dataset)
            weights = jnp.full(n, 1 / n, dataset.dtype)
        else:
            check_arraylike("gaussian_kde", weights)
            dataset, weights = promote_inexact("gaussian_kde", dataset, jnp.atleast_1d(weights))
            if weights.ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if weights.shape[0] != n:
                raise ValueError("`weights` input should be of length n")
            weights = weights / jnp.sum(weights)
        self._fill(neff=1 / jnp.sum(weights**2), dataset=dataset, weights=weights)
        spread = jnp.atleast_2d(jnp.cov(dataset, rowvar=True, bias=False, aweights=weights))
        covariance = spread * jnp.asarray(_factor(self, bw_method), dataset.dtype) ** 2
        lower = linalg.triangular_solve(linalg.cholesky(covariance), jnp.eye(self.d, dtype=dataset.dtype), left_side=True, lower=True)
        self._fill(covariance=covariance, inv_cov=lower.T @ lower)

    def _fill(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def tree_flatten(self) -> tuple[tuple[Array, ...], None]:
        """The arrays; there are no static data."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Iterable[Any]) -> Self:
        """The object of these arrays."""
        kde = cls.__new__(cls)
        kde._fill(**dict(zip(("neff", "dataset", "weights", "covariance", "inv_cov"), children, strict=True)))
        return kde

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of observations."""
        return self.dataset.shape[1]

    def _points(self, points):
        check_arraylike("evaluate", points)
        points = jnp.atleast_2d(points)
        points, dataset = promote_inexact("evaluate", points, self.dataset)
        d, m = points.shape
        if d != self.d:
            if (d, m) != (1, self.d):
                raise ValueError(f"points have dimension {d}, dataset has dimension {self.d}")
            points = points.reshape(self.d, 1)
        return points, dataset

    def _log_kernels(self, points, centres, covariance):
        """log N(points_j - centres_i; 0, covariance), (n, m)."""
        factor = linalg.cholesky(covariance)
        # Relative to one of the centres: a location that all share would cost digits.
        origin = centres[:, :1]
        between = _whitened(factor, (points - origin).T)[None] - _whitened(factor, (centres - origin).T)[:, None]
        log_norm = jnp.sum(jnp.log(jnp.diagonal(factor))) + self.d * float(np.log(2 * np.pi) / 2)
        return -jnp.sum(between**2, axis=-1) / 2 - log_norm

    def evaluate(self, points: ArrayLike) -> Array:
        """The estimated density at points (d, m), or (d,) for one point: (m,).

        Raises:
            ValueError: the points do not have the data's dimension.
            TypeError: the points are a list.
        """
        return jnp.exp(self.logpdf(points))

    def __call__(self, points: ArrayLike) -> Array:
        """`evaluate`."""
        return self.evaluate(points)

    def pdf(self, x: ArrayLike) -> Array:
        """`evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the estimated density; arguments, result and errors are those of
        `evaluate`.
        """
        points, dataset = self._points(x)
        return logsumexp(self._log_kernels(points, dataset, self.covariance.astype(points.dtype)), axis=0, b=self.weights[:, None])

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the estimate times a normal density with this mean (d,) and covariance
        (d, d).

        Raises:
            ValueError: mean or cov has another dimension.
        """
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        mean, cov, dataset = promote_inexact("integrate_gaussian", mean, cov, self.dataset)
        return jnp.exp(logsumexp(self._log_kernels(mean[:, None], dataset, self.covariance + cov)[:, 0], b=self.weights))

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The integral of the estimate from low to high.

        Raises:
            ValueError: the data have more than one dimension.
        """
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        if ndim_of(low) or ndim_of(high):
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        width = jnp.sqrt(self.covariance[0, 0])
        low, high = (low - self.dataset[0]) / width, (high - self.dataset[0]) / width
        return jnp.sum(self.weights * (ndtr(high) - ndtr(low)))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two estimates.

        Raises:
            ValueError: they have different dimensions.
        """
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        kernels = self._log_kernels(other.dataset, self.dataset, self.covariance + other.covariance)
        return jnp.exp(logsumexp(kernels, b=self.weights[:, None] * other.weights))

    def resample(self, key: Array, shape: Sequence[int] = ()) -> Array:
        """Draws from the estimate: (d, *shape).

        Args:
            key: a key.
            shape: the shape of the sample.
        """
        key_index, key_noise = random.split(key)
        index = random.choice(key_index, self.n, shape=shape, p=self.weights)
        noise = random.multivariate_normal(key_noise, jnp.zeros(self.d, self.covariance.dtype), self.covariance, shape=shape, dtype=self.dataset.dtype)
        return jnp.moveaxis(self.dataset.T[index] + noise, -1, 0)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> NoReturn:
        """Not here: raises NotImplementedError, as in JAX."""
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method: Any = None) -> NoReturn:
        """Not here: raises NotImplementedError, as in JAX; make another object."""
        raise NotImplementedError("dynamically changing the bandwidth method is not supported")
