"""Functions with transformations around them, as libraries written on JAX's internals make them.

    f = flatten(wrap_init(f, debug_info=None), in_tree)          # `flatten` was made by `transformation2`
    f.call_wrapped(*leaves)

Invariant: `call_wrapped` runs the transformations from the outside in, each given what it wraps as a function.
"""

import functools

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
    """A value beside a result was read before there was one, or set twice."""


class Store:
    """A place for a value that a transformation learns while it runs."""

    def __init__(self):
        self._values = []

    @property
    def val(self):
        """The value."""
        if not self._values:
            raise StoreException("Store empty")
        return self._values[0]

    def store(self, val):
        """Sets it, once."""
        if self._values:
            raise StoreException("Store occupied")
        self._values.append(val)

    def reset(self):
        """Empties it."""
        self._values.clear()


class WrappedFun:
    """A function, the transformations around it (the outermost first) and its keyword arguments. Equal if these are."""

    def __init__(self, f, transforms=(), stores=(), params=(), in_type=None, debug_info=None):
        self.f, self.transforms, self.stores, self.params, self.in_type, self.debug_info = f, transforms, stores, params, in_type, debug_info

    @property
    def __name__(self):
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, gen, gen_static_args, out_store):
        """With one more transformation around it: `gen(inner, *gen_static_args, *args)`."""
        return WrappedFun(self.f, ((gen, gen_static_args), *self.transforms), (out_store, *self.stores), self.params, None, self.debug_info)

    def call_wrapped(self, *args, **kwargs):
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


def wrap_init(f, params=None, *, debug_info=None):
    """A function as a `WrappedFun` without transformations. params: keyword arguments that it is called with."""
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
def transformation2(gen, fun, *gen_static_args):
    """`fun` with `gen` around it: `gen(inner, *gen_static_args, *args, **kwargs)` gives the result."""
    return fun.wrap(gen, gen_static_args, None)


@_given_later
def transformation_with_aux2(gen, fun, *gen_static_args, use_eq_store=False):
    """As `transformation2`, of `gen(inner, store, *gen_static_args, *args)`; also returns the function that reads what `gen` stored."""
    store = Store()
    if use_eq_store:
        store.store = lambda val: store._values.__setitem__(slice(None), [val])
    return fun.wrap(gen, gen_static_args, store), lambda: store.val


def _with_generator(gen, inner, *args, **kwargs):
    """A generator as a transformation: it yields (args, kwargs) for what it wraps, is sent the result, and yields its own."""
    steps = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(steps)
    return steps.send(inner(*inner_args, **inner_kwargs))


@_given_later
def transformation(gen, fun, *gen_static_args):
    """`fun` with a generator around it, which yields the arguments to hand on, is sent the result, and yields its own."""
    return fun.wrap(functools.partial(_with_generator, gen), gen_static_args, None)


@_given_later
def transformation_with_aux(gen, fun, *gen_static_args, use_eq_store=False):
    """As `transformation`, of a generator that yields (result, what to store) at its end."""

    def with_aux(inner, store, *args, **kwargs):
        out, aux = _with_generator(gen, inner, *args, **kwargs)
        store.store(aux)
        return out

    return transformation_with_aux2(with_aux, fun, *gen_static_args, use_eq_store=use_eq_store)


def merge_linear_aux(aux1, aux2):
    """(True, what the first stored), else (False, what the second did)."""
    try:
        return True, aux1()
    except StoreException:
        return False, aux2()


def cache(call, *, explain=None):
    """`call(fun, *args)` of a `WrappedFun`, remembered for equal functions and arguments. explain: called with (fun, args) where it is not known yet."""
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
