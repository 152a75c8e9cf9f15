"""Tracing and running: `jit`, `make_jaxpr`, `eval_shape`, and scopes.

@jit
def step(w, x): ...
"""

import contextlib
import copyreg
import functools
import inspect
import operator

import numpy as np

from . import _core, _flat
from ._config import NO_OTHER_COMPILER, refused, warn_once
from ._devices import check_fit, is_place, is_sharding, said
from ._flat import FlatFun, abstract, argument_names, check_callable, name_of, wraps
from ._transformed import public_name, restorable
from .errors import JaxRuntimeError
from .tree_util import broadcast_prefix, tree_flatten, tree_leaves

_get_aval = _core.get_aval
_NOT_GIVEN = type("_NotGiven", (), {"__repr__": lambda self: "<not given>"})()


# ---------------------------------------------------------------- jit


def jit(
    fun=_NOT_GIVEN,
    /,
    *,
    in_shardings=None,
    out_shardings=None,
    static_argnums=None,
    static_argnames=None,
    donate_argnums=None,
    donate_argnames=None,
    keep_unused=False,
    device=None,
    backend=None,
    inline=False,
    compiler_options=None,
):
    """Compiles a function: it is traced once per signature (shapes, dtypes, structure, static values), and then run without Python.

    Args:
      fun: a pure function of arrays, scalars and pytrees of them. Without it, `jit(**options)` is a decorator.
      static_argnums, static_argnames: arguments that are compile-time constants: hashable, compared by `==`; each new value traces again.
        If only one of the two is given, the other is inferred from the signature.
      donate_argnums, donate_argnames: arguments whose arrays may be overwritten. An array whose memory a result can reuse counts as deleted after the
        call.
      in_shardings, out_shardings: shardings of the arguments and results: a `Sharding`, a `PartitionSpec` in the mesh in use, or a pytree
        prefix of them. None means unspecified. `in_shardings` is a prefix of the tuple of non-static arguments. All must name the same devices.
      keep_unused: keep arguments that the function does not use as inputs of the program.
      device, backend: where to run, regardless of where the arguments are.
      inline: when traced inside another function, put the equations in place of a call.
      compiler_options: the runtime has none. Options whose name begins with `xla_` are ignored with a warning.

    Returns:
      the compiled function. It has methods `lower`, `trace`, `eval_shape` and `clear_cache`.

    Raises:
      TypeError: an argument is not of an array type, or a result is not.
      ValueError: a static argument is not hashable, or the numbers and names of arguments do not fit the signature.
      ferrax.errors.ConcretizationTypeError (or a related error): the function needs the value of a traced argument.

    >>> @jit(static_argnames="n")
    ... def power(x, n): return x ** n
    """
    if fun is _NOT_GIVEN:
        options = dict(
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            device=device,
            backend=backend,
            inline=inline,
            compiler_options=compiler_options,
        )
        return lambda fun: jit(fun, **options)
    check_callable(fun)
    in_shardings, out_shardings = said(in_shardings), said(out_shardings)
    if static_argnums is static_argnames is donate_argnums is donate_argnames is None:
        numbers = names = d_numbers = d_names = ()
    else:
        numbers, names = _numbers_and_names(fun, static_argnums, static_argnames, "static")
        d_numbers, d_names = _numbers_and_names(fun, donate_argnums, donate_argnames, "donate")
        if both := set(names) & set(d_names):
            raise ValueError(f"static_argnames and donate_argnames cannot intersect. Argument names {both} appear in both static_argnames and donate_argnames")
        if both := set(numbers) & set(d_numbers):
            raise ValueError(f"static_argnums and donate_argnums cannot intersect. Argument indices {both} appear in both")
    if device is not None and backend is not None:
        raise ValueError(f"can't specify both a device and a backend for jit, got device={device} and backend={backend}")
    checked = shardings = None
    if not (in_shardings is out_shardings is None):
        over_mesh = _are_over_mesh(in_shardings, out_shardings)
        placed = None if over_mesh else _device_of_shardings(in_shardings, out_shardings)
        if device is not None or backend is not None:
            for name, given in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
                if given is not None:
                    raise ValueError(f"If backend or device is specified on jit, then {name} should not be specified.")
        if over_mesh:
            shardings = in_shardings, out_shardings
        else:
            device, checked = placed, _with_prefixes(fun, in_shardings, out_shardings, numbers)
    return _core.jit(
        checked or fun,
        static_argnums=numbers,
        static_argnames=names,
        donate_argnums=d_numbers,
        donate_argnames=d_names,
        keep_unused=keep_unused,
        inline=inline,
        device=device,
        backend=backend,
        shardings=shardings,
        compiler_options=compiler_options,
    )


