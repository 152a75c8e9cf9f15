"""Rematerialisation: `checkpoint`, names for the values that a policy may keep, and the list of what a function keeps."""

from . import _core
from ._api import checkpoint, remat
from ._autodiff import linearize
from ._policies import checkpoint_policies
from .extend.core import Primitive
from .interpreters import ad, batching
from .tree_util import tree_map

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals", "remat"]


# The identity, with a name that policies can read off.
_name_p = Primitive("name")
_name_p.def_impl(lambda x, *, name: x)
_name_p.def_abstract_eval(lambda aval, *, name: aval)
ad.defjvp(_name_p, lambda t, x, *, name: t)
batching.defvectorized(_name_p)


def checkpoint_name(x, name):
    """A pytree unchanged, its leaves marked with a name that checkpoint policies can ask for."""
    return tree_map(lambda leaf: _name_p.bind(leaf, name=name), x)


def print_saved_residuals(f, *args, **kwargs):
    """Prints type and shape of every value that reverse mode would keep for `f(*args, **kwargs)`."""
    _, f_jvp = linearize(lambda *args: f(*args, **kwargs), *args)
    linear, = f_jvp.args
    for x in linear.residuals:
        print(_core.get_aval(x).str_short(True))
