"""Shapes: reshape, transpose, join, split, repeat, flip, roll, pad.

Invariant: no element changes value; each function is one or a few data-movement primitives.

    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
"""
from __future__ import annotations

import math
import operator

import numpy as np

from .. import _core
from .._core import bind
from ._arguments import (
    Array, as_array, canonicalize_axes, canonicalize_axis, canonicalize_shape, check_arraylike, concrete_or_error, convert,
    is_arraylike, jitted, unsupported,
)  # fmt: skip


def shape(a):
    """The shape of an array or of nested lists, a tuple of ints."""
    if isinstance(a, Array):
        return tuple(a.shape)
    return np.shape(a)


def ndim(a):
    """The number of axes."""
    return len(shape(a))


def size(a, axis=None):
    """The number of elements, in all or along `axis` (one or several)."""
    s = shape(a)
    if axis is None:
        return math.prod(s)
    return math.prod([s[d] for d in canonicalize_axes(axis, len(s))])


def _resolve(a, newshape):
    new = canonicalize_shape(newshape) if not isinstance(newshape, str) else canonicalize_shape_error(newshape)
    n = math.prod(a.shape)
    unknown = [i for i, d in enumerate(new) if d == -1]
    if len(unknown) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {new}")
    if unknown:
        known = math.prod([d for d in new if d != -1])
        if known == 0 or n % known:
            if not (known == 0 and n == 0):
                raise TypeError(
                    f"cannot reshape array of shape {tuple(a.shape)} (size {n}) into shape {new} because the product of specified axis sizes "
                    f"({known}) does not evenly divide {n}"
                )
        new = tuple([(n // known if known else 0) if d == -1 else d for d in new])
    if math.prod(new) != n:
        raise TypeError(f"cannot reshape array of shape {tuple(a.shape)} (size {n}) into shape {new} (size {math.prod(new)})")
    return new


def canonicalize_shape_error(text):
    raise TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {text}.")


def reshape(a, shape, order="C", *, copy=None, out_sharding=None):
    """The elements of a in a new shape, one of whose sizes may be -1. order: "C", last axis fastest, or "F", first axis fastest.

    Raises TypeError where the number of elements differs.
    """
    a = as_array("reshape", a)
    new = _resolve(a, shape)
    if order == "C":
        return a if tuple(a.shape) == new else bind("reshape", a, new_sizes=new, dimensions=None)
    if order == "F":
        out = bind("reshape", transpose(a), new_sizes=new[::-1], dimensions=None)
        return transpose(out)
    if order == "A":
        raise NotImplementedError("np.reshape order=A is not implemented.")
    raise ValueError(f"Unexpected value for 'order' argument: {order}.")


def ravel(a, order="C", *, out_sharding=None):
    """a flattened to one axis."""
    a = as_array("ravel", a)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    if order == "F" and a.ndim > 1:
        return bind("reshape", transpose(a), new_sizes=(a.size,), dimensions=None)
    return reshape(a, (a.size,), "C" if order == "F" else order)


def transpose(a, axes=None):
    """a with its axes in the order `axes`, or reversed."""
    a = as_array("transpose", a)
    if axes is None:
        permutation = tuple(range(a.ndim))[::-1]
    else:
        permutation = tuple([canonicalize_axis(d, a.ndim) for d in axes])
    return a if permutation == tuple(range(a.ndim)) else bind("transpose", a, permutation=permutation)


def permute_dims(a, /, axes):
    """The same as `transpose`."""
    check_arraylike("permute_dims", a)
    return transpose(a, axes)


def matrix_transpose(x, /):
    """The last two axes swapped. Raises ValueError below rank 2."""
    x = as_array("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={x.ndim}")
    return transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def swapaxes(a, axis1, axis2):
    """a with two axes exchanged."""
    a = as_array("swapaxes", a)
    i, j = canonicalize_axis(axis1, a.ndim), canonicalize_axis(axis2, a.ndim)
    axes = list(range(a.ndim))
    axes[i], axes[j] = axes[j], axes[i]
    return transpose(a, axes)


def moveaxis(a, source, destination):
    """a with the axes `source` moved to the places `destination`; the others keep their order."""
    a = as_array("moveaxis", a)
    source = canonicalize_axes(source if isinstance(source, (tuple, list)) else (source,), a.ndim)
    destination = canonicalize_axes(destination if isinstance(destination, (tuple, list)) else (destination,), a.ndim)
    if len(source) != len(destination):
        raise ValueError(f"Inconsistent number of elements: {len(source)} vs {len(destination)}")
    order = [d for d in range(a.ndim) if d not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return transpose(a, order)


@jitted("rollaxis", static=("axis", "start"))
def _rollaxis(a, axis, start):
    return moveaxis(a, axis, start)


def rollaxis(a, axis, start=0):
    """a with `axis` moved to stand before `start`."""
    a = as_array("rollaxis", a)
    start = operator.index(start)
    if not -a.ndim <= start <= a.ndim:
        raise ValueError(f"start={start} must satisfy {-a.ndim}<=start<={a.ndim}")
    if start < 0:
        start += a.ndim
    axis = canonicalize_axis(axis, a.ndim)
    return _rollaxis(a, axis=axis, start=start - 1 if start > axis else start)


def squeeze(a, axis=None):
    """a without its axes of size 1, or without `axis`. Raises ValueError where the size is not 1."""
    a = as_array("squeeze", a)
    if axis is None:
        axes = tuple([d for d, n in enumerate(a.shape) if n == 1])
    else:
        axes = canonicalize_axes(axis, a.ndim)
    return bind("squeeze", a, dimensions=tuple(sorted(axes))) if axes else a


def expand_dims(a, axis):
    """a with axes of size 1 inserted so that they are at `axis` of the result."""
    a = as_array("expand_dims", a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = a.ndim + len(axes)
    new = [canonicalize_axis(d, rank) for d in axes]
    if len(set(new)) != len(new):
        raise ValueError("repeated axis in expand_dims")
    sizes = iter(a.shape)
    wide = tuple([1 if d in new else next(sizes) for d in range(rank)])
    return bind("broadcast_in_dim", a, shape=wide, broadcast_dimensions=tuple([d for d in range(rank) if d not in new])) if new else a


def broadcast_shapes(*shapes):
    """The shape that arrays of `shapes` broadcast to. Raises ValueError where there is none."""
    from ..lax import broadcast_shapes as broadcast

    return broadcast(*[(s,) if isinstance(s, (int, np.integer)) else tuple(s) for s in shapes])


def broadcast_to(array, shape, *, out_sharding=None):
    """`array` spread over `shape` by numpy's rules. Raises ValueError where it does not fit."""
    array = as_array("broadcast_to", array)
    shape = canonicalize_shape(shape)
    if tuple(array.shape) == shape:
        return array
    k = len(shape) - array.ndim
    if k < 0:
        raise ValueError(f"Cannot broadcast to shape with fewer dimensions: arr_shape={tuple(array.shape)} shape={shape}")
    if any(a not in (1, b) for a, b in zip(array.shape, shape[k:])):
        want = f"{array.dtype.name}[{','.join(map(str, shape))}]"
        have = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
        raise ValueError(f"Incompatible types for broadcasting: input type={have} and requested type={want}")
    return _core.broadcast_to(array, shape)


def broadcast_arrays(*args):
    """All arguments spread over their common shape, as a list."""
    check_arraylike("broadcast_arrays", *args)
    shape = broadcast_shapes(*[np.shape(a) for a in args])
    return [broadcast_to(a, shape) for a in args]


def _sequence(name, arrays):
    if isinstance(arrays, (np.ndarray, Array)):
        return [arrays[i] for i in range(arrays.shape[0])] if arrays.ndim else [arrays]
    return list(arrays)


def concatenate(arrays, axis=0, dtype=None):
    """The arrays joined along `axis`; flattened first if it is None. dtype: of the result, by default the promoted one."""
    if isinstance(arrays, (np.ndarray, Array)) and np.ndim(arrays) > 1 and axis is not None and dtype is None:
        a = _core.asarray(arrays)
        axis = canonicalize_axis(axis, a.ndim - 1)
        moved = moveaxis(a, 0, axis)
        return reshape(moved, (*a.shape[1 : axis + 1], a.shape[0] * a.shape[axis + 1], *a.shape[axis + 2 :]))
    arrays = _sequence("concatenate", arrays)
    check_arraylike("concatenate", *arrays)
    if not len(arrays):
        raise ValueError("Need at least one array to concatenate.")
    if axis is None:
        return concatenate([ravel(a) for a in arrays], axis=0, dtype=dtype)
    if np.ndim(arrays[0]) == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    axis = canonicalize_axis(axis, np.ndim(arrays[0]))
    if dtype is None:
        arrays = _core.promote_dtypes(*arrays)
    else:
        arrays = [convert(as_array("concatenate", a), dtype) for a in arrays]
    ranks = {a.ndim for a in arrays}
    if len(ranks) > 1:
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: got {', '.join(str(tuple(a.shape)) for a in arrays)}.")
    return arrays[0] if len(arrays) == 1 else bind("concatenate", *arrays, dimension=axis)


def concat(arrays, /, *, axis=0):
    """The same as `concatenate`."""
    return concatenate(arrays, axis=axis)


def stack(arrays, axis=0, out=None, dtype=None):
    """The arrays, all of one shape, joined along a new axis."""
    unsupported("jnp.stack", out=out)
    if isinstance(arrays, (np.ndarray, Array)):
        a = convert(_core.asarray(arrays), dtype) if dtype is not None else _core.asarray(arrays)
        return moveaxis(a, 0, canonicalize_axis(axis, a.ndim))
    arrays = list(arrays)
    if not arrays:
        raise ValueError("Need at least one array to stack.")
    check_arraylike("stack", *arrays)
    shapes = [np.shape(a) for a in arrays]
    if any(len(s) != len(shapes[0]) for s in shapes):
        raise ValueError(f"Cannot stack arrays with different numbers of dimensions: got {', '.join(map(str, shapes))}.")
    if any(s != shapes[0] for s in shapes):
        raise ValueError("All input arrays must have the same shape.")
    axis = canonicalize_axis(axis, len(shapes[0]) + 1)
    arrays = _core.promote_dtypes(*arrays) if dtype is None else [convert(_core.asarray(a), dtype) for a in arrays]
    return bind("stack", *arrays, axis=axis)


def unstack(x, /, *, axis=0):
    """The slices of x along `axis`, as a tuple. Raises ValueError for scalars."""
    x = as_array("unstack", x)
    if x.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed.")
    return tuple(bind("unstack", x, axis=canonicalize_axis(axis, x.ndim)))


@jitted("atleast_1d")
def _atleast_1d(x):
    return x if x.ndim >= 1 else bind("broadcast_in_dim", x, shape=(1,), broadcast_dimensions=())


@jitted("atleast_2d")
def _atleast_2d(x):
    if x.ndim >= 2:
        return x
    return bind("broadcast_in_dim", x, shape=(1,) * (2 - x.ndim) + tuple(x.shape), broadcast_dimensions=(1,) if x.ndim else ())


@jitted("atleast_3d")
def _atleast_3d(x):
    if x.ndim >= 3:
        return x
    shape, dims = {0: ((1, 1, 1), ()), 1: ((1, *x.shape, 1), (1,)), 2: ((*x.shape, 1), (0, 1))}[x.ndim]
    return bind("broadcast_in_dim", x, shape=tuple(shape), broadcast_dimensions=dims)


def _atleast(name, fun, arys):
    check_arraylike(name, *arys)
    out = [fun(_core.asarray(a) if not isinstance(a, Array) else a) for a in arys]
    return out[0] if len(out) == 1 else out


def atleast_1d(*arys):
    """Each argument with at least one axis; one array or a list."""
    return _atleast("atleast_1d", _atleast_1d, arys)


def atleast_2d(*arys):
    """Each argument with at least two axes, new ones in front."""
    return _atleast("atleast_2d", _atleast_2d, arys)


def atleast_3d(*arys):
    """Each argument with at least three axes: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1)."""
    return _atleast("atleast_3d", _atleast_3d, arys)


def _rows(name, tup, fun):
    tup = _sequence(name, tup)
    check_arraylike(name, *tup)
    return [fun(a) for a in tup]


def vstack(tup, dtype=None):
    """The arrays, vectors as rows, joined along the first axis."""
    return concatenate(_rows("vstack", tup, atleast_2d), axis=0, dtype=dtype)


def hstack(tup, dtype=None):
    """The arrays joined along the second axis, vectors along their only one."""
    arrays = _rows("hstack", tup, atleast_1d)
    return concatenate(arrays, axis=0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype)


def dstack(tup, dtype=None):
    """The arrays joined along the third axis."""
    return concatenate(_rows("dstack", tup, atleast_3d), axis=2, dtype=dtype)


def column_stack(tup):
    """Vectors as columns, and matrices, joined along the second axis."""
    return concatenate(_rows("column_stack", tup, lambda a: atleast_2d(a).T if np.ndim(a) < 2 else as_array("column_stack", a)), axis=1)


@jitted("append", static=("axis",))
def _append(arr, values, axis):
    return concatenate([ravel(arr), ravel(values)] if axis is None else [arr, values], axis=0 if axis is None else axis)


def append(arr, values, axis=None):
    """`values` joined behind `arr`, along `axis` or, by default, both flattened."""
    if axis is None:
        check_arraylike("ravel", arr)
        check_arraylike("ravel", values)
    check_arraylike("append", arr, values)
    return _append(arr, values, axis=axis)


def block(arrays):
    """Nested lists of arrays put together: innermost lists along the last axis, the next along the one before. Raises ValueError for uneven nesting."""
    leaves, rebuild, depth = _block_structure(arrays)
    check_arraylike("block", *leaves)
    run = jitted("block", (), lambda *xs: _block(rebuild(list(xs)), depth))
    return run(*leaves)


def _block_structure(arrays):
    leaves = []

    def depth_of(x):
        if isinstance(x, tuple):
            raise TypeError("jax.numpy.block does not allow tuples, got tuple")
        if isinstance(x, list):
            if not x:
                raise ValueError("jax.numpy.block does not allow empty list arguments")
            depths = {depth_of(v) for v in x}
            if len(depths) > 1:
                raise ValueError("Mismatched list depths in jax.numpy.block")
            return depths.pop() + 1
        leaves.append(x)
        return 0

    depth = depth_of(arrays)

    def rebuild(xs):
        xs = iter(xs)
        build = lambda x: [build(v) for v in x] if isinstance(x, list) else next(xs)  # noqa: E731
        return build(arrays)

    return leaves, rebuild, depth


def _block(x, depth):
    rank = max([depth] + [v.ndim for v in _flatten_list(x)])

    def build(x, level):
        if isinstance(x, list):
            return concatenate([build(v, level + 1) for v in x], axis=rank - depth + level)
        return x if x.ndim == rank else bind("broadcast_in_dim", x, shape=(1,) * (rank - x.ndim) + tuple(x.shape), broadcast_dimensions=tuple(range(rank - x.ndim, rank)))

    return build(x, 0)


def _flatten_list(x):
    return [v for y in x for v in _flatten_list(y)] if isinstance(x, list) else [x]


def _split(name, ary, indices_or_sections, axis):
    ary = as_array(name, ary)
    axis = canonicalize_axis(axis, ary.ndim)
    n = ary.shape[axis]
    if isinstance(indices_or_sections, (tuple, list)) or (hasattr(indices_or_sections, "ndim") and np.ndim(indices_or_sections) > 0):
        points = [operator.index(concrete_or_error(i, f"in jax.numpy.{name} argument 1")[()]) if isinstance(i, Array) else operator.index(i) for i in indices_or_sections]
        points = [min(max(p + n if p < 0 else p, 0), n) for p in points]
        bounds = [0, *points, n]
        sizes = [max(0, b - a) for a, b in zip(bounds[:-1], bounds[1:])]
        if any(b < a for a, b in zip(bounds[:-1], bounds[1:])):
            raise ValueError(f"Sizes passed to split must be nonnegative, got {[b - a for a, b in zip(bounds[:-1], bounds[1:])]}")
    else:
        sections = operator.index(concrete_or_error(indices_or_sections, f"in jax.numpy.{name} argument 1")[()] if isinstance(indices_or_sections, Array) else indices_or_sections)
        part, rest = divmod(n, sections)
        if rest and name != "array_split":
            raise ValueError(f"array split does not result in an equal division: rest is {rest}")
        sizes = [part + 1] * rest + [part] * (sections - rest)
    return list(bind("split", ary, sizes=tuple(sizes), axis=axis))


def split(ary, indices_or_sections, axis=0):
    """ary cut along `axis`, into equal parts or at the given indices. Raises ValueError where parts would be unequal."""
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary, indices_or_sections, axis=0):
    """`split` that allows unequal parts."""
    return _split("array_split", ary, indices_or_sections, axis)


def vsplit(ary, indices_or_sections):
    """`split` along the first axis."""
    return _split("vsplit", ary, indices_or_sections, 0)


def hsplit(ary, indices_or_sections):
    """`split` along the second axis (the first, for vectors)."""
    return _split("hsplit", ary, indices_or_sections, 0 if np.ndim(ary) == 1 else 1)


def dsplit(ary, indices_or_sections):
    """`split` along the third axis."""
    return _split("dsplit", ary, indices_or_sections, 2)


def tile(A, reps):
    """A repeated reps[i] times along each axis; missing axes are added in front."""
    A = as_array("tile", A)
    reps = (reps,) if isinstance(reps, (int, np.integer)) or np.ndim(reps) == 0 else tuple(reps)
    reps = tuple([operator.index(r) for r in reps])
    rank = max(A.ndim, len(reps))
    reps = (1,) * (rank - len(reps)) + reps
    if A.ndim < rank:
        A = bind("broadcast_in_dim", A, shape=(1,) * (rank - A.ndim) + tuple(A.shape), broadcast_dimensions=tuple(range(rank - A.ndim, rank)))
    return bind("tile", A, reps=reps) if rank else A


def repeat(a, repeats, axis=None, *, total_repeat_length=None, out_sharding=None):
    """Each element (or slice along `axis`) repeated `repeats` times, a number or one for each.

    total_repeat_length: the size of the result along the axis, needed where `repeats` is traced; longer results are cut, shorter ones padded
    with the last element. Without `axis`, a is flattened.
    """
    check_arraylike("repeat", a)
    if not is_arraylike(repeats):
        raise TypeError(f"repeat requires ndarray or scalar arguments, got {type(repeats)} at position 1.")
    a = _core.asarray(a) if not isinstance(a, Array) else a
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonicalize_axis(axis, a.ndim) if a.ndim else 0
    if a.ndim == 0:
        a = reshape(a, (1,))
    n = a.shape[axis]
    if total_repeat_length is None:
        if isinstance(repeats, _core.Tracer):
            concrete_or_error(
                repeats,
                "When jit-compiling jnp.repeat, the total number of repeats must be static. To fix this, either specify a static value for `repeats`, "
                "or pass a static value to `total_repeat_length`.",
            )
        counts = np.asarray(repeats)
        if counts.ndim == 0 or counts.size == 1:
            r = operator.index(counts.ravel()[0].item() if counts.dtype.kind in "iub" else counts.ravel()[0])
            wide = (*a.shape[: axis + 1], r, *a.shape[axis + 1 :])
            if r < 0:
                raise TypeError(f"broadcast_in_dim shape must have every element be nonnegative, got {wide}.")
            dims = tuple([d for d in range(a.ndim + 1) if d != axis + 1])
            out = bind("broadcast_in_dim", a, shape=wide, broadcast_dimensions=dims)
            return reshape(out, (*a.shape[:axis], n * r, *a.shape[axis + 1 :]))
        if counts.shape != (n,) and n:
            raise ValueError(f"repeats must have length 1 or the size of the axis, got {counts.shape} for size {n}")
        total = int(counts.sum())
        repeats = counts
    else:
        total = operator.index(total_repeat_length)
    if n == 0 or total == 0:
        return a[(slice(None),) * axis + (slice(0, 0),)] if total == 0 else a
    from ._creation import zeros
    from ._reductions import cumsum
    from ._taking import take

    repeats = ravel(_core.asarray(repeats))
    if repeats.shape[0] == 1 and n != 1:
        repeats = broadcast_to(repeats, (n,))
    if repeats.shape[0] == 1:
        repeats = broadcast_to(repeats, (n,))
    # The start of every run in the result, counted there; a running sum gives each position its source.
    starts = cumsum(roll(repeats, 1).at[0].set(0))
    marks = zeros(total, dtype=np.int32).at[starts].add(1)
    return take(a, bind("sub", cumsum(marks), np.int32(1)), axis=axis)


@jitted("_flip", static=("axis",))
def _flip(m, axis):
    return bind("rev", m, dimensions=canonicalize_axes(axis, m.ndim))


def flip(m, axis=None):
    """m with the order of elements reversed along `axis` (default: all)."""
    m = as_array("flip", m)
    return _flip(m, axis=tuple(axis) if isinstance(axis, list) else axis)


def fliplr(m):
    """m reversed along its second axis."""
    check_arraylike("fliplr", m)
    return flip(m, 1)


def flipud(m):
    """m reversed along its first axis."""
    check_arraylike("flipud", m)
    return flip(m, 0)


@jitted("rot90", static=("k", "axes"))
def _rot90(m, k, axes):
    i, j = axes
    if k == 0:
        return m
    if k == 2:
        return flip(flip(m, i), j)
    permutation = list(range(m.ndim))
    permutation[i], permutation[j] = permutation[j], permutation[i]
    return transpose(flip(m, j), permutation) if k == 1 else flip(transpose(m, permutation), j)


def rot90(m, k=1, axes=(0, 1)):
    """m turned k times by 90 degrees in the plane of two axes, from the first towards the second."""
    m = as_array("rot90", m)
    i, j = (canonicalize_axis(d, m.ndim) for d in axes)
    if i == j:
        raise ValueError("Axes must be different")
    return _rot90(m, k=operator.index(k) % 4, axes=(i, j))


@jitted("_roll_static", static=("shift", "axis"))
def _roll_static(a, shift, axis):
    for d, s in zip(axis, shift):
        n = a.shape[d]
        s = s % n if n else 0
        if s == 0:
            continue
        cut = lambda lo, hi, d=d, x=a: bind(  # noqa: E731
            "slice",
            x,
            start_indices=tuple([lo if k == d else 0 for k in range(x.ndim)]),
            limit_indices=tuple([hi if k == d else m for k, m in enumerate(x.shape)]),
            strides=(1,) * x.ndim,
        )
        a = bind("concatenate", cut(n - s, n), cut(0, n - s), dimension=d)
    return a


@jitted("_roll_dynamic", static=("axis",))
def _roll_dynamic(a, shift, axis):
    from ..lax import dynamic_slice_in_dim
    from ._elementwise import remainder

    shift = broadcast_to(_core.asarray(shift), (len(axis),))
    for i, d in enumerate(axis):
        n = a.shape[d]
        s = remainder(shift[i], max(n, 1))
        doubled = concatenate([a, a], axis=d)
        a = dynamic_slice_in_dim(doubled, bind("sub", np.dtype(s.dtype).type(n), s), n, axis=d)
    return a


def roll(a, shift, axis=None):
    """a with its elements moved by `shift` along `axis`, those pushed out coming back in front; flattened where axis is None."""
    a = as_array("roll", a)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    axes = canonicalize_axes(axis if isinstance(axis, (tuple, list)) else (axis,), a.ndim) if not isinstance(axis, (tuple, list)) else tuple([canonicalize_axis(d, a.ndim) for d in axis])
    if isinstance(shift, _core.Tracer) or (isinstance(shift, (list, tuple)) and any(isinstance(s, _core.Tracer) for s in shift)):
        if isinstance(shift, (list, tuple)):
            from ._creation import array

            shift = array(shift)
        return _roll_dynamic(a, shift, axis=axes)
    shifts = np.asarray(shift)
    shifts, axes = np.broadcast_arrays(np.atleast_1d(shifts), np.atleast_1d(np.asarray(axes)))
    if shifts.ndim > 1:
        raise ValueError("'shift' and 'axis' arguments to jnp.roll must be scalars or 1D")
    return _roll_static(a, shift=tuple([operator.index(int(s)) for s in shifts]), axis=tuple([int(d) for d in axes]))


@jitted("resize", static=("new_shape",))
def _resize(a, new_shape):
    a = ravel(a)
    n = math.prod(new_shape)
    if a.size == 0 or n == 0:
        from ._creation import zeros

        return zeros(new_shape, a.dtype)
    return reshape(tile(a, -(-n // a.size))[:n], new_shape)


def resize(a, new_shape):
    """The elements of a, repeated or cut, in `new_shape`."""
    a = as_array("resize", a)
    new_shape = canonicalize_shape(new_shape)
    if any(n < 0 for n in new_shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    return _resize(a, new_shape=new_shape)


# ---- pad


def _pairs(name, value, n):
    value = np.asarray(value)
    if value.shape in ((), (1,)):
        return [(v, v) for v in [value.ravel()[0]] * n]
    if value.shape == (n, 2):
        return [tuple(row) for row in value]
    if value.shape in ((2,), (1, 2)):
        return [tuple(value.ravel())] * n
    raise ValueError(f"jnp.pad: {name} with nd={n} has unsupported shape {value.shape}. Valid shapes are ({n}, 2), (1, 2), (2,), (1,), or ().")


_PAD_KEYWORDS = {
    "constant": {"constant_values": 0}, "linear_ramp": {"end_values": 0}, "maximum": {"stat_length": None}, "minimum": {"stat_length": None},
    "mean": {"stat_length": None}, "median": {"stat_length": None}, "reflect": {"reflect_type": "even"}, "symmetric": {"reflect_type": "even"},
    "edge": {}, "wrap": {}, "empty": {},
}  # fmt: skip


def _cut(a, lo, hi, axis):
    starts, limits = [0] * a.ndim, list(a.shape)
    starts[axis], limits[axis] = lo, hi
    return bind("slice", a, start_indices=tuple(starts), limit_indices=tuple(limits), strides=(1,) * a.ndim)


def _pad_reflect(a, widths, mode, odd):
    for d, (before, after) in enumerate(widths):
        n = a.shape[d]
        if n == 0 and (before or after):
            raise ValueError("Cannot apply '{}' padding to empty axis".format(mode))
        skip = 1 if mode == "reflect" else 0
        if n == 1 and skip:
            a = _pad_edge(a, [(before, after) if k == d else (0, 0) for k in range(a.ndim)])
            continue
        for front, width in ((True, before), (False, after)):
            left = width
            while left > 0:
                # Each pass mirrors as much as there is.
                m = a.shape[d]
                take = min(left, n - skip)
                edge = _cut(a, 0, 1, d) if front else _cut(a, m - 1, m, d)
                piece = _cut(a, skip, skip + take, d) if front else _cut(a, m - take - skip, m - skip, d)
                piece = flip(piece, d)
                if odd:
                    from ._ufuncs import multiply, subtract

                    piece = subtract(multiply(2, edge), piece)
                a = concatenate([piece, a] if front else [a, piece], axis=d)
                left -= take
    return a


def _spread_edge(edge, width, axis):
    return repeat(edge, width, axis=axis)


def _pad_edge(a, widths):
    for d, (before, after) in enumerate(widths):
        n = a.shape[d]
        if n == 0 and (before or after):
            raise ValueError("Cannot apply 'edge' padding to empty axis")
        if before or after:
            parts = [_spread_edge(_cut(a, 0, 1, d), before, d)] if before else []
            parts.append(a)
            if after:
                parts.append(_spread_edge(_cut(a, n - 1, n, d), after, d))
            a = concatenate(parts, axis=d)
    return a


def _pad_wrap(a, widths):
    for d, (before, after) in enumerate(widths):
        n = a.shape[d]
        if n == 0:
            raise ValueError("Cannot apply 'wrap' padding to empty axis")
        full_before, rest_before = divmod(before, n)
        full_after, rest_after = divmod(after, n)
        total = full_before + full_after + 1
        parts = [_cut(a, n - rest_before, n, d)] if rest_before else []
        parts += [a] * total
        if rest_after:
            parts.append(_cut(a, 0, rest_after, d))
        a = concatenate(parts, axis=d)
    return a


def _pad_ramp(a, widths, ends):
    from ._creation import linspace

    for d, (before, after) in enumerate(widths):
        n = a.shape[d]
        if n == 0:
            raise ValueError("Cannot apply 'linear_ramp' padding to empty axis")
        low, high = ends[d]
        first, last = squeeze(_cut(a, 0, 1, d), d), squeeze(_cut(a, n - 1, n, d), d)
        left = linspace(_plain_number(low), first, num=before, endpoint=False, dtype=a.dtype, axis=d)
        right = flip(linspace(_plain_number(high), last, num=after, endpoint=False, dtype=a.dtype, axis=d), d)
        a = concatenate([left, a, right], axis=d)
    return a


def _plain_number(x):
    return x.item() if isinstance(x, np.generic) else x


def _pad_statistic(a, widths, lengths, mode):
    from . import _reductions, _statistics

    fun = {"maximum": _reductions.max, "minimum": _reductions.min, "mean": _reductions.mean, "median": _statistics.median}[mode]
    for d, (before, after) in enumerate(widths):
        n = a.shape[d]
        if n == 0:
            raise ValueError("stat_length of 0 yields no value for padding")
        values = []
        for front, length in zip((True, False), (None, None) if lengths is None else lengths[d]):
            k = n if length is None else min(int(length), n)
            part = a if k == n else (_cut(a, 0, k, d) if front else _cut(a, n - k, n, d))
            if front is False and lengths is None:
                values.append(values[0])
                continue
            value = fun(part, axis=d, keepdims=True)
            if np.issubdtype(a.dtype, np.integer) and value.dtype != a.dtype:
                from ._elementwise import round

                value = round(value)
            values.append(convert(value, a.dtype))
        parts = [repeat(values[0], before, axis=d)] if before else []
        parts.append(a)
        if after:
            parts.append(repeat(values[1], after, axis=d))
        a = concatenate(parts, axis=d)
    return a


@jitted("_pad", static=("widths", "mode", "static"))
def _pad_jit(array, values, widths, mode, static):
    if mode == "constant":
        if isinstance(values, tuple):
            for d, pair in enumerate(values):
                for side in (0, 1):
                    config = [(0, 0, 0)] * array.ndim
                    config[d] = (widths[d][0], 0, 0) if side == 0 else (0, widths[d][1], 0)
                    array = bind("pad", array, convert(pair[side], array.dtype), padding_config=tuple(config))
            return array
        return bind("pad", array, convert(values, array.dtype), padding_config=tuple([(lo, hi, 0) for lo, hi in widths]))
    if mode == "edge":
        return _pad_edge(array, widths)
    if mode in ("reflect", "symmetric"):
        return _pad_reflect(array, widths, mode, static == "odd")
    if mode == "wrap":
        return _pad_wrap(array, widths)
    if mode == "linear_ramp":
        return _pad_ramp(array, widths, static)
    if mode == "empty":
        from ._creation import zeros

        for d, (before, after) in enumerate(widths):
            sizes = list(array.shape)
            parts = []
            for k, part in ((before, None), (0, array), (after, None)):
                if part is not None:
                    parts.append(part)
                elif k:
                    sizes[d] = k
                    parts.append(zeros(tuple(sizes), array.dtype))
            array = concatenate(parts, axis=d) if len(parts) > 1 else array
        return array
    return _pad_statistic(array, widths, static, mode)


def pad(array, pad_width, mode="constant", **kwargs):
    """`array` extended at its edges.

    pad_width: one number, one (before, after) pair, a pair for each axis, or a dict from axes to either. mode: "constant"
    (constant_values), "edge", "reflect" and "symmetric" (reflect_type), "wrap", "linear_ramp" (end_values), "maximum", "minimum", "mean"
    and "median" (stat_length), "empty", or a function called as numpy.pad calls it.
    """
    array = as_array("pad", array)
    if isinstance(pad_width, dict):
        full = [(0, 0)] * array.ndim
        for axis, width in pad_width.items():
            full[canonicalize_axis(axis, array.ndim)] = width if isinstance(width, tuple) else (width, width)
        pad_width = full
    widths = np.asarray(concrete_or_error(pad_width, "pad_width argument of jnp.pad") if isinstance(pad_width, Array) else pad_width)
    if widths.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    if array.ndim == 0:
        return array
    widths = tuple([(int(a), int(b)) for a, b in _pairs("pad_width", widths, array.ndim)])
    if callable(mode):
        return _pad_function(array, widths, mode, kwargs)
    if mode not in _PAD_KEYWORDS:
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad.")
    unknown = set(kwargs) - set(_PAD_KEYWORDS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if any(a < 0 or b < 0 for a, b in widths):
        raise ValueError("index can't contain negative values")
    options = {**_PAD_KEYWORDS[mode], **kwargs}
    values, static = 0, None
    if mode == "constant":
        values = options["constant_values"]
        if np.ndim(values) if not isinstance(values, (list, tuple)) else True:
            from ._creation import array as make

            table = broadcast_to(make(values) if isinstance(values, (list, tuple)) else _core.asarray(values), (array.ndim, 2))
            values = tuple([(table[d, 0], table[d, 1]) for d in range(array.ndim)])
    elif mode == "linear_ramp":
        static = tuple([tuple([_plain_number(v) for v in pair]) for pair in _pairs("end_values", options["end_values"], array.ndim)])
    elif mode in ("maximum", "minimum", "mean", "median"):
        if options["stat_length"] is not None:
            static = tuple([tuple([int(v) for v in pair]) for pair in _pairs("stat_length", options["stat_length"], array.ndim)])
    elif mode in ("reflect", "symmetric"):
        static = options["reflect_type"]
        if static not in ("even", "odd"):
            raise ValueError(f"reflect_type must be 'even' or 'odd', got {static!r}")
    return _pad_jit(array, values, widths=widths, mode=mode, static=static)


def _pad_function(array, widths, function, kwargs):
    from ._vectorizing import apply_along_axis

    padded = pad(array, widths)
    for axis in range(padded.ndim):
        padded = apply_along_axis(function, axis, padded, widths[axis], axis, kwargs)
    return padded


def trim_zeros(filt, trim="fb", axis=None):
    """A vector without its leading ("f") and trailing ("b") zeros. Its values must be known."""
    values = concrete_or_error(filt, "Error arose in the `filt` argument of trim_zeros()")
    nonzero = np.nonzero(values)
    filt = _core.asarray(filt) if not isinstance(filt, Array) else filt
    axes = canonicalize_axes(axis, filt.ndim)
    index = []
    for d in range(filt.ndim):
        if d not in axes:
            index.append(slice(None))
        elif nonzero[d].size == 0:
            index.append(slice(0, 0))
        else:
            lo = int(nonzero[d].min()) if "f" in trim.lower() else 0
            hi = int(nonzero[d].max()) + 1 if "b" in trim.lower() else filt.shape[d]
            index.append(slice(lo, hi))
    return filt[tuple(index)]


def insert(arr, obj, values, axis=None):
    """arr with `values` inserted before the positions `obj` along `axis` (flattened if None).

    obj: an integer, integers, or a slice; negative ones count from the end.
    """
    from ._creation import arange, ones, zeros
    from ._elementwise import less
    from ._selecting import clip, where
    from ._sorting import argsort

    check_arraylike("insert", arr, 0 if isinstance(obj, slice) else obj, values)
    a = _core.asarray(arr)
    new = _core.asarray(values)
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonicalize_axis(axis, a.ndim)
    n = a.shape[axis]
    if isinstance(obj, slice):
        index = arange(*obj.indices(n))
    else:
        index = _core.asarray(obj)
    scalar = index.ndim == 0
    index = ravel(index)
    new = convert(new, a.dtype)
    new = _core.asarray(new)
    if new.ndim < a.ndim:
        new = reshape(new, (1,) * (a.ndim - new.ndim) + tuple(new.shape))
    if scalar:
        new = moveaxis(new, 0, axis)
    wanted = new.shape[axis]
    if index.shape[0] == 1 and wanted != 1:
        index = broadcast_to(index, (wanted,))
    count = index.shape[0]
    index = clip(where(less(index, 0), index + n, index), 0, n)
    # Sorted positions, each moved on by those inserted before it.
    order = argsort(index)
    places = index.at[order].add(arange(count, dtype=index.dtype))
    keep = ones(n + count, bool).at[places].set(False)
    kept = argsort(~keep, stable=True)[:n]
    out_shape = (*a.shape[:axis], n + count, *a.shape[axis + 1 :])
    lead = (slice(None),) * axis
    out = zeros(out_shape, a.dtype).at[(*lead, kept)].set(a)
    return out.at[(*lead, places)].set(broadcast_to(new, (*a.shape[:axis], count, *a.shape[axis + 1 :])))


def delete(arr, obj, axis=None, *, assume_unique_indices=False):
    """arr without the positions `obj` along `axis` (flattened if None).

    obj: an integer, a slice, a boolean mask or integers. Traced integers need assume_unique_indices=True, for the result's size.
    """
    check_arraylike("delete", arr)
    a = _core.asarray(arr) if not isinstance(arr, Array) else arr
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonicalize_axis(axis, a.ndim)
    n = a.shape[axis]
    lead = (slice(None),) * axis
    if isinstance(obj, (int, np.integer)) or (hasattr(obj, "ndim") and obj.ndim == 0 and not isinstance(obj, _core.Tracer)):
        i = canonicalize_axis(operator.index(obj), n)
        return concatenate([a[(*lead, slice(0, i))], a[(*lead, slice(i + 1, n))]], axis=axis)
    if isinstance(obj, slice):
        obj = np.arange(n)[obj]
    if isinstance(obj, _core.Tracer):
        if not assume_unique_indices:
            concrete_or_error(
                obj, "'obj' array argument of jnp.delete(). Pass assume_unique_indices=True if the indices are guaranteed to be unique."
            )
        from ._creation import ones
        from ._sorting import argsort

        mask = ones(n, bool).at[ravel(obj)].set(False)
        keep = argsort(~mask, stable=True)[: n - obj.size]
        return a[(*lead, keep)]
    obj = np.asarray(obj)
    mask = np.ones(n, bool)
    if obj.dtype == bool:
        if obj.shape != (n,):
            raise ValueError("np.delete(arr, obj): for boolean indices, obj must be one-dimensional with length matching specified axis.")
        mask[obj] = False
    else:
        if obj.size and obj.dtype.kind not in "iu":
            raise ValueError("np.delete(arr, obj): obj must be an integer, a slice, integers or booleans.")
        mask[obj.astype(int)] = False
    return a[(*lead, mask)]


