"""Names that can be imported, derived from and written in annotations, and that raise an error that
says why when they are used.

    Shape = refused("jaxlib.xla_client.Shape", "there is no such compiler here")
    Shape.tuple()                               # NotImplementedError: jaxlib.xla_client.Shape.tuple: there is no such compiler here

Invariant: calling such a name, or an attribute of it, raises NotImplementedError.
"""

__all__ = ["Refused", "refused"]


class Refused(type):
    """The class of these names: each is a class without objects."""

    def __call__(cls, *args, **kwargs):
        raise NotImplementedError(cls.sentence)

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")
        return refused(f"{cls.path}.{name}", cls.why)

    def __getitem__(cls, item):
        return cls

    def __repr__(cls):
        return cls.path


def refused(path, why):
    """An object for this path, whose use raises an error with the reason."""
    module, _, name = path.rpartition(".")
    return Refused(name, (), {"__module__": module, "path": path, "why": why, "sentence": f"{path}: {why}"})
