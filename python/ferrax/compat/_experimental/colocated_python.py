"""`jax.experimental.colocated_python`, Python that runs where the devices are: in this process,
which is where all of them are.

Invariant: code next to the devices runs like any other code of the process.
"""

from ..._runtime.devices import devices
from ...sharding import Mesh

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]


def colocated_cpu_devices(devices_or_mesh):
    """The CPU devices that belong to these devices: the devices themselves if they are CPU devices,
    else the first CPU device.

    For a mesh, the mesh of them.
    """
    beside = lambda d: d if d.platform == "cpu" else devices("cpu")[0]
    if isinstance(devices_or_mesh, Mesh):
        flat = [beside(d) for d in devices_or_mesh.devices.flat]
        places = devices_or_mesh.devices.copy()
        places.flat = flat
        return Mesh(places, devices_or_mesh.axis_names, devices_or_mesh.axis_types)
    return tuple(map(beside, devices_or_mesh))


def colocated_python(fun):
    """`fun`: it is called in this process."""
    return fun


def colocated_python_class(cls):
    """`cls`: its objects are created in this process."""
    return cls
