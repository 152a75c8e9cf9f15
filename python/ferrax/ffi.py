"""Calls of functions that are compiled elsewhere: C and C++ as handlers of the typed interface, or
as plain functions of pointers.

    library = ctypes.CDLL("./librms.so")
    register_ffi_target("rms", pycapsule(library.Rms))
    ffi_call("rms", ShapeDtypeStruct(x.shape, x.dtype), vmap_method="broadcast_all")(x, eps=np.float32(1e-5))

Invariant: a function sees its operands on the host, as `pure_callback` hands them, and writes
results that have no other owner; `jit`, `vmap` and loops treat a call as they treat a callback.
"""

from __future__ import annotations

import ctypes
import functools
import pathlib
import sys
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np

from . import _core
from ._runtime.callback import io_callback, pure_callback
from ._runtime.foreign_calls import call_original, call_typed, capsule_address, reported
from .custom_derivatives import custom_jvp
from .experimental.layout import Layout
from .extend.core import AbstractToken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._core import Array
    from ._tracing.trace import ShapeDtypeStruct

__all__ = [
    "build_ffi_lowering_function",
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]

_METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized", None]
_targets = {}
_types = {}


def pycapsule(funcptr: Any) -> Any:
    """A function of a library that `ctypes` loaded, as a capsule that `register_ffi_target` takes.

    The library must stay loaded.

    Args:
        funcptr: function of a `ctypes.CDLL`.

    Returns:
        PyCapsule of its address.
    """
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.cast(funcptr, ctypes.c_void_p), None, None)


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Gives a compiled function a name, by which `ffi_call` calls it.

    Args:
        name: str.
        fn: capsule with its address, or a dict of capsules by stages ("instantiate", "prepare",
          "initialize", "execute").
        platform: str, the platform whose memory it works on. A function for another platform than
          "cpu" is accepted and never called.
        api_version: 1 for a handler of the typed interface, 0 for a function of pointers.
        **kwargs: traits; ignored.

    Returns:
        None.

    Raises:
        ValueError: the version or the stage is not supported; `fn` must have the stage "execute".
        TypeError: `fn` does not contain capsules.
    """
    if api_version not in (0, 1):
        raise ValueError(f"register_ffi_target: api_version is 1 (typed) or 0, got {api_version}")
    stages = fn if isinstance(fn, dict) else {"execute": fn}
    if "execute" not in stages:
        raise ValueError(f"register_ffi_target: the function of {name!r} has no stage 'execute'")
    addresses = {stage: capsule_address(capsule) for stage, capsule in stages.items()}
    if platform.lower() in ("cpu", "host"):
        _targets[name] = _Target(name, addresses, api_version, fn)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Declares that a function may be called on parts of a batch.

    It is ignored: whole batches are passed.

    Args:
        name: str, the name of a registered function.

    Returns:
        None.

    Raises:
        ValueError: no function has this name.
    """
    if name not in _targets:
        raise ValueError(f"no foreign function is called {name!r}: register_ffi_target names one")


def register_ffi_type(name: str, type_registration: dict[str, Any], platform: str = "cpu") -> None:
    """Registers a name for a type of state that handlers keep between stages.

    Without it, handlers name their type when they first store a state.

    Args:
        name: str.
        type_registration: dict with the capsule `type_id`, and optionally `type_info`.
        platform: str, as in `register_ffi_target`.

    Returns:
        None.

    Raises:
        TypeError: a value of the dict is not a capsule.
    """
    _types[name, platform] = {key: capsule_address(c) for key, c in type_registration.items()}


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> NoReturn:
    """Refused, as in JAX: use `register_ffi_type`.

    Args:
        name: str.
        obj: capsule.
        platform: str.

    Raises:
        ValueError: always.
    """
    raise ValueError("register_ffi_type_id is not supported after jaxlib version 381.")


def include_dir() -> str:
    """The folder with the headers of the typed interface, if a `jaxlib` that contains them is
    installed.

    Returns:
        str, a path.

    Raises:
        RuntimeError: there is no such folder. Handlers that were compiled with these headers work
          anyway; a plain function does not need them (`api_version=0`).
    """
    for folder in map(pathlib.Path, sys.path):
        if (folder / "jaxlib" / "include").is_dir():
            return str(folder / "jaxlib" / "include")
    raise RuntimeError(
        "Ferrax has no headers of its own: take those of a jaxlib wheel (jaxlib/include), or write a plain function and register it with api_version=0"
    )


