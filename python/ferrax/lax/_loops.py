"""Loops of known length: over the leading axis of arrays scan, map, associative_scan; and
fori_loop, a scan where its bounds are known.

Invariant: `scan` is one equation; carries that the body hands through become captured values,
stacked outputs that are inputs unchanged are those inputs.

    >>> jax.lax.scan(lambda c, x: (c + x, c), 0, jnp.arange(4))
    (Array(6, dtype=int32), Array([0, 0, 1, 3], dtype=int32, weak_type=True))
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .. import _core
from .._base.dtypes import canonicalize_dtype, dtype_of, iinfo, is_integer
from .._base.shapes import canonicalize_axis, whole
from .._base.tracebacks import api_boundary
from .._core import bind
from .._tracing.cached_traces import remembered, settled
from .._transforms.vmap import vmap
from .._trees import flat as _flat
from ..errors import ConcretizationTypeError
from ..tree_util import tree_map
from ._bodies import Body, as_array, aval_of, check_carry, promote_weak, refuse_ref_carry
from ._control_flow import while_loop_of
from ._creation import convert_element_type
from ._shaping import concatenate, pad, reshape, rev, stack
from ._slicing import index_in_dim, slice, slice_in_dim

_Carry = TypeVar("_Carry")
_T = TypeVar("_T")
_X = TypeVar("_X")
_Y = TypeVar("_Y")

tree_flatten, tree_unflatten = _core.tree_flatten, _core.tree_unflatten
_CARRY_AND_X = inspect.signature(lambda loop_carry, x: None)


def _scan_length(xs, length):
    sizes = []
    for x in xs:
        if np.ndim(x) == 0:
            raise ValueError(f"scan got value with no leading axis to scan over: {', '.join(str(x) for x in xs if np.ndim(x) == 0)}.")
        sizes.append(np.shape(x)[0])
    if length is not None:
        if isinstance(length, _core.Tracer):
            raise ConcretizationTypeError(
                length,
                "The `length` argument to `scan` expects a concrete `int` value. For scan-like iteration with a dynamic length, use"
                " `while_loop` or `fori_loop`.",
            )
        try:
            length = whole(length)
        except TypeError:
            raise TypeError(f"The `length` argument to `scan` expects a concrete `int` value, got {length}") from None
        if any(n != length for n in sizes):
            raise ValueError(f"scan got `length` argument of {length} which disagrees with leading axis sizes {sizes}.")
        return length
    if len(set(sizes)) > 1:
        raise ValueError(f"scan got values with different leading axis sizes: {', '.join([str(n) for n in sizes])}.")
    if not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    return sizes[0]


@api_boundary
def scan(
    f: Callable[[_Carry, _X], tuple[_Carry, _Y]],
    init: _Carry,
    xs: _X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[_Carry, _Y]:
    """Runs carry, y = f(carry, x) over the leading axis of xs.

    Args:
        f: function of the carry and one slice of xs that returns the next carry and y.
        init: pytree: the first carry, whose structure, shapes and dtypes stay.
        xs: pytree of arrays of one leading size; None: none, with `length` steps.
        length: int, the number of steps; None: the leading size of xs.
        reverse: bool; run from the end (ys stay aligned with xs).
        unroll: int, steps per iteration of the compiled loop; True: all; 0: as 1.

    Returns:
        (carry, ys): the last carry, and every y, stacked along a leading axis.

    Raises:
        TypeError: where the carry changes type.
        ValueError: where leading axes differ.

    >>> jax.lax.scan(lambda c, x: (c + x, c * x), 0.0, jnp.arange(3.0))
    (Array(3., dtype=float32), Array([0., 0., 2.], dtype=float32))
    """
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    refuse_ref_carry("scan", f, init, lambda: _flat.references.check_aliases("scan", f, (init, xs), {}), "result[0]")
    if _flat.references.seen and any(isinstance(x, _flat.references.Ref) for x in tree_flatten(xs)[0]):
        return _scan_over_refs(f, init, xs, length, reverse, unroll)

    def threaded(refs):
        def step(carry, x):
            with _flat.references.bound(refs, carry[1]):
                out = f(carry[0], x)
                if not isinstance(out, (tuple, list)) or len(out) != 2:
                    raise TypeError(f"scan body output must be a pair, got {_describe_output(out)}.")
                return (out[0], _flat.references.values_of(refs)), out[1]

        (carry, values), ys = scan_steps(step, step, "scan", (init, _flat.references.values_of(refs)), xs, length, reverse, unroll)
        _flat.references.settle(refs, values)
        return carry, ys

    return _flat.references.thread_references(lambda: scan_steps(f, f, "scan", init, xs, length, reverse, unroll), threaded)


def _scan_over_refs(f, init, xs, length, reverse, unroll):
    """`scan` where leaves of xs are references: a step gets a reference to the slice, and the new
    slices are stacked to the reference's new value.
    """
    Ref = _flat.references.Ref
    _flat.references.check_aliases("scan", f, (init, xs), {})
    leaves, tree = tree_flatten(xs)
    is_ref = [isinstance(x, Ref) for x in leaves]
    refs = [x for x in leaves if isinstance(x, Ref)]

    def step(carry, slices):
        own = [Ref(x) if r else x for x, r in zip(slices, is_ref, strict=True)]
        out = f(carry, tree_unflatten(tree, own))
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(f"scan body output must be a pair, got {_describe_output(out)}.")
        return out[0], (out[1], _flat.references.values_of([x for x, r in zip(own, is_ref, strict=True) if r]))

    step.__wrapped__ = f  # errors name the user's function
    values = [x._here() if isinstance(x, Ref) else x for x in leaves]
    carry, (ys, after) = scan(step, init, values, length, reverse, unroll)
    _flat.references.settle(refs, after)
    return carry, ys


def scan_steps(f, fun, key, init, xs=None, length=None, reverse=False, unroll=1):
    """`scan` of a step `f` that is derived from the user's function `fun`; `key` identifies the
    step.
    """
    flat_xs, xs_tree = tree_flatten(xs)
    for x in flat_xs:
        if not hasattr(x, "shape") and not isinstance(x, (bool, int, float, complex)):
            as_array(x)
    length = _scan_length(flat_xs, length)
    flat_xs = [as_array(x) for x in flat_xs]
    flat_init, init_tree = tree_flatten(init)
    flat_init = [as_array(x) for x in flat_init]
    if _core.config_get("jax_disable_jit") and (length or _core.called_by_user()):
        return _scan_in_python(f, tree_unflatten(init_tree, flat_init), flat_xs, xs_tree, length, reverse)
    x_avals = [x.aval._element() for x in flat_xs]
    in_tree = tree_flatten((init, xs))[1]
    while True:
        carry_avals = [aval_of(x) for x in flat_init]
        body, carry_tree, ys_tree, as_list = _step_body(f, fun, key, in_tree, carry_avals + x_avals)
        n_out = carry_tree.num_leaves
        promoted = None
        if carry_tree == init_tree:
            promoted = promote_weak(flat_init, carry_avals, body.out_avals[:n_out], fun)
        if promoted is None:
            break
        flat_init = promoted
    check_carry("scan body", f, init_tree, carry_avals, carry_tree, body.out_avals[:n_out])
    if isinstance(unroll, _core.Tracer):
        raise ConcretizationTypeError(unroll, "The `unroll` argument to `scan` expects a concrete `int` or `bool` value.")
    if isinstance(unroll, bool):
        unroll = max(length, 1) if unroll else 1
    unroll = operator.index(unroll)
    if unroll < 0:
        raise ValueError("`unroll` must be a `bool` or a non-negative `int`.")
    carry, ys = _emit_scan(body, flat_init, flat_xs, x_avals, length, bool(reverse), max(unroll, 1))
    pair = tree_unflatten(init_tree, carry), tree_unflatten(ys_tree, ys)
    return list(pair) if as_list else pair


def _step_body(f, fun, key, in_tree, avals):
    """(the body of a step, the structures of its carry and of its stacked outputs, whether it
    returns a list).
    """
    trees = []

    def step(carry, x):
        out = f(carry, x)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(f"scan body output must be a pair, got {_describe_output(out)}.")
        trees[:] = [*[tree_flatten(part)[1] for part in out], type(out) is list]
        return tuple(out)

    def make():
        body = Body(step, in_tree, avals, "scan", f)
        return (body, *trees), settled(fun, body.program, body.consts)

    return remembered(fun, (key, in_tree, tuple(avals)), make)


def _describe_output(out):
    return str(tree_map(lambda x: as_array(x).aval, out))


def _emit_scan(body, init, xs, x_avals, length, reverse, unroll):
    n_carry = len(init)
    moved = [i for i in range(n_carry) if body.forwards[i] == i]
    kept = [i for i in range(n_carry) if i not in moved]
    ys = body.forwards[n_carry:]
    # A stacked output that is an unchanged x is that xs; the order of iteration does not matter.
    forwarded = [f - n_carry if f is not None and f >= n_carry else None for f in ys]
    keep = kept + [n_carry + i for i, f in enumerate(forwarded) if f is None]
    program, consts = body.program, body.consts
    if moved or len(keep) < len(body.forwards):
        n_moved, n_consts = len(moved), len(consts)
        avals = [aval_of(init[i]) for i in moved] + [aval_of(c) for c in consts] + [aval_of(init[i]) for i in kept] + x_avals
        where = {i: k for k, i in enumerate(moved)} | {i: n_moved + n_consts + k for k, i in enumerate(kept)}
        where |= {n_carry + i: n_moved + n_consts + len(kept) + i for i in range(len(xs))}
        arguments = [where[i] for i in range(n_carry + len(xs))]
        program = body.rewired(range(n_moved, n_moved + n_consts), arguments, keep, avals)
        consts = [init[i] for i in moved] + consts
    if keep or program.effects:
        outs = bind(
            "scan",
            *consts,
            *[init[i] for i in kept],
            *xs,
            jaxpr=program,
            length=length,
            reverse=reverse,
            unroll=unroll,
            num_consts=len(consts),
            num_carry=len(kept),
        )
        outs = list(outs) if isinstance(outs, (tuple, list)) else [outs]
    else:
        outs = []
    carry_out, ys_out = iter(outs[: len(kept)]), iter(outs[len(kept) :])
    carry = [init[i] if i in moved else next(carry_out) for i in range(n_carry)]
    return carry, [next(ys_out) if f is None else xs[f] for f in forwarded]


def _scan_in_python(f, init, flat_xs, xs_tree, length, reverse):
    if length == 0:
        raise ValueError("zero-length scan is not supported in disable_jit() mode because the output type is unknown.")
    carry, ys = init, []
    order = range(length - 1, -1, -1) if reverse else range(length)
    for i in order:
        x = tree_unflatten(xs_tree, [index_in_dim(x, i, keepdims=False) for x in flat_xs])
        carry, y = f(carry, x)
        ys.append(y)
    if reverse:
        ys.reverse()
    flat = [tree_flatten(y) for y in ys]
    columns = [stack(_core.promote_dtypes(*column)) for column in zip(*[leaves for leaves, _ in flat], strict=True)]
    return carry, tree_unflatten(flat[0][1], columns)


def _rows(x, start, limit):
    return slice(x, (start,) + (0,) * (x.ndim - 1), (limit, *x.shape[1:]))


@api_boundary
def map(f: Callable[[Any], _Y], xs: Any, *, batch_size: int | None = None) -> _Y:
    """`f` applied to each slice of xs along the leading axis, one after another.

    Args:
        f: function of one slice.
        xs: pytree of arrays of one leading size.
        batch_size: int, this many slices at a time, by `vmap`; 0 and None: one.

    Returns:
        The results of f, stacked along a leading axis.

    Raises:
        ValueError: for a negative batch_size.

    >>> jax.lax.map(lambda x: x * x, jnp.arange(3))
    Array([0, 1, 4], dtype=int32)
    """
    if batch_size is not None and operator.index(batch_size) < 0:
        raise ValueError(f"lax.map: batch_size must not be negative, got {batch_size}")
    if not batch_size:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    leaves, tree = tree_flatten(xs)
    n = _scan_length(leaves, None)
    batch_size = operator.index(batch_size)
    n_batches, rest = divmod(n, batch_size)
    whole = n_batches * batch_size
    batched = vmap(f)
    leaves = [as_array(x) for x in leaves]
    heads = [_rows(x, 0, whole) if rest else x for x in leaves]
    heads = [reshape(x, (n_batches, batch_size, *x.shape[1:])) for x in heads]
    tails = [_rows(x, whole, n) for x in leaves] if rest else []
    merge = lambda y: reshape(y, (y.shape[0] * y.shape[1], *y.shape[2:]))
    out = scan(lambda _, x: ((), batched(x)), (), tree_unflatten(tree, heads))[1]
    if not rest:
        return tree_map(merge, out)
    tail = batched(tree_unflatten(tree, tails))
    return tree_map(lambda a, b: concatenate([merge(a), b], 0), out, tail)


def _interleave(a, b, axis):
    """a[0], b[0], a[1], b[1], ... along `axis`."""
    if a.shape[axis] not in (b.shape[axis], b.shape[axis] + 1):
        raise AssertionError("interleave: sizes differ by more than one")
    zero = a.dtype.type(0)

    def spread(x, low, high):
        config = [(0, 0, 0)] * x.ndim
        config[axis] = (low, high, 1)
        return pad(x, zero, config)

    if a.dtype == np.bool_:
        join = lambda x, y: bind("or", x, y)
    else:
        join = lambda x, y: bind("add", x, y)
    return join(spread(a, 0, 1 if a.shape[axis] == b.shape[axis] else 0), spread(b, 1, 0 if a.shape[axis] == b.shape[axis] else 1))


@api_boundary
def associative_scan(fn: Callable[[Any, Any], Any], elems: _T, reverse: bool = False, axis: int = 0) -> _T:
    """All prefixes of elems combined by an associative function, in logarithmic depth.

    Args:
        fn: associative function of two trees like elems, which acts elementwise along `axis`.
        elems: pytree of arrays of one size along `axis`.
        reverse: bool; from the end.
        axis: int.

    Returns:
        Pytree like elems.

    Raises:
        TypeError: if fn is not callable.
        ValueError: if sizes along `axis` differ.

    >>> lax.associative_scan(jnp.maximum, jnp.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    flat, tree = tree_flatten(elems)
    flat = [as_array(x) for x in flat]
    if not flat:
        return elems
    axis = canonicalize_axis(axis, flat[0].ndim)
    if reverse:
        flat = [rev(x, (axis,)) for x in flat]

    def combine(a, b):
        return [as_array(x) for x in tree_flatten(fn(tree_unflatten(tree, a), tree_unflatten(tree, b)))[0]]

    sizes = [x.shape[axis] for x in flat]
    if any(n != sizes[0] for n in sizes[1:]):
        raise ValueError(f"Array inputs to associative_scan must have the same first dimension. (saw: {[x.shape for x in flat]})")

    def prefixes(xs):
        n = xs[0].shape[axis]
        if n < 2:
            return xs
        # Combine neighbours, solve for the odd positions, and fill in the even ones from those.
        pairs = combine(
            [slice_in_dim(x, 0, n - 1, 2, axis) for x in xs],
            [slice_in_dim(x, 1, n, 2, axis) for x in xs],
        )
        odd = prefixes(pairs)
        if n % 2 == 0:
            even = combine([slice_in_dim(x, 0, x.shape[axis] - 1, 1, axis) for x in odd], [slice_in_dim(x, 2, n, 2, axis) for x in xs])
        else:
            even = combine(odd, [slice_in_dim(x, 2, n, 2, axis) for x in xs])
        even = [concatenate([slice_in_dim(x, 0, 1, 1, axis), y], axis) for x, y in zip(xs, even, strict=True)]
        return [_interleave(a, b, axis) for a, b in zip(even, odd, strict=True)]

    out = prefixes(flat)
    if reverse:
        out = [rev(x, (axis,)) for x in out]
    return tree_unflatten(tree, out)


@api_boundary
def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, _T], _T], init_val: _T, *, unroll: int | bool | None = None) -> _T:
    """Runs val = body_fun(i, val) for i from lower up to upper, not included.

    Where both are known when the function is called the loop is a `scan`, else a `while_loop`.

    Args:
        lower, upper: integer scalars.
        body_fun: function of i and the carry that returns a carry of the same structure and types.
        init_val: pytree: the first carry.
        unroll: int, how many steps to run between tests of the count; True: all; only for known
          bounds; None: 1.

    Returns:
        Pytree like init_val: the last carry.

    Raises:
        TypeError: for bounds of different types, or a carry that changes type.
        ValueError: for `unroll` with a traced bound.

    >>> jax.lax.fori_loop(0, 4, lambda i, x: x + i, 0)
    Array(6, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    refuse_ref_carry("fori_loop", body_fun, init_val, lambda: _flat.references.check_aliases("fori_loop", body_fun, (lower, init_val), {}), "result")

    def threaded(refs):
        def body(i, carry):
            with _flat.references.bound(refs, carry[1]):
                return body_fun(i, carry[0]), _flat.references.values_of(refs)

        out, values = _fori_loop(lower, upper, body, (init_val, _flat.references.values_of(refs)), unroll)
        _flat.references.settle(refs, values)
        return out

    return _flat.references.thread_references(lambda: _fori_loop(lower, upper, body_fun, init_val, unroll), threaded)


def _fori_loop(lower, upper, body_fun, init_val, unroll):
    dtype = _count_dtype(lower, upper)
    lo, hi = _static_int(lower), _static_int(upper)
    static = lo is not None and hi is not None
    if _core.config_get("jax_disable_jit") and static:
        val = tree_map(as_array, init_val)
        for i in range(lo, hi):
            val = body_fun(i, val)
        return val
    if static:
        # as in JAX, the count from a known number is weakly typed, whatever the dtypes of the bounds
        wide = canonicalize_dtype(int)
        dtype, start = (wide, lo) if iinfo(wide).min <= lo and hi <= iinfo(wide).max else (dtype, convert_element_type(lower, dtype))
    one = dtype.type(1)
    if static:

        def step(carry, _):
            i, x = carry
            following = bind("add", i, one)
            return (following, body_fun(i, x)), None

        step.__wrapped__, step.__signature__ = body_fun, _CARRY_AND_X  # errors name the user's function
        (_, result), _ = scan_steps(
            step,
            body_fun,
            ("fori_loop", dtype),
            (start, init_val),
            length=max(hi - lo, 0),
            unroll=1 if unroll is None else whole(unroll) if isinstance(unroll, float) else unroll,
        )
        return result
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")

    def advance(loop_carry):
        i, last, x = loop_carry
        following = bind("add", i, one)
        return following, last, body_fun(i, x)

    def body(in_tree, avals):
        def make():
            made = Body(advance, in_tree, avals, "while_body")
            return made, settled(body_fun, made.program, made.consts)

        return remembered(body_fun, ("fori_loop", dtype, in_tree, tuple(avals)), make)

    # A bound of that dtype stays weakly typed if it is, and so does the count: it does not widen a carry of 8 bits.
    lower, upper = (x if dtype_of(x) == dtype else convert_element_type(x, dtype) for x in (lower, upper))
    _, _, result = while_loop_of(lambda *key: Body.of(_below, *key, "while_cond"), body, advance, (lower, upper, init_val), body_fun)
    return result


def _below(loop_carry):
    i, last, _ = loop_carry
    return bind("lt", i, last)


def _count_dtype(lower, upper):
    """The dtype of a count between two bounds.

    A Python number, or a weakly typed one, takes that of the other.
    """
    a, b = dtype_of(lower), dtype_of(upper)
    if a == b:
        return a
    if _is_weak(lower) and is_integer(b):
        return b
    if _is_weak(upper) and is_integer(a):
        return a
    raise TypeError(f"lower and upper arguments to fori_loop must have equal types, got {a.name} and {b.name}")


def _is_weak(x):
    return type(x) is int or getattr(x, "weak_type", False)


def _static_int(x):
    if isinstance(x, _core.Tracer) or np.shape(x) != () or not is_integer(dtype_of(x)):
        return None
    try:
        return operator.index(x)
    except TypeError:
        return None
