"""Calls of functions in C: the call frame of the typed interface, and the two older conventions.

Invariant: memory that a handler gets stays valid during its call, with the requested order of axes;
errors that it reports are raised. Sizes and order of fields are those of version 0.3 of the
interface, which handlers check.
"""

import ctypes
import itertools
import os
import threading
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p, cast, pointer

import numpy as np

from ..errors import JaxRuntimeError

__all__ = ["call_original", "call_typed", "capsule_address", "reported"]

_CODES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED"
    " OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
).split()
_DTYPES = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9, "float16": 10, "float32": 11, "float64": 12,
    "bfloat16": 16, "complex64": 15, "complex128": 18, "float8_e5m2": 19, "float8_e3m4": 29, "float8_e4m3": 28, "float8_e4m3fn": 20, "float8_e4m3b11fnuz": 23,
    "float8_e5m2fnuz": 24, "float8_e4m3fnuz": 25, "float4_e2m1fn": 32, "float8_e8m0fnu": 33, "int2": 26, "int4": 21, "uint2": 27, "uint4": 22,
}  # fmt: skip
_ARRAY, _DICTIONARY, _SCALAR, _STRING = 1, 2, 3, 4
_STAGES = {"instantiate": 0, "prepare": 1, "initialize": 2, "execute": 3}


def reported(text):
    """The error that a foreign function reports, which its callback raises unchanged."""
    e = JaxRuntimeError(text)
    e.reported = True
    return e


def capsule_address(capsule):
    """The address in a capsule.

    Raises:
        TypeError: it is not a capsule.
    """
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(f"a foreign function is a PyCapsule (jax.ffi.pycapsule), got {type(capsule).__name__}")
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = c_char_p, [ctypes.py_object]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    return get(capsule, get_name(capsule))


# ---------------------------------------------------------------- the structures


def _structure(name, *fields, last=None):
    """A structure that starts with its size and a list of extensions. Its size counts the fields up
    to `last`.
    """
    cls = type(name, (Structure,), {"_fields_": [("struct_size", c_size_t), ("extension_start", c_void_p), *fields]})
    end = getattr(cls, last or (fields[-1][0] if fields else "extension_start"))
    cls.declared = end.offset + end.size
    return cls


class _ByteSpan(Structure):
    _fields_ = (("ptr", c_char_p), ("len", c_size_t))


class _Scalar(Structure):
    _fields_ = (("dtype", c_int), ("value", c_void_p))


class _Array(Structure):
    _fields_ = (("dtype", c_int), ("size", c_size_t), ("data", c_void_p))


_Version = _structure("Version", ("major", c_int), ("minor", c_int))
_Buffer = _structure("Buffer", ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64)))
_Args = _structure("Args", ("size", c_int64), ("types", POINTER(c_int)), ("args", POINTER(c_void_p)))
_Attrs = _structure("Attrs", ("size", c_int64), ("types", POINTER(c_int)), ("names", POINTER(c_void_p)), ("attrs", POINTER(c_void_p)))
_Frame = _structure(
    "Frame", ("api", c_void_p), ("ctx", c_void_p), ("stage", c_int), ("args", _Args), ("rets", _Args), ("attrs", _Attrs), ("future", c_void_p), last="attrs"
)
_ErrorCreate = _structure("ErrorCreate", ("message", c_char_p), ("errc", c_int))
_ErrorMessage = _structure("ErrorMessage", ("error", c_void_p), ("message", c_void_p))
_OneError = _structure("OneError", ("error", c_void_p))
_TypeRegister = _structure("TypeRegister", ("name", _ByteSpan), ("type_id", POINTER(c_int64)), ("type_info", c_void_p))
_State = _structure("State", ("ctx", c_void_p), ("stage", c_int), ("type_id", POINTER(c_int64)), ("state", c_void_p))
_Allocate = _structure("Allocate", ("ctx", c_void_p), ("size", c_size_t), ("alignment", c_size_t), ("data", c_void_p))
_Free = _structure("Free", ("ctx", c_void_p), ("size", c_size_t), ("data", c_void_p))
_Schedule = _structure("Schedule", ("ctx", c_void_p), ("task", c_void_p), ("data", c_void_p))
_Threads = _structure("Threads", ("ctx", c_void_p), ("num_threads", POINTER(c_int64)))
_Future = _structure("Future", ("future", c_void_p), ("error", c_void_p))
_RunId = _structure("RunId", ("ctx", c_void_p), ("run_id", c_int64))
_Ordinal = _structure("Ordinal", ("ctx", c_void_p), ("device_ordinal", c_int32))

