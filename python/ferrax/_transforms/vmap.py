"""`vmap` over pytrees: axis specifications are tree prefixes, and errors name the argument's path.

vmap(lambda x, w: w @ x, in_axes=(0, None))(xs, w)         # one product a row of xs
"""

from __future__ import annotations

import collections
import threading
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .. import _core
from .._base.dtypes import canonicalize_dtype
from .._base.tracebacks import api_boundary
from .._tracing.picklable import restorable
from .._tracing.vmappable import carried, concerns, spec_types, vmap_over, vmappables
from .._trees import flat as _flat
from .._trees.flat import FlatFun, argument_names, check_callable, looked_at, wraps
from .._trees.prefixes import spread_prefix
from ..tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_P = ParamSpec("_P")
_R = TypeVar("_R")


_get_aval = _core.get_aval


_local = threading.local()


class _OfThread(type):
    @property
    def checked(cls):
        return getattr(_local, "checked", None)

    @checked.setter
    def checked(cls, mapping):
        _local.checked = mapping


class elements(metaclass=_OfThread):
    """The replacement of `vmap` while `checkify` traces on this thread.

    checked: a function of (fun, args, kwargs, options of `vmap`), which checks each element of
    loops that end at different times and of branches that differ; None elsewhere.
    """


def _is_axis(x):
    return x is None or type(x) is int or isinstance(x, carried.specs)


