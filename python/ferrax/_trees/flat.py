"""Conversion between functions of pytrees and the flat functions that the core transforms.

Invariant: a `FlatFun` is called with exactly `in_tree.num_leaves` leaves, and has `out_tree` set
afterwards.
"""

import functools
import inspect
import types

import numpy as np

from .. import _core
from .._base.dtypes import canonicalize_dtype, float0, is_inexact, is_key
from ..tree_util import keystr

# Functions called when all caches of programs are cleared. Each cache adds its own.
on_clear = []


class _NoReferences:
    """The interface to mutable references as long as there are none: `ferrax._references.refs`
    replaces it when it is imported.
    """

    seen = ()

    class Ref:
        __slots__ = ()

    @staticmethod
    def thread_references(plain, threaded):
        return plain()

    @staticmethod
    def forgetting_writes(make):
        return make()


references = _NoReferences


def check_callable(fun):
    if isinstance(fun, staticmethod):
        raise TypeError(f"staticmethod arguments are not supported, got {fun}")
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    if isinstance(fun, functools.partial):
        check_callable(fun.func)
    code = getattr(fun, "__code__", None)  # a method's is its function's
    if isinstance(code, types.CodeType) and code.co_flags & inspect.CO_GENERATOR:
        raise TypeError(f"Expected a function, got a generator function: {fun}")


def describe(fun):
    """The function's name and location: `loss at model.py:12`."""
    inner = unwrapped(fun)
    code = getattr(inner, "__code__", None)
    name = getattr(inner, "__name__", None) or repr(inner)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


def unwrapped(fun):
    """The function that `functools.wraps` and `functools.partial` were applied to.

    Attributes created by `__getattr__` are not followed.
    """
    while True:
        if "__wrapped__" in getattr(fun, "__dict__", ()):
            fun = fun.__wrapped__
        elif isinstance(fun, functools.partial):
            fun = fun.func
        else:
            return fun


def name_of(fun):
    return getattr(fun, "__name__", None) or type(fun).__name__


def wraps(fun, namestr, docstr=None):
    """Sets the name, the signature and the docstring of a transformed function from `fun`, by the
    formats `namestr` and `docstr`.
    """

    def decorate(out):
        name = name_of(fun)
        out.__name__ = namestr.format(fun=name)
        out.__qualname__ = namestr.format(fun=getattr(fun, "__qualname__", name))
        out.__module__ = getattr(fun, "__module__", out.__module__)
        doc = getattr(fun, "__doc__", None)
        original = f"\n\nOriginal documentation:\n\n{doc}" if doc else ""
        out.__doc__ = docstr.format(fun=name, original=original) if docstr else doc
        out.__wrapped__ = fun
        return out

    return decorate


class FlatFun:
    """`fun` as a function of leaves.

    With `has_aux`, array leaves of the auxiliary output follow the outputs.
    """

    __slots__ = ("_aux", "fun", "has_aux", "in_tree", "n_outs", "out_tree")

    def __init__(self, fun, in_tree, has_aux=False):
        self.fun, self.in_tree, self.has_aux = fun, in_tree, has_aux
        self.out_tree = self.n_outs = self._aux = None

    def __call__(self, *leaves):
        args, kwargs = self.in_tree.unflatten(leaves)
        out = self.fun(*args, **kwargs)
        if not self.has_aux:
            outs, self.out_tree = _core.tree_flatten(out)
            return outs
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(f"expected function with aux output to return a two-element tuple, but got type {type(out)} with value {out}")
        outs, self.out_tree = _core.tree_flatten(out[0])
        aux_leaves, aux_tree = _core.tree_flatten(out[1])
        self.n_outs = len(outs)
        # Leaves that are not arrays (strings, functions, Python numbers) are passed unchanged.
        is_array = [isinstance(x, _core.Array) for x in aux_leaves]
        self._aux = aux_tree, is_array, [None if a else x for x, a in zip(aux_leaves, is_array, strict=True)]
        return [*outs, *(x for x, a in zip(aux_leaves, is_array, strict=True) if a)]

    def split_aux(self, outs):
        """The flat outputs, and the auxiliary output as a pytree."""
        tree, is_array, others = self._aux
        arrays = iter(outs[self.n_outs :])
        return outs[: self.n_outs], tree.unflatten([next(arrays) if a else x for a, x in zip(is_array, others, strict=True)])


