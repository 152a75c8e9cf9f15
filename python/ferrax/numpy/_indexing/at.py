"""Indexing in general: `x[idx]` and `x.at[idx]`.

Invariant: an index is parsed once into entries (`numpy._indexing.entries`). Static entries become
slice, squeeze, rev and broadcast_in_dim, single dynamic integers a dynamic_slice, and all others
one gather or scatter.

    x[1:, None, ::-1]     slice, rev, broadcast_in_dim
    x[i]                  dynamic_slice, squeeze
    x[i_array, 2:]        gather
    x.at[i_array].add(y)  scatter-add
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ... import _core
from ..._base import bounds as _bounds
from ..._base.dtypes import canonicalize_dtype, dtype_of, iinfo, integer_of_float, is_bool, is_complex, is_integer, is_unsigned
from ..._base.shapes import common_shape
from ..._core import bind
from ..._sharding.parts import sharded
from ...errors import ShardingTypeError
from ...lax import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, _gather_scatter as _lax
from ...lax._creation import beside
from .. import divide, power
from .._creation.arrays import array
from .._creation.filled import ones_like, zeros_like
from .entries import parse
from .masked import masked_update, traced_mask

if TYPE_CHECKING:
    from ..._core import Array
    from ...sharding import NamedSharding, PartitionSpec
    from ...typing import ArrayLike

_F = TypeVar("_F", bound="Callable[..., Any]")


def _shape(x):
    return tuple(x.shape)


def _from_end(i, n, wrap=True):
    """A dynamic index with negative values counted from the end of an axis of n, if they `wrap`."""
    if isinstance(i, np.ndarray):
        if not wrap or is_unsigned(i.dtype):
            return _core.asarray(i)
        negative = i < 0
        if not negative.any():
            return _core.asarray(i)
        return _core.asarray(np.where(negative, i.astype(np.int64) + n, i))
    dtype = dtype_of(i)
    if not wrap or is_unsigned(dtype):
        return i
    if iinfo(dtype).max < n:
        i, dtype = _int32(i), np.dtype(np.int32)
    return bind("select_n", bind("lt", i, dtype.type(0)), i, bind("add", _strong(i, dtype), dtype.type(n)))


def _strong(i, dtype):
    return bind("convert_element_type", i, new_dtype=dtype, weak_type=False) if i.weak_type else i


def _int32(i):
    return i if dtype_of(i) == np.int32 and not i.weak_type else bind("convert_element_type", i, new_dtype=np.dtype(np.int32), weak_type=False)


def _static_int(i, n, wrap=True):
    """A static index counted from the front of an axis of n; a negative one that does not `wrap` is
    out of bounds, wherever it is counted from.
    """
    return i + n if i < 0 and wrap else i


# ---- static indexing


def _slice_start(bounds):
    """(start, limit, step > 0, reversed, size) of a slice's elements in ascending order."""
    start, stop, step = bounds
    size = len(range(start, stop, step))
    if step > 0:
        return start, max(start, stop), step, False, size
    return start + (size - 1) * step if size else start + 1, start + 1, -step, True, size


def _static(x, entries, wrap):
    starts, limits, strides, dropped, reversed_ = [], [], [], [], []
    for e in entries:
        if e.kind == "new":
            continue
        n = x.shape[e.axis]
        if e.kind == "int":
            i = min(max(_static_int(e.value, n, wrap), 0), n - 1)
            starts.append(i), limits.append(i + 1), strides.append(1)
            dropped.append(e.axis)
        else:
            start, limit, step, back, size = _slice_start(e.value)
            starts.append(start), limits.append(limit if size else start), strides.append(step)
            if back:
                reversed_.append(e.axis)
    if starts != [0] * x.ndim or limits != list(x.shape) or any(s != 1 for s in strides):
        x = bind(
            "slice",
            x,
            start_indices=tuple(starts),
            limit_indices=tuple(limits),
            strides=tuple(strides) if any(s != 1 for s in strides) else None,
        )
    return _arrange(x, entries, reversed_, dropped)


