"""`shard_map`: a function of the parts of arrays, over the axes of a mesh.

    mesh = make_mesh((1,), ("x",))
    shard_map(lambda part: part - lax.pmean(part.mean(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(4.0))

Over a mesh of several devices the function is traced to the body of an equation, which the
partitioning pass runs on every device. Over one device, or a mesh without devices, each mesh axis
is a mapped axis: arrays are split along it as their specifications say, and collectives work as
they would over devices. The type of a value contains the axes over which it varies. An operation
makes its operands vary over the same axes by `pvary`, whose transpose is a sum over the added axes,
so that the derivative by a replicated value is the sum over all members.

Invariant: results do not depend on the number of devices; a result whose parts differ along an axis
that its specification leaves out is refused.
"""

from __future__ import annotations

import inspect
import math
import threading
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import numpy as np

from .. import _core
from .._base.config import remove_size_one_mesh_axis_from_type
from .._base.tracebacks import api_boundary
from .._runtime.mesh import AbstractMesh, AxisType, Mesh, current, use_abstract_mesh
from .._tracing.picklable import restorable
from .._trees import flat as _flat
from .._trees.flat import check_callable, name_of, wraps
from .._trees.prefixes import broadcast_prefix
from ..errors import ConcretizationTypeError
from ..sharding import NamedSharding, PartitionSpec
from ..tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_leaves, tree_map

if TYPE_CHECKING:
    from collections.abc import Callable, Set

_P = ParamSpec("_P")
_R = TypeVar("_R")


__all__ = ["Infer", "shard_map", "smap"]


class _Infer:
    def __repr__(self):
        return "Infer"

    __reduce__ = __repr__


Infer = _Infer()


def _is_spec(x):
    return isinstance(x, PartitionSpec) or x is None


@overload
def shard_map(
    f: Callable[_P, _R],
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[Any] = frozenset(),
    check_vma: bool = True,
) -> Callable[_P, _R]: ...


@overload
def shard_map(
    f: None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[Any] = frozenset(),
    check_vma: bool = True,
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...


@api_boundary
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[Any] = frozenset(),
    check_vma: bool = True,
) -> Callable[..., Any]:
    """Maps a function over the parts of arrays, with collectives between them along the axes of a
    mesh.

    Args:
        f: a function of parts.
        out_specs: how the results' parts are put together: a pytree prefix of `PartitionSpec`s.
          Along mesh axes that one leaves out all parts must be equal.
        in_specs: the specifications of the arguments, a tuple with a tree prefix for each argument;
          along other axes arguments are replicated. By default all are replicated.
        mesh: a mesh, concrete or abstract; by default that in use (`set_mesh`).
        axis_names: the mesh axes that `f` is mapped over; by default all.
        check_vma: refuse results that may differ along axes left out. If not, the first part is
          taken.

    Returns:
        a function of whole arrays. It works under `jit`, `grad` and `vmap`.

    Raises:
        ValueError: no mesh is given or in use, a specification names an axis that is not mapped, or
          a dimension cannot be divided evenly.

    >>> mesh = jax.sharding.AbstractMesh((2,), ("x",))
    >>> shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec())(jnp.arange(4.0))
    Array([2., 4.], dtype=float32)
    """
    options = dict(out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma)
    if f is None:
        return lambda f: shard_map(f, **options)
    check_callable(f)
    return restorable(shard_map, f, **options)(wraps(f, "{fun}")(_mapped(f, **options)))


# in place of specifications of results: the function gives them with the results
_WITH_SPECS = object()


def over_mesh(f, in_specs, mesh, name):
    """`shard_map` over all axes of a mesh, types unchecked, of a function that returns its results
    and their specifications.

    Args:
        f: function of parts.
        in_specs: sequence of specifications, one for each argument.
        mesh: Mesh.
        name: what errors call it; ordered effects on several devices are refused.

    Returns:
        Function of whole arrays.
    """
    return _mapped(f, out_specs=_WITH_SPECS, in_specs=tuple(in_specs), mesh=mesh, axis_names=frozenset(), check_vma=False, unordered=name)


