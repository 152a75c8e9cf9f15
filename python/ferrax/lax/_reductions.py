"""Reductions, and positions of extremes.

Invariant: axes are counted from the front and listed without repeats; the result lacks them.

    >>> lax.reduce_max(jnp.array([[1, 5], [4, 2]]), (0,))
    Array([4, 5], dtype=int32)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import ml_dtypes
import numpy as np

from .. import _core
from .._base import config as _config
from .._base.dtypes import dtype_of, highest, is_bool, is_integer, lowest, requested
from .._base.tracebacks import api_boundary
from .._core import bind
from .._sharding.parts import sharded
from . import _arithmetic, _comparisons, _sections as sections
from ._creation import convert_element_type

if TYPE_CHECKING:
    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec
    from ..typing import ArrayLike, DTypeLike

_HALVES = frozenset(map(np.dtype, (np.float16, ml_dtypes.bfloat16)))


def _reduce(name, operand, axes):
    axes = tuple([operator.index(d) for d in axes])
    if any(d < 0 for d in axes):
        raise ValueError(f"reduction axes {axes} contains out-of-bounds indices for {_core.get_aval(operand)}.")
    return bind(name, operand, axes=axes)


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """Sum over `axes`.

    Args:
        operand: array of numbers.
        axes: sequence of ints, not negative.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of operand's dtype without these axes.

    Raises:
        TypeError: for bool.
        ValueError: for axes out of bounds or named twice.

    >>> lax.reduce_sum(jnp.ones((2, 3)), (1,))
    Array([3., 3.], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(reduce_sum, locals())
    if not _config.config.jax_allow_f16_reductions:
        _refuse_halves(operand, axes)
    return _reduce("reduce_sum", operand, axes)


def _refuse_halves(operand, axes):
    aval = _core.get_aval(operand)
    if aval.dtype in _HALVES and any(aval.shape[d] != 1 for d in axes):
        raise ValueError(f"reduce_sum on operand {aval.str_short(True)} is not allowed when jax_allow_f16_reductions=False.")


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Product over `axes`.

    Args:
        operand: array of numbers.
        axes: sequence of ints, not negative.

    Returns:
        Array of operand's dtype without these axes.

    Raises:
        TypeError: for bool.
        ValueError: for axes out of bounds or named twice.

    >>> lax.reduce_prod(jnp.array([2, 3]), (0,))
    Array(6, dtype=int32)
    """
    return _reduce("reduce_prod", operand, axes)


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Maximum over `axes`; -inf or the least value if there are no elements; nan if any element is
    nan.

    Args:
        operand: array of numbers or bool.
        axes: sequence of ints, not negative.

    Returns:
        Array of operand's dtype without these axes.

    Raises:
        ValueError: for axes out of bounds or named twice.

    >>> lax.reduce_max(jnp.array([1, 3, 2]), (0,))
    Array(3, dtype=int32)
    """
    return _reduce("reduce_max", operand, axes)


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Minimum over `axes`; inf or the greatest value if there are no elements; nan if any element
    is nan.

    Args:
        operand: array of numbers or bool.
        axes: sequence of ints, not negative.

    Returns:
        Array of operand's dtype without these axes.

    Raises:
        ValueError: for axes out of bounds or named twice.

    >>> lax.reduce_min(jnp.array([3, 1, 2]), (0,))
    Array(1, dtype=int32)
    """
    return _reduce("reduce_min", operand, axes)


@sections.logical_reduction
def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Bitwise and over `axes`.

    >>> lax.reduce_and(jnp.array([6, 3]), (0,))
    Array(2, dtype=int32)
    """
    return _reduce("reduce_and", operand, axes)


@sections.logical_reduction
def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Bitwise or over `axes`.

    >>> lax.reduce_or(jnp.array([6, 3]), (0,))
    Array(7, dtype=int32)
    """
    return _reduce("reduce_or", operand, axes)


@sections.logical_reduction
def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Bitwise exclusive or over `axes`.

    >>> lax.reduce_xor(jnp.array([6, 3]), (0,))
    Array(5, dtype=int32)
    """
    return _reduce("reduce_xor", operand, axes)


def _arg_reduce(name, operand, axis, index_dtype):
    axis = operator.index(axis)
    if axis < 0:
        raise ValueError(f"Invalid axis {axis} for operand shape {np.shape(operand)}")
    return bind(name, operand, axes=(axis,), index_dtype=requested(name, index_dtype))


@sections.position
def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Index of the first maximum along `axis`, as `index_dtype`; of the first nan if there is one.

    >>> lax.argmax(jnp.array([1, 5, 2]), 0, "int32")
    Array(1, dtype=int32)
    """
    return _arg_reduce("argmax", operand, axis, index_dtype)


@sections.position
def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Index of the first minimum along `axis`, as `index_dtype`; of the first nan if there is one.

    >>> lax.argmin(jnp.array([4, 1, 2]), 0, "int32")
    Array(1, dtype=int32)
    """
    return _arg_reduce("argmin", operand, axis, index_dtype)


def _is_scalar(init, value) -> bool:
    if isinstance(init, _core.Tracer):
        return False
    with np.errstate(all="ignore"):
        return bool(np.asarray(init) == value)


def _named_monoid(init, computation):
    """The reduction that the computation is, if it is a function of lax's and the initial value its
    identity.

    The initial value alone decides: its dtype need not be the operand's.
    """
    if isinstance(init, _core.Tracer):
        return None
    dtype = dtype_of(init)
    named = [
        (_arithmetic.add, reduce_sum, 0),
        (_arithmetic.mul, reduce_prod, 1),
        (_arithmetic.max, reduce_max, lowest(dtype)),
        (_arithmetic.min, reduce_min, highest(dtype)),
    ]
    if is_bool(dtype) or is_integer(dtype):
        named += [(_comparisons.bitwise_or, reduce_or, 0), (_comparisons.bitwise_xor, reduce_xor, 0)]
        named += [(_comparisons.bitwise_and, reduce_and, np.array(-1).astype(dtype))]
    return next((monoid for f, monoid, identity in named if computation is f and _is_scalar(init, identity)), None)


@overload
def reduce(
    operands: ArrayLike,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...


@overload
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Any: ...


@api_boundary
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Any:
    """Reduction over axes by any associative, commutative function.

    Args:
        operands: pytree of arrays of one shape.
        init_values: pytree of operands' structure: scalars, the function's identity.
        computation: function of two such trees of scalars that returns one.
        dimensions: sequence of ints.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Pytree of operands' structure, arrays without these axes.

    Raises:
        TypeError: if dtypes of operands and initial values differ, or the result's structure does.
        ValueError: if structures differ, an initial value is not a scalar, or an axis is out of
          bounds.

    >>> lax.reduce(jnp.arange(4), 0, lax.add, (0,))
    Array(6, dtype=int32)
    """
    if out_sharding is not None:
        return sharded(reduce, locals())
    flat, tree = _core.tree_flatten(operands)
    flat_init, init_tree = _core.tree_flatten(init_values)
    if tree != init_tree:
        raise ValueError(f"Operands must have the same tree structure as init_values: {tree} vs. {init_tree}")
    if not flat:
        raise ValueError("reduce must have at least one operand.")
    if any(np.shape(i) != () for i in flat_init):
        raise ValueError(f"reduce found non-scalar initial value: {[np.shape(i) for i in flat_init]}")
    dimensions = tuple([operator.index(d) for d in dimensions])
    if any(not 0 <= d < np.ndim(flat[0]) for d in dimensions):
        raise ValueError(f"reduction axes {dimensions} contains out-of-bounds indices for {_core.get_aval(flat[0]).str_short()}.")
    if len(flat) == 1:
        monoid = _named_monoid(flat_init[0], computation)
        if monoid is not None:
            return _core.tree_unflatten(tree, [monoid(flat[0], dimensions)])
    if any(dtype_of(i) != dtype_of(x) for i, x in zip(flat_init, flat, strict=True)):
        shown = [[_core.get_aval(x) for x in side] for side in (flat, flat_init)]
        raise TypeError(f"reduce operand dtypes should match corresponding initial value dtypes, got operands={shown[0]} and initial_values={shown[1]}")
    flat_init = [convert_element_type(i, dtype_of(x)) for i, x in zip(flat_init, flat, strict=True)]
    avals = [_core.ShapedArray((), dtype_of(x)) for x in flat]
    n = len(flat)

    def flat_computation(*args):
        out = computation(_core.tree_unflatten(tree, args[:n]), _core.tree_unflatten(tree, args[n:]))
        out, out_tree = _core.tree_flatten(out)
        if out_tree != tree:
            raise TypeError(f"reduce computation must return a tree of the operands' structure: {out_tree} vs. {tree}")
        return tuple(out)

    program, consts = _core.make_program(flat_computation, avals + avals)
    if consts:
        raise NotImplementedError("Reduction computations can't close over Tracers.")
    out = bind("reduce", *flat, *flat_init, jaxpr=program, dimensions=dimensions)
    return _core.tree_unflatten(tree, out if isinstance(out, (tuple, list)) else [out])