@api_boundary
def vmap(
    fun: Callable[_P, _R],
    in_axes: int | Sequence[Any] | dict[str, Any] | None = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable[_P, _R]:
    """Maps a function over array axes: `fun`, written for one element, applied to all of them at
    once.

    Args:
        fun: the function.
        in_axes: which axis of each argument to map over: an int, None (not mapped), or a tuple or
            list with one entry per positional argument, each an int, None or a pytree prefix of the
            argument. Keyword arguments are mapped over axis 0.
        out_axes: where the mapped axis appears in the output: an int, None (only if the output does
            not depend on the mapped arguments), or a pytree prefix of the output.
        axis_name: a name for the axis, for collectives such as `lax.psum`.
        axis_size: the size of the axis, needed where no argument is mapped.
        spmd_axis_name: a mesh axis, or a tuple of them, that partitions the batch: constraints and
          `shard_map`s in `fun` are extended by it.
        sum_match: outputs whose axis is None and that depend on mapped arguments are summed over
          the mapped axis; otherwise they are refused.

    Returns:
        the mapped function.

    Raises:
        ValueError: sizes differ or cannot be found, an axis is out of range, or a specification is
          not a prefix.
        TypeError: a specification is not an int, None or a container of them.

    >>> vmap(lambda x: (x ** 2).sum())(jnp.ones((3, 2)))
    Array([2., 2., 2.], dtype=float32)
    """
    spmd = () if spmd_axis_name is None else spmd_axis_name if isinstance(spmd_axis_name, tuple) else (spmd_axis_name,)
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (_is_axis(in_axes) or isinstance(in_axes, tuple) or type(in_axes) in spec_types):
        raise TypeError(
            f"vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed to the function, but got {in_axes}."
        )
    if not all(_is_axis(a) or type(a) in spec_types for a in _axis_leaves(in_axes)):
        raise TypeError(f"vmap in_axes must be an int, None, or (nested) container with those types as leaves, but got {in_axes}.")
    if not all(_is_axis(a) or type(a) in spec_types for a in _axis_leaves(out_axes)):
        raise TypeError(f"vmap out_axes must be an int, None, or (nested) container with those types as leaves, but got {out_axes}.")

    @restorable(vmap, fun, in_axes, out_axes, axis_name, axis_size, spmd_axis_name, sum_match)
    @wraps(fun, "{fun}", "Vectorized version of {fun}. Takes similar arguments as {fun} but with additional array axes over which {fun} is mapped.{original}")
    def vmap_f(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed to the"
                f" function, but got {len(in_axes)=}, {len(args)=}"
            )
        if vmappables and concerns(args, kwargs, (in_axes, out_axes)):
            return vmap_over(fun, args, kwargs, in_axes, out_axes, axis_name, axis_size, mapped_size)
        if carried.specs and any(isinstance(a, carried.specs) for a in (*_axis_leaves(in_axes), *_axis_leaves(out_axes))):
            return carried.mapped(fun, args, kwargs, in_axes, out_axes, axis_name, axis_size, mapped_size)
        if elements.checked is not None:
            return elements.checked(fun, args, kwargs, (in_axes, out_axes, axis_name, axis_size, spmd_axis_name, sum_match))
        leaves, in_tree = tree_flatten((args, kwargs))
        if in_axes == 0 and type(in_axes) is int:
            dims = [0] * len(leaves)
        else:
            dims = spread_prefix(in_axes, args, "vmap in_axes")
            dims += [0] * (len(leaves) - len(dims))
        size = mapped_size("vmap", fun, args, kwargs, leaves, dims, axis_size)
        refs = [x for x in leaves if isinstance(x, _flat.references.Ref)] if _flat.references.seen else ()
        if refs:
            _flat.references.check_aliases("vmap", fun, args, kwargs)
            return _mapped_with_refs(fun, leaves, in_tree, dims, size, refs, out_axes, axis_name, sum_match)
        flat = mapped = FlatFun(fun, in_tree)
        if None in dims:
            _check_unmapped(leaves, dims)
            # unmapped arguments are passed unchanged: a function, a string, a Python number that sizes something
            mapped = _over_mapped(flat, leaves, dims)
            leaves, dims = [x for x, d in zip(leaves, dims, strict=True) if d is not None], [d for d in dims if d is not None]

        summed = []

        def out_dims(i=None):
            if i is not None and sum_match:
                summed.append(i)
                return 0
            if i is not None:  # the name of the specification of output i
                paths = tree_flatten_with_path(flat.out_tree.unflatten([0] * flat.out_tree.num_leaves))[0]
                return f"vmap out_axes{keystr(paths[i][0])}"
            if _is_axis(out_axes):
                return [out_axes] * flat.out_tree.num_leaves
            tree = flat.out_tree.unflatten([0] * flat.out_tree.num_leaves)
            return spread_prefix(out_axes, tree, "vmap out_axes")

        outs = _core.vmap(mapped, leaves, dims, size, axis_name, out_dims, False, _named_lanes(spmd, leaves, dims))
        for i in summed:
            outs[i] = _total(outs[i])
        return flat.out_tree.unflatten(looked_at("vmap", fun, outs))

    return vmap_f


def _total(x):
    """The sum over the first axis; booleans are counted."""
    if x.dtype == bool:
        x = _core.bind("convert_element_type", x, new_dtype=canonicalize_dtype(int), weak_type=False)
    return _core.bind("reduce_sum", x, axes=(0,))


def _lane_axes(leaves, dims):
    """The mesh axes that partition the mapped dimensions according to their types."""
    for x, d in zip(leaves, dims, strict=True):
        if d is not None and isinstance(x, _core.Array) and (axes := x.aval.sharding.spec.axes_of(d % x.ndim)):
            return axes
    return ()


def _check_unmapped(leaves, dims):
    """Raises ValueError, with JAX's text, if an unmapped argument is sharded along the mesh axes
    that the mapped axis is sharded along.
    """
    axes = _lane_axes(leaves, dims)
    for x, d in zip(leaves, dims, strict=True):
        if d is None and axes and isinstance(x, _core.Array):
            spec = x.aval.sharding.spec
            if any(a in axes for k in range(len(spec)) for a in spec.axes_of(k)):
                raise ValueError(
                    "Unmapped values passed to vmap cannot be sharded along the mesh axis you are vmapping over. Got type:"
                    f" {x.aval.str_short(True)}, in_axes: {d} and vmapped mesh axis: {axes}"
                )


def _named_lanes(spmd, leaves, dims):
    """The mesh axes of `spmd_axis_name`, without those that types contain already.

    Raises:
        ValueError: they differ from the axes in the types.
    """
    axes = _lane_axes(leaves, dims) if spmd else ()
    if axes and axes != spmd:
        raise ValueError(
            "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed. Got"
            f" spmd_axis_name={spmd} and arrays sharded on explicit_mesh_axis={axes}"
        )
    return () if axes else spmd


def _mapped_with_refs(fun, leaves, in_tree, dims, size, refs, out_axes, axis_name, sum_match):
    """`vmap` of a function with mutable references among its arguments: maps over their values and
    stores the new values in the references.
    """
    axes = [d for x, d in zip(leaves, dims, strict=True) if isinstance(x, _flat.references.Ref)]

    def run(*values):
        own = [_flat.references.Ref(v) if isinstance(x, _flat.references.Ref) else v for x, v in zip(leaves, values, strict=True)]
        args, kwargs = in_tree.unflatten(own)
        return fun(*args, **kwargs), [r._here() for r in own if isinstance(r, _flat.references.Ref)]

    values = [x._here() if isinstance(x, _flat.references.Ref) else x for x in leaves]
    out, after = vmap(run, in_axes=tuple(dims), out_axes=(out_axes, axes), axis_name=axis_name, axis_size=size, sum_match=sum_match)(*values)
    _flat.references.settle(refs, after)
    return out


def _over_mapped(flat, leaves, dims):
    """A function of leaves, as a function of only those leaves that are mapped."""

    def call(*mapped):
        given = iter(mapped)
        return flat(*[x if d is None else next(given) for x, d in zip(leaves, dims, strict=True)])

    call.fun = flat.fun  # errors name the user's function
    return call


def _axis_leaves(axes):
    return tree_leaves(axes, is_leaf=lambda x: x is None)


def mapped_size(name, fun, args, kwargs, leaves, dims, axis_size=None):
    """The size of all mapped axes.

    Raises:
        ValueError: no argument is mapped, an axis is out of range, or sizes differ.
    """
    if not leaves and axis_size is None:
        raise ValueError(
            f"{name} wrapped function must be passed at least one argument containing an array or axis_size must be specified,"
            f" got empty *args={args} and **kwargs={kwargs}"
        )
    sizes = [None if d is None else _axis_length(name, x, d) for x, d in zip(leaves, dims, strict=True)]
    found = {n for n in sizes if n is not None}
    if axis_size is not None:
        found.add(axis_size)
    if len(found) == 1:
        return found.pop()
    if not found:
        raise ValueError(f"{name} must have at least one non-None value in in_axes or axis_size must be specified")
    raise ValueError(_size_mismatch(name, fun, args, kwargs, leaves, dims, sizes, axis_size))


def _axis_length(name, x, d):
    shape = getattr(x, "shape", None)
    if shape is None:
        shape = _get_aval(x).shape
    try:
        return shape[d]
    except IndexError:
        rank = d + 1 if d >= 0 else -d
        raise ValueError(
            f"{name} was requested to map its argument along axis {d}, which implies that its rank should be at least {rank},"
            f" but is only {len(shape)} (its shape is {tuple(shape)})"
        ) from None


def _size_mismatch(name, fun, args, kwargs, leaves, dims, sizes, axis_size):
    names = argument_names(fun, args, kwargs)
    counts = collections.Counter(n for n in sizes if n is not None)
    first = {}
    for label, x, d, n in zip(names, leaves, dims, sizes, strict=True):
        if n is not None and n not in first:
            label = label if label.startswith("kwargs[") else f"argument {label}"
            first[n] = f"axis {d} of {label} of type {_get_aval(x).str_short()}"
    lines = []
    if axis_size is not None:
        lines.append(f"  * the `axis_size` argument was {axis_size}")
    ranked = sorted(counts.items(), key=lambda kv: -kv[1])
    for i, (n, count) in enumerate(ranked):
        if count == 1:
            lines.append(f"  * one axis had size {n}: {first[n]}")
        else:
            which = "most" if i == 0 and axis_size is None else "some"
            lines.append(f"  * {which} axes ({count} of them) had size {n}, e.g. {first[n]}")
    return f"{name} got inconsistent sizes for array axes to be mapped:\n" + ";\n".join(lines)
