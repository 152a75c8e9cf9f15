"""`sparsify`: a function of arrays as a function of sparse arrays.

    sparsify(lambda M, v: 2 * M.T @ v)(BCOO.fromdense(M), v)

The function is traced as if its sparse arguments were dense, and the program is then evaluated with
the sparse arrays.

Invariant: an equation without a sparse operand is bound unchanged. Any other has a rule, and a rule
never makes a sparse operand dense: operations that need dense operands are refused.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ... import _core
from ..._core import ShapedArray
from ..._tracing.picklable import restorable
from ..._trees.flat import FlatFun
from ...extend.core import Literal
from ...tree_util import tree_flatten
from ._base import JAXSparse
from ._rules import KEEPS_ROWS, RULES, as_bcoo, dense
from ._structured import STRUCTURED
from .bcoo import BCOO
from .bcsr import BCSR

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["sparsify"]

_WOULD_BE_DENSE = frozenset("acos acosh bessel_i0e cos cosh eq exp exp2 ge gt le log logistic lt ne rsqrt erfc digamma lgamma is_finite not".split())
_INLINED = {"jit": "jaxpr", "remat2": "jaxpr", "custom_vjp_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr"}


def _is_sparse(x):
    return isinstance(x, JAXSparse)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A function that takes sparse arrays wherever `f` takes arrays.

    Args:
        f: a function of pytrees of arrays.
        use_tracer: has no effect: there is one way of walking.

    Returns:
        the function. What follows from sparse arguments without becoming dense is a BCOO array in
        its result; a BCSR array, if it follows from such arrays by operations that work element by
        element, broadcast or join.

    Raises:
        NotImplementedError: an operation has no sparse result, such as `jnp.cos` of a sparse array;
          `sparse.todense(x)` within `f` makes an array of it.

    >>> from ferrax.experimental import sparse
    >>> sparsify(lambda M, v: 2 * M.T @ v)(sparse.BCOO.fromdense(jnp.arange(4).reshape(2, 2)), jnp.array([1, 2]))
    Array([ 8, 14], dtype=int32)
    """
    del use_tracer

    @restorable(sparsify, f)
    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        leaves, tree = tree_flatten((args, kwargs), is_leaf=_is_sparse)
        values = [x if _is_sparse(x) else _core.asarray(x) for x in leaves]
        flat = FlatFun(f, tree)
        program, consts = _core.make_program(flat, [_aval(x) for x in values], user_fun=f, what="sparsify")
        outs = walk(program.jaxpr, consts, values)
        return flat.out_tree.unflatten(outs)

    return wrapped


def _aval(x):
    return ShapedArray(x.shape, x.dtype) if _is_sparse(x) else _core.get_aval(x)


def walk(jaxpr: Any, consts: Any, args: Any) -> list[Any]:
    """The outputs of a program, each an array or a BCOO array, for such inputs."""
    env = dict(zip(jaxpr.constvars, [_core.asarray(c) for c in consts], strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(v):
        return _core.asarray(v.val, v.aval.dtype, weak_type=v.aval.weak_type) if isinstance(v, Literal) else env[v]

    for eqn in jaxpr.eqns:
        values = [read(v) for v in eqn.invars]
        outs = _equation(eqn, values)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _equation(eqn, values):
    p, params = eqn.primitive, dict(eqn.params)
    if not any(map(_is_sparse, values)):
        outs = p.bind(*values, **params)
        return list(outs) if p.multiple_results else [outs]
    if p.name == "jit" and params.get("name") == dense.__name__:
        return [dense(values[0])]
    if p.name in _INLINED:
        body = params[_INLINED[p.name]]
        return walk(getattr(body, "jaxpr", body), getattr(body, "consts", []), values)
    given, values = values, [as_bcoo(x) if _is_sparse(x) else x for x in values]
    if p.name in STRUCTURED:
        return STRUCTURED[p.name](walk, values, params)
    rule = RULES.get(p.name)
    if rule is None:
        reason = " because it would result in dense output" if p.name in _WOULD_BE_DENSE else ""
        raise NotImplementedError(
            f"sparse rule for {p.name} is not implemented{reason}. If this is your intent, use sparse.todense() to convert your arguments to dense matrices."
        )
    outs = rule(eqn, values, params)
    outs = outs if p.multiple_results else [outs]
    if p.name in KEEPS_ROWS and all(isinstance(x, BCSR) for x in given if _is_sparse(x)):
        return [_by_rows(x, given[0], values[0]) for x in outs]
    return outs


def _by_rows(out, mat, coordinates):
    """The result of an operation on BCSR arrays as one, if it has two sparse dimensions;
    `coordinates` is the first operand `mat` as a BCOO array.
    """
    if not isinstance(out, BCOO) or out.n_sparse != 2:
        return out
    if out.indices is coordinates.indices:
        return BCSR((out.data, mat.indices, mat.indptr), shape=out.shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)
    return BCSR.from_bcoo(out)