def _arrange(x, entries, reversed_, dropped):
    """The result of a read with reversed axes, without the axes of integers, and with an axis of
    size 1 for each None of the index.
    """
    if reversed_:
        x = bind("rev", x, dimensions=tuple(reversed_))
    if dropped:
        x = bind("squeeze", x, dimensions=tuple(dropped))
    if not any(e.kind == "new" for e in entries):
        return x
    shape, dims, k = [], [], 0
    for e in entries:
        if e.kind == "new":
            shape.append(1)
        elif e.kind == "slice":
            dims.append(len(shape))
            shape.append(x.shape[k])
            k += 1
    return bind("broadcast_in_dim", x, shape=tuple(shape), broadcast_dimensions=tuple(dims))


def _lone(entries):
    # Whether one dynamic_slice can take them.
    return all(e.kind in ("new", "int", "scalar") or (e.kind == "slice" and abs(e.value[2]) == 1) for e in entries)


def _dynamic(x, entries, wrap):
    """Lone integers, some known only when the program runs, and slices of step 1 or -1: one
    dynamic_slice.
    """
    starts, sizes, dropped, reversed_ = [], [], [], []
    for e in entries:
        if e.kind == "new":
            continue
        if e.kind == "slice":
            start, _, _, back, size = _slice_start(e.value)
            starts.append(start), sizes.append(size)
            if back:
                reversed_.append(e.axis)
        else:
            starts.append(e.value), sizes.append(1)
            dropped.append(e.axis)
    out = bind("dynamic_slice", x, *_dynamic_starts(x.shape, starts, wrap), slice_sizes=tuple(sizes))
    return _arrange(out, entries, reversed_, dropped)


def _dynamic_starts(shape, starts, wrap):
    # Every start is normalised the same way, known or not: that is how JAX's programs read.
    dtype = canonicalize_dtype(np.int32)
    out = []
    for i, n in zip(starts, shape, strict=True):
        if isinstance(i, int):
            i = dtype.type(i)
            out.append(bind("select_n", bind("lt", i, dtype.type(0)), i, bind("add", i, dtype.type(n))) if wrap else i)
        else:
            out.append(_from_end(i, n, wrap))
    return out


# ---- gather and scatter


class Plan(NamedTuple):
    """Operands of gather and scatter: index vectors, sizes, axes, and the conversion from the
    window axes to those of the result.
    """

    indices: object
    slice_sizes: tuple
    offset_dims: tuple
    collapsed: tuple
    start_index_map: tuple
    shape: tuple  # of the gathered result, before new axes
    reversed: tuple
    new_axes: tuple
    advanced: bool


