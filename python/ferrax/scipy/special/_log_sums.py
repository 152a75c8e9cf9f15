"""Logarithms of sums of exponentials, and softmax.

Invariant: no exponential overflows: the largest term is factored out.

    >>> logsumexp(jnp.zeros(2))
    Array(0.6931472, dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, overload

from ... import lax, numpy as jnp
from ..._base.dtypes import summed_in
from ..._base.shapes import hashable_axes
from ...numpy._support.arguments import jitted
from .. import _softmax
from ._arguments import _floats

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

# ---------------------------------------------------------------- reductions


@overload
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...


@overload
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...


@overload
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]: ...


def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """log(sum(b * exp(a))), without overflow.

    Args:
        a: an array.
        axis: an axis or a tuple of them; None for all.
        b: weights, of any sign; broadcasts with a.
        keepdims: keep reduced axes with size 1.
        return_sign: also return the sign of the sum (its phase, if complex); otherwise a negative
          sum gives NaN.
        where: which elements to include.

    Returns:
        the logarithm, or a pair (logarithm of the magnitude, sign). -inf if all terms are -inf; the
        derivative there is 0.

    >>> logsumexp(jnp.array([0.0, 0.0]))
    Array(0.6931472, dtype=float32)
    """
    return _logsumexp(a, axis=hashable_axes(axis), b=b, keepdims=bool(keepdims), return_sign=bool(return_sign), where=where)


@jitted("logsumexp", static=("axis", "keepdims", "return_sign"))
def _logsumexp(a, axis, b, keepdims, return_sign, where):
    if where is not None:
        # An infinite exponent that is left out must not reach the derivative.
        a = jnp.where(where, a, 0)
    if b is None:
        a = _floats("logsumexp", a)
    else:
        a, b = _floats("logsumexp", a, b)
        # A weight of 0 must win over an infinite exponent.
        a = jnp.where(b != 0, a, -jnp.inf)
    # Many terms of a narrow float leave its range where the logarithm of their sum does not.
    result, wide = a.dtype, summed_in(a.dtype)
    if wide != result:
        a, b = a.astype(wide), None if b is None else b.astype(wide)
    top = jnp.max(a.real if jnp.iscomplexobj(a) else a, axis=axis, keepdims=True, where=where, initial=-jnp.inf)
    top = lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0))
    e = jnp.exp(a - top)
    total = jnp.sum(e if b is None else b * e, axis=axis, keepdims=True, where=where)
    sign = _phase(total)
    if return_sign:
        total = jnp.abs(total)
    empty = total == 0
    # The logarithm never sees 0: its infinite slope would turn the zero cotangents of -inf terms into NaN.
    out = jnp.where(empty, -jnp.inf, jnp.log(jnp.where(empty, 1, total)) + top)
    if not keepdims:
        axes = tuple(range(a.ndim)) if axis is None else axis
        out, sign = jnp.squeeze(out, axes), jnp.squeeze(sign, axes)
    if wide != result:
        out, sign = out.astype(result), sign.astype(result)
    return (out, sign) if return_sign else out


def _phase(x):
    if not jnp.iscomplexobj(x):
        return jnp.sign(x)
    size = jnp.abs(x)
    return jnp.where(size == 0, 0, x / jnp.where(size == 0, 1, size))


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """exp(x) / sum(exp(x)), along an axis; over all elements by default.

    Args:
        x: array of numbers.
        axis: int, tuple of ints or None (all).

    Returns:
        Array of x's shape, of its dtype made float.

    Raises:
        TypeError: x is of bool, or not an array or number.

    >>> softmax(jnp.array([[0.0, 0.0], [0.0, 0.0]]))
    Array([[0.25, 0.25],
           [0.25, 0.25]], dtype=float32)
    """
    return _softmax.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """The logarithm of softmax, along an axis; over all elements by default.

    Args:
        x: array of numbers.
        axis: int, tuple of ints or None (all).

    Returns:
        Array of x's shape, of its dtype made float.

    Raises:
        TypeError: x is of bool, or not an array or number.

    >>> log_softmax(jnp.array([0.0, 0.0]))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return _softmax.log_softmax(x, axis=axis)
