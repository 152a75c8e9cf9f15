"""`jax._src.util`: small helper functions of JAX's own code, which libraries use too.

Invariant: plain Python; `safe_map` and `safe_zip` refuse arguments of different lengths.
"""

import abc
import collections
import functools
import itertools
import operator
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np

from ... import _core, numpy
from ..._base.config import explain_cache_misses
from ..._base.shapes import canonicalize_axis
from ...extend.linear_util import register_cache

T = TypeVar("T")
T1, T2, T3 = TypeVar("T1"), TypeVar("T2"), TypeVar("T3")

__all__ = [
    "T1",
    "T2",
    "T3",
    "Any",
    "Callable",
    "Generic",
    "Hashable",
    "HashableFunction",
    "HashablePartial",
    "HashableWrapper",
    "Iterable",
    "Iterator",
    "Mapping",
    "NamedTuple",
    "OrderedSet",
    "Sequence",
    "StrictABC",
    "StrictABCMeta",
    "T",
    "TypeVar",
    "Unhashable",
    "as_hashable_function",
    "cache",
    "canonicalize_axis",
    "canonicalize_axis_tuple",
    "ceil_of_ratio",
    "concatenate",
    "curry",
    "flatten",
    "foreach",
    "fun_name",
    "fun_qual_name",
    "map",
    "maybe_named_axis",
    "memoize",
    "merge_lists",
    "moveaxis",
    "overload",
    "partial",
    "partition_list",
    "reduce",
    "safe_map",
    "safe_zip",
    "set_module",
    "split_list",
    "split_list_checked",
    "stable_unique",
    "subs_list",
    "subs_list2",
    "subvals",
    "toposort",
    "tuple_delete",
    "tuple_insert",
    "tuple_update",
    "unflatten",
    "unzip2",
    "unzip3",
    "use_cpp_class",
    "use_cpp_method",
    "weakref_lru_cache",
    "wrap_name",
    "wraps",
    "zip",
]

map, zip = map, zip


def _same_lengths(args):
    lengths = [len(a) for a in args]
    if len(set(lengths)) > 1:
        raise ValueError(f"length mismatch: {lengths}")


def safe_zip(*args):
    """`list(zip(..))` of arguments of one length."""
    args = [list(a) for a in args]
    _same_lengths(args)
    return list(zip(*args, strict=True))


def safe_map(f, *args):
    """`list(map(f, ..))` of arguments of one length."""
    args = [list(a) for a in args]
    _same_lengths(args)
    return list(map(f, *args))


def foreach(f, *args):
    """Calls `f` with each of arguments of one length."""
    safe_map(f, *args)


def unzip2(xys):
    """(firsts, seconds) of pairs, as tuples."""
    pairs = list(xys)
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)


def unzip3(xyzs):
    """(firsts, seconds, thirds) of triples, as tuples."""
    triples = list(xyzs)
    return tuple(t[0] for t in triples), tuple(t[1] for t in triples), tuple(t[2] for t in triples)


def subvals(lst, replace):
    """A tuple with items replaced: (number, value) pairs."""
    lst = list(lst)
    for i, v in replace:
        lst[i] = v
    return tuple(lst)


def split_list(args, ns):
    """Lists of these lengths, and the rest."""
    args, lists = list(args), []
    for n in ns:
        lists.append(args[:n])
        args = args[n:]
    return [*lists, args]


def split_list_checked(args, ns):
    """Lists of these lengths, which are all there is."""
    args = list(args)
    if sum(ns) != len(args) or any(n < 0 for n in ns):
        raise ValueError(f"lists of lengths {list(ns)} do not add up to a list of length {len(args)}")
    return split_list(args, ns)[:-1]


def partition_list(bs, l):
    """(items whose truth is False, those whose truth is True)."""
    lists = [], []
    for b, x in safe_zip(bs, l):
        lists[bool(b)].append(x)
    return lists


def merge_lists(bs, l0, l1):
    """The list that `partition_list` split."""
    sides = iter(l0), iter(l1)
    out = [next(sides[bool(b)]) for b in bs]
    if any(next(s, sides) is not sides for s in sides):
        raise ValueError("the lists are longer than the booleans require")
    return out


def subs_list(subs, src, base):
    """`base` with element i replaced by `src[subs[i]]` where `subs[i]` is not None."""
    own = iter(base)
    return [src[i] if i is not None else next(own) for i in subs]


def subs_list2(subs1, subs2, src1, src2, base):
    """As `subs_list`, of two sources."""
    own = iter(base)
    return [src1[i] if i is not None else src2[j] if j is not None else next(own) for i, j in safe_zip(subs1, subs2)]


def concatenate(xs):
    """One list of lists."""
    return list(itertools.chain.from_iterable(xs))


