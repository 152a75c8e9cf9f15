"""Primitives defined in Python, and programs as objects.

    mul_add = Primitive("mul_add")
    mul_add.def_impl(lambda x, y, z: np.asarray(x) * y + z)
    mul_add.def_abstract_eval(lambda x, y, z: ShapedArray(x.shape, x.dtype))

Invariant: a primitive's rules may be given at any time before they are needed; `interpreters.ad`
and `interpreters.batching` hold the tables of derivative and batching rules, keyed by primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TYPE_CHECKING, TypeVar, overload

import importlib as _importlib
import itertools

import numpy as np

from ... import _core
from ..._base.flags import refused
from ..._core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, ShapedArray, Tracer, Var
from ..._base.dtypes import NUMPY_NUMBERS
from ..._trees.flat import tangent_dtype
from ..._base.late import late as _late
from ...lax._tokens import Token
from ._equations import AbstractToken, DebugInfo, DropVar, Effect, Effects, abstract_token, gensym, new_jaxpr_eqn
from ...errors import ConcretizationTypeError, InconclusiveDimensionOperation, JaxprTypeError

if TYPE_CHECKING:
    from ...typing import DTypeLike
    from . import primitives as primitives

_T = TypeVar("_T")

__all__ = [
    "AbstractToken",
    "CallPrimitive",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Effect",
    "Effects",
    "InconclusiveDimensionOperation",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Primitive",
    "ShapedArray",
    "Token",
    "TraceTag",
    "Tracer",
    "Var",
    "abstract_token",
    "array_types",
    "call_impl",
    "check_jaxpr",
    "concrete_or_error",
    "find_top_trace",
    "gensym",
    "get_opaque_trace_state",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "primitives",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]

array_types: set[Any] = {np.ndarray, *NUMPY_NUMBERS}


def _eval(jaxpr, consts, args):
    if len(args) != len(jaxpr.invars):
        raise ValueError(f"a program of {len(jaxpr.invars)} inputs was given {len(args)} values")
    return list(_core.eval_program(jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, list(consts)), list(consts), *args))


@overload
def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]: ...


@overload
def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, arg: Any, *args: Any) -> list[Any]: ...


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> Callable[..., list[Any]] | list[Any]:
    """A closed program as a function.

    Args:
        closed_jaxpr: ClosedJaxpr.
        *args: an array for each input: the program is evaluated at once.

    Returns:
        A function of as many arrays as the program has inputs, that returns the list of its
        outputs; with `args` that list.
    """

    def run(*args):
        return _eval(closed_jaxpr.jaxpr, closed_jaxpr.consts, args)

    return run(*args) if args else run


def jaxprs_in_params(params: Any) -> Iterator[Jaxpr]:
    """The open programs among an equation's parameters, those in tuples and lists included.

    Args:
        params: dict of parameters.

    Yields:
        Jaxpr.
    """
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, Jaxpr):
                yield item
            elif isinstance(item, ClosedJaxpr):
                yield item.jaxpr


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The open programs among the parameters of a program's equations.

    Args:
        jaxpr: Jaxpr.

    Returns:
        Iterator of Jaxpr.
    """
    return itertools.chain.from_iterable(jaxprs_in_params(eqn.params) for eqn in jaxpr.eqns)


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Verifies that each variable of a program is defined before it is used.

    Args:
        jaxpr: an open program, `Jaxpr`.

    Returns:
        None.

    Raises:
        JaxprTypeError: a variable is used and not defined.
    """
    defined = {*jaxpr.constvars, *jaxpr.invars}
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            if not isinstance(v, Literal) and v not in defined:
                raise JaxprTypeError(f"Variable '{v}' not defined\n\nin equation: {eqn}")
        defined.update(eqn.outvars)
    for v in jaxpr.outvars:
        if not isinstance(v, Literal) and v not in defined:
            raise JaxprTypeError(f"Variable '{v}' not defined\n\nin the program's outputs")


@overload
def concrete_or_error(force: None, val: Any, context: str = "") -> Any: ...


@overload
def concrete_or_error(force: Callable[[Any], _T], val: Any, context: str = "") -> _T: ...


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """A value that is known when the program is traced.

    Args:
        force: function such as `int` or `np.asarray` that converts the value, or None.
        val: array or Python value.
        context: str, put into the error.

    Returns:
        `force(val)`; `val` where `force` is None.

    Raises:
        ConcretizationTypeError: `val` is traced, and not known.
    """
    if isinstance(val, Tracer):
        try:
            return (force or np.asarray)(val)
        except TypeError:
            raise ConcretizationTypeError(val, context) from None
    return val if force is None else force(val)


def mapped_aval(size: int, axis: Any, aval: ShapedArray) -> ShapedArray:
    """The type of one slice of an array along an axis.

    Args:
        size: int, the array's size along the axis.
        axis: int, or None for an array without this axis.
        aval: ShapedArray.

    Returns:
        ShapedArray; `aval` where `axis` is None.

    Raises:
        AssertionError: the array has another size along the axis.
    """
    if axis is None:
        return aval
    shape = list(aval.shape)
    assert shape.pop(axis) == size
    return aval.update(shape=tuple(shape))


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None) -> ShapedArray:
    """The type of `size` arrays stacked along an axis.

    Args:
        size: int.
        axis: int, the position of the new axis, or None for an array without it.
        aval: ShapedArray of one array.
        explicit_mesh_axis: must be None.

    Returns:
        ShapedArray; `aval` where `axis` is None.

    Raises:
        NotImplementedError: `explicit_mesh_axis` is given.
    """
    if explicit_mesh_axis is not None:
        refused("unmapped_aval", "explicit_mesh_axis", explicit_mesh_axis, "types of batched axes name no axis of a mesh")
    if axis is None:
        return aval
    shape = list(aval.shape)
    shape.insert(axis, size)
    return aval.update(shape=tuple(shape))


def primal_dtype_to_tangent_dtype(primal_dtype: DTypeLike) -> np.dtype[Any]:
    """The dtype of tangents.

    Args:
        primal_dtype: anything that names a dtype.

    Returns:
        The same dtype for floats and complex numbers, float0 for others.
    """
    return tangent_dtype(np.dtype(primal_dtype))


no_effects: frozenset[Any] = frozenset()


class CallPrimitive:
    """A primitive that calls a function, its first operand.

    The call is not an equation; the equations of its function take its place.
    """

    name: str
    multiple_results: bool
    call_primitive: bool

    multiple_results, call_primitive = True, True

    def __init__(self, name: str) -> None:
        self.name = name
        self._call = call_impl

    def __repr__(self):
        return self.name

    def def_impl(self, impl: _T) -> _T:
        """Sets how the function is called: `impl(f, *args, **params)`."""
        self._call = impl
        return impl

    def bind(self, f: Any, *args: Any, **params: Any) -> Any:
        """Calls the function."""
        return self._call(f, *args, **params)


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Calls a function that is the argument of a call primitive.

    Args:
        f: WrappedFun.
        *args: its arguments.
        **params: parameters of the call; the function does not get them.

    Returns:
        What `f` returns.
    """
    del params
    return f.call_wrapped(*args)


