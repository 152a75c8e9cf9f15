"""jaxopt: solvers of every kind, implicit derivatives, projections, proximal operators, losses."""

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np
import pytest
from jaxopt import loss, objective, projection, prox
from outcomes import Programs

rng = np.random.RandomState(0)
X = jnp.asarray(rng.randn(20, 4), jnp.float32)
W = jnp.asarray([1.0, -2.0, 0.5, 0.0])
Y = X @ W + 0.1 * jnp.asarray(rng.randn(20), jnp.float32)
LABELS = jnp.asarray(rng.randint(0, 3, 20))


def ridge(w, l2, data):
    x, y = data
    return jnp.mean((x @ w - y) ** 2) + 0.5 * l2 * jnp.sum(w**2)


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def programs(t):
    w0, data = jnp.zeros(4), (X, Y)
    solvers = {
        "gd": lambda **k: jaxopt.GradientDescent(ridge, maxiter=300, **k),
        "lbfgs": lambda **k: jaxopt.LBFGS(ridge, maxiter=50, **k),
        "bfgs": lambda **k: jaxopt.BFGS(ridge, maxiter=50, **k),
        "ncg": lambda **k: jaxopt.NonlinearCG(ridge, maxiter=100, **k),
        "polyak": lambda **k: jaxopt.PolyakSGD(ridge, maxiter=200, max_stepsize=0.05, **k),
        "armijo": lambda **k: jaxopt.ArmijoSGD(ridge, maxiter=100, **k),
    }
    for name, make in solvers.items():
        # The steps end before the minimum is exact to single precision, and where they end depends on rounding.
        within = 1e-3 if name in ("gd", "armijo") else None
        t(name, lambda make=make: make().run(w0, l2=0.1, data=data).params, within=within)
        t(name + " implicit", lambda make=make: jax.jacrev(lambda l2: make(implicit_diff=True, tol=1e-6).run(w0, l2=l2, data=data).params)(0.5), within=within)
    t("lbfgs jit", lambda: jax.jit(lambda l2: solvers["lbfgs"]().run(w0, l2=l2, data=data).params)(0.1))
    t(
        "gd forward",
        lambda: jax.jvp(lambda l2: solvers["gd"](implicit_diff=True, tol=1e-6).run(w0, l2, data).params, (0.5,), (1.0,))[1],
        raises=TypeError,
        why="the implicit derivative is a custom_vjp",
    )
    t(
        "gd unrolled",
        lambda: jax.grad(lambda l2: jaxopt.GradientDescent(ridge, maxiter=20, implicit_diff=False, unroll=True, jit=True).run(w0, l2, data).params.sum())(0.5),
    )
    t("vmap", lambda: jax.vmap(lambda l2: jaxopt.LBFGS(ridge, maxiter=30).run(w0, l2=l2, data=data).params)(jnp.array([0.1, 1.0, 10.0])))
    t("rosenbrock", lambda: jaxopt.LBFGS(rosenbrock, maxiter=200, tol=1e-4).run(jnp.zeros(3)).params)
    for line in ("zoom", "backtracking", "hager-zhang"):
        t("linesearch " + line, lambda line=line: jaxopt.LBFGS(rosenbrock, maxiter=100, linesearch=line).run(jnp.array([-1.0, 1.0])).params)
    t("lbfgsb", lambda: jaxopt.LBFGSB(rosenbrock, maxiter=100).run(jnp.array([0.0, 0.5]), bounds=(jnp.array([-1.0, -1.0]), jnp.array([0.5, 2.0]))).params)
    t("scipy", lambda: jaxopt.ScipyMinimize(fun=ridge, method="L-BFGS-B").run(w0, 0.1, data).params)
    t("scipy implicit", lambda: jax.jacrev(lambda l2: jaxopt.ScipyMinimize(fun=ridge, method="BFGS", tol=1e-6).run(w0, l2, data).params)(0.5))
    t(
        "scipy bounded",
        lambda: jaxopt.ScipyBoundedMinimize(fun=rosenbrock, method="l-bfgs-b").run(jnp.zeros(2), bounds=(jnp.zeros(2), 0.5 * jnp.ones(2))).params,
    )
    t("scipy ls", lambda: jaxopt.ScipyLeastSquares(fun=lambda w: X @ w - Y, method="lm").run(w0).params)
    t("scipy root", lambda: jaxopt.ScipyRootFinding(method="hybr", optimality_fun=lambda x: x**3 - jnp.array([1.0, 8.0])).run(jnp.ones(2)).params)

    lasso = lambda w, data: 0.5 * jnp.mean((data[0] @ w - data[1]) ** 2)
    t("proxgrad", lambda: jaxopt.ProximalGradient(lasso, prox.prox_lasso, maxiter=200).run(w0, hyperparams_prox=0.2, data=data).params)
    t(
        "proxgrad diff",
        lambda: jax.jacrev(lambda l: jaxopt.ProximalGradient(lasso, prox.prox_lasso, maxiter=500, tol=1e-6).run(w0, hyperparams_prox=l, data=data).params)(0.2),
    )
    t("bcd", lambda: jaxopt.BlockCoordinateDescent(objective.least_squares, prox.prox_lasso, maxiter=100).run(w0, hyperparams_prox=0.2, data=data).params)
    t("projgrad", lambda: jaxopt.ProjectedGradient(lasso, projection.projection_non_negative, maxiter=200).run(w0, data=data).params)
    t(
        "projgrad simplex",
        lambda: jax.jit(lambda y: jaxopt.ProjectedGradient(lasso, projection.projection_simplex, maxiter=200).run(jnp.ones(4) / 4, data=(X, y)).params)(Y),
    )
    t(
        "svm",
        lambda: jaxopt.ProjectedGradient(lambda b, h, d: jnp.sum(b * b), projection.projection_box, maxiter=5).run(jnp.ones(3), (0.1, 1.0), None, None).params,
    )

    Q = jnp.array([[2.0, 0.5], [0.5, 1.0]])
    c = jnp.array([1.0, 1.0])
    A, b = jnp.array([[1.0, 1.0]]), jnp.array([1.0])
    G, h = -jnp.eye(2), jnp.zeros(2)
    t("eq qp", lambda: jaxopt.EqualityConstrainedQP().run(params_obj=(Q, c), params_eq=(A, b)).params)
    t("eq qp grad", lambda: jax.jacrev(lambda c: jaxopt.EqualityConstrainedQP().run(params_obj=(Q, c), params_eq=(A, b)).params.primal)(c))
    t("osqp", lambda: jaxopt.OSQP(maxiter=2000).run(params_obj=(Q, c), params_eq=(A, b), params_ineq=(G, h)).params.primal)
    t(
        "osqp grad",
        lambda: jax.jacrev(lambda c: jaxopt.OSQP(maxiter=4000, tol=1e-5).run(params_obj=(Q, c), params_eq=(A, b), params_ineq=(G, h)).params.primal)(c),
    )
    t("boxosqp", lambda: jaxopt.BoxOSQP(maxiter=2000).run(params_obj=(Q, c), params_eq=jnp.eye(2), params_ineq=(jnp.zeros(2), jnp.ones(2))).params.primal)
    t("bisection", lambda: jaxopt.Bisection(lambda x, a: x**3 - a, lower=0.0, upper=5.0).run(a=8.0).params)
    t("bisection grad", lambda: jax.grad(lambda a: jaxopt.Bisection(lambda x, a: x**3 - a, lower=0.0, upper=5.0).run(a=a).params)(8.0))
    t(
        "bisection vmap",
        lambda: jax.vmap(lambda a: jaxopt.Bisection(lambda x, a: x**3 - a, lower=0.0, upper=5.0, check_bracket=False).run(a=a).params)(
            jnp.array([1.0, 8.0, 27.0])
        ),
    )
    t("fixed point", lambda: jaxopt.FixedPointIteration(lambda x, a: jnp.cos(a * x), maxiter=100, tol=1e-6).run(jnp.array(0.5), 0.8).params)
    t(
        "fixed point grad",
        lambda: jax.grad(lambda a: jaxopt.FixedPointIteration(lambda x, a: jnp.cos(a * x), maxiter=100, tol=1e-6).run(jnp.array(0.5), a).params)(0.8),
    )
    t("anderson", lambda: jaxopt.AndersonAcceleration(lambda x: jnp.cos(x), maxiter=30, tol=1e-5, history_size=3).run(jnp.ones(3) * 0.4).params)
    t("broyden", lambda: jaxopt.Broyden(lambda x, a: x**2 - a, maxiter=30).run(jnp.ones(2), jnp.array([2.0, 3.0])).params)
    for solver in ("GaussNewton", "LevenbergMarquardt"):
        t(
            solver,
            lambda solver=solver: (
                getattr(jaxopt, solver)(residual_fun=lambda p, x, y: p[0] * jnp.exp(p[1] * x) - y)
                .run(jnp.array([1.0, 0.1]), x=jnp.linspace(0, 1, 10), y=2 * jnp.exp(0.5 * jnp.linspace(0, 1, 10)))
                .params
            ),
        )
    t(
        "lm grad",
        lambda: jax.jacrev(lambda y: jaxopt.LevenbergMarquardt(residual_fun=lambda p, y: p**2 - y, tol=1e-6).run(jnp.ones(2), y).params)(jnp.array([2.0, 3.0])),
    )
    t("optax", lambda: jaxopt.OptaxSolver(ridge, __import__("optax").adam(0.1), maxiter=50).run(w0, l2=0.1, data=data).params)
    t("update", lambda: (lambda s: s.update(w0, s.init_state(w0, 0.1, data), 0.1, data))(jaxopt.LBFGS(ridge)).params)
    t("tree params", lambda: jaxopt.LBFGS(lambda p: (p["a"] - 1) ** 2 + jnp.sum((p["b"] - p["a"]) ** 2)).run({"a": jnp.array(3.0), "b": jnp.zeros(2)}).params)
    for name in "cg bicgstab gmres normal_cg cholesky lu".split():
        f = getattr(jaxopt.linear_solve, "solve_" + name)
        t("solve " + name, lambda f=f: f(lambda x: Q @ x, c))
    t("iterative refinement", lambda: jaxopt.IterativeRefinement().run(jnp.zeros(2), Q, c).params)

    v = jnp.asarray(rng.randn(6), jnp.float32)
    for name, args in [
        ("simplex", ()), ("l1_sphere", ()), ("l1_ball", (1.5,)), ("l2_sphere", ()), ("l2_ball", (0.7,)), ("linf_ball", (0.5,)), ("non_negative", ()),
        ("box", ((-0.5, 0.5),)), ("hyperplane", ((jnp.ones(6), 1.0),)), ("halfspace", ((jnp.ones(6), -1.0),)),
    ]:  # fmt: skip
        f = getattr(projection, "projection_" + name)
        t("projection " + name, lambda f=f, args=args: (f(v, *args), jax.jacrev(lambda v: f(v, *args))(v)))
    M = jnp.asarray(rng.rand(3, 4), jnp.float32)
    t("transport", lambda: projection.projection_transport(M, (jnp.ones(3) / 3, jnp.ones(4) / 4)))
    t("birkhoff", lambda: projection.projection_birkhoff(M[:, :3]))
    for name in "lasso elastic_net group_lasso ridge non_negative_lasso non_negative_ridge".split():
        f = getattr(prox, "prox_" + name)
        hyper = (0.3, 0.5) if name == "elastic_net" else 0.3
        t("prox " + name, lambda f=f, hyper=hyper: (f(v, hyper), jax.jacrev(lambda v: f(v, hyper))(v)))
    logits = jnp.asarray(rng.randn(20, 3), jnp.float32)
    for name in "multiclass_logistic_loss multiclass_perceptron_loss multiclass_hinge_loss multiclass_sparsemax_loss".split():
        f = getattr(loss, name)
        t(name, lambda f=f: (jax.vmap(f)(LABELS, logits), jax.grad(lambda z: jax.vmap(f)(LABELS, z).sum())(logits)))
    for name in "binary_logistic_loss binary_hinge_loss binary_perceptron_loss binary_sparsemax_loss".split():
        f = getattr(loss, name)
        t(name, lambda f=f: jax.vmap(jax.value_and_grad(f, argnums=1))(LABELS % 2, logits[:, 0]))
    t("huber", lambda: jax.vmap(jax.value_and_grad(loss.huber_loss, argnums=1))(Y, X[:, 0]))
    t("unknown keyword", lambda: jaxopt.GradientDescent(ridge, maxiter=3).run(w0, nothing=1), raises=TypeError, why="the objective has no such argument")


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_jaxopt(name):
    PROGRAMS.check(name)