class _Target:
    """A compiled function, and its state between calls: one for each set of attributes."""

    def __init__(self, name, addresses, version, alive):
        self.name, self.addresses, self.version, self.alive = name, addresses, version, alive
        self.states = {}

    def run(self, version, ins, outs, attributes, opaque):
        """Calls it on (array, shape) pairs."""
        if (version >= 4) != (self.version == 1):
            raise reported(f"INVALID_ARGUMENT: {self.name} was registered with api_version={self.version}, and called with custom_call_api_version={version}")
        if version >= 4:
            call_typed(self.addresses, self.states.setdefault(repr(sorted(attributes.items())), {}), ins, outs, attributes)
        else:
            call_original(self.addresses["execute"], version, [x for x, _ in ins], [x for x, _ in outs], opaque)


def _order(layout, rank, at):
    """The axes in the order of memory, the slowest first."""
    if layout is None:
        return tuple(range(rank))
    order = layout.major_to_minor if isinstance(layout, Layout) else layout
    order = tuple(map(int, order))
    if sorted(order) != list(range(rank)):
        raise ValueError(f"the layout of {at} must be a permutation of its {rank} axes, got {order}")
    return order


class _Foreign:
    """One call: everything it needs besides the operands."""

    def __init__(self, name, results, in_orders, out_orders, aliases, version, opaque, attributes):
        self.name, self.results, self.aliases, self.version, self.opaque, self.attributes = name, results, aliases, version, opaque, attributes
        self.in_orders, self.out_orders = in_orders, out_orders

    def __call__(self, *operands):
        """On the host: arrays of the operands' shapes, or with axes of a batch before them."""
        target = _targets.get(self.name)
        if target is None:
            raise reported(f"NOT_FOUND: No FFI handler registered for {self.name} on a platform Host (canonical host)")
        batch = np.broadcast_shapes(*(np.shape(x)[: np.ndim(x) - len(o)] for x, o in zip(operands, self.in_orders, strict=True)))
        ins = [_in_memory(np.asarray(x), o) for x, o in zip(operands, self.in_orders, strict=True)]
        shapes = [tuple(batch) + r.shape for r in self.results]
        outs = [np.empty(tuple(s[k] for k in _whole(o, len(s))), r.dtype) for s, o, r in zip(shapes, self.out_orders, self.results, strict=True)]
        for i, o in self.aliases:
            outs[o][...] = ins[i]
            ins[i] = outs[o]
        given = [(x, np.shape(original)) for x, original in zip(ins, operands, strict=True)]
        target.run(self.version, given, list(zip(outs, shapes, strict=True)), self.attributes, self.opaque)
        return [y.transpose(np.argsort(_whole(o, y.ndim))) for y, o in zip(outs, self.out_orders, strict=True)]


def _whole(order, rank):
    """An order of the last axes, extended to an order of all axes."""
    before = rank - len(order)
    return [*range(before), *(before + k for k in order)]


def _in_memory(x, order):
    return np.ascontiguousarray(x.transpose(_whole(order, x.ndim)))


def _result(r, position):
    if isinstance(r, AbstractToken):
        raise NotImplementedError("ffi_call: results cannot be tokens: effects are ordered without them; pass has_side_effect=True")
    if not hasattr(r, "shape") or not hasattr(r, "dtype"):
        raise ValueError(f"All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. Got {r} at position {position}.")
    return _core.ShapedArray(tuple(r.shape), np.dtype(r.dtype))


def _aliased(aliases, avals, results, in_orders, out_orders):
    for i, o in sorted((int(i), int(o)) for i, o in aliases.items()):
        at = f"input_output_aliases contains the mapping '{i}:{o}'"
        if i >= len(avals):
            raise ValueError(f"{at} with input index {i} outside the range [0, {len(avals)}).")
        if o >= len(results):
            raise ValueError(f"{at} with output index {o} outside the range [0, {len(results)}).")
        a, b = avals[i], results[o]
        if tuple(a.shape) != tuple(b.shape) or a.dtype != b.dtype:
            raise ValueError(f"{at} referring to an input with abstract value {a} and an output with a different abstract value {b}.")
        if in_orders[i] != out_orders[o]:
            raise ValueError(f"{at} referring to an input with layout {in_orders[i]} and an output with a different layout {out_orders[o]}.")
        yield i, o


def _orders(layouts, avals, what):
    if layouts is None:
        layouts = [None] * len(avals)
    if len(layouts) != len(avals):
        raise ValueError(f"The number of {what} ({len(avals)}) must equal the number of {what.split()[0]} layouts ({len(layouts)}).")
    return [_order(layout, len(a.shape), what) for layout, a in zip(layouts, avals, strict=True)]


