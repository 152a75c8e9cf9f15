"""The devices of a machine, for ahead-of-time compilation. Only those of this machine are known.

Invariant: a topology's devices are those that `jax.devices` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from .._runtime.devices import devices as _devices
from ..sharding import Mesh
from .mesh_utils import create_device_mesh

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """Devices."""

    def __init__(self, devices: Sequence[Any]) -> None:
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices of a platform of this machine.

    Args:
        platform: str, its name; None: the default platform.

    Returns:
        TopologyDescription.
    """
    return TopologyDescription(_devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any) -> NoReturn:
    """Refused: programs are compiled for the machine on which they run.

    Args:
        topology_name: str.
        platform: str.
        **kwargs: options.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        f"get_topology_desc({topology_name!r}, platform={platform!r}): programs are compiled for the machine that they run on; get_attached_topology() is this one"
    )


def make_mesh(topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: Sequence[Any], *, contiguous_submeshes: bool = False) -> Mesh:
    """A mesh of a topology's devices.

    Args:
        topo: TopologyDescription.
        mesh_shape: sequence of ints, the size of each axis.
        axis_names: sequence of names, one for each axis.
        contiguous_submeshes: must be False: devices are in no network.

    Returns:
        Mesh.

    Raises:
        ValueError: there is another number of devices.
        NotImplementedError: `contiguous_submeshes` is True.
    """
    return Mesh(create_device_mesh(mesh_shape, list(topo.devices), contiguous_submeshes=contiguous_submeshes), axis_names)
