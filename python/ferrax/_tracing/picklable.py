"""The results of transforms: functions that are pickled as a transform and its function.

Invariant: such a function is called, bound as a method, printed and inspected like the function
that it wraps; a copy is the object itself.

    pickle.loads(pickle.dumps(jax.grad(f)))(2.0)        # f is found by its name, and differentiated again
"""

import sys
import types

from .._base.tracebacks import api_boundary


class Transformed:
    """`call`, which pickles as `transform(*args, **options)`."""

    __slots__ = ("__dict__", "__weakref__", "_call", "_made")

    def __init__(self, call, made):
        self._call, self._made = call, made
        self.__dict__.update(call.__dict__, __module__=call.__module__, __name__=call.__name__, __qualname__=call.__qualname__, __doc__=call.__doc__)

    @api_boundary
    def __call__(self, /, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name):
        # code, defaults, closure and the other attributes of a function
        if name in ("_call", "_made"):
            raise AttributeError(name)
        return getattr(self._call, name)

    def __repr__(self):
        return f"<function {self.__qualname__} at {id(self):#x}>"

    def __copy__(self):
        return self

    def __deepcopy__(self, _memo):
        return self

    def __reduce__(self):
        if name := public_name(self):
            return name
        transform, args, options = self._made
        return _again, (transform, args, options)


def _again(transform, args, options):
    return transform(*args, **options)


def restorable(transform, *args, **options):
    """Decorates the function that `transform(*args, **options)` returns, so that it can be
    pickled.
    """
    return lambda call: Transformed(call, (transform, args, options))


def public_name(f):
    """The name under which an object is found in its module, such as a decorated function's; None
    if there is none.
    """
    module, inner = sys.modules.get(getattr(f, "__module__", None)), getattr(f, "__wrapped__", None)
    for name in (getattr(f, "__qualname__", None), getattr(inner, "__qualname__", None)):
        if isinstance(name, str) and "<" not in name:
            found = module
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is f:
                return name
    return None


def plain(fun):
    """The plain function inside a transform's result; any other function itself."""
    return fun._call if type(fun) is Transformed else fun
