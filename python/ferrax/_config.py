"""Configuration: flags with JAX's names, from three sources in rising order: environment, `config.update`, a context manager.

Invariant: a context manager changes the flag for its own thread and block only. Flags that the runtime reads live in the extension
(they are part of its cache keys); the others live here.

    config.update("jax_enable_x64", True)        # or FERRAX_ENABLE_X64=1
    with enable_x64(True): ...
"""

import os
import threading

from . import _core

__version__ = "0.1.0"

_NO_VALUE = type("_NoValue", (), {"__repr__": lambda self: "<no value>"})()
_local = threading.local()


def _bool(name, value):
    if isinstance(value, bool) or value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("y", "yes", "t", "true", "on", "1"):
            return True
        if word in ("n", "no", "f", "false", "off", "0", ""):
            return False
    raise ValueError(f"invalid truth value {value!r} for {name}")


def _one_of(*allowed, optional=False):
    def parse(name, value):
        if optional and value is None:
            return None
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"new enum value must be in {list(allowed)}, got {value} of type {type(value)}.")
        return value

    return parse


def _int(name, value):
    return int(value)


def _any(name, value):
    return value


class Flag:
    """One flag: how a value is checked, its default, and whether the runtime holds it."""

    __slots__ = ("default", "doc", "name", "native", "parse", "value")

    def __init__(self, name, parse, default, doc, native=False):
        self.name, self.parse, self.default, self.native, self.doc = name, parse, default, native, doc
        self.value = default

    def get(self):
        if self.native:
            return _core.config_get(self.name)
        return getattr(_local, self.name, self.value)

    def set(self, value):
        value = self.parse(self.name, value)
        if self.native:
            _core.config_set(self.name, value)
        else:
            self.value = value
            self.changed()

    def changed(self):
        """Called when a value that lives here has changed on this thread."""


class _DeviceFlag(Flag):
    """Where this thread's new arrays are put: the runtime is told through the device, which is a context manager."""

    __slots__ = ()

    def changed(self):
        device = self.get()
        if device is None:
            _core.devices()[0].__exit__()
        else:
            (_core.devices(device)[0] if isinstance(device, str) else device).__enter__()


def _device(name, value):
    if isinstance(value, str):
        try:
            _core.devices(value)
            return value
        except RuntimeError:
            pass
    if value is not None and not isinstance(value, _core.Device):
        raise ValueError(
            "jax.default_device must be passed either a Device object (e.g. `jax.devices('cpu')[0]`) or a platform name string like"
            f" 'cpu' or 'gpu', got: {value!r}"
        )
    return value


_PRECISIONS = (
    "default",
    "high",
    "highest",
    "bfloat16",
    "tensorfloat32",
    "float32",
    "bfloat16_3x",
    "DEFAULT",
    "HIGH",
    "HIGHEST",
    "F16_F16_F16",
    "BF16_BF16_F32",
    "F32_F32_F32",
    "TF32_TF32_F32",
    "fastest",
)

FLAGS = {
    f.name: f
    for f in (
        Flag("jax_enable_x64", _bool, False, "64-bit types by default, and kept when asked for", native=True),
        Flag("jax_threefry_partitionable", _bool, True, "the counter layout of random bits", native=True),
        Flag("jax_debug_nans", _bool, False, "raise FloatingPointError at the operation that makes a NaN", native=True),
        Flag("jax_debug_infs", _bool, False, "raise FloatingPointError at the operation that makes an infinity", native=True),
        Flag("jax_numpy_rank_promotion", _one_of("allow", "warn", "raise"), "allow", "implicit broadcasting of ranks", native=True),
        Flag("jax_numpy_dtype_promotion", _one_of("standard", "strict"), "standard", "implicit promotion of dtypes", native=True),
        Flag("jax_disable_jit", _bool, False, "run jitted functions and loops operation by operation", native=True),
        Flag("jax_num_cpu_devices", _int, -1, "how many CPU devices there are; set it before the first array is made", native=True),
        Flag("jax_log_compiles", _bool, False, "log each compilation with the time it took", native=True),
        Flag("jax_explain_cache_misses", _bool, False, "log why a jitted function was traced again", native=True),
        Flag("jax_check_tracer_leaks", _bool, False, "raise when a trace ends while one of its tracers is still alive", native=True),
        Flag("jax_default_matmul_precision", _one_of(*_PRECISIONS, optional=True), None, "precision of matrix products", native=True),
        _DeviceFlag("jax_default_device", _device, None, "where new arrays are put"),
        Flag("jax_platforms", _any, None, "the platforms there are, separated by commas, the default first", native=True),
        Flag("jax_enable_checks", _bool, False, "verify every program that is built", native=True),
        Flag("jax_default_prng_impl", _one_of("threefry2x32"), "threefry2x32", "the generator of new keys"),
        Flag("jax_enable_custom_prng", _bool, False, "make PRNGKey return typed keys"),
        Flag("jax_legacy_prng_key", _one_of("allow", "warn", "error"), "allow", "what to do when a raw key is drawn from"),
        Flag("jax_random_seed_offset", _int, 0, "added to every seed"),
        Flag("jax_softmax_custom_jvp", _bool, True, "the memory-saving derivative of softmax"),
        Flag("jax_high_dynamic_range_gumbel", _bool, False, "draw gumbel variates with more bits in the tail"),
    )
}


