"""Functions of pytrees as functions of leaves, for libraries that define their own transformations.

    flat, out_tree = flatten_fun_nokwargs(wrap_init(f), in_tree)
    leaves = flat.call_wrapped(*in_leaves); out_tree()

Invariant: a flattened function is called with the leaves of its structure, and has the structure of
its result afterwards.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from . import _core
from ._trees.flat import abstract
from ._trees.prefixes import broadcast_prefix
from .core import Tracer
from .extend.linear_util import DebugInfo, _clean_keystr_arg_names, initial_result_paths, transformation2, transformation_with_aux2
from .tree_util import tree_flatten, tree_leaves_with_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._core import ShapedArray
    from .extend.linear_util import WrappedFun

_T = TypeVar("_T")

__all__ = [
    "argnums_partial",
    "debug_info",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "infer_argnums_and_argnames",
    "rebase_donate_argnums",
    "safe_map",
    "shaped_abstractify",
]


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of a value.

    Args:
        x: array, number, or anything with a shape and a dtype.

    Returns:
        ShapedArray.

    Raises:
        TypeError: `x` has no shape or no dtype.
    """
    return abstract(x)


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = initial_result_paths,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """The description of a traced function in errors.

    Args:
        traced_for: str, the name of the transform.
        fun: the function. If its attribute `__fun_debug_info__` is a DebugInfo, that is returned.
        args: tuple of its positional arguments, the static ones included.
        kwargs: dict of its arguments by name, the static ones included.
        static_argnums: ints, the positions of the static arguments.
        static_argnames: strs, their names.
        result_paths_thunk: function that returns the paths of the results.
        sourceinfo: str; by default the function's name, file and line.
        signature: by default the function's.

    Returns:
        DebugInfo with a name for each leaf of the arguments that are not static.
    """
    known = getattr(fun, "__fun_debug_info__", None)
    if known is not None:
        return known
    source = _source_of(fun) if sourceinfo is None else sourceinfo
    names = _names_of_leaves(_signature_of(fun) if signature is None else signature, args, kwargs, static_argnums, static_argnames)
    return DebugInfo(traced_for, source, names, result_paths_thunk)


def _source_of(fun):
    while isinstance(fun, functools.partial):
        fun = fun.func
    fun = inspect.unwrap(fun)
    code = getattr(fun, "__code__", None)
    if code is not None:
        return f"{fun.__name__} at {code.co_filename}:{code.co_firstlineno}"
    return fun.__name__ if inspect.isbuiltin(fun) else "<unknown>"


def _signature_of(fun):
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


_STATIC = object()


def _names_of_leaves(signature, args, kwargs, static_argnums, static_argnames):
    """The names of the leaves: positional arguments first, then those by name, sorted."""
    static = {i + len(args) if i < 0 else i for i in static_argnums}
    args = [_STATIC if i in static else x for i, x in enumerate(args)]
    kwargs = {name: _STATIC if name in set(static_argnames) else x for name, x in kwargs.items()}
    by_name = sorted(kwargs.items())
    try:
        if signature is None:
            raise TypeError
        bound = signature.bind(*args, **kwargs).arguments
    except (ValueError, TypeError):
        ordered = [("args", args), *((f"kwargs['{name}']", x) for name, x in by_name)]
    else:
        others = next((name for name, p in signature.parameters.items() if p.kind == inspect.Parameter.VAR_KEYWORD), None)
        ordered = [(name, x) for name, x in bound.items() if name not in kwargs and name != others]
        ordered += [(name if name in bound else f"{others}['{name}']", x) for name, x in by_name]
    return tuple(f"{name}{_clean_keystr_arg_names(path)}" for name, x in ordered for path, leaf in tree_leaves_with_path(x) if leaf is not _STATIC)


def _flat(inner, store, in_tree, *leaves):
    args, kwargs = in_tree.unflatten(leaves)
    out, tree = tree_flatten(inner(*args, **kwargs))
    store.store(tree)
    return out


def _flat_nokwargs(inner, store, in_tree, *leaves):
    out, tree = tree_flatten(inner(*in_tree.unflatten(leaves)))
    store.store(tree)
    return out


def flatten_fun(fun: WrappedFun, in_tree: Any, use_eq_store: bool = False) -> tuple[WrappedFun, Callable[[], Any]]:
    """A function of pytrees as a function of their leaves.

    Args:
        fun: WrappedFun of any arguments.
        in_tree: PyTreeDef of (args, kwargs).
        use_eq_store: bool; whether the structure of the result may be stored again if it is equal.

    Returns:
        Pair: a WrappedFun of the leaves that returns the leaves of the result, and a function
        without arguments that returns the result's PyTreeDef after a call.
    """
    return transformation_with_aux2(_flat, fun, in_tree, use_eq_store=use_eq_store)()


def flatten_fun_nokwargs(fun: WrappedFun, in_tree: Any, use_eq_store: bool = False) -> tuple[WrappedFun, Callable[[], Any]]:
    """A function of positional pytrees as a function of their leaves.

    Args:
        fun: WrappedFun of positional arguments.
        in_tree: PyTreeDef of the tuple of arguments.
        use_eq_store: bool; whether the structure of the result may be stored again if it is equal.

    Returns:
        Pair: a WrappedFun of the leaves that returns the leaves of the result, and a function
        without arguments that returns the result's PyTreeDef after a call.
    """
    return transformation_with_aux2(_flat_nokwargs, fun, in_tree, use_eq_store=use_eq_store)()


