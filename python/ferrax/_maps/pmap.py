"""`pmap`: one program on several devices, each with its slice of the mapped axes: a jitted
`shard_map` over a mesh of one axis.

    pmap(lambda x: x / lax.psum(x, "d"), axis_name="d")(jnp.arange(4.0))

Invariant: results are partitioned along the mapped axis over the devices of the call.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from .. import _core
from .._base.tracebacks import api_boundary
from .._runtime.mesh import Mesh, current
from .._sharding.host_local import global_array_to_host_local_array as local, host_local_array_to_global_array as joined
from .._tracing.jit import jit
from .._tracing.picklable import restorable
from .._tracing.trace import without_static
from .._transforms.vmap import _axis_leaves, _is_axis, mapped_size, vmap
from .._trees.flat import check_callable, name_of, wraps
from .._trees.prefixes import broadcast_prefix, prefix_errors, spread_prefix
from ..lax import expand_dims, squeeze
from ..sharding import NamedSharding, PartitionSpec
from ..tree_util import tree_flatten, tree_leaves, tree_map
from .shard_map import over_mesh

# The mesh axis of a map without a name.
_UNNAMED = "_internal_pmap_axis_name"

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .._core import Device


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _spread_in_axes(axes, args, kwargs):
    """The axes of positional arguments, one for each leaf.

    Raises ValueError if they are not a tree prefix.
    """
    is_none = lambda x: x is None
    try:
        return broadcast_prefix(axes, args, prefix_is_leaf=is_none)
    except ValueError:
        found = prefix_errors((axes,), (args,), "pmap in_axes", is_none)
    by_name = (
        "\n\nWhen some arguments are passed by keyword to the pmapped function, they are not included in the comparison to `in_axes`. Instead, each"
        " argument passed by keyword is mapped over its leading axis."
    )
    raise ValueError(
        f"{found[0].rstrip() if found else 'pytree structure error'}\n\nThe 'full pytree' here is the tuple of arguments passed positionally to the pmapped"
        " function, and the value of `in_axes` must be a tree prefix of that tuple. But it was not a prefix."
        + (by_name if kwargs else "")
        + "\n\nCheck that the value of the `in_axes` argument to `pmap` is a tree prefix of the tuple of arguments passed positionally to the pmapped function."
    )


@api_boundary
def pmap(
    fun: Callable[_P, _R],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Callable[_P, _R]:
    """Maps a function over an array axis, with each element on a device of its own.

    Args:
        fun: the function.
        axis_name: a name for the axis, for collectives such as `lax.psum`.
        in_axes: as in `vmap`: which axis of each argument to map over; None sends the whole
          argument to every device.
        out_axes: where the mapped axis appears in the output; None takes the first device's.
        static_broadcasted_argnums: positional arguments that are compile-time constants: hashable,
          compared by type and `==`.
        devices: the devices to use; by default the first of the backend.
        backend: the platform whose devices are used.
        axis_size: the size of the mapped axis, by default read off the arguments.
        donate_argnums: positional arguments whose arrays may be overwritten; those that are already
          on the devices are deleted.

    Returns:
        the mapped function; its results are spread over the devices. It has a method `lower`, as
        jitted functions have. In the body of another `pmap` or `shard_map` it is a `vmap`.

    Raises:
        ValueError: no argument is mapped, sizes differ, there are fewer devices than the axis is
          long, or one is given twice.
    """
    check_callable(fun)
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    if not (_is_axis(in_axes) or isinstance(in_axes, tuple)) or not all(map(_is_axis, _axis_leaves(in_axes))):
        raise TypeError(
            f"pmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed to the function, but got {in_axes}."
        )
    if not all(map(_is_axis, _axis_leaves(out_axes))):
        raise TypeError(f"pmap out_axes must be an int, None, or (nested) container with those types as leaves, but got {out_axes}.")
    if devices is not None and not devices:
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    static_argnums, donated_argnums = _numbers(static_broadcasted_argnums), _numbers(donate_argnums)
    if set(static_argnums) & set(donated_argnums):
        raise ValueError(f"`static_argnums` {sorted(static_argnums)} and `donate_argnums` {sorted(donated_argnums)} cannot intersect.")
    compiled, name = {}, _UNNAMED if axis_name is None else axis_name

    @restorable(
        pmap,
        fun,
        axis_name,
        in_axes=in_axes,
        out_axes=out_axes,
        static_broadcasted_argnums=static_argnums,
        devices=devices,
        backend=backend,
        axis_size=axis_size,
        donate_argnums=donated_argnums,
    )
    @wraps(fun, "{fun}")
    def pmap_f(*args, **kwargs):
        run, args = prepared(args)
        if devices is None and _core.process_count() > 1:
            return _over_processes(run, args, kwargs)
        try:
            return run(*args, **kwargs)
        except ValueError:
            # arguments on other devices are moved
            there = _moved(run.__wrapped__.mesh_for, args, kwargs)
            if there is None:
                raise
        return run(*there[0], **there[1])

    def prepared(args):
        """The jitted function of the arguments that are not static, one for each set of static
        values, and those arguments.
        """
        static = _static(fun, static_argnums, args) if static_argnums else ()
        donated = tuple(i + len(args) if i < 0 else i for i in donated_argnums)
        key = donated, tuple((i, type(args[i]), args[i]) for i in static)
        args, dyn_fun = without_static(fun, static, args)
        if key not in compiled:
            axes = tuple(a for i, a in enumerate(in_axes) if i not in static) if isinstance(in_axes, tuple) else in_axes
            spread = _spread(dyn_fun, name, axes, out_axes, None if devices is None else list(devices), backend, axis_size)
            compiled[key] = jit(spread, donate_argnums=tuple(i - sum(k < i for k in static) for i in donated))
        return compiled[key], args

    @api_boundary
    def lower(*args, **kwargs):
        """Traces and lowers for arguments of these types."""
        run, args = prepared(args)
        return run.lower(*args, **kwargs)

    pmap_f.lower = lower
    return pmap_f


def _spread(fun, name, in_axes, out_axes, devices, backend, axis_size):
    """The function of whole arguments: a `shard_map` over a mesh of one axis, in whose body each
    argument has lost its mapped axis.

    In the body of another map over devices, which are taken then, it is a `vmap`.
    """

    def mesh_for(args, kwargs, processes=1):
        """The mapped axes of the leaves, and the mesh of as many devices as those of all
        `processes` are long.
        """
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            _spread_in_axes(in_axes, args, kwargs)
        leaves = tree_leaves((args, kwargs))
        dims = _spread_in_axes(in_axes, args, kwargs)
        dims += [0] * (len(leaves) - len(dims))
        if all(d is None for d in dims):
            raise ValueError("pmap requires at least one argument with a mapped axis.")
        size = processes * mapped_size("pmap", fun, args, kwargs, leaves, dims)
        if axis_size is not None and size != axis_size:
            raise ValueError(f"Specified axis_size {axis_size} doesn't match received axis_size {size}.")
        available = _core.devices(backend) if devices is None else devices
        if len(set(available[:size])) < len(available[:size]):
            raise ValueError(f"pmap: each device of 'devices' runs one slice, but some are given twice: {available}")
        if size > len(available):
            raise ValueError(
                f"pmap over an axis of size {size} needs as many devices, but only {len(available)} are available."
                " Set FERRAX_NUM_CPU_DEVICES, or jax_num_cpu_devices, to have more CPU devices."
            )
        return [None if d is None else d % np.ndim(x) for d, x in zip(dims, leaves, strict=True)], Mesh(np.array(available[:size]), (name,))

    @wraps(fun, "{fun}")
    def spread(*args, **kwargs):
        around = current()
        if around is not None and around.manual_axes:
            return vmap(fun, in_axes, out_axes, name)(*args, **kwargs)
        dims, mesh = mesh_for(args, kwargs)
        leaves, tree = tree_flatten((args, kwargs))

        @wraps(fun, "{fun}")
        def slices(*parts):
            given, named = tree.unflatten([x if d is None else squeeze(x, (d,)) for x, d in zip(parts, dims, strict=True)])
            out = fun(*given, **named)
            leaves, out_tree = tree_flatten(out)
            axes = [out_axes] * len(leaves) if _is_axis(out_axes) else spread_prefix(out_axes, out, "pmap out_axes")
            leaves = [x if d is None else expand_dims(x, (d,)) for x, d in zip(map(_core.asarray, leaves), axes, strict=True)]
            specs = [_spec(name, None if d is None else d % x.ndim) for x, d in zip(leaves, axes, strict=True)]
            return out_tree.unflatten(leaves), out_tree.unflatten(specs)

        return over_mesh(slices, [_spec(name, d) for d in dims], mesh, name_of(fun))(*leaves)

    spread.mesh_for = mesh_for
    return spread


def _spec(name, axis):
    """The specification of an array that is cut along one axis, or whole."""
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, name)


def _over_processes(run, args, kwargs):
    """The call in one of several processes.

    Each process passes the slices of its own devices, and gets the results of these devices.
    """
    leaves, tree = tree_flatten((args, kwargs))
    if any(isinstance(x, _core.Tracer) for x in leaves):
        return run(*args, **kwargs)
    dims, mesh = run.__wrapped__.mesh_for(args, kwargs, _core.process_count())
    if mesh.devices.size != len(_core.devices()):
        raise ValueError(f"pmap over several processes: the mapped axis must be as long as the list of a process's devices, {len(mesh.local_devices)}")
    args, kwargs = tree.unflatten([joined(x, mesh, _spec(mesh.axis_names[0], d)) for x, d in zip(leaves, dims, strict=True)])
    return tree_map(lambda y: local(y, mesh, y.sharding.spec), run(*args, **kwargs))


def _moved(mesh_for, args, kwargs):
    """The arguments where they are needed; None where all arrays are there already."""
    leaves, tree = tree_flatten((args, kwargs))
    if any(isinstance(x, _core.Tracer) for x in leaves):
        return None
    dims, mesh = mesh_for(args, kwargs)
    places = [NamedSharding(mesh, _spec(mesh.axis_names[0], d)) for d in dims]
    elsewhere = [isinstance(x, _core.Array) and x.committed and x.sharding != s for x, s in zip(leaves, places, strict=True)]
    if not any(elsewhere):
        return None
    return tree.unflatten([_core.device_put(x, s) if e else x for x, s, e in zip(leaves, places, elsewhere, strict=True)])


def _static(fun, numbers, args):
    """The positions of the static arguments of a call.

    Raises:
        ValueError: one was not passed by position, or cannot be hashed.
    """
    found = [i + len(args) if i < 0 else i for i in numbers]
    if any(not 0 <= i < len(args) for i in found):
        raise ValueError(
            f"pmapped function has static_broadcasted_argnums={numbers} but was called with only {len(args)} positional"
            f" argument{'s' * (len(args) > 1)}. All static broadcasted arguments must be passed positionally."
        )
    for i in found:
        try:
            hash(args[i])
        except TypeError:
            raise ValueError(
                "Non-hashable static arguments are not supported, as this can lead to unexpected cache-misses."
                f" Static argument (index {i}) of type {type(args[i])} for function {name_of(fun)} is non-hashable."
            ) from None
    return found


def _numbers(x):
    return (operator.index(x),) if hasattr(x, "__index__") else tuple(map(operator.index, x))
