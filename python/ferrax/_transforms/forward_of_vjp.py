"""Forward mode of a function with a reverse-mode rule, inside that rule: the transpose of the `bwd`
rule, which is linear in the cotangents.

Invariant: the derivative is the one that the user's rule defines, not that of the function's body.

    hessian(f)(x)        # with fwd = lambda x: (f(x), x): forward over reverse differentiates the call of f inside fwd
"""

import contextlib
import threading

from .. import _core
from .._trees.flat import FlatFun, is_inexact, zeros
from .._trees.prefixes import broadcast_prefix
from ..tree_util import tree_flatten, tree_map, tree_structure
from .custom import places

_LOCAL = threading.local()


@contextlib.contextmanager
def within(custom):
    """A context manager that marks the run of a function's `fwd`."""
    running = _LOCAL.__dict__.setdefault("running", [])
    running.append(custom)
    try:
        yield
    finally:
        running.pop()


def is_within(custom):
    """Whether the function's `fwd` is running."""
    return any(c is custom for c in _LOCAL.__dict__.get("running", ()))


def jvp_rule(custom, static, merge, primal_of):
    """The forward-mode rule. `primal_of(argument)` is the argument as `fwd` takes it."""

    def rule(primals, tangents):
        out, residuals = custom.fwd(*merge(tree_map(primal_of, primals)))
        outs, out_tree = tree_flatten(out)
        inexact = [is_inexact(_core.get_aval(x).dtype) for x in outs]
        leaves, in_tree = tree_flatten(primals)
        moving = [is_inexact(_core.get_aval(x).dtype) for x in leaves]

        def pull(*cts):
            given = iter(cts)
            full = [next(given) if i else x if place else zeros(_core.get_aval(x)) for x, i, place in zip(outs, inexact, places(out), strict=True)]
            grads = custom.bwd(*static, residuals, out_tree.unflatten(full))
            grads = broadcast_prefix(tuple(grads), in_tree.unflatten(range(len(leaves))), prefix_is_leaf=lambda x: x is None)
            made = lambda g, x: zeros(_core.get_aval(x), cotangent=True) if g is None else g.instantiate() if hasattr(g, "instantiate") else g
            return [made(g, x) for g, x, m in zip(grads, leaves, moving, strict=True) if m]

        avals = [_core.get_aval(x).to_tangent_aval() for x, i in zip(outs, inexact, strict=True) if i]
        _, linear = _core.linear_transpose(FlatFun(pull, tree_structure((tuple(avals), {}))), avals)
        dots = iter(linear.transpose([t for t, m in zip(tree_flatten(tangents)[0], moving, strict=True) if m]))
        moved = [next(dots) if i else None for i in inexact]
        return out, out_tree.unflatten([zeros(_core.get_aval(x)) if t is None else t for x, t in zip(outs, moved, strict=True)])

    return rule
