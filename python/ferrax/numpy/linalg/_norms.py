"""Norms of vectors and matrices.

Invariant: the result is real; spectral and nuclear norms come from singular values.

    >>> norm(jnp.array([[3.0, 4.0]]), "fro")
    Array(5., dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import is_complex, summed_in
from ..._base.shapes import canonicalize_axes, canonicalize_axis, hashable_axes
from ..._core import bind
from .._indexing.selecting import where
from .._manipulation.shaping import moveaxis, ravel, reshape
from .._math.exponential import power, reciprocal
from .._reductions.averages import root
from .._reductions.plain import max as maximum, min as minimum, sum
from .._support.arguments import as_array, broadcast_constant, check_arraylike, constant, convert, jitted, scalar_like
from ._factorizations import svdvals

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


def _frobenius(x, axes, keepdims):
    return root(sum(_real_product(x), axis=axes, keepdims=keepdims))


def _real_product(x):
    """x conj(x), real."""
    if not is_complex(x.dtype):
        return bind("mul", x, x)
    return bind("real", bind("mul", x, bind("conj", x, input_dtype=x.dtype)))


def _vector(x, ord, axis, keepdims):
    if ord is None or ord == 2:
        return root(sum(_real_product(x), axis=axis, keepdims=keepdims))
    size = bind("abs", x)
    if ord == np.inf:
        return maximum(size, axis=axis, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return minimum(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return sum(bind("ne", x, constant(0, x.dtype)), dtype=size.dtype, axis=axis, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis=axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")

    if isinstance(ord, (int, float)):
        p = constant(ord, size.dtype)
        total = sum(power(size, p), axis=axis, keepdims=keepdims)
        # where it is 0 flat, as the root of squares is
        nothing = bind("eq", total, scalar_like(0 if ord > 0 else np.inf, total))
        safe = where(nothing, broadcast_constant(scalar_like(1, total), total.shape), total)
        return where(nothing, scalar_like(0, total), bind("pow", safe, bind("integer_pow", p, y=-1)))
    (p,) = _core.promote_dtypes_inexact(ord)
    p = bind("convert_element_type", p, new_dtype=size.dtype, weak_type=False)
    return power(sum(power(size, p), axis=axis, keepdims=keepdims), reciprocal(p))


def _matrix(x, ord, axes, keepdims):
    row, column = axes
    if ord is None or ord in ("f", "fro"):
        return _frobenius(x, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf) and not isinstance(ord, str):
        inner, outer = (row, column) if abs(ord) == 1 else (column, row)
        if not keepdims and outer > inner:
            outer -= 1
        if not keepdims and outer < 0:
            outer += x.ndim - 1
        totals = sum(bind("abs", x), axis=inner, keepdims=keepdims)
        return maximum(totals, axis=outer, keepdims=keepdims, initial=0) if ord > 0 else minimum(totals, axis=outer, keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        s = svdvals(moveaxis(x, axes, (-2, -1)))
        if ord == "nuc":
            out = sum(s, axis=-1)
        else:
            out = maximum(s, axis=-1, initial=0) if ord == 2 else minimum(s, axis=-1)
        return reshape(out, tuple([1 if d in axes else n for d, n in enumerate(x.shape)])) if keepdims else out
    raise ValueError(f"Invalid order '{ord}' for matrix norm.")


@jitted("norm", static=("ord", "axis", "keepdims"))
def _norm(x, ord, axis, keepdims):
    (x,) = _core.promote_dtypes_inexact(x)
    # squares and powers of a narrow float leave its range where the norm does not
    if (wide := summed_in(x.dtype)) != x.dtype:
        return convert(_norm(convert(x, wide), ord=ord, axis=axis, keepdims=keepdims), x.dtype)
    if axis is None:
        if ord is None:
            return root(sum(_real_product(x), keepdims=keepdims))
        axis = tuple(range(x.ndim))
    axes = canonicalize_axes(axis, x.ndim)
    if len(axes) == 1:
        return _vector(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix(x, ord, axes, keepdims)
    raise ValueError(f"Improper number of axes for norm: axis={axis}. Pass one axis to compute a vector-norm, or two axes to compute a matrix-norm.")


def norm(x: ArrayLike, ord: int | str | None = None, axis: tuple[int, ...] | int | None = None, keepdims: bool = False) -> Array:
    """The norm of a vector (one axis) or matrix (two axes); by default the square root of the sum
    of squares of all elements.

    Args:
        x: array of numbers.
        ord: for vectors any number, inf, -inf, 0 (how many are nonzero); for matrices "fro", "nuc",
          1, -1, 2, -2, inf, -inf.
        axis: int (vectors), pair of ints (matrices) or None (all, in at most two axes unless ord is
          None).
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Real array of x's shape without the axes.

    Raises:
        ValueError: for more than two axes with an `ord`, and for another `ord`.

    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    check_arraylike("jnp.linalg.norm", x)
    x = _core.asarray(x)
    if isinstance(axis, list):
        axis = tuple(axis)
    if axis is not None:
        axis = canonicalize_axes(axis, x.ndim)
    return _norm(x, ord=ord, axis=axis, keepdims=bool(keepdims))


def vector_norm(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: int | str = 2) -> Array:
    """The norm of x as a vector along `axis` (one, several, or all).

    Args:
        x: array of numbers.
        axis: int, tuple of ints or None (all, as one vector).
        keepdims: keep the reduced axes, with size 1.
        ord: any number, inf, -inf, or 0 (how many are nonzero).

    Returns:
        Real array of x's shape without the axes.

    >>> jnp.linalg.vector_norm(jnp.array([[3.0, 4.0], [0.0, 2.0]]), axis=1)
    Array([5., 2.], dtype=float32)
    """
    x = as_array("jnp.linalg.vector_norm", x)
    axis = hashable_axes(axis)
    if axis is None or isinstance(axis, tuple):
        axes = canonicalize_axes(axis, x.ndim)
        kept = [d for d in range(x.ndim) if d not in axes]
        shape = tuple([1 if d in axes else n for d, n in enumerate(x.shape)])
        flat = ravel(x) if not kept else reshape(moveaxis(x, axes, tuple(range(len(axes)))), (-1, *[x.shape[d] for d in kept]))
        out = _vector_norm(flat, axis=0, keepdims=False, ord=ord)
        return reshape(out, shape) if keepdims else out
    return _vector_norm(x, axis=canonicalize_axis(axis, x.ndim), keepdims=bool(keepdims), ord=ord)


@jitted("vector_norm", static=("axis", "keepdims", "ord"))
def _vector_norm(x, axis, keepdims, ord):
    return norm(x, axis=axis, keepdims=keepdims, ord=ord)


@jitted("matrix_norm", static=("keepdims", "ord"))
def _matrix_norm(x, keepdims, ord):
    return norm(x, ord=ord, keepdims=keepdims, axis=(-2, -1))


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str | int = "fro") -> Array:
    """The norm of the matrices in the last two axes.

    Args:
        x: array of shape (..., m, n).
        keepdims: keep the reduced axes, with size 1.
        ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    Returns:
        Real array of shape (...).

    Raises:
        ValueError: for another `ord`.

    >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., dtype=float32)
    """
    return _matrix_norm(as_array("jnp.linalg.matrix_norm", x), keepdims=bool(keepdims), ord=ord)
