"""Devices in a grid.

    Mesh(create_device_mesh((2, 2)), ("x", "y"))

Invariant: devices are in the order of their ids, because they are all equivalent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._runtime.devices import devices as all_devices

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


def create_device_mesh(
    mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, *, contiguous_submeshes: bool = False, allow_split_physical_axes: bool = False
) -> np.ndarray:
    """An array of devices, in the order of their numbers.

    Args:
        mesh_shape: sequence of ints, its shape.
        devices: sequence of devices; None: all.
        contiguous_submeshes: must be False: devices are in no network.
        allow_split_physical_axes: must be False, likewise.

    Returns:
        numpy.ndarray of devices, of shape `mesh_shape`.

    Raises:
        ValueError: there is another number of devices.
        NotImplementedError: an option about networks is True.


    """
    if contiguous_submeshes or allow_split_physical_axes:
        raise NotImplementedError("create_device_mesh: contiguous_submeshes and allow_split_physical_axes concern networks of devices, and there are none here")
    found = list(all_devices() if devices is None else devices)
    if len(found) != int(np.prod(mesh_shape, dtype=int)):
        raise ValueError(f"Number of devices {len(found)} must equal the product of mesh_shape {tuple(mesh_shape)}")
    grid = np.empty(len(found), object)
    grid[:] = found
    return grid.reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """An array of devices whose shape is the product of one for the devices of a machine and one
    for the machines.

    There is one machine here.

    Args:
        mesh_shape: sequence of ints, the shape within the machine.
        dcn_mesh_shape: sequence of as many ones, the shape of the machines.
        devices: sequence of devices; None: all.
        process_is_granule: bool; ignored.
        should_sort_granules_by_key: bool; ignored.
        allow_split_physical_axes: must be False: devices are in no network.

    Returns:
        numpy.ndarray of devices.

    Raises:
        ValueError: `dcn_mesh_shape` requests several machines, or the number of devices is wrong.
        NotImplementedError: `allow_split_physical_axes` is True.
    """
    machines = int(np.prod(dcn_mesh_shape, dtype=int))
    if machines != 1:
        raise ValueError(f"Number of slices 1 must equal the product of dcn_mesh_shape {tuple(dcn_mesh_shape)}")
    shape = tuple(a * b for a, b in zip(mesh_shape, dcn_mesh_shape, strict=True))
    return create_device_mesh(shape, devices, allow_split_physical_axes=allow_split_physical_axes)
