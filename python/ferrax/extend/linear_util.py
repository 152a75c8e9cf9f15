"""Functions with transformations around them, for libraries that use JAX's internals.

    flatten = transformation2(flatten_gen)                       # flatten_gen(inner, in_tree, *leaves)
    f = flatten(wrap_init(f, debug_info=info), in_tree)
    f.call_wrapped(*leaves)

Invariant: `call_wrapped` runs the transformations from the outermost to the innermost; each gets
the next one as a function.
"""

from __future__ import annotations

import functools
import re
import time
import warnings
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._base.config import explain_cache_misses
from .._trees.flat import on_clear
from ..tree_util import keystr, tree_leaves_with_path

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence


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


class InitialResultPaths:
    """The type of `initial_result_paths`."""

    def __repr__(self):
        return "initial_result_paths"


# The paths of results in a DebugInfo before a function is wrapped.
initial_result_paths: InitialResultPaths = InitialResultPaths()
_FLAT_INDEX = re.compile("<flat index ([^>]+)>")


def _clean_keystr_arg_names(path):
    """A path as text; an index of a flattened value that has no names is printed as it is."""
    return _FLAT_INDEX.sub(r"\1", keystr(path))


class DebugInfo(NamedTuple):
    """The origin of a traced function, and the names of its arguments and results."""

    traced_for: str
    func_src_info: str
    arg_names: Any = None
    result_paths: Any = None

    @property
    def func_name(self) -> str:
        """The function's name."""
        return self.func_src_info.split(" ")[0]

    @property
    def func_filename(self) -> str | None:
        """The function's file, or None."""
        _, at, rest = self.func_src_info.partition(" at ")
        return rest.rpartition(":")[0] if at else None

    @property
    def func_lineno(self) -> int | None:
        """The line at which the function begins, or None."""
        line = self.func_src_info.rpartition(":")[2]
        return int(line) if self.func_filename is not None and line.isdecimal() else None

    def replace_func_name(self, name: str) -> DebugInfo:
        """A copy with another name."""
        words = self.func_src_info.split(" ")
        return self._replace(func_src_info=" ".join([name, *words[1:]]))

    def resolve_result_paths(self) -> DebugInfo:
        """A copy in which paths that are computed lazily are a tuple."""
        return self._replace(result_paths=tuple(self.result_paths())) if callable(self.result_paths) else self

    def set_result_paths(self, ans: Any) -> DebugInfo:
        """A copy with the paths of the leaves of `ans`."""
        return self._replace(result_paths=tuple(f"result{_clean_keystr_arg_names(path)}" for path, _ in tree_leaves_with_path(ans)))

    def with_unknown_names(self) -> DebugInfo:
        """A copy without names of arguments and results."""
        return self._replace(arg_names=None, result_paths=None)

    def safe_arg_names(self, expected_count: int) -> tuple[str, ...]:
        """A name for each argument; empty names if they are unknown or their number is another."""
        known = self.arg_names is not None and len(self.arg_names) == expected_count
        return tuple(self.arg_names) if known else ("",) * expected_count

    def filter_arg_names(self, keep: Sequence[bool]) -> tuple[str, ...] | None:
        """The names of the arguments that are kept, or None if they are unknown."""
        return None if self.arg_names is None else _kept(self.safe_arg_names(len(keep)), keep)

    def safe_result_paths(self, expected_count: int) -> tuple[str, ...]:
        """A path for each result; empty paths if they are unknown or their number is another."""
        known = isinstance(self.result_paths, tuple) and len(self.result_paths) == expected_count
        return self.result_paths if known else ("",) * expected_count

    def filter_result_paths(self, keep: Sequence[bool]) -> tuple[str, ...] | None:
        """The paths of the results that are kept, or None if they are unknown."""
        return None if self.result_paths is None else _kept(self.safe_result_paths(len(keep)), keep)


def _kept(names, keep):
    return tuple(name for name, kept in zip(names, keep, strict=True) if kept)


class StoreException(Exception):
    """A value was read before it was stored, or a second one was stored."""


