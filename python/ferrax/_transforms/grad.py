"""Derivatives of Python functions over pytrees: `grad`, `jvp`, and Jacobians in both modes.

Invariant: each is `_core.jvp`, `_core.linearize` or `_core.vmap` of a flat function. Values are
known to the function, so that `if x > 0` works under every derivative.

    grad(lambda p: (p["w"] ** 2).sum())({"w": jnp.ones(3)})          # {'w': [2., 2., 2.]}
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from .. import _core
from .._base.config import exporting_for
from .._base.flags import refused
from .._base.tracebacks import api_boundary
from .._references.backward import linearized, transposed
from .._tracing.jit import jit
from .._tracing.picklable import restorable
from .._tracing.vmappable import carried
from .._trees.flat import FlatFun, check_callable, float0, is_inexact, looked_at, tangent_dtype, unit, vary_as, wraps, zeros
from ..tree_util import tree_flatten, tree_map, tree_structure, tree_transpose
from .linear import _get_aval, vjp
from .vmap import vmap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_P = ParamSpec("_P")
_R = TypeVar("_R")


# ---------------------------------------------------------------- checks, with JAX's message


def _argnums(argnums):
    return operator.index(argnums) if hasattr(argnums, "__index__") or isinstance(argnums, str) else tuple(map(operator.index, argnums))


def _check_enough(argnums, n_args):
    highest = argnums if isinstance(argnums, int) else max(argnums, default=-1)
    if highest >= n_args:
        raise TypeError(
            f"differentiating with respect to {argnums=} requires at least {highest + 1} positional arguments to be passed by the caller,"
            f" but got only {n_args} positional arguments."
        )


def _check_positions(argnums, n_args):
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    for i in numbers:
        if not -n_args <= i < n_args:
            raise ValueError(
                "Positional argument indices, e.g. for `static_argnums`, must have value greater than or equal to -len(args) and less than"
                f" len(args), but got value {i} for len(args) == {n_args}."
            )
    if len({i % n_args for i in numbers}) < len(numbers):
        raise TypeError(f"differentiating with respect to {argnums=} names one of the {n_args} positional arguments twice.")


def _check_input_revderiv(name, holomorphic, allow_int, x):
    dtype = _get_aval(x).dtype
    if holomorphic:
        if getattr(dtype, "kind", None) != "c":
            raise TypeError(f"{name} with holomorphic=True requires inputs with complex dtype, but got {_dtype_name(dtype)}.")
    elif not is_inexact(dtype) and not allow_int:
        raise TypeError(
            f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got"
            f" {_dtype_name(dtype)}. If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int to True."
        )


def _check_output_revderiv(name, holomorphic, dtype):
    if holomorphic:
        if getattr(dtype, "kind", None) != "c":
            raise TypeError(f"{name} with holomorphic=True requires outputs with complex dtype, but got {_dtype_name(dtype)}.")
    elif getattr(dtype, "kind", None) == "c":
        raise TypeError(
            f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got {_dtype_name(dtype)}."
            " For holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic functions involving"
            " complex outputs, use jax.vjp directly."
        )
    elif not is_inexact(dtype):
        raise TypeError(
            f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got {_dtype_name(dtype)}."
            " For differentiation of functions with integer outputs, use jax.vjp directly."
        )


def _check_input_jacfwd(holomorphic, x):
    dtype = _get_aval(x).dtype
    if holomorphic:
        if getattr(dtype, "kind", None) != "c":
            raise TypeError(f"jacfwd with holomorphic=True requires inputs with complex dtype, but got {_dtype_name(dtype)}.")
    elif not is_inexact(dtype) or dtype.kind == "c":
        raise TypeError(
            f"jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got {_dtype_name(dtype)}."
            " For holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic functions involving"
            " complex inputs or integer inputs, use jax.jvp directly."
        )


def _check_output_jacfwd(holomorphic, dtype):
    if holomorphic and getattr(dtype, "kind", None) != "c":
        raise TypeError(f"jacfwd with holomorphic=True requires outputs with complex dtype, but got {_dtype_name(dtype)}.")


def _dtype_name(dtype):
    return getattr(dtype, "name", None) or str(dtype)


# ---------------------------------------------------------------- grad


@overload
def grad(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[_P, Any]: ...


@overload
def grad(
    fun: Callable[_P, tuple[Any, _R]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[_P, tuple[Any, _R]]: ...


@overload
def grad(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[_P, Any]: ...


@api_boundary
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """The function that computes the gradient of a scalar function.

    Args:
        fun: a function with scalar floating-point output, of arguments that are arrays, scalars or
          pytrees of them.
        argnums: which positional arguments to differentiate with respect to: an int, or a sequence
          of them.
        has_aux: `fun` returns a pair (out, aux), where aux is any pytree, returned beside the
          gradient.
        holomorphic: `fun` is complex-differentiable; inputs and output must be complex.
        allow_int: accept integer and boolean inputs; their gradients have dtype float0.
        reduce_axes: not supported; must be empty.

    Returns:
        a function of `fun`'s arguments. It returns a pytree like the argument (a tuple of them if
        `argnums` is a sequence), of the same shapes and dtypes; with `has_aux`, a pair (gradient,
        aux).

    Raises:
        TypeError: an input is not floating point, the output is not a real scalar, or too few
          arguments are given.

    >>> grad(jnp.sin)(0.2)
    Array(0.9800666, dtype=float32, weak_type=True)
    """
    if reduce_axes:
        refused("grad", "reduce_axes", reduce_axes, "sum over a named axis with lax.psum")
    inner = _value_and_grad(fun, "grad", argnums, has_aux, holomorphic, allow_int)
    doc = (
        f"Gradient of {{fun}} with respect to positional argument(s) {argnums}. Takes the same arguments as {{fun}} but returns the gradient,"
        f" which has the same shape as the arguments at positions {argnums}."
    )

    @restorable(grad, fun, argnums, has_aux, holomorphic, allow_int)
    @wraps(fun, "{fun}", doc)
    def grad_f(*args, **kwargs):
        value, g = inner(args, kwargs)
        return (g, value[1]) if has_aux else g

    return grad_f


@api_boundary
def value_and_grad(
    fun: Callable[_P, _R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[_P, tuple[_R, Any]]:
    """The function that computes both a scalar function's value and its gradient.

    The arguments are those of `grad`.

    Args:
        fun, argnums, has_aux, holomorphic, allow_int, reduce_axes: as for `grad`.

    Returns:
        a function of `fun`'s arguments that returns (value, gradient); with `has_aux`, ((value,
        aux), gradient).

    >>> jax.value_and_grad(lambda x: x**2)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    if reduce_axes:
        refused("value_and_grad", "reduce_axes", reduce_axes, "sum over a named axis with lax.psum")
    inner = _value_and_grad(fun, "value_and_grad", argnums, has_aux, holomorphic, allow_int)
    doc = (
        f"Value and gradient of {{fun}} with respect to positional argument(s) {argnums}. Takes the same arguments as {{fun}} but returns a"
        " two-element tuple where the first element is the value of {fun} and the second element is the gradient, which has the same shape as"
        f" the arguments at positions {argnums}."
    )

    @restorable(value_and_grad, fun, argnums, has_aux, holomorphic, allow_int)
    @wraps(fun, "{fun}", doc)
    def value_and_grad_f(*args, **kwargs):
        return inner(args, kwargs)

    return value_and_grad_f