def plan(x_shape, entries, wrap=True):
    """The `Plan` of an index on an operand of `x_shape`; negative integers count from the end if
    they `wrap`.
    """
    group = [e for e in entries if e.kind == "array"]
    advanced = bool(group)
    if advanced:
        group = [e for e in entries if e.kind in ("array", "int", "scalar")]
        positions = [i for i, e in enumerate(entries) if e.kind in ("array", "int", "scalar")]
        first = positions[0]
        together = all(entries[i].kind in ("array", "int", "scalar") for i in range(positions[0], positions[-1] + 1))
        # numpy counts None between two arrays as a separation, too.
        where = first if together else -1
        arrays = _broadcast_group(group, x_shape, wrap)
    components, start_index_map, collapsed, offset, batch, out = [], [], [], [], [], []
    reversed_, new_axes = [], []
    sizes = list(x_shape)

    def emit_group():
        common = _shape(arrays[0])
        axes = []
        for n in common:
            axes.append(len(batch))
            batch.append(n)
            out.append(n)
        for e, a in zip(group, arrays, strict=True):
            components.append((a, tuple(axes)))
            start_index_map.append(e.axis)
            collapsed.append(e.axis)
            sizes[e.axis] = 1

    # positions of the result's axes that follow new axes, in the final numbering
    final_axis = 0
    if advanced and where == -1:
        emit_group()
        final_axis += len(_shape(arrays[0]))
    for i, e in enumerate(entries):
        if e.kind == "new":
            new_axes.append(final_axis)
            final_axis += 1
            continue
        if e.kind in ("array", "int", "scalar") and advanced:
            if i == where:
                emit_group()
                final_axis += len(_shape(arrays[0]))
            continue
        n = x_shape[e.axis]
        if e.kind == "int":
            components.append((np.int32(_static_int(e.value, n, wrap)), ()))
            start_index_map.append(e.axis), collapsed.append(e.axis)
            sizes[e.axis] = 1
            continue
        if e.kind == "scalar":
            components.append((_int32(_from_end(e.value, n, wrap)), ()))
            start_index_map.append(e.axis), collapsed.append(e.axis)
            sizes[e.axis] = 1
            continue
        start, _, step, back, size = _slice_start(e.value)
        if step == 1 and not back:
            if not (start == 0 and size == n):
                components.append((np.int32(start), ()))
                start_index_map.append(e.axis)
            sizes[e.axis] = size
            offset.append(len(out))
        else:
            first_index, _, signed = e.value
            i32 = np.dtype(np.int32)
            iota = bind("iota", dtype=i32, shape=(size,), dimension=0)
            indices = bind("add", np.int32(first_index), bind("mul", np.int32(signed), iota))
            if back:
                indices = bind("rev", indices, dimensions=(0,))
                reversed_.append(len(out))
            components.append((indices, (len(batch),)))
            batch.append(size)
            start_index_map.append(e.axis), collapsed.append(e.axis)
            sizes[e.axis] = 1
        out.append(size)
        final_axis += 1
    indices = _join(components, tuple(batch))
    return Plan(
        indices,
        tuple(sizes),
        tuple(offset),
        tuple(sorted(collapsed)),
        tuple(start_index_map),
        tuple(out),
        tuple(reversed_),
        tuple(new_axes),
        advanced,
    )


def _broadcast_group(group, x_shape, wrap):
    """The integers and arrays of an index, broadcast against one another as int32 arrays."""
    values = []
    for e in group:
        n = x_shape[e.axis]
        values.append(_static_int(e.value, n, wrap) if e.kind == "int" else _from_end(e.value, n, wrap))
    shapes = [np.shape(v) for v in values]
    common = common_shape(*shapes)
    out = []
    for v in values:
        if np.shape(v) != common:
            k = len(common) - np.ndim(v)
            v = bind("broadcast_in_dim", v, shape=common, broadcast_dimensions=tuple(range(k, len(common))))
        out.append(_int32(v))
    return out


def _join(components, batch):
    if not components:
        return _core.asarray(np.zeros((*batch, 0), np.int32))
    columns = [bind("broadcast_in_dim", c, shape=(*batch, 1), broadcast_dimensions=axes) for c, axes in components]
    return columns[0] if len(columns) == 1 else bind("concatenate", *columns, dimension=len(batch))


def _expand(x, axes):
    if not axes:
        return x
    rank = x.ndim + len(axes)
    sizes = iter(x.shape)
    shape = tuple([1 if d in axes else next(sizes) for d in range(rank)])
    return bind("broadcast_in_dim", x, shape=shape, broadcast_dimensions=tuple([d for d in range(rank) if d not in axes]))


