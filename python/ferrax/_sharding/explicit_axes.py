"""`auto_axes` and `explicit_axes`: functions in which mesh axes have another type.

Invariant: outside the function the mesh in use and the types of its arguments and results are
unchanged.

    >>> f = auto_axes(lambda x: x.T @ x, out_sharding=jax.P())
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))): print(jax.typeof(f(jnp.ones((2, 3)))))
    float32[3,3]
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .. import _core
from .._base.tracebacks import api_boundary
from .._runtime.devices import device_put
from .._runtime.mesh import AxisType, Mesh, get_abstract_mesh, use_abstract_mesh
from ..tree_util import tree_flatten, tree_leaves, tree_map
from .parts import reshard
from .shardings import NamedSharding
from .spec import PartitionSpec

if TYPE_CHECKING:
    from collections.abc import Callable

_R = TypeVar("_R")

__all__ = ["auto_axes", "explicit_axes"]


@overload
def auto_axes(
    f: Callable[..., _R], /, *, axes: str | tuple[str, ...] | None = None, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Callable[..., _R]: ...


@overload
def auto_axes(
    f: None = None, /, *, axes: str | tuple[str, ...] | None = None, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Callable[[Callable[..., _R]], Callable[..., _R]]: ...


@api_boundary
def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: str | tuple[str, ...] | None = None, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Callable[..., Any]:
    """A function inside which `axes` have the type Auto: the compiler decides how arrays are
    partitioned along them.

    Args:
        f: the function, of pytrees of arrays; without it, a decorator is returned.
        axes: names of mesh axes, a string or a tuple; by default all axes of the mesh in use.
        out_sharding: tree prefix of shardings or `PartitionSpec`s, the layout of the result; None:
          each call passes it.

    Returns:
        A function of the same arguments, and of `out_sharding` if that is None here. The types of
        its results have shardings.

    Raises:
        TypeError: `out_sharding` is passed neither here nor to the call.

    >>> f = auto_axes(lambda x: x.T @ x, out_sharding=jax.P())
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))): print(jax.typeof(f(jnp.ones((2, 3)))))
    float32[3,3]
    """
    if f is None:
        return lambda f: auto_axes(f, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    @api_boundary
    def decorated(*args, **kwargs):
        wanted = _given("out_sharding", out_sharding, kwargs)
        outer, inner = _meshes(axes, AxisType.Auto, "auto_axes", wanted)
        if inner is None or inner == outer:
            return f(*args, **kwargs)
        return _reshard_all(_with_types(f, args, kwargs, inner, None), wanted, outer)

    return decorated


@overload
def explicit_axes(f: Callable[..., _R], /, *, axes: str | tuple[str, ...] | None = None, in_sharding: Any = None) -> Callable[..., _R]: ...


@overload
def explicit_axes(
    f: None = None, /, *, axes: str | tuple[str, ...] | None = None, in_sharding: Any = None
) -> Callable[[Callable[..., _R]], Callable[..., _R]]: ...


@api_boundary
def explicit_axes(f: Callable[..., Any] | None = None, /, *, axes: str | tuple[str, ...] | None = None, in_sharding: Any = None) -> Callable[..., Any]:
    """A function inside which `axes` have the type Explicit: the types of arrays say how they are
    partitioned along these axes.

    Args:
        f: the function, of pytrees of arrays; without it, a decorator is returned.
        axes: names of mesh axes, a string or a tuple; by default all axes of the mesh in use.
        in_sharding: tree prefix of shardings or `PartitionSpec`s, to which the arguments are
          resharded; None: each call passes it.

    Returns:
        A function of the same arguments, and of `in_sharding` if that is None here.

    Raises:
        ValueError: no mesh is in use.
        TypeError: `in_sharding` is passed neither here nor to the call.

    >>> f = explicit_axes(lambda x: x, in_sharding=jax.P("x"))
    >>> with jax.set_mesh(jax.sharding.Mesh(jax.devices()[:1], "x")): print(f(jnp.ones(3)))
    [1. 1. 1.]
    """
    if f is None:
        return lambda f: explicit_axes(f, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    @api_boundary
    def decorated(*args, **kwargs):
        wanted = _given("in_sharding", in_sharding, kwargs)
        outer, inner = _meshes(axes, AxisType.Explicit, "explicit_axes", None)
        if inner is None:
            raise ValueError("Context mesh cannot be empty. Please use `jax.set_mesh` API to enter into a mesh context when using `explicit_axes` API.")
        out = _with_types(f, args, kwargs, inner, wanted)
        if _core.at_root() and not any(isinstance(x, _core.Tracer) for x in tree_leaves(out)):
            return tree_map(lambda x: _on_types_of(_core.asarray(x), outer), out)
        return tree_map(lambda x: _core.reshard(x, _narrowed(x, outer)), out)

    return decorated


def _given(name, sharding, kwargs):
    if sharding is not None:
        return sharding
    if name not in kwargs:
        raise TypeError(f"Missing required keyword argument: '{name}'")
    return kwargs.pop(name)


def _meshes(axes, kind, name, shardings):
    """The abstract mesh in use (or else that of the shardings), and the same mesh with `axes` of
    type `kind`.
    """
    outer = get_abstract_mesh()
    if outer.empty:
        found = {s.mesh.abstract_mesh for s in tree_leaves(shardings, is_leaf=lambda s: isinstance(s, PartitionSpec)) if isinstance(s, NamedSharding)}
        if len(found) != 1:
            return outer, None
        (outer,) = found
    axes = outer.axis_names if axes is None else axes if isinstance(axes, tuple) else (axes,)
    types = dict(zip(outer.axis_names, outer.axis_types, strict=True))
    for a in axes:
        if types.get(a) is AxisType.Manual:
            raise NotImplementedError(f"Going from `Manual` AxisType to `Auto` or `Explicit` AxisType inside {name} is not supported. Please file a bug.")
    return outer, outer.update_axis_types(dict.fromkeys(axes, kind))


def _narrowed(x, mesh):
    """The sharding of x's type restricted to the explicit axes of another mesh."""
    spec, kept = _core.asarray(x).aval.sharding.spec, set(mesh.explicit_axes)
    names = [tuple(a for a in spec.axes_of(d) if a in kept) for d in range(len(spec))]
    return NamedSharding(mesh, PartitionSpec(*[n[0] if len(n) == 1 else n or None for n in names]))


