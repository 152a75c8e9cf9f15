"""Collectives: operations across a named axis of `vmap`, `pmap` or `shard_map`.

Invariant: each takes pytrees and emits one equation per leaf; an axis name that is not in scope
raises NameError, and groups that do not partition the axis raise ValueError. Primitives that move
slices act along one axis: for several axes they are emitted one after the other.

    >>> jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import _core
from .._base.config import remove_size_one_mesh_axis_from_type
from .._base.shapes import canonicalize_axis
from .._core import bind
from .._runtime.mesh import get_abstract_mesh
from ..tree_util import tree_leaves, tree_map
from . import _sections as sections
from ._arithmetic import clamp
from ._axis_names import _bound, _check_states, _even, _is_position, _manual, _names, _scope, _state, _varying, axis_index, axis_size
from ._bodies import as_array
from ._comparisons import select
from ._creation import broadcasted_iota, full_like, zeros_like_array
from ._reductions import reduce_max
from ._shaping import broadcast_in_dim, concatenate, expand_dims, reshape, squeeze, transpose
from ._slicing import dynamic_index_in_dim, dynamic_slice_in_dim, index_in_dim

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from .._core import Array
    from ..typing import ArrayLike

_T = TypeVar("_T")


def _of_group(v, names, groups):
    """The values of all members of the own group, stacked along a new leading axis, and the own
    position among them.

    Positions are row-major over several axes.
    """
    members = np.zeros((sum(map(len, groups)), len(groups[0])), np.int32)
    places = np.zeros(len(members), np.int32)
    for group in groups:
        for place, i in enumerate(group):
            members[i], places[i] = group, place
    here = axis_index(names)
    mine, place = (dynamic_index_in_dim(table, here, keepdims=False) for table in (members, places))
    everyone = all_gather(v, names)
    return concatenate([dynamic_index_in_dim(everyone, mine[k], 0) for k in range(len(groups[0]))], 0), place


def _reduce(primitive, reducer, x, axis_name, groups):
    """Of each leaf. Axes that are numbers are the leaf's own."""
    names = _names(axis_name)
    positions = [a for a in names if _is_position(a)]
    names, groups, _ = _scope([a for a in names if not _is_position(a)], groups, "psum")

    def emit(v):
        if positions:
            v = as_array(v)
            v = bind(reducer, v, axes=tuple(sorted(canonicalize_axis(a, v.ndim) for a in positions)))
        v = as_array(v)
        manual = _manual(v, names)
        if manual and groups is not None:
            raise NotImplementedError(f"{primitive} with axis_index_groups in a `shard_map` that checks vma: pass check_vma=False to it")
        others = names
        if manual and primitive == "psum":
            terms = _state(v, manual, "psum") == "unreduced"
            v = v if terms else _varying(v, manual)
            v = bind("unreduced_psum" if terms else "psum_invariant", v, axes=tuple(manual), axis_index_groups=None)
            others = tuple(a for a in names if a not in manual)
        elif manual:
            v = _varying(v, manual)
        return bind(primitive, v, axes=others, axis_index_groups=groups) if others else v

    return tree_map(emit, x)