def getitem(x, index, indices_are_sorted=False, unique_indices=False, mode=None, fill_value=None, wrap=True):
    """x[index].

    index: integers, slices, None, Ellipsis, integer and boolean arrays (and lists of them), or a
    tuple of those. A traced boolean array
    raises NonConcreteBooleanIndexError. mode: what out of bounds means, by default the nearest
    element; "fill" gives `fill_value` (nan or the extreme of the dtype if None). wrap: whether
    negative integers count from the end, or are out of bounds. Raises IndexError for too many
    indices, TypeError for what cannot be an index.
    """
    if fill_value is not None and np.ndim(fill_value):
        raise ValueError("fill_value argument to indexed get() must be a scalar")
    entries, inserted = parse(_shape(x), index)
    x = _expand(x, inserted)
    if mode is None and _bounds.strict():
        entries = _bounds.check(_shape(x), entries, wrap)
    parsed = None if mode is None else GatherScatterMode.from_any(mode)
    _bounds.check_integers(_shape(x), entries, inserted, wrap, parsed)
    filled = all(e.kind != "int" or x.shape[e.axis] for e in entries)
    if filled and not any(e.kind in ("array", "scalar") for e in entries):
        inside = all(e.kind != "int" or (-x.shape[e.axis] if wrap else 0) <= e.value < x.shape[e.axis] for e in entries)
        # One that is out of bounds stays an index, so that a program that is searched for errors has it; one that is clipped on purpose does not.
        if inside or parsed == GatherScatterMode.CLIP:
            return _static(x, entries, wrap)
        entries = [e._replace(value=min(max(e.value, -(2**31)), 2**31 - 1)) if e.kind == "int" else e for e in entries]
    if filled and parsed != GatherScatterMode.FILL_OR_DROP and _lone(entries):
        return _dynamic(x, entries, wrap)
    p = plan(_shape(x), entries, wrap)
    if 0 in p.shape:
        out = beside(bind("broadcast_in_dim", _core.asarray(0, x.dtype, weak_type=x.weak_type), shape=p.shape, broadcast_dimensions=()), x)
    else:
        if not p.advanced:
            indices_are_sorted = unique_indices = True
        numbers = GatherDimensionNumbers(p.offset_dims, p.collapsed, p.start_index_map)
        out = _lax.gather(
            x,
            p.indices,
            numbers,
            p.slice_sizes,
            unique_indices=unique_indices,
            indices_are_sorted=indices_are_sorted,
            mode=GatherScatterMode.PROMISE_IN_BOUNDS if parsed is None else parsed,
            fill_value=fill_value,
        )
    if p.reversed:
        out = bind("rev", out, dimensions=p.reversed)
    return _expand(out, p.new_axes)


def _mask_in(index):
    """The position of an index's only traced mask; None if there is none, or if it is not allowed
    there.
    """
    return traced_mask(index if isinstance(index, tuple) else (index,))


def _at_mask(x, index, place, y, update, mode, wrap):
    """`x` with `update` applied to the part around a traced mask, where the mask is true."""
    index = index if isinstance(index, tuple) else (index,)
    read = lambda x, around: getitem(x, around, mode="clip", wrap=wrap)
    write = lambda x, around, part: _update("scatter", x, around, part, unique_indices=True, mode=mode, wrap=wrap)
    return masked_update(x, index, place, y, read, write, update)


_OPERATIONS = {"scatter-add": "add", "scatter-sub": "sub", "scatter-mul": "mul"}