class _Fixed:
    """A static argument.

    Two are equal if their types are the same and the values equal; if they cannot be hashed, if
    they are the same object.
    """

    def __init__(self, value):
        self.value = value
        try:
            self._hash = hash((type(value), value))
        except TypeError:
            self._hash = None

    def __hash__(self):
        return id(self.value) if self._hash is None else self._hash

    def __eq__(self, other):
        if self._hash is None:
            return isinstance(other, _Fixed) and self.value is other.value
        return isinstance(other, _Fixed) and type(self.value) is type(other.value) and self.value == other.value


@transformation2
def _with_fixed(inner, numbers, fixed, *dyn, **kwargs):
    """A function of positional arguments, called with those at `numbers`."""
    values = {i: box.value for i, box in fixed} | dict(zip(numbers, dyn, strict=True))
    return inner(*[values[i] for i in range(len(values))], **kwargs)


def argnums_partial(
    f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any], require_static_args_hashable: bool = True
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """A function of some of its positional arguments, the others fixed.

    Args:
        f: WrappedFun.
        dyn_argnums: int or sequence of ints, the positions of the arguments that remain; negative
          ones count from the end.
        args: tuple of all positional arguments.
        require_static_args_hashable: bool; whether the fixed arguments must be hashable.

    Returns:
        Pair: a WrappedFun of the arguments at `dyn_argnums`, and the tuple of these arguments.

    Raises:
        ValueError: a fixed argument cannot be hashed, and must be.
    """
    numbers = (operator.index(dyn_argnums),) if hasattr(dyn_argnums, "__index__") else tuple(dyn_argnums)
    numbers = tuple(i % len(args) for i in numbers)
    fixed = tuple((i, _Fixed(x)) for i, x in enumerate(args) if i not in numbers)
    for i, box in fixed:
        x = box.value
        try:
            hash(x)
        except TypeError:
            if require_static_args_hashable and not isinstance(x, (_core.Array, Tracer)):
                raise ValueError(f"Non-hashable static arguments are used in a jit-like function: argument {i} is of type {type(x)}") from None
    return _with_fixed(f, numbers, fixed), tuple(args[i] for i in numbers)


def rebase_donate_argnums(donate_argnums: Any, static_argnums: Any) -> tuple[int, ...]:
    """Positions of donated arguments, counted among the arguments that are not static.

    Args:
        donate_argnums: ints, positions of donated arguments among all.
        static_argnums: ints, positions of static arguments.

    Returns:
        Tuple of ints, sorted.

    Raises:
        ValueError: an argument is static and donated.
    """
    if both := set(donate_argnums) & set(static_argnums):
        raise ValueError(f"static_argnums and donate_argnums cannot intersect. Argument indices {both} appear in both")
    return tuple(i - sum(s < i for s in static_argnums) for i in sorted(donate_argnums))


def safe_map(f: Callable[..., _T], *args: Iterable[Any]) -> list[_T]:
    """Applies a function to the elements of sequences of equal length.

    Args:
        f: function of as many arguments as there are sequences.
        *args: sequences.

    Returns:
        List of results.

    Raises:
        ValueError: the lengths differ.
    """
    return [f(*x) for x in zip(*args, strict=True)]


def flatten_axes(name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False) -> list[Any]:
    """The axis of each leaf of a structure, from a tree of axes that may stop above the leaves.

    None counts as an axis.

    Args:
        name: str, the name of the tree of axes in errors.
        treedef: PyTreeDef.
        axis_tree: tree prefix of the structure, of ints or None.
        kws: whether the structure is (args, kwargs). Ignored.
        tupled_args: whether the structure is that of positional arguments. Ignored.

    Returns:
        List of axes, one for each leaf.

    Raises:
        ValueError: the tree is not a prefix of the structure.
    """
    whole = treedef.unflatten([object()] * treedef.num_leaves)
    try:
        return list(broadcast_prefix(axis_tree, whole, is_leaf=lambda x: x is None))
    except ValueError as e:
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value, got specification {axis_tree} for value tree {treedef}."
        ) from e


def _each(x):
    return (x,) if isinstance(x, (int, str)) else tuple(x)


def infer_argnums_and_argnames(sig: Any, argnums: int | Sequence[int] | None, argnames: str | Sequence[str] | None) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The numbers and names of arguments that can be given by position and by name, if one of both
    is given.

    Args:
        sig: an `inspect.Signature`.
        argnums: a number, a sequence of them, or None.
        argnames: a name, a sequence of them, or None.

    Returns:
        Pair (numbers, names); given ones are returned, and missing ones are inferred.
    """
    if argnums is None and argnames is None:
        return (), ()
    if argnums is not None and argnames is not None:
        return _each(argnums), _each(argnames)
    both = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named = list(sig.parameters.items())
    if argnums is not None:
        argnums = _each(argnums)
        return argnums, tuple(k for i, (k, p) in enumerate(named) if p.kind is both and i in argnums)
    argnames = _each(argnames)
    return tuple(i for i, (k, p) in enumerate(named) if p.kind is both and k in argnames), argnames
