"""Equations and variables that a library makes itself.

    newvar = gensym()
    v = newvar(aval)
    eqn = new_jaxpr_eqn([x, y], [v], mul_p, {}, no_effects)
    jaxpr.replace(eqns=[*jaxpr.eqns, eqn], outvars=[v])

Invariant: an equation is checked when a program is made of it.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from ..._core import JaxprEqn, Var
from ..linear_util import DebugInfo

__all__ = ["AbstractToken", "DebugInfo", "DropVar", "Effect", "Effects", "abstract_token", "gensym", "new_jaxpr_eqn"]


class Effect:
    """The base class of effects that libraries define for their own primitives."""


Effects = Set[Effect]


class DropVar(Var):
    """An unused variable.

    In programs that were traced such variables are `Var`, and print as `_`.
    """


class AbstractToken:
    """The type of tokens, which order effects; no value of a program has it, as effects have their
    order without.
    """

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """`Tok`."""
        return "Tok"

    def __repr__(self):
        return "Tok"


abstract_token: AbstractToken = AbstractToken()


def gensym() -> type[Var]:
    """A function that makes new variables.

    Returns:
        A function of a ShapedArray that returns a Var, which equals no other.
    """
    return Var


def new_jaxpr_eqn(invars: Any, outvars: Any, primitive: Any, params: Any, effects: Any = frozenset(), source_info: Any = None, ctx: Any = None) -> JaxprEqn:
    """An equation.

    Args:
        invars: list of Var and Literal.
        outvars: list of Var.
        primitive: Primitive.
        params: dict of the primitive's parameters.
        effects, source_info, ctx: accepted without effect: the effects are the primitive's, and the
          equation has no source line.

    Returns:
        JaxprEqn.
    """
    return JaxprEqn(invars, outvars, primitive, params, effects, source_info, ctx)
