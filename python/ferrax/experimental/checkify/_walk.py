"""The evaluation of a program with its checks, equation by equation.

    state, outs = walk(jaxpr, consts, values, state, errors)

Invariant: the outputs are those of the program; the state is carried into the bodies of calls,
loops and branches in which a check may fail, and out of them. All other equations are evaluated
as they are.
"""

import numpy as np

from ... import _core, lax
from ..._transforms.linear import vjp
from ..._trees.flat import is_inexact
from ...custom_derivatives import custom_jvp, custom_vjp, zero_from_primal
from ...extend.core import Literal
from ._checks import silently
from ._equations import CHECKS, ORDER
from ._errors import State
from ._programs import CALLS, bodies_of, check_of, kinds_of, may_fail, opened


def _again(eqn, xs):
    """The results of an equation, whose types have the shardings with which it was recorded,
    `out_sharding` then given or not.
    """
    if not any(v.aval.sharding.mesh.explicit_axes for v in (*eqn.invars, *eqn.outvars) if hasattr(v.aval, "sharding")):
        outs = eqn.primitive.bind(*xs, **eqn.params)
        return list(outs) if eqn.primitive.multiple_results else [outs]
    outs = _core.resolved(eqn.primitive.bind, tuple(xs), dict(eqn.params))
    outs = list(outs) if eqn.primitive.multiple_results else [outs]
    typed = [v.aval.sharding for v in eqn.outvars]
    return [_core.reshard(x, s) if s.mesh.explicit_axes and _core.get_aval(x).sharding != s else x for x, s in zip(outs, typed, strict=True)]


def walk(jaxpr, consts, values, state, errors):
    """(the state after a program, its outputs)."""
    env = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, values, strict=True))
    read = lambda v: _core.asarray(v.val, v.aval.dtype, weak_type=v.aval.weak_type) if isinstance(v, Literal) else env[v]
    for eqn in jaxpr.eqns:
        xs = [read(v) for v in eqn.invars]
        if any(may_fail(opened(b), errors) for b in bodies_of(eqn)):
            state, outs = _WITH_BODIES[eqn.primitive.name](eqn, xs, state, errors)
        else:
            function = check_of(eqn)
            if function is None:
                outs = _again(eqn, xs)
            else:
                outs = []
            for kind in sorted(kinds_of(eqn, errors), key=ORDER.index):
                state = CHECKS[kind](eqn, xs, outs, state)
        env.update(zip(eqn.outvars, outs, strict=True))
    return state, [read(v) for v in jaxpr.outvars]


# ---------------------------------------------------------------- equations with bodies


def _inside(program, values, state, errors):
    jaxpr = opened(program)
    return walk(jaxpr, getattr(program, "consts", []), values, state, errors)


def _call(eqn, xs, state, errors):
    return _inside(eqn.params[CALLS[eqn.primitive.name]], xs, state, errors)


def _custom_call(eqn, xs, state, errors):
    """A call with a custom rule: the rule applies to the values, the error has no derivative."""
    program, n = eqn.params["call_jaxpr"], len(state.values())
    plain = silently(lambda *xs: tuple(eqn.primitive.bind(*xs, **eqn.params)))

    def run(entering, *xs):
        after, outs = _inside(program, xs, state.like(entering), errors)
        return tuple(after.values()), tuple(outs)

    if eqn.primitive.name == "custom_jvp_call":
        checked = custom_jvp(run)

        @checked.defjvp
        def rule(primals, tangents):
            from_plain = _core.jvp(plain, list(primals[1:]), [t if is_inexact(x.dtype) else None for x, t in zip(primals[1:], tangents[1:], strict=True)])[1]
            after, outs = checked(*primals)
            filled = tuple(zero_from_primal(y) if t is None else t for y, t in zip(outs, from_plain, strict=True))
            return (after, outs), (tuple(zero_from_primal(x) for x in after), filled)

    else:
        checked = custom_vjp(run)

        def forward(entering, *xs):
            return run(entering, *xs), vjp(plain, *xs)[1]

        def backward(pull, cts):
            return (None, *pull(cts[1]))

        checked.defvjp(forward, backward)
    after, outs = checked(tuple(state.values()), *xs)
    assert len(after) == n
    return state.like(after), list(outs)


