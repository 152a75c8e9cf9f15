"""Compiled programs as bytes.

    blob, in_tree, out_tree = serialize(jit(f).lower(x).compile())
    deserialize_and_load(blob, in_tree, out_tree)(x)

Invariant: the bytes are those of an exported program, which is compiled again when it is loaded.
Values are the same.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from .. import _core
from .._runtime.devices import devices as _devices
from .._tracing.jit import jit
from .._tracing.trace import ShapeDtypeStruct
from ..export import deserialize as _load, export as _export

if TYPE_CHECKING:
    from .._core import Compiled, PyTreeDef

__all__ = ["deserialize_and_load", "serialize"]


def serialize(compiled: Any) -> tuple[bytes, Any, Any]:
    """A compiled program as bytes.

    Args:
        compiled: Compiled, as `jit(f).lower(..).compile()` returns it.

    Returns:
        (bytes, PyTreeDef of the arguments, PyTreeDef of the results), which `deserialize_and_load`
        takes.

    Raises:
        ValueError: `compiled` is not a compiled program.
        NotImplementedError: the program calls the host.
    """
    if not isinstance(compiled, _core.Compiled):
        raise ValueError("Compilation does not support serialization")
    program = compiled._program()

    def run(*leaves):
        return list(_core.eval_program(program, list(program.consts), *leaves))

    run.__name__ = compiled.fun_name
    avals = [ShapeDtypeStruct(tuple(a.shape), a.dtype, weak_type=a.weak_type) for a in program.in_avals]
    blob = _export(jit(run))(*avals).serialize()
    return pickle.dumps((blob, [(tuple(a.shape), a.dtype, a.weak_type) for a in program.in_avals])), compiled.in_tree, compiled.out_tree


def deserialize_and_load(serialized: bytes, in_tree: PyTreeDef, out_tree: PyTreeDef, backend: Any = None, execution_devices: Any = None) -> Compiled:
    """The compiled program again.

    Args:
        serialized, in_tree, out_tree: what `serialize` gave. Bytes that others wrote are not safe
          to load.
        backend: the platform it is for; None: the default one.
        execution_devices: the device it is for.

    Returns:
        what `lower(..).compile()` gives.

    Raises:
        ValueError: there are several devices, or the bytes are damaged.
    """
    blob, avals = pickle.loads(serialized)
    exported = _load(blob)

    def run(*args, **kwargs):
        return out_tree.unflatten(exported.call(*in_tree.flatten_up_to((args, kwargs))))

    run.__name__ = exported.fun_name
    if execution_devices is not None and len(execution_devices) != 1:
        raise ValueError(f"execution_devices: a program runs on one device, got {len(execution_devices)}")
    device = execution_devices[0] if execution_devices else _devices(backend if isinstance(backend, str) else None)[0]
    args, kwargs = in_tree.unflatten([ShapeDtypeStruct(shape, dtype, weak_type=weak) for shape, dtype, weak in avals])
    return jit(run).lower(*args, **kwargs).compile(device_assignment=[device])
