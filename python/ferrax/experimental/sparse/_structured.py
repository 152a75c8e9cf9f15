"""Loops and branches over BCOO arrays: the rules of `sparsify` for operations with bodies.

Invariant: a sparse carry keeps its layout and its number of elements through a loop; a body that
needs more is refused. Branches that give different numbers of elements give the largest.
"""

import functools

from ... import lax, numpy as jnp
from ..._tracing.trace import eval_shape
from ._base import ends
from ._rules import dense
from ._shaping import bcoo_squeeze, materialized
from ._slicing import bcoo_dynamic_slice
from .bcoo import BCOO, made

__all__ = ["STRUCTURED"]


def _plain(x):
    """The array without promises about its indices, so that all iterations have one type."""
    return made(*materialized(x), x.shape) if isinstance(x, BCOO) else x


def _widened(x, nse, n_batch):
    """`x` with `nse` elements, new ones outside."""
    x = made(*materialized(x), x.shape)
    if x.nse == nse:
        return x
    end = jnp.broadcast_to(ends(x.shape[n_batch : n_batch + x.n_sparse], x.indices.dtype), (*x.shape[:n_batch], nse - x.nse, x.n_sparse))
    zeros = jnp.zeros((*x.shape[:n_batch], nse - x.nse, *x.data.shape[n_batch + 1 :]), x.dtype)
    return made(jnp.concatenate([x.data, zeros], axis=n_batch), jnp.concatenate([x.indices, end], axis=n_batch), x.shape)


def _as_carry(what, new, old):
    if not isinstance(old, BCOO):
        return dense(new)
    if not isinstance(new, BCOO) or (new.n_batch, new.n_dense) != (old.n_batch, old.n_dense) or new.nse > old.nse:
        raise TypeError(f"sparsify: the body of {what} must return a sparse carry as it takes it: it takes {old} and returns {new}")
    return _widened(new, old.nse, old.n_batch)


def _while(walk, values, params):
    n, m = params["cond_nconsts"], params["body_nconsts"]
    cond_jaxpr, body_jaxpr = params["cond_jaxpr"], params["body_jaxpr"]
    cond_consts, body_consts, init = values[:n], values[n : n + m], [_plain(x) for x in values[n + m :]]

    def going(carry):
        return dense(_run(walk, cond_jaxpr, [*cond_consts, *carry])[0])

    def step(carry):
        outs = _run(walk, body_jaxpr, [*body_consts, *carry])
        return [_as_carry("while_loop", a, b) for a, b in zip(outs, carry, strict=True)]

    return lax.while_loop(going, step, init)


def _run(walk, closed, values):
    return walk(closed.jaxpr, closed.consts, values)


def _cond(walk, values, params):
    index, *operands = values
    branches = [functools.partial(lambda b, *xs: _run(walk, b, xs), b) for b in params["branches"]]
    shapes = [eval_shape(b, *operands) for b in branches]
    widths = []
    for outs in zip(*shapes, strict=True):
        sparse = all(isinstance(x, BCOO) for x in outs) and len({(x.n_batch, x.n_dense) for x in outs}) == 1
        widths.append(max(x.nse for x in outs) if sparse else None)

    def unified(branch, *xs):
        return [dense(x) if nse is None else _widened(x, nse, x.n_batch) for x, nse in zip(branch(*xs), widths, strict=True)]

    return lax.switch(dense(index), [functools.partial(unified, b) for b in branches], *operands)


def _scan(walk, values, params):
    n, k, length = params["num_consts"], params["num_carry"], params["length"]
    consts, init, xs = values[:n], [_plain(x) for x in values[n : n + k]], values[n + k :]

    def row(x, i):
        if not isinstance(x, BCOO):
            return lax.dynamic_index_in_dim(x, i, 0, keepdims=False)
        starts = [i, *[jnp.zeros((), i.dtype)] * (x.ndim - 1)]
        return bcoo_squeeze(bcoo_dynamic_slice(x, starts, (1, *x.shape[1:])), dimensions=(0,))

    def step(carry, i):
        outs = _run(walk, params["jaxpr"], [*consts, *carry, *(row(x, i) for x in xs)])
        carry = [_as_carry("scan", a, b) for a, b in zip(outs[:k], carry, strict=True)]
        return carry, [_plain(y) for y in outs[k:]]

    carry, ys = lax.scan(step, init, jnp.arange(length), reverse=params["reverse"], unroll=params["unroll"])
    return [*carry, *ys]


STRUCTURED = {"while": _while, "cond": _cond, "scan": _scan}