def _scan(eqn, xs, state, errors):
    p = eqn.params
    n_consts, n_carry = p["num_consts"], p["num_carry"]
    consts, carry, ins = xs[:n_consts], xs[n_consts : n_consts + n_carry], xs[n_consts + n_carry :]

    def step(loop, x):
        after, outs = _inside(p["jaxpr"], [*consts, *loop[1], *x], state.like(loop[0]), errors)
        return (after.values(), outs[:n_carry]), outs[n_carry:]

    (after, carry), ys = lax.scan(step, (state.values(), carry), ins, length=p["length"], reverse=p["reverse"], unroll=p["unroll"])
    return state.like(after), [*carry, *ys]


def _is_batched(test, body):
    """Whether a loop is the batched form of one: it runs while any element continues, and an
    element that has stopped does not start again.
    """
    if len(test.eqns) != 1 or test.eqns[0].primitive.name != "reduce_or" or test.eqns[0].invars[0] not in test.invars:
        return False
    place = test.invars.index(test.eqns[0].invars[0])
    going, after = body.invars[place - len(test.invars)], body.outvars[place - len(test.invars)]
    return any(e.primitive.name == "and" and after in e.outvars and going in e.invars for e in body.eqns)


def _while(eqn, xs, state, errors):
    p = eqn.params
    if _is_batched(opened(p["cond_jaxpr"]), opened(p["body_jaxpr"])):
        raise ValueError(
            "Checkify does not support batched while-loops (checkify-of-vmap-of-while). \n"
            "Hint: if possible, move the vmap to the outer level to get vmap-of-checkify-of-while."
        )
    n_test, n_body = p["cond_nconsts"], p["body_nconsts"]
    of_test, of_body, init = xs[:n_test], xs[n_test : n_test + n_body], xs[n_test + n_body :]

    def tested(entering, values):
        after, (go_on,) = _inside(p["cond_jaxpr"], [*of_test, *values], state.like(entering), errors)
        return go_on, after.values(), values

    def body(loop):
        after, values = _inside(p["body_jaxpr"], [*of_body, *loop[2]], state.like(loop[1]), errors)
        return tested(after.values(), values)

    _, after, outs = lax.while_loop(lambda loop: loop[0], body, tested(state.values(), list(init)))
    return state.like(after), list(outs)


def _cond(eqn, xs, state, errors):
    index, *operands = xs

    def branch(program):
        def run(entering, operands):
            after, outs = _inside(program, operands, state.like(entering), errors)
            return after.values(), outs

        return run

    after, outs = lax.switch(index, [branch(b) for b in eqn.params["branches"]], state.values(), operands)
    return state.like(after), list(outs)


def _shard_map(eqn, xs, state, errors):
    """Each device has its own state; the first failure in the mesh's order is returned."""
    p, n = eqn.params, len(state.values())
    mesh = _core.DeviceMesh.numbered(p["mesh"], p["devices"], p["label"] or "")
    number = {name: i for i, (name, _) in enumerate(p["mesh"])}
    manual = [number[a] for a in p["manual_axes"]]
    of = lambda names: [number[a] for a in names]

    def numbers(spec):
        marks = [i for i, entry in enumerate(spec) if isinstance(entry, str)]
        sums = {spec[i]: of(spec[i + 1]) for i in marks}
        return [of(names) for names in (spec[: marks[0]] if marks else spec)], sums.get("unreduced", []), sums.get("reduced", [])

    cuts = lambda specs: [numbers(spec) for spec in specs]
    whole = len(manual) == len(number) and p["check_vma"]
    within = ((list(p["mesh"]), [False] * len(number), p["label"] or ""), [True] * len(number)) if whole else None

    def run(*xs):
        after, outs = _inside(p["jaxpr"], xs, State.empty(state.payload, state.sites), errors)
        own = [_core.varying(v, p["manual_axes"]) for v in after.values()]
        return [*[lax.reshape(v, (1, *v.shape)) for v in own], *outs]

    outs_lie = lambda: [([manual], [], [])] * n + cuts(p["out_specs"])
    found = _core.shard_map(run, xs, cuts(p["in_specs"]), outs_lie, mesh, manual, p["check_vma"], within)
    codes, outs = found[0], found[n:]
    failed = lax.ge(codes, lax.full_like(codes, 0))
    first = lax.argmax(failed, 0, np.int32)
    code, *payload = [lax.dynamic_index_in_dim(v, first, keepdims=False) for v in found[:n]]
    return state.or_else(code, payload), outs


_WITH_BODIES = {
    "jit": _call,
    "remat2": _call,
    "custom_vmap_call": _call,
    "custom_jvp_call": _custom_call,
    "custom_vjp_call": _custom_call,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "shard_map": _shard_map,
}
