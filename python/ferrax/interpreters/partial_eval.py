"""Programs made of functions, and cut to what is used.

    jaxpr, out_avals, consts = trace_to_jaxpr_dynamic(wrap_init(f), avals)      # f: of leaves
    dce_jaxpr(jaxpr, [True, False])                                              # without what the second output alone needs

Invariant: programs are the extension's; nothing here changes one.
"""

from .. import _core
from .._core import Literal

__all__ = ["dce_jaxpr", "dce_jaxpr_consts", "trace_to_jaxpr_dynamic"]


def trace_to_jaxpr_dynamic(fun, in_avals, *, keep_inputs=None, lower=False, auto_dce=False):
    """The program of a `WrappedFun` of leaves on arguments of these types: (open program, types of the results, values of its constvars).

    keep_inputs: those to keep, by default all. lower: make no difference, as there is no other kind of program. auto_dce: drop what is not used.
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


def dce_jaxpr(jaxpr, used_outputs, instantiate=False):
    """An open program with those outputs alone that are used, and the equations and inputs that they need, or that have effects.

    used_outputs: a truth for each output, or one for all. instantiate: inputs to keep though nobody reads them.
    Returns (program, which inputs it has).
    """
    used = _each(used_outputs, len(jaxpr.outvars))
    outs = [v for v, u in zip(jaxpr.outvars, used, strict=True) if u]
    needed, eqns = {v for v in outs if not isinstance(v, Literal)}, []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(v in needed for v in eqn.outvars):
            eqns.append(eqn)
            needed.update(v for v in eqn.invars if not isinstance(v, Literal))
    kept = [v in needed or i for v, i in zip(jaxpr.invars, _each(instantiate, len(jaxpr.invars)), strict=True)]
    invars = [v for v, k in zip(jaxpr.invars, kept, strict=True) if k]
    return jaxpr.replace(invars=invars, outvars=outs, eqns=list(reversed(eqns))), kept


def dce_jaxpr_consts(jaxpr, used_outputs, instantiate=False):
    """As `dce_jaxpr`, which constvars are used as well: (program, which constvars it has, which inputs it has)."""
    cut, kept = dce_jaxpr(jaxpr, used_outputs, instantiate)
    read = {v for eqn in cut.eqns for v in eqn.invars if not isinstance(v, Literal)} | {v for v in cut.outvars if not isinstance(v, Literal)}
    used = [v in read for v in cut.constvars]
    return cut.replace(constvars=[v for v, u in zip(cut.constvars, used, strict=True) if u]), used, kept
