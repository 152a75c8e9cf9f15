"""Devices in a grid.

    Mesh(create_device_mesh((2, 2)), ("x", "y"))

Invariant: devices stand in the order of their numbers: they are all alike.
"""

import numpy as np

from .._devices import devices as all_devices

__all__ = ["create_device_mesh"]


def create_device_mesh(mesh_shape, devices=None, *, contiguous_submeshes=False, allow_split_physical_axes=False):
    """An array of devices of a shape.

    Args:
      mesh_shape: the shape.
      devices: the devices, by default all.
      contiguous_submeshes, allow_split_physical_axes: how a network's axes may be used; there is no network.

    Raises:
      ValueError: there is another number of devices.
    """
    if contiguous_submeshes or allow_split_physical_axes:
        raise NotImplementedError("create_device_mesh: contiguous_submeshes and allow_split_physical_axes are about networks of devices, and there is none")
    found = list(all_devices() if devices is None else devices)
    if len(found) != int(np.prod(mesh_shape, dtype=int)):
        raise ValueError(f"Number of devices {len(found)} must equal the product of mesh_shape {tuple(mesh_shape)}")
    grid = np.empty(len(found), object)
    grid[:] = found
    return grid.reshape(tuple(mesh_shape))
