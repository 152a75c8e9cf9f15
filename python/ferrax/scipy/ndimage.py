"""Arrays read between their elements.

Invariant: `mode` defines the values outside; derivatives pass through both coordinates and
elements.

    >>> import ferrax.scipy.ndimage
    >>> ferrax.scipy.ndimage.map_coordinates(jnp.array([0.0, 10.0, 20.0]), [jnp.array([0.5, 1.25])], order=1)
    Array([ 5. , 12.5], dtype=float32)
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence

import numpy as np

from .. import numpy as jnp
from .._base.dtypes import is_bool, is_complex, is_inexact, is_integer
from .._core import Array
from ..numpy._support.arguments import as_array, check_promotion, jitted
from ..typing import ArrayLike

__all__ = ["map_coordinates"]


def _mirrored(index, size):
    """Reflected about the centres of the outermost of `size` elements."""
    period = max(2 * (size - 1), 1)
    reach = size - 1
    return abs((index + reach) % period - reach)


_INSIDE = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirrored,
    # about the edges of the outermost: mirrored in halves of an element
    "reflect": lambda index, size: jnp.floor_divide(_mirrored(2 * index + 1, 2 * size + 1) - 1, 2),
}


def _nodes(coordinate, order):
    """(index, weight) of each element that counts, along one axis."""
    if order == 0:
        return [(jnp.floor(coordinate + 0.5).astype(np.int32), None)]
    below = jnp.floor(coordinate)
    upper = coordinate - below
    index = below.astype(np.int32)
    return [(index, 1 - upper), (index + 1, upper)]


@jitted("map_coordinates", static=("order", "mode"))
def _map(x, coordinates, cval, order, mode):
    axes = []
    for coordinate, size in zip(coordinates, x.shape, strict=True):
        inside = lambda i, size=size: (i >= 0) & (i < size) if mode == "constant" else None
        axes.append([(_INSIDE[mode](i, size), inside(i), w) for i, w in _nodes(coordinate, order)])
    terms = []
    for corner in itertools.product(*axes):
        value = x[tuple([index for index, _, _ in corner])]
        valid = [v for _, v, _ in corner if v is not None]
        if valid:
            value = jnp.where(functools.reduce(operator.and_, valid), value, cval)
        weights = [w for _, _, w in corner if w is not None]
        terms.append(functools.reduce(operator.mul, weights) * value if weights else value)
    y = functools.reduce(operator.add, terms)
    if is_integer(x.dtype) and not is_integer(y.dtype):
        y = jnp.sign(y) * jnp.floor(abs(y) + 0.5)
    return y.astype(x.dtype)


def map_coordinates(input: ArrayLike, coordinates: Sequence[ArrayLike], order: int, mode: str = "constant", cval: ArrayLike = 0.0) -> Array:
    """The elements of `input` at places between its elements, by nearest neighbours or linear
    interpolation.

    Args:
        input: an array of any dtype, which is also the result's; integers are rounded, halves away
          from zero.
        coordinates: one array for each axis of input, real, broadcast together: where along that
          axis.
        order: 0 for the nearest element, 1 for linear interpolation between the two (along each
          axis) around a place.
        mode: the elements outside: "constant" (`cval`), "nearest" (the outermost element), "wrap"
            (the array again), "mirror" (the array turned about its outermost elements) or "reflect"
            (about their edges).
        cval: the element outside where mode is "constant".

    Returns:
        An array of the coordinates' shape.

    Raises:
        ValueError: unless there is one array of coordinates for each axis.
        NotImplementedError: for another order or mode.

    >>> import ferrax.scipy.ndimage
    >>> ferrax.scipy.ndimage.map_coordinates(jnp.arange(3.0), [jnp.array([-1.0, 3.0])], order=1, mode="wrap")
    Array([2., 0.], dtype=float32)
    """
    x = as_array("map_coordinates", jnp.asarray(input))
    where = [as_array("map_coordinates", jnp.asarray(c)) for c in coordinates]
    cval = jnp.asarray(cval).astype(x.dtype)
    if len(where) != x.ndim:
        raise ValueError(f"coordinates must be a sequence of length input.ndim, but {len(where)} != {x.ndim}")
    if mode not in _INSIDE:
        modes = ", ".join(map(repr, _INSIDE))
        raise NotImplementedError(f"jax.scipy.ndimage.map_coordinates does not yet support mode {mode}. Currently supported modes are {{{modes}}}.")
    if order not in (0, 1):
        raise NotImplementedError("jax.scipy.ndimage.map_coordinates currently requires order<=1")
    for c in where:
        if is_complex(c.dtype):
            raise TypeError(f"floor does not accept dtype {c.dtype}. Accepted dtypes are subtypes of floating.")
    if is_inexact(x.dtype):
        check_promotion(x, *where)
    if is_bool(x.dtype):
        return _map(x.astype(np.int8), where, cval.astype(np.int8), order=order, mode=mode).astype(bool)
    where = [c.astype(float) if is_integer(c.dtype) or is_bool(c.dtype) else c for c in where]
    return _map(x, where, cval, order=operator.index(order), mode=mode)
