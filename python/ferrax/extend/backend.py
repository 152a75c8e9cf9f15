"""The clients of the platforms: what stands behind their devices.

    get_backend().platform                  # "cpu"

Invariant: one client a platform, the same object that its devices name as `client`.
"""

from .._api import clear_caches
from .._config import config
from .._devices import client_of, default_backend, devices

__all__ = [
    "backend_xla_version",
    "backends",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "get_backend",
    "get_compile_options",
    "get_default_device",
    "register_backend_cache",
    "register_backend_factory",
]


def get_backend(platform=None):
    """The client of a platform: of the default one if none is named; a client is given back as it is.

    Args:
      platform: a name (`"cpu"`), a client, or None.

    Raises:
      RuntimeError: there is no such platform.
    """
    if platform is None:
        return client_of(default_backend())
    return client_of(devices(platform)[0].platform) if isinstance(platform, str) else platform


def get_default_device():
    """The device on which arrays are made unless another is named."""
    chosen = config.jax_default_device
    return chosen if hasattr(chosen, "platform") else devices(chosen)[0]


def backends():
    """The clients of the default platform and of the CPU, by name; others are opened when they are asked for."""
    return {platform: get_backend(platform) for platform in dict.fromkeys(("cpu", default_backend()))}


def clear_in_memory_compilation_cache():
    """Forgets compiled programs."""
    clear_caches()


def clear_backends():
    """Forgets compiled programs. Devices stay: arrays are on them."""
    clear_caches()


def register_backend_cache(cache, name, util=None):
    """`cache`, which `clear_backends` leaves as it is."""
    return cache


def backend_xla_version(platform=None):
    """The version of another compiler: there is none."""


def get_compile_options(**options):
    """Refused: options of another compiler.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError("get_compile_options: programs are compiled here, without options")


def register_backend_factory(name, factory, *, priority=0, fail_quietly=True, experimental=False, make_topology=None, c_api=None):
    """Refused: devices are those that the library opens.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(f"register_backend_factory({name!r}): there are the platforms 'cpu' and 'gpu'; no other can be added")
