"""Rematerialisation: `checkpoint`, by programs that are traced once per function and types.

jax.grad(jax.checkpoint(block))(x)     # keeps x, recomputes the intermediate values of `block`
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .. import _core
from .._base.differences import positional_names
from .._base.tracebacks import api_boundary
from .._references import refs as _refs
from .._tracing.cached_traces import traced
from .._tracing.picklable import restorable
from .._trees.flat import argument_names, check_callable
from .._trees.prefixes import broadcast_prefix
from ..tree_util import tree_flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


_P = ParamSpec("_P")
_R = TypeVar("_R")


_get_aval = _core.get_aval


@api_boundary
def checkpoint(
    fun: Callable[_P, _R],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: Any = None,
) -> Callable[_P, _R]:
    """`fun` with rematerialisation: reverse mode stores only its inputs and recomputes intermediate
    values.

    Args:
        fun: the function.
        prevent_cse: keep the recomputation from being merged with the forward pass: a bool, or a
            tree prefix of bools for the arguments. May be off under `scan`.
        policy: `policy(primitive, *avals, **params)` says whether an intermediate result is
          stored; see `checkpoint_policies`.
        static_argnums, static_argnames: arguments that stay Python values.
        concrete: removed from JAX; must be None.

    Returns:
        A function of the same arguments and results as `fun`.

    Raises:
        ferrax.errors.TracerBoolConversionError: `fun` branches on the value of an argument that is
          not static.

    >>> jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if concrete is not None:
        raise NotImplementedError(
            "The `concrete` option to `jax.checkpoint` was deprecated in JAX v0.8.2, and removed in JAX v0.10.0. In its place please use `static_argnums`."
        )
    check_callable(fun)
    numbers = (operator.index(static_argnums),) if hasattr(static_argnums, "__index__") else tuple(map(operator.index, static_argnums))
    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
    named = tuple(i for i, name in enumerate(positional_names(fun)) if name in names) if names else ()

    @restorable(checkpoint, fun, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums, static_argnames=static_argnames)
    @functools.wraps(fun, updated=())
    def checkpoint_f(*args, **kwargs):
        n = len(args)
        if not all(-n <= i < n for i in numbers):
            raise ValueError(
                "the `static_argnums` argument to `jax.checkpoint` / `jax.remat` can only take integer values greater than or equal to"
                f" `-len(args)` and less than `len(args)`, but got {numbers}, while `len(args)` = {n}"
            )
        if _refs.seen and any(isinstance(x, _refs.Ref) for x in tree_flatten((args, kwargs))[0]):
            _refs.check_aliases("checkpoint", fun, args, kwargs)
            options = dict(prevent_cse=prevent_cse, policy=policy, static_argnums=numbers, static_argnames=static_argnames)
            within, args, kwargs = _refs.without_refs(fun, args, kwargs)
            return checkpoint(within, **options)(*args, **kwargs)
        static = {i % n for i in (*numbers, *named) if i < n}
        fixed = {k: v for k, v in kwargs.items() if k in names}
        dyn_args = tuple(x for i, x in enumerate(args) if i not in static)
        leaves, in_tree = tree_flatten((dyn_args, {k: v for k, v in kwargs.items() if k not in names}))

        def flat_fun(*leaves):
            dyn, keywords = in_tree.unflatten(leaves)
            rest = iter(dyn)
            return fun(*[x if i in static else next(rest) for i, x in enumerate(args)], **keywords, **fixed)

        paths = lambda: [] if static or fixed else argument_names(fun, args, kwargs)
        constants = {i: args[i] for i in sorted(static)} | fixed

        def run(flat_fun, leaves, paths):
            program, out_tree = traced(fun, "checkpoint / remat", flat_fun, [_get_aval(x) for x in leaves], paths, in_tree, constants)
            outs = _core.checkpoint(program, leaves, prevent_cse=_prevents(prevent_cse, dyn_args), policy=policy)
            return out_tree.unflatten(outs)

        def threaded(refs):
            def with_refs(*xs):
                with _refs.bound(refs, xs[: len(refs)]):
                    return flat_fun(*xs[len(refs) :]), _refs.values_of(refs)

            out, values = run(with_refs, [*_refs.values_of(refs), *leaves], list)
            _refs.settle(refs, values)
            return out

        return _refs.thread_references(lambda: run(flat_fun, leaves, paths), threaded)

    return checkpoint_f


def _prevents(prevent_cse, args):
    """Whether `prevent_cse`, a bool or a tree prefix of bools for the arguments, is set for any of
    them.
    """
    return prevent_cse if isinstance(prevent_cse, bool) else any(broadcast_prefix(prevent_cse, args, name="prevent_cse"))


remat = checkpoint
