"""The exceptions that programs match on, by JAX's names and with JAX's first lines."""

from ferrax._core import Tracer

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
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]

class ConcretizationTypeError(JAXTypeError):
    def __init__(self, tracer: Tracer, context: str = "") -> None: ...

class InconclusiveDimensionOperation(Exception): ...
class JAXIndexError(IndexError): ...
class JAXTypeError(TypeError): ...
class JaxRuntimeError(RuntimeError): ...
class JaxprTypeError(TypeError): ...
class KeyReuseError(JAXTypeError): ...

class NonConcreteBooleanIndexError(JAXIndexError):
    def __init__(self, tracer: Tracer, context: str = "") -> None: ...

class OutOfBoundsError(JAXIndexError): ...

class TracerArrayConversionError(JAXTypeError):
    def __init__(self, tracer: Tracer, context: str = "") -> None: ...

class ShardingTypeError(Exception): ...

class TracerBoolConversionError(ConcretizationTypeError):
    def __init__(self, tracer: Tracer, context: str = "") -> None: ...

class TracerIntegerConversionError(JAXTypeError):
    def __init__(self, tracer: Tracer, context: str = "") -> None: ...

class UnexpectedTracerError(JAXTypeError): ...
