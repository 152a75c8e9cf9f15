"""Tracing: `make_jaxpr`, `eval_shape`, the types of values, and scopes.

    make_jaxpr(lambda x: x + 1)(2.0)      # { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }

Invariant: a function is traced on abstract values; nothing here computes.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from .. import _core
from .._base.dtypes import canonicalize_dtype, float0, is_key
from .._base.layouts import Format, Layout, check_layout
from .._base.shapes import Shaped
from .._base.tracebacks import api_boundary
from .._trees import flat as _flat
from .._trees.flat import FlatFun, abstract, argument_names, check_callable, name_of, wraps
from ..tree_util import tree_flatten
from .picklable import restorable
from .vmappable import carried

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from .._core import ClosedJaxpr, ShapedArray
    from .._sharding.shardings import Sharding
    from ..typing import DTypeLike


_P = ParamSpec("_P")
_F = TypeVar("_F", bound="Callable[..., Any]")


_get_aval = _core.get_aval


# ---------------------------------------------------------------- programs and shapes


class ShapeDtypeStruct(Shaped):
    """The shape and the dtype of an array, without its elements.

    Args:
        shape: a sequence of ints.
        dtype: a dtype or a value that numpy converts to one.
        sharding: the array's sharding, or a `PartitionSpec` over the mesh that is in use when the
          attribute is read, or a `Format`.
        weak_type: whether the dtype yields to the other operand's in promotion.
        manual_axis_type: the part of a type in a `shard_map` that concerns the axes of its mesh.
    """

    __slots__ = ("_layout", "_sharding", "dtype", "is_ref", "manual_axis_type", "shape", "weak_type")

    def __init__(
        self, shape: Any, dtype: DTypeLike, *, sharding: Any = None, weak_type: bool = False, manual_axis_type: Any = None, is_ref: bool = False
    ) -> None:
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        self._layout = None
        if isinstance(sharding, Format):
            if sharding.layout is Layout.AUTO:
                raise TypeError(f"`Layout.AUTO` cannot be used in place of a device-local layout in a `ShapeDtypeStruct`. Got {sharding}")
            check_layout(sharding.layout, shape, "ShapeDtypeStructs")
            self._layout, sharding = sharding.layout, sharding.sharding
        in_context = hasattr(type(sharding), "in_context")
        if in_context and len(sharding) > len(shape):
            raise ValueError(
                f"PartitionSpec {sharding} is only valid for values of rank at least {len(sharding)}, but was applied to a value of rank {len(shape)}."
            )
        if sharding is not None and not in_context and not hasattr(type(sharding), "shard_shape"):
            raise ValueError(
                "sharding should be an instance of `jax.sharding.Sharding`, `jax.sharding.PartitionSpec` or `jax.experimental.layout.Format`."
                f" Got {sharding} of type {type(sharding)}."
            )
        self.is_ref = bool(is_ref)
        if is_ref:
            _flat.references.seen[:] = [True]
        self.shape = tuple(shape)
        if hasattr(sharding, "check_compatible_aval"):
            sharding.check_compatible_aval(self.shape)
        self.dtype = np.dtype(dtype) if isinstance(dtype, (str, type, np.dtype)) or not hasattr(dtype, "name") else dtype
        self.weak_type, self._sharding, self.manual_axis_type = weak_type, sharding, manual_axis_type

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The struct of an array, a scalar or another struct; a sharding that the user chose is
        kept, of a traced array that along explicit axes.
        """
        if isinstance(x, ShapeDtypeStruct):
            return x
        aval = _get_aval(x)
        if isinstance(x, _core.Tracer):
            return _structs([aval])[0]
        placed = isinstance(x, _core.Array) and x.committed
        return cls(aval.shape, aval.dtype, sharding=x.sharding if placed else None, weak_type=aval.weak_type)

    @property
    def sharding(self) -> Sharding | None:
        """The array's sharding; None if it is not specified.

        Raises:
            TypeError: it is a `PartitionSpec`, and no mesh is in use.
        """
        if not hasattr(self._sharding, "in_context"):
            return self._sharding
        try:
            return self._sharding.in_context("ShapeDtypeStruct", "sharding")
        except RuntimeError:
            why = "the context mesh cannot be empty. Please use `jax.set_mesh` to set the mesh context."
            raise TypeError(f"When specifying PartitionSpec to `ShapeDtypeStruct`, {why}") from None

    @property
    def format(self) -> Format:
        """The layout that was given, and the sharding."""
        return Format(self._layout, self.sharding)

    @property
    def aval(self) -> ShapedArray:
        """The type that an array of this description has: without 64-bit types it is of 32 bits."""
        return _core.ShapedArray(self.shape, _canonical(self.dtype), self.weak_type, sharding=self.sharding, manual_axis_type=self.manual_axis_type)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **kwargs: Any) -> ShapeDtypeStruct:
        """A copy with some attributes changed."""
        return ShapeDtypeStruct(
            **{
                **dict(
                    shape=self.shape,
                    dtype=self.dtype,
                    weak_type=self.weak_type,
                    sharding=self._sharding if self._layout is None else Format(self._layout, self._sharding),
                    manual_axis_type=self.manual_axis_type,
                    is_ref=self.is_ref,
                ),
                **kwargs,
            }
        )

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        placed = "" if self._sharding is None else f", sharding={self._sharding}"
        order = "" if self._layout is None else f", format={self._layout}"
        ref = ", is_ref=True" if self.is_ref else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{placed}{order}{weak}{ref})"

    __str__ = __repr__

    def _key(self):
        return self.shape, self.dtype, self.weak_type, self._sharding, self._layout, self.manual_axis_type, self.is_ref

    def __eq__(self, other):
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())