def _mapped(f, *, out_specs, in_specs, mesh, axis_names, check_vma, smapped=False, unordered=None):
    """The function of whole arrays.

    `smapped`: errors name `smap`. `unordered`: the name of the function in the error for ordered
    effects.
    """

    def shard_map_f(*args):
        grid, names = _mesh_and_names(mesh, axis_names)
        if in_specs is Infer:
            _check_inferable(grid, names, smapped)
        if any(isinstance(x, _flat.references.Ref) for x in tree_leaves(args)):
            return _with_refs(f, args, in_specs, out_specs, names, dict(mesh=mesh, axis_names=axis_names, check_vma=check_vma))
        given_specs = _inferred(args, names) if in_specs is Infer else in_specs
        for what, tree in (("in_specs", given_specs), ("out_specs", () if out_specs is _WITH_SPECS else out_specs)):
            _check_names(what, tree, names)
            _check_sums(what, tree, grid, names)
        leaves, tree = tree_flatten(args)
        specs = broadcast_prefix(given_specs, args, name="shard_map in_specs", prefix_is_leaf=_is_spec)
        # arguments without a specification are passed unchanged
        cuts = [s for s in specs if s is not None]
        arrays = [x if s is None or isinstance(x, _core.Array) else _core.asarray(x) for x, s in zip(leaves, specs, strict=True)]
        _check_arguments(f, grid, given_specs, args, arrays, specs)
        operands = [x for x, spec in zip(arrays, specs, strict=True) if spec is not None]
        _check_types(grid, names, operands, cuts)
        inside = grid.abstract_mesh.update_axis_types(dict.fromkeys(names, AxisType.Manual))
        there, found, taken = _on_devices(grid, operands), {}, current() is not None and current().manual_axes

        def local(*parts):
            given = iter(parts)
            with use_abstract_mesh(inside):
                out = f(*tree.unflatten([x if s is None else next(given) for x, s in zip(leaves, specs, strict=True)]))
            out, specs_of_results = out if out_specs is _WITH_SPECS else (out, out_specs)
            results, found["tree"] = tree_flatten(out)
            joins = broadcast_prefix(specs_of_results, out, name="shard_map out_specs", prefix_is_leaf=_is_spec)
            found["joins"] = joins = [PartitionSpec() if s is None else s for s in joins]
            results = [x if isinstance(x, _core.Array) else _core.asarray(x) for x in results]
            _check_ranks(f, "out", _labels(specs_of_results, out), results, joins)
            if check_vma:
                paths = [label for label, _ in _labels(specs_of_results, out)]
                _check_replicated(f, grid, names, [(p, s, x.aval.mat) for p, s, x in zip(paths, joins, results, strict=True)])
                results = [_as_joined(x, s, names, there is not None) for x, s in zip(results, joins, strict=True)]
            return results

        def on_one_device():
            parts = [_cut(x, spec, grid, names) for x, spec in zip(operands, cuts, strict=True)]
            results = _over_axes(f, local, names, grid, cuts, lambda: found["joins"], check_vma)(*parts)
            return [_join(x, s, names, check_vma) for x, s in zip(results, found["joins"], strict=True)]

        if there is None:
            results = on_one_device()
            if not taken:
                # over a mesh without devices, traced values are constrained for the mesh that the program will have
                stays = lambda x: isinstance(grid, AbstractMesh) and not isinstance(x, _core.Tracer)
                results = [x if stays(x) else _laid_out(x, NamedSharding(grid, s)) for s, x in zip(found["joins"], results, strict=True)]
            return found["tree"].unflatten(results)
        try:
            results = _over_devices(f, local, names, there, operands, cuts, lambda: found["joins"], check_vma, inside._typed_body(check_vma), unordered)
        except ConcretizationTypeError:
            # outside of traces, Python code may read values that are equal on all devices
            if not _core.at_root() or any(isinstance(x, _core.Tracer) for x in operands):
                raise
            results = on_one_device()
        shardings = [_as_it_lies(there, s, x) for s, x in zip(found["joins"], results, strict=True)]
        results = [x if isinstance(x, _core.Tracer) else _laid_out(x, s) for x, s in zip(results, shardings, strict=True)]
        return found["tree"].unflatten(results)

    return shard_map_f