def argument_names(fun, args, kwargs):
    """One name per leaf of (args, kwargs), by the function's own parameter names: `x`,
    `params['w'][0]`.
    """
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][: len(args)]
    var = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    names += [f"{var}[{i}]" for i in range(len(names), len(args))]
    out = []
    for name, arg in zip(names, args, strict=True):
        out += [name + keystr(path) for path, _ in _core.tree_flatten_with_path(arg, None)[0]]
    for name in sorted(kwargs):
        out += [f"kwargs['{name}']" + keystr(path) for path, _ in _core.tree_flatten_with_path(kwargs[name], None)[0]]
    return out


def abstract(x):
    """The abstract value of an array, a number, or anything with a shape and a dtype, such as a
    `ShapeDtypeStruct`.

    Raises:
        TypeError: `x` is not one of these.
    """
    try:
        return _core.get_aval(x)
    except TypeError:
        shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
        if shape is None or dtype is None:
            raise
        dtype = dtype if hasattr(dtype, "name") else np.dtype(dtype)
        dtype = dtype if is_key(dtype) or dtype == float0 else canonicalize_dtype(dtype)
        return _core.ShapedArray(tuple(shape), dtype, weak_type=getattr(x, "weak_type", False))


def looked_at(name, fun, values):
    """The values of a transform of `fun`, after a check of them where `jax_debug_nans` or
    `jax_debug_infs` is on.

    Computations below a transform skip the checks of single operations and of jitted functions.

    Raises:
        FloatingPointError: one is nan, or infinite.
    """
    if _core.checks_values():
        nans, infs = _core.config_get("jax_debug_nans"), _core.config_get("jax_debug_infs")
        for x in values:
            if isinstance(x, _core.Array) and not isinstance(x, _core.Tracer) and is_inexact(x.dtype):
                array = np.asarray(x)
                for word, bad in (("nan", nans and np.isnan(array).any()), ("inf", infs and np.isinf(array).any())):
                    if bad:
                        raise FloatingPointError(f"invalid value ({word}) encountered in {name}({name_of(fun)})")
    return values


_WEAK = {"f": float, "c": complex, "i": int}


def unit(aval, value=1):
    """`value` as a scalar of the aval's type, a literal in any program that records it."""
    dtype = aval.dtype
    return _WEAK[dtype.kind](value) if aval.weak_type else dtype.type(value)


def zeros(aval, cotangent=False):
    """Zeros of the aval's tangent type, or of its cotangents': float0 where the type is integer,
    boolean or a key.
    """
    if not is_inexact(aval.dtype):
        return np.zeros(aval.shape, float0)
    zero = unit(aval, 0)
    if aval.shape == ():
        out = _core.asarray(zero, weak_type=aval.weak_type)
    else:
        out = _core.bind("broadcast_in_dim", zero, shape=tuple(aval.shape), broadcast_dimensions=(), sharding=None)
    return _laid_as(vary_as(out, aval), aval, cotangent)


def _laid_as(x, aval, cotangent):
    """`x` with the sharding of a type; the cotangent of a reduced axis is unreduced."""
    sharding = aval.sharding
    spec, mesh = sharding.spec, sharding.mesh
    if mesh.empty or not mesh.explicit_axes:
        return x
    # outside of traces, a replicated value is on the devices of the mesh too
    if not (any(spec.axes_of(d) for d in range(len(spec))) or spec.unreduced or spec.reduced or _core.at_root()):
        return x
    if cotangent and (spec.unreduced or spec.reduced):
        sharding = type(sharding)(mesh, spec.update(unreduced=spec.reduced, reduced=spec.unreduced))
    return _core.reshard(x, sharding)


def vary_as(x, aval):
    """`x` as a value that varies over the manual axes that a type varies over."""
    return _core.varying(x, aval.vma) if aval.vma else x


def tangent_dtype(dtype):
    return dtype if is_inexact(dtype) else float0
