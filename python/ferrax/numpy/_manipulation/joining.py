"""Joining arrays, and splitting them again.

Invariant: values change only by promotion of dtypes; a part is a slice.

    >>> jnp.stack([jnp.zeros(3), jnp.ones(3)]).shape
    (2, 3)
"""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import requested
from ..._base.shapes import canonicalize_axis
from ..._core import bind
from .._support import sections
from .._support.arguments import (
    Array,
    as_array,
    check_arraylike,
    check_promotion,
    concrete_or_error,
    convert,
    converted,
    jitted,
    ndim_of,
    shape_of,
    unsupported,
)
from .shaping import atleast_1d, atleast_2d, atleast_3d, moveaxis, ravel, reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...typing import ArrayLike, DTypeLike


def _sequence(arrays):
    if isinstance(arrays, (np.ndarray, Array)):
        return [arrays[i] for i in range(arrays.shape[0])] if arrays.ndim else [arrays]
    return list(arrays)


def concatenate(arrays: np.ndarray | Array | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """The arrays joined along an axis.

    Args:
        arrays: sequence of arrays of one rank, with the same sizes along the other axes; or an
          array, which is split along its first axis.
        axis: int, or None to flatten them first.
        dtype: dtype of the result; None: the promoted one.

    Returns:
        Array of the common rank.

    Raises:
        ValueError: there are no arrays, or one is a scalar.
        TypeError: if ranks or sizes differ.

    >>> jnp.concatenate([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    if isinstance(arrays, (np.ndarray, Array)) and ndim_of(arrays) > 1 and axis is not None and dtype is None:
        a = _core.asarray(arrays)
        axis = canonicalize_axis(axis, a.ndim - 1)
        moved = moveaxis(a, 0, axis)
        return reshape(moved, (*a.shape[1 : axis + 1], a.shape[0] * a.shape[axis + 1], *a.shape[axis + 2 :]))
    arrays = _sequence(arrays)
    check_arraylike("concatenate", *arrays)
    arrays = [converted(a) for a in arrays]
    if not len(arrays):
        raise ValueError("Need at least one array to concatenate.")
    if axis is None:
        return concatenate([ravel(a) for a in arrays], axis=0, dtype=dtype)
    if ndim_of(arrays[0]) == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    axis = canonicalize_axis(axis, ndim_of(arrays[0]))
    if dtype is None:
        arrays = _core.promote_dtypes(*arrays)
    else:
        dtype = requested("asarray", dtype)
        arrays = [convert(as_array("concatenate", a), dtype) for a in arrays]
    ranks = {a.ndim for a in arrays}
    if len(ranks) > 1:
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: got {', '.join(str(tuple(a.shape)) for a in arrays)}.")
    return arrays[0] if len(arrays) == 1 else bind("concatenate", *arrays, dimension=axis)


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """The same as `concatenate`.

    Args:
        arrays: sequence of arrays of one rank, with the same sizes along the other axes.
        axis: int, or None to flatten them first.

    Returns:
        Array of the common rank and the promoted dtype.

    Raises:
        ValueError: there are no arrays, or one is a scalar.
        TypeError: if ranks or sizes differ.

    >>> jnp.concat([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    if isinstance(arrays, (list, tuple)) and arrays:
        check_promotion(*arrays)
    return concatenate(arrays, axis=axis)


def stack(arrays: np.ndarray | Array | Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """The arrays, all of one shape, joined along a new axis.

    Args:
        arrays: sequence of arrays of one shape.
        axis: int, position of the new axis in the result.
        out: not supported; must be None.
        dtype: dtype of the result; None: the promoted one.

    Returns:
        Array with one axis more.

    Raises:
        ValueError: there are no arrays, or their shapes differ.
        NotImplementedError: if `out` is given.

    >>> jnp.stack([jnp.arange(2), jnp.arange(2)])
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    unsupported("jnp.stack", out=out)
    dtype = requested("asarray", dtype)
    if isinstance(arrays, (np.ndarray, Array)):
        a = convert(_core.asarray(arrays), dtype) if dtype is not None else _core.asarray(arrays)
        return moveaxis(a, 0, canonicalize_axis(axis, a.ndim))
    arrays = list(arrays)
    if not arrays:
        raise ValueError("Need at least one array to stack.")
    check_arraylike("stack", *arrays)
    arrays = [converted(a) for a in arrays]
    shapes = [shape_of(a) for a in arrays]
    if any(len(s) != len(shapes[0]) for s in shapes):
        raise ValueError(f"Cannot stack arrays with different numbers of dimensions: got {', '.join(map(str, shapes))}.")
    if any(s != shapes[0] for s in shapes):
        raise ValueError(f"All input arrays must have the same shape. Got {', '.join(str(tuple(x.shape)) for x in arrays)}.")
    axis = canonicalize_axis(axis, len(shapes[0]) + 1)
    arrays = _core.promote_dtypes(*arrays) if dtype is None else [convert(_core.asarray(a), dtype) for a in arrays]
    return bind("stack", *arrays, axis=axis)


def _rows(name, tup, fun, dtype=None):
    tup = _sequence(tup)
    check_arraylike(name, *tup)
    if dtype is None and len(tup) > 0:
        check_promotion(*tup)
    return [fun(a) for a in tup]


@sections.stack
def vstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """The arrays, vectors as rows, joined along the first axis.

    >>> jnp.vstack([jnp.arange(2), jnp.arange(2)])
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    return concatenate(_rows("vstack", tup, atleast_2d, dtype), axis=0, dtype=dtype)


@sections.stack
def hstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """The arrays joined along the second axis, vectors along their only one.

    >>> jnp.hstack([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    arrays = _rows("hstack", tup, atleast_1d, dtype)
    return concatenate(arrays, axis=0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype)


@sections.stack
def dstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """The arrays joined along the third axis.

    >>> jnp.dstack([jnp.arange(2), jnp.arange(2)])
    Array([[[0, 0],
            [1, 1]]], dtype=int32)
    """
    return concatenate(_rows("dstack", tup, atleast_3d, dtype), axis=2, dtype=dtype)


def column_stack(tup: np.ndarray | Array | Sequence[ArrayLike]) -> Array:
    """Vectors as columns, and matrices, joined along the second axis.

    Args:
        tup: sequence of vectors and matrices with one number of rows.

    Returns:
        Matrix of the promoted dtype.

    Raises:
        TypeError: if the numbers of rows differ.

    >>> jnp.column_stack([jnp.arange(2), jnp.arange(2)])
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    return concatenate(_rows("column_stack", tup, lambda a: atleast_2d(a).T if ndim_of(a) < 2 else as_array("column_stack", a)), axis=1)


def block(arrays: ArrayLike | list[ArrayLike]) -> Array:
    """Concatenates nested lists of arrays: innermost lists along the last axis, the next along the
    one before.

    Args:
        arrays: array, or nested lists of arrays of one depth.

    Returns:
        Array of the promoted dtype.

    Raises:
        ValueError: for uneven nesting.

    >>> jnp.block([[jnp.ones((1, 1)), jnp.zeros((1, 1))]])
    Array([[1., 0.]], dtype=float32)
    """
    leaves, rebuild, depth = _block_structure(arrays)
    check_arraylike("block", *leaves)
    check_promotion(*leaves)
    run = jitted("block", (), lambda *xs: _block(rebuild(list(xs)), depth))
    return run(*leaves)


def _block_structure(arrays):
    leaves = []

    def depth_of(x):
        if isinstance(x, tuple):
            raise ValueError(f"jax.numpy.block does not allow tuples, got {x}")
        if isinstance(x, list):
            if not x:
                raise ValueError("jax.numpy.block does not allow empty list arguments")
            depths = {depth_of(v) for v in x}
            if len(depths) > 1:
                raise ValueError("Mismatched list depths in jax.numpy.block")
            return depths.pop() + 1
        leaves.append(x)
        return 0

    depth = depth_of(arrays)

    def rebuild(xs):
        xs = iter(xs)
        build = lambda x: [build(v) for v in x] if isinstance(x, list) else next(xs)
        return build(arrays)

    return leaves, rebuild, depth


def _block(x, depth):
    rank = max([depth] + [v.ndim for v in _flatten_list(x)])

    def build(x, level):
        if isinstance(x, list):
            return concatenate([build(v, level + 1) for v in x], axis=rank - depth + level)
        return (
            x
            if x.ndim == rank
            else bind("broadcast_in_dim", x, shape=(1,) * (rank - x.ndim) + tuple(x.shape), broadcast_dimensions=tuple(range(rank - x.ndim, rank)))
        )

    return build(x, 0)


def _flatten_list(x):
    return [v for y in x for v in _flatten_list(y)] if isinstance(x, list) else [x]


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of x along `axis`, as a tuple.

    Args:
        x: array of rank 1 or more.
        axis: int.

    Returns:
        Tuple of arrays of x's shape without `axis`.

    Raises:
        ValueError: for scalars.

    >>> jnp.unstack(jnp.array([1, 2]))
    (Array(1, dtype=int32), Array(2, dtype=int32))
    """
    x = as_array("unstack", x)
    if x.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed.")
    return tuple(bind("unstack", x, axis=canonicalize_axis(axis, x.ndim)))


def _split(name, ary, indices_or_sections, axis):
    ary = as_array(name, ary)
    axis = canonicalize_axis(axis, ary.ndim)
    n = ary.shape[axis]
    if isinstance(indices_or_sections, (tuple, list)) or (hasattr(indices_or_sections, "ndim") and ndim_of(indices_or_sections) > 0):
        points = [
            operator.index(concrete_or_error(i, f"in jax.numpy.{name} argument 1")[()]) if isinstance(i, Array) else operator.index(i)
            for i in indices_or_sections
        ]
        points = [min(max(p + n if p < 0 else p, 0), n) for p in points]
        bounds = [0, *points, n]
        sizes = [b - a for a, b in itertools.pairwise(bounds)]
        if any(n < 0 for n in sizes):
            raise ValueError(f"Sizes passed to split must be nonnegative, got {sizes}")
    else:
        sections = int(
            concrete_or_error(indices_or_sections, f"in jax.numpy.{name} argument 1")[()] if isinstance(indices_or_sections, Array) else indices_or_sections
        )
        part, rest = divmod(n, sections)
        if rest and name != "array_split":
            raise ValueError(f"array split does not result in an equal division: rest is {rest}")
        sizes = [part + 1] * rest + [part] * (sections - rest)
    return list(bind("split", ary, sizes=tuple(sizes), axis=axis))


def split(ary: ArrayLike, indices_or_sections: Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """`ary` cut along `axis`, into equal parts or at the given indices.

    Args:
        ary: array.
        indices_or_sections: int, the number of equal parts; or a sequence of ints: where to cut.
        axis: int.

    Returns:
        List of arrays.

    Raises:
        ValueError: if the parts would be unequal.

    >>> jnp.split(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: ArrayLike, indices_or_sections: Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """`split` that allows unequal parts: the first ones are longer by 1.

    Args:
        ary: array.
        indices_or_sections: int, the number of parts; or a sequence of ints: where to cut.
        axis: int.

    Returns:
        List of arrays.

    >>> jnp.array_split(jnp.arange(3), 2)
    [Array([0, 1], dtype=int32), Array([2], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis)


@sections.split
def vsplit(ary: ArrayLike, indices_or_sections: Sequence[int] | ArrayLike) -> list[Array]:
    """`split` along the first axis.

    >>> jnp.vsplit(jnp.ones((2, 1)), 2)
    [Array([[1.]], dtype=float32), Array([[1.]], dtype=float32)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


@sections.split
def hsplit(ary: ArrayLike, indices_or_sections: Sequence[int] | ArrayLike) -> list[Array]:
    """`split` along the second axis (the first, for vectors).

    >>> jnp.hsplit(jnp.arange(4), [1])
    [Array([0], dtype=int32), Array([1, 2, 3], dtype=int32)]
    """
    return _split("hsplit", ary, indices_or_sections, 0 if ndim_of(ary) == 1 else 1)


@sections.split
def dsplit(ary: ArrayLike, indices_or_sections: Sequence[int] | ArrayLike) -> list[Array]:
    """`split` along the third axis.

    >>> jnp.dsplit(jnp.ones((1, 1, 2)), 2)
    [Array([[[1.]]], dtype=float32), Array([[[1.]]], dtype=float32)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)
