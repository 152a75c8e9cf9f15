"""Primitives that are compositions of others.

Each is one equation in a program, under JAX's name and parameters; lowered, its composition is traced and fused like any other code.
Derivatives and batches are those of the composition.

Invariant: a name that the extension itself knows is not registered here.

    { lambda ; a:f32[4] b:f32[4]. let c:f32[2,4] = stack[axis=0] a b in (c,) }
"""

from __future__ import annotations

import numpy as np

from .. import _core
from .._core import ShapedArray, bind
from .._dtypes import is_complex, is_floating


def _zero(dtype):
    # Literals are at most 8 bytes wide, and a composition may hold no others.
    return bind("convert_element_type", np.float32(0), new_dtype=dtype, weak_type=False) if dtype.kind == "c" else dtype.type(0)


def _listed(out, multiple):
    return list(out) if multiple else [out]


def composition(name, abstract_eval, multiple=False):
    """Decorator: the composition of a primitive, `impl(*arrays, **parameters)`."""

    def decorate(impl):
        def jvp(primals, tangents, **parameters):
            from ..interpreters.ad import Zero

            flat = lambda *xs: _listed(impl(*xs, **parameters), multiple)
            given = [None if type(t) is Zero or t is None else t for t in tangents]
            out, dout = _core.jvp(flat, list(primals), given)
            dout = [Zero(_core.get_aval(y)) if t is None else t for y, t in zip(out, dout)]
            return (out, dout) if multiple else (out[0], dout[0])

        def batch(args, dims, **parameters):
            from .. import vmap

            run = vmap(lambda *xs: impl(*xs, **parameters), in_axes=tuple(dims), out_axes=0)
            out = run(*args)
            return (list(out), [0] * len(out)) if multiple else (out, 0)

        def evaluate(*xs, **parameters):
            # Programs are typed before they run; a call on the spot is typed here.
            abstract_eval(*xs, **parameters)
            return impl(*xs, **parameters)

        rules = {"jvp": jvp, "batching": batch}
        try:
            _core.register_primitive(name, multiple, abstract_eval, evaluate, rules.get)
        except ValueError:
            pass
        return impl

    return decorate


def aval(shape, like, dtype=None, weak=None):
    return ShapedArray(tuple(shape), like.dtype if dtype is None else dtype, weak_type=like.weak_type if weak is None else weak)


# ---- joining and repeating


def _stack_type(*xs, axis):
    first = xs[0]
    for x in xs[1:]:
        if tuple(x.shape) != tuple(first.shape):
            raise TypeError(f"All input arrays must have the same shape: got {', '.join(str(tuple(v.shape)) for v in xs)}.")
        if x.dtype != first.dtype:
            raise TypeError(f"lax.stack requires arguments to have the same dtypes, got {', '.join(v.dtype.name for v in xs)}.")
    shape = list(first.shape)
    shape.insert(axis, len(xs))
    return aval(shape, first, weak=all(x.weak_type for x in xs))


@composition("stack", _stack_type)
def stack(*xs, axis):
    shape = list(xs[0].shape)
    shape.insert(axis, 1)
    dims = tuple([d for d in range(len(shape)) if d != axis])
    return bind("concatenate", *[bind("broadcast_in_dim", x, shape=tuple(shape), broadcast_dimensions=dims) for x in xs], dimension=axis)


@composition("unstack", lambda x, *, axis: [aval(x.shape[:axis] + x.shape[axis + 1 :], x)] * x.shape[axis], multiple=True)
def unstack(x, *, axis):
    out = []
    for i in range(x.shape[axis]):
        starts, limits = [0] * x.ndim, list(x.shape)
        starts[axis], limits[axis] = i, i + 1
        piece = bind("slice", x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=None)
        out.append(bind("squeeze", piece, dimensions=(axis,)))
    return out


def _tile_type(x, *, reps):
    if len(reps) != x.ndim or any(r < 0 for r in reps):
        raise TypeError(f"tile reps must be nonnegative and one for each axis, got {reps} for operand shape {tuple(x.shape)}")
    return aval([n * r for n, r in zip(x.shape, reps)], x)


