"""Vector quantization.

>>> import ferrax.scipy.cluster.vq
>>> ferrax.scipy.cluster.vq.vq(jnp.array([[1.0, 1.0], [5.0, 4.0]]), jnp.array([[0.0, 1.0], [5.0, 5.0]]))
(Array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))
"""

from __future__ import annotations

from ... import numpy as jnp
from ..._core import Array
from ...numpy._support.arguments import promote_inexact
from ...typing import ArrayLike

__all__ = ["vq"]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """For each observation the nearest code, the first of equals, and how far it is (Euclidean).

    Args:
        obs: float[m, n], or float[m] for n = 1.
        code_book: float[k, n], or float[k].
        check_finite: accepted; observations that are not finite are measured like others.

    Returns:
        (indices of codes, integers[m]; distances, float[m]).

    Raises:
        ValueError: for ranks that differ or are above 2, or other lengths of vectors.

    >>> vq(jnp.array([[0.1, 0.0], [3.0, 4.0]]), jnp.array([[0.0, 0.0], [3.0, 3.0]]))
    (Array([0, 1], dtype=int32), Array([0.1, 1. ], dtype=float32))
    """
    del check_finite
    obs, codes = promote_inexact("vq", obs, code_book)
    if obs.ndim != codes.ndim:
        raise ValueError("Observation and code_book should have the same rank")
    if obs.ndim == 1:
        obs, codes = obs[:, None], codes[:, None]
    if obs.ndim != 2:
        raise ValueError("ndim different than 1 or 2 are not supported")
    if obs.shape[1] != codes.shape[1]:
        raise ValueError(f"observations have {obs.shape[1]} features, and codes {codes.shape[1]}")
    # by differences: |x|^2 - 2 x.y + |y|^2 would lose small distances
    apart = jnp.square(abs(obs[:, None, :] - codes)).sum(-1)
    code = jnp.argmin(apart, axis=-1)
    return code, jnp.sqrt(jnp.take_along_axis(apart, code[:, None], axis=-1)[:, 0])