def _with_refs(f, args, in_specs, out_specs, names, options):
    """The call with mutable references among the arguments: maps over the parts of their values,
    and stores what is put together of the new parts.
    """
    _flat.references.check_aliases("shard_map", f, args, {})
    leaves, tree = tree_flatten(args)
    refs = [x for x in leaves if isinstance(x, _flat.references.Ref)]
    values = tree.unflatten([x._here() if isinstance(x, _flat.references.Ref) else x for x in leaves])
    in_specs = _inferred(values, names) if in_specs is Infer else in_specs
    specs = broadcast_prefix(in_specs, values, name="shard_map in_specs", prefix_is_leaf=_is_spec)
    after_specs = [s for x, s in zip(leaves, specs, strict=True) if isinstance(x, _flat.references.Ref)]

    def run(*args):
        parts = tree_flatten(args)[0]
        own = [_flat.references.Ref(part) if isinstance(x, _flat.references.Ref) else part for x, part in zip(leaves, parts, strict=True)]
        out = f(*tree.unflatten(own))
        return out, [x._here() for x in own if isinstance(x, _flat.references.Ref)]

    run.__wrapped__ = f  # errors name the user's function
    run.__name__ = getattr(f, "__name__", "fun")
    out, after = _mapped(run, in_specs=in_specs, out_specs=(out_specs, after_specs), **options)(*values)
    _flat.references.settle(refs, after)
    return out


def _laid_out(x, sharding):
    return sharding._constrain(x) if isinstance(x, _core.Tracer) else _core.device_put(x, sharding)


def _as_it_lies(mesh, spec, x):
    """The sharding of a result: from its specification, and from its type along explicit axes over
    which the function was not mapped.
    """
    if isinstance(x, _core.Tracer) or not mesh.explicit_axes:
        return NamedSharding(mesh, spec)
    typed, dims = x.aval.sharding.spec, []
    for d in range(x.ndim):
        own = spec.axes_of(d) if d < len(spec) else ()
        dims.append((*own, *[a for a in (typed.axes_of(d) if d < len(typed) else ()) if a not in own]))
    if all(dims[d] == spec.axes_of(d) for d in range(len(spec))) and not any(dims[len(spec) :]):
        return NamedSharding(mesh, spec)
    return NamedSharding(mesh, spec.update(partitions=[None if not d else d[0] if len(d) == 1 else d for d in dims]))


def _check_inferable(mesh, names, smapped):
    """Raises TypeError if specifications are omitted and an axis is not explicit."""
    types = [t for a, t in zip(mesh.axis_names, mesh.axis_types, strict=True) if a in names and t is not AxisType.Explicit]
    if not types:
        return
    names, shown = frozenset(names), ", ".join(f"AxisType.{t}" for t in types)
    if smapped:
        raise TypeError(f"in_axes was not specified when axis_name={names} was of type {shown}")
    raise TypeError(
        f"shard_map in_specs argument must be a pytree of `jax.sharding.PartitionSpec` instances, but it was `None` when axis_names={names} are of type {shown}"
    )


_open = threading.local()