def _are_over_mesh(in_shardings, out_shardings):
    """Whether one of them refers to a mesh: a `PartitionSpec`, or a sharding with a mesh."""
    leaves = [leaf for tree in (in_shardings, out_shardings) for leaf in tree_leaves(tree, is_leaf=is_place)]
    return any(hasattr(leaf, "in_context") or hasattr(leaf, "mesh") for leaf in leaves)


def _device_of_shardings(in_shardings, out_shardings):
    """The one device that all shardings name; None where they name none."""
    found = {}
    for name, tree in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        for leaf in tree_leaves(tree, is_leaf=is_place):
            if leaf is None:
                continue
            if not hasattr(leaf, "device_set"):
                raise TypeError(f"{name} leaf specifications are expected to be PartitionSpec instances or None, but got {leaf}")
            (device,) = leaf.device_set
            found.setdefault(device, name)
    if len(found) > 1:
        one, other = list(found)[:2]
        raise ValueError(
            f"Received incompatible devices for jitted computation. Got {found[one]} with device ids [{one.id}] on platform {one.platform.upper()} and"
            f" {found[other]} with device ids [{other.id}] on platform {other.platform.upper()}"
        )
    return next(iter(found), None)


def _with_prefixes(fun, in_shardings, out_shardings, static):
    """`fun`, which says when it is traced whether the shardings are prefixes of its arguments and its result."""

    @restorable(_with_prefixes, fun, in_shardings, out_shardings, static)
    @functools.wraps(fun, updated=())
    def checked(*args, **kwargs):
        _input_leaves(in_shardings, static, args, kwargs)
        out = fun(*args, **kwargs)
        broadcast_prefix(out_shardings, out, name="pjit out_shardings", prefix_is_leaf=is_place)
        return out

    return checked


def _input_leaves(in_shardings, static, args, kwargs):
    """The sharding that `in_shardings` gives for each leaf of the non-static arguments; None where it gives none.

    Raises:
      ValueError: it is not a prefix of them, or there are keyword arguments.
    """
    if in_shardings is None:
        return None
    if kwargs:
        raise ValueError("pjit does not support kwargs when in_shardings is specified.")
    dynamic = tuple(x for i, x in enumerate(args) if i not in static and i - len(args) not in static)
    if is_place(in_shardings):
        return [in_shardings] * len(tree_leaves(dynamic))
    rule = (
        "pjit in_shardings specification must be a tree prefix of the positional arguments tuple. In particular, pjit in_shardings must either"
        " be a Sharding, a PartitionSpec, or a tuple of length equal to the number of positional arguments. But pjit in_shardings is"
    )
    if not isinstance(in_shardings, (tuple, list)):
        raise ValueError(
            f"{rule} not a tuple: got {type(in_shardings)} instead. Given the corresponding argument being passed, it looks like pjit"
            " in_shardings might need to be wrapped in a singleton tuple."
        )
    if len(in_shardings) != len(dynamic):
        raise ValueError(f"{rule} the wrong length: got a tuple or list of length {len(in_shardings)} for an args tuple of length {len(dynamic)}.")
    prefixes = [broadcast_prefix(p, x, name="pjit in_shardings", prefix_is_leaf=is_place) for p, x in zip(in_shardings, dynamic, strict=True)]
    return [place for leaves in prefixes for place in leaves]


