"""Names for use with `isinstance`: values under each transformation, trace objects, numbers with a
dtype.

Invariant: all traced values are of one class; the kind of their transformation is read from their
trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core

__all__ = [
    "BatchTracer",
    "DynamicJaxprTracer",
    "EvalTrace",
    "JVPTrace",
    "JaxprTrace",
    "JaxprTracer",
    "TypedComplex",
    "TypedFloat",
    "TypedInt",
    "TypedNdArray",
    "typed_scalar_types",
]


class _ByTrace(type):
    kinds = ()

    def __instancecheck__(cls, x):
        return (trace := _core.trace_of(x)) is not None and trace.what in cls.kinds


class DynamicJaxprTracer(metaclass=_ByTrace):
    """The class of values during tracing of a program."""

    kinds = ("jit", "stage", "make_jaxpr")


class BatchTracer(metaclass=_ByTrace):
    """The class of values under `vmap`."""

    kinds = ("vmap", "pmap", "shard_map")


class JaxprTracer(metaclass=_ByTrace):
    """The class of values of the unknown part of a program: those of a record."""

    kinds = ("record", "linearize")


class LinearizeTracer(metaclass=_ByTrace):
    """The class of values under `linearize`."""

    kinds = ("linearize", "grad", "record")


class _TraceByKind(type):
    kinds = ()

    def __instancecheck__(cls, x):
        return getattr(x, "what", None) in cls.kinds


class EvalTrace(metaclass=_TraceByKind):
    """Computing, rather than transforming."""

    kinds = ("eval",)


class JVPTrace(metaclass=_TraceByKind):
    """The transformation `jvp`."""

    kinds = ("jvp", "grad")


class BatchTrace(metaclass=_TraceByKind):
    """The transformation `vmap`."""

    kinds = BatchTracer.kinds


class DynamicJaxprTrace(metaclass=_TraceByKind):
    """The making of a program."""

    kinds = DynamicJaxprTracer.kinds


class JaxprTrace(metaclass=_TraceByKind):
    """The making of the unknown part of a program."""

    kinds = JaxprTracer.kinds


LinearizeTrace = JVPTrace


def _typed(name, base):
    def new(cls, value, dtype):
        made = base.__new__(cls, value)
        made.dtype = np.dtype(dtype)
        made.aval = _core.ShapedArray((), made.dtype, weak_type=True)
        return made

    shown = lambda self: f"{name}({base(self)}, dtype={self.dtype.name})"
    return type(name, (base,), {"__new__": new, "__repr__": shown, "__getnewargs__": lambda self: (base(self), self.dtype)})


TypedInt, TypedFloat, TypedComplex = _typed("TypedInt", int), _typed("TypedFloat", float), _typed("TypedComplex", complex)
typed_scalar_types = {TypedInt, TypedFloat, TypedComplex}


class TypedNdArray:
    """A NumPy array whose dtype is not narrowed to 32 bits.

    Args:
        val: the array.
        weak_type: whether its type is weak.
    """

    def __init__(self, val, weak_type=False):
        self.val, self.weak_type = np.asarray(val), weak_type

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.val.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self.val.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.val.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.val.size

    @property
    def aval(self) -> _core.ShapedArray:
        """The type."""
        return _core.ShapedArray(self.val.shape, self.val.dtype, weak_type=self.weak_type)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.val, dtype=dtype, copy=copy)

    def __jax_array__(self):
        return _core.asarray(self.val)