def _on_devices(mesh, operands):
    """The mesh of several devices that the function runs on; None where it has one device or none.

    A mesh without devices is that of the `shard_map` around, that in use, or that of the operands,
    where those have the same axes.
    """
    if isinstance(mesh, AbstractMesh):
        around = [*getattr(_open, "meshes", [])[-1:], *[m for m in [current()] if isinstance(m, Mesh)]]
        lie = [x.sharding.mesh for x in operands if not isinstance(x, _core.Tracer) and hasattr(x.sharding, "mesh")]
        mesh = next((m for m in [*around, *lie] if m.shape == mesh.shape and not isinstance(m, AbstractMesh)), None)
    return mesh if mesh is not None and len(set(mesh.devices.flat)) > 1 else None


def _over_devices(f, local, names, mesh, operands, cuts, joins, check_vma, within, unordered):
    """`local`, a flat function of parts, on the devices of the mesh."""
    number = {name: i for i, name in enumerate(mesh.axis_names)}
    of = lambda axes: [number[a] for a in axes]
    numbers = lambda spec: ([of(spec.axes_of(d)) for d in range(len(spec))], of(spec.unreduced), of(spec.reduced))

    def traced(*parts):
        meshes = _open.__dict__.setdefault("meshes", [])
        meshes.append(mesh)
        try:
            return local(*parts)
        finally:
            meshes.pop()

    traced.fun = f  # errors name the user's function
    manual = [number[a] for a in names]
    return _core.shard_map(
        traced, operands, [numbers(s) for s in cuts], lambda: [numbers(s) for s in joins()], mesh._for_extension(), manual, check_vma, within, unordered
    )


def _over_axes(f, local, names, mesh, cuts, joins, check_vma):
    """`local`, a flat function of parts, mapped over the axes of these names, the first
    outermost.
    """
    if not names:
        return local
    name, inner = names[0], _over_axes(f, local, names[1:], mesh, cuts, joins, check_vma)
    inner.fun = f  # errors name the user's function
    dims = [0 if _mentions(spec, name) or name in spec.unreduced else None for spec in cuts]

    def out_dims(i=None):
        return "shard_map out_specs" if i is not None else [0 if _mentions(s, name) or name in s.unreduced or not check_vma else None for s in joins()]

    return lambda *parts: _core.vmap(inner, parts, dims, mesh.shape[name], name, out_dims, check_vma)


def _mesh_and_names(mesh, axis_names):
    """The mesh of a call, and the axes that its function is mapped over, in the mesh's order."""
    around = current()
    if mesh is None and (around is None or around.empty):
        raise ValueError("The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to enter into a mesh context")
    if mesh is not None and not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError(
            f"shard_map requires a `jax.sharding.Mesh` or a `jax.sharding.AbstractMesh` instance for its second argument, but got {mesh} of type {type(mesh)}."
        )
    key = lambda m: (dict(m.shape), m.axis_types)
    if mesh is not None and around is not None and not around.empty and key(mesh) != key(around):
        raise ValueError(f"The context mesh {around.abstract_mesh} should match the mesh passed to shard_map {mesh}")
    grid = around if mesh is None else mesh
    if grid.empty:
        raise ValueError(f"shard_map requires a non-empty mesh. Got {grid}")
    if not isinstance(axis_names, (frozenset, set)):
        raise TypeError(f"`axis_names` argument of shard_map should be of type `frozenset` or `set`. Got type: {type(axis_names)}")
    if not set(axis_names) <= set(grid.axis_names):
        raise ValueError(f"jax.shard_map requires axis_names={frozenset(axis_names)} to be a subset of mesh.axis_names={frozenset(grid.axis_names)}")
    if not axis_names:
        # the axes that no enclosing `shard_map` maps
        taken = set(around.manual_axes) if around is not None else set()
        axis_names = [a for a in grid.axis_names if a not in taken] or grid.axis_names
    return grid, [a for a in grid.axis_names if a in axis_names]


