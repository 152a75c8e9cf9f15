"""Canonical axes and shapes: axes counted from the front, shapes as tuples of ints.

Invariant: all functions parse axes and shapes here; traced values are refused with JAX's message.

    >>> canonicalize_axes((-1, 0), 3)
    (2, 0)
"""

from __future__ import annotations

import math
import operator

import numpy as np

from .. import _core
from ..errors import ConcretizationTypeError


class Shaped:
    """The rank and the size of a class with an attribute `shape`, a tuple of ints."""

    __slots__ = ()
    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(math.prod(self.shape))


def _check_static(axis):
    if isinstance(axis, _core.Tracer):
        raise ConcretizationTypeError(axis, "The axis argument must be known statically.")


def canonicalize_axis(axis, ndim) -> int:
    """The axis counted from the front. Raises ValueError out of bounds."""
    _check_static(axis)
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis + ndim if axis < 0 else axis


def hashable_axes(axis):
    """An axis or axes as the key of a trace: several (an array, a list, a set ..) as a tuple of
    ints, an array that is one number as an int.
    """
    if axis is None or isinstance(axis, (int, str, _core.Tracer)):
        return axis
    if getattr(axis, "ndim", 1) == 0 or not hasattr(axis, "__iter__"):
        return operator.index(axis)
    return tuple([a if isinstance(a, (str, _core.Tracer)) else operator.index(a) for a in axis])


def listed_axes(axis, ndim) -> tuple[int, ...]:
    """One axis or several (a sequence, an array, a range), counted from the front; repeats stay."""
    _check_static(axis)
    if not isinstance(axis, (tuple, list)):
        try:
            return (canonicalize_axis(axis, ndim),)
        except TypeError:
            pass
    return tuple([canonicalize_axis(a, ndim) for a in axis])


def canonicalize_axes(axis, ndim) -> tuple[int, ...]:
    """One axis, several, or None for all, as a tuple counted from the front.

    Raises ValueError for repeats.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = listed_axes(axis, ndim)
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {tuple(axis)}")
    return axes


def static_size(n) -> int:
    """A size as an int; a symbolic size of a function that is being exported is unchanged."""
    return n if n.__class__ is int or hasattr(n, "slicing") else operator.index(n)


def whole(n) -> int:
    """An integer, or a float that is whole, as an int. Raises TypeError for another value."""
    if isinstance(n, (float, np.floating, np.ndarray, _core.Array)) and getattr(getattr(n, "dtype", None), "kind", "f") == "f" and float(n).is_integer():
        return int(n)
    return operator.index(n)


def canonicalize_shape(shape, context="") -> tuple[int, ...]:
    """A size or a sequence of sizes as a tuple of ints.

    Raises TypeError for a value that is not static.
    """
    if not isinstance(shape, (tuple, list)):
        scalar = isinstance(shape, str) or not hasattr(shape, "__iter__") or getattr(shape, "ndim", 1) == 0
        shape = (shape,) if scalar else tuple(shape)
    try:
        return tuple([static_size(n) for n in shape])
    except TypeError:
        pass
    message = f"Shapes must be 1D sequences of concrete values of integer type, got {tuple(shape)}." + (f" {context}" if context else "")
    if any(isinstance(n, _core.Tracer) for n in shape):
        message += "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions."
    origins = "".join(n._origin_msg() for n in shape if isinstance(n, _core.Tracer))
    raise TypeError(message + origins)


def common_shape(*shapes) -> tuple[int, ...]:
    """The shape to which arrays of these shapes broadcast.

    Raises ValueError, with all shapes, if there is none.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={list(map(tuple, shapes))}") from None
