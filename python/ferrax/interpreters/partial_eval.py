"""Traces functions to programs, and removes unused parts of programs.

    jaxpr, out_avals, consts = trace_to_jaxpr_dynamic(wrap_init(f), avals)      # f: of leaves
    dce_jaxpr(jaxpr, [True, False])                                              # without equations that only the second output needs

Invariant: programs are objects of the extension; no function changes one in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from .. import _core
from .._core import Literal
from ._kinds import DynamicJaxprTracer, JaxprTracer

if TYPE_CHECKING:
    from .._core import Jaxpr, ShapedArray
    from ..extend.linear_util import WrappedFun

__all__ = [
    "DynamicJaxprTracer",
    "JaxprTracer",
    "PartialVal",
    "Val",
    "custom_partial_eval_rules",
    "dce_jaxpr",
    "dce_jaxpr_consts",
    "dce_rules",
    "partial_eval_jaxpr_custom_rules",
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]

Val = Any
# Tables of rules, as libraries expect them. Entries that are added here are not used.
custom_partial_eval_rules, dce_rules, partial_eval_jaxpr_custom_rules = {}, {}, {}


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[Any], *, keep_inputs: list[bool] | None = None, lower: bool = False, auto_dce: bool = False
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """The program of a `WrappedFun` of leaves, for arguments of given types.

    Args:
        fun: WrappedFun of arrays that returns a sequence of arrays.
        in_avals: list of ShapedArray, the types of the arguments.
        keep_inputs: list of bools, the inputs that the program keeps; by default all.
        lower: must be False.
        auto_dce: bool; whether equations are dropped whose results are not used.

    Returns:
        (Jaxpr, list of the results' types, list of the values of its `constvars`).

    Raises:
        NotImplementedError: `lower` is True.
    """
    if lower:
        raise NotImplementedError("trace_to_jaxpr_dynamic: lower=True: there is one kind of program")
    program, consts = _core.make_program(lambda *xs: fun.call_wrapped(*xs), list(in_avals), user_fun=fun.f)
    jaxpr = program.jaxpr
    if auto_dce:
        jaxpr, _ = dce_jaxpr(jaxpr, True, True)
    if keep_inputs is not None:
        jaxpr = jaxpr.replace(invars=[v for v, keep in zip(jaxpr.invars, keep_inputs, strict=True) if keep])
    return jaxpr, list(program.out_avals), list(consts)


def _each(flags, n):
    return [flags] * n if isinstance(flags, bool) else list(flags)


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[bool]]:
    """A program without the outputs that are not used, and without the equations and inputs that
    only they need.

    Equations with effects stay; bodies of equations are cut too.

    Args:
        jaxpr: Jaxpr.
        used_outputs: sequence of bools, one for each output, or one bool for all.
        instantiate: sequence of bools, one for each input, or one bool for all: whether the input
          stays though it is not used.

    Returns:
        Pair: the Jaxpr, and a list of bools, true for the inputs that it keeps.
    """
    cut, kept = jaxpr._dce(_each(used_outputs, len(jaxpr.outvars)), _each(instantiate, len(jaxpr.invars)))
    return cut, kept


def dce_jaxpr_consts(jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[bool], list[bool]]:
    """As `dce_jaxpr`; unused constants are dropped as well.

    Args:
        jaxpr: Jaxpr.
        used_outputs: sequence of bools, one for each output, or one bool for all.
        instantiate: sequence of bools, one for each input, or one bool for all: whether the input
          stays though it is not used.

    Returns:
        (Jaxpr, list of bools for the `constvars` that it keeps, list of bools for the inputs that
        it keeps).
    """
    cut, kept = dce_jaxpr(jaxpr, used_outputs, instantiate)
    read = {v for eqn in cut.eqns for v in eqn.invars if not isinstance(v, Literal)} | {v for v in cut.outvars if not isinstance(v, Literal)}
    used = [v in read for v in cut.constvars]
    return cut.replace(constvars=[v for v, u in zip(cut.constvars, used, strict=True) if u]), used, kept


class PartialVal(NamedTuple):
    """An input or a result for which either only the type is known (`aval`), or the value (`value`;
    `aval` is None).
    """

    aval: Any
    value: Any

    @classmethod
    def known(cls, const: Any) -> Self:
        """Of a value."""
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: ShapedArray) -> Self:
        """Of a type."""
        return cls(aval, None)

    def is_known(self) -> bool:
        """Whether the value is known."""
        return self.aval is None

    def get_known(self) -> Any | None:
        """The value, or None."""
        return self.value if self.is_known() else None

    def get_aval(self) -> ShapedArray:
        """The type, of the value if that is known."""
        return _core.get_aval(self.value) if self.is_known() else self.aval


def _split(jaxpr, known):
    """The equations that need no input, and the others. known: variables with values; those of the
    former are added.
    """
    early, late = [], []
    for eqn in jaxpr.eqns:
        if not eqn.effects and all(isinstance(v, Literal) or v in known for v in eqn.invars):
            early.append(eqn)
            known.update(eqn.outvars)
        else:
            late.append(eqn)
    return early, late


def trace_to_jaxpr_nounits(fun: WrappedFun, pvals: Sequence[Any], instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[Any], list[Any]]:
    """Splits a `WrappedFun` of leaves into the part that can be computed from the known inputs, and
    the program of the rest.

    Args:
        fun: a function of leaves, which returns leaves.
        pvals: a `PartialVal` for each input.
        instantiate: whether results that are known become outputs of the program all the same: one
          for all, or one for each.

    Returns:
        (open program of the unknown inputs, whose outputs are the unknown results and whose
        constvars are the known values that it needs; a `PartialVal` for each result; the values of
        the constvars).
    """
    places = [i for i, pv in enumerate(pvals) if not pv.is_known()]
    values = [pv.value for pv in pvals]

    def run(*unknown):
        merged = list(values)
        for i, x in zip(places, unknown, strict=True):
            merged[i] = x
        return fun.call_wrapped(*merged)

    program, consts = _core.make_program(run, [pvals[i].aval for i in places], user_fun=fun.f)
    jaxpr = program.jaxpr
    consts = list(consts)
    known = set(jaxpr.constvars)
    early, late = _split(jaxpr, known)
    flags = _each(instantiate, len(jaxpr.outvars))
    is_known = [(isinstance(v, Literal) or v in known) for v in jaxpr.outvars]
    read = {v for eqn in late for v in eqn.invars if not isinstance(v, Literal)}
    read.update(v for v, k, i in zip(jaxpr.outvars, is_known, flags, strict=True) if k and i and not isinstance(v, Literal))
    crossing = [v for eqn in early for v in eqn.outvars if v in read] + [v for v in jaxpr.constvars if v in read]
    finals = [v for v, k in zip(jaxpr.outvars, is_known, strict=True) if k]
    first = jaxpr.replace(eqns=early, invars=[], outvars=[*finals, *crossing])
    got = list(_core.eval_program(_core.ClosedJaxpr(first, consts), consts))
    ends = iter(got[: len(finals)])
    outs = []
    for aval, k, i in zip(program.out_avals, is_known, flags, strict=True):
        value = next(ends) if k else None
        outs.append(PartialVal.known(value) if k and not i else PartialVal.unknown(aval))
    rest = [v for v, k, i in zip(jaxpr.outvars, is_known, flags, strict=True) if not k or i]
    return jaxpr.replace(eqns=late, constvars=crossing, outvars=rest), outs, got[len(finals) :]
