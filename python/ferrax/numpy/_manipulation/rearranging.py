"""Elements repeated and moved about: tile, repeat, flip, rot90, roll.

Invariant: no element changes value, and sizes are known when traced.

    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.shapes import canonicalize_axis, hashable_axes, listed_axes
from ..._core import bind
from ..._sharding.parts import sharded
from ...lax import dynamic_slice_in_dim, slice_in_dim
from .._creation.arrays import array
from .._creation.filled import zeros
from .._indexing.taking import take
from .._math.arithmetic import remainder
from .._reductions.cumulative import cumsum
from .._support.arguments import Array, as_array, check_arraylike, concrete_or_error, is_arraylike, jitted, ndim_of
from .joining import concatenate
from .shaping import broadcast_to, ravel, reshape, transpose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...sharding import NamedSharding, PartitionSpec
    from ...typing import ArrayLike


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """`A` repeated along each axis.

    Args:
        A: array.
        reps: int or sequence of ints: how often along each axis; missing axes are added in front.

    Returns:
        Array of A's dtype, each size times its repeats.

    >>> jnp.tile(jnp.array([1, 2]), 2)
    Array([1, 2, 1, 2], dtype=int32)
    """
    A = as_array("tile", A)
    reps = (reps,) if isinstance(reps, (int, np.integer)) or ndim_of(reps) == 0 else tuple(reps)
    reps = tuple([operator.index(r) for r in reps])
    rank = max(A.ndim, len(reps))
    reps = (1,) * (rank - len(reps)) + reps
    if A.ndim < rank:
        A = bind("broadcast_in_dim", A, shape=(1,) * (rank - A.ndim) + tuple(A.shape), broadcast_dimensions=tuple(range(rank - A.ndim, rank)))
    return bind("tile", A, reps=reps) if rank else A


def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Each element, or slice along an axis, repeated.

    Args:
        a: array.
        repeats: int, or a vector with one for each element or slice.
        axis: int, or None to flatten a first.
        total_repeat_length: the size of the result along the axis, needed where `repeats` is
            traced; longer results are cut, shorter ones padded with the last element.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of a's dtype.

    Raises:
        ValueError: unless there is one number for each.
        TypeError: for negative ones.

    >>> jnp.repeat(jnp.array([1, 2]), 2)
    Array([1, 1, 2, 2], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(repeat, locals())
    check_arraylike("repeat", a)
    if not is_arraylike(repeats):
        raise TypeError(f"repeat requires ndarray or scalar arguments, got {type(repeats)} at position 1.")
    a = _core.asarray(a) if not isinstance(a, Array) else a
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonicalize_axis(axis, a.ndim) if a.ndim else 0
    if a.ndim == 0:
        a = reshape(a, (1,))
    n = a.shape[axis]
    if total_repeat_length is None:
        if isinstance(repeats, _core.Tracer):
            concrete_or_error(
                repeats,
                "When jit-compiling jnp.repeat, the total number of repeats must be static. To fix this, either specify a static value for `repeats`, "
                "or pass a static value to `total_repeat_length`.",
            )
        counts = np.asarray(repeats).ravel()
        if counts.size == 1:
            r = operator.index(counts[0].item() if counts.dtype.kind in "iub" else counts[0])
            wide = (*a.shape[: axis + 1], r, *a.shape[axis + 1 :])
            if r < 0:
                raise TypeError(f"broadcast_in_dim shape must have every element be nonnegative, got {wide}.")
            dims = tuple([d for d in range(a.ndim + 1) if d != axis + 1])
            out = bind("broadcast_in_dim", a, shape=wide, broadcast_dimensions=dims)
            return reshape(out, (*a.shape[:axis], n * r, *a.shape[axis + 1 :]))
        if counts.shape != (n,) and n:
            raise ValueError(f"repeats must have length 1 or the size of the axis, got {counts.shape} for size {n}")
        total = int(counts.sum())
        repeats = counts
    else:
        total = operator.index(total_repeat_length)
    if n == 0 or total == 0:
        return a[(slice(None),) * axis + (slice(0, 0),)] if total == 0 else a

    repeats = ravel(_core.asarray(repeats))
    repeats = broadcast_to(repeats, (n,))
    # The start of every run in the result, counted there; a running sum gives each position its source.
    starts = cumsum(roll(repeats, 1).at[0].set(0))
    marks = zeros(total, dtype=np.int32).at[starts].add(1)
    return take(a, bind("sub", cumsum(marks), np.int32(1)), axis=axis)


@jitted("_flip", static=("axis",))
def _flip(m, axis):
    return bind("rev", m, dimensions=tuple(range(m.ndim)) if axis is None else listed_axes(axis, m.ndim))


def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """`m` with the order of elements reversed.

    Args:
        m: array.
        axis: int, tuple of ints or None (all).

    Returns:
        Array of m's shape and dtype.

    Raises:
        ValueError: for an axis out of bounds.

    >>> jnp.flip(jnp.array([1, 2, 3]))
    Array([3, 2, 1], dtype=int32)
    """
    m = as_array("flip", m)
    return _flip(m, axis=hashable_axes(axis))


def fliplr(m: ArrayLike) -> Array:
    """`m` reversed along its second axis.

    Args:
        m: array of rank 2 or more.

    Returns:
        Array of m's shape and dtype.

    Raises:
        ValueError: below rank 2.

    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    check_arraylike("fliplr", m)
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """`m` reversed along its first axis.

    Args:
        m: array of rank 1 or more.

    Returns:
        Array of m's shape and dtype.

    Raises:
        ValueError: for scalars.

    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    check_arraylike("flipud", m)
    return flip(m, 0)


@jitted("rot90", static=("k", "axes"))
def _rot90(m, k, axes):
    i, j = axes
    if k == 0:
        return m
    if k == 2:
        return flip(flip(m, i), j)
    permutation = list(range(m.ndim))
    permutation[i], permutation[j] = permutation[j], permutation[i]
    return transpose(flip(m, j), permutation) if k == 1 else flip(transpose(m, permutation), j)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """`m` turned k times by 90 degrees in the plane of two axes, from the first towards the second.

    Args:
        m: array of rank 2 or more.
        k: int, how many turns; negative: backwards.
        axes: pair of ints: the plane.

    Returns:
        Array of m's dtype; the sizes of the two axes are exchanged for odd k.

    Raises:
        ValueError: below rank 2, or if the two axes are one.

    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    m = as_array("rot90", m)
    if m.ndim < 2:
        raise ValueError(
            f"rot90 requires its first argument to have ndim at least two, but got first argument of shape {tuple(m.shape)}, which has ndim {m.ndim}"
        )
    i, j = (canonicalize_axis(d, m.ndim) for d in axes)
    if i == j:
        raise ValueError("Axes must be different")
    return _rot90(m, k=operator.index(k) % 4, axes=(i, j))


