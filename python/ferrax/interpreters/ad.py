"""Derivative rules of primitives defined in Python.

    defjvp(sin_p, lambda t, x: t * cos_p.bind(x))
    deflinear2(scale_p, lambda ct, x, *, by: [scale_p.bind(ct, by=by)])

Invariant: the key of a rule is its primitive, in `primitive_jvps`
(`rule(primals, tangents, **params) -> (out, out_tangent)`) or `primitive_transposes`
(`rule(cotangent, *inputs, **params) -> cotangents`, `UndefinedPrimal` marking the linear inputs). A
zero is a `Zero`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from .. import _core
from .._core import primitive
from .._transforms.grad import jvp as _jvp
from .._transforms.linear import linearize as _linearize
from .._trees.flat import zeros
from ._kinds import JVPTrace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core import Array, ShapedArray
    from ..extend.core import Primitive
    from ..extend.linear_util import WrappedFun
    from ..typing import ArrayLike

__all__ = [
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_jaxvals_p",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "jvp",
    "linearize",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]

primitive_jvps: dict[Any, Any] = {}
primitive_transposes: dict[Any, Any] = {}


class _OfJvp(type):
    def __instancecheck__(cls, x):
        return (trace := _core.trace_of(x)) is not None and trace.what in ("jvp", "grad")


class JVPTracer(metaclass=_OfJvp):
    """The class of values under `jvp`, for use with `isinstance`.

    `x._trace.main` is the same object for all values of one call.
    """


class Zero:
    """A zero tangent or cotangent of a type, never made."""

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @staticmethod
    def from_primal_value(val: Any) -> Zero:
        """The zero of a value's tangent type."""
        return Zero(_core.get_aval(val))

    def __repr__(self):
        return f"Zero({self.aval})"


class UndefinedPrimal:
    """An input in which the operation is linear: a transpose rule returns its cotangent."""

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self):
        return f"UndefinedPrimal({self.aval})"


def is_undefined_primal(x: Any) -> bool:
    """Whether a transpose rule must return a cotangent for an input.

    Args:
        x: an input as a rule gets it.

    Returns:
        bool.
    """
    return type(x) is UndefinedPrimal


def zeros_like_aval(aval: ShapedArray) -> Array:
    """Zeros of a type.

    Args:
        aval: ShapedArray.

    Returns:
        Array of its shape and dtype.
    """
    return zeros(aval)


def instantiate_zeros(tangent: Array | Zero) -> Array:
    """A tangent as an array.

    Args:
        tangent: array or `Zero`.

    Returns:
        Array: zeros of its type for a `Zero`, else `tangent`.
    """
    return zeros(tangent.aval) if type(tangent) is Zero else tangent


def add_tangents(x: Array | Zero, y: Array | Zero) -> Array | Zero:
    """The sum of two tangents, either of which may be a symbolic zero.

    Args:
        x, y: arrays of one shape and dtype, or `Zero`.

    Returns:
        Array, or `Zero` where both are.
    """
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else _core.elementwise("add", x, y)


def get_primitive_transpose(p: Primitive) -> Callable[..., Any]:
    """The transpose rule of a primitive.

    Args:
        p: Primitive.

    Returns:
        The rule, `rule(cotangent, *inputs, **params)`.

    Raises:
        NotImplementedError: it has no such rule.
    """
    if p not in primitive_transposes:
        raise NotImplementedError(f"Transpose rule (for reverse-mode differentiation) for '{p}' not implemented")
    return primitive_transposes[p]


