"""The references that a kernel is given.

    x_ref[pl.ds(i * 8, 8), :]                # a block of rows; `i` may be traced
    x_ref.at[0].at[pl.ds(4, 4)]              # a part as a reference

Invariant: a part of a reference is a view without storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core, lax
from ..._base.dtypes import is_bool, is_integer
from ..._references.functions import ds as strided
from ..._references.refs import Ref
from ...dtypes import iinfo
from ._specs import Slice

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

__all__ = ["KernelRef", "View", "ds", "dslice", "uninitialized"]


def ds(start: Any, size: Any = None, stride: Any = None) -> Slice:
    """The index of a range of elements.

    Args:
        start: int, or integer scalar array, the first element.
        size: int, the number of elements; None: `start` is the number, and the first is 0.
        stride: int, the distance between elements; None: 1.

    Returns:
        Slice.

    >>> ds(2, 3)
    Slice(start=2, size=3, stride=1)
    """
    if size is None:
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else stride)


dslice = ds


def uninitialized(shape, dtype):
    """The contents of uninitialized memory: nan, the least integer, False."""
    dtype = np.dtype(dtype)
    if is_bool(dtype):
        value = False
    elif is_integer(dtype):
        value = iinfo(dtype).min
    else:
        value = np.nan
    return lax.full(tuple(shape), value, dtype)


def _is_scalar(e):
    return isinstance(e, (int, np.integer)) or (isinstance(e, _core.Array) and e.ndim == 0 and is_integer(e.dtype))


def _entries(idx, rank):
    """An index as one entry a dimension; None where it has others than slices, numbers and an
    ellipsis.
    """
    entries = list(idx) if isinstance(idx, tuple) else [idx]
    if sum(e is ... for e in entries) > 1 or any(e is None for e in entries):
        return None
    if ... in [e for e in entries if e is ...]:
        at = next(k for k, e in enumerate(entries) if e is ...)
        entries[at : at + 1] = [slice(None)] * (rank - len(entries) + 1)
    entries += [slice(None)] * (rank - len(entries))
    return entries if len(entries) == rank else None


def _block(idx, shape):
    """(starts, sizes, dimensions to drop) of an index that selects a block at a traced position;
    None for other indices.
    """
    parts = idx if isinstance(idx, tuple) else (idx,)
    if not any(isinstance(e, Slice) for e in parts):
        return None
    entries = _entries(idx, len(shape))
    if entries is None:
        return None
    starts, extents, gone = [], [], []
    for k, (e, n) in enumerate(zip(entries, shape, strict=True)):
        if isinstance(e, slice):
            if e.step not in (None, 1):
                return None
            start, stop, _ = e.indices(n)
            starts.append(start)
            extents.append(max(stop - start, 0))
        elif isinstance(e, Slice) and e.stride == 1:
            starts.append(e.start)
            extents.append(e.size)
        elif _is_scalar(e):
            starts.append(e + n if isinstance(e, (int, np.integer)) and e < 0 else e)
            extents.append(1)
            gone.append(k)
        else:
            return None
    if all(isinstance(s, (int, np.integer)) for s in starts) or any(size > n for size, n in zip(extents, shape, strict=True)):
        return None
    return [lax.convert_element_type(s, np.int32) for s in starts], tuple(extents), tuple(gone)


def _plain(idx):
    """The index with slices as the language has them."""
    if isinstance(idx, tuple):
        return tuple(map(_plain, idx))
    return strided(idx.start, idx.size, idx.stride) if isinstance(idx, Slice) else idx


class KernelRef(Ref):
    """A reference that a kernel is given: of a block, of scratch."""

    __slots__ = ()

    @property
    def at(self) -> Any:
        """Views of parts: `x.at[i]`."""
        return _At(self)

    def __getitem__(self, idx):
        block = _block(idx, self.shape)
        if block is None:
            return super().__getitem__(_plain(idx))
        starts, extents, gone = block
        return lax.squeeze(lax.dynamic_slice(self._here(), starts, extents), gone)

    def _update(self, what, idx, value):
        block = _block(idx, self.shape)
        if block is None:
            return super()._update(what, _plain(idx), value)
        starts, extents, gone = block
        kept = tuple(k for k in range(len(extents)) if k not in gone)
        shape = tuple(extents[k] for k in kept)
        x, value = self._here(), _core.asarray(value)
        if value.dtype != self.dtype and not value.aval.weak_type:
            raise ValueError(f"Invalid dtype for `swap`. Ref dtype: {self.dtype}. Value dtype: {value.dtype}. ")
        if value.shape != shape:
            raise ValueError(f"Invalid shape for `swap`. Ref shape: {self.shape}. Expected shape: {shape}. Value shape: {value.shape}.")
        value = lax.broadcast_in_dim(lax.convert_element_type(value, self.dtype), extents, kept)
        if what == "add":
            value = lax.add(lax.dynamic_slice(x, starts, extents), value)
        return super()._update("set", ..., lax.dynamic_update_slice(x, value, starts))

    def get(self, idx=...):
        """The elements at an index."""
        return self[idx]

    def set(self, value, idx=...):
        """Sets the elements at an index."""
        self[idx] = value

    def swap(self, value, idx=...):
        """Sets the elements at an index, and returns the elements before."""
        old = self[idx]
        self[idx] = value
        return old


class _At:
    """`ref.at[idx]`."""

    __slots__ = ("_ref",)

    def __init__(self, ref):
        self._ref = ref

    def __getitem__(self, idx):
        return View(self._ref, idx)


class View:
    """A part of a reference, which is read and written as a reference is."""

    __slots__ = ("_idx", "_whole")

    def __init__(self, whole, idx):
        self._whole, self._idx = whole, idx

    @property
    def aval(self):
        """The type of the part."""
        return _core.get_aval(self._whole[self._idx])

    @property
    def ref(self) -> Any:
        """The whole reference."""
        return self._whole

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.aval.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self._whole.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def at(self) -> Any:
        """Views of parts: `x.at[i]`."""
        return _At(self)

    def __getitem__(self, idx):
        return KernelRef(self._whole[self._idx])[idx]

    def __setitem__(self, idx, value):
        part = KernelRef(self._whole[self._idx])
        part[idx] = value
        self._whole[self._idx] = part[...]

    def addupdate(self, value, idx=...):
        """Adds to the elements at an index."""
        part = KernelRef(self._whole[self._idx])
        part.addupdate(value, idx)
        self._whole[self._idx] = part[...]

    get, set, swap = KernelRef.get, KernelRef.set, KernelRef.swap

    def __len__(self):
        return self.shape[0]


def load(ref: Any, *, mask: Any = None, other: Any = None, cache_modifier: Any = None, eviction_policy: Any = None, volatile: bool = False) -> Array:
    """The elements of a reference.

    Args:
        ref: reference or a part of one.
        mask: boolean array, which elements to read; None: all.
        other: array or number, the value of the other elements; None: they have no particular
          value.
        cache_modifier, eviction_policy, volatile: accepted without effect.

    Returns:
        Array of the shape and dtype of the reference.
    """
    value = ref[...]
    if mask is None:
        return value
    rest = uninitialized((), value.dtype) if other is None else lax.convert_element_type(other, value.dtype)
    return lax.select(_over(mask, value.shape), value, _over(rest, value.shape))


def store(ref: Any, val: ArrayLike, *, mask: Any = None, eviction_policy: Any = None) -> None:
    """Sets elements of a reference.

    Args:
        ref: reference or a part of one.
        val: array of its shape, or one that broadcasts to it.
        mask: boolean array, which elements to set; None: all.
        eviction_policy: accepted without effect.

    Returns:
        None.
    """
    if mask is not None:
        old = ref[...]
        val = lax.select(_over(mask, old.shape), lax.convert_element_type(_over(val, old.shape), old.dtype), old)
    ref[...] = val


def _over(x, shape):
    x = _core.asarray(x)
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))