@jitted("_roll_static", static=("shift", "axis"))
def _roll_static(a, shift, axis):
    for d, s in zip(axis, shift, strict=True):
        n = a.shape[d]
        s = s % n if n else 0
        if s == 0:
            continue
        a = bind("concatenate", slice_in_dim(a, n - s, n, axis=d), slice_in_dim(a, 0, n - s, axis=d), dimension=d)
    return a


@jitted("_roll_dynamic", static=("axis",))
def _roll_dynamic(a, shift, axis):
    shift = broadcast_to(_core.asarray(shift), (len(axis),))
    for i, d in enumerate(axis):
        n = a.shape[d]
        s = remainder(shift[i], max(n, 1))
        doubled = concatenate([a, a], axis=d)
        a = dynamic_slice_in_dim(doubled, bind("sub", np.dtype(s.dtype).type(n), s), n, axis=d)
    return a


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: int | Sequence[int] | None = None) -> Array:
    """`a` with its elements shifted; elements shifted out at one end are inserted at the other.

    Args:
        a: array.
        shift: int, or a sequence with one for each axis.
        axis: int, tuple of ints, or None to move the flattened elements.

    Returns:
        Array of a's shape and dtype.

    Raises:
        ValueError: for shifts or axes of rank 2 and more, and an axis out of bounds.

    >>> jnp.roll(jnp.arange(4), 1)
    Array([3, 0, 1, 2], dtype=int32)
    """
    a = as_array("roll", a)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    axes = tuple([canonicalize_axis(d, a.ndim) for d in (axis if isinstance(axis, (tuple, list)) else (axis,))])
    if isinstance(shift, _core.Tracer) or (isinstance(shift, (list, tuple)) and any(isinstance(s, _core.Tracer) for s in shift)):
        if isinstance(shift, (list, tuple)):
            shift = array(shift)
        return _roll_dynamic(a, shift, axis=axes)
    shifts = np.asarray(shift)
    shifts, axes = np.broadcast_arrays(np.atleast_1d(shifts), np.atleast_1d(np.asarray(axes)))
    if shifts.ndim > 1:
        raise ValueError("'shift' and 'axis' arguments to jnp.roll must be scalars or 1D")
    return _roll_static(a, shift=tuple([operator.index(int(s)) for s in shifts]), axis=tuple([int(d) for d in axes]))