def _with_types(f, args, kwargs, mesh, wanted):
    """Calls `f` in another abstract mesh: with concrete arrays outside of traces, so that it may read
    their shardings.
    """
    leaves, tree = tree_flatten((args, kwargs))
    is_array = [isinstance(x, _core.Array) for x in leaves]

    def inside(*arrays):
        rest = iter(arrays)
        args, kwargs = tree.unflatten([next(rest) if a else x for x, a in zip(leaves, is_array, strict=True)])
        if wanted is None:
            args, kwargs = tree_map(lambda x: _core.reshard(x, _narrowed(x, mesh)) if isinstance(x, _core.Array) else x, (args, kwargs))
        else:
            args = _reshard_all(args, wanted, mesh)
        return f(*args, **kwargs)

    arrays = [x for x, a in zip(leaves, is_array, strict=True) if a]
    with use_abstract_mesh(mesh):
        if _core.at_root() and not any(isinstance(x, _core.Tracer) for x in arrays):
            moved = iter([_on_types_of(x, mesh) for x in arrays])
            args, kwargs = tree.unflatten([next(moved) if a else x for x, a in zip(leaves, is_array, strict=True)])
            return f(*(args if wanted is None else _reshard_all(args, wanted, mesh)), **kwargs)
        return _core.jit(inside)(*arrays)


def _on_types_of(x, mesh):
    """An array on the same devices, with a mesh whose axes have the types of another."""
    sharding = x.sharding
    if not isinstance(sharding, NamedSharding) or sharding.mesh.axis_names != mesh.axis_names or sharding.mesh.axis_types == mesh.axis_types:
        return x
    typed = Mesh(sharding.mesh.devices, mesh.axis_names, axis_types=mesh.axis_types)
    return device_put(x, NamedSharding(typed, sharding.spec, memory_kind=sharding.memory_kind))


def _reshard_all(x, wanted, mesh):
    """`reshard` for a tree prefix of specifications over a mesh."""
    with use_abstract_mesh(mesh) if get_abstract_mesh().empty else contextlib.nullcontext():
        return reshard(x, wanted)
