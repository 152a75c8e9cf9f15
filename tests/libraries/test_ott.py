"""OTT: geometries, costs, Sinkhorn and its derivatives, low rank, Gromov-Wasserstein, barycenters, sorting."""

import jax
import jax.numpy as jnp
import pytest
from ott.geometry import costs, grid, pointcloud, regularizers
from ott.problems.linear import barycenter_problem, linear_problem
from ott.problems.quadratic import quadratic_problem
from ott.solvers import linear
from ott.solvers.linear import acceleration, discrete_barycenter, sinkhorn
from ott.solvers.quadratic import gromov_wasserstein
from ott.tools import sinkhorn_divergence
from outcomes import Programs

K = jax.random.key(0)
X = jax.random.normal(K, (6, 2))
Y = jax.random.normal(jax.random.key(1), (5, 2)) + 0.5


def programs(t):
    geom = pointcloud.PointCloud(X, Y, epsilon=0.5)
    t("cost", lambda: geom.cost_matrix)
    for name, cost in {
        "sq": costs.SqEuclidean(),
        "euclid": costs.Euclidean(),
        "p": costs.PNormP(1.5),
        "cosine": costs.Cosine(),
        "elastic": costs.RegTICost(regularizers.L1(), 0.5),
    }.items():
        t("cost " + name, lambda cost=cost: pointcloud.PointCloud(X, Y, cost_fn=cost).cost_matrix)
    t("kernel", lambda: geom.kernel_matrix)
    t("solve", lambda: (lambda o: (o.reg_ot_cost, o.matrix, o.converged))(linear.solve(geom)))
    t("potentials", lambda: (lambda o: o.f - o.f[0])(linear.solve(geom)))
    t("jit", lambda: jax.jit(lambda x: linear.solve(pointcloud.PointCloud(x, Y, epsilon=0.5)).reg_ot_cost)(X))
    t("grad", lambda: jax.jit(jax.grad(lambda x: linear.solve(pointcloud.PointCloud(x, Y, epsilon=0.5)).reg_ot_cost))(X))
    t(
        "grad unrolled",
        lambda: jax.jit(
            jax.grad(lambda x: linear.solve(pointcloud.PointCloud(x, Y, epsilon=0.5), implicit_diff=None, min_iterations=10, max_iterations=10).reg_ot_cost)
        )(X),
    )
    t("hessian", lambda: jax.jit(jax.hessian(lambda x: linear.solve(pointcloud.PointCloud(x, Y[:2], epsilon=0.5)).reg_ot_cost))(X[:2]))
    t("plan grad", lambda: jax.jit(jax.grad(lambda x: linear.solve(pointcloud.PointCloud(x, Y, epsilon=0.5)).matrix[0, 0]))(X))
    t("weights", lambda: linear.solve(geom, a=jnp.arange(1.0, 7) / 21, b=jnp.ones(5) / 5).matrix.sum(1))
    t("unbalanced", lambda: linear.solve(geom, tau_a=0.9, tau_b=0.8).matrix)
    t("scaling", lambda: linear.solve(geom, lse_mode=False).reg_ot_cost)
    t(
        "momentum",
        lambda: sinkhorn.Sinkhorn(momentum=acceleration.Momentum(start=10))(linear_problem.LinearProblem(geom)).reg_ot_cost,
    )
    t(
        "anderson",
        lambda: sinkhorn.Sinkhorn(anderson=acceleration.AndersonAcceleration(memory=3))(linear_problem.LinearProblem(geom)).reg_ot_cost,
    )
    t("apply", lambda: linear.solve(geom).apply(jnp.ones((2, 5)), axis=1))
    t("vmap", lambda: jax.vmap(lambda e: linear.solve(pointcloud.PointCloud(X, Y, epsilon=e)).reg_ot_cost)(jnp.array([0.3, 0.6])))
    t("divergence", lambda: sinkhorn_divergence.sinkhorn_divergence(pointcloud.PointCloud, X, Y, epsilon=0.5)[0])
    t("divergence grad", lambda: jax.grad(lambda x: sinkhorn_divergence.sinkhorn_divergence(pointcloud.PointCloud, x, Y, epsilon=0.5)[0])(X))
    t("dual", lambda: linear.solve(geom).to_dual_potentials().transport(X))
    t("grid", lambda: linear.solve(grid.Grid(grid_size=(3, 3), epsilon=0.5), a=jnp.ones(9) / 9, b=jnp.arange(1.0, 10) / 45).reg_ot_cost)
    t(
        "gw",
        lambda: (
            gromov_wasserstein.GromovWasserstein(linear_solver=sinkhorn.Sinkhorn(), epsilon=1.0)(
                quadratic_problem.QuadraticProblem(pointcloud.PointCloud(X), pointcloud.PointCloud(Y))
            ).reg_gw_cost
        ),
    )
    t(
        "barycenter",
        lambda: (
            discrete_barycenter.FixedBarycenter()(
                barycenter_problem.FixedBarycenterProblem(grid.Grid(grid_size=(6,), epsilon=0.05), jnp.stack([jnp.arange(1.0, 7) / 21, jnp.ones(6) / 6]))
            ).histogram
        ),
    )


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_ott(name):
    PROGRAMS.check(name)
