"""`odeint` against closed forms, its derivatives against closed forms, finite differences and each other; and `linear_call`, on which they stand."""

import importlib
import math

import numpy as np
import pytest


@pytest.fixture(scope="module")
def ode(jax):
    return importlib.import_module(f"{jax.__name__}.experimental.ode")


TIMES = np.linspace(0.0, 1.0, 5).astype(np.float32)


def test_closed_forms(jax, jnp, ode):
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=3e-5, atol=3e-6)
    close(ode.odeint(lambda y, t: -y, 1.0, TIMES), np.exp(-TIMES))
    close(ode.odeint(lambda y, t: jnp.stack([y[1], -y[0]]), np.float32([0, 1]), TIMES), np.stack([np.sin(TIMES), np.cos(TIMES)], 1))
    close(ode.odeint(lambda y, t: jnp.cos(t), 0.0, TIMES), np.sin(TIMES))
    close(ode.odeint(lambda y, t: y * y, 0.5, TIMES), 1 / (2 - TIMES))
    close(ode.odeint(lambda y, t: 1j * y, np.complex64(1), TIMES), np.exp(1j * TIMES))
    tree = ode.odeint(lambda y, t, k: {"a": -k * y["a"], "b": y["a"][0]}, {"a": np.ones(2, np.float32), "b": np.float32(0)}, TIMES, 2.0)
    close(tree["a"], np.exp(-2 * TIMES)[:, None] * np.ones(2))
    close(tree["b"], (1 - np.exp(-2 * TIMES)) / 2)


@pytest.mark.ours
def test_falling_times_and_few(jax, jnp, ode):
    np.testing.assert_allclose(ode.odeint(lambda y, t: -y, 1.0, TIMES[::-1]), np.exp(1 - TIMES[::-1]), rtol=3e-5)
    back = jax.grad(lambda y: ode.odeint(lambda y, t: -y, y, TIMES[::-1])[-1])
    np.testing.assert_allclose(back(1.0), math.e, rtol=3e-5)
    assert ode.odeint(lambda y, t: -y, jnp.ones(2), TIMES[:1]).tolist() == [[1.0, 1.0]]
    assert ode.odeint(lambda y, t: -y, jnp.ones(2), TIMES[:0]).shape == (0, 2)
    np.testing.assert_allclose(ode.odeint(lambda y, t: -y, np.int32([1, 2]), TIMES)[-1], np.exp(-1) * np.array([1, 2]), rtol=3e-5)


def test_tolerances_bound_the_error(jax, x64, ode):
    def error(tolerance):
        ys = ode.odeint(lambda y, t: -(y**2), np.float64(1.0), TIMES.astype(np.float64), rtol=tolerance, atol=tolerance)
        return float(np.abs(np.asarray(ys) - 1 / (1 + TIMES.astype(np.float64))).max())

    errors = [error(t) for t in (1e-3, 1e-6, 1e-9, 1e-12)]
    assert all(e < 10 * t for e, t in zip(errors, (1e-3, 1e-6, 1e-9, 1e-12), strict=True)) and errors[0] > errors[1] > errors[2]


@pytest.mark.ours
def test_too_few_steps_are_nan(jax, jnp, ode):
    ys = ode.odeint(lambda y, t: -y, 1.0, TIMES, mxstep=2)
    assert float(ys[0]) == 1.0 and np.isnan(ys[1:]).all()
    assert np.isfinite(ode.odeint(lambda y, t: -y, 1.0, TIMES, hmax=0.01)).all()


