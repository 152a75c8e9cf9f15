"""Functions with transformations around them, for libraries that use JAX's internals.

    f = flatten(wrap_init(f, debug_info=None), in_tree)          # `flatten` was made by `transformation2`
    f.call_wrapped(*leaves)

Invariant: `call_wrapped` runs the transformations from the outermost to the innermost; each gets the next one as a function.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


__all__ = [
    "StoreException",
    "WrappedFun",
    "cache",
    "merge_linear_aux",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]


class StoreException(Exception):
    """A value of a result was read before it was set, or was set twice."""


class Store:
    """A place for a value that a transformation learns while it runs."""

    def __init__(self) -> None:
        self._values = []

    @property
    def val(self) -> Any:
        """The value."""
        if not self._values:
            raise StoreException("Store empty")
        return self._values[0]

    def store(self, val: Any) -> None:
        """Sets it, once."""
        if self._values:
            raise StoreException("Store occupied")
        self._values.append(val)

    def reset(self) -> None:
        """Empties it."""
        self._values.clear()


class WrappedFun:
    """A function, the transformations around it (the outermost first) and its keyword arguments. Equal if these are."""

    def __init__(
        self,
        f: Callable[..., Any],
        transforms: tuple[tuple[Callable[..., Any], tuple[Hashable, ...]], ...] = (),
        stores: tuple[Any, ...] = (),
        params: tuple[tuple[str, Hashable], ...] = (),
        in_type: Any = None,
        debug_info: Any = None,
    ) -> None:
        self.f, self.transforms, self.stores, self.params, self.in_type, self.debug_info = f, transforms, stores, params, in_type, debug_info

    @property
    def __name__(self):
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, gen: Any, gen_static_args: Any, out_store: Any) -> WrappedFun:
        """With one more transformation around it: `gen(inner, *gen_static_args, *args)`."""
        return WrappedFun(self.f, ((gen, gen_static_args), *self.transforms), (out_store, *self.stores), self.params, None, self.debug_info)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Runs it."""
        run = self.f
        for (gen, static), store in reversed(list(zip(self.transforms, self.stores, strict=True))):
            run = functools.partial(gen, run, *static) if store is None else functools.partial(gen, run, store, *static)
        return run(*args, **dict(self.params, **kwargs))

    def _key(self):
        return self.f, self.transforms, self.params, self.in_type

    def __eq__(self, other):
        return type(other) is WrappedFun and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())


def wrap_init(f: Callable[..., Any], params: Any = None, *, debug_info: Any = None) -> WrappedFun:
    """A function as a `WrappedFun` without transformations.

    Args:
        f: the function.
        params: dict of keyword arguments for each call, or None.
        debug_info: the description of the function in errors, or None.

    Returns:
        WrappedFun.
    """
    return WrappedFun(f, params=tuple(sorted((params or {}).items())), debug_info=debug_info)


def _given_later(transformation):
    """A transformation that may be called without the function: it is a decorator of `gen` then."""

    @functools.wraps(transformation)
    def with_or_without(gen, *fun_and_args, **options):
        if not fun_and_args:
            return functools.partial(with_or_without, gen, **options)
        return transformation(gen, *fun_and_args, **options)

    return with_or_without


@_given_later
def transformation2(gen: Any, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """A function with another one around it.

    Args:
        gen: `gen(inner, *gen_static_args, *args, **kwargs)`, which returns the result of the whole.
        fun: WrappedFun, the inner function; if it is missing, a function of the remaining arguments is returned.
        *gen_static_args: first arguments of `gen` after the inner function.

    Returns:
        WrappedFun.
    """
    return fun.wrap(gen, gen_static_args, None)


@_given_later
def transformation_with_aux2(gen: Any, fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False) -> tuple[WrappedFun, Callable[[], Any]]:
    """A function with another one around it that also stores a value.

    Args:
        gen: `gen(inner, store, *gen_static_args, *args, **kwargs)`, which returns the result of the whole and calls `store.store(value)`.
        fun: WrappedFun, the inner function; if it is missing, a function of the remaining arguments is returned.
        *gen_static_args: first arguments of `gen` after the store.
        use_eq_store: bool; whether a later call may store a value again.

    Returns:
        Pair: the WrappedFun, and a function without arguments that returns the stored value.
    """
    store = Store()
    if use_eq_store:
        store.store = lambda val: store._values.__setitem__(slice(None), [val])
    return fun.wrap(gen, gen_static_args, store), lambda: store.val


def _with_generator(gen, inner, *args, **kwargs):
    """A generator as a transformation: it yields (args, kwargs) for the inner function, is sent the result, and yields its own result."""
    steps = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(steps)
    return steps.send(inner(*inner_args, **inner_kwargs))


@_given_later
def transformation(gen: Any, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """A function with a generator around it.

    Args:
        gen: generator of (*gen_static_args, *args): it yields the pair (args, kwargs) for the inner function, is sent its result, and yields the result of the whole.
        fun: WrappedFun, the inner function; if it is missing, a function of the remaining arguments is returned.
        *gen_static_args: first arguments of the generator.

    Returns:
        WrappedFun.
    """
    return fun.wrap(functools.partial(_with_generator, gen), gen_static_args, None)


@_given_later
def transformation_with_aux(gen: Any, fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False) -> WrappedFun:
    """A function with a generator around it that also stores a value.

    Args:
        gen: generator as in `transformation`, except that it finally yields the pair (result, value to store).
        fun: WrappedFun, the inner function; if it is missing, a function of the remaining arguments is returned.
        *gen_static_args: first arguments of the generator.
        use_eq_store: bool; whether a later call may store a value again.

    Returns:
        Pair: the WrappedFun, and a function without arguments that returns the stored value.
    """

    def with_aux(inner, store, *args, **kwargs):
        out, aux = _with_generator(gen, inner, *args, **kwargs)
        store.store(aux)
        return out

    return transformation_with_aux2(with_aux, fun, *gen_static_args, use_eq_store=use_eq_store)


def merge_linear_aux(aux1: Any, aux2: Any) -> Any:
    """The value of the one of two stores that was set.

    Args:
        aux1, aux2: functions that read a store, as `transformation_with_aux` returns them.

    Returns:
        Pair (True, value of the first store), or (False, value of the second) where the first is empty.

    Raises:
        StoreException: both are empty.
    """
    try:
        return True, aux1()
    except StoreException:
        return False, aux2()


def cache(call: Callable[..., Any], *, explain: Callable[[WrappedFun, bool, dict[Any, Any], tuple[Any, ...], float], None] | None = None) -> Any:
    """A function of a `WrappedFun` and further arguments that remembers its results.

    Args:
        call: `call(fun, *args)`.
        explain: function called with (fun, args) where no result is remembered yet, or None.

    Returns:
        A function of the same arguments; its attribute `cache_clear` is a function that forgets all results. Equal functions and arguments share one result.
    """
    kept = {}

    def memoized(fun, *args):
        key = fun, args
        if key not in kept:
            if explain is not None:
                explain(fun, args)
            kept[key] = call(fun, *args)
        return kept[key]

    memoized.cache_clear = kept.clear
    return memoized
