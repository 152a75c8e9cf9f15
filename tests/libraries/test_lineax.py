"""Lineax: every solver with its derivatives, operators, errors."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest
from outcomes import Programs

rng = np.random.RandomState(0)
K = jax.random.key(0)


def programs(t):
    A = jnp.asarray(rng.randn(4, 4), jnp.float32)
    S = A @ A.T + 4 * jnp.eye(4)
    b = jnp.asarray(rng.randn(4), jnp.float32)
    T = jnp.asarray(rng.randn(6, 4), jnp.float32)
    ML = lx.MatrixLinearOperator
    for n, s, M in [
        ("auto", lx.AutoLinearSolver(well_posed=True), ML(A)),
        ("lu", lx.LU(), ML(A)),
        ("qr", lx.QR(), ML(T)),
        ("svd", lx.SVD(), ML(T)),
        ("chol", lx.Cholesky(), ML(S, lx.positive_semidefinite_tag)),
        ("cg", lx.CG(1e-6, 1e-6), ML(S, lx.positive_semidefinite_tag)),
        ("gmres", lx.GMRES(1e-5, 1e-5), ML(A)),
        ("bicg", lx.BiCGStab(1e-5, 1e-5), ML(S)),
        ("ncg", lx.NormalCG(1e-6, 1e-6), ML(A)),
        ("lsmr", lx.LSMR(1e-6, 1e-6), ML(T)),
        ("tri", lx.Triangular(), ML(jnp.tril(A) + 3 * jnp.eye(4), lx.lower_triangular_tag)),
        ("diag", lx.Diagonal(), lx.DiagonalLinearOperator(b + 3)),
        ("tridiag", lx.Tridiagonal(), lx.TridiagonalLinearOperator(b + 5, b[:3], b[1:])),
    ]:
        v = jnp.asarray(rng.randn(M.out_size()), jnp.float32)
        t(n, lambda: lx.linear_solve(M, v, solver=s).value)
        t(n + " jit", lambda: eqx.filter_jit(lambda M, v: lx.linear_solve(M, v, solver=s).value)(M, v))
        t(n + " vmap", lambda: jax.vmap(lambda v: lx.linear_solve(M, v, solver=s).value)(jnp.stack([v, 2 * v])))
        t(n + " grad", lambda: jax.grad(lambda v: lx.linear_solve(M, v, solver=s).value.sum())(v))
        t(n + " mgrad", lambda: jax.tree.leaves(eqx.filter_grad(lambda M: lx.linear_solve(M, v, solver=s).value.sum())(M)))
        t(n + " jvp", lambda: jax.jvp(lambda v: lx.linear_solve(M, v, solver=s).value, (v,), (v,))[1])
    t(
        "fnop",
        lambda: (
            lx.linear_solve(
                lx.FunctionLinearOperator(lambda x: S @ x, jax.ShapeDtypeStruct((4,), jnp.float32), lx.positive_semidefinite_tag), b, lx.CG(1e-6, 1e-6)
            ).value
        ),
    )
    t("jac", lambda: lx.linear_solve(lx.JacobianLinearOperator(lambda x, a: x**3 + x, b), b).value)
    t("mat", lambda: (ML(A) + ML(S)).as_matrix())
    t("compose", lambda: (ML(A) @ ML(S)).mv(b))
    t("T", lambda: ML(A).T.mv(b))
    t("diagp", lambda: lx.diagonal(ML(A)))
    t("pytree", lambda: lx.PyTreeLinearOperator({"a": jnp.eye(2)}, jax.ShapeDtypeStruct((2,), jnp.float32)).mv(jnp.ones(2)))
    t("singular", lambda: lx.linear_solve(ML(jnp.zeros((4, 4))), b), raises="EquinoxRuntimeError", why="the matrix is singular")
    t("maxsteps", lambda: str(lx.linear_solve(ML(S, lx.positive_semidefinite_tag), b, lx.CG(1e-12, 1e-12, max_steps=1), throw=False).result))
    t("notsq", lambda: lx.linear_solve(ML(T), jnp.ones(6), lx.LU()), raises=ValueError, why="LU needs a square matrix")


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_lineax(name):
    PROGRAMS.check(name)
