"""Rematerialisation: `checkpoint`, names of values for policies, and the list of a function's
residuals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from . import _core
from ._base.tracebacks import api_boundary
from ._transforms.checkpoint import checkpoint, remat
from ._transforms.linear import linearize
from ._transforms.policies import Offloadable, Recompute, Saveable, checkpoint_policies
from ._trees.flat import argument_names
from .extend.core import Primitive
from .interpreters import ad, batching
from .tree_util import tree_flatten, tree_map

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")

__all__ = ["Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals", "remat"]


# The identity, with a name that policies can read off.
_name_p = Primitive("name")
_name_p.def_impl(lambda x, *, name: x)
_name_p.def_abstract_eval(lambda aval, *, name: aval)
ad.defjvp(_name_p, lambda t, x, *, name: t)
batching.defvectorized(_name_p)


def checkpoint_name(x: _T, name: str) -> _T:
    """Gives values a name that checkpoint policies can refer to; the values are unchanged.

    Args:
        x: pytree of arrays.
        name: str.

    Returns:
        Pytree as `x`.
    """
    return tree_map(lambda leaf: _name_p.bind(leaf, name=name), x)


@api_boundary
def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Prints the residuals that reverse mode would store for a call: their types, and the arguments
    or source lines that they come from.

    Args:
        f: function of pytrees of arrays.
        *args, **kwargs: its arguments.

    Returns:
        None.
    """
    for aval, origin in _saved_residuals(f, args, kwargs):
        print(f"{aval.str_short(True)} {origin}")


def _saved_residuals(f, args, kwargs):
    """(type, origin) for each residual: literals, constants, arguments, and then results in the
    order of their equations.
    """
    leaves, in_tree = tree_flatten((args, kwargs))

    def residuals(*leaves):
        def outputs(*leaves):
            args, kwargs = in_tree.unflatten(leaves)
            return f(*args, **kwargs)

        (linear,) = linearize(outputs, *leaves)[1].args
        return list(linear.residuals)

    program, _ = _core.make_program(residuals, [_core.get_aval(x) for x in leaves], user_fun=f)
    names = argument_names(f, args, kwargs)
    origins = {v: (1, 0, "from a constant") for v in program.jaxpr.constvars}
    origins |= {v: (2, i, f"from the argument {name}") for i, (v, name) in enumerate(zip(program.jaxpr.invars, names, strict=True))}
    for i, eqn in enumerate(program.jaxpr.eqns):
        origin = f"{_result(eqn)} from {eqn.source_info or ''}"
        origins |= {v: (3, i, origin) for v in eqn.outvars}
    found = [(*origins.get(v, (0, 0, "from a literal")), v.aval) for v in dict.fromkeys(program.jaxpr.outvars)]
    return [(aval, origin) for _, _, origin, aval in sorted(found, key=lambda r: r[:2])]


def _result(eqn):
    """The name of an equation's results."""
    if eqn.primitive.name == "name":
        return f"named '{eqn.params['name']}'"
    if eqn.primitive.name == "jit":
        return f"output of jitted function '{eqn.params['name']}'"
    return f"output of {eqn.primitive.name}"