class TraceTag:
    """The identity of one transformation, for transformations written in Python."""


def find_top_trace(_: Any) -> _core.TraceTag:
    """The innermost trace to which one of the values of a sequence belongs.

    Returns:
        The trace; that of plain evaluation where no value is traced.
    """
    of = [trace for trace in map(_core.trace_of, _) if trace is not None]
    traces = _core.traces()
    return next((trace for trace in traces if trace in of), traces[-1])


_NO_TRACES = "transformations are not written in Python here (core.Trace): walk the equations of make_jaxpr(f)(x), or use eval_jaxpr"


def take_current_trace() -> NoReturn:
    """Refused: the current trace is not a Python object here.

    Raises:
        NotImplementedError: always; a program's equations can be evaluated one by one instead.
    """
    raise NotImplementedError(_NO_TRACES)


def set_current_trace(trace: Any) -> NoReturn:
    """Refused: transformations are not written in Python here.

    Args:
        trace: a trace.

    Raises:
        NotImplementedError: always; a program's equations can be evaluated one by one instead.
    """
    raise NotImplementedError(_NO_TRACES)


class _TraceState:
    """Which transformations are at work.

    Equal for one and the same state, whatever the settings, the mesh and the devices are meanwhile.
    """

    def __init__(self):
        self._key = tuple(_core.traces())

    def __eq__(self, other):
        return type(other) is _TraceState and self._key == other._key

    def __hash__(self):
        return hash(self._key)


def get_opaque_trace_state(convention: Any = None) -> _TraceState:
    """A value that is equal for two places of a program that are under the same transformations.

    Args:
        convention: ignored.

    Returns:
        An object that compares equal to another while the same transformations are in progress.
    """
    return _TraceState()


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a program is being traced.

    Returns:
        bool.
    """
    return _core.staging() is not None


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a `vmap` is in progress.

    Returns:
        bool.
    """
    return any(t.what == "vmap" for t in _core.traces())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes in scope.

    Returns:
        List of names.
    """
    return [name for name, *_ in _core.trace_context()[1]]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether a named axis is in scope.

    Returns:
        bool.
    """
    return bool(_core.trace_context()[1])


def valid_jaxtype(x: Any) -> bool:
    """Whether a value is an array or a scalar that can be traced.

    Args:
        x: any value.

    Returns:
        bool.
    """
    try:
        _core.get_aval(x)
    except TypeError:
        return False
    return True


if not TYPE_CHECKING:  # a checker would take every name for one of the module's

    def __getattr__(name):
        if name == "primitives":
            return _importlib.import_module(f"{__name__}.primitives")
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return list(__all__)


_late(__name__)