def _update(name, x, index, y, indices_are_sorted=False, unique_indices=False, mode=None, wrap=True):
    x = _core.asarray(x)
    dtype = x.dtype
    if not (hasattr(y, "dtype") or isinstance(y, (int, float, complex)) or hasattr(y, "__jax_array__")):
        y = array(y)  # a list, or whatever else numpy reads
    if isinstance(y, bool) and is_integer(dtype):
        y = int(y)  # as Python's, which strict promotion accepts
    common = _core.result_type(x, y)
    if common != dtype:
        _warn_of_lossy_update(dtype_of(y), dtype)
    if name != "scatter" and not is_complex(dtype_of(y)):
        # Arithmetic takes place where both operands fit.
        if common != dtype:
            wide = _update(name, _lax.convert_element_type(x, common), index, y, indices_are_sorted, unique_indices, mode, wrap)
            return bind("convert_element_type", wide, new_dtype=dtype, weak_type=x.weak_type)
        if is_bool(dtype) and name in _OPERATIONS:
            raise TypeError(
                f"{_OPERATIONS[name]} does not accept dtype bool at position 0. Accepted dtypes at position 0 are subtypes of integer, floating, complexfloating."
            )
    if (place := _mask_in(index)) is not None:
        return _at_mask(x, index, place, y, lambda part, y: _update(name, part, ..., y), mode, wrap)
    entries, inserted = parse(_shape(x), index)
    y = y if isinstance(y, _core.Array) else _as_value(y, dtype)
    if y.dtype.kind == "c" and dtype.kind != "c":
        y = bind("real", y)
    if x.weak_type or (isinstance(y, _core.Array) and (y.dtype != dtype or y.weak_type)):
        # The result is of x's type, weak where x is.
        y = bind("convert_element_type", y, new_dtype=dtype, weak_type=x.weak_type)
    expanded = _expand(x, inserted)
    if mode is None and _bounds.strict():
        entries = _bounds.check(_shape(expanded), entries, wrap)
    p = plan(_shape(expanded), entries, wrap)
    if 0 in p.shape:
        return x
    final = list(p.shape)
    for axis in p.new_axes:
        final.insert(axis, 1)
    y = _broadcast_update(y, tuple(final))
    if p.new_axes:
        y = bind("squeeze", y, dimensions=p.new_axes)
    if p.reversed:
        y = bind("rev", y, dimensions=p.reversed)
    if not p.advanced:
        indices_are_sorted = unique_indices = True
    numbers = ScatterDimensionNumbers(p.offset_dims, p.collapsed, p.start_index_map)
    write = lambda: _lax._scatter(name, expanded, p.indices, y, numbers, indices_are_sorted, unique_indices, mode)
    try:
        out = write()
    except ShardingTypeError:
        own = _core.get_aval(expanded).sharding
        if any(own.spec.axes_of(d) for d in p.start_index_map):
            raise
        out = _core.reshard(_core.resolved(write, (), {}), own)  # no index is along a dimension that is cut: each part is written to by itself
    return bind("squeeze", out, dimensions=tuple(inserted)) if inserted else out


def _warn_of_lossy_update(value, dtype):
    mode = _core.config_get("jax_numpy_dtype_promotion")
    warnings.warn(
        f"scatter inputs have incompatible types: cannot safely cast value from dtype={value.name} to dtype={dtype.name} with "
        f"jax_numpy_dtype_promotion={mode}. In future JAX releases this will result in an error.",
        FutureWarning,
        stacklevel=4,
    )
    if is_complex(value):
        warnings.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning, stacklevel=4)


def _as_value(y, dtype):
    """The value to write, as an array, or as a scalar of the dtype, which is a literal in
    programs.
    """
    if type(y) is int and not -(2**31) <= y < 2**31:
        return _core.asarray(y, dtype)  # read at x's dtype, or refused
    if isinstance(y, (bool, int, float)) or (isinstance(y, complex) and is_complex(dtype)):
        if isinstance(y, float) and is_integer(dtype):
            return integer_of_float(float(_core.asarray(y)), dtype)
        with np.errstate(all="ignore"):
            return np.asarray(y).astype(dtype)[()]
    return _core.asarray(y)


def _broadcast_update(y, shape):
    if _shape(y) == shape:
        return y
    if y.ndim > len(shape):
        extra = y.ndim - len(shape)
        if any(n != 1 for n in y.shape[:extra]):
            raise ValueError(f"Cannot broadcast to shape with fewer dimensions: arr_shape={_shape(y)} shape={shape}")
        y = bind("squeeze", y, dimensions=tuple(range(extra)))
        return _broadcast_update(y, shape)
    lead = len(shape) - y.ndim
    if any(m not in (1, n) for m, n in zip(y.shape, shape[lead:], strict=True)):
        text = lambda s: f"{y.dtype.name}[{','.join(map(str, s))}]"
        raise ValueError(f"Incompatible types for broadcasting: input type={text(y.shape)} and requested type={text(shape)}")
    return _core.broadcast_to(y, shape)