def _avals(fun, args, kwargs, leaves):
    out = []
    for i, x in enumerate(leaves):
        try:
            out.append(abstract(x))
        except TypeError:
            raise TypeError(
                f"Error interpreting argument to {fun} as an abstract array. The problematic value is of type {type(x)} and was passed to the"
                f" function at path {argument_names(fun, args, kwargs)[i]}.\nThis typically means that a jit-wrapped function was called with a"
                " non-array argument, and this argument was not marked as static using the static_argnums or static_argnames parameters of"
                " jax.jit."
            ) from None
    return out


def _program_html(self):
    """The representation in notebooks: equations that can be folded, each with its line of
    source.
    """
    from .._base.html import program

    return program(self)


_core.ClosedJaxpr._repr_html_ = _core.Jaxpr._repr_html_ = _program_html


@overload
def make_jaxpr(
    fun: Callable[_P, Any], static_argnums: int | Sequence[int] = (), axis_env: Sequence[tuple[Any, int]] | None = None, return_shape: Literal[False] = False
) -> Callable[_P, ClosedJaxpr]: ...


@overload
def make_jaxpr(
    fun: Callable[_P, Any], static_argnums: int | Sequence[int] = (), axis_env: Sequence[tuple[Any, int]] | None = None, *, return_shape: Literal[True]
) -> Callable[_P, tuple[ClosedJaxpr, Any]]: ...


@overload
def make_jaxpr(
    fun: Callable[_P, Any], static_argnums: int | Sequence[int] = (), axis_env: Sequence[tuple[Any, int]] | None = None, return_shape: bool = False
) -> Callable[_P, Any]: ...


