"""What cg, bicgstab and gmres say of how they ended, and that saying so changes no transform of theirs."""

import ferrax as jax
import ferrax.numpy as jnp
import ferrax.scipy.sparse.linalg as ssl
import numpy as np
import pytest

SOLVERS = {"cg": ssl.cg, "bicgstab": ssl.bicgstab, "gmres": ssl.gmres}


@pytest.fixture(autouse=True)
def wide(x64):
    """Both widths are there."""


def system(n=40, seed=0):
    r = np.random.default_rng(seed)
    q = np.linalg.qr(r.standard_normal((n, n)))[0]
    return (q * np.linspace(1, 300, n)) @ q.T, r.standard_normal(n)


@pytest.mark.parametrize("name", SOLVERS)
def test_info_is_0_after_convergence_and_else_the_number_of_iterations(name):
    solve, (a, b) = SOLVERS[name], system()
    # A round of gmres has some steps of its own.
    short = {"restart": 5} if name == "gmres" else {}
    x, info = solve(a, b, tol=1e-8)
    assert info.dtype == np.int32 and info.shape == () and info == 0
    np.testing.assert_allclose(a @ x, b, atol=1e-5)
    for rounds in (1, 2, 3):
        x, info = solve(a, b, tol=1e-12, maxiter=rounds, **short)
        assert info == rounds
        assert np.linalg.norm(a @ x - b) > 1e-12 * np.linalg.norm(b)
    assert solve(a, b, tol=1e-8, maxiter=0)[1] > 0
    assert solve(a, b, x0=np.linalg.solve(a, b), tol=1e-8, maxiter=0)[1] == 0
    assert solve(a, 0 * b)[1] == 0


@pytest.mark.parametrize("name", SOLVERS)
def test_nan_is_reported(name):
    a, b = system(5)
    assert SOLVERS[name](a * np.nan, b)[1] < 0
    assert SOLVERS[name](a, b * np.nan)[1] < 0


def test_gmres_reports_stagnation():
    n = 8
    shift = np.roll(np.eye(n), 1, axis=0)
    b = np.eye(n)[0]
    # Without all of its steps, gmres of a cyclic shift gains nothing (Saad and Schultz, 1986).
    rounds = []
    x, info = ssl.gmres(lambda v: (jax.debug.callback(lambda: rounds.append(1)), shift @ v)[1], b, restart=n - 1, maxiter=1000)
    jax.effects_barrier()
    assert 0 < info < 5 and len(rounds) < 60
    assert np.linalg.norm(shift @ x - b) > 0.9
    x, info = ssl.gmres(shift, b, restart=n)
    assert info == 0
    np.testing.assert_allclose(shift @ x, b, atol=1e-6)
    # A singular system without a solution.
    assert ssl.gmres(np.diag([1.0, 1.0, 0.0]), np.ones(3))[1] > 0
    assert ssl.gmres(np.zeros((3, 3)), np.ones(3))[1] > 0


@pytest.mark.parametrize("restart", [1, 2, 3])
@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_rounds_by_default_suffice_for_short_restarts(n, restart):
    r = np.random.default_rng(n)
    a = 4 * np.eye(n) + r.standard_normal((n, n)) / n
    b = r.standard_normal(n)
    x, info = ssl.gmres(a, b, restart=restart, tol=1e-4)
    assert info == 0
    assert np.linalg.norm(a @ x - b) <= 1.1e-4 * np.linalg.norm(b)
    x, info = ssl.gmres(np.array([[4.0, 1, 2], [1, 3, 0], [2, 0, 5]]), np.array([3.0, -1, 2]), restart=restart)
    assert info == 0


def test_bicgstab_reports_a_breakdown():
    # The shadow residual is orthogonal to what the matrix makes of the residual.
    a = np.array([[0.0, 1.0], [-1.0, 0.0]])
    x, info = ssl.bicgstab(a, np.array([1.0, 0.0]))
    assert info != 0 or np.allclose(a @ x, [1, 0], atol=1e-5)
    assert ssl.bicgstab(np.zeros((2, 2)), np.ones(2))[1] != 0


@pytest.mark.parametrize("name", SOLVERS)
def test_transforms(name):
    solve, (a, b) = SOLVERS[name], system(12)
    x = np.linalg.solve(a, b)
    f = lambda a, b: solve(a, b, tol=1e-12)
    got, info = jax.jit(f)(a, b)
    np.testing.assert_allclose(got, x, atol=1e-9)
    assert info == 0
    # Under vmap each has its own: one of these begins where it is to end.
    starts = jnp.stack([jnp.zeros(12), jnp.asarray(x)])
    assert (jax.vmap(lambda x0: solve(a, b, x0=x0, tol=1e-9, maxiter=1, **({"restart": 3} if name == "gmres" else {}))[1])(starts) == jnp.array([1, 0])).all()
    (_, info), (dx, dinfo) = jax.jvp(lambda b: f(a, b), (b,), (np.ones(12),))
    np.testing.assert_allclose(dx, np.linalg.solve(a, np.ones(12)), atol=1e-8)
    assert dinfo.dtype == jax.dtypes.float0
    np.testing.assert_allclose(jax.grad(lambda b: f(a, b)[0].sum())(b), np.linalg.solve(a.T, np.ones(12)), atol=1e-8)
    value, slope = jax.value_and_grad(lambda b: (lambda x, info: (x.sum(), info))(*f(a, b)), has_aux=True)(b)
    assert value[1] == 0
    np.testing.assert_allclose(slope, np.linalg.solve(a.T, np.ones(12)), atol=1e-8)
    np.testing.assert_allclose(jax.jacrev(lambda b: f(a, b)[0])(b), np.linalg.inv(a), atol=1e-8)
    np.testing.assert_allclose(jax.jacfwd(lambda b: f(a, b)[0])(b), np.linalg.inv(a), atol=1e-8)
    _, back = jax.vjp(lambda b: f(a, b)[0], b)
    np.testing.assert_allclose(jax.vmap(back)(np.eye(12))[0], np.linalg.inv(a), atol=1e-8)
    assert jax.hessian(lambda b: (f(a, b)[0] ** 2).sum())(b).shape == (12, 12)
    d = np.diag(np.arange(12.0))
    np.testing.assert_allclose(jax.jvp(lambda a: f(a, b)[0], (a,), (d,))[1], -np.linalg.solve(a, d @ x), atol=1e-8)


@pytest.mark.parametrize("name", SOLVERS)
def test_pytrees_and_single_precision(name):
    solve = SOLVERS[name]
    operator = lambda t: {"a": 2 * t["a"], "b": 3 * t["b"] + t["a"].sum()} if name != "cg" else {"a": 2 * t["a"], "b": 3 * t["b"]}
    x, info = solve(operator, {"a": jnp.ones(2, np.float32), "b": jnp.ones((2, 2), np.float32)})
    assert info == 0
    np.testing.assert_allclose(operator(x)["b"], 1, rtol=1e-4)
