"""Optimistix: roots, fixed points, minima, least squares, and their derivatives."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import optax
import optimistix as optx
import pytest
from outcomes import Programs

rng = np.random.RandomState(0)
K = jax.random.key(0)


def programs(t):
    fn = lambda y, a: jnp.array([y[0] ** 2 + y[1] - 3, y[0] - y[1] * a])
    y0 = jnp.array([1.0, 1.0])
    for n, s in [
        ("newton", optx.Newton(1e-6, 1e-6)),
        ("chord", optx.Chord(1e-5, 1e-5)),
        ("dogleg", optx.Dogleg(1e-6, 1e-6)),
        ("lm", optx.LevenbergMarquardt(1e-6, 1e-6)),
        ("gn", optx.GaussNewton(1e-6, 1e-6)),
        ("bfgs", optx.BFGS(1e-6, 1e-6)),
    ]:
        t(n, lambda: optx.root_find(fn, s, y0, 2.0).value)
        wrong = dict(raises="JaxRuntimeError", why="the linear solver of the adjoint meets a singular matrix") if n == "bfgs" else {}
        t(n + " grad", lambda: jax.grad(lambda a: optx.root_find(fn, s, y0, a).value.sum())(2.0), **wrong)
    t("bisect", lambda: optx.root_find(lambda y, a: y**3 - a, optx.Bisection(1e-5, 1e-5), 0.0, 2.0, options=dict(lower=0.0, upper=2.0)).value)
    t("fixed", lambda: optx.fixed_point(lambda y, a: jnp.cos(y * a), optx.FixedPointIteration(1e-6, 1e-6), 0.5, 1.0).value)
    t("fixedg", lambda: jax.grad(lambda a: optx.fixed_point(lambda y, a: jnp.cos(y * a), optx.FixedPointIteration(1e-6, 1e-6), 0.5, a).value)(1.0))
    rosen = lambda y, a: (1 - y[0]) ** 2 + a * (y[1] - y[0] ** 2) ** 2
    for n, s in [
        ("bfgs", optx.BFGS(1e-5, 1e-5)),
        ("lbfgs", optx.LBFGS(1e-5, 1e-5)),
        ("dfp", optx.DFP(1e-5, 1e-5)),
        ("nm", optx.NelderMead(1e-4, 1e-4)),
        ("ncg", optx.NonlinearCG(1e-4, 1e-4)),
        ("gd", optx.GradientDescent(1e-3, 1e-6, 1e-6)),
        ("adam", optx.OptaxMinimiser(optax.adam(1e-1), 1e-5, 1e-5)),
        ("best", optx.BestSoFarMinimiser(optx.BFGS(1e-5, 1e-5))),
    ]:
        t("min " + n, lambda: optx.minimise(rosen, s, jnp.array([-1.0, 1.0]), 5.0, max_steps=3000, throw=False).value)
    res = lambda y, a: jnp.array([10 * (y[1] - y[0] ** 2), 1 - y[0], a * y[0] * 0.1])
    for n, s in [
        ("lm", optx.LevenbergMarquardt(1e-5, 1e-5)),
        ("gn", optx.GaussNewton(1e-5, 1e-5)),
        ("ilm", optx.IndirectLevenbergMarquardt(1e-5, 1e-5)),
        ("dog", optx.Dogleg(1e-5, 1e-5)),
    ]:
        t("ls " + n, lambda: optx.least_squares(res, s, jnp.array([-1.0, 1.0]), 1.0, throw=False).value)
        t("ls g " + n, lambda: jax.grad(lambda a: optx.least_squares(res, s, jnp.array([-1.0, 1.0]), a).value.sum())(1.0))
    t("compat", lambda: optx.compat.minimize(lambda y: rosen(y, 5.0), jnp.array([-1.0, 1.0]), method="BFGS", tol=1e-4).x)
    t(
        "fail",
        lambda: optx.root_find(lambda y, a: y**2 + 1, optx.Newton(1e-6, 1e-6), jnp.array(1.0), max_steps=8),
        raises="EquinoxRuntimeError",
        why="there is no root",
    )
    t("golden", lambda: optx.minimise(lambda y, a: (y - 1) ** 2, optx.GoldenSearch(1e-4, 1e-4), 0.5, options=dict(lower=-1.0, upper=3.0)).value)


class Composed(optx.AbstractGaussNewton):
    """A solver of one's own: damped steps within a classical trust region."""

    rtol: float = 1e-5
    atol: float = 1e-5
    norm: Callable = optx.max_norm
    descent: optx.AbstractDescent = optx.DampedNewtonDescent()
    search: optx.AbstractSearch = optx.ClassicalTrustRegion()
    verbose: Callable = lambda **_: None