def _inferred(args, names):
    """A tree of specifications for the arguments: their shardings along these axes."""

    def of(x):
        # the sharding of a traced value is in its type
        sharding = x.aval.sharding if isinstance(x, _core.Tracer) else getattr(x, "sharding", None)
        spec = getattr(sharding, "spec", PartitionSpec())
        dims = [tuple(a for a in spec.axes_of(d) if a in names) for d in range(len(spec))]
        dims = [None if not d else d[0] if len(d) == 1 else d for d in dims]
        return PartitionSpec(*dims, unreduced=spec.unreduced, reduced=spec.reduced)

    return tree_map(of, args)


@overload
def smap(f: Callable[_P, _R], /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Any) -> Callable[_P, _R]: ...


@overload
def smap(f: None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Any) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...


@api_boundary
def smap(f: Callable[..., Any] | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Any) -> Callable[..., Any]:
    """`shard_map` over one axis of the mesh in use, with axes in place of specifications, as `vmap`
    has them.

    Args:
        f: function; left out, `smap(**options)` is a decorator.
        in_axes: int or None (the whole), or a tuple of those: which axis of each argument is cut.
        out_axes: int or None, or a pytree prefix of the output: where the parts are joined.
        axis_name: name of an axis of the mesh in use.

    Returns:
        Function like f.

    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))): print(smap(lambda x: x + lax.axis_index("x"), in_axes=0, out_axes=0, axis_name="x")(jax.reshard(jnp.arange(2), jax.P("x"))))
    [0 1]
    """
    if f is None:
        return lambda f: smap(f, out_axes=out_axes, in_axes=in_axes, axis_name=axis_name)
    is_none = lambda x: x is None
    spec = lambda axis: PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)
    to_specs = lambda axes: axes if axes is Infer else tree_map(spec, axes, is_leaf=is_none)
    run = _mapped(f, in_specs=to_specs(in_axes), out_specs=to_specs(out_axes), mesh=None, axis_names={axis_name}, check_vma=True, smapped=True)
    return restorable(smap, f, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)(wraps(f, "{fun}")(run))


def _mentions(spec, name):
    return spec is not None and any(name in spec.axes_of(d) for d in range(len(spec)))


def _check_names(what, tree, names):
    """Raises, with JAX's message, for leaves that are not specifications, and for specifications of
    axes other than these.
    """
    specs = [(keystr(path), s) for path, s in tree_flatten_with_path(tree, is_leaf=_is_spec)[0] if s is not None]
    lines = [f"  {what}{path} is {s} of type {type(s).__name__}, " for path, s in specs if not isinstance(s, PartitionSpec)]
    if lines:
        listed = "\n\n".join(lines)
        raise TypeError(
            f"shard_map {what} argument must be a pytree of `jax.sharding.PartitionSpec` instances, but:\n\n{listed}\n\nCheck the {what} values passed to shard_map."
        )
    lines = [f"  {what}{path} refers to {a!r}" for path, s in specs for d in range(len(s)) for a in s.axes_of(d) if a not in names]
    if lines:
        listed = "\n\n".join(lines)
        raise ValueError(
            f"shard_map {what} argument must refer to an axis marked as manual ({frozenset(names)}), but:\n\n{listed}\n\nCheck the {what} values passed to shard_map."
        )


def _check_sums(what, tree, mesh, names):
    """Raises, with JAX's message, if a specification has unreduced or reduced axes and types do not
    track sums.
    """
    for spec in tree_leaves(tree, is_leaf=_is_spec):
        if spec is None or not (spec.unreduced or spec.reduced):
            continue
        if set(names) != set(mesh.axis_names):
            raise NotImplementedError(
                f"unreduced/reduced can only be passed to {what} when shard_map is in full manual mode. Got mesh axis names {mesh.axis_names}, manual_axes:"
                f" {frozenset(names)}, specs: {spec}: shard_map over all axes of the mesh"
            )
        for word in ("unreduced", "reduced"):
            if not getattr(spec, word) <= set(mesh.explicit_axes):
                raise ValueError(
                    f"{word} in {what} {spec} can only be used when the mesh passed to shard_map contains axis names all of type `Explicit`. Got mesh {mesh}"
                )


