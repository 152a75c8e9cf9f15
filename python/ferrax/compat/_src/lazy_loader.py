"""`jax._src.lazy_loader`: packages whose submodules are imported late.

Invariant: nothing is imported before its first use.
"""

import pkgutil
import sys

__all__ = ["attach"]


def attach(package_name, submodules):
    """(`__getattr__`, `__dir__`, `__all__`) of a package whose submodules are imported at their
    first use.

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
