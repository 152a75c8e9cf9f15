"""Batching rules given by the user: `custom_vmap`, `sequential_vmap`.

    @custom_vmap
    def f(x, y): return x + y ** 2

    @f.def_vmap
    def f_vmap(axis_size, in_batched, xs, ys): return xs + ys ** 2, in_batched[0] or in_batched[1]

Invariant: a call is one equation until `vmap` maps over it; the rule gets and returns the
function's own pytrees, the equation has flat lists. The tangent of a call is a call again, whose
rule is the derivative of the rule. So `vmap` of a derivative also uses the rule.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from . import _core
from ._base.tracebacks import api_boundary
from ._references.refs import thread_references
from ._references.rules import call_custom_vmap, given_refs
from ._transforms.custom import CustomFunction
from ._trees.flat import name_of, zeros
from .extend.core import Primitive
from .interpreters import ad, batching
from .lax import map as _map
from .lax._bodies import Body, as_array
from .tree_util import tree_flatten, tree_leaves, tree_map

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_R = TypeVar("_R")


__all__ = ["custom_vmap", "sequential_vmap"]


class custom_vmap(CustomFunction):
    """A function with a custom rule for `vmap`.

    Args:
        fun: the function; its arguments and results are pytrees of arrays.

    Raises:
        AttributeError: (when called) no rule was given.

    Example:
      >>> @custom_vmap
      ... def f(x): return x + 1
      >>> @f.def_vmap
      ... def f_vmap(axis_size, in_batched, xs): return xs + 2, in_batched[0]
      >>> vmap(f)(jnp.arange(3.0))
      Array([2., 3., 4.], dtype=float32)
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        super().__init__(fun)
        self.vmap_rule = None

    def def_vmap(self, vmap_rule: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """Sets the rule: `vmap_rule(axis_size, in_batched, *args) -> (out, out_batched)`.

        Returns it, so that it may decorate.

        in_batched: a list with a pytree of truths for each argument: whether the leaf has the
        mapped axis, which is then its first.
        out_batched: a pytree of the same kind for the result.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's value; under `vmap`, by its rule."""
        if self.vmap_rule is None:
            raise AttributeError(f"No batching rule defined for custom_vmap function {name_of(self.fun)} using def_vmap.")
        args = tuple(self._positional(args, kwargs))
        given = given_refs("custom_vmap", self.fun, args)
        return thread_references(lambda: self._call(args), lambda refs: call_custom_vmap(self, args, refs), given)

    def _call(self, args):
        given, in_tree = tree_flatten(args)
        leaves = [as_array(x) for x in given]
        body = Body.of(self.fun, in_tree, [x.aval for x in leaves], "custom_vmap")
        if _core.at_root() and not any(isinstance(x, _core.Tracer) for x in (*body.consts, *leaves)):
            outs = _core.eval_program(body.program, body.consts, *leaves)
            # a Python number that was passed on unchanged is one again
            is_number = lambda i: i is not None and type(given[i]) in (bool, int, float, complex)
            return body.out_tree.unflatten([given[i] if is_number(i) else x for x, i in zip(outs, body.forwards, strict=True)])
        n, call = len(body.consts), body.program
        if n:
            call = body.rewired(range(n), range(n, n + len(leaves)), range(len(body.out_avals)), [x.aval for x in (*body.consts, *leaves)])
        rule = _Rule(self, n, in_tree, body.out_tree)
        return body.out_tree.unflatten(custom_vmap_p.bind(*body.consts, *leaves, call=call, rule=rule, in_tree=in_tree, out_tree=body.out_tree))


class _Rule:
    """The user's rule over flat lists,
    `rule(axis_size, in_batched, values) -> (outs, out_batched)`, with a check of its results.
    """

    def __init__(self, custom, n_consts, in_tree, out_tree):
        self.custom, self.n_consts, self.in_tree, self.out_tree = custom, n_consts, in_tree, out_tree

    def __repr__(self):
        return repr(self.custom.vmap_rule)

    def __eq__(self, other):
        return type(other) is _Rule and self.custom is other.custom and self.n_consts == other.n_consts and self.in_tree == other.in_tree

    def __hash__(self):
        return hash((id(self.custom), self.n_consts))

    def __call__(self, axis_size, in_batched, values):
        user = self.custom.vmap_rule
        if user is None:
            raise AttributeError(f"No batching rule defined for custom_vmap function {name_of(self.custom.fun)} using def_vmap.")
        if any(in_batched[: self.n_consts]):
            raise ValueError(
                f"custom_vmap function {name_of(self.custom.fun)} closes over an array that is mapped, which is not an argument of its rule.\n"
                "help: make it an argument"
            )
        args, flags = self.in_tree.unflatten(values[self.n_consts :]), self.in_tree.unflatten(in_batched[self.n_consts :])
        out, out_batched = user(axis_size, list(flags), *args)
        outs, tree = tree_flatten(out)
        batched, batched_tree = tree_flatten(out_batched)
        if tree != batched_tree:
            raise ValueError(
                f"structure of output value and output batching specification returned by custom vmap rule ({name_of(user)}) do not match.\n"
                f"Output values: {tree}\nBatching spec: {batched_tree}"
            )
        if tree != self.out_tree:
            raise ValueError(
                f"structure of output returned by custom vmap rule ({name_of(user)}) does not match that of original custom-vmapped function.\n"
                f"Original output: {self.out_tree}\nRule output: {tree}"
            )
        outs = [as_array(x) for x in outs]
        for x, b in zip(outs, batched, strict=True):
            if b and (x.ndim == 0 or x.shape[0] != axis_size):
                raise ValueError(
                    f"custom vmap rule ({name_of(user)}) says that an output of shape {tuple(x.shape)} is batched: its first axis should be of size {axis_size}"
                )
        return outs, [bool(b) for b in batched]


class _DerivativeRule:
    """The derivative of a rule: of (values, the tangents of those in `active`), for the outputs and
    the tangents of those in `live`.
    """

    def __init__(self, rule, n, active, live, with_outputs):
        self.rule, self.n, self.active, self.live, self.with_outputs = rule, n, active, live, with_outputs

    def __call__(self, axis_size, in_batched, values):
        flags = dict(zip(self.active, in_batched[self.n :], strict=True))
        if any(in_batched) and not any(b and flags.get(i, False) for i, b in enumerate(in_batched[: self.n])):
            return self._apart(axis_size, in_batched, values)
        primals, batched, tangents = list(values[: self.n]), list(in_batched[: self.n]), [None] * self.n
        for i, t, b in zip(self.active, values[self.n :], in_batched[self.n :], strict=True):
            if b != batched[i]:
                t = t if b else batching.broadcast(t, axis_size, 0)
                primals[i] = primals[i] if batched[i] else batching.broadcast(primals[i], axis_size, 0)
                batched[i] = True
            tangents[i] = t
        outs, flags = self._of_rule(axis_size, batched, primals, tangents)
        return outs, [*(flags if self.with_outputs else ()), *[flags[i] for i in self.live]]

    def _of_rule(self, axis_size, batched, primals, tangents):
        """(outputs and tangents, the rule's flags of the outputs)."""
        flags = []

        def run(*values):
            outs, flags[:] = self.rule(axis_size, batched, list(values))
            return outs

        outs, out_tangents = _core.jvp(run, primals, tangents)
        found = [zeros(_core.get_aval(y)) if t is None else t for y, t in zip(outs, out_tangents, strict=True)]
        return [*(outs if self.with_outputs else ()), *[found[i] for i in self.live]], flags

    def _apart(self, axis_size, in_batched, values):
        """If no value is mapped together with its tangent: calls the rule for the unmapped values,
        and maps its derivative over the others.
        """
        where = [i for i, b in enumerate(in_batched) if b]
        found = []

        def mapped(lane, *slices):
            given = list(values)
            for i, x in zip(where, slices, strict=True):
                given[i] = x
            tangents = dict(zip(self.active, given[self.n :], strict=True))
            outs, flags = self._of_rule(axis_size, [False] * self.n, given[: self.n], [tangents.get(i) for i in range(self.n)])
            flags = [*(flags if self.with_outputs else ()), *[flags[i] for i in self.live]]
            # Outputs that the rule has mapped are split again; where no value is mapped, all of an output's elements are the same.
            n_same = len(outs) - len(self.live) if where[0] >= self.n else 0
            outs = [x[lane if i >= n_same else 0] if b else x for i, (x, b) in enumerate(zip(outs, flags, strict=True))]
            found[:] = [_core.trace_of(x) == _core.trace_of(lane) for x in outs]
            return outs

        lanes = _core.bind("iota", dtype=np.dtype(np.int32), shape=(axis_size,), dimension=0)
        dims = [0] * (1 + len(where))
        outs = _core.vmap(mapped, [lanes, *[values[i] for i in where]], dims, axis_size, None, lambda i=None: [0 if b else None for b in found])
        return outs, list(found)


custom_vmap_p = Primitive("custom_vmap_call")
custom_vmap_p.multiple_results = True
custom_vmap_p.def_impl(lambda *args, call, **_: list(_core.eval_program(call, [], *args)))
custom_vmap_p.def_abstract_eval(lambda *_, call, **__: call.out_avals)


def _jvp(primals, tangents, *, call, rule, **trees):
    active = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]
    n, live = len(primals), []
    # In forward mode one call computes both: the rule determines how outputs depend on tangents.
    # Reverse mode, which programs may be used in later, needs the outputs without the tangents.
    together = all((owner := _core.trace_of(tangents[i])) is None or owner.what in ("vmap", "jvp") for i in active)
    outs = [] if together else custom_vmap_p.bind(*primals, call=call, rule=rule, **trees)

    def derivative(*values):
        given = dict(zip(active, values[n:], strict=True))
        outs, found = _core.jvp(lambda *x: _core.eval_program(call, [], *x), values[:n], [given.get(i) for i in range(n)])
        live[:] = [i for i, t in enumerate(found) if t is not None]
        return [*(outs if together else ()), *[found[i] for i in live]]

    program, _ = _core.make_program(derivative, [*call.in_avals, *[call.in_avals[i].to_tangent_aval() for i in active]])
    found = []
    if live or together:
        of_both = _DerivativeRule(rule, n, active, list(live), together)
        found = custom_vmap_p.bind(*primals, *[tangents[i] for i in active], call=program, rule=of_both, **trees)
    outs, found = (found[: len(found) - len(live)], found[len(found) - len(live) :]) if together else (outs, found)
    out_tangents = [ad.Zero.from_primal_value(x) for x in outs]
    for i, t in zip(live, found, strict=True):
        out_tangents[i] = t
    return outs, out_tangents


