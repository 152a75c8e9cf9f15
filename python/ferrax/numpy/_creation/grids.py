"""Grids of coordinates: meshgrid, indices, and the objects that are indexed to make them: mgrid,
ogrid, r_, c_, s_, index_exp.

Invariant: sizes are known when traced; a slice with a complex step counts points instead of
stepping.

    >>> jnp.r_[0:3, 7]
    Array([0, 1, 2, 7], dtype=int32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy import index_exp, s_

from ... import _core
from ..._base.dtypes import requested
from ..._base.shapes import canonicalize_shape
from ..._core import bind
from .._manipulation.joining import concatenate, stack
from .._support.arguments import check_arraylike, convert
from .arrays import array
from .filled import zeros
from .ranges import arange, linspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """Coordinate arrays of the grid that vectors span.

    Args:
        *xi: vectors, or scalars as vectors of size 1.
        copy: must be True.
        sparse: bool; size 1 along the axes of the other vectors, to be broadcast.
        indexing: "xy" (the first two axes are swapped) or "ij".

    Returns:
        List of arrays, one for each vector, of its dtype.

    Raises:
        ValueError: for arrays of rank 2 and above, another `indexing`, or copy=False.

    >>> jnp.meshgrid(jnp.arange(2), jnp.arange(2))
    [Array([[0, 1],
           [0, 1]], dtype=int32), Array([[0, 0],
           [1, 1]], dtype=int32)]
    """
    check_arraylike("meshgrid", *xi)
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    args = [_core.asarray(x) for x in xi]
    if any(x.ndim != 1 for x in args):
        raise ValueError(f"Arguments to jax.numpy.meshgrid must be 1D, got shapes {[tuple(x.shape) for x in args]}")
    if indexing == "xy" and len(args) >= 2:
        args[0], args[1] = args[1], args[0]
    shape = [1 if sparse else x.shape[0] for x in args]
    out = []
    for i, x in enumerate(args):
        s = list(shape)
        s[i] = x.shape[0]
        out.append(bind("broadcast_in_dim", x, shape=tuple(s), broadcast_dimensions=(i,)) if tuple(s) != tuple(x.shape) else x)
    if indexing == "xy" and len(args) >= 2:
        out[0], out[1] = out[1], out[0]
    return out


@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: Literal[False] = False) -> Array: ...


@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, *, sparse: Literal[True]) -> tuple[Array, ...]: ...


@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Array | tuple[Array, ...]: ...


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Array | tuple[Array, ...]:
    """The index of every position of a grid.

    Args:
        dimensions: sequence of ints: the grid's sizes.
        dtype: dtype of the indices; None: the default integer.
        sparse: bool; size 1 along the other axes, to be broadcast.

    Returns:
        Array of shape (len(dimensions), *dimensions); a tuple of arrays if `sparse`.

    >>> jnp.indices((2, 2))
    Array([[[0, 0],
            [1, 1]],
    <BLANKLINE>
           [[0, 1],
            [0, 1]]], dtype=int32)
    """
    dimensions = canonicalize_shape(dimensions)
    dtype = requested("indices", dtype, int)
    n = len(dimensions)
    shape = (1,) * n
    out = []
    for i, size in enumerate(dimensions):
        x = bind("iota", dtype=dtype, shape=(size,), dimension=0)
        s = shape[:i] + (size,) + shape[i + 1 :] if sparse else dimensions
        out.append(bind("broadcast_in_dim", x, shape=tuple(s), broadcast_dimensions=(i,)))
    if sparse:
        return tuple(out)
    return bind("stack", *out, axis=0) if out else zeros((0,), dtype)


def _range(s):
    start, stop, step = s.start or 0, s.stop, 1 if s.step is None else s.step
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


class _Grid:
    """Coordinates of a grid given by slices: full arrays stacked, or one vector for each axis if
    `sparse`.
    """

    __slots__ = ("name", "sparse")

    __iter__ = None  # `list(jnp.mgrid)` would index it without end

    def __init__(self, name, sparse):
        self.name, self.sparse = name, sparse

    def __repr__(self):
        return f"<ferrax.numpy.{self.name}>"

    def __getitem__(self, key: slice | tuple[Any, ...]) -> Array | list[Array]:
        if isinstance(key, slice):
            return _range(key)
        parts = _core.promote_dtypes(*[_range(k) for k in key])
        out = meshgrid(*parts, indexing="ij", sparse=self.sparse)
        return out if self.sparse else (stack(out, 0) if out else array([]))


class _Joiner:
    """Joins the entries of its index: ranges, scalars and arrays, along `axis`."""

    __slots__ = ("axis", "name", "ndmin", "trans1d")
    __iter__ = None  # `list(jnp.r_)` would index it without end

    def __init__(self, name, axis, ndmin, trans1d):
        self.name, self.axis, self.ndmin, self.trans1d = name, axis, ndmin, trans1d

    def __repr__(self):
        return f"<ferrax.numpy.{self.name}>"

    def __getitem__(self, key: Any) -> Array:
        key = key if isinstance(key, tuple) else (key,)
        axis, ndmin, trans1d, matrix = self.axis, self.ndmin, self.trans1d, None
        if isinstance(key[0], str):
            directive, key = key[0].strip().lower(), key[1:]
            if directive in ("r", "c"):
                matrix = directive
            else:
                try:
                    numbers = [int(n) for n in directive.split(",")]
                except ValueError:
                    raise ValueError(f"could not understand directive {directive!r}") from None
                if len(numbers) > 3:
                    raise ValueError("could not understand directive")
                axis = numbers[0]
                ndmin = numbers[1] if len(numbers) > 1 else ndmin
                trans1d = numbers[2] if len(numbers) > 2 else trans1d
        out = []
        for k in key:
            x = _range(k) if isinstance(k, slice) else k
            small = np.ndim(x)
            x = array(x, copy=False, ndmin=ndmin) if small < ndmin or not isinstance(x, _core.Array) else x
            if small < ndmin and trans1d != -1 and small:
                x = _place(x, small, ndmin, trans1d)
            out.append(x)
        arrays = [convert(x, d) for d in [_core.result_type(*out)] for x in out] if matrix else out
        joined = concatenate(arrays, axis=axis)
        if matrix:
            joined = joined[None] if matrix == "r" and joined.ndim == 1 else joined[:, None] if joined.ndim == 1 else joined
        return joined


def _place(x, small, ndmin, trans1d):
    """Moves the original axes of an array that got leading axes to position `trans1d`."""
    k = trans1d + ndmin + 1 if trans1d < 0 else trans1d
    order = list(range(ndmin))
    original, new = order[ndmin - small :], order[: ndmin - small]
    permutation = tuple(new[:k] + original + new[k:])
    return x if permutation == tuple(order) else bind("transpose", x, permutation=permutation)


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


class RClass(_Joiner):
    """The type of `r_`, which joins along the first axis."""

    __slots__ = ()

    def __init__(self):
        super().__init__("r_", axis=0, ndmin=1, trans1d=-1)


class CClass(_Joiner):
    """The type of `c_`, which joins along the last axis."""

    __slots__ = ()

    def __init__(self):
        super().__init__("c_", axis=-1, ndmin=2, trans1d=0)


r_ = RClass()
c_ = CClass()

__all__ = ["c_", "index_exp", "mgrid", "ogrid", "r_", "s_"]
