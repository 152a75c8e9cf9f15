"""Reductions over windows, and the shapes and paddings of windows.

Invariant: padded elements are the initial value.

    >>> lax.reduce_window(jnp.array([1, 5, 4, 2]), 0, lax.max, (2,), (2,), "VALID")
    Array([5, 4], dtype=int32)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .. import _core
from .._base.dtypes import dtype_of
from .._base.tracebacks import api_boundary
from .._core import bind
from ._creation import convert_element_type
from ._reductions import _named_monoid, reduce_max, reduce_min, reduce_sum

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike


def check_positive(error, name, **lists):
    """Raises `error` for an entry that is not positive; parameters of primitives are sizes and
    cannot be negative.
    """
    for what, values in lists.items():
        if any(v <= 0 for v in values):
            raise error(f"{name} {what} must have every element be strictly positive, got {values}.")


def check_dilations(*dilations):
    """Raises TypeError for a dilation that is not positive."""
    for d in dilations:
        if any(n <= 0 for n in d):
            raise TypeError(f"All dilations must be positive, got {d}.")


def check_lengths(error, template, expected, **lists):
    """Raises `error` for a list that does not have one entry for each of `expected`; the template
    may name all that differs.
    """
    for what, values in lists.items():
        if len(values) != len(expected):
            raise error(template.format(what=what, values=values, expected=expected, n=len(expected), k=len(values)))


def padtype_to_pads(
    in_shape: Sequence[int] | np.ndarray, window_shape: Sequence[int] | np.ndarray, window_strides: Sequence[int] | np.ndarray, padding: Any
) -> list[tuple[int, int]]:
    """The (low, high) padding along each axis for "VALID", "SAME" or "SAME_LOWER" and windows over
    `in_shape`.

    Args:
        in_shape: sequence of ints.
        window_shape: sequence of ints: the windows' sizes.
        window_strides: sequence of ints.
        padding: "VALID", "SAME" or "SAME_LOWER".

    Returns:
        List of pairs of ints.

    Raises:
        RuntimeError: for another word.

    >>> lax.padtype_to_pads((5,), (3,), (2,), "SAME")
    [(1, 1)]
    """
    if isinstance(padding, str):
        kind = padding.upper()
        if kind == "VALID":
            return [(0, 0)] * len(in_shape)
        if kind in ("SAME", "SAME_LOWER"):
            pads = []
            for n, w, s in zip(in_shape, window_shape, window_strides, strict=True):
                total = max(0, (-(-n // s) - 1) * s + w - n)
                pads.append((total // 2, total - total // 2) if kind == "SAME" else (total - total // 2, total // 2))
            return pads
    raise RuntimeError(f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}.")


def _dilate(n, d):
    return 0 if n == 0 else 1 + d * (n - 1)


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of the result of `reduce_window`.

    Args:
        operand_shape: sequence of ints.
        window_dimensions, window_strides: sequences of ints: the windows' sizes and steps.
        padding: (low, high) pairs, one for each axis.
        base_dilation, window_dilation: spacing of the operand's and the window's elements; None: 1.

    Returns:
        Tuple of ints.

    Raises:
        ValueError: if a dilation is not positive.

    >>> lax.reduce_window_shape_tuple((5,), (3,), (2,), [(0, 0)])
    (2,)
    """
    n = len(operand_shape)
    base, window = base_dilation or (1,) * n, window_dilation or (1,) * n
    out = []
    for size, w, s, (lo, hi), b, d in zip(operand_shape, window_dimensions, window_strides, padding, base, window, strict=True):
        out.append(max(0, (_dilate(size, b) + lo + hi - _dilate(w, d)) // s + 1))
    return tuple(out)


@overload
def reduce_window(
    operand: ArrayLike,
    init_value: Any,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array: ...


@overload
def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any: ...


@api_boundary
def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """A reduction over every window of `operand`: pooling.

    Args:
        operand: array, or a pytree of arrays of one shape.
        init_value: scalar or pytree of scalars: the function's identity.
        computation: associative function of two scalars, or of two trees of scalars.
        window_dimensions: sequence of ints: the window's size along each axis.
        window_strides: sequence of ints; None: 1.
        padding: "VALID", "SAME", "SAME_LOWER" or (low, high) pairs.
        base_dilation, window_dilation: spacing of the operand's and the window's elements; None: 1.

    Returns:
        Array, or a pytree of arrays, with an element for each window.

    Raises:
        ValueError: if operands differ in structure from the initial values or in shape from one
          another.
        TypeError: for sums of booleans, initial values that are not scalars, and sizes that are not
          positive.

    >>> lax.reduce_window(jnp.arange(4.0), 0.0, lax.add, (2,))
    Array([1., 3., 5.], dtype=float32)
    """
    flat, tree = _core.tree_flatten(operand)
    flat_init, init_tree = _core.tree_flatten(init_value)
    if tree != init_tree:
        raise ValueError(f"Operands must have the same tree structure as init_values: {tree} vs. {init_tree}")
    if not flat:
        raise ValueError("reduce_window must have at least one operand.")
    shape = np.shape(flat[0])
    if any(np.shape(x) != shape for x in flat):
        raise ValueError(f"All reduce_window operands must have the same shape: {[np.shape(x) for x in flat]}")
    n = len(shape)
    whole = lambda v: (1,) * n if v is None else tuple([operator.index(i) for i in v])
    base_dilation, window_dilation = whole(base_dilation), whole(window_dilation)
    window_dimensions, window_strides = tuple([operator.index(w) for w in window_dimensions]), whole(window_strides)
    check_positive(TypeError, "reduce_window", window_dimensions=window_dimensions, window_strides=window_strides)
    if len(window_dimensions) != n:
        raise TypeError(
            f"reduce_window got the wrong number of window_dimensions for operand: got operand shape {shape} with window_dimensions {window_dimensions}."
        )
    check_lengths(
        TypeError,
        "reduce_window got inconsistent {what} and window_dimensions: got {what} {values} and window_dimensions {expected}.",
        window_dimensions,
        window_strides=window_strides,
        base_dilation=base_dilation,
        window_dilation=window_dilation,
    )
    check_dilations(base_dilation, window_dilation)
    if any(np.shape(i) != () for i in flat_init):
        raise TypeError(f"reduce_window expected init_values to be scalars but init_values have shapes {[np.shape(i) for i in flat_init]}.")
    if isinstance(padding, str):
        padding = padtype_to_pads(
            shape,  # undilated, as in JAX
            [_dilate(w, d) for w, d in zip(window_dimensions, window_dilation, strict=True)],
            window_strides,
            padding,
        )
    parameters = dict(
        window_dimensions=window_dimensions,
        window_strides=window_strides,
        padding=tuple([tuple([operator.index(p) for p in pair]) for pair in padding]),
        base_dilation=base_dilation,
        window_dilation=window_dilation,
    )
    if len(flat) == 1:
        monoid = _named_monoid(flat_init[0], computation)
        name = {reduce_sum: "reduce_window_sum", reduce_max: "reduce_window_max", reduce_min: "reduce_window_min"}.get(monoid)
        if name is not None:
            return _core.tree_unflatten(tree, [bind(name, flat[0], **parameters)])
    avals = [_core.ShapedArray((), dtype_of(x)) for x in flat]
    k = len(flat)

    dtypes = [[np.dtype(dtype_of(x)) for x in side] for side in (flat, flat_init)]
    if dtypes[0] != dtypes[1]:
        raise TypeError(
            f"reduce_window got inconsistent dtypes for operands and init_values: got operand dtypes {dtypes[0]} and init_value dtypes {dtypes[1]}."
        )

    def flat_computation(*args):
        out = computation(_core.tree_unflatten(tree, args[:k]), _core.tree_unflatten(tree, args[k:]))
        out, out_tree = _core.tree_flatten(out)
        if out_tree != tree:
            raise ValueError(f"reduce_window output must have the same tree structure as the operands {tree} vs. {out_tree}")
        return tuple(out)

    program, consts = _core.make_program(flat_computation, avals + avals)
    if consts:
        raise NotImplementedError("Reduction computations can't close over Tracers.")
    flat_init = [convert_element_type(i, dtype_of(x)) for i, x in zip(flat_init, flat, strict=True)]
    out = bind("reduce_window", *flat, *flat_init, jaxpr=program, consts=(), **parameters)
    return _core.tree_unflatten(tree, out if isinstance(out, (tuple, list)) else [out])
