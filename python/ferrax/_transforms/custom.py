"""The common parts of `custom_jvp`, `custom_vjp` and `custom_vmap` functions: arguments by
position, static arguments, names.

Invariant: a call reaches the rules with all arguments by position, whether they were given by
keyword or by default.
"""

from __future__ import annotations

import functools
import inspect
import operator
from typing import TYPE_CHECKING, Any

from .. import _core
from .._tracing.picklable import public_name
from .._trees.flat import FlatFun, float0, is_inexact, name_of
from ..tree_util import tree_flatten, tree_leaves, tree_map

if TYPE_CHECKING:
    from collections.abc import Callable


def nondiff_positions(fun, numbers, names):
    numbers = (operator.index(numbers),) if hasattr(numbers, "__index__") else tuple(map(operator.index, numbers))
    names = (names,) if isinstance(names, str) else tuple(names)
    if names:
        order = list(inspect.signature(fun).parameters)
        numbers += tuple(order.index(n) for n in names if order.index(n) not in numbers)
    return tuple(sorted(numbers))


def split_nondiff(positions, args):
    """(the static arguments, the differentiable ones, a function that merges both)."""
    if not positions:
        return (), args, lambda dyn, static=(): dyn
    where = {i % len(args) if i < 0 else i for i in positions}
    static = tuple(x for i, x in enumerate(args) if i in where)
    n = len(args)

    def merge(dyn, static=static):  # which programs keep: it holds none of the differentiable arguments
        rest, fixed = iter(dyn), iter(static)
        return tuple(next(fixed) if i in where else next(rest) for i in range(n))

    return static, tuple(x for i, x in enumerate(args) if i not in where), merge


def without_gradient(x):
    return _core.bind("stop_gradient", x) if isinstance(x, _core.Tracer) and is_inexact(x.dtype) else x


def split_traced(static):
    """(the traced values among the leaves of static arguments, a function that replaces them by
    others).

    The traced values become operands of the call: a rule runs when the call is differentiated,
    which may be after the end of the trace that they belong to.
    """
    leaves, tree = tree_flatten(static)
    where = [i for i, x in enumerate(leaves) if isinstance(x, _core.Tracer)]
    if not where:
        return [], lambda values: static

    def refill(values):
        whole = list(leaves)
        for i, x in zip(where, values, strict=True):
            whole[i] = x
        return tree.unflatten(whole)

    traced = [leaves[i] for i in where]
    for i in where:  # which programs keep: it holds none of the traced values
        leaves[i] = None
    return traced, refill


# ---------------------------------------------------------------- matrices that hold integers


def _keeps_integers(x):
    """Whether the integers of a node are the positions of its values, as in a sparse matrix: its
    tangents and cotangents have the same integers.
    """
    return getattr(type(x), "_INTEGERS_ARE_PLACES", False)


def with_places(tree, changes):
    """Tangents or cotangents of a pytree, with the indices of its sparse matrices in place of
    float0.
    """
    own = lambda x, t: x if getattr(t, "dtype", None) == float0 else t
    return tree_map(lambda x, t: tree_map(own, x, t) if _keeps_integers(x) else t, tree, changes, is_leaf=_keeps_integers)


def places(tree):
    """For each leaf of a pytree, whether it is such an index."""
    nodes = tree_leaves(tree, is_leaf=_keeps_integers)
    flags = [[not is_inexact(_core.get_aval(x).dtype) for x in tree_leaves(n)] if _keeps_integers(n) else [False] for n in nodes]
    return [flag for node in flags for flag in node]


# ---------------------------------------------------------------- functions


def named(fun, name):
    """A bound method under another name: programs print the names of the user's rules."""

    def call(*args, **kwargs):
        return fun(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call


class CustomFunction:
    """A function with a rule: callable, usable as a method, with the function's own name and
    docstring.
    """

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        if hasattr(fun, "__name__"):
            functools.update_wrapper(self, fun)  # first, because it copies all attributes, and `fun` may be of this class
        self.fun = fun
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)
        self._signature = self._made = None

    @property
    def def_vmap(self) -> Callable[..., Any]:
        """The `def_vmap` of the wrapped `custom_vmap` function."""
        return self.fun.def_vmap

    @property
    def defjvp(self) -> Callable[..., Any]:
        """The `defjvp` of the wrapped `custom_jvp` function."""
        return self.fun.defjvp

    @property
    def defjvps(self) -> Callable[..., Any]:
        """The `defjvps` of the wrapped `custom_jvp` function."""
        return self.fun.defjvps

    @property
    def defvjp(self) -> Callable[..., Any]:
        """The `defvjp` of the wrapped `custom_vjp` function."""
        return self.fun.defvjp

    def __reduce_ex__(self, protocol):
        return public_name(self) or self._made or super().__reduce_ex__(protocol)

    def __repr__(self):
        return f"<{type(self).__name__} of {getattr(self.fun, '__qualname__', None) or self.fun!r}>"

    def _positional(self, args, kwargs):
        """The call's arguments by position, keywords and defaults included."""
        if self._signature is None:
            try:
                self._signature = inspect.signature(self.fun)
            except (TypeError, ValueError):
                self._signature = False
            kinds = [p.kind for p in self._signature.parameters.values()] if self._signature else []
            plain = all(k in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for k in kinds)
            self._arity = len(kinds) if plain else None
        if not self._signature or (not kwargs and len(args) == self._arity):
            return args
        try:
            call = self._signature.bind(*args, **kwargs)
            # Defaults first: an omitted argument may precede one that is passed by name.
            call.apply_defaults()
            if passed := [name for name in call.kwargs if name in kwargs]:
                raise TypeError(f"The following keyword arguments could not be resolved to positions: {', '.join(passed)}")
        except TypeError as e:
            raise TypeError(
                f"The input arguments to the {type(self).__name__}-decorated function {name_of(self.fun)} could not be resolved to"
                f" positional-only arguments. Binding failed with the error:\n{e}"
            ) from None
        return call.args

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        # A function defined in a class body is a method; one that is only stored in a class, such as an activation, is not.
        inside = getattr(self.fun, "__qualname__", "").rpartition(".")[0]
        is_method = inside and not inside.endswith("<locals>")
        return functools.partial(self, instance) if is_method and instance is not None else self


class RuledFunction(FlatFun):
    """The function with the rule, over leaves. Once it has run, it knows the types of its outputs and
    which of them are its arguments.
    """

    __slots__ = ("forwards", "out_avals")

    def __call__(self, *leaves):
        outs = super().__call__(*leaves)
        where = {id(x): i for i, x in enumerate(leaves)}
        self.out_avals, self.forwards = [_core.get_aval(x) for x in outs], [where.get(id(x)) for x in outs]
        return outs

    def passed(self, leaves, outs):
        """The outputs. Outside of traces, a Python number that the function returned unchanged is a
        Python number again.
        """
        if not _core.at_root() or getattr(self, "forwards", None) is None:
            return outs
        is_number = lambda i: i is not None and type(leaves[i]) in (bool, int, float, complex)
        return [leaves[i] if is_number(i) else x for x, i in zip(outs, self.forwards, strict=True)]


class PlainText(str):
    """A string whose repr has no quotes, also inside containers."""

    __repr__ = str.__str__