class ComposedBFGS(optx.AbstractBFGS):
    """BFGS with a dogleg, within a linear trust region."""

    rtol: float = 1e-5
    atol: float = 1e-5
    norm: Callable = optx.max_norm
    use_inverse: bool = False
    search: optx.AbstractSearch = optx.LinearTrustRegion()
    descent: optx.AbstractDescent = optx.DoglegDescent()
    verbose: Callable = lambda **_: None


def adjoints(t):
    """Both adjoints under each transformation."""
    fn = lambda y, a: jnp.cos(y * a)
    roots = lambda adjoint: lambda a: optx.root_find(lambda y, a: y - fn(y, a), optx.Newton(1e-6, 1e-6), 0.5, a, adjoint=adjoint, max_steps=16).value
    fixed = lambda adjoint: lambda a: optx.fixed_point(fn, optx.FixedPointIteration(1e-6, 1e-6), 0.5, a, adjoint=adjoint, max_steps=64).value
    for n, adjoint in dict(
        implicit=optx.ImplicitAdjoint(lx.AutoLinearSolver(well_posed=None)),
        cg=optx.ImplicitAdjoint(lx.GMRES(1e-6, 1e-6)),
        checkpoint=optx.RecursiveCheckpointAdjoint(),
    ).items():
        t(f"adjoint {n} root", lambda: jax.value_and_grad(roots(adjoint))(1.2))
        t(f"adjoint {n} fixed", lambda: jax.value_and_grad(fixed(adjoint))(0.7))
    t("adjoint jvp", lambda: jax.jvp(roots(optx.ImplicitAdjoint()), (1.2,), (1.0,)))
    t(
        "adjoint jvp of checkpoint",
        lambda: jax.jvp(roots(optx.RecursiveCheckpointAdjoint()), (1.2,), (1.0,)),
        raises=TypeError,
        why="checkpointing has no forward mode",
    )
    t("adjoint second", lambda: jax.grad(jax.grad(roots(optx.ImplicitAdjoint())))(1.2))
    t("adjoint vmap grad", lambda: jax.vmap(jax.grad(roots(optx.ImplicitAdjoint())))(jnp.array([0.5, 1.0, 1.5])))
    t("adjoint jacobians", lambda: (jax.jacfwd(roots(optx.ImplicitAdjoint()))(1.2), jax.jacrev(roots(optx.ImplicitAdjoint()))(1.2)))