@sections.collective
def psum(x: _T, axis_name: Hashable | Sequence[Hashable], *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> _T:
    """Sum of x over the named axis, everywhere.

    A Python number is multiplied by the axis size without an equation.

    >>> jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([3, 3], dtype=int32)
    """
    call = "psum" if any(isinstance(v, _core.Tracer) for v in tree_leaves(x)) else None
    n = _scope([a for a in _names(axis_name) if not _is_position(a)], axis_index_groups, call)[2]

    def sum_of(v):
        if n is not None and isinstance(v, (int, float, complex)) and not isinstance(v, bool):
            return v * n
        v = as_array(v)
        # Booleans are counted.
        if v.dtype == np.bool_:
            v = bind("convert_element_type", v, new_dtype=np.dtype(np.int32), weak_type=False)
        return _reduce("psum", "reduce_sum", v, axis_name, axis_index_groups)

    return tree_map(sum_of, x)


@sections.collective
def pmean(x: _T, axis_name: Hashable | Sequence[Hashable], *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> _T:
    """Mean of x over the named axis, at every position.

    >>> jax.vmap(lambda x: lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 2.0]))
    Array([1.5, 1.5], dtype=float32)
    """
    _, groups, n = _scope(axis_name, axis_index_groups)
    if n is None:
        n = bind("psum", as_array(np.int32(1)), axes=_names(axis_name), axis_index_groups=groups)
    return tree_map(lambda v: v / n, psum(x, axis_name, axis_index_groups=axis_index_groups))


@sections.collective
def pmax(x: _T, axis_name: Hashable | Sequence[Hashable], *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> _T:
    """Maximum of x over the named axis, everywhere.

    >>> jax.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([2, 2], dtype=int32)
    """
    return _reduce("pmax", "reduce_max", x, axis_name, axis_index_groups)


@sections.collective
def pmin(x: _T, axis_name: Hashable | Sequence[Hashable], *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> _T:
    """Minimum of x over the named axis, everywhere.

    >>> jax.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([1, 1], dtype=int32)
    """
    return _reduce("pmin", "reduce_min", x, axis_name, axis_index_groups)


def ppermute(x: _T, axis_name: Hashable | Sequence[Hashable], perm: Sequence[tuple[int, int]]) -> _T:
    """`x` sent along (source, destination) pairs; positions without a source get zeros.

    Args:
        x: pytree of arrays.
        axis_name: name of a mapped axis, or a tuple of names.
        perm: sequence of pairs (source, destination) of positions.

    Returns:
        Pytree like x.

    Raises:
        ValueError: for positions outside the axis, and for a source or a destination named twice.

    >>> jax.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 0)]), axis_name="i")(jnp.array([1, 2]))
    Array([2, 1], dtype=int32)
    """
    perm = tuple([tuple([operator.index(i) for i in pair]) for pair in perm])
    names, _, n = _scope(axis_name, call="ppermute")
    if any(not 0 <= i < n for pair in perm for i in pair):
        raise ValueError(f"ppermute sources and destinations must be positions of an axis of size {n}, got {perm}.")
    if any(len({pair[side] for pair in perm}) < len(perm) for side in (0, 1)):
        raise ValueError(f"ppermute sources and destinations must be unique, got {perm}.")
    if len(names) == 1:
        return tree_map(lambda v: bind("ppermute", _varying(v, names), axis_name=names, perm=perm), x)
    source = np.full(n, -1, np.int32)
    for s, d in perm:
        source[d] = s
    mine = dynamic_index_in_dim(source, axis_index(names), keepdims=False)

    def emit(v):
        v = as_array(v)
        sent = dynamic_index_in_dim(all_gather(v, names), mine, keepdims=False)
        return select(bind("ge", mine, np.int32(0)), sent, zeros_like_array(v))

    return tree_map(emit, x)


def pshuffle(x: _T, axis_name: Hashable | Sequence[Hashable], perm: Sequence[int]) -> _T:
    """`x` permuted: position i gets x from position perm[i].

    Args:
        x: pytree of arrays.
        axis_name: name of a mapped axis, or a tuple of names.
        perm: sequence of positions, a permutation.

    Returns:
        Pytree like x.

    Raises:
        ValueError: unless `perm` is a permutation.

    >>> jax.vmap(lambda x: lax.pshuffle(x, "i", [1, 0]), axis_name="i")(jnp.array([1, 2]))
    Array([2, 1], dtype=int32)
    """
    if set(perm) != set(range(len(perm))) or len(perm) != _bound(_names(axis_name), "ppermute"):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def all_gather(
    x: _T,
    axis_name: Hashable | Sequence[Hashable],
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> _T:
    """`x` from all positions, stacked along a new axis `axis`, or joined along it if `tiled`.

    Args:
        x: pytree of arrays.
        axis_name: name of a mapped axis, or a tuple of names.
        axis_index_groups: lists of positions, all of one size, to work within; None: all together.
        axis: int, the position of the new axis in the result.
        tiled: bool; join along `axis` in place of a new axis.
        to: "varying", "reduced" or "invarying": how the result is typed in a `shard_map`.

    Returns:
        Pytree like x; arrays with an axis of the axis's size more, or with `axis` longer if
        `tiled`.

    Raises:
        ValueError: for another `to`.

    >>> jax.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if to not in ("varying", "reduced", "invarying"):
        raise ValueError(f"Got unexpected `to` value. Allowed `to` values are: {{'varying', 'reduced', 'invarying'}}, got {to!r}")
    names, groups, n = _even("all_gather", axis_name, axis_index_groups)
    if groups is not None and to != "varying":
        raise NotImplementedError(f"all_gather with axis_index_groups and to={to!r}: gather to='varying'")
    primitive = {"varying": "all_gather", "reduced": "all_gather_reduced", "invarying": "all_gather_invariant"}[to]

    def gather(v, name, size, dimension, tiled):
        return bind(primitive, v, all_gather_dimension=dimension, axis_name=(name,), axis_index_groups=groups, axis_size=size, tiled=tiled)

    def emit(v):
        v = as_array(v)
        if to == "reduced" and _manual(v, names):
            _check_states(primitive, v, names, "varying", "Varying -> Reduced")
        else:
            v = _varying(v, names)
        dimension = canonicalize_axis(operator.index(axis), v.ndim if tiled else v.ndim + 1)
        if groups is not None and len(names) > 1:
            parts = _of_group(v, names, groups)[0]
            rest = [d for d in range(1, v.ndim + 1)]
            stacked = transpose(parts, (*rest[:dimension], 0, *rest[dimension:]))
            return reshape(stacked, (*v.shape[:dimension], n * v.shape[dimension], *v.shape[dimension + 1 :])) if tiled else stacked
        if len(names) == 1:
            return gather(v, names[0], n, dimension, bool(tiled))
        if not tiled:
            v = expand_dims(v, (dimension,))
        for name in reversed(names):
            v = gather(v, name, axis_size(name), dimension, True)
        return v

    return tree_map(emit, x)


def psum_scatter(
    x: _T,
    axis_name: Hashable | Sequence[Hashable],
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> _T:
    """`psum` after which each position keeps only its own slice along `scatter_dimension`.

    Args:
        x: pytree of arrays.
        axis_name: name of a mapped axis, or a tuple of names.
        scatter_dimension: int, the axis that is cut.
        axis_index_groups: lists of positions, all of one size, to work within; None: all together.
        tiled: bool; keep that axis, shorter, instead of dropping it.

    Returns:
        Pytree like x.

    Raises:
        ValueError: if the axis's size does not fit the number of positions.

    >>> jax.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    names, groups, n = _even("psum_scatter", axis_name, axis_index_groups)

    def scatter(v, name, size, dimension, tiled, primitive):
        return bind(primitive, v, axis_name=(name,), axis_index_groups=groups, axis_size=size, scatter_dimension=dimension, tiled=tiled)

    def emit(v):
        v = as_array(v)
        manual = _manual(v, names)
        terms = bool(manual) and _state(v, manual, "psum_scatter") == "unreduced"
        if terms and groups is not None:
            raise NotImplementedError("psum_scatter with axis_index_groups does not take unreduced operands: use `psum`")
        primitive = "unreduced_reduce_scatter" if terms else "reduce_scatter"
        v = v if terms else _varying(v, names)
        dimension = canonicalize_axis(scatter_dimension, v.ndim)
        if groups is not None and len(names) > 1:
            size = v.shape[dimension]
            if size % n or not (tiled or size == n):
                raise ValueError(f"reduce_scatter operand scatter dimension size {size} must {'be divisible by' if tiled else 'match'} shard count {n}")
            parts, place = _of_group(v, names, groups)
            total = bind("reduce_sum", parts, axes=(0,))
            mine = dynamic_slice_in_dim(total, place * np.int32(size // n), size // n, dimension)
            return mine if tiled else squeeze(mine, (dimension,))
        if len(names) == 1:
            return scatter(v, names[0], n, dimension, bool(tiled), primitive)
        if not tiled and v.shape[dimension] != n:
            raise ValueError(f"reduce_scatter operand scatter dimension size {v.shape[dimension]} must match shard count {n}")
        for name in names:
            v = scatter(v, name, axis_size(name), dimension, True, primitive)
        return v if tiled else squeeze(v, (dimension,))

    return tree_map(emit, x)


def all_to_all(
    x: _T,
    axis_name: Hashable | Sequence[Hashable],
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> _T:
    """`x` cut along `split_axis`, piece j sent to position j, the received pieces joined along
    `concat_axis`.

    Unless `tiled`, the split axis has the named axis's size and is removed, and the result has a
    new axis `concat_axis`.

    Args:
        x: pytree of arrays.
        axis_name: name of a mapped axis, or a tuple of names.
        split_axis: int, the axis that is cut.
        concat_axis: int, the axis along which pieces are joined.
        axis_index_groups: lists of positions, all of one size, to work within; None: all together.
        tiled: bool; keep the split axis, shorter, instead of dropping it.

    Returns:
        Pytree like x.

    Raises:
        ValueError: where the sizes do not fit the axis.

    >>> jax.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    names, groups, n = _even("all_to_all", axis_name, axis_index_groups)

    def exchange(v, name, size, split, concat, tiled):
        return bind("all_to_all", v, axis_name=name, axis_index_groups=groups, axis_size=size, split_axis=split, concat_axis=concat, tiled=tiled)

    def emit(v):
        v = _varying(v, names)
        split, concat = canonicalize_axis(split_axis, v.ndim), canonicalize_axis(concat_axis, v.ndim)
        size = v.shape[split]
        if not tiled and size != n:
            raise ValueError(
                f"all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but they are {n} and {size} respectively."
            )
        if tiled and size % n:
            raise ValueError(f"The size of all_to_all split_axis ({size}) has to be divisible by the size of the named axis {axis_name} ({n})")
        if len(names) == 1:
            return exchange(v, names[0], n, split, concat, bool(tiled))
        # Each name has an axis of the pieces to itself, which it swaps with its own; then they go where pieces are joined.
        sizes = [axis_size(name) for name in names]
        rest = (size // n,) if tiled else ()
        v = reshape(v, (*v.shape[:split], *sizes, *rest, *v.shape[split + 1 :]))
        for at, (name, k) in enumerate(zip(names, sizes, strict=True), split):
            v = exchange(v, name, k, at, at, True)
        pieces = list(range(split, split + len(names)))
        others = [d for d in range(v.ndim) if d not in pieces]
        v = transpose(v, (*others[:concat], *pieces, *others[concat:]))
        joined = n * v.shape[concat + len(names)] if tiled else n
        return reshape(v, (*v.shape[:concat], joined, *v.shape[concat + len(names) + bool(tiled) :]))

    return tree_map(emit, x)


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Array:
    """Slices of operand's rows, sent to the positions of the named axis and written over output's
    rows there.

    Slice i, `operand[input_offsets[i]:][:send_sizes[i]]`, goes to position `i // (K // axis size)`,
    to row output_offsets[i] of its result. Where slices overlap, the last sender's stays; rows that
    do not exist are not written.

    Args:
        operand: array of shape (N, ...).
        output: array of shape (M, ...), of operand's dtype.
        input_offsets, send_sizes, output_offsets: vectors of K integers.
        recv_sizes: vector of K integers: the number of received rows, equal to the senders'
          send_sizes.
        axis_name: name of a mapped axis, or a tuple of names.
        axis_index_groups: lists of positions, all of one size, to work within; None: all together.

    Returns:
        Array of output's shape and dtype.

    Raises:
        ValueError: for shapes and dtypes that do not fit.
    """
    operand, output = as_array(operand), as_array(output)
    vectors = {"input_offsets": input_offsets, "send_sizes": send_sizes, "output_offsets": output_offsets, "recv_sizes": recv_sizes}
    vectors = {name: as_array(v) for name, v in vectors.items()}
    for name, v in vectors.items():
        if v.dtype.kind not in "iu":
            raise ValueError(f"ragged_all_to_all {name} must be integer type.")
        if v.ndim != 1 or v.shape[0] < 1:
            raise ValueError(f"ragged_all_to_all {name} must be rank 1 with positive dimension size, but got shape {tuple(v.shape)}")
    sizes = {v.shape[0] for v in vectors.values()}
    _, groups, n = _even("ragged_all_to_all", axis_name, axis_index_groups)
    if len(sizes) > 1 or next(iter(sizes)) % n:
        found = ", ".join(f"{name} {v.shape[0]}" for name, v in vectors.items())
        raise ValueError(f"ragged_all_to_all: the vectors must have the same length, a multiple of the axis size {n}; got {found}")
    if operand.dtype != output.dtype or operand.shape[1:] != output.shape[1:] or not operand.ndim:
        raise ValueError(f"ragged_all_to_all: operand and output must agree but for their first axis, got {operand.aval} and {output.aval}")
    if not output.shape[0] or not operand.shape[0]:
        return output
    exchanged = lambda v: all_to_all(v, axis_name, 0, 0, axis_index_groups=groups, tiled=True)
    begin, size, to = (exchanged(vectors[name].astype(np.int32)) for name in ("input_offsets", "send_sizes", "output_offsets"))
    sent = all_gather(operand, axis_name, axis_index_groups=groups)
    # of each row of the result: the last slice that covers it, and the row of its sender that comes here
    k = begin.shape[0]
    row = broadcasted_iota(np.int32, (output.shape[0], k), 0)
    number = broadcasted_iota(np.int32, (output.shape[0], k), 1)
    covers = (row >= to) & (row < to + size)
    last = reduce_max(select(covers, number, full_like(number, -1)), (1,))
    at = clamp(np.int32(0), last, np.int32(k - 1))
    source = begin[at] + row[:, 0] - to[at]
    rows = reshape(sent, (n * operand.shape[0], *operand.shape[1:]))[
        at // (k // n) * operand.shape[0] + clamp(np.int32(0), source, np.int32(operand.shape[0] - 1))
    ]
    here = broadcast_in_dim(last >= 0, output.shape, (0,))
    return select(here, rows, output)


def pswapaxes(x: _T, axis_name: Hashable | Sequence[Hashable], axis: int, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> _T:
    """Swaps the named axis with the axis `axis` of x, of the same size.

    Args:
        x: pytree of arrays whose size along `axis` is the named axis's.
        axis_name: name of a mapped axis, or a tuple of names.
        axis: int.
        axis_index_groups: lists of positions, all of one size, to work within; None: all together.

    Returns:
        Pytree like x.

    Raises:
        ValueError: if the sizes differ.

    >>> jax.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: _T, axis_name: Hashable | Sequence[Hashable], source: int) -> _T:
    """`x` of position `source`, everywhere along the named axis.

    Args:
        x: pytree of arrays.
        axis_name: name of a mapped axis, or a tuple of names.
        source: int, a position.

    Returns:
        Pytree like x.

    Raises:
        ValueError: for a source outside the axis.

    >>> jax.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([1, 2]))
    Array([2, 2], dtype=int32)
    """
    n = _bound(_names(axis_name), "ppermute")
    if not 0 <= source < n:
        raise ValueError(f"source {source} is out of bounds for axis {axis_name} of size {n}")
    return tree_map(lambda v: index_in_dim(v, source, 0, keepdims=False), all_gather(x, axis_name))


_CASTS = {("invarying", "reduced"): "preduced", ("varying", "unreduced"): "vary_unreduced_cast_p", ("reduced", "varying"): "reduced_vary_cast_p"}


def pcast(x: _T, axis_name: Hashable | Sequence[Hashable], *, to: str) -> _T:
    """Casts x to a type with another state along the named axes of a `shard_map`.

    An invarying value (the same at all positions) can be cast to "varying", whose transpose is
    `psum`, or to "reduced", whose derivative is left as terms. A varying value can be cast to
    "unreduced": terms of a sum that `psum` takes. A reduced value can be cast to "varying". If the
    `shard_map` does not check varying axes, x is returned.

    Args:
        x: pytree of arrays.
        axis_name: name of a mapped axis, or a tuple of names.
        to: "varying", "unreduced" or "reduced".

    Returns:
        Pytree like x.

    Raises:
        ValueError: `to` is not valid, or there is no cast to it.
        NameError: an axis is not in scope.

    >>> def same(x): return x + lax.pcast(jnp.zeros(2), "x", to="varying")
    >>> mesh = jax.sharding.AbstractMesh((2,), ("x",))
    >>> jax.shard_map(same, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))(jnp.arange(4.0))
    Array([0., 1., 2., 3.], dtype=float32)
    """
    if isinstance(axis_name, (set, frozenset)):
        raise TypeError(f"axis_name={axis_name!r} must be a tuple or a str. Got {axis_name}")
    names = _names(axis_name)
    if to not in ("varying", "unreduced", "reduced"):
        raise ValueError(f"Got unexpected `to` value. Allowed `to` values are: {{'unreduced', 'reduced', 'varying'}}, got {to!r}")
    call = {"varying": "pvary", "reduced": "preduced"}.get(to)
    if remove_size_one_mesh_axis_from_type.value:
        sizes = get_abstract_mesh().shape
        names = tuple(a for a in names if sizes.get(a) != 1)
        if not names:
            return x

    def cast(v):
        v = as_array(v)
        if not isinstance(v, _core.Tracer) and _core.at_root():
            raise ValueError(f"{call} should be called under jax.shard_map." if call else f"Unsupported pcast from=invarying, {to=}")
        _bound(names, call or "pcast")
        manual = [a for a in names if _core.is_manual(a)]
        if not manual:
            return v
        state = _state(v, manual, "pcast")
        if (state, to) == ("invarying", "varying"):
            return _core.varying(v, manual)
        if (state, to) not in _CASTS:
            raise ValueError(f"Unsupported pcast from={state}, {to=}")
        return bind(_CASTS[state, to], v, axes=tuple(str(a) for a in manual))

    return tree_map(cast, x)
