"""Operations for derivatives, and operations that prevent optimisations of the compiler.

Invariant: `stop_gradient` and `optimization_barrier` are the identity on values.

    >>> jax.grad(lambda x: x * lax.stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from .. import _core
from .._base.config import exporting_for, remove_size_one_mesh_axis_from_type
from .._base.dtypes import is_inexact
from .._base.flags import inert
from .._base.layouts import Format, without_layout
from .._base.tracebacks import api_boundary
from .._core import bind
from .._runtime.devices import check_fit, is_sharding, is_spec
from .._runtime.mesh import get_abstract_mesh
from .._sharding.parts import placed
from .._transforms.grad import jvp
from .._transforms.linear import linear_transpose, linearize
from .._trees.flat import describe, wraps
from .._trees.prefixes import broadcast_prefix
from ..tree_util import tree_map
from ._bodies import Body, as_array, aval_of
from ._creation import full_like

_P = ParamSpec("_P")
_T = TypeVar("_T")

tree_flatten, tree_unflatten = _core.tree_flatten, _core.tree_unflatten


def stop_gradient(x: _T) -> _T:
    """x, as a constant to differentiation.

    Args:
        x: pytree of arrays.

    Returns:
        Pytree like x.

    >>> jax.grad(lambda x: x * lax.stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """

    def stop(v):
        if isinstance(v, _core.Array):
            return bind("stop_gradient", v) if is_inexact(v.dtype) else v
        v = as_array(v)
        return bind("stop_gradient", v) if is_inexact(v.dtype) else v

    return tree_map(stop, x)


def optimization_barrier(operand: _T, /) -> _T:
    """`operand`; the compiler moves no operation across it.

    Args:
        operand: pytree of arrays.

    Returns:
        Pytree like operand.

    >>> lax.optimization_barrier(jnp.array([1.0]))
    Array([1.], dtype=float32)
    """
    leaves, tree = tree_flatten(operand)
    if not leaves:
        return operand
    out = bind("optimization_barrier", *[as_array(x) for x in leaves])
    return tree_unflatten(tree, list(out) if isinstance(out, (tuple, list)) else [out])


@overload
def custom_root(
    f: Callable[..., Any],
    initial_guess: _T,
    solve: Callable[[Callable[..., Any], Any], Any],
    tangent_solve: Callable[[Callable[..., Any], Any], Any],
    has_aux: Literal[False] = False,
) -> _T: ...


@overload
def custom_root(
    f: Callable[..., Any],
    initial_guess: _T,
    solve: Callable[[Callable[..., Any], Any], Any],
    tangent_solve: Callable[[Callable[..., Any], Any], Any],
    has_aux: Literal[True],
) -> tuple[_T, Any]: ...


@api_boundary
def custom_root(
    f: Callable[..., Any],
    initial_guess: _T,
    solve: Callable[[Callable[..., Any], Any], Any],
    tangent_solve: Callable[[Callable[..., Any], Any], Any],
    has_aux: bool = False,
) -> _T | tuple[_T, Any]:
    """A root of f, found by solve(f, initial_guess), differentiated by the implicit function
    theorem.

    Differentiable in the values that f captures.

    Args:
        f: function that takes and returns a pytree like initial_guess.
        initial_guess: pytree of arrays.
        solve: function of f and initial_guess that returns a root.
        tangent_solve: function of g and y that solves g(x) = y for the linearised f.
        has_aux: bool; `solve` returns (root, aux).

    Returns:
        Pytree like initial_guess; (root, aux) with has_aux.

    Raises:
        TypeError: if f or solve changes the structure of the guess.

    >>> lax.custom_root(lambda x: x**2 - 4.0, 1.0, lambda f, x: lax.fori_loop(0, 9, lambda _, x: x - f(x) / (2 * x), x), lambda g, y: y / g(1.0))
    Array(2., dtype=float32, weak_type=True)
    """
    guess, tree = tree_flatten(initial_guess)
    guess = [as_array(x) for x in guess]
    body = Body(lambda x: f(x), tree_flatten((initial_guess,))[1], [aval_of(x) for x in guess])
    if body.out_tree != tree:
        raise TypeError(f"f() output pytree structure must match initial_guess, got {body.out_tree} and {tree}.")
    # Arrays that f, solve and tangent_solve close over become operands: the functions run again after the surrounding transformations have ended.
    solver = Body(lambda x: solve(f, x), tree_flatten((initial_guess,))[1], [aval_of(x) for x in guess])
    out = tree_unflatten(solver.out_tree, list(solver.out_avals))
    root, aux = _with_aux("solve", out) if has_aux else (out, None)
    root_avals, root_tree = tree_flatten(root)
    aux_tree = tree_flatten(aux)[1]
    if root_tree != tree:
        raise TypeError(f"solve() output pytree structure must match initial_guess, got {root_tree} and {tree}.")
    both = tree_flatten((initial_guess, initial_guess))[1]
    slope = Body(lambda x, y: tangent_solve(linearize(f, x)[1], y), both, [*root_avals, *body.out_avals])
    if slope.out_tree != tree:
        raise TypeError(f"tangent_solve() output pytree structure must match x, got {slope.out_tree} and {tree}.")
    captured = [*body.consts, *solver.consts, *slope.consts]
    n, m, n_captured, n_guess = len(body.consts), len(body.consts) + len(solver.consts), len(captured), len(guess)
    # The rules are kept in programs: they refer to programs, and to no captured value.
    residual, solving, sloping = body.program.jaxpr, solver.program.jaxpr, slope.program.jaxpr

    def run(*args):
        return tuple(_core.eval_program(solving, list(args[n:m]), *args[n_captured:]))

    def rule(primals, tangents):
        outs = root_function(*primals)
        outs = list(outs) if isinstance(outs, (tuple, list)) else [outs]
        if n == 0:
            return tuple(outs), tuple(full_like(x, 0) for x in outs)
        # f(root(c), c) = 0, hence droot = -(df/dx)^-1 (df/dc) dc.
        at_root = lambda *c: tuple(_core.eval_program(residual, list(c), *outs[:n_guess]))
        rhs = jvp(at_root, tuple(primals[:n]), tuple(tangents[:n]))[1]
        solution = _core.eval_program(sloping, list(primals[m:n_captured]), *outs[:n_guess], *rhs)
        for t, x in zip(solution, outs, strict=False):
            if np.shape(t) != tuple(x.shape):
                raise TypeError(
                    "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes."
                    f" Expected {x.aval.str_short()} (tangent type of {x.aval.str_short()}) but got {as_array(t).aval.str_short()}."
                )
        return tuple(outs), tuple([bind("neg", as_array(x)) for x in solution] + [full_like(x, 0) for x in outs[n_guess:]])

    def root_function(*args):
        return _core.custom_jvp_call("_custom_root", run, rule, list(args))

    outs = root_function(*captured, *guess)
    outs = list(outs) if isinstance(outs, (tuple, list)) else [outs]
    root = tree_unflatten(tree, outs[: len(guess)])
    return (root, tree_unflatten(aux_tree, outs[len(guess) :])) if has_aux else root


@overload
def custom_linear_solve(
    matvec: Callable[..., Any],
    b: _T,
    solve: Callable[[Callable[..., Any], Any], Any],
    transpose_solve: Callable[[Callable[..., Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: Literal[False] = False,
) -> _T: ...


@overload
def custom_linear_solve(
    matvec: Callable[..., Any],
    b: _T,
    solve: Callable[[Callable[..., Any], Any], Any],
    transpose_solve: Callable[[Callable[..., Any], Any], Any] | None = None,
    symmetric: bool = False,
    *,
    has_aux: Literal[True],
) -> tuple[_T, Any]: ...


@api_boundary
def custom_linear_solve(
    matvec: Callable[..., Any],
    b: _T,
    solve: Callable[[Callable[..., Any], Any], Any],
    transpose_solve: Callable[[Callable[..., Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> _T | tuple[_T, Any]:
    """The solution x of matvec(x) = b by solve(matvec, b), differentiated as a linear solve.

    Args:
        matvec: linear function that takes and returns a pytree like b.
        b: pytree of arrays.
        solve: function of matvec and b.
        transpose_solve: function of vecmat and b that solves the transposed system, needed for
          reverse mode unless `symmetric`; or None.
        symmetric: bool; matvec is its own transpose.
        has_aux: bool; the solvers return (x, aux).

    Returns:
        Pytree like b; (x, aux) with has_aux.

    Raises:
        TypeError: if a function changes the structure or types of b.

    >>> lax.custom_linear_solve(lambda x: 2 * x, jnp.array([4.0]), lambda matvec, b: b / 2)
    Array([2.], dtype=float32)
    """
    flat, tree = tree_flatten(b)
    flat = [as_array(x) for x in flat]
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    avals = [aval_of(x) for x in flat]
    in_tree = tree_flatten((b,))[1]
    mat = Body(matvec, in_tree, avals)
    # the system varies over the manual axes over which the matrix or any part of b varies
    vma = frozenset().union(*[x.vma for x in (*avals, *mat.out_avals)])
    if any(vma - x.vma for x in avals):
        flat = [_core.varying(x, vma) for x in flat]
        avals = [aval_of(x) for x in flat]
        mat = Body(matvec, in_tree, avals)
    _check_solver("matvec", mat, tree, flat)

    def call(body, n_out):
        consts = list(body.consts)
        return lambda x: tree_unflatten(tree, list(_core.eval_program(body.program, consts, *tree_flatten(x)[0]))[:n_out])

    n = len(flat)
    solver = Body(lambda v: solve(call(mat, n), v), in_tree, avals)
    _check_solver("solve", solver, tree, flat, has_aux)
    vec = transposed = None
    if transpose_solve is not None:
        if symmetric:
            vec = mat
        else:
            transpose = linear_transpose(matvec, tree_unflatten(tree, flat))
            vec = Body(lambda v: transpose(v)[0], in_tree, avals)
        transposed = Body(lambda v: transpose_solve(call(vec, n), v), in_tree, avals)
        _check_solver("transpose_solve", transposed, tree, flat, has_aux)
    bodies = [mat, vec, solver, transposed]
    operands = [c for body in bodies if body is not None for c in body.consts]
    outs = bind(
        "custom_linear_solve",
        *operands,
        *flat,
        const_lengths=tuple([0 if body is None else len(body.consts) for body in bodies]),
        jaxprs=tuple([None if body is None else body.program for body in bodies]),
    )
    outs = list(outs) if isinstance(outs, (tuple, list)) else [outs]
    return tree_unflatten(solver.out_tree, outs)


def _with_aux(name, out):
    if not isinstance(out, tuple) or len(out) != 2:
        raise ValueError(
            f"{name}() produced a pytree with structure {tree_flatten(out)[1]}, but a pytree tuple with auxiliary output was expected because"
            " has_aux was set to True."
        )
    return out


def _check_solver(name, body, tree, b, has_aux=False):
    """Raises unless the body's first results, or all of them, are as `b`."""
    found, avals = body.out_tree, body.out_avals
    if has_aux:
        found = tree_flatten(_with_aux(name, tree_unflatten(found, avals))[0])[1]
        avals = avals[: found.num_leaves]
    shapes, wanted = [tuple(a.shape) for a in avals], [tuple(x.shape) for x in b]
    if shapes != wanted:
        raise ValueError(f"{name}() output shapes must match b, got {shapes} and {wanted}")
    if found != tree:
        raise TypeError(f"{name}() output pytree structure must match b, got {found} and {tree}.")


@api_boundary
def platform_dependent(*args: Any, default: Callable[..., _T] | None = None, **per_platform: Callable[..., _T]) -> _T:
    """per_platform[p](*args) for the platform p the program is compiled for, else default(*args).

    Args:
        *args: pytrees.
        default: function of args, or None.
        **per_platform: functions of args by platform ("cpu", "cuda", ..).

    Returns:
        The result of the chosen function.

    Raises:
        TypeError: a branch is not callable.
        NotImplementedError: where there is neither a branch for the platform nor a default.

    >>> lax.platform_dependent(jnp.array([1.0]), default=lambda x: x + 1)
    Array([2.], dtype=float32)
    """
    for name, branch in per_platform.items():
        if not callable(branch):
            raise TypeError(f"lax.platform_dependent: the '{name}' branch must be a callable.")
    if default is not None and not callable(default):
        raise TypeError("lax.platform_dependent: the default branch must be a callable.")
    platform = (exporting_for.value or "").partition("#")[0] or _core.default_backend()
    alias = {"gpu": ("gpu", "cuda", "rocm", "vulkan", "metal"), "cpu": ("cpu",)}
    for name in alias.get(platform, (platform,)):
        if name in per_platform:
            return per_platform[name](*args)
    if default is None:
        platforms = tuple([(name,) for name in per_platform])
        raise NotImplementedError(
            f"translation rule for primitive 'platform_index' not found for platform {platform}: platform_dependent has no function for it, and no default;"
            f" the platforms are {platforms}"
        )
    return default(*args)


def composite(decomposition: Callable[_P, _T], name: str, version: int = 0) -> Callable[_P, _T]:
    """`decomposition`, to be known by `name` to compilers that have their own implementation of it;
    ours inlines it.

    Args:
        decomposition: function.
        name: str, its name, as "library.op".
        version: int.

    Returns:
        Function like `decomposition`.

    >>> lax.composite(lambda x: x * 2, "my.double")(jnp.array([3.0]))
    Array([6.], dtype=float32)
    """
    if version:
        inert("composite", "version", "no compiler here has an implementation of its own")

    @wraps(decomposition, "{fun}")
    @api_boundary
    def call(*args, **attributes):
        leaves, tree = tree_flatten(args)
        out = decomposition(*tree_unflatten(tree, [_core.asarray(x) for x in leaves]), **attributes)
        leaves, tree = tree_flatten(out)
        return tree_unflatten(tree, [_as_result(x, decomposition, name) for x in leaves])

    return call


def _as_result(x, decomposition, name):
    if isinstance(x, (str, bytes)) or callable(x):
        raise TypeError(
            f"function {describe(decomposition)} traced for composite returned a value of type {type(x)}, which is not a valid JAX type\nin the composite {name}"
        )
    return _core.asarray(x)


def _asserted(v, place):
    """If the mesh has explicit axes, the constraint is an assertion: the type must already have the
    sharding.
    """
    typed, wanted = tuple(v.aval.sharding.spec), tuple(place.spec)
    # types may leave out what one device has whole
    ones = [a for a, n in place.mesh.shape.items() if n == 1] if remove_size_one_mesh_axis_from_type.value else []
    kept = [tuple(a for a in place.spec.axes_of(d) if a not in ones) for d in range(v.ndim)]
    if [tuple(v.aval.sharding.spec.axes_of(d)) for d in range(v.ndim)] != kept:
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The array sharding:"
            f" {v.aval.sharding.spec} did not match the sharding provided: {type(place.spec)(*wanted, *[None] * (len(typed) - len(wanted)))}. Please use"
            " `jax.sharding.reshard` to shard your input to the sharding you want."
        )
    return v


