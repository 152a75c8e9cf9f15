"""Parsing of an index: the expression in the brackets of `x[idx]` as a list of entries.

Invariant: one entry for each axis of the operand, in their order, and one for each new axis; masks
have become the integers of their true positions, and bounds of slices are counted from the front.

    x[1:, None, i]     slice 1:n, new, scalar i, a slice for each remaining axis
"""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np

from ... import _core
from ..._base.dtypes import canonicalize_dtype, is_bool, is_integer
from ...errors import NonConcreteBooleanIndexError
from .._creation.arrays import array as make

_LIST_INDEX = "Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[{}(seq)]` instead of `arr[seq]`."


class Entry(NamedTuple):
    """One part of an index: its kind and the axis of the operand that it reads."""

    kind: str  # "new", "slice", "int" (static), "scalar" (dynamic), "array"
    value: object
    axis: int = -1


def parse(shape, index):
    """(entries, axes of size 1 to insert into the operand first).

    Raises TypeError and IndexError with JAX's message.
    """
    if not isinstance(index, tuple):
        if isinstance(index, list) and any(e is None or e is Ellipsis or isinstance(e, slice) or (isinstance(e, np.ndarray) and e.ndim) for e in index):
            raise TypeError(_LIST_INDEX.format("tuple"))
        index = (index,)
    index = tuple([_from_list(e) if isinstance(e, (list, tuple)) else e for e in index])
    for entry in index:
        _check_type(entry)
    parts = _split_masks(index, shape)
    if sum(e is Ellipsis for e in parts) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    reads = sum([1 for e in parts if e is not None and e is not Ellipsis and not isinstance(e, tuple)])
    if reads > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {reads} were indexed")
    if not any(e is Ellipsis for e in parts):
        parts.append(Ellipsis)
    entries, axis, inserted = [], 0, []
    n_masks = 0
    for position, entry in enumerate(parts):
        if entry is Ellipsis:
            for _ in range(len(shape) - reads):
                entries.append(Entry("slice", (0, shape[axis], 1), axis + n_masks))
                axis += 1
        elif entry is None:
            entries.append(Entry("new", None))
        elif isinstance(entry, tuple):
            # A mask of rank 0 indexes a new axis of size 1, with one position or with none.
            inserted.append(axis + n_masks)
            entries.append(Entry("array", np.zeros(1 if entry[1] else 0, np.int32), axis + n_masks))
            n_masks += 1
        else:
            if isinstance(entry, slice):
                entries.append(Entry("slice", _slice_bounds(entry, shape[axis], position), axis + n_masks))
            else:
                made = _integer_entry(entry, axis + n_masks)
                if made.kind != "array" and shape[axis] == 0:
                    raise IndexError(f"index is out of bounds for axis {axis} with size 0")
                entries.append(made)
            axis += 1
    return entries, inserted


def _integer_entry(entry, axis):
    if isinstance(entry, (int, np.integer)):
        return Entry("int", int(entry), axis)
    if not hasattr(entry, "ndim"):
        return Entry("int", operator.index(entry), axis)
    if entry.ndim == 0:
        if not isinstance(entry, _core.Tracer):
            return Entry("int", int(entry), axis)
        return Entry("scalar", entry, axis)
    return Entry("array", entry, axis)


def _slice_bounds(s, n, position):
    def static(v):
        if v is None or isinstance(v, int):
            return v
        if isinstance(v, _core.Tracer):
            raise IndexError(f"Slice entries must be static integers. Got {s} at position {position}")
        try:
            return operator.index(v)
        except TypeError:
            raise IndexError(f"Slice entries must be static integers. Got {s} at position {position}") from None

    s = slice(static(s.start), static(s.stop), static(s.step))
    if hasattr(n, "slicing"):  # a symbolic size
        n.slicing(s)
    return s.indices(n)


def _leaves(entry):
    if isinstance(entry, (list, tuple)):
        for e in entry:
            yield from _leaves(e)
    else:
        yield entry


def _from_list(entry):
    # JAX refuses lists here; the founding documents use them, and they can mean only one thing.
    if any(isinstance(e, _core.Array) for e in _leaves(entry)):
        return make(entry)
    try:
        array = np.asarray(entry)
    except ValueError:
        raise TypeError(_LIST_INDEX.format("array")) from None
    if array.size == 0:
        return array.astype(np.int32)
    if array.dtype.kind in "iub":
        return array
    if array.dtype.kind in "fc":
        return array.astype(canonicalize_dtype(array.dtype))  # refused as any array of that type is
    raise TypeError(_LIST_INDEX.format("array"))


def _check_type(entry):
    if entry is None or isinstance(entry, (slice, int, np.integer, tuple)) or entry is Ellipsis:
        return
    dtype = getattr(entry, "dtype", None)
    if dtype is not None:
        if is_integer(dtype) or is_bool(dtype):
            return
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {dtype}")
    if isinstance(entry, str):
        raise TypeError(f"JAX does not support string indexing; got idx={entry!r}")
    if isinstance(entry, (float, complex)):
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {np.asarray(entry).dtype}")
    try:
        operator.index(entry)
    except TypeError:
        raise TypeError(f"JAX does not support {type(entry).__name__} indexing; got idx={entry!r}") from None


def _split_masks(index, operand_shape):
    """Index parts with every boolean mask replaced by the integer arrays of its true positions;
    masks of rank 0 as ("mask", bool).
    """
    out, axis = [], 0
    for position, entry in enumerate(index):
        if entry is Ellipsis:
            consumed = sum([_consumed(e) for e in index[position + 1 :]])
            axis = len(operand_shape) - consumed
            out.append(entry)
            continue
        dtype = getattr(entry, "dtype", None)
        if isinstance(entry, (bool, np.bool_)) or (dtype is not None and is_bool(dtype)):
            if np.ndim(entry) > len(operand_shape) - axis:
                raise IndexError(f"Too many indices: array is {len(operand_shape)}-dimensional, but {axis + np.ndim(entry)} were indexed")
            if isinstance(entry, _core.Tracer):
                raise NonConcreteBooleanIndexError(
                    f"Array boolean indices must be concrete; got {entry.aval.str_short(True) if hasattr(entry.aval, 'str_short') else entry.aval}"
                )
            mask = np.asarray(entry)
            if mask.ndim == 0:
                out.append(("mask", bool(mask)))
                continue
            expected = operand_shape[axis : axis + mask.ndim]
            for got, want in zip(mask.shape, expected, strict=True):
                # An axis without elements has no position to compare.
                if got not in (want, 0):
                    raise IndexError(f"boolean index did not match shape of indexed array in index {position}: got {mask.shape}, expected {list(expected)}")
            out.extend(np.nonzero(mask))
            axis += mask.ndim
            continue
        out.append(entry)
        axis += _consumed(entry)
    return out


def _consumed(entry) -> int:
    """How many axes of the operand an index part reads."""
    if entry is None or entry is Ellipsis or isinstance(entry, (bool, np.bool_)):
        return 0
    dtype = getattr(entry, "dtype", None)
    if dtype is not None and not isinstance(entry, type) and is_bool(dtype):
        return np.ndim(entry)
    return 1
