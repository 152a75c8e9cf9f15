"""`jax._src.hardware_utils`: the devices of the machine.

Invariant: no driver is called.
"""

import pathlib

__all__ = ["has_visible_nvidia_gpu", "num_available_tpu_chips_and_device_id"]


def num_available_tpu_chips_and_device_id():
    """(how many chips of that kind there are, the first one's id): Ferrax uses none."""
    return 0, None


def has_visible_nvidia_gpu():
    """Whether the system has a device file of such a GPU."""
    return any(pathlib.Path("/dev").glob("nvidia[0-9]*"))
