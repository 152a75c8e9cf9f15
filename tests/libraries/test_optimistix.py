"""Optimistix: roots, fixed points, minima, least squares, and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix as optx
import pytest
from outcomes import assert_agrees, cases, outcomes, stored

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
        t(n + " grad", lambda: jax.grad(lambda a: optx.root_find(fn, s, y0, a).value.sum())(2.0))
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
    t("fail", lambda: optx.root_find(lambda y, a: y**2 + 1, optx.Newton(1e-6, 1e-6), jnp.array(1.0), max_steps=8))
    t("golden", lambda: optx.minimise(lambda y, a: (y - 1) ** 2, optx.GoldenSearch(1e-4, 1e-4), 0.5, options=dict(lower=-1.0, upper=3.0)).value)


OUTCOMES = outcomes(programs)


@pytest.mark.parametrize("name", cases(__file__, OUTCOMES))
def test_optimistix(name):
    assert_agrees(OUTCOMES.get(name), stored(__file__).get(name))