@composition("tile", _tile_type)
def tile(x, *, reps):
    wide = tuple([n for pair in zip(reps, x.shape) for n in pair])
    x = bind("broadcast_in_dim", x, shape=wide, broadcast_dimensions=tuple(range(1, 2 * x.ndim, 2)))
    return bind("reshape", x, new_sizes=tuple([a * b for a, b in zip(wide[::2], wide[1::2])]), dimensions=None)


# ---- order


def _compare_type(x, y):
    if x.dtype != y.dtype:
        raise TypeError(f"total-order comparison requires arguments to have the same dtypes, got {x.dtype.name}, {y.dtype.name}.")
    return ShapedArray(np.broadcast_shapes(tuple(x.shape), tuple(y.shape)), np.dtype(bool), weak_type=False)


def _order_key(x):
    """An integer that compares as the total order of floats does: -nan < -inf < ... < -0 < 0 < ... < inf < nan."""
    if not is_floating(x.dtype):
        return x
    integer = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[x.dtype.itemsize]
    bits = bind("bitcast_convert_type", x, new_dtype=np.dtype(integer))
    sign = bind("shift_right_arithmetic", bits, integer(8 * x.dtype.itemsize - 1))
    # Negative numbers have their magnitude bits flipped.
    return bind("xor", bits, bind("and", sign, integer(np.iinfo(integer).max)))


@composition("le_to", _compare_type)
def le_to(x, y):
    return bind("le", _order_key(x), _order_key(y))


@composition("lt_to", _compare_type)
def lt_to(x, y):
    return bind("lt", _order_key(x), _order_key(y))


def _top_k_type(x, *, k, axis):
    if is_complex(x.dtype):
        raise ValueError("top_k is not compatible with complex inputs.")
    n = x.shape[axis]
    if k > n:
        raise ValueError(f"k argument to top_k must be no larger than size along axis; got k={k} with shape={list(x.shape)} and axis={axis}")
    shape = list(x.shape)
    shape[axis] = k
    return [aval(shape, x), ShapedArray(tuple(shape), np.dtype(np.int32), weak_type=False)]


@composition("top_k", _top_k_type, multiple=True)
def top_k(x, *, k, axis):
    index = bind("iota", dtype=np.dtype(np.int32), shape=tuple(x.shape), dimension=axis)
    # Reversed, sorted stably upwards and read from the end, equal elements come in the order of their indices. -0 is less than 0, and nan has a sign.
    x, index = bind("rev", x, dimensions=(axis,)), bind("rev", index, dimensions=(axis,))
    keys = (_order_key(x),) if is_floating(x.dtype) else ()
    x, index = bind("sort", *keys, x, index, dimension=axis, is_stable=True, num_keys=1)[-2:]
    n = x.shape[axis]
    starts, limits = [0] * x.ndim, list(x.shape)
    starts[axis], limits[axis] = n - k, n
    cut = [bind("slice", v, start_indices=tuple(starts), limit_indices=tuple(limits), strides=None) for v in (x, index)]
    return [bind("rev", v, dimensions=(axis,)) for v in cut]


def _approx_parameters(x, k, reduction_dimension):
    axis = reduction_dimension + x.ndim if reduction_dimension < 0 else reduction_dimension
    return dict(k=k, axis=axis)


@composition("approx_top_k", lambda x, *, k, reduction_dimension, **_: _top_k_type(x, **_approx_parameters(x, k, reduction_dimension)), multiple=True)
def approx_top_k(x, *, k, reduction_dimension, is_max_k, **_):
    parameters = _approx_parameters(x, k, reduction_dimension)
    if is_max_k:
        return bind("top_k", x, **parameters)
    values, index = bind("top_k", bind("neg", x), **parameters)
    return [bind("neg", values), index]


# ---- products of rows in groups