def input_places(in_shardings, static, args, kwargs):
    """A sharding or None for each leaf of the arguments of a jitted function that are not static, or None for all of them.

    Raises:
      ValueError: `in_shardings` is no prefix of the arguments, or does not fit one.
    """
    places = _input_leaves(in_shardings, static, args, kwargs)
    if places is None:
        return None
    return _resolved(places, tree_leaves([x for i, x in enumerate(args) if i not in static and i - len(args) not in static]), "in_shardings", "pjit arguments")


def output_places(out_shardings, out):
    """A sharding or None for each leaf of the result of a jitted function, or None for all of them.

    Raises:
      ValueError: `out_shardings` is no prefix of the result, or does not fit a leaf.
    """
    if out_shardings is None:
        return None
    return _resolved(
        broadcast_prefix(out_shardings, out, name="pjit out_shardings", prefix_is_leaf=is_place), tree_leaves(out), "out_shardings", "pjit outputs"
    )


def _resolved(places, leaves, name, what):
    """The given shardings, with each `PartitionSpec` resolved in the mesh in use; each is checked against its leaf."""
    out = []
    for place, leaf in zip(places, leaves, strict=True):
        if hasattr(place, "in_context"):  # a PartitionSpec
            place = place.in_context("jit", name)
        if hasattr(place, "layout") and hasattr(place, "sharding"):  # a Format
            place = place.sharding
        if place is not None:
            if not is_sharding(place):
                raise TypeError(f"{name} leaf specifications are expected to be PartitionSpec instances or None, but got {place}")
            check_fit(place, leaf.shape, what)
        out.append(place)
    return out


# Options of the compiler that JAX has; those of its passes begin with xla_.
_EFFORTS = ("exec_time_optimization_effort", "memory_fitting_effort", "optimization_level", "memory_fitting_level")


def check_compiler_options(options):
    """Refuses options that no compiler has; those of another compiler are warned of, once each.

    Raises:
      ferrax.errors.JaxRuntimeError: the option does not exist.
    """
    for name in dict(options):
        if name not in _EFFORTS and not str(name).startswith("xla_"):
            raise JaxRuntimeError(f"INVALID_ARGUMENT: No such compile option: {name!r}")
        warn_once(("compiler_options", name), f"the compiler option {name} is accepted and has no effect: {NO_OTHER_COMPILER}")


def _reduce_jit(f):
    """How a jitted function is pickled and copied: by its name if it has one, else by what it was made of."""
    if name := public_name(f):
        return name
    return _jit_again, (f.__wrapped__, f._options())


def _jit_again(fun, options):
    return _core.jit(fun, **options)


copyreg.pickle(_core.PjitFunction, _reduce_jit)


