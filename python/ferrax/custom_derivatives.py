"""Derivative rules given by the user: `custom_jvp`, `custom_vjp`, `custom_gradient`, `linear_call`.

Invariant: a rule takes and returns the function's own pytrees; the core uses flat lists, with None
for a zero.

    @custom_jvp
    def log1pexp(x): return jnp.log(1.0 + jnp.exp(x))
    log1pexp.defjvp(lambda primals, tangents: (log1pexp(*primals), tangents[0] / (1 + jnp.exp(-primals[0]))))
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeVar

from . import _core
from ._base.flags import FLAGS
from ._base.tracebacks import api_boundary
from ._references.refs import thread_references
from ._references.rules import call_custom_jvp, call_custom_vjp, given_refs
from ._tracing.picklable import restorable
from ._transforms.custom import CustomFunction, PlainText, RuledFunction, named, places, split_nondiff, split_traced, with_places, without_gradient
from ._transforms.forward_of_vjp import is_within, jvp_rule, within
from ._trees.flat import FlatFun, float0, is_inexact, name_of, vary_as, zeros
from ._trees.prefixes import broadcast_prefix
from .errors import UnexpectedTracerError
from .interpreters._linear_call import linear_call
from .tree_util import register_pytree_node, tree_flatten, tree_leaves, tree_map, tree_structure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from ._core import Array, ShapedArray


_P = ParamSpec("_P")
_R = TypeVar("_R")
_F = TypeVar("_F", bound="Callable[..., Any]")


__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]

custom_jvp_call_p, custom_vjp_call_p = _core.primitive("custom_jvp_call"), _core.primitive("custom_vjp_call")


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, of type `aval`; passed to rules with
    `symbolic_zeros=True`.
    """

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.aval.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.aval.shape)

    def instantiate(self) -> Array:
        """The zeros as an array."""
        return zeros(self.aval)

    def __repr__(self):
        return f"SymbolicZero({self.aval})"


@dataclasses.dataclass(frozen=True)
class CustomVJPPrimal:
    """An argument as `fwd` sees it with `symbolic_zeros=True`: its value, and whether it is
    differentiated.
    """

    value: object
    perturbed: bool


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Replaces each `CustomVJPPrimal` of a pytree by its value.

    Args:
        tree: pytree of `CustomVJPPrimal`s, as a `fwd` rule with `symbolic_zeros=True` gets it;
          other leaves are unchanged.

    Returns:
        Pytree of the same structure, of arrays.
    """
    is_primal = lambda x: isinstance(x, CustomVJPPrimal)
    return tree_map(lambda x: x.value if is_primal(x) else x, tree, is_leaf=is_primal)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Zeros of the tangent types of a pytree's leaves.

    Args:
        val: pytree of arrays.
        symbolic_zeros: bool; whether each leaf is a `SymbolicZero` instead of an array.

    Returns:
        Pytree of the same structure: zeros of each leaf's shape and dtype, of dtype float0 for
        integers and booleans.
    """
    zero = (lambda x: SymbolicZero(_core.get_aval(x).to_tangent_aval())) if symbolic_zeros else (lambda x: zeros(_core.get_aval(x)))
    return tree_map(zero, val)


# ---------------------------------------------------------------- custom_jvp


