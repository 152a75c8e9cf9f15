"""What kernels for GPUs are written with: loads and stores under a mask, and updates that return what was there.

    plgpu.store(o_ref.at[rows], value, mask=rows < n)

Invariant: calls of a kernel run one after another, so an atomic update is an update. Assembly says that it is not there.
"""

import dataclasses

import numpy as np

from ... import _core, lax
from ..._refused import refused as _refused
from ...numpy import maximum, minimum
from ._references import load as load, store as store

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


def approx_tanh(x):
    """`tanh`, which may be rough; it is not."""
    return lax.tanh(x)


def debug_barrier():
    """Waits for the other threads; there are none."""


def max_contiguous(x, values):
    """`x`, of which it is said how many numbers follow each other."""
    del values
    return x


def dot(a, b, trans_a=False, trans_b=False, allow_tf32=None, precision=None):
    """The product of two matrices.

    Args:
      a, b: the matrices.
      trans_a, trans_b: whether they are transposed first.
      allow_tf32: None; how rough it may be is `precision`.
      precision: as of `lax.dot`.

    Raises:
      ValueError: they are no matrices, or `allow_tf32` and `precision` are both given.
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


def atomic_xchg(x_ref_or_view, idx, val, *, mask=None):
    """Sets what is at an index, and returns what was there. mask: where."""
    return _update(x_ref_or_view, idx, val, mask, lambda old, new: lax.broadcast_in_dim(new, old.shape, tuple(range(old.ndim - new.ndim, old.ndim))))


def atomic_add(x_ref_or_view, idx, val, *, mask=None):
    """Adds at an index, and returns what was there. mask: where."""
    return _update(x_ref_or_view, idx, val, mask, lambda a, b: a + b)


def atomic_max(x_ref_or_view, idx, val, *, mask=None):
    """The larger at an index; returns what was there. mask: where."""
    return _update(x_ref_or_view, idx, val, mask, maximum)


def atomic_min(x_ref_or_view, idx, val, *, mask=None):
    """The smaller at an index; returns what was there. mask: where."""
    return _update(x_ref_or_view, idx, val, mask, minimum)


def atomic_and(x_ref_or_view, idx, val, *, mask=None):
    """The bits in both at an index; returns what was there. mask: where."""
    return _update(x_ref_or_view, idx, val, mask, lambda a, b: a & b)


def atomic_or(x_ref_or_view, idx, val, *, mask=None):
    """The bits in either at an index; returns what was there. mask: where."""
    return _update(x_ref_or_view, idx, val, mask, lambda a, b: a | b)


def atomic_xor(x_ref_or_view, idx, val, *, mask=None):
    """The bits in one at an index; returns what was there. mask: where."""
    return _update(x_ref_or_view, idx, val, mask, lambda a, b: a ^ b)


def atomic_cas(ref, cmp, val):
    """Sets a reference to one number if it holds `cmp`, and returns what it held."""
    old = ref[...]
    ref[...] = lax.select(old == cmp, lax.convert_element_type(_core.asarray(val), old.dtype), old)
    return old


elementwise_inline_asm = _refused("jax.experimental.pallas.triton.elementwise_inline_asm", "it is assembly of GPUs; write it with jnp")