def _numbers_and_names(fun, numbers, names, kind):
    """Positions and names of arguments, each completed from the other by the signature."""
    given_numbers, given_names = numbers is not None, names is not None
    numbers = () if numbers is None else (operator.index(numbers),) if hasattr(numbers, "__index__") else tuple(map(operator.index, numbers))
    names = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        if kind == "donate" and names:
            raise ValueError(f"Getting the signature of function {fun} failed. Pass donate_argnums instead of donate_argnames.") from None
        return numbers, names
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    has_varargs = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    has_varkw = any(p.kind is p.VAR_KEYWORD for p in parameters)
    if not has_varargs and any(not -len(positional) <= i < len(positional) for i in numbers):
        raise ValueError(f"Jitted function has {kind}_argnums={numbers}, but only accepts {len(positional)} positional arguments.")
    numbers = tuple(i if i >= 0 or has_varargs else i + len(positional) for i in numbers)
    if positional_only := {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}.intersection(names):
        raise ValueError(f"Jitted function has invalid argnames {positional_only} in {kind}_argnames. These are positional-only")
    if not has_varkw and (unknown := set(names) - {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}):
        raise ValueError(f"Jitted function has invalid argnames {unknown} in {kind}_argnames. Function does not take these args.")
    by_keyword = {p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
    if given_names and not given_numbers:
        numbers = tuple(i for i, name in enumerate(positional) if name in names)
    if given_numbers and not given_names:
        names = tuple(positional[i] for i in numbers if 0 <= i < len(positional) and positional[i] in by_keyword)
    return numbers, names


# ---------------------------------------------------------------- programs and shapes


class ShapeDtypeStruct:
    """A shape and a dtype, standing for an array that need not exist.

    Args:
      shape: a sequence of ints.
      dtype: a dtype or a value that numpy converts to one.
      weak_type: whether the dtype yields to the other operand's in promotion.
    """

    __slots__ = ("_sharding", "dtype", "is_ref", "shape", "weak_type")

    def __init__(self, shape, dtype, *, sharding=None, weak_type=False, manual_axis_type=None, is_ref=False):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        if hasattr(sharding, "in_context"):
            try:
                sharding = sharding.in_context("ShapeDtypeStruct", "sharding")
            except RuntimeError:
                why = "the context mesh cannot be empty. Please use `jax.set_mesh` to set the mesh context."
                raise TypeError(f"When specifying PartitionSpec to `ShapeDtypeStruct`, {why}") from None
        if sharding is not None and not hasattr(sharding, "shard_shape"):
            raise ValueError(
                "sharding should be an instance of `jax.sharding.Sharding`, `jax.sharding.PartitionSpec` or `jax.experimental.layout.Format`."
                f" Got {sharding} of type {type(sharding)}."
            )
        if manual_axis_type is not None:
            refused("ShapeDtypeStruct", "manual_axis_type", manual_axis_type, "there are no manual axes")
        self.is_ref = bool(is_ref)
        if is_ref:
            _flat.references.seen[:] = [True]
        self.shape = tuple(shape)
        if hasattr(sharding, "check_compatible_aval"):
            sharding.check_compatible_aval(self.shape)
        self.dtype = np.dtype(dtype) if isinstance(dtype, (str, type, np.dtype)) or not hasattr(dtype, "name") else dtype
        self.weak_type, self._sharding = weak_type, sharding

    @classmethod
    def like(cls, x):
        """The struct of an array, a scalar or another struct; a sharding that the user chose is kept."""
        if isinstance(x, ShapeDtypeStruct):
            return x
        aval = _get_aval(x)
        placed = isinstance(x, _core.Array) and not isinstance(x, _core.Tracer) and x.committed
        return cls(aval.shape, aval.dtype, sharding=x.sharding if placed else None, weak_type=aval.weak_type)

    sharding = property(lambda self: self._sharding)
    manual_axis_type = None
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape, dtype=object)) if self.shape else 1)
    aval = property(lambda self: _core.ShapedArray(self.shape, self.dtype, self.weak_type, sharding=self._sharding))

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **kwargs):
        """A copy with some attributes changed."""
        return ShapeDtypeStruct(**{**dict(shape=self.shape, dtype=self.dtype, weak_type=self.weak_type, sharding=self._sharding, is_ref=self.is_ref), **kwargs})

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        placed = "" if self._sharding is None else f", sharding={self._sharding}"
        ref = ", is_ref=True" if self.is_ref else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{placed}{weak}{ref})"

    __str__ = __repr__

    def _key(self):
        return self.shape, self.dtype, self.weak_type, self._sharding, self.is_ref

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
    """The representation in notebooks: equations that can be folded, each with its line of source."""
    from ._html import program

    return program(self)


_core.ClosedJaxpr._repr_html_ = _core.Jaxpr._repr_html_ = _program_html


