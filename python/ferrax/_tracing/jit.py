"""`jit`: its arguments, checked and converted for the extension.

    @jit
    def step(w, x): ...

Invariant: nothing here runs when a jitted function is called; calls go directly to the extension.
"""

from __future__ import annotations

import copyreg
import functools
import inspect
import operator
import re
import weakref
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import numpy as np

from .. import _core
from .._base.flags import NO_OTHER_COMPILER, warn_once
from .._base.layouts import row_major, sharding_of, without_layout
from .._base.tracebacks import api_boundary
from .._runtime.devices import check_fit, is_place, is_sharding, is_spec, specified
from .._trees.flat import check_callable
from .._trees.prefixes import broadcast_prefix
from ..errors import JaxRuntimeError
from ..tree_util import tree_flatten, tree_leaves
from .picklable import public_name, restorable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .._core import Device, PjitFunction

_P = ParamSpec("_P")
_R = TypeVar("_R")

_NOT_GIVEN = type("_NotGiven", (), {"__repr__": lambda self: "<not given>"})()


@overload
def jit(
    fun: Callable[_P, _R],
    /,
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> PjitFunction[_P, _R]: ...


@overload
def jit(
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Callable[[Callable[_P, _R]], PjitFunction[_P, _R]]: ...


@api_boundary
def jit(
    fun: Any = _NOT_GIVEN,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
    donate_argnums: Any = None,
    donate_argnames: Any = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: Any = None,
    inline: bool = False,
    compiler_options: Any = None,
) -> Callable[..., Any]:
    """Compiles a function: it is traced once per signature (shapes, dtypes, structure, static
    values), and then run without Python.

    Args:
        fun: a pure function of arrays, scalars and pytrees of them. Without it, `jit(**options)` is
          a decorator.
        static_argnums, static_argnames: arguments that are compile-time constants: hashable,
          compared by `==`; each new value traces again. If only one of the two is given, the other
          is inferred from the signature.
        donate_argnums, donate_argnames: arguments whose arrays may be overwritten. An array whose
          memory a result can reuse counts as deleted after the call.
        in_shardings, out_shardings: shardings of the arguments and results: a `Sharding`, a
          `PartitionSpec` in the mesh in use, or a pytree prefix of them. None means unspecified.
          `in_shardings` is a prefix of the tuple of non-static arguments. All must name the same
          devices.
        keep_unused: keep arguments that the function does not use as inputs of the program.
        device, backend: where to run, regardless of where the arguments are.
        inline: when traced inside another function, put the equations in place of a call.
        compiler_options: the runtime has none. Options whose name begins with `xla_` are ignored
          with a warning.

    Returns:
        the compiled function. It has methods `lower`, `trace`, `eval_shape` and `clear_cache`.

    Raises:
        TypeError: an argument is not of an array type, or a result is not.
        ValueError: a static argument is not hashable, or the numbers and names of arguments do not
          fit the signature.
        ferrax.errors.ConcretizationTypeError (or a related error): the function needs the value of
          a traced argument.

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
    in_shardings, out_shardings = specified(in_shardings), specified(out_shardings)
    if static_argnums is static_argnames is donate_argnums is donate_argnames is None:
        numbers = names = d_numbers = d_names = ()
    else:
        numbers, names = numbers_and_names(fun, static_argnums, static_argnames, "static")
        d_numbers, d_names = numbers_and_names(fun, donate_argnums, donate_argnames, "donate")
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
    jitted = _core.jit(
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
    if shardings is not None:
        _over_meshes[jitted] = shardings
    return jitted


# The shardings that jitted functions were given, for those that are exported.
_over_meshes = weakref.WeakKeyDictionary()


def given_shardings(jitted):
    """(in_shardings, out_shardings) that a jitted function was given, where they are over a mesh;
    else (None, None).
    """
    return _over_meshes.get(jitted, (None, None))


def _are_over_mesh(in_shardings, out_shardings):
    """Whether one of them refers to a mesh: a `PartitionSpec`, or a sharding with a mesh."""
    leaves = [sharding_of(leaf) for tree in (in_shardings, out_shardings) for leaf in tree_leaves(tree, is_leaf=is_place)]
    for leaf in leaves:
        partitions = getattr(getattr(leaf, "spec", leaf), "partitions", ())
        if any(repr(p) == "UNCONSTRAINED" for p in partitions):
            raise ValueError(f"Unconstrained dims are not allowed when passed to `in_shardings` or `out_shardings` of `jax.jit`. Got {leaf}")
    return any(is_spec(leaf) or hasattr(leaf, "mesh") for leaf in leaves)


def _device_of_shardings(in_shardings, out_shardings):
    """The one device that all shardings name; None where they name none."""
    found = {}
    for name, tree in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        for leaf in tree_leaves(tree, is_leaf=is_place):
            leaf = sharding_of(leaf)
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
    """`fun` with a check, at tracing, that the shardings are prefixes of its arguments and its
    result, and that layouts have their ranks.
    """

    @restorable(_with_prefixes, fun, in_shardings, out_shardings, static)
    @functools.wraps(fun, updated=())
    def checked(*args, **kwargs):
        for place, leaf in zip(_input_leaves(in_shardings, static, args, kwargs) or (), _dynamic_leaves(static, args), strict=False):
            without_layout(place, np.shape(leaf), "pjit arguments")
        out = fun(*args, **kwargs)
        places = broadcast_prefix(out_shardings, out, name="pjit out_shardings", prefix_is_leaf=is_place)
        for place, leaf in zip(places, tree_leaves(out), strict=True):
            without_layout(place, np.shape(leaf), "pjit outputs")
        return out

    return checked


def _dynamic_leaves(static, args):
    """The leaves of the arguments that are not static."""
    return tree_leaves([x for i, x in enumerate(args) if i not in static and i - len(args) not in static])


def _input_leaves(in_shardings, static, args, kwargs):
    """The sharding that `in_shardings` gives for each leaf of the non-static arguments; None where
    it gives none.

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
    """A sharding or None for each leaf of the arguments of a jitted function that are not static,
    or None for all of them.

    Raises:
        ValueError: `in_shardings` is not a prefix of the arguments, or does not fit one.
    """
    places = _input_leaves(in_shardings, static, args, kwargs)
    if places is None:
        return None
    return _resolved(places, _dynamic_leaves(static, args), "in_shardings", "pjit arguments")


def output_places(out_shardings, out):
    """A sharding or None for each leaf of the result of a jitted function, or None for all of them.

    Raises:
        ValueError: `out_shardings` is not a prefix of the result, or does not fit a leaf.
    """
    if out_shardings is None:
        return None
    return _resolved(
        broadcast_prefix(out_shardings, out, name="pjit out_shardings", prefix_is_leaf=is_place), tree_leaves(out), "out_shardings", "pjit outputs"
    )


def _resolved(places, leaves, name, what):
    """The given shardings, with each `PartitionSpec` resolved in the mesh in use; each is checked
    against its leaf.
    """
    out = []
    for place, leaf in zip(places, leaves, strict=True):
        place = without_layout(place, leaf.shape, what)
        if is_spec(place):
            place = place.in_context("jit", name)
        if place is not None:
            if not is_sharding(place):
                raise TypeError(f"{name} leaf specifications are expected to be PartitionSpec instances or None, but got {place}")
            check_fit(place, leaf.shape, what)
        out.append(place)
    return out


def _formats(shardings, avals):
    leaves, tree = tree_flatten(shardings)
    return tree.unflatten([row_major(a.ndim, s) for s, a in zip(leaves, tree_leaves(avals), strict=True)])


_core.Compiled.input_formats = property(lambda self: _formats(self.input_shardings, self.in_avals), doc="The formats of the arguments, as (args, kwargs).")
_core.Compiled.output_formats = property(lambda self: _formats(self.output_shardings, self.out_avals), doc="The formats of the results.")


# Options of JAX's compiler. Those of its passes begin with xla_, and booleans are known by their names
_EFFORTS = ("exec_time_optimization_effort", "memory_fitting_effort", "optimization_level", "memory_fitting_level")
# (lists of passes, of commands and of collectives aside).
_SWITCH = re.compile(r"^xla_(.*_)?(enable|disable|allow|embed|use|hlo_as)_(?!hlo_passes|command_buffer|async_collectives)")


def check_compiler_options(options):
    """Refuses options that no compiler has, and warns once about each option of another compiler.

    Raises:
        ferrax.errors.JaxRuntimeError: the option does not exist, or is a boolean and has another
          value.
    """
    for name, value in dict(options).items():
        if name not in _EFFORTS and not str(name).startswith("xla_"):
            raise JaxRuntimeError(f"INVALID_ARGUMENT: No such compile option: {name!r}")
        if _SWITCH.match(str(name)) and not isinstance(value, bool) and value not in ("True", "False"):
            raise JaxRuntimeError(f"INVALID_ARGUMENT: While setting option {name}, '{value}' is not a valid bool value.")
        warn_once(("compiler_options", name), f"the compiler option {name} is accepted and has no effect: {NO_OTHER_COMPILER}")


def _reduce_jit(f):
    """Pickles and copies a jitted function: by its name if it has one, else by the arguments of
    `jit`.
    """
    if name := public_name(f):
        return name
    return _jit_again, (f.__wrapped__, f._options())


def _jit_again(fun, options):
    return _core.jit(fun, **options)


def numbers_and_names(fun, numbers, names, kind):
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


copyreg.pickle(_core.PjitFunction, _reduce_jit)