def _ragged_roles(lhs, rhs, group_sizes, numbers, group_offset):
    """What the numbers mean: ("free" | "contracted" | "batch" is the ragged axis, the axes of lhs that each have group sizes of their own)."""
    if group_offset is not None:
        raise NotImplementedError("Unimplemented group_offset support.")
    ((lc, rc), (lb, rb)), ragged, groups = numbers.dot_dimension_numbers, numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    name = "ragged_dot_general"
    if group_sizes.dtype.kind not in "iu":
        raise TypeError(f"{name} requires that group_sizes.dtype is subtype of np.integer.")
    if len(ragged) != 1:
        raise TypeError(f"{name} expects exactly one lhs ragged dimension.")
    axis, rank = ragged[0], lhs.ndim
    if not 0 <= axis < rank:
        raise TypeError(
            f"{name} requires lhs ragged dimension numbers to be nonnegative and less than the number of axes of the lhs value, got {axis} for lhs of rank {rank}."
        )
    role = "contracted" if axis in lc else "batch" if axis in lb else "free"
    if role != "free" and groups:
        raise TypeError(f"{name} requires zero group dimensions in the rhs when lhs ragged dimension is contracting or batch.")
    if role == "free":
        if len(groups) != 1:
            raise TypeError(f"{name} requires exactly one rhs group dimension when lhs ragged dimension is noncontracting.")
        if groups[0] in (*rc, *rb):
            raise TypeError(f"{name} requires rhs group dimension numbers to be distinct from contracting and batch dimensions.")
        if rhs.shape[groups[0]] != group_sizes.shape[-1]:
            raise TypeError(f"expected rhs group dimension size to be {group_sizes.shape[-1]}, got {rhs.shape[groups[0]]}.")
    if role == "batch":
        outer = lb[: lb.index(axis)]
    else:
        among = lc if role == "contracted" else [d for d in range(rank) if d not in (*lc, *lb)]
        outer = (*lb, *among[: among.index(axis)])
    wanted = (*[lhs.shape[d] for d in outer], group_sizes.shape[-1])
    if group_sizes.ndim > 1 and tuple(group_sizes.shape) != wanted:
        raise TypeError(f"expected group_sizes to have shape {wanted}, got {tuple(group_sizes.shape)}.")
    return role, outer if group_sizes.ndim > 1 else ()


def _ragged_type(lhs, rhs, group_sizes, *, ragged_dot_dimension_numbers, preferred_element_type=None, group_offset=None, **_):
    numbers = ragged_dot_dimension_numbers
    role, _outer = _ragged_roles(lhs, rhs, group_sizes, numbers, group_offset)
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    for (left, right), what in (((lc, rc), "contracting"), ((lb, rb), "batch")):
        a, b = tuple([lhs.shape[d] for d in left]), tuple([rhs.shape[d] for d in right])
        if a != b:
            raise TypeError(f"dot_general requires {what} dimensions to have the same shape, got {a} and {b}.")
    free = [lhs.shape[d] for d in range(lhs.ndim) if d not in (*lc, *lb)]
    free += [rhs.shape[d] for d in range(rhs.ndim) if d not in (*rc, *rb, *numbers.rhs_group_dimensions)]
    groups = [group_sizes.shape[-1]] if role == "contracted" else []
    dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    return ShapedArray((*groups, *[lhs.shape[d] for d in lb], *free), dtype, weak_type=False)