_FUNCTIONS = (
    "error_create error_message error_destroy handler_register stream_get type_register context_get state_set state_get allocate free schedule num_threads"
    " future_create future_set_available future_set_error run_id device_ordinal"
).split()
_Api = _structure("Api", ("api_version", _Version), ("internal_api", c_void_p), *((name, c_void_p) for name in _FUNCTIONS))
_Handler = CFUNCTYPE(c_void_p, c_void_p)


class _Interface:
    """The functions that handlers can call: errors, memory, states, tasks. Objects live until the
    handler releases them or its call ends.
    """

    def __init__(self):
        self.lock, self.numbers = threading.Lock(), itertools.count(1)
        self.errors, self.types, self.calls, self.futures = {}, {}, {}, {}
        self.kept = [_Handler(self._guarded(getattr(self, f"_{name}", self._unimplemented))) for name in _FUNCTIONS]
        self.table = _Api(_Api.declared, None, _Version(_Version.declared, None, 0, 3), None, *(cast(f, c_void_p) for f in self.kept))

    def _guarded(self, f):
        def call(address):
            try:
                return f(address) or None
            except Exception as e:
                return self.error("INTERNAL", f"{type(e).__name__}: {e}")

        return call

    def number(self):
        """A unique number, also used in place of a pointer."""
        with self.lock:
            return next(self.numbers)

    def error(self, code, message):
        """A pointer to a new error."""
        key = self.number()
        self.errors[key] = (code, ctypes.create_string_buffer(message.encode()))
        return key

    def raised(self, key):
        """Raises the error that a handler returned, if it returned one."""
        if key:
            code, text = self.errors.pop(key)
            raise reported(f"{code}: {text.value.decode(errors='replace')}")

    def _unimplemented(self, _):
        return self.error("UNIMPLEMENTED", "this function does not exist on the host")

    def _error_create(self, at):
        a = _ErrorCreate.from_address(at)
        return self.error(_CODES[a.errc] if 0 <= a.errc < len(_CODES) else "UNKNOWN", (a.message or b"").decode(errors="replace"))

    def _error_message(self, at):
        a = _ErrorMessage.from_address(at)
        a.message = ctypes.addressof(self.errors[a.error][1])

    def _error_destroy(self, at):
        self.errors.pop(_OneError.from_address(at).error, None)

    def _type_register(self, at):
        a = _TypeRegister.from_address(at)
        name = ctypes.string_at(a.name.ptr, a.name.len)
        if name not in self.types:
            self.types[name] = a.type_id[0] or self.number()
        a.type_id[0] = self.types[name]

    def _state_set(self, at):
        a = _State.from_address(at)
        self.calls[a.ctx].states[a.stage] = a.state

    def _state_get(self, at):
        a = _State.from_address(at)
        states = self.calls[a.ctx].states
        if a.stage not in states:
            return self.error("NOT_FOUND", "the handler has set no state")
        a.state = states[a.stage]
        return None

    def _allocate(self, at):
        a = _Allocate.from_address(at)
        memory = np.empty(a.size + a.alignment, np.uint8)
        start = memory.ctypes.data
        a.data = start + -start % max(a.alignment, 1)
        self.calls[a.ctx].memory[a.data] = memory

    def _free(self, at):
        a = _Free.from_address(at)
        self.calls[a.ctx].memory.pop(a.data, None)

    def _schedule(self, at):
        a = _Schedule.from_address(at)
        CFUNCTYPE(None, c_void_p)(a.task)(a.data)

    def _num_threads(self, at):
        _Threads.from_address(at).num_threads[0] = os.cpu_count() or 1

    def _future_create(self, at):
        key = self.number()
        self.futures[key] = [threading.Event(), None]
        _Future.from_address(at).future = key

    def _future_set_available(self, at):
        self.futures[_Future.from_address(at).future][0].set()

    def _future_set_error(self, at):
        a = _Future.from_address(at)
        self.futures[a.future][1] = a.error
        self.futures[a.future][0].set()

    def _run_id(self, at):
        a = _RunId.from_address(at)
        a.run_id = a.ctx

    def _device_ordinal(self, at):
        _Ordinal.from_address(at).device_ordinal = 0


_interface = None


def _the_interface():
    global _interface
    if _interface is None:
        _interface = _Interface()
    return _interface


# ---------------------------------------------------------------- arguments