@api_boundary
def make_jaxpr(
    fun: Callable[_P, Any], static_argnums: int | Sequence[int] = (), axis_env: Sequence[tuple[Any, int]] | None = None, return_shape: bool = False
) -> Callable[_P, Any]:
    """The function that traces `fun` and returns its program.

    Args:
        fun: the function.
        static_argnums: positional arguments that stay Python values.
        axis_env: pairs (name, size) of axes that collectives in `fun` may name.
        return_shape: also return the output as a pytree of `ShapeDtypeStruct`.

    Returns:
        a function of `fun`'s arguments (or `ShapeDtypeStruct`s like them) that returns a closed
        program, printed in JAX's notation.

    >>> make_jaxpr(lambda x: x * 2)(3.0)
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """
    if not callable(fun):
        raise TypeError("the first argument must be callable")
    static = (operator.index(static_argnums),) if hasattr(static_argnums, "__index__") else tuple(static_argnums)

    @restorable(make_jaxpr, fun, static_argnums, axis_env, return_shape)
    @wraps(fun, "make_jaxpr({fun})")
    def make_jaxpr_f(*args, **kwargs):
        dyn_args, dyn_fun = without_static(fun, static, args)
        dyn_fun, dyn_args, kwargs = _with_own_refs(dyn_fun, dyn_args, kwargs)
        leaves, in_tree = tree_flatten((dyn_args, kwargs))
        flat = FlatFun(dyn_fun, in_tree)
        avals = _avals(fun, dyn_args, kwargs, leaves)
        names = argument_names(fun, dyn_args, kwargs)
        make = lambda: _core.make_program(flat, avals, axis_env=tuple(axis_env or ()), user_fun=fun, arg_paths=names, capture_scalars=True)
        program, _ = _flat.references.forgetting_writes(make)
        return (program, flat.out_tree.unflatten(_structs(program.out_avals))) if return_shape else program

    make_jaxpr_f.__module__ = "ferrax"
    return make_jaxpr_f


def _with_own_refs(fun, args, kwargs):
    """A function that creates new references in place of those among the arguments, and the
    arguments with the references' values in their place.
    """
    references = _flat.references
    if not references.seen:
        return fun, args, kwargs
    leaves, tree = tree_flatten((args, kwargs))
    is_ref = [references.is_ref(x) for x in leaves]
    if not any(is_ref):
        return fun, args, kwargs
    references.check_aliases("make_jaxpr", fun, args, kwargs)

    def run(*args, **kwargs):
        given = [references.Ref(x) if r else x for x, r in zip(tree_flatten((args, kwargs))[0], is_ref, strict=True)]
        args, kwargs = tree.unflatten(given)
        return fun(*args, **kwargs)

    values = [(x._here() if isinstance(x, references.Ref) else ShapeDtypeStruct(x.shape, x.dtype)) if r else x for x, r in zip(leaves, is_ref, strict=True)]
    return functools.update_wrapper(run, fun) if hasattr(fun, "__name__") else run, *tree.unflatten(values)


def _canonical(dtype):
    """The dtype that arrays of a described dtype have here."""
    return dtype if is_key(dtype) or dtype == float0 else canonicalize_dtype(dtype)


def _structs(avals):
    out = []
    for a in avals:
        sharding, mat = a.sharding, a.mat
        out.append(
            ShapeDtypeStruct(
                a.shape,
                a.dtype,
                weak_type=a.weak_type,
                sharding=sharding if sharding.mesh.explicit_axes else None,
                manual_axis_type=None if mat.empty else mat,
            )
        )
    return out


def without_static(fun, static, args):
    """The arguments that are not static, and `fun` as a function of them."""
    if not static:
        return args, fun
    static = {i % len(args) if i < 0 else i for i in static}

    def dyn_fun(*dyn, **kwargs):
        rest = iter(dyn)
        return fun(*[x if i in static else next(rest) for i, x in enumerate(args)], **kwargs)

    return tuple(x for i, x in enumerate(args) if i not in static), functools.update_wrapper(dyn_fun, fun) if hasattr(fun, "__name__") else dyn_fun


symbolic_shapes = []  # the implementation of `eval_shape` at symbolic sizes, set by `export`