@composition("ragged_dot_general", _ragged_type)
def ragged_dot_general(lhs, rhs, group_sizes, *, ragged_dot_dimension_numbers, preferred_element_type=None, group_offset=None, **_):
    """The rows along lhs's ragged axis fall into groups.

    Free: each group meets its own slice of rhs. Contracted: each group is summed alone,
    into a leading axis of the result. Batch: the groups change nothing.
    """
    numbers = ragged_dot_dimension_numbers
    _ragged_type(lhs, rhs, group_sizes, ragged_dot_dimension_numbers=numbers, group_offset=group_offset)
    role, outer = _ragged_roles(lhs, rhs, group_sizes, numbers, group_offset)
    ((lc, rc), (lb, rb)), axis = numbers.dot_dimension_numbers, numbers.lhs_ragged_dimensions[0]
    dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    if role == "batch":
        return bind("dot_general", lhs, rhs, dimension_numbers=((lc, rc), (lb, rb)), preferred_element_type=dtype)
    rank, wide = lhs.ndim, (*lhs.shape, group_sizes.shape[-1])
    ends = bind("cumsum", group_sizes, axis=group_sizes.ndim - 1, reverse=False)
    row = bind("iota", dtype=group_sizes.dtype, shape=wide, dimension=axis)
    # Along the outer axes in the order of lhs, then groups.
    order = sorted(range(len(outer)), key=outer.__getitem__)
    spread = lambda v: bind(
        "broadcast_in_dim",
        bind("transpose", v, permutation=(*order, len(outer))) if outer else v,
        shape=wide,
        broadcast_dimensions=(*sorted(outer), rank),
    )
    inside = bind("and", bind("lt", row, spread(ends)), bind("ge", row, spread(bind("sub", ends, group_sizes))))
    # Every row meets every group, as zeros but its own: one product, summed over groups or with groups as one more free axis.
    nothing = bind("broadcast_in_dim", _zero(lhs.dtype), shape=wide, broadcast_dimensions=())
    x = bind("select_n", inside, nothing, bind("broadcast_in_dim", lhs, shape=wide, broadcast_dimensions=tuple(range(rank))))
    if role == "free":
        contracted = ((*lc, rank), (*rc, numbers.rhs_group_dimensions[0]))
        return bind("dot_general", x, rhs, dimension_numbers=(contracted, (lb, rb)), preferred_element_type=dtype)
    y = bind("dot_general", x, rhs, dimension_numbers=((lc, rc), (lb, rb)), preferred_element_type=dtype)
    at = rank - len(lc)
    return bind("transpose", y, permutation=(at, *[d for d in range(y.ndim) if d != at]))


# ---- others


@composition("optimization_barrier", lambda *xs: list(xs), multiple=True)
def optimization_barrier(*xs):
    return list(xs)


def _mulhi_type(x, y):
    for i, v in enumerate((x, y)):
        if v.dtype.kind not in "iu":
            raise TypeError(f"mulhi does not accept dtype {v.dtype.name} at position {i}. Accepted dtypes at position {i} are subtypes of integer.")
    if x.dtype != y.dtype:
        raise TypeError(f"lax.mulhi requires arguments to have the same dtypes, got {x.dtype.name}, {y.dtype.name}.")
    try:
        shape = np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    except ValueError:
        raise TypeError(f"mulhi got incompatible shapes for broadcasting: {tuple(x.shape)}, {tuple(y.shape)}.") from None
    return aval(shape, x, weak=x.weak_type and y.weak_type)


@composition("mulhi", _mulhi_type)
def mulhi(x, y):
    """The upper half of the product, of twice the width, by the schoolbook rule on halves."""
    weak, dtype = x.weak_type and y.weak_type, x.dtype
    x, y = _core.promote_shapes(x, y)
    convert = lambda v, to: bind("convert_element_type", v, new_dtype=to, weak_type=False)
    if dtype.itemsize < 4:
        wide = np.dtype(np.int32 if dtype.kind == "i" else np.uint32)
        product = bind("mul", convert(x, wide), convert(y, wide))
        shift = "shift_right_arithmetic" if dtype.kind == "i" else "shift_right_logical"
        return convert(bind(shift, product, wide.type(8 * dtype.itemsize)), dtype)
    word = np.dtype(f"u{dtype.itemsize}")
    half, mask = word.type(4 * dtype.itemsize), word.type(2 ** (4 * dtype.itemsize) - 1)
    low, high = (lambda v: bind("and", v, mask)), (lambda v: bind("shift_right_logical", v, half))
    a, b = convert(x, word), convert(y, word)
    (a0, a1), (b0, b1) = (low(a), high(a)), (low(b), high(b))
    middle = bind("add", bind("mul", a1, b0), high(bind("mul", a0, b0)))
    other = bind("add", bind("mul", a0, b1), low(middle))
    out = bind("add", bind("mul", a1, b1), bind("add", high(middle), high(other)))
    if dtype.kind == "i":
        # A negative factor was taken 2 ** bits too large.
        for v, w in ((x, b), (y, a)):
            sign = convert(bind("shift_right_arithmetic", v, dtype.type(8 * dtype.itemsize - 1)), word)
            out = bind("sub", out, bind("and", sign, w))
    return bind("convert_element_type", out, new_dtype=dtype, weak_type=weak)
