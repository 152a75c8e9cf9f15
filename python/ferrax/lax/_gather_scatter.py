"""Gather and scatter: slices at many computed positions, read or updated.

Invariant: indices are not modified; `mode` defines the result for those out of bounds.

    >>> lax.index_take(jnp.arange(5) * 10, (jnp.array([1, 3]),), (0,))
    Array([10, 30], dtype=int32)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.dtypes import dtype_of, is_complex, refuse_keys
from .._base.shapes import canonicalize_shape
from .._core import bind
from . import _sections as sections
from ._arithmetic import add, rem
from ._comparisons import select
from ._control_flow import while_loop
from ._creation import convert_element_type, full, full_like
from ._parameters import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from ._shaping import concatenate, expand_dims, reshape, transpose
from ._slicing import dynamic_index_in_dim

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike


def _counted(dims, words, n):
    """Refuses dimension numbers below 0, which the primitives' parameters cannot be; `words` says
    which rule they break, n where their range ends.
    """
    for i, d in enumerate(dims):
        if operator.index(d) < 0:
            raise TypeError(words.format(i=i, d=d, n=n))


def _gather_numbers(operand, indices, dimension_numbers, slice_sizes):
    numbers, rank = GatherDimensionNumbers(*map(tuple, dimension_numbers)), np.ndim(operand)
    out_rank = len(numbers.offset_dims) + np.ndim(indices) - 1
    _counted(numbers.offset_dims, "Offset dimension {i} in gather op is out of bounds; got {d}, but should have been in [0, {n})", out_rank)
    _counted(numbers.start_index_map, "Invalid start_index_map; domain is [0, {n}), got: {i}->{d}.", rank)
    _counted(numbers.collapsed_slice_dims, "Invalid collapsed_slice_dims set in gather op; valid range is [0, {n}); got: {d}.", rank)
    _counted(numbers.operand_batching_dims, "Invalid operand_batching_dims set in gather op; valid range is [0, {n}); got: {d}.", rank)
    for i, (size, n) in enumerate(zip(slice_sizes, np.shape(operand), strict=False)):
        if size < 0:
            raise TypeError(f"Slice size at index {i} in gather op is out of range, must be within [0, {n} + 1), got {size}.")
    return numbers


def _scatter_numbers(operand, updates, dimension_numbers):
    numbers, rank = ScatterDimensionNumbers(*map(tuple, dimension_numbers)), np.ndim(operand)
    words = "Invalid {} set in scatter op; valid range is [0, {{n}}); got: {{d}}."
    _counted(numbers.update_window_dims, words.format("update_window_dims"), np.ndim(updates))
    _counted(numbers.inserted_window_dims, words.format("inserted_window_dims"), rank)
    _counted(numbers.operand_batching_dims, words.format("operand_batching_dims"), rank)
    _counted(numbers.scatter_dims_to_operand_dims, "Invalid scatter_dims_to_operand_dims mapping; domain is [0, {n}), got: {i}->{d}.", rank)
    return numbers


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Array:
    """Windows of `operand`, one for each index vector.

    Args:
        operand: array.
        start_indices: array of integers whose last axis is the index vectors.
        dimension_numbers: `GatherDimensionNumbers`.
        slice_sizes: sequence of ints: the window's size along each axis.
        unique_indices: bool; a promise that no two windows are the same.
        indices_are_sorted: bool; a promise that the index vectors are in order.
        mode: `GatherScatterMode` or its name; None: "promise_in_bounds".
        fill_value: the value read out of bounds in fill mode; None: nan for inexact dtypes, the
            least signed integer, the greatest unsigned one, True for bool.

    Returns:
        Array of operand's dtype.

    >>> lax.gather(jnp.array([1, 2, 3]), jnp.array([[2], [0]]), lax.GatherDimensionNumbers((), (0,), (0,)), (1,))
    Array([3, 1], dtype=int32)
    """
    parsed = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if parsed is GatherScatterMode.ONE_HOT:
        parsed, fill_value = GatherScatterMode.FILL_OR_DROP, 0
    # Without a fill value the primitive takes the dtype's own.
    fill_value = None if fill_value is None or parsed != GatherScatterMode.FILL_OR_DROP else np.asarray(fill_value).item()
    if type(fill_value) is int and 1 << 63 <= fill_value < 1 << 64:
        fill_value -= 1 << 64  # the integer of 64 bits with its digits
    slice_sizes = canonicalize_shape(slice_sizes)
    return bind(
        "gather",
        operand,
        start_indices,
        dimension_numbers=_gather_numbers(operand, start_indices, dimension_numbers, slice_sizes),
        slice_sizes=slice_sizes,
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=parsed,
        fill_value=fill_value,
    )


def _scatter(name, operand, scatter_indices, updates, dimension_numbers, indices_are_sorted, unique_indices, mode):
    numbers = _scatter_numbers(operand, updates, dimension_numbers)
    if name != "scatter":
        refuse_keys(dtype_of(operand))
    if name == "scatter-mul" and is_complex(dtype_of(operand)):
        return _scatter_complex_product(operand, scatter_indices, updates, numbers, unique_indices, mode)
    return bind(
        name,
        operand,
        scatter_indices,
        updates,
        dimension_numbers=numbers,
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
    )


def _without_batching(indices, numbers):
    """The same scatter with its batching dimensions as further components of the index vectors:
    each counts along its axis of the indices.
    """
    if not numbers.operand_batching_dims:
        return indices, numbers
    indices = convert_element_type(indices, np.promote_types(dtype_of(indices), np.int32))
    sizes = (*np.shape(indices)[:-1], 1)
    counts = [bind("iota", dtype=indices.dtype, shape=sizes, dimension=d) for d in numbers.scatter_indices_batching_dims]
    return concatenate([indices, *counts], len(sizes) - 1), ScatterDimensionNumbers(
        numbers.update_window_dims,
        tuple(sorted((*numbers.inserted_window_dims, *numbers.operand_batching_dims))),
        (*numbers.scatter_dims_to_operand_dims, *numbers.operand_batching_dims),
    )


def _scatter_complex_product(operand, indices, updates, numbers, unique, mode):
    """`scatter_mul` of complex numbers, whose products no kernel combines: each window is read,
    multiplied and written back, one after another.
    """
    indices, numbers = _without_batching(indices, numbers)
    rank, sizes, window = np.ndim(operand), [], iter([np.shape(updates)[d] for d in numbers.update_window_dims])
    for d in range(rank):
        sizes.append(1 if d in numbers.inserted_window_dims or d in numbers.operand_batching_dims else next(window))
    reads = GatherDimensionNumbers(
        numbers.update_window_dims,
        numbers.inserted_window_dims,
        numbers.scatter_dims_to_operand_dims,
        numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims,
    )
    read_mode = "clip" if mode == "clip" or mode == GatherScatterMode.CLIP else "fill"

    def multiply(x, i, u, numbers, reads):
        old = gather(x, i, reads, sizes, mode=read_mode, fill_value=0)
        return _scatter("scatter", x, i, bind("mul", old, u), numbers, False, True, mode)

    batch = [d for d in range(np.ndim(updates)) if d not in numbers.update_window_dims]
    count = math.prod([np.shape(updates)[d] for d in batch])
    if unique or count <= 1:
        return multiply(operand, indices, updates, numbers, reads)
    rows = reshape(indices, (count, np.shape(indices)[-1]))
    order = [*batch, *numbers.update_window_dims]
    pieces = reshape(transpose(updates, order), (count, *[np.shape(updates)[d] for d in numbers.update_window_dims]))
    window_dims = tuple(range(len(numbers.update_window_dims)))
    numbers, reads = numbers._replace(update_window_dims=window_dims), reads._replace(offset_dims=window_dims)
    row = lambda v, k: dynamic_index_in_dim(v, k, 0, keepdims=False)
    step = lambda state: (add(state[0], np.int32(1)), multiply(state[1], row(rows, state[0]), row(pieces, state[0]), numbers, reads))
    return while_loop(lambda state: bind("lt", state[0], np.int32(count)), step, (np.int32(0), operand))[1]


def apply_where(x, mentions, func):
    """`x` with the elementwise `func` applied to each element as often as `mentions` (int32, of x's
    shape) says.
    """
    zero = np.int32(0)

    def left(state):
        return bind("reduce_or", bind("gt", state[1], zero), axes=tuple(range(x.ndim)))

    def step(state):
        value, count = state
        return select(bind("gt", count, zero), convert_element_type(func(value), value.dtype), value), bind("sub", count, np.int32(1))

    return while_loop(left, step, (x, mentions))[0]


@sections.scatter
def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """`operand` with the windows named by indices replaced; of colliding windows one wins, the
    last.

    If the promise of `unique_indices` is broken, only elements on which windows collide are
    affected: on the CPU they have the same values as without it, on a GPU the values after some of
    the updates in some order. The same applies to the other scatters.

    >>> lax.scatter(jnp.zeros(3), jnp.array([[2]]), jnp.array([5.0]), lax.ScatterDimensionNumbers((), (0,), (0,)))
    Array([0., 0., 5.], dtype=float32)
    """
    return _scatter("scatter", operand, scatter_indices, updates, dimension_numbers, indices_are_sorted, unique_indices, mode)


@sections.scatter
def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """`scatter` that adds `updates` to the elements; colliding windows add up.

    >>> lax.scatter_add(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([5.0, 6.0]), lax.ScatterDimensionNumbers((), (0,), (0,)))
    Array([ 1.,  1., 12.], dtype=float32)
    """
    return _scatter("scatter-add", operand, scatter_indices, updates, dimension_numbers, indices_are_sorted, unique_indices, mode)


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """`scatter` that subtracts `updates` from the elements.

    Args:
        operand: array.
        scatter_indices: array of integers whose last axis is the index vectors.
        updates: array of the windows, of operand's dtype.
        dimension_numbers: `ScatterDimensionNumbers`.
        indices_are_sorted: bool; a promise that the index vectors are in order.
        unique_indices: bool; a promise that no two windows collide.
        mode: `GatherScatterMode` or its name; None: "drop".

    Returns:
        Array of operand's shape and dtype.

    Raises:
        TypeError: for booleans.

    >>> lax.scatter_sub(jnp.ones(3), jnp.array([[2]]), jnp.array([5.0]), lax.ScatterDimensionNumbers((), (0,), (0,)))
    Array([ 1.,  1., -4.], dtype=float32)
    """
    if dtype_of(operand) == bool:
        accepted = "integer, floating, complexfloating"
        raise TypeError(f"sub does not accept dtype bool at position 0. Accepted dtypes at position 0 are subtypes of {accepted}.")
    return _scatter("scatter-sub", operand, scatter_indices, updates, dimension_numbers, indices_are_sorted, unique_indices, mode)


@sections.scatter
def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """`scatter` that multiplies the elements by `updates`.

    >>> lax.scatter_mul(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([5.0, 6.0]), lax.ScatterDimensionNumbers((), (0,), (0,)))
    Array([ 1.,  1., 30.], dtype=float32)
    """
    return _scatter("scatter-mul", operand, scatter_indices, updates, dimension_numbers, indices_are_sorted, unique_indices, mode)


@sections.scatter
def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """`scatter` that sets elements to the minimum of them and `updates`.

    >>> lax.scatter_min(jnp.ones(3), jnp.array([[2]]), jnp.array([-5.0]), lax.ScatterDimensionNumbers((), (0,), (0,)))
    Array([ 1.,  1., -5.], dtype=float32)
    """
    return _scatter("scatter-min", operand, scatter_indices, updates, dimension_numbers, indices_are_sorted, unique_indices, mode)


@sections.scatter
def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """`scatter` that sets elements to the maximum of them and `updates`.

    >>> lax.scatter_max(jnp.ones(3), jnp.array([[2]]), jnp.array([5.0]), lax.ScatterDimensionNumbers((), (0,), (0,)))
    Array([1., 1., 5.], dtype=float32)
    """
    return _scatter("scatter-max", operand, scatter_indices, updates, dimension_numbers, indices_are_sorted, unique_indices, mode)


def scatter_apply(
    operand: Array,
    scatter_indices: Array,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """`operand` with a function applied in the windows named by indices; a window named twice is
    transformed once for each mention.

    Args:
        operand: array.
        scatter_indices: array of integers whose last axis is the index vectors.
        func: elementwise function.
        dimension_numbers: `ScatterDimensionNumbers`.
        update_shape: sequence of ints: the shape that the updates of a `scatter` with these indices
          would have.
        indices_are_sorted: bool; a promise that the index vectors are in order.
        unique_indices: bool; a promise that no two windows collide.
        mode: `GatherScatterMode` or its name; None: "drop".

    Returns:
        Array of operand's shape and dtype.

    >>> lax.scatter_apply(jnp.ones(3), jnp.array([[2]]), jnp.negative, lax.ScatterDimensionNumbers((), (0,), (0,)), update_shape=(1,))
    Array([ 1.,  1., -1.], dtype=float32)
    """
    zeros = full(np.shape(operand), 0, np.int32)
    mentions = scatter_add(
        zeros,
        scatter_indices,
        full(update_shape, 1, np.int32),
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )
    return apply_where(operand, mentions, func)


def index_take(src: Array, idxs: Array, axes: Sequence[int]) -> Array:
    """src indexed by the integer vectors `idxs` along `axes` together; negative indices count from
    the end.

    Out of bounds is clipped.

    Args:
        src: array.
        idxs: sequence of integer vectors of one size.
        axes: sequence of ints, one for each vector.

    Returns:
        Array of src's dtype, with the vectors' axis in place of `axes`.

    >>> lax.index_take(jnp.array([[1, 2], [3, 4]]), (jnp.array([1, 0]),), (0,))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    indices = concatenate([expand_dims(i, (1,)) for i in idxs], 1)
    limits = np.array([np.shape(src)[ax] for ax in axes], dtype=dtype_of(indices))
    limits = expand_dims(_core.asarray(limits), (0,))
    left = rem(indices, limits)
    indices = select(bind("lt", left, full_like(left, 0)), add(left, limits), left)
    sizes = list(np.shape(src))
    for ax in axes:
        sizes[ax] = 1
    numbers = GatherDimensionNumbers(tuple(range(1, len(sizes) - len(axes) + 1)), tuple(axes), tuple(axes))
    return gather(src, indices, numbers, tuple(sizes), mode="promise_in_bounds")