def defjvp(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Gives a primitive of one result its forward derivative, as a sum over its inputs.

    Args:
        primitive: Primitive.
        *jvprules: a rule for each input, `rule(tangent, *primals, **params)`, which returns the
          tangent of the result; None where the derivative is zero.

    Returns:
        None.
    """
    defjvp2(primitive, *[rule and (lambda t, ans, *primals, _rule=rule, **params: _rule(t, *primals, **params)) for rule in jvprules])


def defjvp2(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Gives a primitive of one result its forward derivative, by rules that also take the result.

    Args:
        primitive: Primitive.
        *jvprules: a rule for each input, `rule(tangent, out, *primals, **params)`, which returns
          the tangent of the result; None where the derivative is zero.

    Returns:
        None.
    """

    def standard_jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        total = Zero(_core.get_aval(out))
        for rule, t in zip(jvprules, tangents, strict=True):
            if rule is not None and type(t) is not Zero:
                total = add_tangents(total, rule(t, out, *primals, **params))
        return out, total

    primitive_jvps[primitive] = standard_jvp


def deflinear(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Declares a primitive linear in all inputs: its derivative, and its transpose by the given
    rule.

    Args:
        primitive: Primitive.
        transpose_rule: `transpose_rule(cotangent, **params)`, which returns the list of the inputs'
          cotangents.

    Returns:
        None.
    """
    deflinear2(primitive, lambda ct, *_, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Declares a primitive linear in all inputs, by a rule that also takes the inputs.

    Args:
        primitive: Primitive.
        transpose_rule: `transpose_rule(cotangent, *inputs, **params)`, which returns the list of
            the inputs' cotangents. Inputs whose cotangents are requested are `UndefinedPrimal`.

    Returns:
        None.
    """

    def linear_jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            if primitive.multiple_results:
                return out, [Zero.from_primal_value(x) for x in out]
            return out, Zero.from_primal_value(out)
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    def transpose(ct, *inputs, **params):
        if type(ct) is Zero:
            return [Zero(x.aval) if is_undefined_primal(x) else None for x in inputs]
        return transpose_rule(ct, *inputs, **params)

    primitive_jvps[primitive] = linear_jvp
    primitive_transposes[primitive] = transpose


def defbilinear(prim: Primitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """Declares a primitive linear in each of its two inputs: its derivative, and its transpose by
    the given rules.

    Args:
        prim: Primitive of two inputs and one result.
        lhs_rule: `lhs_rule(ct, x, y, **params)`, the cotangent of the first input.
        rhs_rule: `rhs_rule(ct, x, y, **params)`, the cotangent of the second input.

    Returns:
        None.
    """
    defjvp(prim, lambda t, x, y, **params: prim.bind(t, y, **params), lambda t, x, y, **params: prim.bind(x, t, **params))

    def transpose(ct, x, y, **params):
        assert is_undefined_primal(x) ^ is_undefined_primal(y)
        if is_undefined_primal(x):
            return (Zero(x.aval) if type(ct) is Zero else lhs_rule(ct, x, y, **params)), None
        return None, (Zero(y.aval) if type(ct) is Zero else rhs_rule(ct, x, y, **params))

    primitive_transposes[prim] = transpose


add_jaxvals_p: Any = primitive("add_any")


def add_jaxvals(x: ArrayLike, y: ArrayLike) -> Array:
    """The sum of two tangents or cotangents.

    Args:
        x, y: arrays of one shape and dtype.

    Returns:
        Array of their shape and dtype.
    """
    return add_jaxvals_p.bind(x, y)


@overload
def jvp(fun: Any, has_aux: Literal[False] = False, instantiate: Any = True, transform_stack: bool = True) -> WrappedFun: ...


@overload
def jvp(fun: Any, has_aux: Literal[True], instantiate: Any = True, transform_stack: bool = True) -> tuple[WrappedFun, Callable[[], Any]]: ...


@overload
def jvp(fun: Any, has_aux: bool = False, instantiate: Any = True, transform_stack: bool = True) -> WrappedFun | tuple[WrappedFun, Callable[[], Any]]: ...


def jvp(
    fun: WrappedFun, has_aux: bool = False, instantiate: bool | Sequence[bool] = True, transform_stack: bool = True
) -> WrappedFun | tuple[WrappedFun, Callable[[], Any]]:
    """The forward derivative of a `WrappedFun` of leaves.

    Args:
        fun: WrappedFun of arrays that returns a sequence of arrays, with `has_aux` the pair of that
          sequence and any pytree.
        has_aux: bool; whether the second part of the function's result is returned without a
          derivative.
        instantiate, transform_stack: accepted without effect: tangents are arrays.

    Returns:
        WrappedFun of (list of arrays, list of their tangents) that returns the pair (results, their
        tangents). With `has_aux` the pair of that WrappedFun and a function without parameters,
        which returns the second part of the result of the last call.

    Raises:
        RuntimeError: the second part is read before the first call.
    """
    found = []

    def of_pairs(inner, primals, tangents):
        out, tangents_out, *found[:] = _jvp(
            lambda *xs: inner(*xs) if has_aux else list(inner(*xs)), tuple(primals), tuple(instantiate_zeros(t) for t in tangents), has_aux=has_aux
        )
        return out, tangents_out

    def aux():
        if not found:
            raise RuntimeError("interpreters.ad.jvp: the auxiliary result is read before the function is called")
        return found[0]

    wrapped = fun.wrap(of_pairs, (), None)
    return (wrapped, aux) if has_aux else wrapped


def linearize(traceable: WrappedFun, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The results of a `WrappedFun` of leaves, and its derivative at a point as a linear function.

    Args:
        traceable: WrappedFun of arrays that returns a sequence of arrays.
        *primals: arrays, the point.
        has_aux: bool; whether the function returns a pair whose second part is not differentiated.

    Returns:
        (results, function of tangents that returns the results' tangents), and with `has_aux` the
        second part of the function's result.
    """
    return _linearize(lambda *xs: traceable.call_wrapped(*xs) if has_aux else list(traceable.call_wrapped(*xs)), *primals, has_aux=has_aux)