def _check_types(mesh, names, operands, specs):
    """Raises ValueError, with JAX's message, if the sharding in a type differs from the
    specification.
    """
    typed_specs = [x.aval.sharding.spec for x in operands]
    if mesh.are_all_axes_explicit and len(names) == len(mesh.axis_names):
        ones = [a for a, n in mesh.shape.items() if n == 1] if remove_size_one_mesh_axis_from_type.value else []

        def full(spec, ndim):
            dims = [tuple(a for a in spec.axes_of(d) if a not in ones) if d < len(spec) else () for d in range(ndim)]
            return spec.update(partitions=[None if not d else d[0] if len(d) == 1 else d for d in dims])

        for x, spec, typed in zip(operands, specs, typed_specs, strict=True):
            spec = full(spec, x.ndim)
            if spec != full(typed, x.ndim):
                raise ValueError(
                    f"in_specs passed to shard_map: {spec} does not match the specs of the input: {typed} for arg: {x.aval.str_short()}. `in_specs` is an optional"
                    " argument so you can omit specifying it and shard_map will infer the in_specs from the arguments. If you want to reshard your inputs, you"
                    " can use `jax.reshard` on the arguments and then pass those args to shard_map."
                )
    for x, spec, typed in zip(operands, specs, typed_specs, strict=True):
        for word in ("unreduced", "reduced"):
            if getattr(spec, word) != getattr(typed, word):
                raise ValueError(
                    f"in_specs containing {word} {spec} passed to shard_map should be equal to the {word} present on the in_aval {x.aval.str_short(True)}"
                )


def _as_joined(x, spec, names, typed):
    """A result made to vary along the axes that partition it, as a term of the sums in its
    specification.

    `typed`: whether types track sums.
    """
    apart = [a for a in names if _mentions(spec, a)]
    if not typed:
        return _core.varying(x, [*apart, *[a for a in names if a in spec.unreduced]])
    x = _core.varying(x, apart)
    missing = [a for a in names if a in spec.unreduced - x.aval.mat.unreduced]
    if missing:
        varying = x.aval.mat.varying
        if not varying & set(missing):
            raise ValueError(
                "vary_unreduced_cast is a Varying->Unreduced collective. This means that the axis names mentioned in `axes` passed to `vary_unreduced_cast` must"
                f" be present in `jax.typeof(x).mat.varying`. Got axes={tuple(missing)} and jax.typeof(x).mat.varying={varying}"
            )
        x = _core.bind("vary_unreduced_cast_p", x, axes=tuple(str(a) for a in missing))
    for word in ("unreduced", "reduced"):
        if getattr(spec, word) != getattr(x.aval.mat, word):
            raise ValueError(
                f"out_specs passed to shard_map should be equal to the {word} present on the out_aval. Got out_specs={spec} and"
                f" out_aval={x.aval.str_short(True)}"
            )
    return x


