"""Modules whose names are loaded at their first use, and whose dictionary is complete for libraries
that read it.

    vars(jnp.linalg)["norm"]                    # libraries wrap the entries of a module's dictionary

Invariant: reading `module.__dict__` loads every name that `dir(module)` lists; afterwards the
module is an ordinary one.
"""

import sys
import types

__all__ = ["LateModule", "dictionary", "late"]

# The dictionary of a module of any class, as it is now.
dictionary = types.ModuleType.__dict__["__dict__"].__get__


class LateModule(types.ModuleType):
    """A module with its own `__getattr__` and `__dir__`, some of whose names are not loaded yet."""

    @property
    def __dict__(self):
        there = dictionary(self)
        missing = [name for name in there["__dir__"]() if name not in there]
        self.__class__ = types.ModuleType
        for name in missing:
            try:
                there.setdefault(name, getattr(self, name))
            except AttributeError:  # a dtype that this ml_dtypes lacks
                continue
        return there

    def __dir__(self):
        return dictionary(self)["__dir__"]()


def late(name):
    """Replaces the module of this name by one whose dictionary is complete for its readers.

    Called at the end of the module.
    """
    sys.modules[name].__class__ = LateModule