flatten = concatenate


def unflatten(xs, ns):
    """`xs` cut into lists of these lengths."""
    it = iter(xs)
    return [list(itertools.islice(it, n)) for n in ns]


def curry(f):
    """`curry(f)(x)(y)` is `f(x, y)`."""
    return partial(partial, f)


def cache(max_size=4096, trace_context_in_key=True):
    """A decorator that remembers results. trace_context_in_key: whether results are stored
    separately for each trace context.
    """

    def decorator(f):
        from_context = _context if trace_context_in_key else (lambda: None)

        @functools.lru_cache(max_size)
        def remembered(_, *args, **kwargs):
            return f(*args, **kwargs)

        @functools.wraps(f)
        def call(*args, **kwargs):
            return remembered(from_context(), *args, **kwargs)

        call.cache_clear, call.cache_info = remembered.cache_clear, remembered.cache_info
        return call

    return decorator


def _context():
    return _core.trace_context()


memoize = cache(max_size=None)


def weakref_lru_cache(call=None, /, *, maxsize=2048, trace_context_in_key=True, explain=None):
    """`call(x, *args)` remembered while `x` is alive. Without `call`, a decorator.

    Args:
        call: a function whose first argument can be referred to weakly.
        maxsize: the number of results that are stored for each first argument; None for all.
        trace_context_in_key: whether results are stored separately for each trace context.
        explain: called with the list of stored keys and the arguments before each call that is not
          remembered, if `jax_explain_cache_misses` is set.
    """
    if call is None:
        return functools.partial(weakref_lru_cache, maxsize=maxsize, trace_context_in_key=trace_context_in_key, explain=explain)
    kept, counts = weakref.WeakKeyDictionary(), collections.Counter()

    @functools.wraps(call)
    def remembered(first, *args, **kwargs):
        table = kept.setdefault(first, {})
        key = (_context() if trace_context_in_key else None, args, tuple(sorted(kwargs.items())))
        counts["hits" if key in table else "misses"] += 1
        if key in table:
            table[key] = table.pop(key)
            return table[key]
        if explain is not None and explain_cache_misses.value:
            explain(cache_keys(), first, *args, **kwargs)
        out = call(first, *args, **kwargs)
        if maxsize is not None and len(table) >= maxsize:
            table.pop(next(iter(table)))
        table[key] = out
        return out

    def cache_keys():
        return [(weakref.ref(first), context, args, dict(named)) for first, table in kept.items() for context, args, named in table]

    def cache_clear():
        kept.clear()
        counts.clear()

    remembered.cache_keys, remembered.cache_clear = cache_keys, cache_clear
    remembered.cache_info = lambda: CacheInfo(counts["hits"], counts["misses"], maxsize, sum(map(len, kept.values())))
    remembered.evict_weakref = lambda first: kept.pop(first, None)
    register_cache(remembered, str(call))
    return remembered


class CacheInfo(NamedTuple):
    """How often a cache had a result, and how many it holds."""

    hits: int
    misses: int
    maxsize: int | None
    currsize: int


class Unhashable:
    """A value that cannot be hashed."""

    __hash__ = None

    def __init__(self, val):
        self.val = val

    def __eq__(self, other):
        return self.val == other.val


class HashableFunction:
    """A function that equals others of the same closure."""

    def __init__(self, f, closure):
        self.f, self.closure = f, closure

    def __eq__(self, other):
        return type(other) is HashableFunction and self.f.__code__ == other.f.__code__ and self.closure == other.closure

    def __hash__(self):
        return hash((self.f.__code__, self.closure))

    def __call__(self, *args, **kwargs):
        return self.f(*args, **kwargs)

    def __repr__(self):
        return f"<hashable {self.f.__name__} with closure={self.closure}>"


def as_hashable_function(closure):
    """A decorator: the function as a `HashableFunction` of this closure."""
    return lambda f: HashableFunction(f, closure)


class HashablePartial:
    """A partial function that equals others of the same code and arguments."""

    def __init__(self, f, *args, **kwargs):
        self.f, self.args, self.kwargs = f, args, kwargs

    def _key(self):
        return self.f.__code__, self.args, tuple(sorted(self.kwargs.items()))

    def __eq__(self, other):
        return type(other) is HashablePartial and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __call__(self, *args, **kwargs):
        return self.f(*self.args, *args, **self.kwargs, **kwargs)


class HashableWrapper:
    """A value as a key: the value itself if it can be hashed, else its identity."""

    def __init__(self, x):
        self.x = x
        try:
            self.hash, self.by_value = hash(x), True
        except TypeError:
            self.hash, self.by_value = id(x), False

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        return isinstance(other, HashableWrapper) and (self.x == other.x if self.by_value else self.x is other.x)


