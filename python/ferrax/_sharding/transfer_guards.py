"""Transfers between the host and devices that are logged or refused.

    with jax.transfer_guard("disallow"):
        step(np.ones(3))                    # an error: an implicit transfer
        step(jax.device_put(np.ones(3)))    # an explicit one, which "disallow_explicit" refuses

Invariant: the extension calls `transfer` for what the user's code passes, and only while a guard is
set.
"""

import logging
import sys
from typing import Any

from .. import _core
from ..errors import JaxRuntimeError
from .shardings import SingleDeviceSharding

_logger = logging.getLogger(__name__)


def transfer(way: str, explicit: bool, aval: _core.ShapedArray, device: _core.Device, given: Any = None) -> None:
    """Logs or refuses a transfer, according to the guard for its direction.

    Args:
        way: "host-to-device" or "device-to-device".
        explicit: whether the user requested it, by `device_put`.
        aval: the type of the array.
        device: the destination.
        given: a number, or None. A number counts only if it is an argument of the function of this
          package that runs.

    Raises:
        JaxRuntimeError: such transfers are disallowed.
    """
    if given is not None and not _is_local(given, sys._getframe(1)):
        return
    level = _core.config_get("jax_transfer_guard_" + way.replace("-", "_"))
    if explicit and not level.endswith("_explicit"):
        return
    what = f"{way} transfer: aval={aval!r}, dst_sharding={SingleDeviceSharding(device)!r}"
    if level.startswith("log"):
        _logger.warning("%s", what)
    else:
        raise JaxRuntimeError(f"INVALID_ARGUMENT: Disallowed {what}\nhelp: jax.device_put(x) is an explicit transfer, which 'disallow' lets pass")


def _is_local(x, frame):
    """Whether a frame has the object as a local variable, or in a local sequence or dictionary."""
    for v in list(frame.f_locals.values()):
        inside = v.values() if isinstance(v, dict) else v if isinstance(v, (tuple, list)) else ()
        if v is x or any(y is x for y in inside):
            return True
    return False
