"""JAX's utilities for loading packages and querying the machine: `lazy_loader`, `pickle_util`, `hardware_utils`.

Invariant: nothing is imported before its first use.
"""

import pathlib
import pkgutil
import sys

__all__ = ["attach", "dumps", "has_visible_nvidia_gpu", "loads", "num_available_tpu_chips_and_device_id"]


def attach(package_name, submodules):
    """(`__getattr__`, `__dir__`, `__all__`) of a package whose submodules are imported at their first use.

    Raises:
      RuntimeError: the caller has no name.
    """
    owner = sys._getframe(1).f_globals.get("__name__")
    if owner is None:
        raise RuntimeError("Cannot determine the ``__name__`` of the caller.")
    names = list(submodules)

    def load(name):
        if name not in names:
            raise AttributeError(f"module '{package_name}' has no attribute '{name}'")
        module = pkgutil.resolve_name(f"{package_name}.{name}")
        setattr(sys.modules[owner], name, module)
        return module

    return load, lambda: names, names


def dumps(obj):
    """The object as bytes, its functions and classes by value: by `cloudpickle`."""
    return pkgutil.resolve_name("cloudpickle:dumps")(obj)


def loads(data):
    """Loads an object from bytes with `cloudpickle`."""
    return pkgutil.resolve_name("cloudpickle:loads")(data)


def num_available_tpu_chips_and_device_id():
    """(how many chips of that kind there are, the first one's id): Ferrax uses none."""
    return 0, None


def has_visible_nvidia_gpu():
    """Whether the system has a device file of such a GPU."""
    return any(pathlib.Path("/dev").glob("nvidia[0-9]*"))