class Store:
    """A place for a value that a transformation learns while it runs.

    It is true if it holds one.
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values = []

    def __bool__(self):
        return bool(self._values)

    @property
    def val(self) -> Any:
        """The stored value."""
        if not self._values:
            raise StoreException("Store empty")
        return self._values[0]

    def store(self, val: Any) -> None:
        """Stores the value; there may be none yet."""
        if self._values:
            raise StoreException("Store occupied")
        self._values.append(val)

    def reset(self) -> None:
        """Removes the value."""
        self._values.clear()


class EqualStore(Store):
    """A `Store` that takes a further value if it equals the first."""

    __slots__ = ()

    def store(self, val: Any) -> None:
        """Stores the value, or compares it with the stored one."""
        if not self._values:
            self._values.append(val)
            return
        try:
            same = bool(self._values[0] == val)
        except Exception:
            raise StoreException("Store occupied") from None
        if not same:
            raise StoreException("Store occupied with not-equal value")


def _name_of(f, default):
    while not hasattr(f, "__name__") and isinstance(f, functools.partial):
        f = f.func
    return getattr(f, "__name__", default)


class WrappedFun:
    """A function and the transformations around it.

    Two of them are equal if everything but `f_transformed` and the stores is.

    Args:
        f: the function.
        f_transformed: the function with the transformations around it.
        transforms: tuple of pairs (gen, its static arguments), the outermost transformation first.
        stores: tuple with a store, or None, for each transformation.
        params: tuple of pairs (name, value), keyword arguments for each call of `f`.
        in_type: the types of the arguments, or None.
        debug_info: DebugInfo.
    """

    __slots__ = ("__weakref__", "debug_info", "f", "f_transformed", "in_type", "params", "stores", "transforms")

    def __init__(
        self,
        f: Callable[..., Any],
        f_transformed: Callable[..., Any],
        transforms: tuple[tuple[Callable[..., Any], tuple[Hashable, ...]], ...],
        stores: tuple[Any, ...],
        params: tuple[tuple[str, Hashable], ...],
        in_type: Any,
        debug_info: Any,
    ) -> None:
        self.f, self.f_transformed, self.transforms, self.stores = f, f_transformed, transforms, stores
        self.params, self.in_type, self.debug_info = params, in_type, debug_info

    @property
    def __name__(self):
        return _name_of(self.f, "<unnamed wrapped function>")

    def wrap(self, gen: Any, gen_static_args: Any, out_store: Any) -> WrappedFun:
        """A WrappedFun with one more transformation around it:
        `gen(inner, *gen_static_args, *args)`, with a store after `inner` if there is one.
        """
        stored = () if out_store is None else (out_store,)
        run = functools.partial(gen, self.f_transformed, *stored, *gen_static_args)
        return WrappedFun(self.f, run, ((gen, gen_static_args), *self.transforms), (out_store, *self.stores), self.params, None, self.debug_info)

    def populate_stores(self, stores: Sequence[Any]) -> None:
        """Copies the values of `stores` to its own stores."""
        for mine, other in zip(self.stores, stores, strict=True):
            if mine is not None:
                mine.store(other.val)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the transformed function."""
        return self.f_transformed(*args, **kwargs)

    def replace_debug_info(self, dbg: Any) -> WrappedFun:
        """A copy with another DebugInfo."""
        return WrappedFun(self.f, self.f_transformed, self.transforms, self.stores, self.params, self.in_type, dbg)

    def with_unknown_names(self) -> WrappedFun:
        """A copy whose DebugInfo has no names of arguments and results."""
        return self.replace_debug_info(self.debug_info.with_unknown_names())

    def _key(self):
        return self.f, self.transforms, self.params, self.in_type, self.debug_info

    def __eq__(self, other):
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        unnamed = "<unnamed function>"
        lines = [f"{i}   : {_name_of(gen, unnamed)}   {_name_of(args, unnamed)}" for i, (gen, args) in enumerate(self.transforms)]
        return "\n".join(["Wrapped function:", *lines]) + f"\nCore: {_name_of(self.f, unnamed)}\n"


def _missing_debug_info(for_what: str) -> DebugInfo:
    """A DebugInfo in the place of one that the caller did not pass, with a warning."""
    message = f"{for_what} is missing a DebugInfo object; make one with api_util.debug_info()"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return DebugInfo("missing_debug_info", "<missing_debug_info>", None, None)


def wrap_init(f: Callable[..., Any], params: Any = None, *, debug_info: Any = None) -> WrappedFun:
    """A function as a `WrappedFun` without transformations.

    Args:
        f: the function.
        params: dict of keyword arguments for each call, or None.
        debug_info: DebugInfo, as `api_util.debug_info` makes it. None is deprecated.

    Returns:
        WrappedFun.
    """
    given = params or {}
    info = (debug_info or _missing_debug_info("linear_util.wrap_init"))._replace(result_paths=None)
    return WrappedFun(f, functools.partial(f, **given), (), (), tuple(sorted(given.items())), None, info)


def _curried(transformation):
    """`_curried(f)(gen)(fun, *args)` is `f(gen, fun, *args)`."""

    @functools.wraps(transformation)
    def with_gen(*args, **options):
        return functools.partial(transformation, *args, **options)

    return with_gen


