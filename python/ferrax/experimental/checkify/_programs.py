"""Which checks apply to the equations of a program, and what an error of it can hold.

Invariant: loops that record values for a derivative in reverse mode are one equation; all other
bodies are looked into.
"""

import numpy as np

from ... import _core
from ..._trees.flat import is_inexact
from ._checks import CheckFunction
from ._errors import div_checks, index_checks, nan_checks, slots_of, user_checks

_NAN = frozenset(
    """acos acosh add asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt conv_general_dilated cos cosh cumlogsumexp cummax cummin cumprod cumsum
    custom_linear_solve digamma dot_general erf erf_inv erfc exp exp2 expm1 fft igamma igamma_grad_a igammac integer_pow lgamma log log1p logistic mul
    pad polygamma pow psum reduce reduce_prod reduce_sum reduce_window reduce_window_sum regularized_incomplete_beta rem rng_uniform rsqrt sin sinh sqrt
    sub tan tanh zeta""".split()
)
INDEXED = frozenset("dynamic_slice dynamic_update_slice gather scatter scatter-add scatter-sub scatter-mul scatter-min scatter-max".split())
CALLS = {"jit": "jaxpr", "remat2": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "custom_vmap_call": "call"}
INT = _core.ShapedArray((), np.dtype(np.int32))


def bodies_of(eqn):
    """The programs that checks of an equation lie in."""
    name, params = eqn.primitive.name, eqn.params
    if name == "jit" and params["name"] == "checked_elements":  # by `_of_elements`, which checks the result
        return []
    if name in CALLS:
        return [params[CALLS[name]]]
    if name == "scan":
        return [params["jaxpr"]]
    if name == "while":
        return [] if params["num_ys"] else [params["cond_jaxpr"], params["body_jaxpr"]]
    if name == "shard_map":
        return [params["jaxpr"]]
    return list(params["branches"]) if name == "cond" else []


def check_of(eqn):
    """The `check` that an equation is; None for another."""
    if eqn.primitive.name != "debug_callback":
        return None
    function = eqn.params["callback"].callback_func
    return function if isinstance(function, CheckFunction) else None


def kinds_of(eqn, errors):
    """The checks that apply to an equation by itself."""
    name = eqn.primitive.name
    if name == "div":
        return errors & (div_checks | (nan_checks if is_inexact(eqn.outvars[0].aval.dtype) else frozenset()))
    if name in _NAN or name == "tape_scan" or (name == "while" and eqn.params["num_ys"]):
        # (the loops of a derivative in reverse mode are looked at as a whole)
        return errors & nan_checks if any(is_inexact(v.aval.dtype) for v in eqn.outvars) else frozenset()
    if name in INDEXED:
        return errors & index_checks
    function = check_of(eqn)
    if function is None:
        return frozenset()
    return user_checks if function.inner else errors & user_checks


def has_tapes(jaxpr):
    """Whether a program has loops that record values for a derivative in reverse mode."""
    return any(e.params.get("num_ys") or e.primitive.name == "tape_scan" or any(has_tapes(opened(b)) for b in bodies_of(e)) for e in jaxpr.eqns)


def opened(program):
    return getattr(program, "jaxpr", program)


def slots_in(jaxpr, errors):
    """The slots of all failures that a program can have; contains None if one of them has no
    payload.
    """
    found = set()
    for eqn in jaxpr.eqns:
        if kinds_of(eqn, errors):
            function = check_of(eqn)
            if function is not None:
                found.update(function.slots)
            elif eqn.primitive.name in INDEXED:
                found.update(slots_of([INT] * 3))
        for body in bodies_of(eqn):
            found |= slots_in(opened(body), errors)
    return found


def may_fail(jaxpr, errors):
    return any(kinds_of(eqn, errors) or any(may_fail(opened(b), errors) for b in bodies_of(eqn)) for eqn in jaxpr.eqns)


def fails_in_some(jaxpr, errors):
    """Whether a program can fail within a loop of unknown length or a branch: for some elements of
    a batch and not for others.
    """
    for eqn in jaxpr.eqns:
        bodies = [opened(b) for b in bodies_of(eqn)]
        inside = any(may_fail(b, errors) for b in bodies) if eqn.primitive.name in ("while", "cond") else any(fails_in_some(b, errors) for b in bodies)
        if inside:
            return True
    return False