def wrap_name(transform_name, name):
    """`transform(name)`."""
    return f"{transform_name}({name})"


def fun_name(fun, default_name="<unnamed function>"):
    """The name of a function."""
    name = getattr(fun, "__name__", None)
    if name is not None:
        return name
    return fun_name(fun.func, default_name) if isinstance(fun, partial) else default_name


def fun_qual_name(fun):
    """The qualified name of a function."""
    name = getattr(fun, "__qualname__", None)
    return name if name is not None else fun_name(fun.func if isinstance(fun, partial) else fun)


def canonicalize_axis_tuple(axis, ndim, allow_duplicate=False):
    """Axes counted from the front; all of them for None.

    Raises:
        ValueError: an axis does not exist, or occurs twice.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(canonicalize_axis(a, ndim) for a in (axis if isinstance(axis, Sequence) else (axis,)))
    if len(set(axes)) < len(axes) and not allow_duplicate:
        raise ValueError(f"duplicate value in axis: {axis}")
    return axes


def moveaxis(x, src, dst):
    """`x` with an axis moved."""
    return x if src == dst else numpy.moveaxis(x, src, dst)


def ceil_of_ratio(x, y):
    """`x / y`, rounded up."""
    return -(-x // y)


def wraps(wrapped, namestr=None, docstr=None, **kwargs):
    """A decorator that gives a function another's name and docstring.

    Args:
        wrapped: the other.
        namestr, docstr: formats, of `fun`, `doc` and the other keyword arguments.
        **kwargs: the values for the formats.
    """

    def wrapper(fun):
        try:
            name, doc = fun_name(wrapped), getattr(wrapped, "__doc__", "") or ""
            fun.__dict__.update(getattr(wrapped, "__dict__", {}))
            fun.__name__ = name if namestr is None else namestr.format(fun=name, **kwargs)
            fun.__module__ = getattr(wrapped, "__module__", "<unknown module>")
            fun.__doc__ = doc if docstr is None else docstr.format(fun=name, doc=doc, **kwargs)
            fun.__qualname__ = getattr(wrapped, "__qualname__", fun.__name__)
            fun.__wrapped__ = wrapped
        finally:
            return fun  # noqa: B012 - whatever cannot be set is left

    return wrapper


def tuple_insert(t, idx, val):
    """A tuple with one item more."""
    return (*t[:idx], val, *t[idx:])


def tuple_delete(t, idx):
    """A tuple without an item."""
    return (*t[:idx], *t[idx + 1 :])


def tuple_update(t, idx, val):
    """A tuple with another item."""
    return (*t[:idx], val, *t[idx + 1 :])


def maybe_named_axis(axis, if_pos, if_named):
    """`if_pos` of a number, `if_named` of a name."""
    try:
        return if_pos(operator.index(axis))
    except TypeError:
        return if_named(axis)


def stable_unique(it):
    """The items that differ, in their order."""
    return dict.fromkeys(it).keys()


class OrderedSet:
    """A set that is iterated in the order of insertion."""

    def __init__(self, *args):
        self.elts_set, self.elts_list = set(), []
        for elt in args:
            self.add(elt)

    def add(self, elt):
        """Adds an item."""
        if elt not in self.elts_set:
            self.elts_set.add(elt)
            self.elts_list.append(elt)

    def update(self, elts):
        """Adds items."""
        for e in elts:
            self.add(e)

    def __iter__(self):
        return iter(self.elts_list)

    def __len__(self):
        return len(self.elts_list)

    def __contains__(self, elt):
        return elt in self.elts_set


def set_module(module):
    """A decorator that sets the module name of an object."""

    def wrapper(func):
        if module is not None:
            func.__module__ = module
        return func

    return wrapper


def use_cpp_class(cpp_cls):
    """A decorator of a class that returns it unchanged."""
    return lambda cls: cls


def use_cpp_method(is_enabled=True):
    """A decorator of a method that returns it unchanged."""
    return lambda f: f


class StrictABCMeta(abc.ABCMeta):
    """The class of abstract classes that take no others in."""

    def register(cls, subclass):
        """Refused.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(f"{cls} does not allow virtual subclasses")


class StrictABC(metaclass=StrictABCMeta):
    """An abstract class that takes no others in."""


def toposort(end_nodes):
    """Nodes with `parents`, each after its parents."""
    order, seen = [], set()

    def visit(node):
        if id(node) not in seen:
            seen.add(id(node))
            for p in node.parents:
                visit(p)
            order.append(node)

    for node in end_nodes:
        visit(node)
    return order


def product(xs):
    """The product of numbers."""
    return int(np.prod(xs, dtype=object)) if len(xs) else 1