def _value_and_grad(fun, name, argnums, has_aux, holomorphic, allow_int):
    check_callable(fun)
    argnums = _argnums(argnums)

    def run(args, kwargs):
        _check_enough(argnums, len(args))
        dyn, partial_fun = _differentiated(fun, argnums, args, kwargs)
        restored = None
        if carried.types and (found := carried.differentiated(dyn, partial_fun)) is not None:
            dyn, partial_fun, restored = found
        leaves, in_tree = tree_flatten((dyn, {}))
        for x in leaves:
            # PERF: arrays of float32, by far the most usual, skip the aval and the call.
            if holomorphic or getattr(getattr(x, "dtype", None), "kind", None) != "f":
                _check_input_revderiv("grad", holomorphic, allow_int, x)
        flat = FlatFun(partial_fun, in_tree, has_aux)
        outs, linear, refs = linearized(flat, leaves)
        cts = [None] * len(outs)
        if has_aux:
            outs, aux = flat.split_aux(outs)
        value = flat.out_tree.unflatten(outs)
        aval = _scalar_aval(value)
        if holomorphic or aval.dtype.kind != "f":
            _check_output_revderiv("grad", holomorphic, aval.dtype)
        cts[0] = _core.varying(_core.asarray(unit(aval), weak_type=aval.weak_type), aval.vma) if aval.vma else unit(aval)
        cts = transposed(linear, cts, refs)
        if _core.checks_values():
            try:
                looked_at(name, fun, (*outs, *cts))
            except FloatingPointError:
                jit(lambda: run(args, kwargs))()  # the compiled program knows its operations, and names the one that failed
                raise
        grads = [zeros(_get_aval(x), cotangent=True) if ct is None else ct for ct, x in zip(cts, leaves, strict=True)]
        g = in_tree.unflatten(grads)[0]
        g = g if restored is None else restored(g)
        if not isinstance(argnums, tuple):
            g = g[0]
        return ((value, aux) if has_aux else value), g

    return run


