"""The clients of the platforms: what stands behind their devices.

    get_backend().platform                  # "cpu"

Invariant: one client a platform, the same object that its devices name as `client`.
"""

from .._config import config
from .._devices import client_of, default_backend, devices

__all__ = ["get_backend", "get_default_device"]


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