def test_gradients_have_closed_forms(jax, jnp, ode):
    f = lambda y, t, k: ode.odeint(lambda y, t, k: -k * y, y, t, k)[-1]
    gy, gt, gk = jax.grad(f, (0, 1, 2))(3.0, TIMES, 2.0)
    e = math.exp(-2)
    np.testing.assert_allclose(gy, e, rtol=1e-4)
    np.testing.assert_allclose(gt, [6 * e, 0, 0, 0, -6 * e], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(gk, -3 * e, rtol=1e-4)
    np.testing.assert_allclose(jax.grad(lambda k: ode.odeint(lambda y, t: -k * y, 1.0, TIMES)[-1])(2.0), -e, rtol=1e-4)
    np.testing.assert_allclose(jax.jacrev(jax.jacrev(lambda k: f(1.0, TIMES, k)))(2.0), e, rtol=1e-3)


@pytest.mark.ours
def test_all_modes_agree(jax, x64, jnp, ode):
    def pendulum(y0, t, k):
        rhs = lambda y, t, k: {"a": y["v"], "v": -k["w"] * jnp.sin(y["a"]) - k["d"][0] * y["v"] + jnp.cos(t)}
        ys = ode.odeint(rhs, y0, t, k, rtol=1e-11, atol=1e-11)
        return jnp.concatenate([ys["a"], ys["v"]])

    args = ({"a": np.float64(0.5), "v": np.float64(0.0)}, np.linspace(0, 2, 4), {"w": np.float64(3.0), "d": np.array([0.2])})
    reverse, forward = (j(pendulum, (0, 1, 2))(*args) for j in (jax.jacrev, jax.jacfwd))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8), reverse, forward)
    leaves, tree = jax.tree.flatten(args)
    for i, got in enumerate(jax.tree.leaves(reverse)):
        for j in np.ndindex(np.shape(leaves[i])):
            shifted = []
            for h in (1e-5, -1e-5):
                moved = [np.array(x) for x in leaves]
                moved[i][j] += h
                shifted.append(pendulum(*tree.unflatten(moved)))
            np.testing.assert_allclose(got[(slice(None), *j)], (shifted[0] - shifted[1]) / 2e-5, rtol=1e-4, atol=1e-6)


@pytest.mark.ours
def test_derivatives_of_complex_states(jax, x64, jnp, ode):
    t = np.linspace(0, 1, 3)
    f = lambda y, t, w: ode.odeint(lambda y, t, w: 1j * w * y, y, t, w, rtol=1e-10, atol=1e-10)
    loss = lambda y, t, w: jnp.real(f(y, t, w)[-1] * (0.3 - 0.7j)) + jnp.abs(f(y, t, w)[1] - 1) ** 2
    exact = lambda y, t, w: jnp.real(y * jnp.exp(1j * w * (t[-1] - t[0])) * (0.3 - 0.7j)) + jnp.abs(y * jnp.exp(1j * w * (t[1] - t[0])) - 1) ** 2
    for got, want in zip(jax.grad(loss, (0, 1, 2))(1 + 0.5j, t, 2.0), jax.grad(exact, (0, 1, 2))(1 + 0.5j, t, 2.0), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)


def test_under_transforms(jax, jnp, ode):
    solve = lambda y, k: ode.odeint(lambda y, t, k: -k * y, y, TIMES, k)
    ys, ks = np.linspace(1, 2, 3).astype(np.float32), np.linspace(0.5, 2, 3).astype(np.float32)
    want = ys[:, None] * np.exp(-ks[:, None] * TIMES)
    np.testing.assert_allclose(jax.vmap(solve)(ys, ks), want, rtol=1e-4)
    np.testing.assert_allclose(jax.jit(solve)(ys[0], ks[0]), want[0], rtol=1e-4)
    grads = jax.jit(jax.vmap(jax.grad(lambda y, k: solve(y, k)[-1], (0, 1))))(ys, ks)
    np.testing.assert_allclose(grads[0], np.exp(-ks), rtol=1e-4)
    np.testing.assert_allclose(grads[1], -ys * np.exp(-ks), rtol=1e-4)


def test_refusals(jnp, ode):
    with pytest.raises(TypeError, match="t must be an array of floats, but got"):
        ode.odeint(lambda y, t: -y, jnp.ones(2), jnp.arange(3))
    with pytest.raises(TypeError, match=r"The contents of odeint \*args must be arrays or scalars, but got"):
        ode.odeint(lambda y, t, f: f(y), jnp.ones(2), TIMES, jnp.sin)
    with pytest.raises(TypeError):
        ode.odeint(lambda y, t: jnp.ones(3), jnp.ones(2), TIMES)