def _differentiated(fun, argnums, args, kwargs):
    """The differentiated arguments as a tuple, and `fun` as a function of them."""
    _check_positions(argnums, len(args))
    if isinstance(argnums, tuple):
        dyn = tuple([args[i] for i in argnums])
    else:
        dyn = (args[argnums],)
        if len(args) == 1 and not kwargs:
            return dyn, fun
    positions = argnums if isinstance(argnums, tuple) else (argnums,)

    def partial_fun(*dyn):
        full = list(args)
        for i, x in zip(positions, dyn, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    return dyn, partial_fun


def _scalar_aval(value):
    try:
        aval = _get_aval(value)
    except TypeError:  # a tuple, None, a string ..
        raise TypeError(f"Gradient only defined for scalar-output functions. Output was {value}.") from None
    if aval.shape != ():
        raise TypeError(f"Gradient only defined for scalar-output functions. Output had shape: {tuple(aval.shape)}.")
    return aval


# ---------------------------------------------------------------- jvp


@overload
def jvp(fun: Callable[..., _R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False) -> tuple[_R, _R]: ...


@overload
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[True]) -> tuple[Any, Any, Any]: ...


@overload
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]: ...


@api_boundary
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function and its directional derivative (Jacobian-vector product), in one
    pass.

    Args:
        fun: a function of arrays, scalars or pytrees of them.
        primals: a tuple or list of its arguments.
        tangents: a tuple or list of the same structure, shapes and dtypes; float0 for integer and
          boolean arguments.
        has_aux: `fun` returns a pair (out, aux).

    Returns:
        (out, out_tangent), both of `fun`'s output structure; with `has_aux`, (out, out_tangent,
        aux).

    Raises:
        TypeError: structure or dtypes of primals and tangents differ.
        ValueError: their shapes differ.

    >>> jvp(jnp.sin, (0.1,), (0.2,))
    (Array(0.09983342, dtype=float32, weak_type=True), Array(0.19900084, dtype=float32, weak_type=True))
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(f"primal and tangent arguments to jax.jvp must be tuples or lists; found {type(primals).__name__} and {type(tangents).__name__}.")
    leaves, in_tree = tree_flatten((tuple(primals), {}))
    t_leaves, t_tree = tree_flatten((tuple(tangents), {}))
    if in_tree != t_tree or isinstance(primals, list) != isinstance(tangents, list):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals have tree structure"
            f" {tree_structure(primals)} whereas tangents have tree structure {tree_structure(tangents)}."
        )
    flat = FlatFun(fun, in_tree, has_aux)
    outs, out_tangents = _core.jvp(flat, leaves, [_checked_tangent(p, t) for p, t in zip(leaves, t_leaves, strict=True)])
    if has_aux:
        outs, aux = flat.split_aux(outs)
        out_tangents = out_tangents[: len(outs)]
    tangents_out = [zeros(_get_aval(o)) if t is None else t for o, t in zip(outs, out_tangents, strict=True)]
    looked_at("jvp", fun, [*outs, *tangents_out])
    pair = flat.out_tree.unflatten(outs), flat.out_tree.unflatten(tangents_out)
    return (*pair, aux) if has_aux else pair


def _checked_tangent(primal, tangent):
    """The tangent, or None where its dtype is float0."""
    p = _get_aval(primal)
    if getattr(tangent, "dtype", None) == float0:
        t_dtype, t_shape = float0, np.shape(tangent)
    else:
        t = _get_aval(tangent)
        t_dtype, t_shape = t.dtype, tuple(t.shape)
    expected = tangent_dtype(p.dtype)
    if t_dtype != expected:
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of int/bool primal dtype the"
            f" tangent dtype must be float0.Got primal dtype {_dtype_name(p.dtype)} and so expected tangent dtype"
            f" {expected}, but got tangent dtype {_dtype_name(t_dtype)} instead."
        )
    if tuple(p.shape) != t_shape:
        raise ValueError(f"jvp called with different primal and tangent shapes;Got primal shape {tuple(p.shape)} and tangent shape as {t_shape}")
    return None if expected == float0 else tangent


