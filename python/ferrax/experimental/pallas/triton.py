"""Functions for GPU kernels: masked loads and stores, and updates that return the previous values.

    plgpu.store(o_ref.at[rows], value, mask=rows < n)

Invariant: calls of a kernel run one after another, so an atomic update is an update. Inline
assembly raises NotImplementedError.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ... import _core, lax
from ..._base.refused import refused as _refused
from ...numpy import maximum, minimum
from ._references import load as load, store as store

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

_T = TypeVar("_T")

__all__ = [
    "CompilerParams",
    "approx_tanh",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "debug_barrier",
    "dot",
    "elementwise_inline_asm",
    "load",
    "max_contiguous",
    "store",
]


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Parameters of the Triton compiler. They have no effect here."""

    num_warps: int | None = None
    num_stages: int | None = None


def approx_tanh(x: ArrayLike) -> Array:
    """The hyperbolic tangent, as exact as `lax.tanh`.

    Args:
        x: float array.

    Returns:
        Array of the shape and dtype of `x`.
    """
    return lax.tanh(x)


def debug_barrier() -> None:
    """Accepted without effect: the iterations of a kernel run in sequence.

    Returns:
        None.
    """


def max_contiguous(x: _T, values: Any) -> _T:
    """Declares how many numbers of an index follow one another. It has no effect.

    Args:
        x: integer array.
        values: int or sequence of ints.

    Returns:
        `x`.
    """
    del values
    return x


def dot(a: Array, b: Array, trans_a: bool = False, trans_b: bool = False, allow_tf32: bool | None = None, precision: Any = None) -> Array:
    """The product of two matrices, in float32 for narrower floats.

    Args:
        a: array (m, k), or (k, m) where `trans_a` is True.
        b: array (k, n), or (n, k) where `trans_b` is True.
        trans_a: bool.
        trans_b: bool.
        allow_tf32: bool or None: True is precision HIGH, False HIGHEST.
        precision: as in `lax.dot`.

    Returns:
        Array (m, n).

    Raises:
        ValueError: an argument is not a matrix, or `allow_tf32` and `precision` are both given.
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("`a` and `b` must be 2D arrays.")
    if allow_tf32 is not None:
        if precision is not None:
            raise ValueError("Only one of allow_tf32 and precision can be specified")
        precision = lax.Precision.HIGH if allow_tf32 else lax.Precision.HIGHEST
    sides = ((0 if trans_a else 1,), (1 if trans_b else 0,))
    return lax.dot_general(a, b, (sides, ((), ())), precision=precision, preferred_element_type=np.result_type(a.dtype, np.float32).type)


def _update(ref, idx, val, mask, what):
    old = ref[idx]
    new = what(old, lax.convert_element_type(_core.asarray(val), old.dtype))
    if mask is not None:
        new = lax.select(lax.broadcast_in_dim(mask, new.shape, tuple(range(new.ndim))) if mask.shape != new.shape else mask, new, old)
    ref[idx] = new
    return old


def atomic_xchg(x_ref_or_view: Any, idx: Any, val: ArrayLike, *, mask: Any = None) -> Array:
    """Sets the elements of a reference at an index.

    Args:
        x_ref_or_view: reference or a part of one.
        idx: index, as in `ref[idx]`.
        val: array of the shape of these elements, or one that broadcasts to it.
        mask: boolean array, which elements to change; None: all.

    Returns:
        Array, the elements before.
    """
    return _update(x_ref_or_view, idx, val, mask, lambda old, new: lax.broadcast_in_dim(new, old.shape, tuple(range(old.ndim - new.ndim, old.ndim))))


def atomic_add(x_ref_or_view: Any, idx: Any, val: ArrayLike, *, mask: Any = None) -> Array:
    """Adds to the elements of a reference at an index.

    Args:
        x_ref_or_view: reference or a part of one.
        idx: index, as in `ref[idx]`.
        val: array of the shape of these elements, or one that broadcasts to it.
        mask: boolean array, which elements to change; None: all.

    Returns:
        Array, the elements before.
    """
    return _update(x_ref_or_view, idx, val, mask, lambda a, b: a + b)


def atomic_max(x_ref_or_view: Any, idx: Any, val: ArrayLike, *, mask: Any = None) -> Array:
    """Sets the elements of a reference at an index to their maximum with values.

    Args:
        x_ref_or_view: reference or a part of one.
        idx: index, as in `ref[idx]`.
        val: array of the shape of these elements, or one that broadcasts to it.
        mask: boolean array, which elements to change; None: all.

    Returns:
        Array, the elements before.
    """
    return _update(x_ref_or_view, idx, val, mask, maximum)


def atomic_min(x_ref_or_view: Any, idx: Any, val: ArrayLike, *, mask: Any = None) -> Array:
    """Sets the elements of a reference at an index to their minimum with values.

    Args:
        x_ref_or_view: reference or a part of one.
        idx: index, as in `ref[idx]`.
        val: array of the shape of these elements, or one that broadcasts to it.
        mask: boolean array, which elements to change; None: all.

    Returns:
        Array, the elements before.
    """
    return _update(x_ref_or_view, idx, val, mask, minimum)


def atomic_and(x_ref_or_view: Any, idx: Any, val: ArrayLike, *, mask: Any = None) -> Array:
    """Sets the elements of a reference at an index to their bitwise and with values.

    Args:
        x_ref_or_view: reference or a part of one.
        idx: index, as in `ref[idx]`.
        val: array of the shape of these elements, or one that broadcasts to it.
        mask: boolean array, which elements to change; None: all.

    Returns:
        Array, the elements before.
    """
    return _update(x_ref_or_view, idx, val, mask, lambda a, b: a & b)


def atomic_or(x_ref_or_view: Any, idx: Any, val: ArrayLike, *, mask: Any = None) -> Array:
    """Sets the elements of a reference at an index to their bitwise or with values.

    Args:
        x_ref_or_view: reference or a part of one.
        idx: index, as in `ref[idx]`.
        val: array of the shape of these elements, or one that broadcasts to it.
        mask: boolean array, which elements to change; None: all.

    Returns:
        Array, the elements before.
    """
    return _update(x_ref_or_view, idx, val, mask, lambda a, b: a | b)


def atomic_xor(x_ref_or_view: Any, idx: Any, val: ArrayLike, *, mask: Any = None) -> Array:
    """Sets the elements of a reference at an index to their bitwise exclusive or with values.

    Args:
        x_ref_or_view: reference or a part of one.
        idx: index, as in `ref[idx]`.
        val: array of the shape of these elements, or one that broadcasts to it.
        mask: boolean array, which elements to change; None: all.

    Returns:
        Array, the elements before.
    """
    return _update(x_ref_or_view, idx, val, mask, lambda a, b: a ^ b)


def atomic_cas(ref: Any, cmp: ArrayLike, val: ArrayLike) -> Array:
    """Sets a reference to a number if it contains another given one.

    Args:
        ref: reference or a part of one.
        cmp: array or number, the value to compare with.
        val: array or number, the value to set.

    Returns:
        Array, the elements before.
    """
    old = ref[...]
    ref[...] = lax.select(old == cmp, lax.convert_element_type(_core.asarray(val), old.dtype), old)
    return old


elementwise_inline_asm: Any = _refused("jax.experimental.pallas.triton.elementwise_inline_asm", "it is GPU assembly; use jnp instead")