class _Call:
    """One call: the state of its handler, and the objects that its frame points to."""

    def __init__(self, states):
        self.states, self.memory, self.alive = states, {}, []

    def keep(self, x):
        """Keeps an object alive; returns its address."""
        self.alive.append(x)
        return cast(pointer(x), c_void_p).value

    def buffer(self, x, shape):
        """An array as a buffer. `shape` is the shape that the handler sees, whatever the order of
        axes in memory.
        """
        self.alive.append(x)
        dims = (c_int64 * max(len(shape), 1))(*shape)
        return self.keep(_Buffer(_Buffer.declared, None, _dtype(x.dtype), x.ctypes.data, len(shape), dims))

    def buffers(self, arrays):
        """Arrays as arguments or as results."""
        n = len(arrays)
        types, items = (c_int * max(n, 1))(*[1] * n), (c_void_p * max(n, 1))(*[self.buffer(x, shape) for x, shape in arrays])
        self.alive += [types, items]
        return _Args(_Args.declared, None, n, types, items)

    def attributes(self, values):
        """A dict as attributes, in the order of their names."""
        n, items = len(values), sorted(values.items())
        encoded = [self.attribute(v) for _, v in items]
        names = (c_void_p * max(n, 1))(*[self.span(k) for k, _ in items])
        types, attrs = (c_int * max(n, 1))(*[t for t, _ in encoded]), (c_void_p * max(n, 1))(*[a for _, a in encoded])
        self.alive += [names, types, attrs]
        return _Attrs(_Attrs.declared, None, n, types, names, attrs)

    def span(self, text):
        """Text as a span of bytes."""
        text = text.encode() if isinstance(text, str) else bytes(text)
        return self.keep(_ByteSpan(text, len(text)))

    def attribute(self, value):
        """(kind, address) of one attribute.

        Raises:
            TypeError: the interface has no kind of attribute for the value.
        """
        if isinstance(value, (str, bytes)):
            return _STRING, self.span(value)
        if isinstance(value, dict):
            return _DICTIONARY, self.keep(self.attributes(value))
        if isinstance(value, (bool, int, float, np.generic)) or (isinstance(value, np.ndarray) and value.ndim == 0):
            x = np.ascontiguousarray(value)
            self.alive.append(x)
            return _SCALAR, self.keep(_Scalar(_dtype(x.dtype), x.ctypes.data))
        if isinstance(value, np.ndarray):
            x = np.ascontiguousarray(value)
            self.alive.append(x)
            return _ARRAY, self.keep(_Array(_dtype(x.dtype), x.size, x.ctypes.data))
        raise TypeError(f"an attribute of a foreign call is a number, a string, a dict or a NumPy array, got {type(value).__name__}")


def _dtype(dtype):
    try:
        return _DTYPES[np.dtype(dtype).name]
    except KeyError:
        raise TypeError(f"foreign functions do not take arrays of {dtype}") from None


# ---------------------------------------------------------------- calls


def call_typed(handlers, states, arguments, results, attributes):
    """Calls the stages of a handler of the typed interface.

    Args:
        handlers: the addresses of the handler's stages, by their names.
        states: the states that the handler has set in earlier calls, by stage number.
        arguments, results: (array, the shape that the handler sees) of each.
        attributes: a dict.

    Raises:
        JaxRuntimeError: the handler returned an error.
    """
    the = _the_interface()
    call, key = _Call(states), the.number()
    the.calls[key] = call
    try:
        frame = _Frame(_Frame.declared, None, ctypes.addressof(the.table), key, 0)
        frame.attrs = call.attributes(attributes)
        for stage in ("instantiate", "prepare", "initialize", "execute"):
            if stage not in handlers or (stage == "instantiate" and 0 in states):
                continue
            run = stage in ("initialize", "execute")
            frame.args, frame.rets = call.buffers(arguments if run else []), call.buffers(results if run else [])
            frame.stage, frame.future = _STAGES[stage], None
            the.raised(_Handler(handlers[stage])(ctypes.addressof(frame)))
            if frame.future:
                the.futures[frame.future][0].wait()
                _, error = the.futures.pop(frame.future)
                the.raised(error)
    finally:
        del the.calls[key]


def call_original(address, version, arguments, results, opaque):
    """Calls a function of the older conventions: `void f(void* out, const void** in)`, in version 2
    with the opaque string, its length and a status.

    Args:
        address: the address of the function.
        version: 1 or 2.
        arguments, results: arrays.
        opaque: bytes.
    """
    ins = (c_void_p * max(len(arguments), 1))(*[x.ctypes.data for x in arguments])
    if len(results) == 1:
        out = results[0].ctypes.data
    else:
        outs = (c_void_p * max(len(results), 1))(*[x.ctypes.data for x in results])
        out = ctypes.addressof(outs)
    if version == 1:
        CFUNCTYPE(None, c_void_p, c_void_p)(address)(out, ctypes.addressof(ins))
        return
    status = ctypes.create_string_buffer(256)
    CFUNCTYPE(None, c_void_p, c_void_p, c_char_p, c_size_t, c_void_p)(address)(out, ctypes.addressof(ins), opaque, len(opaque), ctypes.addressof(status))