def _cut(x, spec, mesh, names):
    """x with a leading axis for each mesh axis that partitions it, and for each axis along which it
    is a sum (where only the first member has the value), in the mesh's order.
    """
    terms, sizes = [a for a in names if a in spec.unreduced], x.shape
    for a in reversed(terms):
        first = _core.bind("reshape", x, new_sizes=(1, *x.shape), dimensions=None, sharding=None)
        x = _core.bind("concatenate", first, _core.asarray(np.zeros((mesh.shape[a] - 1, *x.shape), x.dtype)), dimension=0)
    shape, where = [mesh.shape[a] for a in terms], {a: i for i, a in enumerate(terms)}
    for d, n in enumerate(sizes):
        sizes = [mesh.shape[a] for a in spec.axes_of(d)]
        for a, size in zip(spec.axes_of(d), sizes, strict=True):
            where[a] = len(shape)
            shape.append(size)
        shape.append(n // math.prod(sizes))
    front = [where[a] for a in names if a in where]
    x = _core.bind("reshape", x, new_sizes=tuple(shape), dimensions=None, sharding=None)
    return _core.bind("transpose", x, permutation=(*front, *[i for i in range(len(shape)) if i not in front]))


def _join(x, spec, names, check_vma):
    """The inverse of `_cut`: sums of terms, and of mesh axes that the specification leaves out, the
    first part.
    """
    kept = []
    for i in range(len(names)):
        if _mentions(spec, names[i]):
            kept.append(names[i])
        elif names[i] in spec.unreduced:
            x = _core.bind("reduce_sum", x, axes=(len(kept),))
        elif not check_vma:
            at = len(kept)
            sizes = [*x.shape[:at], 1, *x.shape[at + 1 :]]
            x = _core.bind("slice", x, start_indices=(0,) * x.ndim, limit_indices=tuple(sizes), strides=None)
            x = _core.bind("squeeze", x, dimensions=(at,))
    local = x.shape[len(kept) :]
    order, shape = [], []
    for d, n in enumerate(local):
        axes = [kept.index(a) for a in spec.axes_of(d)]
        order += [*axes, len(kept) + d]
        shape.append(n * int(np.prod([x.shape[a] for a in axes], dtype=int)))
    x = _core.bind("transpose", x, permutation=tuple(order))
    return _core.bind("reshape", x, new_sizes=tuple(shape), dimensions=None, sharding=None)


def _labels(specs, tree):
    """For each leaf of the tree what its specification and it itself are called: `[0]`,
    `[0]['w']`.
    """
    paths, structure = tree_flatten_with_path(specs, is_leaf=_is_spec)
    of_specs = broadcast_prefix(structure.unflatten([keystr(p) for p, _ in paths]), tree)
    return [(label, keystr(p)) for label, (p, _) in zip(of_specs, tree_flatten_with_path(tree)[0], strict=True)]


def _parameter(f, path):
    """A clause for errors that names the parameter of `f`; empty if it cannot be determined."""
    try:
        parameters = [p for p in inspect.signature(f).parameters.values() if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
        index = int(path[1 : path.index("]")])
    except (TypeError, ValueError):
        return ""
    many = next((i for i, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL), len(parameters))
    if index < many:
        return f", where args[{index}] is bound to {name_of(f)}'s parameter '{parameters[index].name}',"
    if many < len(parameters):
        return f", where args[{index}] is the index {index - many} component of {name_of(f)}'s varargs parameter '{parameters[many].name}',"
    return ""


def _listed(lines):
    return lines[0] if len(lines) == 1 else "\n\n".join(f"* {line}" for line in lines)


def _check_ranks(f, side, labels, values, specs):
    """Raises ValueError, with JAX's message, if a specification has more entries than its value has
    dimensions.
    """
    base = "the passed args" if side == "in" else f"{name_of(f)}(*args)"
    long = [(label, path, x.aval, s) for (label, path), x, s in zip(labels, values, specs, strict=True) if s is not None and len(s) > x.ndim]
    if not long:
        return
    lines = [
        f"{side}_specs{label} is {spec} which has length {len(spec)}, but {base}{path}{_parameter(f, path) if side == 'in' else ''} has shape"
        f" {aval.str_short()}, which has rank {aval.ndim} (and {aval.ndim} < {len(spec)})"
        for label, path, aval, spec in long
    ]
    text = (
        f"shard_map applied to the function '{name_of(f)}' was given an {side}_specs entry which is too long to be compatible with the corresponding"
        f" {side}put value from the function:\n\n{_listed(lines)}\n\nEntries in {side}_specs must be of length no greater than the number of axes in the"
        f" corresponding {side}put value.\n\nEither revise the spec to be shorter, or modify '{name_of(f)}' so that its {side}puts have sufficient rank."
    )
    if any(not aval.ndim for _, _, aval, _ in long):
        text += f"\n\nFor scalar values (rank 0), consider using an {side}_specs entry of `P()`, where `P = jax.sharding.PartitionSpec`."
        if side == "out":
            text += (
                " In particular, for rank 0 outputs which are not constant over the mesh, add at least one (singleton) axis to them so that they can be"
                " concatenated using out_specs."
            )
    raise ValueError(text)


def _check_arguments(f, mesh, in_specs, args, arrays, specs):
    """Raises ValueError, with JAX's message, if a dimension of an argument cannot be divided
    evenly.
    """
    labels = _labels(in_specs, args)
    _check_ranks(f, "in", labels, arrays, specs)
    lines = []
    for (label, path), x, spec in zip(labels, arrays, specs, strict=True):
        for d in range(0 if spec is None else len(spec)):
            axes = spec.axes_of(d)
            size = math.prod(mesh.shape[a] for a in axes)
            if x.shape[d] % size:
                shown = f"axes {axes}" if len(axes) > 1 else f"axis '{axes[0]}'"
                lines.append(
                    f"* the passed args{path} of shape {x.aval.str_short()}{_parameter(f, path)} corresponds to in_specs{label} of value {spec}, which maps"
                    f" array axis {d} (of size {x.shape[d]}) to mesh {shown} (of {'total ' if len(axes) > 1 else ''}size {size}), but {size} does not evenly"
                    f" divide {x.shape[d]}"
                )
    if lines:
        raise ValueError(
            f"shard_map applied to the function '{name_of(f)}' was given argument arrays with axis sizes that are not evenly divisible by the corresponding mesh"
            f" axis sizes:\n\nThe mesh given has shape {tuple(mesh.shape.values())} with corresponding axis names {mesh.axis_names}.\n\n"
            + (lines[0][2:] if len(lines) == 1 else "\n\n".join(lines))
            + "\n\nArray arguments' axis sizes must be evenly divisible by the mesh axis or axes indicated by the corresponding elements of the argument's"
            f" in_specs entry. Consider checking that in_specs are correct, and if so consider changing the mesh axis sizes or else padding the input and adapting"
            f" '{name_of(f)}' appropriately."
        )


def _check_replicated(f, mesh, names, outs):
    """Raises ValueError, with JAX's message, if a result varies along an axis that is not in its
    specification. outs: (path, specification, its type's axes).
    """
    shown = lambda axes: ",".join(str(a) for a in mesh.axis_names if a in axes)
    lines = []
    for path, spec, mat in outs:
        vma = mat.varying | mat.unreduced | mat.reduced
        mentioned = {a for a in names if _mentions(spec, a)} | spec.unreduced | spec.reduced
        rest = [a for a in mesh.axis_names if a not in mentioned]
        if not (vma & set(names)) - mentioned:
            continue
        if len(rest) > 1:
            lines.append(
                f"out_specs{path} is {spec} which implies that the corresponding output value is only varying across mesh axes {{{shown(mentioned)}}} and"
                f" not {{{shown(vma - mentioned)}}}, but it was inferred to be possibly varying over {{{shown(vma)}}}"
            )
        else:
            lines.append(
                f"out_specs{path} is {spec} which implies that the corresponding output value is replicated across mesh axis '{rest[0]}', but could not infer"
                " replication over any axes"
            )
    if lines:
        raise ValueError(
            f"shard_map applied to the function '{name_of(f)}' was given out_specs which require replication which can't be statically inferred given the"
            f" mesh:\n\nThe mesh given has shape {tuple(mesh.shape.values())} with corresponding axis names {mesh.axis_names}.\n\n{_listed(lines)}\n\n"
            "Check if these output values are meant to be replicated over those mesh axes. If not, consider revising the corresponding out_specs entries. If"
            " so, consider disabling the check by passing the check_vma=False argument to `jax.shard_map`."
        )