class custom_jvp(CustomFunction, Generic[_P, _R]):
    """A function with a custom forward-mode rule; reverse mode is its transposition.

    Args:
        fun: the function.
        nondiff_argnums, nondiff_argnames: arguments that are not differentiated (functions, sizes);
          the rule gets them first.

    Example:
      @custom_jvp
      def f(x, y): return jnp.sin(x) * y

      @f.defjvp
      def f_jvp(primals, tangents):
          (x, y), (dx, dy) = primals, tangents
          return f(x, y), jnp.cos(x) * dx * y + jnp.sin(x) * dy
    """

    def __init__(self, fun: Callable[_P, _R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: _F, symbolic_zeros: bool = False) -> _F:
        """Sets the rule: `jvp(*nondiff_args, primals, tangents) -> (out, out_tangent)`.

        Returns it, so that it may decorate.

        Args:
            symbolic_zeros: pass zero tangents as `SymbolicZero`, not as arrays.
        """
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets one rule per argument: `jvps[i](tangent_i, out, *primals) -> out_tangent`, or None
        for a zero derivative.

        Raises:
            TypeError: the function has `nondiff_argnums`.
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        self.defjvp(_sum_of_rules(self, jvps))

    @api_boundary
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """The function's value; under differentiation, with its own rule."""
        name = name_of(self.fun)
        if not self.jvp:
            raise AttributeError(f"No JVP defined for custom_jvp function {name} using defjvp.")
        args = self._positional(args, kwargs)
        static, dyn, merge = split_nondiff(self.nondiff_argnums, _constant(args, self.nondiff_argnums))
        given = given_refs("custom_jvp", self.fun, args)
        traced, refill = split_traced(static)
        if traced and not given:
            return self._with_operands(merge, refill)(traced, *dyn)
        return thread_references(lambda: self._call(name, static, dyn, merge), lambda refs: call_custom_jvp(self, static, merge, dyn, refs), given)

    def _with_operands(self, merge, refill):
        """The function of (traced values among the static arguments, *the other arguments), with
        the same rule.
        """

        def rule(primals, tangents):
            traced, *dyn = primals
            return self.jvp(*refill(traced), tuple(dyn), tuple(tangents[1:]))

        inner = custom_jvp(named(lambda traced, *dyn: self.fun(*merge(dyn, refill(traced))), name_of(self.fun)))
        inner.defjvp(named(rule, name_of(self.jvp)), symbolic_zeros=self.symbolic_zeros)
        return inner

    def _call(self, name, static, dyn, merge):
        leaves, in_tree = tree_flatten((dyn, {}))
        flat = RuledFunction(lambda *dyn: self.fun(*merge(dyn)), in_tree)
        rule = _FlatJvpRule(self.jvp, name, static, tree_structure(dyn), flat, self.symbolic_zeros)
        outs = _core.custom_jvp_call(name, flat, rule, leaves, symbolic_zeros=self.symbolic_zeros)
        return (flat.out_tree or rule.out_tree).unflatten(flat.passed(leaves, outs))


def _constant(args, positions):
    """The arguments, those at some positions without derivatives: a rule runs outside of the
    derivative that it defines.
    """
    where = {i % len(args) if i < 0 else i for i in positions} if positions else ()
    return tuple(tree_map(without_gradient, x) if i in where else x for i, x in enumerate(args)) if where else args


def _sum_of_rules(custom, jvps):
    """The rule that one rule per argument is."""

    @restorable(_sum_of_rules, custom, jvps)
    def jvp(primals, tangents):
        out = custom(*primals)
        zero = tree_map(lambda x: zeros(_core.get_aval(x)), out)
        terms = [rule(t, out, *primals) if rule else zero for rule, t in zip(jvps, tangents, strict=True)]
        used = [term for rule, term in zip(jvps, terms, strict=True) if rule] or [zero]
        total = used[0]
        for term in used[1:]:
            total = tree_map(lambda a, b: _core.elementwise("add", a, b), total, term)
        return out, total

    return jvp


class _FlatJvpRule:
    """A `defjvp` rule over flat lists, with a check of its results."""

    def __init__(self, jvp, name, static, dyn_tree, flat, symbolic_zeros):
        self.jvp, self.name, self.static, self.dyn_tree, self.flat, self.symbolic_zeros = jvp, name, static, dyn_tree, flat, symbolic_zeros
        self.out_tree = None
        self.__name__ = name_of(jvp)

    def __call__(self, primals, tangents):
        if self.symbolic_zeros:
            tangents = [SymbolicZero(_core.get_aval(p)) if t is None else t for p, t in zip(primals, tangents, strict=True)]
        else:
            tangents = [zeros(_core.get_aval(p)) if t is None else t for p, t in zip(primals, tangents, strict=True)]
        primals, tangents = self.dyn_tree.unflatten(primals), self.dyn_tree.unflatten(tangents)
        pair = self.jvp(*self.static, primals, with_places(primals, tangents))
        rule = f"Custom JVP rule {name_of(self.jvp)} for function {self.name}"
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"{rule} must produce a pair (list or tuple of length two) representing primal and tangent outputs, but got {pair}.")
        outs, out_tree = tree_flatten(pair[0])
        out_tangents, tangent_tree = tree_flatten(pair[1])
        if out_tree != tangent_tree:
            raise TypeError(
                f"{rule} must produce primal and tangent outputs with equal container (pytree) structures, but got {out_tree} and {tangent_tree} respectively."
            )
        self._check_outputs(rule, [_core.get_aval(x) for x in outs], out_tree)
        self.out_tree = out_tree
        return outs, [None if place else self._tangent(o, t) for o, t, place in zip(outs, out_tangents, places(pair[0]), strict=True)]

    def _check_outputs(self, rule, avals, tree):
        """Compares the result of the rule with that of the function, if that has run."""
        if self.flat.out_tree is None:
            return
        head = (
            f"{rule} must produce a pair (list or tuple of length two) where the first element represents the primal output"
            f" (equal in value to the output of the custom_jvp-decorated function {self.name}, and in particular"
        )
        of_function = f"while the custom_jvp-decorated function {self.name} had output"
        short = lambda tree, avals: _core.tree_unflatten(tree, [PlainText(a.str_short()) for a in avals])
        if tree != self.flat.out_tree:
            raise TypeError(
                f"{head} of the same container/pytree structure), but instead the JVP rule output's first element had container/pytree"
                f" structure:\n    {short(tree, avals)}\n{of_function} container/pytree structure:\n"
                f"    {short(self.flat.out_tree, self.flat.out_avals)}."
            )
        if any(a.dtype != b.dtype or tuple(a.shape) != tuple(b.shape) for a, b in zip(avals, self.flat.out_avals, strict=True)):
            raise TypeError(
                f"{head} with leaves of the same shape/dtype), but instead the JVP rule output's first element had shapes/dtypes of:\n"
                f"    {short(tree, avals)}\n{of_function} shapes/dtypes of:\n    {short(tree, self.flat.out_avals)}"
            )

    def _tangent(self, out, tangent):
        if isinstance(tangent, SymbolicZero):
            return None
        o = _core.get_aval(out)
        expected = o.to_tangent_aval()
        is_float0 = getattr(tangent, "dtype", None) == float0
        got, shape = (
            (f"float0[{','.join(map(str, tangent.shape))}]", tangent.shape)
            if is_float0
            else (_core.get_aval(tangent).str_short(), _core.get_aval(tangent).shape)
        )
        if (float0 if is_float0 else _core.get_aval(tangent).dtype) != expected.dtype or tuple(shape) != tuple(o.shape):
            raise TypeError(
                "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes."
                f" Expected {expected.str_short()} (tangent type of {o.str_short()}) but got {got}."
            )
        return None if is_float0 else vary_as(tangent, o)