def make_jaxpr(fun, static_argnums=(), axis_env=None, return_shape=False):
    """The function that traces `fun` and returns its program.

    Args:
        fun: the function.
        static_argnums: positional arguments that stay Python values.
        axis_env: pairs (name, size) of axes that collectives in `fun` may name.
        return_shape: also return the output as a pytree of `ShapeDtypeStruct`.

    Returns:
        a function of `fun`'s arguments (or `ShapeDtypeStruct`s like them) that returns a closed program, printed in JAX's notation.

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

    make_jaxpr_f.__module__ = __package__
    return make_jaxpr_f


def _with_own_refs(fun, args, kwargs):
    """A function that creates new references in place of those among the arguments, and the arguments with the references' values in their place."""
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


def _structs(avals):
    return [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]


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


def eval_shape(fun, *args, **kwargs):
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
    if isinstance(fun, _core.PjitFunction) and fun._options()["device"] is not None:
        return fun.eval_shape(*args, **kwargs)  # its results have shardings
    leaves, in_tree = tree_flatten((args, kwargs))
    if any(isinstance(x, ShapeDtypeStruct) and not all(isinstance(n, int) for n in x.shape) for x in leaves):
        return symbolic_shapes[0](fun, args, kwargs)
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
        known[:] = [x if isinstance(x, ShapeDtypeStruct) else None for x in outs]
        return [x for x in outs if not isinstance(x, ShapeDtypeStruct)]

    arrays.fun, arrays.out_tree = fun, None  # errors name the user's function, and where in its results something is
    names = lambda: argument_names(fun, args, kwargs)
    program, _ = _flat.references.forgetting_writes(lambda: _core.make_program(arrays, _avals(fun, args, kwargs, leaves), user_fun=fun, arg_paths=names))
    traced_outs = iter(_structs(program.out_avals))
    return flat.out_tree.unflatten([next(traced_outs) if x is None else x for x in known])


def typeof(x):
    """The abstract value of an array, a scalar or a reference: shape, dtype, weak type.

    Args:
        x: array, scalar or reference.

    Returns:
        `ShapedArray`, or the type of a reference.

    Raises:
        TypeError: `x` is not an array type.
    """
    return x.aval if type(x) is _flat.references.Ref else _get_aval(x)


# ---------------------------------------------------------------- names and evaluation


class named_scope(contextlib.ContextDecorator):
    """Context manager and decorator: equations traced inside carry `name` in their name stack.

    They show it in `jaxpr.pretty_print(name_stack=True)`, in `eqn.source_info.name_stack` and in `lowered.as_text(debug_info=True)`.

    Raises:
      TypeError: the name is no string.
    """

    def __init__(self, name):
        if not isinstance(name, str):
            raise TypeError("named_scope name argument must be a string.")
        self.name, self._outer = name, []

    def __enter__(self):
        self._outer.append(_core.scope_enter(self.name))

    def __exit__(self, *exc):
        _core.scope_leave(self._outer.pop())

    def __call__(self, fun):
        @restorable(named_scope(self.name), fun)
        @functools.wraps(fun)
        def inside(*args, **kwargs):
            with named_scope(self.name):
                return fun(*args, **kwargs)

        return inside

    def __reduce__(self):
        return named_scope, (self.name,)


def named_call(fun, *, name=None):
    """`fun`, run inside `named_scope(name)`; without a name, the function's own name is used.

    Args:
        fun: function.
        name: str; None: the function's.

    Returns:
        Function like fun.
    """
    return named_scope(name or name_of(fun))(fun)


@contextlib.contextmanager
def ensure_compile_time_eval():
    """Context manager and decorator: operations on concrete values inside are run at once, even while a function is being traced.

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


def clear_caches():
    """Forgets all traced and compiled programs.

    Returns:
        None.
    """
    for forget in _flat.on_clear:
        forget()
    _core.clear_caches()


def effects_barrier():
    """Waits until all prints and callbacks that have been issued are done.

    Returns:
        None.
    """
    _core.effects_barrier()
