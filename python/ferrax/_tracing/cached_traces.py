"""A cache of traced programs, so that control flow called from plain Python traces a function once.

Invariants: a cache entry does not keep its function alive, and is removed with it. An entry is used only for the same function with the same
closure, defaults and globals, also those of functions of the same module that it calls. Where the cache cannot compare these, because they
can change without notice, the function is traced again. A variable that the function itself assigns, such as a count of its calls, is not
compared.

    for _ in range(3): lax.fori_loop(0, 10, step, x)      # `step` is traced once
"""

import dis
import functools
import gc
import types
import weakref

import numpy as np

from .. import _core
from .._base.flags import FLAGS
from .._trees.flat import on_clear
from .picklable import Transformed, plain

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), np.generic, np.dtype)
_FIXED = (types.ModuleType, type, types.BuiltinFunctionType, np.ufunc)
_MOST_VALUES = 256
_MOST_PROGRAMS = 16
_MOST_FOLLOWED = 2000
_ENDS = (types.ModuleType, type, types.CodeType, *_PLAIN, _core.Array)

_programs = weakref.WeakKeyDictionary()
_LEAKS = FLAGS["jax_check_tracer_leaks"]


def forget():
    """Forgets all programs."""
    _programs.clear()


on_clear.append(forget)


class _CannotTell(Exception):
    pass


def _reach(fun):
    """The objects that the function reads besides its arguments. Raises _CannotTell if one can change unnoticed."""
    seen, out, functions = set(), [], [fun]
    while functions:
        f = functions.pop()
        if id(f) in seen:
            continue
        seen.add(id(f))
        values = [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
        names, assigned = _names(f.__code__)
        try:
            values += [cell.cell_contents for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True) if name not in assigned]
        except ValueError:
            raise _CannotTell from None  # a name that is not bound yet
        values += [f.__globals__[name] for name in names if name in f.__globals__]
        for x in values:
            _add(x, out)
            x = plain(x)
            if type(x) is types.FunctionType and x.__globals__ is fun.__globals__:
                functions.append(x)
        if len(out) > _MOST_VALUES:
            raise _CannotTell
    return out


@functools.lru_cache(maxsize=1024)
def _names(code):
    """(the names that may be globals which code reads, those from around it that it assigns), functions inside included."""
    names, assigned, codes = set(), set(), [code]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        assigned.update(i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_GLOBAL", "STORE_DEREF"))
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return sorted(names - assigned), assigned


def _add(x, out):
    if isinstance(x, tuple) and type(x) is tuple:
        out.append(len(x))
        for y in x:
            _add(y, out)
    elif isinstance(x, (*_PLAIN, *_FIXED, types.FunctionType, Transformed, _core.Array, _core.PjitFunction)):
        out.append(x)
    else:
        raise _CannotTell


def _held(x):
    """Stores x for comparison; weakly if possible, because objects in reach may refer back."""
    if isinstance(x, _PLAIN):
        return lambda: x
    try:
        return weakref.ref(x)
    except TypeError:
        return lambda: x


def _same(held, reach):
    if len(held) != len(reach):
        return False
    for h, x in zip(held, reach, strict=True):
        y = h()
        if y is not x and not (isinstance(x, _PLAIN) and type(x) is type(y) and x == y):
            return False
    return True


def traced(fun, what, flat_fun, avals, paths, in_tree, static):
    """(program, output tree) of `fun` as the function of leaves `flat_fun`, for arguments of these types and structure.

    what: the name of the transformation, for errors. paths: makes the names of the leaves for errors. static: the values of the arguments that
    are not leaves, by position or name.
    """

    def make():
        trees = []

        def flat(*leaves):
            outs, tree = _core.tree_flatten(flat_fun(*leaves))
            trees.append(tree)
            return outs

        flat.fun = fun  # errors name the user's function
        program, consts = _core.make_program(flat, avals, user_fun=fun, arg_paths=paths, what=what)
        return (program, trees[0]), settled(fun, program, consts)

    if not all(isinstance(x, _PLAIN) for x in static.values()):
        return make()[0]
    return remembered(fun, (what, tuple(avals), in_tree, tuple((k, type(x), x) for k, x in static.items())), make)


def settled(fun, program, consts):
    """Whether a program of `fun` that captured these values may be kept with it.

    Tracers end with their transformation. A stored program must be freed with its function, so it must not refer to the function: rules and
    callbacks of the program may do so through their closures.
    """
    return not any(isinstance(c, _core.Tracer) for c in consts) and not _leads_to(_core.held_objects(program), fun)


def _leads_to(objects, fun):
    """Whether any of the objects refers to `fun`, directly or through others; True if there are too many objects to search.

    Modules and types are not followed: they keep their objects alive anyway.
    """
    seen, left = {id(fun.__globals__)} if isinstance(fun, types.FunctionType) else set(), list(objects)
    while left:
        x = left.pop()
        if x is fun:
            return True
        if id(x) in seen or isinstance(x, _ENDS):
            continue
        seen.add(id(x))
        if len(seen) > _MOST_FOLLOWED:
            return True
        if isinstance(x, types.FunctionType):
            seen.add(id(x.__globals__))
        left += gc.get_referents(x)
    return False


def remembered(fun, key, make):
    """`make()`, or its earlier result for this function and key. `make` returns (result, whether it may be stored)."""
    fun = plain(fun)
    # Cached traces may keep arrays that the function closes over, also tracers of a surrounding
    # trace. This is not a leak in the user's code.
    if type(fun) is not types.FunctionType or (_LEAKS.changed and _LEAKS.get()):
        return make()[0]
    try:
        reach = _reach(fun)
        key = (key, _core.trace_context())
        hash(key)
    except (_CannotTell, TypeError):
        reach = None
    if reach is None:  # outside of the handler, so that an exception of `make` does not have this one as its context
        return make()[0]
    kept = _programs.get(fun)
    if kept is None:
        kept = _programs.setdefault(fun, {})
    found = kept.get(key)
    if found is not None and _same(found[0], reach):
        return found[1]
    mark = _core.read_mark()
    result, keep = make()
    if keep and not _core.reads_outside(mark):
        while len(kept) >= _MOST_PROGRAMS:
            kept.pop(next(iter(kept)), None)
        kept[key] = [_held(x) for x in reach], result
    return result