def _transpose(cts, *args, call, **_):
    """Reverse mode uses the transpose of the function itself; the rule does not apply to it."""
    linear = [i for i, x in enumerate(args) if ad.is_undefined_primal(x)]

    def run(*given):
        values = list(args)
        for i, x in zip(linear, given, strict=True):
            values[i] = x
        return _core.eval_program(call, [], *values)

    _, transposed = _core.linear_transpose(run, [args[i].aval for i in linear])
    found = dict(zip(linear, transposed.transpose([None if type(ct) is ad.Zero else ct for ct in cts]), strict=True))
    return [found.get(i) for i in range(len(args))]


def _batch(args, dims, *, rule, **_):
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    args = [x if d is None else batching.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    outs, batched = rule(size, [d is not None for d in dims], args)
    return outs, [0 if b else None for b in batched]


ad.primitive_jvps[custom_vmap_p] = _jvp
ad.primitive_transposes[custom_vmap_p] = _transpose
batching.primitive_batchers[custom_vmap_p] = _batch


def sequential_vmap(f: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that `vmap` evaluates for the elements of the mapped axis one by one, by
    `lax.map`: the results of all bodies need not fit in memory at once.

    Args:
        f: function of pytrees of arrays.

    Returns:
        A function of the same arguments and results.

    >>> vmap(sequential_vmap(lambda x: x + 1))(jnp.arange(3.0))
    Array([1., 2., 3.], dtype=float32)
    """
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, tree = tree_flatten(args)
        flags = tree_leaves(in_batched)

        def one(slices):
            given = iter(slices)
            return mapped(*tree.unflatten([next(given) if b else x for x, b in zip(leaves, flags, strict=True)]))

        out = _map(one, [x for x, b in zip(leaves, flags, strict=True) if b])
        return out, tree_map(lambda _: True, out)

    mapped = functools.update_wrapper(mapped, f) if hasattr(f, "__name__") else mapped
    mapped._made = sequential_vmap, (f,)
    return mapped
