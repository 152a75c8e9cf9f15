"""`jax._src.api_util`: functions and their arguments.

Invariant: functions that describe a function return None where it has no such description.
"""

import inspect
import operator

from ... import _core

__all__ = [
    "check_callable",
    "ensure_index",
    "ensure_index_tuple",
    "fun_signature",
    "fun_sourceinfo",
    "infer_argnums_and_argnames",
    "is_hashable",
    "resolve_kwargs",
    "shaped_abstractify",
]


def check_callable(fun):
    """Raises an error for an object that cannot be transformed.

    Raises:
        TypeError: it is not callable, is an unbound static method, or is a generator function.
    """
    if isinstance(fun, staticmethod):
        raise TypeError(f"staticmethod arguments are not supported, got {fun}")
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun}")


def fun_signature(fun):
    """A function's signature, or None."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def fun_sourceinfo(fun):
    """`name at file:line`, or None."""
    while hasattr(fun, "func"):
        fun = fun.func
    fun = inspect.unwrap(fun)
    try:
        return f"{fun.__name__} at {fun.__code__.co_filename}:{fun.__code__.co_firstlineno}"
    except AttributeError:
        return None


def is_hashable(arg):
    """Whether something can be a key."""
    try:
        hash(arg)
    except TypeError:
        return False
    return True


def infer_argnums_and_argnames(sig, argnums, argnames):
    """Numbers and names of the same arguments, each found from the other where only one is
    given.
    """
    if argnums is None and argnames is None:
        return (), ()
    numbers = None if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = None if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if numbers is not None and names is not None:
        return numbers, names
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = list(sig.parameters.values()) if sig is not None else []
    if numbers is None:
        return tuple(i for i, p in enumerate(parameters) if p.kind in positional and p.name in names), names
    rows = [(i % len(parameters), parameters[i]) for i in numbers if -len(parameters) <= i < len(parameters)]
    return numbers, tuple(p.name for _, p in rows if p.kind in named)


def resolve_kwargs(fun, args, kwargs):
    """All arguments as positional ones."""
    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"The following keyword arguments could not be resolved to positions: {', '.join(bound.kwargs)}")
    return bound.args


def shaped_abstractify(x):
    """The type of a value, or of an object with a shape and a dtype."""
    try:
        return _core.get_aval(x)
    except TypeError:
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise
        return _core.ShapedArray(tuple(x.shape), x.dtype, weak_type=getattr(x, "weak_type", False))


def ensure_index(x):
    """Numbers as a number or a tuple."""
    try:
        return operator.index(x)
    except TypeError:
        return tuple(map(operator.index, x))


def ensure_index_tuple(x):
    """An integer, or integers, as a tuple."""
    x = ensure_index(x)
    return x if isinstance(x, tuple) else (x,)
