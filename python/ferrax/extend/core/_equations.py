"""Equations and variables that a library makes itself.

    newvar = gensym()
    v = newvar(aval)
    eqn = new_jaxpr_eqn([x, y], [v], mul_p, {}, no_effects)
    jaxpr.replace(eqns=[*jaxpr.eqns, eqn], outvars=[v])

Invariant: an equation is checked when a program is made of it.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any, NamedTuple

from ..._core import JaxprEqn, Var

__all__ = ["AbstractToken", "DebugInfo", "DropVar", "Effect", "Effects", "abstract_token", "gensym", "new_jaxpr_eqn"]


class Effect:
    """The base class of effects that libraries define for their own primitives."""


Effects = Set[Effect]


class DropVar(Var):
    """An unused variable. In programs that were traced such variables are `Var`, and print as `_`."""


class AbstractToken:
    """The type of tokens, which order effects; no value of a program has it, as effects have their order without."""

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """`Tok`."""
        return "Tok"

    def __repr__(self):
        return "Tok"


abstract_token: AbstractToken = AbstractToken()


class DebugInfo(NamedTuple):
    """The origin of a traced function, and the names of its arguments and results."""

    traced_for: str
    func_src_info: str
    arg_names: Any = None
    result_paths: Any = None

    @property
    def func_name(self) -> str:
        """The function's name."""
        return self.func_src_info.split(" ")[0]

    @property
    def func_filename(self) -> str | None:
        """The function's file, or None."""
        _, at, rest = self.func_src_info.partition(" at ")
        return rest.rpartition(":")[0] if at else None

    def replace_func_name(self, name: str) -> DebugInfo:
        """With another name."""
        words = self.func_src_info.split(" ")
        return self._replace(func_src_info=" ".join([name, *words[1:]]))

    def resolve_result_paths(self) -> DebugInfo:
        """The same with paths of results that were computed lazily."""
        return self._replace(result_paths=tuple(self.result_paths())) if callable(self.result_paths) else self

    def with_unknown_names(self) -> DebugInfo:
        """Without names of arguments and results."""
        return self._replace(arg_names=None, result_paths=None)

    def safe_arg_names(self, expected: int) -> tuple[str, ...]:
        """As many names as there are arguments: empty ones where they are not known."""
        known = self.arg_names is not None and len(self.arg_names) == expected
        return tuple(self.arg_names) if known else ("",) * expected

    def safe_result_paths(self, expected: int) -> tuple[str, ...]:
        """As many paths as there are results: empty ones where they are not known."""
        known = isinstance(self.result_paths, tuple) and len(self.result_paths) == expected
        return self.result_paths if known else ("",) * expected


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
        effects, source_info, ctx: accepted without effect: the effects are the primitive's, and the equation has no source line.

    Returns:
        JaxprEqn.
    """
    return JaxprEqn(invars, outvars, primitive, params, effects, source_info, ctx)
