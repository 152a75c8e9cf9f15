"""The clients of the platforms, to which their devices belong.

    get_backend().platform                  # "cpu"

Invariant: one client a platform, the same object that its devices name as `client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from .._base.config import config
from .._core import Device
from .._runtime.devices import client_of, default_backend, devices
from .._tracing.trace import clear_caches

if TYPE_CHECKING:
    from .._runtime.devices import Client

_T = TypeVar("_T")

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


def get_backend(platform: str | Client | None = None) -> Client:
    """The client of a platform.

    Args:
        platform: str ("cpu", "gpu"), a client, which is returned unchanged, or None for the default
          platform.

    Returns:
        The client.

    Raises:
        RuntimeError: the platform does not exist.
    """
    if platform is None:
        return client_of(default_backend())
    return client_of(devices(platform)[0].platform) if isinstance(platform, str) else platform


def get_default_device() -> Device:
    """The device on which arrays are created by default.

    Returns:
        Device.
    """
    chosen = config.jax_default_device
    return chosen if hasattr(chosen, "platform") else devices(chosen)[0]


def backends() -> dict[str, Any]:
    """The clients of the default platform and of the CPU.

    Others are opened when they are first used.

    Returns:
        dict of clients by the platform's name.
    """
    return {platform: get_backend(platform) for platform in dict.fromkeys(("cpu", default_backend()))}


def clear_in_memory_compilation_cache() -> None:
    """Forgets compiled programs.

    Returns:
        None.
    """
    clear_caches()


def clear_backends() -> None:
    """Forgets compiled programs. Devices, and the arrays on them, stay.

    Returns:
        None.
    """
    clear_caches()


def register_backend_cache(cache: _T, name: str, util: Any = None) -> _T:
    """Registers a cache; `clear_backends` does not clear it.

    Args:
        cache: any object.
        name: str, its name.
        util: the module whose caches are cleared as well; ignored.

    Returns:
        `cache`.
    """
    return cache


def backend_xla_version(platform: Any = None) -> None:
    """The version of JAX's own compiler, which is not used here.

    Args:
        platform: str or None.

    Returns:
        None.
    """


def get_compile_options(**options: Any) -> NoReturn:
    """Refused: options of another compiler.

    Args:
        **options: its options.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("get_compile_options: programs are compiled here, without options")


def register_backend_factory(
    name: str, factory: Any, *, priority: int = 0, fail_quietly: bool = True, experimental: bool = False, make_topology: Any = None, c_api: Any = None
) -> NoReturn:
    """Refused: there are the platforms "cpu" and "gpu".

    Args:
        name: str.
        factory: function that makes a client.
        priority, fail_quietly, experimental, make_topology, c_api: options of a registration.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(f"register_backend_factory({name!r}): the platforms are 'cpu' and 'gpu'; others cannot be added")