def test_the_parts(jnp, ode):
    f = lambda y, t: -y
    y = jnp.ones(2)
    y1, f1, error, k = ode.runge_kutta_step(f, y, -y, jnp.float32(0), jnp.float32(0.1))
    np.testing.assert_allclose(y1, np.exp(-0.1) * np.ones(2), rtol=1e-6)
    assert k.shape == (7, 2) and float(jnp.abs(error).max()) < 1e-6 and np.allclose(f1, -y1)
    polynomial = ode.interp_fit_dopri(y, y1, k, jnp.float32(0.1))
    np.testing.assert_allclose(np.polyval(np.asarray(polynomial)[:, 0], [0, 0.5, 1]), np.exp([0, -0.05, -0.1]), rtol=1e-5)
    np.testing.assert_allclose(ode.initial_step_size(f, 0.0, y, 4, 1e-3, 1e-3, -y), 0.10717735, rtol=1e-5)
    np.testing.assert_allclose(ode.optimal_step_size(0.1, 0.5), 0.10338285, rtol=1e-5)
    np.testing.assert_allclose(ode.optimal_step_size(0.1, 1.5), 0.082989715, rtol=1e-5)
    np.testing.assert_allclose(ode.mean_error_ratio(jnp.array([1e-3, 2e-3]), 1e-3, 1e-3, y, 2 * y), 0.52704626, rtol=1e-5)
    assert float(ode.abs2(3 + 4j)) == 25.0