@_curried
def transformation2(gen: Any, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """A function with another one around it.

    A call with `gen` returns a function of the other arguments, so it can be a decorator of `gen`.

    Args:
        gen: `gen(inner, *gen_static_args, *args, **kwargs)`, which returns the result of the whole.
        fun: WrappedFun, the inner function.
        *gen_static_args: first arguments of `gen` after the inner function.

    Returns:
        WrappedFun.
    """
    return fun.wrap(gen, gen_static_args, None)


@_curried
def transformation_with_aux2(
    gen: Any, fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False
) -> tuple[WrappedFun, Callable[[], Any]]:
    """A function wrapped in another one that also stores a value.

    A call with `gen` returns a function of the other arguments.

    Args:
        gen: `gen(inner, store, *gen_static_args, *args, **kwargs)`, which returns the result of the
          whole and calls `store.store(value)`.
        fun: WrappedFun, the inner function.
        *gen_static_args: first arguments of `gen` after the store.
        use_eq_store: bool; whether a later call may store an equal value again.
        unk_names: bool; whether the names of arguments and results are unknown from here on.

    Returns:
        Pair: the WrappedFun, and a function without arguments that returns the stored value.
    """
    store = EqualStore() if use_eq_store else Store()
    wrapped = fun.wrap(gen, gen_static_args, store)
    return wrapped.with_unknown_names() if unk_names else wrapped, lambda: store.val


def _with_generator(gen, inner, *args, **kwargs):
    """A generator as a transformation: it yields (args, kwargs) for the inner function, is sent the
    result, and yields its own result.
    """
    steps = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(steps)
    return steps.send(inner(*inner_args, **inner_kwargs))


@_curried
def transformation(gen: Any, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """A function with a generator around it.

    A call with `gen` returns a function of the other arguments.

    Args:
        gen: generator of (*gen_static_args, *args): it yields the pair (args, kwargs) for the inner
          function, is sent its result, and yields the result of the whole.
        fun: WrappedFun, the inner function.
        *gen_static_args: first arguments of the generator.

    Returns:
        WrappedFun.
    """
    return fun.wrap(functools.partial(_with_generator, gen), gen_static_args, None)


@_curried
def transformation_with_aux(gen: Any, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """A function with a generator around it that also stores a value.

    A call with `gen` returns a function of the other arguments.

    Args:
        gen: generator as in `transformation`, except that it finally yields the pair (result, value
          to store).
        fun: WrappedFun, the inner function.
        *gen_static_args: first arguments of the generator.

    Returns:
        Pair: the WrappedFun, and a function without arguments that returns the stored value.
    """

    def with_aux(inner, store, *args, **kwargs):
        out, aux = _with_generator(gen, inner, *args, **kwargs)
        store.store(aux)
        return out

    return transformation_with_aux2(with_aux, fun, *gen_static_args)()


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """The value of the one of two stores that holds one.

    Args:
        aux1, aux2: functions that read a store, as `transformation_with_aux` returns them.

    Returns:
        Pair (True, value of the first store), or (False, value of the second).

    Raises:
        StoreException: both stores are empty, or both hold a value.
    """
    found = []
    for first, aux in ((True, aux1), (False, aux2)):
        try:
            found.append((first, aux()))
        except StoreException:
            continue
    if len(found) != 1:
        raise StoreException("both stores occupied" if found else "neither store occupied")
    return found[0]


# Functions that remember results and are alive, and what for.
_caches = weakref.WeakKeyDictionary()


def register_cache(cache: Any, for_what: str) -> None:
    """Has `clear_caches` call the function's attribute `cache_clear`. `for_what` describes it."""
    _caches[cache] = for_what


def _clear():
    for known in list(_caches):
        known.cache_clear()


on_clear.append(_clear)


def cache(call: Callable[..., Any], *, explain: Callable[[WrappedFun, bool, dict[Any, Any], tuple[Any, ...], float], None] | None = None) -> Callable[..., Any]:
    """A function of a `WrappedFun` and further arguments that remembers its results, and what the
    transformations stored, while the wrapped function is alive.

    Results are stored separately for each setting that programs depend on.

    Args:
        call: `call(fun, *args)`.
        explain: function called after each call that was not remembered, if
            `jax_explain_cache_misses` is set, with `fun`; whether nothing was remembered for its
            function before; the dict of remembered results; the key of the new result; and the
            seconds that the call took.

    Returns:
        A function of the same arguments. Its attributes are `cache_clear`, a function that forgets
        all results, and `evict_function`, a function of a function that forgets its results.
    """
    caches = weakref.WeakKeyDictionary()

    def memoized(fun, *args):
        known = caches.setdefault(fun.f, new := {})
        key = (fun.transforms, fun.params, fun.in_type, args, _core.trace_context())
        found = known.get(key)
        if found is not None:
            out, stores = found
            fun.populate_stores(stores)
            return out
        start = time.time()
        out = call(fun, *args)
        if explain is not None and explain_cache_misses.value:
            explain(fun, known is new, known, key, time.time() - start)
        known[key] = out, fun.stores
        return out

    memoized.cache_clear = caches.clear
    memoized.evict_function = lambda f: caches.pop(f, None)
    register_cache(memoized, str(call))
    return memoized


hashable_partial = transformation2(lambda inner, *args: inner(*args))
