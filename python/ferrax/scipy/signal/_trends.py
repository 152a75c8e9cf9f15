"""Trends removed.

>>> detrend(jnp.array([1.0, 2.0, 4.0]), type="constant").round(4)
Array([-1.3333, -0.3333,  1.6667], dtype=float32)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..._base.shapes import canonicalize_axis
from ...numpy._support.arguments import promote_inexact

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


def _without_line(x):
    """`x` less the line of least squares, along the last axis."""
    n = x.shape[-1]
    t = np.arange(n) - (n - 1) / 2
    square = float((t * t).sum())
    centred = x - x.mean(-1, keepdims=True)
    t = t.astype(x.real.dtype)
    slope = (centred * t).sum(-1, keepdims=True) / x.real.dtype.type(square if square else 1)
    return centred - slope * t


def detrend(data: ArrayLike, axis: int = -1, type: str = "linear", bp: int | Sequence[int] | np.ndarray = 0, overwrite_data: None = None) -> Array:
    """The data less a trend along an axis.

    Args:
        data: an array; integers become floats.
        axis: the axis.
        type: "linear" for the least-squares line, "constant" for the mean.
        bp: for lines, where new ones start: an index, or several.
        overwrite_data: None: arrays do not change.

    Returns:
        Array of data's shape, float or complex.

    Raises:
        ValueError: for another type, and breakpoints outside.
        NotImplementedError: for overwrite_data.

    >>> import ferrax.scipy.signal
    >>> ferrax.scipy.signal.detrend(jnp.array([1.0, 2.0, 3.0]))
    Array([0., 0., 0.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("overwrite_data argument not implemented.")
    if type not in ("constant", "linear"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    (x,) = promote_inexact("detrend", data)
    axis = canonicalize_axis(axis, x.ndim)
    if type == "constant":
        return x - x.mean(axis, keepdims=True) if x.size else x
    n = x.shape[axis]
    breaks = np.sort(np.unique(np.concatenate([[0], np.atleast_1d(np.asarray(bp, int)), [n]])))
    if breaks[0] < 0 or breaks[-1] > n:
        raise ValueError("Breakpoints must be non-negative and less than length of data along given axis.")
    if x.size == 0:
        return x
    x = jnp.moveaxis(x, axis, -1)
    parts = [_without_line(x[..., lo:hi]) for lo, hi in itertools.pairwise(breaks)]
    return jnp.moveaxis(jnp.concatenate(parts, axis=-1), -1, axis)
