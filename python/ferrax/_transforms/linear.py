"""Linear maps of Python functions over pytrees: `linearize`, `vjp` and `linear_transpose`.

Invariant: linear maps are pytrees of their residuals, so that they pass through `jit` and `vmap`,
and can be pickled.

    y, f_vjp = vjp(jnp.sin, 0.0)
    f_vjp(1.0)                                                       # (1.,)
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np

from .. import _core, ad
from .._base.dtypes import is_integer, is_key
from .._base.flags import refused
from .._base.tracebacks import api_boundary
from .._references.backward import linearized, transposed
from .._tracing.vmappable import carried
from .._trees import flat as _flat
from .._trees.flat import FlatFun, abstract, check_callable, describe, float0, is_inexact, looked_at, tangent_dtype, zeros
from ..tree_util import Partial, keystr, register_pytree_node, tree_flatten, tree_structure

if TYPE_CHECKING:
    from collections.abc import Callable


_R = TypeVar("_R")


_get_aval = _core.get_aval


# ---------------------------------------------------------------- linearize, vjp, linear_transpose


@overload
def linearize(fun: Callable[..., _R], *primals: Any, has_aux: Literal[False] = False) -> tuple[_R, Callable[..., _R]]: ...


@overload
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: Literal[True]) -> tuple[Any, Callable[..., Any], Any]: ...


@overload
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]: ...


@api_boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function at a point, and its derivative there as a linear function that can be
    applied many times.

    Args:
        fun: a function of arrays, scalars or pytrees of them.
        *primals: the point.
        has_aux: `fun` returns a pair (out, aux).

    Returns:
        (out, f_jvp), where f_jvp takes tangents like the arguments and returns the output's
        tangent; with `has_aux`, (out, f_jvp, aux).

    Raises:
        TypeError, ValueError: when f_jvp is called, the tangents' structure, shapes or dtypes are
          not the primals'.

    >>> jax.linearize(lambda x: x**2, 3.0)[1](1.0)
    Array(6., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    leaves, in_tree = tree_flatten((primals, {}))
    flat = FlatFun(fun, in_tree, has_aux)
    outs, linear = _core.linearize(flat, leaves)
    looked_at("linearize", fun, outs)
    if has_aux:
        outs, aux = flat.split_aux(outs)
    spec = _LinearSpec(tree_structure(primals), flat.out_tree, [_get_aval(x) for x in leaves], [_get_aval(x) for x in outs], describe(fun))
    f_jvp = Partial(Partial(_apply_linear, spec), linear)
    out = flat.out_tree.unflatten(outs)
    return (out, f_jvp, aux) if has_aux else (out, f_jvp)


class _LinearSpec:
    """The structures and avals of both ends of a linear map.

    Static data of the pytree that `vjp` and `linearize` return.
    """

    def __init__(self, in_tree, out_tree, in_avals, out_avals, name, refs=()):
        self.refs = refs
        self.in_tree, self.out_tree, self.in_avals, self.out_avals, self.name = in_tree, out_tree, in_avals, out_avals, name
        self.__name__ = name.split(" at ")[0]


@api_boundary
def _apply_linear(spec, linear, *tangents):
    leaves, tree = tree_flatten(tangents)
    if tree != spec.in_tree:
        raise TypeError(f"expected {spec.in_tree}, got {tree}")
    flat = []
    for t, p in zip(leaves, spec.in_avals, strict=True):
        expected = tangent_dtype(p.dtype)
        if getattr(t, "dtype", None) == float0:
            if expected != float0:
                raise ValueError(_tangent_mismatch(f"float0[{','.join(map(str, np.shape(t)))}]", p))
            flat.append(None)
            continue
        aval = _get_aval(t)
        if aval.dtype != expected or tuple(aval.shape) != tuple(p.shape) or aval.vma != p.vma:
            raise ValueError(_tangent_mismatch(aval, p))
        flat.append(t)
    outs = looked_at("linearize", spec, linear.apply(flat)[: len(spec.out_avals)])
    return spec.out_tree.unflatten([zeros(a) if t is None else t for t, a in zip(outs, spec.out_avals, strict=True)])


def _tangent_mismatch(got, primal):
    expected = primal if is_inexact(primal.dtype) else f"float0[{','.join(map(str, primal.shape))}]"
    text = (
        "linearized function called on tangent values inconsistent with the original primal values:\n"
        f"Got tangent aval {got} for primal aval {primal} but expected {expected}."
    )
    cures = [
        (got.vma - primal.vma, "primal value passed to `jax.linearize`"),
        (primal.vma - got.vma, "tangent value passed to the callable `f_jvp` returned by `jax.linearize`"),
    ]
    lines = [f"  * applying `jax.lax.pcast(..., {tuple(sorted(axes))}, to='varying')` to the {what}" for axes, what in cures if axes]
    return text + " \nThis might be fixed by:\n" + "".join(f"{line};\n" for line in lines) if lines else text


@overload
def vjp(fun: Callable[..., _R], *primals: Any, has_aux: Literal[False] = False, reduce_axes: Any = ()) -> tuple[_R, Callable[[Any], tuple[Any, ...]]]: ...


@overload
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: Literal[True], reduce_axes: Any = ()) -> tuple[Any, Callable[[Any], tuple[Any, ...]], Any]: ...


@overload
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Any = ()) -> tuple[Any, ...]: ...


@api_boundary
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Any = ()) -> tuple[Any, ...]:
    """The value of a function and its pullback (vector-Jacobian product).

    Args:
        fun: a function of arrays, scalars or pytrees of them.
        *primals: the point.
        has_aux: `fun` returns a pair (out, aux).
        reduce_axes: not supported; must be empty.

    Returns:
        (out, f_vjp), where f_vjp takes one cotangent like the output and returns a tuple of
        cotangents like the primals (float0 for integer ones); with `has_aux`, (out, f_vjp, aux).
        f_vjp may be called many times, and is a pytree.

    Raises:
        TypeError, ValueError: when f_vjp is called, the structure, shapes or dtypes of the
          cotangent differ from those of the output.

    >>> y, f_vjp = vjp(lambda x, y: x * jnp.sin(y), 2.0, 0.5)
    >>> f_vjp(1.0)
    (Array(0.47942555, dtype=float32, weak_type=True), Array(1.7551651, dtype=float32, weak_type=True))
    """
    if reduce_axes:
        refused("vjp", "reduce_axes", reduce_axes, "sum over a named axis with lax.psum")
    check_callable(fun)
    if _flat.references.seen and any(isinstance(x, _flat.references.Ref) for x in tree_flatten(primals)[0]):
        _flat.references.check_aliases("vjp", fun, primals, {})
        within, others, _ = _flat.references.without_refs(fun, primals, {})
        used = set()
        _flat.references.watched.append(used)
        try:
            out, pull, *aux = vjp(within, *others, has_aux=has_aux)
        finally:
            _flat.references.watched.pop()
        # the derivative with respect to the contents of a reference has no place to be stored
        left_out = [x for x in tree_flatten(primals)[0] if isinstance(x, _flat.references.Ref) and id(x) in used and is_inexact(x.dtype)]
        return out, Partial(functools.partial(_without_place, repr(left_out[0].aval), left_out[0].aval.inner_aval.str_short())) if left_out else pull, *aux
    if carried.types and (found := carried.differentiated(primals, fun)) is not None:
        others, of_others, restored = found
        out, pull, *aux = vjp(of_others, *others, has_aux=has_aux)
        return out, Partial(_restoring, pull, restored), *aux
    leaves, in_tree = tree_flatten((primals, {}))
    flat = FlatFun(fun, in_tree, has_aux)
    outs, linear, refs = linearized(flat, leaves)
    looked_at("vjp", fun, outs)
    n_all = len(outs)
    if has_aux:
        outs, aux = flat.split_aux(outs)
    spec = _LinearSpec(tree_structure(primals), flat.out_tree, [_get_aval(x) for x in leaves], [_get_aval(x) for x in outs], describe(fun), refs)
    out = flat.out_tree.unflatten(outs)
    f_vjp = VJP.of(spec, n_all - len(outs), linear, leaves)
    return (out, f_vjp, aux) if has_aux else (out, f_vjp)


class NotNeeded:
    """In `VJP.args_res`, marks an argument that the pullback does not read."""

    def __repr__(self):
        return "NotNeeded()"

    def __eq__(self, other):
        return isinstance(other, NotNeeded)

    __hash__ = None


register_pytree_node(NotNeeded, lambda _: ((), None), lambda _, __: NotNeeded())


class VJP:
    """The pullback of a function at a point, as `vjp` returns it: a pytree of its residuals.

    args_res: residuals that are arguments, one entry per argument, with `NotNeeded` for those that
    the pullback does not read. An entry may be replaced before a call.
    opaque_residuals: the other residuals.
    jaxpr: the linear map, from tangents to tangents.
    """

    def __init__(self, fixed, args_res, opaque_residuals):
        self._fixed, self.args_res, self.opaque_residuals = fixed, args_res, opaque_residuals

    @classmethod
    def of(cls, spec, n_aux, linear, leaves):
        residuals, linear = _core._linear_flatten(linear)
        where = {i: k for k, i in enumerate(_core.identities(leaves)) if i is not None}
        sources = tuple(where.get(i) for i in _core.identities(residuals))
        kept = {k: leaves[k] if isinstance(leaves[k], _core.Array) else r for k, r in zip(sources, residuals, strict=True) if k is not None}
        args_res = spec.in_tree.unflatten([kept.get(k, NotNeeded()) for k in range(len(leaves))])
        return cls((spec, n_aux, linear, sources), list(args_res), [r for r, k in zip(residuals, sources, strict=True) if k is None])

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments."""
        return self._fixed[0].in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the results."""
        return self._fixed[0].out_tree

    @property
    def jaxpr(self) -> Any:
        """The program of the linear map."""
        return self._linear().program.jaxpr

    def _linear(self):
        _, _, linear, sources = self._fixed
        args = tree_flatten(tuple(self.args_res), is_leaf=lambda x: isinstance(x, NotNeeded))[0]
        others = iter(self.opaque_residuals)
        return _core._linear_unflatten(linear, [next(others) if k is None else args[k] for k in sources])

    @api_boundary
    def __call__(self, *cotangents):
        return self._wanting(None, *cotangents)

    def _wanting(self, wanted, *cotangents):
        spec, n_aux, _, _ = self._fixed
        return _pull_back(spec, n_aux, self._linear(), *cotangents, wanted=wanted)

    def with_refs(self, *refs):
        """The pullback that adds the gradients of some arguments to mutable references.

        Args:
            *refs: one tree for each primal, with its structure. At a `Ref` the gradient is added to
              the reference, and the pullback returns `ad.GradRef()` in its place. At
              `ad.DontWant()` no gradient is computed, and the pullback returns `ad.DidntWant()`. At
              any other leaf, such as `ad.GradValue()`, the gradient is returned.

        Raises:
            ValueError: a tree does not have the structure of its primal.

        >>> total = jax.new_ref(jnp.zeros(3))
        >>> vjp(lambda x: (x ** 2).sum(), jnp.ones(3))[1].with_refs(total)(1.0)
        (GradRef(),)
        >>> total[...]
        Array([2., 2., 2.], dtype=float32)
        """
        return Partial(ad.placed, self, ad.places(self, refs))

    def __repr__(self):
        return f"VJP(jaxpr={self.jaxpr}, in_tree={self.in_tree}, out_tree={self.out_tree}, args_res={self.args_res}, opaque_residuals={self.opaque_residuals})"


register_pytree_node(VJP, lambda f: ((f.args_res, f.opaque_residuals), f._fixed), lambda fixed, xs: VJP(fixed, *xs))


def _without_place(reference, value, *_cotangents):
    raise ValueError(f"Expected cotangent type {reference} but got {value}")


def _restoring(pull, restored, *cotangents):
    return restored(pull(*cotangents))


def _pull_back(spec, n_aux, linear, *cotangents, wanted=None):
    if len(cotangents) != 1:
        raise TypeError(_ONE_ARGUMENT.format(name=spec.name.split(" at ")[0], n=len(cotangents)))
    leaves, tree = tree_flatten(cotangents[0])
    if tree != spec.out_tree:
        lines = []
        from .._base.differences import tree_differences

        for path, was, here, why in tree_differences(spec.out_tree.unflatten([0] * spec.out_tree.num_leaves), tree.unflatten([0] * tree.num_leaves)):
            lines.append(f"  * out{keystr(path)} was a {was} in the original output, but a {here} here, {why}.")
        raise ValueError(
            "unexpected tree structure.\n\nThe argument to a VJP function returned by `jax.vjp` must match the pytree\n"
            f"structure of the differentiated function {spec.name}.\n\nBut the tree structures differ:\n" + "\n".join(lines)
        )
    cts = [_checked_cotangent(ct, aval) for ct, aval in zip(leaves, spec.out_avals, strict=True)]
    grads = looked_at("vjp", spec, transposed(linear, cts + [None] * n_aux, spec.refs, wanted))
    given = [True] * len(grads) if wanted is None else wanted
    grads = [zeros(a, cotangent=True) if g is None and w else 0 if g is None else g for g, w, a in zip(grads, given, spec.in_avals, strict=True)]
    return spec.in_tree.unflatten(grads)


def _checked_cotangent(ct, aval):
    """The cotangent, or None for the cotangent of an integer output, which is zero for any
    dtype.
    """
    expected = tangent_dtype(aval.dtype)
    is_float0 = getattr(ct, "dtype", None) == float0
    got = None if is_float0 else _get_aval(ct)
    got_dtype, got_shape = (float0, np.shape(ct)) if is_float0 else (got.dtype, tuple(got.shape))
    if (got_dtype != expected and expected != float0) or got_shape != tuple(aval.shape) or (got is not None and got.vma != aval.vma):
        want = aval.str_short() if expected != float0 else f"float0[{','.join(map(str, aval.shape))}]"
        have = got.str_short() if got is not None else f"float0[{','.join(map(str, got_shape))}]"
        raise ValueError(
            f"unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got {have}, but expected {want} because the"
            f" corresponding output of the differentiated function had JAX type {aval.str_short()}"
        )
    return None if expected == float0 else ct


_ONE_ARGUMENT = """
The function returned by `jax.vjp` applied to {name} was called with {n} arguments,
but functions returned by `jax.vjp` must be called with a single argument
corresponding to the single value returned by the function being differentiated
(even if that returned value is a tuple or other container).

