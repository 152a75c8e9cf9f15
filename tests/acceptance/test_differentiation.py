"""grad and its relatives: arguments, trees, orders, rules written by the user."""

import numpy as np
import pytest


def test_grad_takes_the_first_argument_or_those_named(jax, close):
    f = lambda x, y: 2 * x * x + 3 * y + 3
    close(jax.grad(f)(10.0, 5.0), 40.0)
    gx, gy = jax.grad(f, argnums=(0, 1))(10.0, 5.0)
    close(gx, 40.0)
    close(gy, 3.0)


def test_grad_wants_real_inputs_and_a_scalar_output(jax, jnp):
    with pytest.raises(TypeError, match=r"(?s)real.*int32"):
        jax.grad(lambda x: x * 2.0)(10)
    with pytest.raises(TypeError, match="scalar"):
        jax.grad(lambda x: x * 2)(jnp.ones(3))


def test_auxiliary_output(jax, jnp, close):
    g, aux = jax.grad(lambda x: (jnp.sum(x**2), {"mean": x.mean()}), has_aux=True)(jnp.array([1.0, 2.0, 3.0]))
    close(g, [2, 4, 6])
    close(aux["mean"], 2.0)


def test_gradients_have_the_tree_of_the_parameters(jax, jnp, close):
    p = {"w1": jnp.ones((10, 5)), "b1": jnp.zeros(5), "w2": jnp.ones((5, 1)), "b2": jnp.zeros(1)}
    loss = lambda p, x: jnp.mean((jax.nn.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]) ** 2)
    g = jax.grad(loss)(p, jnp.ones((32, 10)))
    assert {k: v.shape for k, v in g.items()} == {k: v.shape for k, v in p.items()}
    close(g["b2"], [100.0])
    close(g["w1"], np.full((10, 5), 100.0))


def test_hessian_and_jacobians(jax, jnp, close):
    close(jax.hessian(lambda x: jnp.sum(x**3))(jnp.array([1.0, 2.0, 3.0])), np.diag([6.0, 12.0, 18.0]))
    f = lambda x: jnp.array([x[0] ** 2, x[1] ** 3, x[0] * x[1]])
    for jacobian in (jax.jacfwd, jax.jacrev):
        close(jacobian(f)(jnp.array([2.0, 3.0])), [[4.0, 0.0], [0.0, 27.0], [3.0, 2.0]])


def test_grad_of_grad(jax, jnp, close):
    d = jnp.sin
    for want in (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin):
        d = jax.grad(d)
        close(d(0.7), want(0.7))


def test_jvp_vjp_and_linearize_agree(jax, jnp, close):
    _, tangent = jax.jvp(jnp.sin, (0.5,), (2.0,))
    close(tangent, 2 * np.cos(0.5))
    _, pull = jax.vjp(lambda a, b: a * jnp.sin(b), 2.0, 0.5)
    close(pull(1.0), (np.sin(0.5), 2 * np.cos(0.5)))
    _, push = jax.linearize(jnp.sin, 0.5)
    close(push(3.0), 3 * np.cos(0.5))


def test_custom_gradient(jax, jnp, close):
    @jax.custom_gradient
    def f(x):
        r = jnp.exp(x)
        return r, lambda g: g * 2 * r

    close(jax.grad(f)(1.0), 2 * np.e)


def test_custom_vjp_clips_a_gradient(jax, jnp, close):
    @jax.custom_vjp
    def clip(x, lo, hi):
        return x

    clip.defvjp(lambda x, lo, hi: (x, (lo, hi)), lambda r, g: (jnp.clip(g, r[0], r[1]), None, None))
    close(jax.grad(lambda x: 10 * clip(x, -1.0, 1.0))(3.0), 1.0)


def test_custom_jvp_under_every_transform(jax, jnp, close):
    @jax.custom_jvp
    def log1pexp(x):
        return jnp.log(1.0 + jnp.exp(x))

    log1pexp.defjvp(lambda p, t: (log1pexp(p[0]), (1 - 1 / (1 + jnp.exp(p[0]))) * t[0]))
    close(jax.grad(log1pexp)(100.0), 1.0)
    close(jax.vmap(jax.jit(jax.grad(log1pexp)))(jnp.arange(3.0)), [0.5, 0.7310586, 0.880797])


def test_stop_gradient_and_checkpoint(jax, jnp, close):
    close(jax.grad(lambda x: jnp.sum(x * jax.lax.stop_gradient(x)))(jnp.array([3.0])), [3.0])
    close(jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(1.0), np.cos(np.sin(1.0)) * np.cos(1.0))


def test_check_grads_accepts_right_rules_and_refuses_wrong_ones(jax, jnp):
    check = jax.test_util.check_grads
    check(lambda x: jnp.sum(x**3), (jnp.array([1.0, 2.0, 3.0]),), order=2)
    wrong = jax.custom_gradient(lambda x: (x**2, lambda g: g))
    with pytest.raises(AssertionError):
        check(wrong, (jnp.array(3.0),), order=1, modes=["rev"])


def test_transforms_compose_in_any_order(jax, jnp, close):
    jit, grad, vmap = jax.jit, jax.grad, jax.vmap
    loss = lambda x: jnp.sum(jnp.tanh(x) ** 2)
    x = jnp.arange(6.0).reshape(2, 3)
    want = 2 * np.tanh(x) * (1 - np.tanh(x) ** 2)
    for f in (vmap(grad(loss)), jit(vmap(grad(loss))), vmap(jit(grad(loss))), vmap(grad(jit(loss)))):
        close(f(x), want)
    assert jit(vmap(jax.hessian(jit(loss))))(x).shape == (2, 3, 3)


def test_argmax_has_no_slope_and_softmax_has(jax, jnp, close):
    x = jnp.array([1.0, 3.0, 2.0])
    close(jax.grad(lambda x: x[jnp.argmax(x)])(x), [0, 1, 0])
    assert np.abs(np.asarray(jax.grad(lambda x: jnp.sum(x * jax.nn.softmax(x)))(x))).min() > 0