@api_boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The output's shapes and dtypes, without computing anything: a pytree of `ShapeDtypeStruct`.

    Args:
        fun: the function. Functions that it calls may be called with `ShapeDtypeStruct`s too.
        *args, **kwargs: its arguments: arrays, or anything with a shape and a dtype.

    Returns:
        Pytree of `ShapeDtypeStruct`.

    >>> jax.eval_shape(lambda x: x @ x.T, jnp.ones((2, 3)))
    ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """
    check_callable(fun)
    leaves, in_tree = tree_flatten((args, kwargs))
    if any(isinstance(x, ShapeDtypeStruct) and not all(isinstance(n, int) for n in x.shape) for x in leaves):
        return symbolic_shapes[0](fun, args, kwargs)
    if isinstance(fun, _core.PjitFunction) and any(fun._options()[name] is not None for name in ("device", "shardings", "compiler_options")):
        return fun.eval_shape(*args, **kwargs)  # its results have shardings, and it is not part of another program
    flat = FlatFun(fun, in_tree)
    known = []

    def arrays(*leaves):
        was = _core.abstract_values(True)
        try:
            outs = flat(*leaves)
            arrays.out_tree = flat.out_tree
        finally:
            _core.abstract_values(was)
        # a result that is abstract already is the answer for its place
        known[:] = [x.update(dtype=_canonical(x.dtype)) if isinstance(x, ShapeDtypeStruct) else None for x in outs]
        return [x for x in outs if not isinstance(x, ShapeDtypeStruct)]

    arrays.fun, arrays.out_tree = fun, None  # errors name the user's function, and where in its results something is
    names = lambda: argument_names(fun, args, kwargs)
    program, _ = _flat.references.forgetting_writes(lambda: _core.make_program(arrays, _avals(fun, args, kwargs, leaves), user_fun=fun, arg_paths=names))
    traced_outs = iter(_structs(program.out_avals))
    return flat.out_tree.unflatten([next(traced_outs) if x is None else x for x in known])


def typeof(x: Any) -> ShapedArray:
    """The abstract value of an array, a scalar or a reference: shape, dtype, weak type.

    Args:
        x: array, scalar or reference.

    Returns:
        `ShapedArray`, or the type of a reference.

    Raises:
        TypeError: `x` is not an array type.
    """
    if (own := carried.types.get(type(x))) is not None:
        return own(x)
    return x.aval if type(x) is _flat.references.Ref else _get_aval(x)


# ---------------------------------------------------------------- names and evaluation


class named_scope(contextlib.ContextDecorator):
    """Context manager and decorator: equations traced inside carry `name` in their name stack.

    They show it in `jaxpr.pretty_print(name_stack=True)`, in `eqn.source_info.name_stack` and in
    `lowered.as_text(debug_info=True)`.

    Raises:
        TypeError: the name is not a string.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError("named_scope name argument must be a string.")
        self.name, self._outer = name, []

    def __enter__(self) -> None:
        self._outer.append(_core.scope_enter(self.name))

    def __exit__(self, *exc: object) -> None:
        _core.scope_leave(self._outer.pop())

    def __call__(self, fun: _F) -> _F:
        @restorable(named_scope(self.name), fun)
        @functools.wraps(fun)
        def inside(*args, **kwargs):
            with named_scope(self.name):
                return fun(*args, **kwargs)

        return inside

    def __reduce__(self):
        return named_scope, (self.name,)


def named_call(fun: _F, *, name: str | None = None) -> _F:
    """`fun`, run inside `named_scope(name)`; without a name, the function's own name is used.

    Args:
        fun: function.
        name: str; None: the function's.

    Returns:
        Function like fun.
    """
    return named_scope(name or name_of(fun))(fun)


@contextlib.contextmanager
def ensure_compile_time_eval() -> AbstractContextManager[None]:
    """Context manager and decorator: operations on concrete values inside are run at once, even
    while a function is being traced.

    Returns:
        Context manager, also a decorator.

    >>> @jit
    ... def f(x):
    ...     with ensure_compile_time_eval():
    ...         n = int(jnp.ones(3).sum())    # known now, not traced
    ...     return x * n
    >>> f(2)
    Array(6, dtype=int32, weak_type=True)
    """
    with _core.eval_context():
        yield


def clear_caches() -> None:
    """Forgets all traced and compiled programs.

    Returns:
        None.
    """
    for forget in _flat.on_clear:
        forget()
    _core.clear_caches()


def effects_barrier() -> None:
    """Waits until all prints and callbacks that have been issued are done.

    Returns:
        None.
    """
    _core.effects_barrier()