@overload
def ffi_call(
    target_name: Any,
    result_shape_dtypes: ShapeDtypeStruct | Array,
    *,
    has_side_effect: bool = False,
    vmap_method: Any = None,
    input_layouts: Any = None,
    output_layouts: Any = None,
    input_output_aliases: Any = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: Any = None,
) -> Callable[..., Array]: ...


@overload
def ffi_call(
    target_name: Any,
    result_shape_dtypes: Sequence[ShapeDtypeStruct | Array],
    *,
    has_side_effect: bool = False,
    vmap_method: Any = None,
    input_layouts: Any = None,
    output_layouts: Any = None,
    input_output_aliases: Any = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: Any = None,
) -> Callable[..., Sequence[Array]]: ...


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Any = None,
    output_layouts: Any = None,
    input_output_aliases: Any = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: Any = None,
) -> Callable[..., Any]:
    """A function that calls a compiled one, which `register_ffi_target` named.

    Args:
        target_name: its name. It is looked up when the call runs.
        result_shape_dtypes: an object with a shape and a dtype for the result, or a sequence of
          such objects.
        has_side_effect: whether it is called although its results are unused.
        vmap_method: the behaviour under `vmap`, as for `pure_callback`.
        input_layouts, output_layouts: for each array None (the last axis is contiguous), a
          `Layout`, or its axes from the slowest to the fastest. Shapes are passed unchanged.
        input_output_aliases: for the number of an operand, the number of the result that shares its
          memory and is initialized with it.
        custom_call_api_version: 4: a handler of the typed interface; 1 or 2:
          `void f(void* out, const void** in)`, in 2 with the opaque string, its length and a
          status.
        legacy_backend_config: the opaque string.

    Returns:
        a function of arrays; its keyword arguments are the handler's attributes: numbers, strings,
        NumPy arrays, dicts.

    Raises:
        ValueError: an option is not valid, or does not fit the arrays.
    """
    if vmap_method not in _METHODS:
        raise ValueError(f"vmap_method must be on of the allowed methods {_METHODS}, but got: {vmap_method}")
    several = isinstance(result_shape_dtypes, (tuple, list))
    results = [_result(r, i) for i, r in enumerate(result_shape_dtypes if several else [result_shape_dtypes])]
    if custom_call_api_version >= 4 and legacy_backend_config is not None:
        raise ValueError(f"The use of the legacy_backend_config parameter requires custom_call_api_version < 4; got {custom_call_api_version}.")
    out_orders = _orders(output_layouts if several else [output_layouts], results, "outputs")

    def call(*args, **attributes):
        avals = [_core.get_aval(x) for x in args]
        in_orders = _orders(input_layouts, avals, "input arguments")
        if input_output_aliases is None:
            aliases = []
        else:
            aliases = list(_aliased(input_output_aliases, avals, results, in_orders, out_orders))
        if custom_call_api_version < 4 and attributes:
            raise ValueError(f"The use of ffi_call attributes requires a custom call API version of at least 4; got api_version={custom_call_api_version}.")
        opaque = (legacy_backend_config or "").encode()
        foreign = _Foreign(target_name, results, in_orders, out_orders, aliases, custom_call_api_version, opaque, attributes)
        outs = _differentiated(target_name, functools.partial(_called, foreign, has_side_effect, vmap_method))(*args)
        return type(result_shape_dtypes)(outs) if several else outs[0]

    return call


def _called(foreign, has_side_effect, vmap_method, *args):
    if has_side_effect:
        return io_callback(foreign, foreign.results, *args)
    method = "expand_dims" if vmap_method == "legacy_vectorized" else vmap_method
    return pure_callback(foreign, foreign.results, *args, vmap_method=method)


def _differentiated(name, call):
    """The call, which says of itself that it has no derivative."""
    f = custom_jvp(call)

    @f.defjvp
    def rule(_primals, _tangents):
        raise ValueError(f"The FFI call to `{name}` cannot be differentiated. You can use `jax.custom_jvp` or `jax.custom_jvp` to add support.")

    return f


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Any = None,
    result_layouts: Any = None,
    backend_config: Any = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> NoReturn:
    """Refused: a lowering writes the text of another compiler.

    Args:
        call_target_name: str, the name of a registered function.
        operand_layouts, result_layouts, backend_config: options of that compiler.
        skip_ffi_layout_processing, **lowering_args: the same.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        f"ffi_lowering: a primitive here is lowered to a function of arrays: register_lowering(p, lower_fun(ffi_call({call_target_name!r}, ..)))"
    )


build_ffi_lowering_function = ffi_lowering