def _beside_types(v, place):
    """The sharding of a constraint over a mesh of which some axes are explicit: it says of the
    others how a traced value lies, and its type of those.

    Raises:
        ValueError: it names explicit axes.
    """
    mesh, own = place.mesh, v.aval.sharding
    if not mesh.explicit_axes or mesh.are_all_axes_explicit or own.mesh != mesh.abstract_mesh:
        return place
    given = [list(place.spec.axes_of(d)) if d < len(place.spec) else [] for d in range(v.ndim)]
    if any(a in mesh.explicit_axes for axes in given for a in axes):
        raise ValueError(
            "The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes of the mesh. Got"
            f" spec={place.spec} and mesh={mesh.abstract_mesh}. You probably meant to use `reshard` API?"
        )
    free = [d < len(place.spec) and place.spec.partitions[d] is place.spec.UNCONSTRAINED for d in range(v.ndim)]
    parts = [tuple(own.spec.axes_of(d)) + tuple(axes) for d, axes in enumerate(given)]
    spec = type(place.spec)
    return place.update(spec=spec(*[spec.UNCONSTRAINED if f and not p else p or None for f, p in zip(free, parts, strict=True)]))


def _check_not_manual(place):
    """Raises ValueError, with JAX's message, if a constraint names an axis that a `shard_map`
    around maps over.
    """
    around = get_abstract_mesh()
    manual = set(around.manual_axes) & {a for d in range(len(place.spec)) for a in place.spec.axes_of(d)}
    if manual and place.mesh.shape_tuple == around.shape_tuple:
        raise ValueError(
            f"pspec {place.spec} contains a manual axes {around.manual_axes} of mesh which is not allowed. If you are using a with_sharding_constraint under a"
            " shard_map, only use the mesh axis in PartitionSpec which are not manual."
        )


