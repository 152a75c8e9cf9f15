"""User-defined types that `vmap` maps over: how a value is split into its elements, and assembled
from them.

    register_vmappable(Named, Name, int, to_elt, from_elt, None)
    vmap(f, in_axes=Name("i", 0), out_axes=Name("i", 0), axis_size=3)(named)

Invariant: handlers get values and elements, and treat arrays by the function that they are given,
which is called twice: to collect the arrays to map, and to return the mapped ones.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .. import _core
from .._trees import flat as _flat
from .._trees.prefixes import spread_prefix
from ..tree_util import tree_flatten

vmappables, spec_types = {}, set()


class carried:
    """Values that consist of arrays and have tangents of another type, such as those of
    `experimental.hijax`.

    types: their classes, and the function that gives the type of a value.
    differentiated(args, fun): (arguments, function) in terms of the arrays that carry tangents, and
    a function from the cotangents of these arrays to those of the values; None if there is no such
    value among the arguments.
    specs: the classes of the objects that state, in place of an axis, how a value is mapped.
    mapped: `vmap` of a function with such values.
    """

    # A class: transformed functions that read it stay functions whose traces may be kept (`_tracing.cached_traces`).
    types: ClassVar[dict[type, Any]] = {}
    specs: ClassVar[tuple[type, ...]] = ()
    differentiated: ClassVar[Any] = None
    mapped: ClassVar[Any] = None


to_elt_handlers, from_elt_handlers, make_iota_handlers = {}, {}, {}


def register_vmappable(data_type: type, spec_type: type, axis_size_type: type, to_elt: Any, from_elt: Any, make_iota: Any) -> None:
    """Makes `vmap` map over values of a type.

    Args:
        data_type: the type.
        spec_type: the type of the values that represent it in `in_axes` and `out_axes`.
        axis_size_type: the type of the size of its axis.
        to_elt: `to_elt(cont, get_idx, value, spec)`, which returns the element; `cont(array, axis)`
          is the element of an array, or of another value.
        from_elt: `from_elt(cont, axis_size, element, spec)`, which returns the value;
          `cont(axis_size, element, axis)` is the array of an array's element.
        make_iota: `make_iota(axis_size)`, which returns the indices of the batch; None for 0, 1, ..

    Returns:
        None.
    """
    vmappables[data_type] = (spec_type, axis_size_type)
    spec_types.add(spec_type)
    to_elt_handlers[data_type], from_elt_handlers[data_type] = to_elt, from_elt
    if make_iota:
        make_iota_handlers[axis_size_type] = make_iota


def unregister_vmappable(data_type: type) -> None:
    """Removes a type that `register_vmappable` registered. Its `spec_type` stays known.

    Args:
        data_type: the type.

    Returns:
        None.
    """
    for table in (vmappables, to_elt_handlers, from_elt_handlers):
        table.pop(data_type, None)


def is_vmappable(x: Any) -> bool:
    """Whether the type of x was registered for `vmap`."""
    return type(x) in vmappables


def concerns(args, kwargs, axes):
    """Whether a call has to do with such types."""
    if not vmappables:
        return False
    leaves = tree_flatten((args, kwargs, axes), is_leaf=lambda x: is_vmappable(x) or type(x) in spec_types)[0]
    return any(is_vmappable(x) or type(x) in spec_types for x in leaves)


def _element(mapped, x, spec, indices):
    """The element of x; `mapped(array, axis)` is that of an array."""
    handler = to_elt_handlers.get(type(x))
    if handler:
        return handler(lambda x, spec: _element(mapped, x, spec, indices), indices, x, spec)
    return x if spec is None else mapped(x, spec)


def _value(together, size, x, spec):
    """The value of the element x; `together(element, axis)` is that of an array's."""
    handler = from_elt_handlers.get(type(x))
    if handler:
        return handler(lambda size, x, spec: _value(together, size, x, spec), size, x, spec)
    return together(x, spec)


def vmap_over(fun, args, kwargs, in_axes, out_axes, axis_name, axis_size, mapped_size):
    """`vmap` where an argument or a specification is of such a type. mapped_size: finds the size
    among arrays and their axes.
    """
    leaves, in_tree = tree_flatten((args, kwargs), is_leaf=is_vmappable)
    in_place = tree_flatten(args, is_leaf=is_vmappable)[1].unflatten(range(len(tree_flatten(args, is_leaf=is_vmappable)[0])))
    dims = spread_prefix(in_axes, in_place, "vmap in_axes")
    dims += [0] * (len(leaves) - len(dims))
    arrays, axes = [], []

    def collect(x, axis):
        x = x if isinstance(x, _core.Array) else _core.asarray(x)
        arrays.append(x)
        axes.append(axis % x.ndim)
        # a placeholder of which only the shape is read: a batch of size 0 has no element
        return np.zeros(np.delete(x.shape, axis % x.ndim), x.dtype) if not x.shape[axis] else x[(slice(None),) * (axis % x.ndim) + (0,)]

    size = axis_size
    lanes = lambda: make_iota_handlers[type(size)](size) if type(size) in make_iota_handlers else np.arange(int(size), dtype=np.int32)
    for x, d in zip(leaves, dims, strict=True):
        _element(collect, x, d, lambda: np.int32(0))
    size = mapped_size("vmap", fun, args, kwargs, arrays, axes) if size is None else size
    found = {}

    def flat(lane, *elements):
        given = iter(elements)
        own = [_element(lambda *_: next(given), x, d, lambda: lane) for x, d in zip(leaves, dims, strict=True)]
        args, kwargs = in_tree.unflatten(own)
        outs, tree = tree_flatten(fun(*args, **kwargs), is_leaf=is_vmappable)
        specs = spread_prefix(out_axes, tree.unflatten(range(len(outs))), "vmap out_axes")
        found.update(outs=outs, tree=tree, specs=specs, elements=[], axes=[])

        def collect(x, axis):
            found["elements"].append(x)
            found["axes"].append(axis)
            return x

        for x, spec in zip(outs, specs, strict=True):
            _value(collect, size, x, spec)
        return found["elements"]

    out_dims = lambda i=None: "vmap out_axes" if i is not None else found["axes"]
    results = _core.vmap(flat, [_core.asarray(lanes()), *arrays], [0, *axes], int(size), axis_name, out_dims)
    given = iter(_flat.looked_at("vmap", fun, results))
    return found["tree"].unflatten([_value(lambda *_: next(given), size, x, spec) for x, spec in zip(found["outs"], found["specs"], strict=True)])