def test_a_step_s_error_is_that_of_shampine_s_pair(jax, jnp, ode):
    # Steps are as long as JAX's only where the error estimate is the same; numbers of JAX 0.10.2 in double precision.
    f = lambda y, t: jnp.array([y[0] - 0.5 * y[0] * y[1], -y[1] + 0.8 * y[0] * y[1]])
    with jax.enable_x64(True):
        y = jnp.array([1.0, 0.5])
        error = ode.runge_kutta_step(f, y, f(y, 0.0), jnp.array(0.0), jnp.array(0.1))[2]
        np.testing.assert_allclose(error, [-3.08636383e-10, 4.66448226e-10], rtol=1e-4)
        ys = ode.odeint(f, y, jnp.array([0.0, 0.5, 1.0]), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(ys[1:], [[1.45899783, 0.49303466], [2.10384133, 0.60602733]], rtol=1e-8)


# ---------------------------------------------------------------- linear_call


@pytest.fixture(scope="module")
def linear_call(jax):
    return importlib.import_module(f"{jax.__name__}.custom_derivatives").linear_call


@pytest.mark.ours
def test_linear_call_is_transposed_by_its_rule(jax, jnp, linear_call):
    f = lambda k, x: linear_call(lambda k, x: {"y": x * k}, lambda k, ct: ct["y"] * k * 10, k, x)["y"]
    assert float(f(2.0, 3.0)) == 6.0
    assert [float(g) for g in jax.grad(f, (0, 1))(2.0, 3.0)] == [3.0, 20.0]
    assert [float(v) for v in jax.jvp(f, (2.0, 3.0), (1.0, 1.0))] == [6.0, 5.0]
    assert float(jax.linear_transpose(lambda x: f(2.0, x), 3.0)(1.0)[0]) == 20.0
    assert float(jax.jit(jax.grad(f, 1))(2.0, 3.0)) == 20.0
    ks, xs = jnp.arange(1.0, 4.0), jnp.arange(3.0)
    assert jax.vmap(jax.grad(f, 1))(ks, xs).tolist() == [10.0, 20.0, 30.0]
    assert float(jax.grad(lambda x: jax.vmap(f, (0, None))(ks, x).sum())(2.0)) == 60.0
    assert jax.grad(lambda xs: jax.vmap(f, (None, 0))(2.0, xs).sum())(xs).tolist() == [20.0] * 3
    closing = lambda k: jax.grad(lambda x: linear_call(lambda _, x: x * k, lambda _, ct: ct * k * 10, (), x))(3.0)
    assert float(closing(2.0)) == 20.0 and float(jax.grad(closing)(2.0)) == 10.0
    with pytest.raises(TypeError, match="transpose output pytree structure must match that of linear inputs"):
        linear_call(lambda k, x: x, lambda k, ct: (ct, ct), 1.0, 2.0)


@pytest.mark.ours
@pytest.mark.parametrize("times", [[0.0, 0.0, 1.0], [0.0, 0.0], [0.0, 1.0, 1.0]])
def test_times_that_are_given_twice(jax, jnp, ode, times):
    np.testing.assert_allclose(ode.odeint(lambda y, t: -y, jnp.float32(1), jnp.array(times)), np.exp(-np.array(times)), rtol=1e-5)


def test_the_numbers_of_a_slope_count_whatever_holds_them(jax, jnp, ode):
    slopes = lambda y: [-y[0], y[1]]
    want = ode.odeint(lambda y, t: jnp.stack(slopes(y)), np.float32([1, 2]), TIMES)
    got = ode.odeint(lambda y, t: slopes(y), np.float32([1, 2]), TIMES)
    np.testing.assert_array_equal(got, want)
    for y0 in ((1.0, 2.0), [1.0, 2.0], {0: 1.0, 1: 2.0}):
        for kind in (tuple, list, jnp.stack, lambda x: dict(enumerate(x)), lambda x: {"a": {"b": x}}):
            out = ode.odeint(lambda y, t, kind=kind: kind(slopes(y)), y0, TIMES)
            assert type(out) is type(y0)
            for k in (0, 1):
                np.testing.assert_allclose(out[k], want[:, k], rtol=1e-6)
    slope = jax.grad(lambda y: ode.odeint(lambda y, t: slopes(y), y, TIMES)[-1].sum())(jnp.float32([1, 2]))
    np.testing.assert_allclose(slope, [np.exp(-1), np.e], rtol=1e-4)
    with pytest.raises((TypeError, ValueError)):
        ode.odeint(lambda y, t: (y, y), 1.0, TIMES)


@pytest.mark.ours
def test_steps_beyond_where_the_slope_has_values(jax, jnp, x64, ode):
    """A trial step whose error is not a number is followed by a shorter one, at first by one that ends at the requested time."""
    root, odeint = lambda t: jnp.sqrt(t), ode.odeint
    for f, y0, times, want in (
        (lambda y, t: root(t), 1.0, [1.0, 0.0], 1 / 3),
        (lambda y, t: root(1 - t), 0.0, [0.0, 0.5, 1.0], 2 / 3),
        (lambda y, t: jnp.arccos(t), 0.0, [0.0, 1.0], 1.0),
        (lambda y, t: jnp.log(t), 0.0, [1.0, 0.5, 1e-3], 0.99209224472),
        (lambda y, t: -jnp.sqrt(y), 1.0, [0.0, 1.0, 1.9], 0.0025),
        (lambda y, t: jnp.exp(t) * y * (1 - y), 1e-8, [-20.0, 3.2], 0.997788928),
        (lambda y, t: jnp.where(t > 1, jnp.inf, 1.0), 0.0, [0.0, 1.0], 1.0),
        (lambda y, t: jnp.stack([root(1 - t), y[0]]), np.zeros(2), [0.0, 1.0], [2 / 3, 0.4]),
    ):
        for solve in (odeint, jax.jit(odeint, static_argnums=0)):
            np.testing.assert_allclose(solve(f, y0, jnp.array(times))[-1], want, rtol=3e-6)
    many = jax.vmap(lambda q: odeint(lambda y, t, q: q * root(t), 1.0, jnp.array([1.0, 0.0]), q)[-1])(jnp.arange(3.0))
    np.testing.assert_allclose(many, 1 - np.arange(3) * 2 / 3, atol=1e-6)


@pytest.mark.ours
def test_derivatives_where_steps_leave_the_slope(jax, jnp, x64, ode):
    rising = lambda q: ode.odeint(lambda y, t, q: q * jnp.sqrt(t), 1.0, jnp.array([0.0, 1.0]), q)[-1]
    falling = lambda q: ode.odeint(lambda y, t, q: q**2 * jnp.sqrt(1 - t), 1.0, jnp.array([0.0, 1.0]), q)[-1]
    for f, want in ((rising, 2 / 3), (falling, 2 / 3)):
        np.testing.assert_allclose([jax.grad(f)(0.5), jax.jvp(f, (0.5,), (1.0,))[1], jax.jit(jax.grad(f))(0.5)], want, rtol=1e-6)


@pytest.mark.ours
def test_slopes_that_are_never_numbers_end(jax, jnp, x64, ode):
    times = jnp.array([0.0, 0.5, 2.0])
    assert np.isnan(ode.odeint(lambda y, t: y * jnp.nan, 1.0, times)[1:]).all()
    out = np.asarray(ode.odeint(lambda y, t: jnp.where(t > 1, jnp.nan, y), 1.0, times))
    np.testing.assert_allclose(out[:2], np.exp([0, 0.5]), rtol=1e-6)
    assert np.isnan(out[2])
