"""Sorting.

Invariant: nan sorts last; sorting is stable unless the arguments say otherwise; descending order
also keeps the order of equal elements.

    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
"""

from __future__ import annotations

import builtins
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._base.dtypes import canonicalize_dtype, is_complex, is_inexact, is_unsigned, refuse_sorted_keys, requested, to_complex
from ..._base.shapes import canonicalize_axis
from ..._core import bind
from ...lax import index_in_dim
from .._creation.filled import ones
from .._manipulation.shaping import moveaxis
from .._support import sections
from .._support.arguments import Array, as_array, check_arraylike, constant, convert, jitted, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...typing import ArrayLike


def _flat(a):
    return a if a.ndim == 1 else bind("reshape", a, new_sizes=(a.size,), dimensions=None)


@jitted("sort", static=("axis", "stable", "descending"))
def _sort(a, axis, stable, descending):
    if axis is None:
        a, axis = _flat(a), 0
    axis = canonicalize_axis(axis, a.ndim)
    refuse_sorted_keys(a.dtype)
    out = bind("sort", a, dimension=axis, is_stable=stable, num_keys=1)
    out = out[0] if isinstance(out, (tuple, list)) else out
    return bind("rev", out, dimensions=(axis,)) if descending else out


def _refuse(name, kind, order):
    if kind is not None:
        raise TypeError(f"'kind' argument to {name} is not supported. Use stable=True or stable=False to specify sort stability.")
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")


def sort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True, descending: bool = False) -> Array:
    """`a` sorted along an axis, nan last.

    Args:
        a: array of numbers or bool; complex numbers are sorted by real, then imaginary part.
        axis: int, or None to flatten a first.
        kind, order: not supported; must be None.
        stable: bool; equal elements keep their order.
        descending: bool; the largest first.

    Returns:
        Array of a's dtype.

    Raises:
        TypeError: for `kind` or `order`.
        ValueError: for an axis out of bounds.

    >>> jnp.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    _refuse("sort", kind, order)
    a = as_array("sort", a)
    return _sort(a, axis=None if axis is None else operator.index(axis), stable=builtins.bool(stable), descending=builtins.bool(descending))


@jitted("argsort", static=("axis", "stable", "descending", "dtype"))
def _argsort(a, axis, stable, descending, dtype):
    if axis is None:
        a, axis = _flat(a), 0
    axis = canonicalize_axis(axis, a.ndim)
    refuse_sorted_keys(a.dtype)
    index = bind("iota", dtype=dtype, shape=tuple(a.shape), dimension=axis)
    if descending:
        # Sorting the reversed array and reversing back keeps equal elements in order.
        a, index = bind("rev", a, dimensions=(axis,)), bind("rev", index, dimensions=(axis,))
    index = bind("sort", a, index, dimension=axis, is_stable=stable, num_keys=1)[1]
    return bind("rev", index, dimensions=(axis,)) if descending else index


def argsort(
    a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True, descending: bool = False, dtype: Any = None
) -> Array:
    """The indices that sort a along an axis.

    Args:
        a: array of numbers or bool; complex numbers are sorted by real, then imaginary part.
        axis: int, or None to flatten a first.
        kind, order: not supported; must be None.
        stable: bool; equal elements keep their order.
        descending: bool; the largest first.
        dtype: dtype of the indices; None: the default integer.

    Returns:
        Array of indices, of a's shape.

    Raises:
        TypeError: for `kind` or `order`.
        ValueError: for an axis out of bounds, a scalar's too.

    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _refuse("argsort", kind, order)
    a = as_array("argsort", a)
    dtype = requested("argsort", dtype, int)
    return _argsort(a, axis=None if axis is None else operator.index(axis), stable=builtins.bool(stable), descending=builtins.bool(descending), dtype=dtype)


@jitted("lexsort", static=("axis",))
def _lexsort(keys, axis):
    if isinstance(keys, Array):
        keys = [index_in_dim(keys, i, keepdims=False) for i in range(keys.shape[0])]
    keys = [k if isinstance(k, Array) else _core.asarray(k) for k in keys]
    if keys[0].ndim == 0:
        return _core.asarray(np.zeros((), canonicalize_dtype(int)))
    axis = canonicalize_axis(axis, keys[0].ndim)
    refuse_sorted_keys(*[k.dtype for k in keys])
    index = bind("iota", dtype=canonicalize_dtype(int), shape=tuple(keys[0].shape), dimension=axis)
    return bind("sort", *keys[::-1], index, dimension=axis, is_stable=True, num_keys=len(keys))[-1]


