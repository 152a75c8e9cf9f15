"""Random vectors and matrices: the multivariate normal, orthogonal matrices.

Invariant: each starts from one array of standard normal draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _core, lax, numpy as jnp
from .._base.shapes import common_shape
from .._sharding.parts import sharded
from ._keys import single
from ._transformed import normal
from ._uniform import broadcast_shape, checked_shape, drawn, float_dtype

if TYPE_CHECKING:
    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec
    from ..typing import ArrayLike, DTypeLike


def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draws from the multivariate normal distribution.

    Args:
        key: a key.
        mean: shape (..., n).
        cov: covariances, shape (..., n, n), positive (semi)definite.
        shape: the result's shape without its last axis, to which the batch axes of mean and cov
          broadcast; by default their common shape.
        dtype: a float dtype; by default the one that mean and cov promote to.
        method: the factorisation: "cholesky" (needs a definite matrix), "svd" or "eigh".
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        an array of shape (*shape, n).

    Raises:
        ValueError: shapes do not fit, the dtype is not floating point, or the method is unknown.

    >>> random.multivariate_normal(random.key(0), jnp.zeros(2), jnp.eye(2)).shape
    (2,)
    """
    if out_sharding is not None:
        return sharded(multivariate_normal, locals())
    key, _ = single("multivariate_normal", key)
    if dtype is None:
        dtype = _core.promote_dtypes_inexact(jnp.asarray(mean), jnp.asarray(cov))[0].dtype
    dtype = float_dtype("multivariate_normal", dtype)
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}")
    mean, cov = jnp.asarray(mean, dtype), jnp.asarray(cov, dtype)
    if mean.ndim < 1:
        raise ValueError(f"multivariate_normal requires mean.ndim >= 1, got mean.ndim == {mean.ndim}")
    if cov.ndim < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {cov.ndim}")
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError(f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape == {cov.shape}.")
    batch = (mean.shape[:-1], cov.shape[:-2])
    if shape is None:
        shape = common_shape(*batch)
    else:
        shape = broadcast_shape("multivariate_normal", shape, *batch)
    return _multivariate_normal(key, mean, cov, shape=shape, dtype=dtype, method=method)


@drawn("shape", "dtype", "method")
def _multivariate_normal(key, mean, cov, *, shape, dtype, method):
    if method == "svd":
        u, s, _ = jnp.linalg.svd(cov)
        factor = u * jnp.sqrt(s[..., None, :])
    elif method == "eigh":
        w, v = jnp.linalg.eigh(cov)
        factor = v * jnp.sqrt(w[..., None, :])
    else:
        factor = jnp.linalg.cholesky(cov)
    z = normal(key, (*shape, mean.shape[-1]), dtype)
    return mean + jnp.einsum("...ij,...j->...i", factor, z)


def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draws of orthogonal (unitary, if complex) matrices, uniform in Haar's sense.

    Args:
        key: a key.
        n: the number of rows.
        shape: the batch axes.
        dtype: a float or complex dtype; by default the default float.
        m: the number of columns; by default n.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        an array of shape (*shape, n, m) with orthonormal columns (rows, where m > n).

    >>> random.orthogonal(random.key(0), 2, (3,)).shape
    (3, 2, 2)
    """
    if out_sharding is not None:
        return sharded(orthogonal, locals())
    key, _ = single("orthogonal", key)
    shape = checked_shape("orthogonal", shape)
    return _orthogonal(key, n=int(n), m=int(n if m is None else m), shape=shape, dtype=float_dtype("orthogonal", dtype, complex_too=True))


@drawn("n", "m", "shape", "dtype")
def _orthogonal(key, *, n, m, shape, dtype):
    q = _orthonormal(normal(key, (*shape, max(n, m), min(n, m)), dtype))
    return q if n >= m else jnp.swapaxes(q, -2, -1)


def _orthonormal(z):
    """The factor Q of z = QR whose R has a positive diagonal: Gram and Schmidt's, each column
    cleaned twice against rounding.
    """

    def column(j, q):
        v = lax.dynamic_index_in_dim(z, j, axis=-1, keepdims=False)
        for _ in range(2):
            v = v - jnp.einsum("...ik,...k->...i", q, jnp.einsum("...ik,...i->...k", q.conj(), v))
        v = v / jnp.sqrt(jnp.sum((v * v.conj()).real, axis=-1, keepdims=True)).astype(z.dtype)
        return lax.dynamic_update_index_in_dim(q, v, j, axis=-1)

    return lax.fori_loop(0, z.shape[-1], column, jnp.zeros_like(z)) if z.size else z