@api_boundary
def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Forward and backward passes of a function as two functions.

    Args:
        fun: function.
        argnums: which positional arguments to differentiate with respect to: an int, or a sequence
          of them.
        has_aux: `fun` returns a pair (out, aux).
        jitted: compile both passes.

    Returns:
        (fwd, bwd): `fwd(*args)` returns (out, residuals) (or (out, residuals, aux)),
        `bwd(residuals, cotangent)` the gradients with respect to `argnums`, a tuple if `argnums` is
        one.
    """
    check_callable(fun)
    argnums = _argnums(argnums)

    @api_boundary
    def fwd(*args, **kwargs):
        dyn, partial_fun = _differentiated(fun, argnums, args, kwargs)
        return vjp(partial_fun, *dyn, has_aux=has_aux)

    @api_boundary
    def bwd(f_vjp, out_bar):
        g = f_vjp(out_bar)
        return g if isinstance(argnums, tuple) else g[0]

    if jitted:
        return jit(fwd), jit(bwd)
    return fwd, bwd


# ---------------------------------------------------------------- Jacobians


_JACOBIAN = (
    "Jacobian of {{fun}} with respect to positional argument(s) {argnums}. Takes the same arguments as {{fun}} but returns the jacobian of the"
    " output with respect to the arguments at positions {argnums}."
)


@api_boundary
def jacfwd(fun: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False) -> Callable[_P, Any]:
    """The Jacobian of a function, column by column in forward mode; suits functions with more outputs
    than inputs.

    Args:
        fun: a function of arrays or pytrees of them.
        argnums: which positional arguments to differentiate with respect to: an int, or a sequence
          of them.
        has_aux: `fun` returns a pair (out, aux).
        holomorphic: `fun` is complex-differentiable; inputs must be complex.

    Returns:
        a function of `fun`'s arguments. For each output leaf of shape s and input leaf of shape t
        it returns an array of shape s + t, nested as output structure of input structure; with
        `has_aux`, a pair (jacobian, aux).

    Raises:
        TypeError: an input is not real (complex, with `holomorphic`).

    >>> jax.jacfwd(lambda x: x**2)(jnp.array([1.0, 3.0]))
    Array([[2., 0.],
           [0., 6.]], dtype=float32)
    """
    check_callable(fun)
    argnums = _argnums(argnums)

    @restorable(jacfwd, fun, argnums, has_aux, holomorphic)
    @wraps(fun, "{fun}", _JACOBIAN.format(argnums=argnums))
    def jacfun(*args, **kwargs):
        dyn, partial_fun = _differentiated(fun, argnums, args, kwargs)
        tree_map(lambda x: _check_input_jacfwd(holomorphic, x), dyn)

        returned = []

        def push(tangents):
            y, y_dot, *aux = jvp(partial_fun, dyn, tangents, has_aux=has_aux)
            returned[:] = aux
            return (y, tree_map(_integer_zeros, y_dot, y), *aux)

        y, jac, *aux = vmap(push, out_axes=(None, -1, None) if has_aux else (None, -1))(_std_basis(dyn))
        tree_map(lambda x: _check_output_jacfwd(holomorphic, _get_aval(x).dtype), y)
        result = tree_map(lambda block: _split_axis(dyn if isinstance(argnums, tuple) else dyn[0], -1, block), jac)
        # numbers of Python stay what they are
        return (result, tree_map(lambda x, v: v if isinstance(v, (bool, int, float, complex)) else x, aux[0], returned[0])) if has_aux else result

    return jacfun


@api_boundary
def jacrev(
    fun: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False
) -> Callable[_P, Any]:
    """The Jacobian of a function, row by row in reverse mode; suits functions with more inputs than
    outputs.

    The arguments are those of `jacfwd`; `allow_int` is as in `grad`.

    Args:
        fun, argnums, has_aux, holomorphic: as for `jacfwd`.
        allow_int: as for `grad`.

    Returns:
        a function of `fun`'s arguments. For each output leaf of shape s and input leaf of shape t
        it returns an array of shape s + t, nested as output structure of input structure; with
        `has_aux`, a pair (jacobian, aux).

    Raises:
        TypeError: an input or output has a dtype that `grad` does not accept.

    >>> jax.jacrev(lambda x: x**2)(jnp.array([1.0, 3.0]))
    Array([[2., 0.],
           [0., 6.]], dtype=float32)
    """
    check_callable(fun)
    argnums = _argnums(argnums)

    @restorable(jacrev, fun, argnums, has_aux, holomorphic, allow_int)
    @wraps(fun, "{fun}", _JACOBIAN.format(argnums=argnums))
    def jacfun(*args, **kwargs):
        dyn, partial_fun = _differentiated(fun, argnums, args, kwargs)
        tree_map(lambda x: _check_input_revderiv("jacrev", holomorphic, allow_int, x), dyn)
        y, pullback, *aux = vjp(partial_fun, *dyn, has_aux=has_aux)
        tree_map(lambda x: _check_output_revderiv("jacrev", holomorphic, _get_aval(x).dtype), y)
        jac = vmap(lambda ct: tree_map(_integer_zeros, pullback(ct), dyn))(_std_basis(y))
        jac = jac if isinstance(argnums, tuple) else jac[0]
        example = dyn if isinstance(argnums, tuple) else dyn[0]
        by_input = tree_map(lambda block: _split_axis(y, 0, block), jac)
        result = tree_transpose(tree_structure(example), tree_structure(y), by_input)
        return (result, aux[0]) if has_aux else result

    return jacfun


jacobian = jacrev


@api_boundary
def hessian(fun: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False) -> Callable[_P, Any]:
    """The Hessian of a function, forward over reverse.

    The arguments are those of `jacfwd`.

    Args:
        fun, argnums, has_aux, holomorphic: as for `jacfwd`.

    Returns:
        a function of `fun`'s arguments. For output shape s and input leaves of shapes t and u it
        returns arrays of shape s + t + u, nested as output structure of input structure of input
        structure.

    >>> jax.hessian(lambda x: jnp.sum(x**3))(jnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic), argnums, has_aux=has_aux, holomorphic=holomorphic)


