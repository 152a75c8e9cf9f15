"""`linear_call`: a linear function with a user-defined transpose.

    linear_call(lambda k, x: x / k, lambda k, ct: ct / k, 2.0, 3.0)        # 1.5; reverse mode runs the second function

Invariant: the equation is linear in its last operands. The operands before are residuals, among
them all arrays that the two functions close over. Batching gives an equation of the same kind;
derivatives by the residuals are those of the first function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from .. import _core
from .._base.tracebacks import api_boundary
from .._core import Primitive
from .._transforms.vmap import vmap
from .._trees.flat import FlatFun
from ..tree_util import tree_flatten
from . import ad, batching

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


@api_boundary
def linear_call(fun: Callable[..., _T], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any) -> _T:
    """Calls `fun(residual_args, linear_args)`, linear in the latter, with a custom transpose.

    Args:
        fun: `fun(residuals, x) -> y`, linear in x.
        fun_transpose: `fun_transpose(residuals, ct_y) -> ct_x`, used in reverse mode instead of the
          transpose of `fun`.
        residual_args, linear_args: pytrees of arrays.

    Returns:
        the output of `fun`. In the residuals it is differentiated as `fun` is.

    Raises:
        TypeError: the result of `fun_transpose` does not have the structure and types of
          `linear_args`.

    >>> grad(lambda x: linear_call(lambda k, x: x / k, lambda k, ct: ct * 100, 2.0, x))(3.0)
    Array(100., dtype=float32, weak_type=True)
    """
    res, res_tree = tree_flatten(residual_args)
    lin, lin_tree = tree_flatten(linear_args)
    res, lin = ([x if isinstance(x, _core.Array) else _core.asarray(x) for x in xs] for xs in (res, lin))
    forward = FlatFun(lambda *xs: fun(res_tree.unflatten(xs[: len(res)]), lin_tree.unflatten(xs[len(res) :])), tree_flatten(((*res, *lin), {}))[1])
    program, consts = _core.make_program(forward, [x.aval for x in (*res, *lin)], user_fun=fun)
    outs, out_tree = program.out_avals, forward.out_tree
    backward = FlatFun(lambda *xs: fun_transpose(res_tree.unflatten(xs[: len(res)]), out_tree.unflatten(xs[len(res) :])), tree_flatten(((*res, *outs), {}))[1])
    transposed, more = _core.make_program(backward, [*[x.aval for x in res], *outs], user_fun=fun_transpose)
    if backward.out_tree != lin_tree:
        raise TypeError(
            f"transpose output pytree structure must match that of linear inputs, got output structure {backward.out_tree} and input structure {lin_tree}."
        )
    for got, x in zip(transposed.out_avals, lin, strict=True):
        if tuple(got.shape) != tuple(x.shape) or got.dtype != x.dtype:
            raise TypeError(f"transpose output avals must match those of linear inputs, got {got.str_short()} where the input is {x.aval.str_short()}.")
    n, m = len(consts), len(consts) + len(more)
    # Programs without their captured values: the equation keeps them.
    program, transposed = program.jaxpr, transposed.jaxpr
    callee = lambda res, lin: list(_core.eval_program(program, list(res[:n]), *res[m:], *lin))
    transpose = lambda res, cts: list(_core.eval_program(transposed, list(res[n:m]), *res[m:], *cts))
    return out_tree.unflatten(linear_call_p.bind(*consts, *more, *res, *lin, callee=callee, transpose=transpose, out_avals=outs, num_residuals=m + len(res)))


linear_call_p = Primitive("linear_call")
linear_call_p.multiple_results = True
linear_call_p.def_impl(lambda *args, callee, num_residuals, **_: callee(args[:num_residuals], args[num_residuals:]))
linear_call_p.def_abstract_eval(lambda *_, out_avals, **__: out_avals)


def _jvp(primals, tangents, *, callee, num_residuals, **params):
    res, lin = primals[:num_residuals], primals[num_residuals:]
    bound = lambda lin: linear_call_p.bind(*res, *lin, callee=callee, num_residuals=num_residuals, **params)
    outs = bound(lin)
    total = [ad.Zero.from_primal_value(y) for y in outs]
    if any(type(t) is not ad.Zero for t in tangents[num_residuals:]):
        total = bound([ad.instantiate_zeros(t) for t in tangents[num_residuals:]])
    dres = [None if type(t) is ad.Zero else t for t in tangents[:num_residuals]]
    if any(t is not None for t in dres):
        more = _core.jvp(lambda *res: callee(res, lin), list(res), dres)[1]
        total = [a if b is None else ad.add_tangents(a, b) for a, b in zip(total, more, strict=True)]
    return outs, total


def _transpose(cts, *args, transpose, out_avals, num_residuals, **_):
    if all(type(ct) is ad.Zero for ct in cts):
        return [None] * len(args)
    cts = [ad.zeros_like_aval(aval) if type(ct) is ad.Zero else ct for ct, aval in zip(cts, out_avals, strict=True)]
    return [None] * num_residuals + transpose(args[:num_residuals], cts)


def _batch(args, dims, *, callee, transpose, out_avals, num_residuals):
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    res, lin = args[:num_residuals], args[num_residuals:]
    axes = tuple(dims[:num_residuals])
    # One axis for all that is linear: so each lane has a cotangent of its own.
    lin = [batching.bdim_at_front(x, d, size) for x, d in zip(lin, dims[num_residuals:], strict=True)]
    mapped = lambda f: lambda res, xs: vmap(lambda res, xs: f(res, xs), in_axes=(list(axes), 0), axis_size=size)(list(res), list(xs))
    avals = [a.update(shape=(size, *a.shape)) for a in out_avals]
    outs = linear_call_p.bind(*res, *lin, callee=mapped(callee), transpose=mapped(transpose), out_avals=avals, num_residuals=num_residuals)
    return outs, [0] * len(outs)


ad.primitive_jvps[linear_call_p] = _jvp
ad.primitive_transposes[linear_call_p] = _transpose
batching.primitive_batchers[linear_call_p] = _batch
