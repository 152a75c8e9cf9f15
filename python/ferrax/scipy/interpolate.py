"""Interpolation on grids.

Invariant: grids are read once, on the host where they are known: their points must ascend or
descend strictly.

    >>> import ferrax.scipy.interpolate
    >>> f = ferrax.scipy.interpolate.RegularGridInterpolator((jnp.array([0.0, 1.0, 3.0]),), jnp.array([0.0, 10.0, 30.0]))
    >>> f(jnp.array([2.0, 5.0]))
    Array([20., nan], dtype=float32)
"""

from __future__ import annotations

import functools
import itertools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, numpy as jnp
from .._base.dtypes import is_complex, to_inexact
from ..numpy._support.arguments import as_array, check_arraylike, check_promotion

if TYPE_CHECKING:
    from .._core import Array

__all__ = ["RegularGridInterpolator"]

_METHODS = ("linear", "nearest")


def _places(xi, ndim):
    """xi as an array whose last axis is over the coordinates: an array, or a tuple of one array for
    each.
    """
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]
    if isinstance(xi, tuple):
        check_arraylike("RegularGridInterpolator", *xi)
        return jnp.stack(jnp.broadcast_arrays(*xi), axis=-1)
    xi = as_array("RegularGridInterpolator", xi)
    return xi[:, None] if xi.ndim == 1 and ndim == 1 else xi[None] if xi.ndim == 1 else xi


class RegularGridInterpolator:
    """Interpolates values on a rectilinear grid, whose points need not be equally spaced.

    Args:
        points: one array of m_k points for each of the grid's axes, strictly ascending or
          descending.
        values: an array of shape (m_0, .., m_n, ...).
        method: "linear" between the grid's points (multilinear), or "nearest".
        bounds_error: False: a program cannot raise errors for computed values.
        fill_value: the value outside of the grid; None extrapolates.

    Raises:
        NotImplementedError: for bounds_error.
        ValueError: for another method, points that do not fit the values or are not in order, or a
          fill_value of a type that the values have no place for.

    >>> import ferrax.scipy.interpolate
    >>> x = jnp.array([0.0, 1.0, 2.0])
    >>> f = ferrax.scipy.interpolate.RegularGridInterpolator((x, x), x[:, None] + 10 * x)
    >>> f(jnp.array([[0.5, 1.5]]))
    Array([15.5], dtype=float32)
    """

    def __init__(self, points: Any, values: Any, method: str = "linear", bounds_error: bool = False, fill_value: float = np.nan) -> None:
        if method not in _METHODS:
            raise ValueError(f"method {method!r} is not defined")
        if bounds_error:
            raise NotImplementedError("`bounds_error` takes no effect under JIT")
        check_arraylike("RegularGridInterpolator", *points)
        values = as_array("RegularGridInterpolator", values)
        if len(points) > values.ndim:
            raise ValueError(f"there are {len(points)} point arrays, but values has {values.ndim} dimensions")
        values = values.astype(to_inexact(values.dtype))
        grid = []
        for k, p in enumerate(points):
            p = jnp.asarray(p)
            if p.ndim != 1:
                raise ValueError(f"the points in dimension {k} must be 1-dimensional")
            if p.shape[0] != values.shape[k]:
                raise ValueError(f"there are {p.shape[0]} points and {values.shape[k]} values in dimension {k}")
            if not isinstance(p, _core.Tracer):
                steps = np.diff(np.asarray(p))
                if (steps < 0).all() and steps.size:
                    p, values = p[::-1], jnp.flip(values, k)
                elif not (steps > 0).all():
                    raise ValueError(f"the points in dimension {k} must be strictly ascending or descending")
            grid.append(p)
        if fill_value is not None:
            check_arraylike("RegularGridInterpolator", fill_value)
            if is_complex(jnp.asarray(fill_value).dtype) and not is_complex(values.dtype):
                raise ValueError("fill_value must be either 'None' or of a type compatible with values")
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        self.grid, self.values = tuple(grid), values

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """The values at xi.

        Args:
            xi: float[..., n], places; or a tuple of one array for each axis. With one axis,
              float[m] are m places.
            method: instead of the interpolator's own.

        Returns:
            The values, of xi's shape except for its last axis, and the values' axes that are not
            axes of the grid.

        Raises:
            ValueError: for places of another dimension, or another method.
        """
        method = self.method if method is None else method
        if method not in _METHODS:
            raise ValueError(f"method {method!r} is not defined")
        n = len(self.grid)
        xi = _places(xi, n)
        if xi.ndim == 0:
            raise ValueError("the requested sample points xi must have an axis of coordinates")
        if xi.shape[-1] != n:
            raise ValueError(f"the requested sample points xi have dimension {xi.shape[-1]}, but this RegularGridInterpolator has dimension {n}")
        for grid in self.grid:
            check_promotion(xi, grid)
        if self.fill_value is not None:
            check_promotion(self.values, self.fill_value)
        lead = tuple(xi.shape[:-1])
        rest = tuple(self.values.shape[n:])
        xi = xi.reshape(-1, n)
        axes, outside = [], []
        for k, grid in enumerate(self.grid):
            x, last = xi[:, k], grid.shape[0] - 1
            i = jnp.clip(jnp.searchsorted(grid, x) - 1, 0, max(last - 1, 0))
            lo, hi = grid[i], grid[jnp.minimum(i + 1, last)]
            width = hi - lo
            t = jnp.where(width == 0, 0, (x - lo) / jnp.where(width == 0, 1, width))
            axes.append((i, jnp.minimum(i + 1, last), t))
            outside += [x < grid[0], x > grid[-1]]
        nan = functools.reduce(operator.or_, [jnp.isnan(xi[:, k]) for k in range(n)])
        if method == "nearest":
            y = self.values[tuple([jnp.where(t <= 0.5, i, j) for i, j, t in axes])]
        else:
            column = lambda w: w.reshape(-1, *[1] * len(rest))
            check_promotion(self.values, *[t for _, _, t in axes])
            y = 0
            for corner in itertools.product((0, 1), repeat=n):
                weight = functools.reduce(operator.mul, [t if c else 1 - t for c, (_, _, t) in zip(corner, axes, strict=True)])
                y = y + self.values[tuple([j if c else i for c, (i, j, _) in zip(corner, axes, strict=True)])] * column(weight)
        spread = lambda p: p.reshape(-1, *[1] * len(rest))
        if self.fill_value is not None:
            y = jnp.where(spread(functools.reduce(operator.or_, outside)), jnp.asarray(self.fill_value).astype(y.dtype), y)
        y = jnp.where(spread(nan), jnp.asarray(np.nan, y.dtype), y)
        return y.reshape(*lead, *rest)
