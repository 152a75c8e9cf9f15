"""Functions of mutable references: creation, freezing, reading, writing, and `ds` for slices.

Invariant: each is a method of `Ref` or `Ref` itself under JAX's name.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .refs import NO_GRAD, Ref

if TYPE_CHECKING:
    from .._core import Array


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A mutable reference whose first value is an array's.

    Args:
        init_val: an array or a number.
        memory_space: there is one kind of memory.
        kind: "no_grad_no_remat" for a reference that stores values as constants: derivatives do not
          pass through it.

    Returns:
        Reference.

    Raises:
        TypeError: the value is not an array.

    >>> ref = new_ref(jnp.zeros(3))
    >>> ref[1] = 2.0
    >>> ref[...]
    Array([0., 2., 0.], dtype=float32)
    """
    if memory_space is not None:
        raise NotImplementedError(f"new_ref: memory_space={memory_space!r}: a device has one kind of memory")
    if kind not in (None, NO_GRAD):
        raise NotImplementedError(f"new_ref: kind must be None or {NO_GRAD!r}, got {kind!r}")
    try:
        _core.get_aval(init_val)
    except TypeError:
        raise TypeError(
            f"Error interpreting argument to new_ref as a JAX value. The problematic value is of type {type(init_val)} and was passed to new_ref at position 0."
        ) from None
    return Ref(init_val, kind)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference of a type, anything with a shape and a dtype.

    Its value is zeros until it is written.

    Args:
        ty: anything with a shape and a dtype.
        memory_space: must be None.

    Returns:
        Reference.
    """
    zero = np.zeros((), ty.dtype)
    return new_ref(_core.broadcast_to(_core.asarray(zero), tuple(ty.shape)), memory_space=memory_space)


def freeze(ref: Ref) -> Array:
    """Ends a reference, and returns its value.

    Args:
        ref: reference.

    Returns:
        Array.
    """
    value = ref._here()
    ref._value = None
    return value


def free_ref(ref: Ref) -> None:
    """Ends a reference, and discards its value.

    Args:
        ref: reference.

    Returns:
        None.
    """
    freeze(ref)


def ref_get(ref: Any, idx: Any = None) -> Array:
    """`ref[idx]`; None: all of it.

    Args:
        ref: reference.
        idx: index; None: all of it.

    Returns:
        Array.
    """
    return ref[... if idx is None else idx]


def ref_set(ref: Any, idx: Any, value: Any) -> None:
    """`ref[idx] = value`.

    Args:
        ref: reference.
        idx: index; None: all of it.
        value: array that broadcasts to ref[idx].

    Returns:
        None.
    """
    ref[... if idx is None else idx] = value


def ref_swap(ref: Any, idx: Any, value: Any, _function_name: str = "ref_swap") -> Array:
    """Sets the elements at `idx`, and returns the elements before.

    Args:
        ref: reference.
        idx: index; None: all of it.
        value: array that broadcasts to ref[idx].

    Returns:
        Array: the previous value.
    """
    old = ref_get(ref, idx)
    ref_set(ref, idx, value)
    return old


def ref_addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Adds to the elements at `idx`.

    Args:
        ref: reference.
        idx: index; None: all of it.
        x: array that broadcasts to ref[idx].

    Returns:
        None.
    """
    ref.addupdate(x, ... if idx is None else idx)


def ds(start: int | Array | None, size: int | Array | None = None, stride: int | None = None) -> slice | Array:
    """The index of `size` elements from `start`, each `stride` after the last: `ref[ds(i, 3)]`,
    `x[ds(i, 3)]`.

    Args:
        start: int or integer scalar, which may be traced; if it is the only argument, it is `size`
          and the index starts at 0.
        size: int.
        stride: int; None: 1.

    Returns:
        The index.

    >>> jnp.arange(10)[ds(jnp.int32(2), 3, 2)]
    Array([2, 4, 6], dtype=int32)
    """
    if size is None:
        start, size = 0, start
    stride = 1 if stride is None else stride
    if isinstance(start, int):
        return slice(start, start + (size - 1) * stride + 1 if size else start, stride)
    steps = _core.bind("iota", dtype=np.dtype(np.int32), shape=(operator.index(size),), dimension=0)
    return _core.elementwise("add", start, _core.elementwise("mul", steps, np.int32(stride)))
