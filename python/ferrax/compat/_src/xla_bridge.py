"""`jax._src.xla_bridge`: platforms and their clients.

Invariant: a platform is known by its name, opened or not.
"""

import collections.abc
import logging

from ... import _core
from ..._runtime.devices import client_of, default_backend

__all__ = [
    "DEFAULT_CPU_PLATFORM",
    "backends",
    "backends_are_initialized",
    "canonicalize_platform",
    "default_backend",
    "expand_platform_alias",
    "get_device_backend",
    "is_known_platform",
    "known_platforms",
    "logger",
]


logger = logging.getLogger("jax")
DEFAULT_CPU_PLATFORM = "cpu"


def known_platforms():
    """The platforms there are."""
    return {"cpu", "gpu"}


def is_known_platform(platform):
    """Whether a platform has a known name."""
    return platform in ("cpu", "gpu", "cuda", "rocm", "tpu", "METAL")


def canonicalize_platform(platform):
    """A platform's own name."""
    return platform


def expand_platform_alias(platform):
    """The platforms for a name."""
    return ["cuda", "rocm"] if platform == "gpu" else [platform]


def backends_are_initialized():
    """Whether a device has been opened."""
    return _core.has_cpus()


def get_device_backend(device=None):
    """The client of a device, by default of the default one."""
    return client_of(default_backend()) if device is None else device.client


class _Backends(collections.abc.Mapping):
    """The clients of the platforms in use, by name: none before the first array."""

    def __getitem__(self, platform):
        if platform not in self:
            raise KeyError(platform)
        return client_of(platform)

    def __contains__(self, platform):
        return platform in tuple(self)

    def __iter__(self):
        return iter(("cpu",) if _core.has_cpus() else ())

    def __len__(self):
        return int(_core.has_cpus())


backends = _Backends()