# ---------------------------------------------------------------- custom_vjp


class custom_vjp(CustomFunction, Generic[_P, _R]):
    """A function with a custom reverse-mode rule. It cannot be differentiated in forward mode.

    Args:
        fun: the function.
        nondiff_argnums, nondiff_argnames: arguments that are not differentiated and are not arrays;
          `bwd` gets them first.

    Example:
      @custom_vjp
      def clip_gradient(x, limit): return x
      clip_gradient.defvjp(lambda x, limit: (x, limit),
                           lambda limit, g: (jnp.clip(g, -limit, limit), None))
    """

    def __init__(self, fun: Callable[_P, _R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd = self.bwd = None
        self.symbolic_zeros = False

    def defvjp(self, fwd: Callable[..., tuple[Any, Any]], bwd: Callable[..., Any], symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Sets the rule.

        Args:
            fwd: `fwd(*args) -> (out, residuals)`; residuals are any pytree of arrays.
            bwd: `bwd(*nondiff_args, residuals, cotangent) -> tuple`, one cotangent per argument
              that is differentiated; None is a zero.
            symbolic_zeros: give `fwd` its arguments as `CustomVJPPrimal`, and `bwd` zero cotangents
              as `SymbolicZero`.
            optimize_remat: accepted for compatibility; unused parts of `fwd` are always dropped.
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def defvjp_all(self, *_: Any) -> NoReturn:
        """No longer there: raises AttributeError."""
        raise AttributeError("defvjp_all was replaced by defvjp(fwd, bwd)")

    @api_boundary
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """The function's value; under differentiation, with its own rule."""
        name = name_of(self.fun)
        if not self.fwd or not self.bwd:
            raise AttributeError(f"No VJP defined for custom_vjp function {name} using defvjp.")
        args = self._positional(args, kwargs)
        static, dyn, merge = split_nondiff(self.nondiff_argnums, args)
        given = given_refs("custom_vjp", self.fun, args)
        traced, refill = split_traced(static)
        # one that is being differentiated has no cotangent to be given
        if any(given or ((owner := _core.trace_of(x)) is not None and owner.what in ("jvp", "grad")) for x in traced):
            raise UnexpectedTracerError(_NONDIFF_TRACER)
        if traced:
            return self._with_operands(merge, refill)(traced, *dyn)
        if is_within(self):
            return self._in_its_rule(static, dyn, merge)
        with_refs = lambda refs: call_custom_vjp(self, static, merge, dyn, refs, SymbolicZero)
        return thread_references(lambda: self._call(name, static, dyn, merge), with_refs, given)

    def _with_operands(self, merge, refill):
        """The function of (traced values among the static arguments, *the other arguments), with
        the same rule.
        """
        fun = named(lambda traced, *dyn: self.fun(*merge(dyn, refill(traced))), name_of(self.fun))
        if is_within(self):

            def rule(primals, tangents):
                traced, *dyn = primals
                static = refill(traced)
                of_static = jvp_rule(self, static, lambda dyn: merge(dyn, static), self._primal)
                return of_static(tuple(dyn), tuple(tangents[1:]))

            inner = custom_jvp(fun)
            inner.defjvp(rule)
            return inner

        def forward(traced, *dyn):
            traced = tree_map(lambda x: x.value, traced) if self.symbolic_zeros else traced
            with within(self):
                pair = self.fwd(*merge(dyn, refill(traced)))
            return (pair[0], (pair[1], traced)) if isinstance(pair, (tuple, list)) and len(pair) == 2 else pair

        def backward(residuals, cts):
            grads = self.bwd(*refill(residuals[1]), residuals[0], cts)
            return (None, *grads) if isinstance(grads, (tuple, list)) else grads

        inner = custom_vjp(fun)
        inner.defvjp(named(forward, name_of(self.fwd)), named(backward, name_of(self.bwd)), symbolic_zeros=self.symbolic_zeros)
        return inner

    def _primal(self, x):
        """An argument as `fwd` is given it."""
        return CustomVJPPrimal(x, True) if self.symbolic_zeros else x

    def _call(self, name, static, dyn, merge):
        leaves, in_tree = tree_flatten((dyn, {}))
        flat = RuledFunction(lambda *dyn: self.fun(*merge(dyn)), in_tree)
        rule = _FlatVjpRule(self, name, static, merge, tree_structure(dyn), flat)
        outs = _core.custom_vjp_call(
            name, flat, named(rule.forward, name_of(self.fwd)), named(rule.backward, name_of(self.bwd)), leaves, symbolic_zeros=self.symbolic_zeros
        )
        return (flat.out_tree or rule.out_tree).unflatten(flat.passed(leaves, outs))

    def _in_its_rule(self, static, dyn, merge):
        """The call of the function through its `fwd`, for other derivatives."""
        custom = custom_jvp(lambda *dyn: self.fun(*merge(dyn)))
        custom.defjvp(jvp_rule(self, static, merge, self._primal))
        custom.fun.__name__ = name_of(self.fun)
        return custom(*dyn)


_CHECKS_OFF = FLAGS["jax_disable_bwd_checks"]

_NONDIFF_TRACER = (
    "Found a JAX Tracer object passed as an argument to a custom_vjp function in a position indicated by nondiff_argnums as non-differentiable, which is"
    " being differentiated, or beside a mutable reference. nondiff_argnums should only be used for arguments without derivatives, e.g. function-valued"
    " arguments. In particular, array-valued arguments should typically not be indicated as nondiff_argnums."
)


class _FlatVjpRule:
    """A `defvjp` rule over flat lists, with a check of the results of both functions."""

    def __init__(self, custom, name, static, merge, dyn_tree, flat):
        self.custom, self.name, self.static, self.merge, self.dyn_tree, self.flat = custom, name, static, merge, dyn_tree, flat
        self.out_tree = self.res_tree = self.numbers = self.in_avals = self.out_avals = self.places = None

    def forward(self, *leaves, perturbed=None):
        fwd = self.custom.fwd
        self.in_avals = [_core.get_aval(x) for x in leaves]
        if self.custom.symbolic_zeros:
            leaves = [CustomVJPPrimal(x, True if perturbed is None else perturbed[i]) for i, x in enumerate(leaves)]
        with within(self.custom):
            pair = fwd(*self.merge(self.dyn_tree.unflatten(leaves)))
        rule = f"Custom VJP fwd rule {name_of(fwd)} for function {self.name}"
        head = lambda same: (
            f"{rule} must produce a pair (list or tuple of length two) where the first element represents the primal output (equal to {same} of the"
            f" custom_vjp-decorated function {self.name}) and the second element represents residuals (i.e. values stored from the forward pass for use on"
            " the backward pass), but instead"
        )
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"{head('those')} of a pair the fwd rule {name_of(fwd)} produced {pair}.")
        outs, self.out_tree = tree_flatten(pair[0])
        self.out_avals = [_core.get_aval(x) for x in outs]
        self._check_outputs(head("the output"))
        residuals, self.res_tree = tree_flatten(pair[1])
        # Python numbers come back as they went: bwd may branch on them
        self.numbers = [(x,) if type(x) in (bool, int, float, complex) else None for x in residuals]
        self.places = places(pair[0])
        return outs, [
            *(x for x, number in zip(residuals, self.numbers, strict=True) if number is None),
            *(x for x, place in zip(outs, self.places, strict=True) if place),
        ]

    def _check_outputs(self, head):
        """Compares the result of `fwd` with that of the function, if that has run."""
        if self.flat.out_tree is None:
            return
        short = lambda tree, avals: str(_core.tree_unflatten(tree, [PlainText(a.str_short()) for a in avals]))
        for differ, what in (
            (lambda: self.out_tree != self.flat.out_tree, "container/pytree structure"),
            (lambda: any(a.dtype != b.dtype or a.shape != b.shape for a, b in zip(self.out_avals, self.flat.out_avals, strict=True)), "shapes/dtypes of"),
        ):
            if differ():
                raise TypeError(
                    f"{head} the fwd rule output's first element had {what}:\n    {short(self.out_tree, self.out_avals)}\nwhile the custom_vjp-decorated"
                    f" function {self.name} had output {what}:\n    {short(self.flat.out_tree, self.flat.out_avals)}"
                )

    def backward(self, residuals, cts):
        bwd = self.custom.bwd
        if self.custom.symbolic_zeros:
            cts = [SymbolicZero(a) if ct is None else ct for ct, a in zip(cts, self.out_avals, strict=True)]
        else:
            cts = [zeros(a) if ct is None else ct for ct, a in zip(cts, self.out_avals, strict=True)]
        given = iter(residuals)
        residuals = [next(given) if number is None else number[0] for number in self.numbers]
        cts = [next(given) if place else ct for ct, place in zip(cts, self.places, strict=True)]
        grads = bwd(*self.static, self.res_tree.unflatten(residuals), self.out_tree.unflatten(cts))
        if isinstance(grads, list):
            grads = tuple(grads)
        return self._flat_cotangents(grads)

    def _flat_cotangents(self, grads):
        """One entry per input leaf.

        None is a zero, for one leaf or for a whole subtree; any other leaf is used for all leaves
        below its place.
        """
        dummy = self.dyn_tree.unflatten([object() for _ in range(self.dyn_tree.num_leaves)])
        is_none = lambda x: x is None
        try:
            if not isinstance(grads, tuple) or len(grads) != len(dummy):
                raise ValueError
            spread = broadcast_prefix(grads, dummy, prefix_is_leaf=is_none)
        except (ValueError, TypeError):
            raise TypeError(
                "Custom VJP bwd rule must produce an output with the same container (pytree) structure as the args tuple of the primal"
                " function, and in particular must produce a tuple of length equal to the number of arguments to the primal function,"
                f" but got bwd output structure {tree_structure(grads)} for primal input structure {self.dyn_tree}."
            ) from None
        return [self._cotangent(ct, i) for i, ct in enumerate(spread)]

    def _path(self, i):
        """The path of argument leaf i, for errors."""
        return "".join(map(str, _core.tree_flatten_with_path(self.dyn_tree.unflatten(list(range(len(self.in_avals)))), None)[0][i][0]))

    def _cotangent(self, ct, i):
        aval = self.in_avals[i]
        if getattr(ct, "dtype", None) == float0 or not is_inexact(aval.dtype):
            return None
        if isinstance(ct, SymbolicZero) and (tuple(ct.shape) != tuple(aval.shape) or ct.dtype != aval.dtype):
            raise ValueError(
                "Custom VJP bwd rule produced a SymbolicZero with a shape/dtype that does not match the corresponding input tangent shape/dtype: at"
                f" output{self._path(i)} the SymbolicZero had shape/dtype {ct.aval.str_short()} while the corresponding input had shape/dtype"
                f" {aval.str_short()}. Consider just returning a None here instead of a SymbolicZero object."
            )
        if ct is None or isinstance(ct, SymbolicZero):
            return zeros(aval)  # an array: earlier rules are called, and may return tangents other than zero
        if _CHECKS_OFF.changed and _CHECKS_OFF.get():
            return ct
        got = _core.get_aval(ct)
        shapes = tuple(got.shape) != tuple(aval.shape)
        if shapes or got.vma != aval.vma:
            raise ValueError(
                "Custom VJP bwd rule must produce an output with the same type as the args tuple of the primal function, but at"
                f" output{self._path(i)} the bwd rule produced an output of type {got.str_short()} corresponding to an"
                f" input of type {aval.str_short()}, so the {'shapes' if shapes else 'manual axis types'} do not match"
            )
        if got.dtype != aval.dtype:
            return _core.bind("convert_element_type", ct, new_dtype=aval.dtype, weak_type=False, sharding=None)
        return ct


@api_boundary
def custom_gradient(fun: Callable[_P, tuple[_R, Any]]) -> Callable[_P, _R]:
    """A function that returns its value and its own pullback: `fun(*args) -> (out, vjp)`.

    `vjp(cotangent)` returns a tuple of one cotangent per argument; for a single argument it may
    return the cotangent itself.

    Args:
        fun: function that returns (out, vjp).

    Returns:
        Function of fun's arguments that returns out.

    >>> f = custom_gradient(lambda x: (x ** 2, lambda g: (g * x,)))
    >>> grad(f)(3.0)
    Array(3., dtype=float32, weak_type=True)
    """

    def wrapped_fun(*args, **kwargs):
        return fun(*args, **kwargs)[0]

    def fwd(*args, **kwargs):
        out, rule = fun(*args, **kwargs)
        outs, out_tree = tree_flatten(out)
        avals = [_core.get_aval(x).to_tangent_aval() for x in outs]
        converted, consts = _closed(lambda *cts: rule(out_tree.unflatten(cts)), avals)
        return out, _Pullback(consts, converted)

    def bwd(res, g):
        cts = res.converted(res.consts, *tree_leaves(g))
        return cts if isinstance(cts, tuple) else tuple(cts) if isinstance(cts, list) else (cts,)

    custom = custom_vjp(wrapped_fun)
    custom.defvjp(fwd, bwd)
    custom = functools.update_wrapper(custom, fun) if hasattr(fun, "__name__") else custom
    custom._made = custom_gradient, (fun,)
    return custom


class _Pullback:
    """A traced pullback between passes: the values it closes over are leaves, its program is
    static.
    """

    def __init__(self, consts, converted):
        self.consts, self.converted = consts, converted


register_pytree_node(_Pullback, lambda p: ((p.consts,), p.converted), lambda converted, xs: _Pullback(xs[0], converted))


def _closed(fun, avals):
    """`fun` of leaves, traced: (`converted(consts, *leaves)`, consts), the consts being every array
    that `fun` closes over.
    """
    flat = FlatFun(fun, tree_structure((tuple(avals), {})))
    program, consts = _core.make_program(flat, avals)
    program, out_tree = program.jaxpr, flat.out_tree

    def converted(consts, *leaves):
        return out_tree.unflatten(_core.eval_program(program, list(consts), *leaves))

    return converted, list(consts)


@api_boundary
def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """`fun` with the differentiable arrays it closes over made arguments.

    Args:
        fun: a function of arrays or pytrees of them.
        *example_args: arguments, or `ShapeDtypeStruct`s like them.

    Returns:
        (converted, consts): `converted(*args, *consts)` equals `fun(*args)` and captures no value
        that is being differentiated.
    """
    leaves, in_tree = tree_flatten((example_args, {}))
    avals = [getattr(x, "aval", None) or _core.get_aval(x) for x in leaves]
    flat = FlatFun(fun, in_tree)
    program, consts = _core.make_program(flat, avals)
    out_tree, args_tree = flat.out_tree, tree_structure(example_args)
    hoisted = [isinstance(c, _core.Tracer) and is_inexact(c.dtype) for c in consts]
    kept = [c for c, h in zip(consts, hoisted, strict=True) if not h]
    program = program.jaxpr  # without the captured values, for rules keep the converted function

    def converted_fun(*args_and_consts):
        n = len(args_and_consts) - sum(hoisted)
        leaves, tree = tree_flatten(args_and_consts[:n])
        if tree != args_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the same Pytree structure as the example arguments passed when"
                f" closure_convert was called. Expected {args_tree}, but got {tree}"
            )
        own, given = iter(kept), iter(args_and_consts[n:])
        return out_tree.unflatten(_core.eval_program(program, [next(given) if h else next(own) for h in hoisted], *leaves))

    return converted_fun, [c for c, h in zip(consts, hoisted, strict=True) if h]
