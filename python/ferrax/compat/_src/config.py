"""`jax._src.config`: the flags as objects, `enable_x64.value`, and the functions that make flags of
one's own.

Invariant: a flag of Ferrax is the one in `config`; a flag that a library creates belongs to the
library, and Ferrax does not read it.
"""

import contextlib
import enum
import os
import threading

from ... import _core
from ..._base.config import Config, _bool, _Setting, config, disable_jit, make_user_context
from ..._base.flags import FLAGS

__all__ = ["Config", "bool_env", "bool_flag", "bool_state", "config", "disable_jit", "enum_flag", "enum_state", "int_env", "int_flag", "make_user_context"]


class NoDefault:
    """The default if none was given."""


no_default = NoDefault()
already_configured_with_absl = False
update, parse_flags_with_absl = config.update, config.parse_flags_with_absl


class EffortLevel(enum.Enum):
    """How hard a compiler tries."""

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


class State:
    """A flag that a library makes: `state.value`, and `with state(new):`."""

    def __init__(self, name, default, help=""):
        self.name, self._global, self.__doc__ = name, default, help
        self._local = threading.local()

    @property
    def value(self):
        """The present value."""
        return getattr(self._local, "value", self._global)

    def get_local(self):
        """The value of this thread alone, or the default."""
        return getattr(self._local, "value", no_default)

    def get_global(self):
        """The value of all threads."""
        return self._global

    def set_global(self, value):
        """Sets the value of all threads."""
        self._global = value

    def set_local(self, value):
        """Sets the value of this thread."""
        self._local.value = value

    _set, _get = set_global, get_global

    def swap_local(self, value):
        """Sets the value of this thread; returns the previous one."""
        before = self.value
        self._local.value = value
        return before

    @contextlib.contextmanager
    def __call__(self, value=True):
        """Sets the value inside a block."""
        before = self.swap_local(value)
        try:
            yield
        finally:
            self._local.value = before


def bool_env(varname, default):
    """A truth from the environment."""
    return _bool(varname, os.getenv(varname, str(default)))


def int_env(varname, default):
    """A number from the environment."""
    return int(os.getenv(varname, str(default)))


def bool_state(name, default=False, help="", **_options):
    """A library's flag with the values True and False."""
    return State(name, bool_env(name.upper(), default), help)


def _state(name, default=None, help="", *_more, **_options):
    return State(name, os.getenv(name.upper(), default), help)


def enum_state(name, enum_values, default, help="", **_options):
    """A library's flag with the values `enum_values`, which are strings."""
    return _state(name, default, help)


int_state = float_state = string_state = optional_string_state = string_or_object_state = _state
optional_enum_state = enum_class_state = enum_flag = enum_state
bool_flag, int_flag, float_flag, string_flag = bool_state, _state, _state, _state


def trace_context():
    """The settings that programs depend on."""
    return _core.trace_context()


def __getattr__(name):
    if f"jax_{name}" in FLAGS or name in FLAGS:
        value = _Setting(name if name in FLAGS else f"jax_{name}")
        globals()[name] = value
        return value
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def explicit_x64():
    """The setting for 64-bit types."""
    return config.jax_enable_x64