def _constrained(v, place):
    """The sharding of a constraint on a concrete value: unconstrained dimensions stay cut as they
    are.
    """
    spec, own = place.spec, getattr(v, "sharding", None)
    if not any(p is spec.UNCONSTRAINED for p in spec.partitions):
        return place
    alike = getattr(own, "mesh", None) == place.mesh
    named = {a for d in range(len(spec)) for a in spec.axes_of(d)}
    cut = lambda d: tuple(a for a in own.spec.axes_of(d) if a not in named) if alike and d < len(own.spec) else ()
    parts = [(cut(d) or None) if p is spec.UNCONSTRAINED else p for d, p in enumerate(spec.partitions)]
    while parts and parts[-1] is None:
        parts.pop()
    return place.update(spec=spec.update(partitions=parts))


def _of_devices(v, place):
    """The sharding of a constraint on a concrete value; a mesh without devices is replaced by the
    value's mesh.

    Raises:
        ValueError: the value is not an array, or its mesh has another shape or other devices.
        TypeError: the value's sharding has no mesh.
    """
    own = getattr(v, "sharding", None)
    mesh = getattr(own, "mesh", None)
    if place.mesh.abstract_mesh is not place.mesh:
        if mesh is not None and v.committed and tuple(mesh.devices.flat) != tuple(place.mesh.devices.flat):
            ids = lambda m: [d.id for d in m.devices.flat]
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got argument x of with_sharding_constraint with shape {v.aval.str_short()} and device ids"
                f" {ids(mesh)} and sharding_constraint with device ids {ids(place.mesh)}"
            )
        return place
    if not isinstance(v, _core.Array):
        raise ValueError(f"Target sharding contains a `jax.sharding.AbstractMesh` which requires the input passed should be a `jax.Array`. Got {type(v)}")
    if mesh is None:
        raise TypeError(
            f"The sharding on the input must be a `NamedSharding` since the target sharding has an `AbstractMesh` in it. Got sharding type {type(own)} for shape"
            f" {v.aval.str_short()}"
        )
    if mesh.shape_tuple != place.mesh.shape_tuple:
        raise ValueError(
            f"Mesh shape of the input {mesh.shape_tuple} does not match the mesh shape of the target sharding {place.mesh.shape_tuple} for shape {v.aval.str_short()}"
        )
    return place.update(mesh=mesh)