def wholes(t):
    """Trees, auxiliary results, bounds, options, parts of solutions, solvers by hand, errors."""
    line = lambda p, xy: xy[1] - p["w"] * jnp.tanh(p["b"] * xy[0])
    xs = jnp.linspace(-2.0, 2.0, 20)
    data = xs, 1.5 * jnp.tanh(0.7 * xs)
    p0 = {"w": jnp.array(0.5), "b": jnp.array(0.3)}
    t("tree fit", lambda: optx.least_squares(line, optx.LevenbergMarquardt(1e-6, 1e-6), p0, data).value)
    t("tree minimise", lambda: optx.minimise(lambda p, d: (line(p, d) ** 2).sum(), optx.BFGS(1e-6, 1e-6), p0, data).value)
    t("tree root", lambda: optx.root_find(lambda p, a: {"w": p["w"] - a, "b": p["b"] ** 2 - p["w"]}, optx.Newton(1e-6, 1e-6), p0, 0.4).value)
    t("fit of composed", lambda: optx.least_squares(line, Composed(), p0, data).value)
    t("minimise composed", lambda: optx.minimise(lambda p, d: (line(p, d) ** 2).sum(), ComposedBFGS(), p0, data).value)
    t("best so far", lambda: optx.least_squares(line, optx.BestSoFarLeastSquares(optx.LevenbergMarquardt(1e-6, 1e-6)), p0, data).value)
    t("best root", lambda: optx.root_find(lambda y, a: y**2 - a, optx.BestSoFarRootFinder(optx.Newton(1e-6, 1e-6)), 1.0, 2.0).value)
    t("best fixed", lambda: optx.fixed_point(lambda y, a: jnp.cos(y), optx.BestSoFarFixedPoint(optx.FixedPointIteration(1e-5, 1e-5)), 1.0).value)
    t("has aux", lambda: optx.root_find(lambda y, a: (y**2 - a, {"y": y}), optx.Newton(1e-6, 1e-6), 1.0, 2.0, has_aux=True).aux)
    t(
        "bounds",
        lambda: (
            optx.root_find(lambda y, a: (y - 2) * (y + 1), optx.Newton(1e-6, 1e-6), 1.0, options=dict(lower=0.5, upper=1.5), throw=False, max_steps=20).value
        ),
    )
    t("root as least squares", lambda: optx.root_find(lambda y, a: y**2 - a, optx.LevenbergMarquardt(1e-4, 1e-4), 1.0, 2.0).value)
    t("root as minimum", lambda: optx.root_find(lambda y, a: y**2 - a, optx.NelderMead(1e-6, 1e-6), 1.0, 2.0).value)
    t("fixed as root", lambda: optx.fixed_point(lambda y, a: jnp.cos(y), optx.Newton(1e-6, 1e-6), 1.0).value)
    t("least squares as minimum", lambda: optx.least_squares(line, optx.BFGS(1e-6, 1e-6), p0, data).value)
    for n, norm in dict(max=optx.max_norm, rms=optx.rms_norm, two=optx.two_norm).items():
        t(
            f"norm {n}",
            lambda: (
                norm({"a": jnp.array([3.0, -4.0]), "b": jnp.array(1.0)}),
                optx.root_find(lambda y, a: y**3 - a, optx.Newton(1e-5, 1e-5, norm=norm), 1.0, 2.0).value,
            ),
        )
    for n, method in dict(pr=optx.polak_ribiere, fr=optx.fletcher_reeves, hs=optx.hestenes_stiefel, dy=optx.dai_yuan).items():
        t(
            f"conjugate {n}",
            lambda: (
                optx.minimise(lambda y, a: ((y - a) ** 2).sum() + (y**4).sum(), optx.NonlinearCG(1e-4, 1e-4, method=method), jnp.ones(3), jnp.arange(3.0)).value
            ),
            within=1e-3,  # the solver stops at 1e-4, so the steps it takes depend on rounding
        )
    t(
        "no inverse",
        lambda: [optx.minimise(lambda p, d: (line(p, d) ** 2).sum(), s(1e-5, 1e-5, use_inverse=False), p0, data).value for s in (optx.BFGS, optx.DFP)],
    )
    t("solver vmap", lambda: jax.vmap(lambda a: optx.root_find(lambda y, a: y**2 - a, optx.Newton(1e-6, 1e-6), 1.0, a).value)(jnp.array([1.0, 2.0, 9.0])))
    t("solver jit", lambda: eqx.filter_jit(lambda a: optx.root_find(lambda y, a: y**2 - a, optx.Newton(1e-6, 1e-6), 1.0, a).value)(2.0))
    t(
        "stats",
        lambda: (lambda s: (s.stats["num_steps"], s.result == optx.RESULTS.successful))(
            optx.root_find(lambda y, a: y**2 - a, optx.Newton(1e-6, 1e-6), 1.0, 2.0)
        ),
    )
    t(
        "result",
        lambda: (lambda s: s.result == optx.RESULTS.nonlinear_max_steps_reached)(
            optx.root_find(lambda y, a: y**2 + 1, optx.Newton(1e-6, 1e-6), 1.0, max_steps=5, throw=False)
        ),
    )

    def by_hand():
        fn, solver, y = (lambda y, a: (y**2 - a, None)), optx.Newton(1e-6, 1e-6), jnp.array(1.0)
        f, aux = jax.eval_shape(lambda: fn(y, 2.0))
        state = solver.init(fn, y, 2.0, {}, f, aux, frozenset())
        step = eqx.filter_jit(lambda y, state: solver.step(fn, y, 2.0, {}, state, frozenset()))
        for _ in range(4):
            y, state, _ = step(y, state)
        return y, solver.terminate(fn, y, 2.0, {}, state, frozenset())[0]

    t("by hand", by_hand)
    t("complex", lambda: optx.root_find(lambda y, a: y**2 + a, optx.Newton(1e-5, 1e-5), jnp.array(1.0 + 1.0j), 1.0).value)
    t(
        "implicit layer",
        lambda: jax.grad(lambda w: optx.fixed_point(lambda y, w: jnp.tanh(w @ y + 1), optx.FixedPointIteration(1e-6, 1e-6), jnp.zeros(3), w).value.sum())(
            0.2 * jnp.eye(3) + 0.05
        ),
    )
    t(
        "of shapes",
        lambda: optx.root_find(lambda y, a: jnp.ones(3) * y, optx.Newton(1e-6, 1e-6), jnp.ones(2)),
        raises=TypeError,
        why="the residual depends on more than the unknown",
    )
    t("of tolerance", lambda: optx.Newton(rtol=1e-3), raises=TypeError, why="atol is missing")
    t(
        "outside of bracket",
        lambda: optx.root_find(lambda y, a: y**2 + 1, optx.Bisection(1e-5, 1e-5), 0.0, options=dict(lower=-1.0, upper=1.0)),
        raises="EquinoxRuntimeError",
        why="the bracket holds no root",
    )
    t("minimise of vector", lambda: optx.minimise(lambda y, a: y, optx.BFGS(1e-5, 1e-5), jnp.ones(2)), raises=ValueError, why="the objective is not a scalar")


def all_of(t):
    programs(t)
    adjoints(t)
    wholes(t)


PROGRAMS = Programs(all_of)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_optimistix(name):
    PROGRAMS.check(name)