def lexsort(keys: Array | np.ndarray | Sequence[ArrayLike], axis: int = -1) -> Array:
    """The indices that sort by several keys, the last first.

    Args:
        keys: sequence of arrays of one shape, or an array whose rows are the keys.
        axis: int.

    Returns:
        Array of the default integer, of one key's shape.

    Raises:
        TypeError: there are no keys.
        ValueError: if their shapes differ.

    >>> jnp.lexsort((jnp.array([2, 1, 0]), jnp.array([1, 0, 1])))
    Array([1, 2, 0], dtype=int32)
    """
    if isinstance(keys, (Array, np.ndarray)):
        keys = _core.asarray(keys)
        if keys.ndim == 0 or keys.shape[0] == 0:
            raise TypeError("need sequence of keys with len > 0 in lexsort")
    else:
        keys = tuple(keys)
        if not keys:
            raise TypeError("need sequence of keys with len > 0 in lexsort")
        check_arraylike("lexsort", *keys)
        if len({shape_of(k) for k in keys}) > 1:
            raise ValueError("all keys need to be the same shape")
    return _lexsort(keys, axis=operator.index(axis))


@jitted("sort_complex")
def _sort_complex(a):
    a = sort_last(a)
    return a if is_complex(a.dtype) else convert(a, to_complex(a.dtype))


def sort_last(a):
    """`a` sorted along its last axis, as one equation."""
    out = bind("sort", a, dimension=a.ndim - 1, is_stable=True, num_keys=1)
    return out[0] if isinstance(out, (tuple, list)) else out


def sort_complex(a: ArrayLike) -> Array:
    """`a` sorted by real, then imaginary part, as complex.

    Args:
        a: array of numbers; sorted along the last axis.

    Returns:
        Complex array of a's shape.

    >>> jnp.sort_complex(jnp.array([2j, 1j]))
    Array([0.+1.j, 0.+2.j], dtype=complex64)
    """
    return _sort_complex(as_array("sort_complex", a))


def _reversed_order(a):
    # The largest of -a are the smallest of a; unsigned numbers and bool have no negative.
    if a.dtype == np.bool_:
        return bind("not", a)
    return bind("sub", constant(-1 if not is_unsigned(a.dtype) else np.iinfo(a.dtype).max, a.dtype), a) if is_unsigned(a.dtype) else bind("neg", a)


def _partitioned(name, a, kth, axis):
    """The array, position and axis of a partition: a is flattened if axis is None, and the others
    are made nonnegative.
    """
    a = as_array(name, a)
    if is_complex(a.dtype):
        raise NotImplementedError(f"jnp.{name} for complex dtype is not implemented.")
    if axis is None:
        a, axis = _flat(a), 0
    axis = canonicalize_axis(axis, a.ndim)
    return a, canonicalize_axis(kth, a.shape[axis]), axis


@jitted("partition", static=("kth", "axis"))
def _partition(a, kth, axis):
    n = a.shape[axis]
    low = _reversed_order(bind("top_k", _reversed_order(a), k=kth + 1, axis=axis)[0])
    high = bind("top_k", a, k=n - kth - 1, axis=axis)[0]
    return bind("concatenate", low, high, dimension=axis)


@sections.partition
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """`a` with the kth element along `axis` where sorting would put it, smaller ones before and
    larger ones after, in any order.

    >>> jnp.partition(jnp.array([3, 1, 2]), 1)
    Array([1, 2, 3], dtype=int32)
    """
    a, kth, axis = _partitioned("partition", a, kth, axis)
    return _partition(a, kth=kth, axis=axis)


@jitted("argpartition", static=("kth", "axis"))
def _argpartition(a, kth, axis):
    n = a.shape[axis]
    low = bind("top_k", _reversed_order(a), k=kth + 1, axis=axis)[1]
    # The others, in order of position: mark the selected elements and take the rest.
    marks = ones(a.shape)
    if a.ndim == 1:
        marks = marks.at[low].set(0.0)
    else:
        rows = moveaxis(low, axis, -1)
        table = moveaxis(marks, axis, -1)
        lead = tuple([_core.asarray(i) for i in np.ix_(*[np.arange(s) for s in rows.shape[:-1]], np.arange(1))[:-1]])
        marks = moveaxis(table.at[(*lead, rows)].set(0.0), -1, axis)
    high = bind("top_k", marks, k=n - kth - 1, axis=axis)[1]
    return bind("concatenate", low, high, dimension=axis)


@sections.partition
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices that partition a (see `partition`) along `axis`.

    >>> jnp.argpartition(jnp.array([3, 1, 2]), 0)[0]
    Array(1, dtype=int32)
    """
    a, kth, axis = _partitioned("argpartition", a, kth, axis)
    if not is_inexact(a.dtype) and a.dtype.itemsize < 4:
        a = convert(a, np.int32)
    return _argpartition(a, kth=kth, axis=axis)