class Config:
    """`config.update(name, value)`; every flag is also an attribute, `config.jax_enable_x64`."""

    def update(self, name, val):
        """Sets a flag for the whole process.

        Raises:
          AttributeError: there is no such flag.
          ValueError: the value is not one of the flag's.
        """
        if name not in FLAGS:
            raise AttributeError(f"Unrecognized config option: {name}")
        FLAGS[name].set(val)

    def read(self, name):
        """The flag's present value. AttributeError where there is no such flag."""
        if name not in FLAGS:
            raise AttributeError(f"Unrecognized config option: {name}")
        return FLAGS[name].get()

    @property
    def values(self):
        """All flags and their values."""
        return {name: flag.get() for name, flag in FLAGS.items()}

    @property
    def x64_enabled(self):
        """Whether 64-bit types are on."""
        return FLAGS["jax_enable_x64"].get()

    def __getattr__(self, name):
        if name in FLAGS:
            return FLAGS[name].get()
        raise AttributeError(f"'Config' object has no attribute '{name}'")

    def __dir__(self):
        return [*super().__dir__(), *FLAGS]


config = Config()


class _Setting:
    """A flag's context manager: `enable_x64(True)` in a `with`; `.value` is the present value."""

    def __init__(self, name):
        self._flag = FLAGS[name]
        self.__name__ = self.__qualname__ = name.removeprefix("jax_")
        self.__doc__ = f"Context manager for {name}: {self._flag.doc}, within the block and on this thread."

    @property
    def value(self):
        return self._flag.get()

    def __call__(self, new_val=_NO_VALUE):
        if new_val is _NO_VALUE:
            if self._flag.parse is not _bool:
                raise TypeError(f"Context manager for {self._flag.name} config option requires an argument representing the new value for the config option.")
            new_val = True
        return _Override(self._flag, self._flag.parse(self._flag.name, new_val))


class _Override:
    """Holds a flag at a value inside `with`. Entering twice nests."""

    def __init__(self, flag, value):
        self._flag, self._value, self._before = flag, value, []

    def __enter__(self):
        flag = self._flag
        if flag.native:
            self._before.append(_core.config_set_local(flag.name, self._value))
        else:
            self._before.append(getattr(_local, flag.name, _NO_VALUE))
            setattr(_local, flag.name, self._value)
            flag.changed()

    def __exit__(self, *exc):
        flag, before = self._flag, self._before.pop()
        if flag.native:
            _core.config_set_local(flag.name, before)
        else:
            if before is _NO_VALUE:
                delattr(_local, flag.name)
            else:
                setattr(_local, flag.name, before)
            flag.changed()


enable_x64 = _Setting("jax_enable_x64")
threefry_partitionable = _Setting("jax_threefry_partitionable")
debug_nans = _Setting("jax_debug_nans")
debug_infs = _Setting("jax_debug_infs")
numpy_rank_promotion = _Setting("jax_numpy_rank_promotion")
numpy_dtype_promotion = _Setting("jax_numpy_dtype_promotion")
log_compiles = _Setting("jax_log_compiles")
explain_cache_misses = _Setting("jax_explain_cache_misses")
check_tracer_leaks = checking_leaks = _Setting("jax_check_tracer_leaks")
default_matmul_precision = _Setting("jax_default_matmul_precision")
default_device = _Setting("jax_default_device")
enable_checks = _Setting("jax_enable_checks")
default_prng_impl = _Setting("jax_default_prng_impl")
enable_custom_prng = _Setting("jax_enable_custom_prng")
legacy_prng_key = _Setting("jax_legacy_prng_key")
softmax_custom_jvp = _Setting("jax_softmax_custom_jvp")


def disable_jit(disable=True):
    """Context manager: jitted functions and loops inside run operation by operation, so that values can be looked at."""
    return _Override(FLAGS["jax_disable_jit"], bool(disable))


def disable_x64():
    """Context manager: the older spelling of `enable_x64(False)`."""
    return enable_x64(False)


def _read_environment():
    for name, flag in FLAGS.items():
        text = os.environ.get("FERRAX_" + name.removeprefix("jax_").upper())
        if text is not None:
            flag.set(text)


_read_environment()