def _updating(like: _F, name: str, primitive: str, text: str, combine: Callable[..., Array] | None = None) -> _F:
    """A method of `IndexUpdateRef` with the parameters of another one.

    combine: computes the result of x and of ones that are updated.
    """

    def update(
        self, values, *, indices_are_sorted=False, unique_indices=False, mode=None, out_sharding=None, wrap_negative_indices=True
    ):  # fmt: skip
        if out_sharding is not None:
            return sharded(update, locals())
        x = self.array if combine is None else ones_like(self.array)
        out = _update(primitive, x, self.index, values, indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        return out if combine is None else combine(self.array, out)

    # to frames a method like those that are written out
    update.__code__ = update.__code__.replace(co_name=name, co_qualname=f"IndexUpdateRef.{name}")
    update.__name__, update.__qualname__, update.__doc__ = name, f"IndexUpdateRef.{name}", text
    update.__annotations__ = like.__annotations__
    return update


class IndexUpdateHelper:
    """`x.at`: index it, then call the update to make. x itself is never changed."""

    array: Array

    __slots__ = ("array",)
    __iter__ = None  # `list(x.at)` would index it without end

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self):
        return f"IndexUpdateHelper({self.array!r})"


class IndexUpdateRef:
    """`x.at[index]`: the update functions.

    Each takes indices_are_sorted and unique_indices (promises about the index) and mode: "drop"
    (the default: updates out of bounds are dropped), "clip", "promise_in_bounds";
    wrap_negative_indices: whether negative integers count from the end, or are out of bounds; `get`
    also "fill" with a fill_value. Values are broadcast to the indexed shape and converted to x's
    dtype.

        x.at[idx].add(1.0)
    """

    array: Array
    index: Any

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any) -> None:
        self.array, self.index = array, index

    def __repr__(self):
        return f"IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        fill_value: ArrayLike | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x[index], with `mode` for indices out of bounds: by default the nearest element."""
        if out_sharding is not None:
            return sharded(IndexUpdateRef.get, locals())
        return getitem(_core.asarray(self.array), self.index, indices_are_sorted, unique_indices, mode, fill_value, wrap_negative_indices)

    def set(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x with x[index] = values."""
        if out_sharding is not None:
            return sharded(IndexUpdateRef.set, locals())
        return _update("scatter", self.array, self.index, values, indices_are_sorted, unique_indices, mode, wrap_negative_indices)

    add = _updating(set, "add", "scatter-add", "x with x[index] += values; repeated indices add up.")
    subtract = _updating(set, "subtract", "scatter-sub", "x with x[index] -= values; repeated indices add up.")
    multiply = mul = _updating(set, "multiply", "scatter-mul", "x with x[index] *= values; repeated indices multiply up.")
    divide = _updating(set, "divide", "scatter-mul", "x with x[index] /= values.", divide)
    power = _updating(set, "power", "scatter-mul", "x with x[index] **= values.", power)
    min = _updating(set, "min", "scatter-min", "x with x[index] = minimum(x[index], values).")
    max = _updating(set, "max", "scatter-max", "x with x[index] = maximum(x[index], values).")

    def apply(
        self,
        func: Callable[[Array], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x with x[index] = func(x[index]) for an elementwise `func`; for a repeated index func is
        applied once for each mention.
        """
        if out_sharding is not None:
            return sharded(IndexUpdateRef.apply, locals())
        x = _core.asarray(self.array)
        if (place := _mask_in(self.index)) is not None:
            applied = lambda part, _: _lax.convert_element_type(func(part), x.dtype)
            return _at_mask(x, self.index, place, None, applied, mode, wrap_negative_indices)
        entries, _ = parse(_shape(x), self.index)
        if unique_indices or not any(e.kind == "array" for e in entries):
            # Nothing is named twice: read, transform, write.
            old = getitem(x, self.index, mode="clip", wrap=wrap_negative_indices)
            new = _lax.convert_element_type(func(old), x.dtype)
            return self.set(new, unique_indices=unique_indices, mode=mode, wrap_negative_indices=wrap_negative_indices)
        mentions = _update("scatter-add", zeros_like(x, dtype=np.int32), self.index, 1, indices_are_sorted, False, mode, wrap_negative_indices)
        return _lax.apply_where(x, mentions, func)