For example, if we have:

  def f(x):
    return (x, x)
  _, f_vjp = jax.vjp(f, 1.0)

the function `f` returns a single tuple as output, and so we call `f_vjp` with a
single tuple as its argument:

  x_bar, = f_vjp((2.0, 2.0))

If we instead call `f_vjp(2.0, 2.0)`, with the values 'splatted out' as
arguments rather than in a tuple, this error can arise.
"""


@api_boundary
def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Any = ()) -> Callable[..., Any]:
    """The transpose of a linear function; cheaper than `vjp`, because nothing is evaluated.

    Args:
        fun: a linear function.
        *primals: arrays or `ShapeDtypeStruct`s like its arguments; only shapes and dtypes matter.
        reduce_axes: not supported; must be empty.

    Returns:
        a function that takes one cotangent like the output and returns a tuple of cotangents like
        the primals. It is a pytree.

    Raises:
        TypeError: `fun` is not linear, or an argument is not floating point; or, when the result is
          called, the cotangent is not like the output.

    >>> jax.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    if reduce_axes:
        refused("linear_transpose", "reduce_axes", reduce_axes, "sum over a named axis with lax.psum")
    check_callable(fun)
    leaves, in_tree = tree_flatten((primals, {}))
    avals = [abstract(x) for x in leaves]
    flat = FlatFun(fun, in_tree)
    out_avals, linear = _core.linear_transpose(flat, avals)
    if not (
        all(is_inexact(a.dtype) for a in (*avals, *out_avals))
        or all(not is_key(a.dtype) and a.dtype != float0 and is_integer(a.dtype) for a in (*avals, *out_avals))
    ):
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer -> integer functions,"
            f" but got {[a.dtype for a in avals]} -> {[a.dtype for a in out_avals]}."
        )
    spec = _LinearSpec(tree_structure(primals), flat.out_tree, avals, out_avals, describe(fun))
    return Partial(Partial(_transposed, spec), linear)


@api_boundary
def _transposed(spec, linear, out_cotangent):
    cts, tree = tree_flatten(out_cotangent)
    if tree != spec.out_tree:
        raise TypeError(f"cotangent tree does not match function output, expected {spec.out_tree} but got {tree}")
    for ct, aval in zip(cts, spec.out_avals, strict=True):
        got = _get_aval(ct)
        if got.dtype != aval.dtype or tuple(got.shape) != tuple(aval.shape):
            raise TypeError(f"cotangent type does not match function output, expected {tuple(spec.out_avals)} but got {cts}")
    return spec.in_tree.unflatten([zeros(a, cotangent=True) if g is None else g for g, a in zip(linear.transpose(cts), spec.in_avals, strict=True)])