def _integer_zeros(tangent, primal):
    """Zeros of the primal's own dtype in place of float0, as Jacobians have them."""
    if getattr(tangent, "dtype", None) != float0:
        return tangent
    aval = _get_aval(primal)
    return _core.broadcast_to(np.zeros((), aval.dtype), tuple(aval.shape))


def _std_basis(tree):
    """The standard basis of a pytree's space: each leaf with a leading axis over all its
    directions.
    """
    leaves, treedef = tree_flatten(tree)
    avals = [_get_aval(x) for x in leaves]
    total = sum(int(np.prod(a.shape, dtype=int)) for a in avals)
    out, at = [], 0
    for aval in avals:
        n = int(np.prod(aval.shape, dtype=int))
        if not is_inexact(aval.dtype):
            block = np.zeros((total, *aval.shape), float0)
        else:
            block = _core.asarray(_ones_below(total, n, at, aval.dtype).reshape(total, *aval.shape), weak_type=aval.weak_type)
            block = vary_as(block, aval)
        out.append(block)
        at += n
    return treedef.unflatten(out)


def _ones_below(m, n, at, dtype):
    """The matrix of m rows and n columns with ones where the row is the column plus `at`."""
    if exporting_for.value is None:
        return np.eye(m, n, k=-at).astype(dtype)
    # computed in the program: m and n may be symbolic sizes
    rows, columns = (_core.bind("iota", dtype=np.dtype(np.int32), shape=(m, n), dimension=k) for k in (0, 1))
    ones = _core.bind("eq", rows, _core.elementwise("add", columns, np.int32(at)))
    return _core.bind("convert_element_type", ones, new_dtype=dtype, weak_type=False)


def _split_axis(tree, axis, block):
    """Splits an axis of `block`, which runs over all directions of `tree`, into leaves with the shapes
    of those of `tree`.
    """
    leaves, treedef = tree_flatten(tree)
    shapes = [tuple(_get_aval(x).shape) for x in leaves]
    aval = _get_aval(block)
    rest = list(aval.shape)
    axis %= len(rest)
    out, at = [], 0
    for shape in shapes:
        n = int(np.prod(shape, dtype=int))
        piece = block
        if n != rest[axis]:
            start = [0] * len(rest)
            limit = list(rest)
            start[axis], limit[axis] = at, at + n
            piece = _core.bind("slice", piece, start_indices=tuple(start), limit_indices=tuple(limit), strides=None)
        full = (*rest[:axis], *shape, *rest[axis + 1 :])
        if full != tuple(rest[:axis] + [n] + rest[axis + 1 :]):
            piece = _core.bind("reshape", piece, new_sizes=full, dimensions=None, sharding=None)
        out.append(piece)
        at += n
    return treedef.unflatten(out)
