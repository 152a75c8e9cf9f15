"""The exceptions that programs match on, by JAX's names and with JAX's first lines.

Invariant: this module imports nothing of the package, so that the extension may raise its classes
at any time.

    try:
        ferrax.jit(lambda x: x if x > 0 else -x)(1.0)
    except ferrax.errors.TracerBoolConversionError as e:
        print(e)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._core import Tracer

__all__ = [
    "ConcretizationTypeError",
    "InconclusiveDimensionOperation",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "NonConcreteBooleanIndexError",
    "OutOfBoundsError",
    "ShardingTypeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]


def _described(tracer):
    aval = tracer.aval
    return f"traced array with shape {aval.str_short() if hasattr(aval, 'str_short') else aval}"


class _FromTracer:
    """Errors about one tracer: made from a finished message, or from the tracer (and a context) as
    JAX's own are.
    """

    _words = ""

    def __init__(self, tracer: Tracer | str, context: str = "") -> None:
        if isinstance(tracer, str):
            message = tracer
        else:
            message = self._words.format(_described(tracer))
            context = f"{context}{tracer._origin_msg()}".lstrip("\n") if hasattr(tracer, "_origin_msg") else context
        super().__init__(f"{message}\n{context}" if context else message)


class ShardingTypeError(Exception):
    """Types do not say how a result is cut among devices, or say two things."""


class JAXTypeError(TypeError):
    """A TypeError that concerns tracing."""


class JAXIndexError(IndexError):
    """An IndexError that concerns tracing."""


class OutOfBoundsError(JAXIndexError):
    """An index out of bounds, where they are checked (`jax_strict_bounds`)."""


class ConcretizationTypeError(_FromTracer, JAXTypeError):
    """A concrete value was needed where only a traced one exists: `float(x)`, `int(x)`,
    `jnp.arange(x)` under `jit`.

    Remedies: mark the argument static (`static_argnums`, `static_argnames`), or use an array
    operation in place of the conversion.
    """

    _words = "Abstract tracer value encountered where concrete value is expected: {}"


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as a condition: `if x > 0` under `jit` or on a value mapped by
    `vmap`.

    Remedies: `lax.cond`, `lax.while_loop`, `jnp.where`; or mark the argument static.
    """

    _words = "Attempted boolean conversion of {}."


class TracerArrayConversionError(_FromTracer, JAXTypeError):
    """A traced value was handed to NumPy: `np.sin(x)` under `jit`.

    Remedy: `jnp.sin(x)`, or `pure_callback`.
    """

    _words = "The numpy.ndarray conversion method __array__() was called on {}"


class TracerIntegerConversionError(_FromTracer, JAXTypeError):
    """A traced value was used as a Python integer: `[1, 2, 3][i]` under `jit`.

    Remedy: index an array, or mark the argument static.
    """

    _words = "The __index__() method was called on {}"


class NonConcreteBooleanIndexError(_FromTracer, JAXIndexError):
    """A traced boolean mask was used as an index, so the result's shape is unknown.

    Remedy: `jnp.where(mask, x, fill)`.
    """

    _words = "Array boolean indices must be concrete; got {}"


class UnexpectedTracerError(JAXTypeError):
    """A traced value outlived its transformation: it was kept in a global, an attribute or a
    closure, and used after the trace ended.
    """


class KeyReuseError(JAXTypeError):
    """A random key was consumed twice while `jax_debug_key_reuse` was on."""


class JaxprTypeError(TypeError):
    """A program does not type-check."""


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic dimensions could not be decided."""


class JaxRuntimeError(RuntimeError):
    """A program failed while it ran: out of memory, a callback that raised, a device that was
    lost.
    """
