"""Collectives: operations across a named axis of `vmap`, `pmap` or `shard_map`.

Invariant: each takes pytrees and emits one equation per collective over all leaves; an axis name that is not in scope raises NameError.

    >>> jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from .._config import refused
from .._core import bind
from ..tree_util import tree_map
from ._bodies import as_array
from ._slicing import index_in_dim

tree_flatten, tree_unflatten = _core.tree_flatten, _core.tree_unflatten


def _names(axis_name):
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _groups(groups):
    return None if groups is None else tuple([tuple(g) for g in groups])


def axis_size(axis_name):
    """The size of the named axis (the product of several), a Python integer."""
    return math.prod([_core.axis_size(name) for name in _names(axis_name)])


def axis_index(axis_name):
    """The position along the named axis, int32; of several names, the position in row-major order. Raises NameError for an unbound name."""
    names = _names(axis_name)
    try:
        axis_size(names)
    except NameError:
        raise NameError(f"Found an unbound axis name: {axis_name}. To fix this, please call axis_index under `jax.shard_map`.") from None
    index = bind("axis_index", axis_name=names[0])
    for name in names[1:]:
        index = bind("add", bind("mul", index, np.int32(axis_size(name))), bind("axis_index", axis_name=name))
    return index


def _reduce(primitive, x, axis_name, axis_index_groups):
    leaves, tree = tree_flatten(x)
    if not leaves:
        return x
    axis_size(axis_name)
    out = bind(primitive, *[as_array(v) for v in leaves], axes=_names(axis_name), axis_index_groups=_groups(axis_index_groups))
    return tree_unflatten(tree, list(out) if isinstance(out, (tuple, list)) else [out])


def psum(x, axis_name, *, axis_index_groups=None):
    """Sum of x over the named axis, everywhere. x: a pytree. A Python number is multiplied by the axis size without an equation."""
    if isinstance(x, (int, float)) and not isinstance(x, bool) and axis_index_groups is None:
        return x * axis_size(axis_name)
    leaves, tree = tree_flatten(x)
    leaves = [as_array(v) for v in leaves]
    # Booleans are counted.
    leaves = [bind("convert_element_type", v, new_dtype=np.dtype(np.int32), weak_type=False) if v.dtype == np.bool_ else v for v in leaves]
    return _reduce("psum", tree_unflatten(tree, leaves), axis_name, axis_index_groups)


def pmean(x, axis_name, *, axis_index_groups=None):
    """Mean of x over the named axis, everywhere. x: a pytree."""
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    n = len(axis_index_groups[0]) if axis_index_groups else axis_size(axis_name)
    return tree_map(lambda v: bind("div", *_core.promote_shapes(*_core.promote_dtypes_inexact(v, n))), total)


def pmax(x, axis_name, *, axis_index_groups=None):
    """Maximum of x over the named axis, everywhere. x: a pytree."""
    return _reduce("pmax", x, axis_name, axis_index_groups)


def pmin(x, axis_name, *, axis_index_groups=None):
    """Minimum of x over the named axis, everywhere. x: a pytree."""
    return _reduce("pmin", x, axis_name, axis_index_groups)


def ppermute(x, axis_name, perm):
    """x sent along (source, destination) pairs; positions that nobody sends to get zeros. x: a pytree."""
    perm = tuple([tuple([int(i) for i in pair]) for pair in perm])
    names = _names(axis_name)
    axis_size(names)
    emit = lambda v: bind("ppermute", as_array(v), axis_name=names[0] if len(names) == 1 else names, perm=perm)
    return tree_map(emit, x)


def pshuffle(x, axis_name, perm):
    """x permuted: position i gets x from position perm[i]. Raises ValueError unless `perm` is a permutation."""
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def all_gather(x, axis_name, *, axis_index_groups=None, axis=0, tiled=False, to=None):
    """x from all positions, stacked along a new axis `axis`, or joined along it if `tiled`. x: a pytree."""
    if to not in (None, "varying"):
        refused("all_gather", "to", to, "the type of an array does not say over which axes it varies")
    n = len(axis_index_groups[0]) if axis_index_groups else axis_size(axis_name)
    names = _names(axis_name)

    def emit(v):
        v = as_array(v)
        ndim = v.ndim if tiled else v.ndim + 1
        return bind(
            "all_gather",
            v,
            all_gather_dimension=axis + ndim if axis < 0 else axis,
            axis_name=names[0] if len(names) == 1 else names,
            axis_index_groups=_groups(axis_index_groups),
            axis_size=n,
            tiled=bool(tiled),
        )

    return tree_map(emit, x)


def psum_scatter(x, axis_name, *, scatter_dimension=0, axis_index_groups=None, tiled=False):
    """`psum` of which each position keeps its own slice along `scatter_dimension`. x: a pytree."""
    n = len(axis_index_groups[0]) if axis_index_groups else axis_size(axis_name)
    names = _names(axis_name)
    return tree_map(
        lambda v: bind(
            "reduce_scatter",
            as_array(v),
            axis_name=names,
            scatter_dimension=scatter_dimension,
            axis_index_groups=_groups(axis_index_groups),
            axis_size=n,
            tiled=bool(tiled),
        ),
        x,
    )


def all_to_all(x, axis_name, split_axis, concat_axis, *, axis_index_groups=None, tiled=False):
    """x cut along `split_axis`, piece j sent to position j, the received pieces joined along `concat_axis`. x: a pytree.

    Unless `tiled`, the split axis has the named axis's size and is gone from the result, which has a new axis `concat_axis`.
    Raises ValueError where the sizes do not fit the axis.
    """
    n = len(axis_index_groups[0]) if axis_index_groups else axis_size(axis_name)
    names = _names(axis_name)

    def emit(v):
        v = as_array(v)
        split = split_axis + v.ndim if split_axis < 0 else split_axis
        concat = concat_axis + v.ndim if concat_axis < 0 else concat_axis
        if not tiled and v.shape[split] != n:
            raise ValueError(
                f"all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but they are {n} and {v.shape[split]} respectively."
            )
        if tiled and v.shape[split] % n:
            raise ValueError(f"all_to_all requires the size of the split axis to be divisible by the axis size, got {v.shape[split]} and {n}")
        if not tiled:
            shape = list(v.shape)
            # The split axis of size n goes; a new one of size 1 takes the place where the pieces join.
            if concat < split:
                shape.insert(concat, 1)
                split += 1
            elif concat == split:
                shape.insert(concat + 1, 1)
                concat += 1
            else:
                shape.insert(concat + 1, 1)
                concat += 1
            v = bind("reshape", v, new_sizes=tuple(shape), dimensions=None)
        out = bind(
            "all_to_all",
            v,
            split_axis=split,
            concat_axis=concat,
            axis_name=names[0] if len(names) == 1 else names,
            axis_index_groups=_groups(axis_index_groups),
            tiled=True,
        )
        return out if tiled else bind("squeeze", out, dimensions=(split,))

    return tree_map(emit, x)


def pswapaxes(x, axis_name, axis, *, axis_index_groups=None):
    """Swaps the named axis with the axis `axis` of x, of the same size. x: a pytree."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x, axis_name, source):
    """x of position `source`, everywhere along the named axis. x: a pytree. Raises ValueError for a source outside the axis."""
    n = axis_size(axis_name)
    gathered = all_gather(x, axis_name)
    if not 0 <= source < n:
        raise ValueError(f"source {source} is out of bounds for axis {axis_name} of size {n}")
    return tree_map(lambda v: index_in_dim(v, source, 0, keepdims=False), gathered)


def pcast(x, axis_name=None, *, to):
    """x unchanged: Ferrax does not track which axes a value varies over."""
    if to not in ("varying", "unreduced", "reduced", "replicated", "invariant"):
        raise ValueError(f"pcast got an unknown target {to!r}")
    return x