def with_sharding_constraint(x: _T, shardings: Any) -> _T:
    """`x` laid out by shardings.

    Args:
        x: pytree of arrays.
        shardings: tree prefix of x, of shardings or of `PartitionSpec`s in the mesh in use.

    Returns:
        Pytree like x.

    Raises:
        RuntimeError: for a specification if no mesh is in use.
        TypeError: for a value that is neither a sharding nor a specification.
        ValueError: for a sharding that does not fit its array.

    >>> lax.with_sharding_constraint(jnp.array([1.0]), jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    Array([1.], dtype=float32)
    """
    leaves, tree = tree_flatten(x)
    is_place = lambda s: s is None or is_sharding(s) or is_spec(s) or isinstance(s, Format)
    places = broadcast_prefix(shardings, x, prefix_is_leaf=is_place)
    places = [without_layout(p, np.shape(v), "with_sharding_constraint arguments") for v, p in zip(leaves, places, strict=True)]
    for place in places:
        if place is None:
            raise ValueError(
                "One of with_sharding_constraint arguments got sharding None which is not allowed. Please only pass `jax.sharding.Sharding` instances."
            )
        if not (is_spec(place) or is_sharding(place)):
            raise TypeError(f"shardings leaf specifications are expected to be PartitionSpec instances or None, but got {place}")
    out = []
    for v, place in zip(leaves, places, strict=True):
        if is_spec(place):
            place = place.in_context("with_sharding_constraint", "shardings")
        if hasattr(place, "check_compatible_aval"):
            check_fit(place, np.shape(v), "with_sharding_constraint arguments", uneven=isinstance(v, _core.Tracer))
        over_mesh = hasattr(place, "mesh")
        if over_mesh:
            _check_not_manual(place)
        typed = over_mesh and not place.mesh.empty and place.mesh.are_all_axes_explicit and isinstance(v, _core.Array)
        if typed and v.aval.sharding.mesh == place.mesh.abstract_mesh:
            out.append(_asserted(v, place))
            continue
        if isinstance(v, _core.Tracer):
            out.append(_beside_types(v, place)._constrain(v) if over_mesh else placed(v, place))
            continue
        if over_mesh:
            place = _constrained(v, _of_devices(v, place))
        out.append(_core.device_put(as_array(v), place))
    return tree_unflatten(tree, out)
