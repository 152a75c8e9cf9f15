"""stax, optimizers, test_util, flatten_util, config and debug: the smaller modules, as programs use them."""

import contextlib
import importlib
import io
import threading

import numpy as np
import pytest


@pytest.fixture(scope="module")
def stax(jax):
    return importlib.import_module(jax.__name__ + ".example_libraries.stax")


@pytest.fixture(scope="module")
def optimizers(jax):
    return importlib.import_module(jax.__name__ + ".example_libraries.optimizers")


LAYERS = {
    "dense": (lambda s: s.Dense(3), (4, 5), (4, 3)),
    "conv": (lambda s: s.Conv(3, (3, 3)), (2, 8, 8, 2), (2, 6, 6, 3)),
    "strided": (lambda s: s.Conv(3, (3, 3), (2, 2), "SAME"), (2, 8, 8, 2), (2, 4, 4, 3)),
    "transposed": (lambda s: s.ConvTranspose(3, (3, 3), (2, 2), "SAME"), (2, 4, 4, 2), (2, 8, 8, 3)),
    "batch norm": (lambda s: s.BatchNorm(), (4, 6, 6, 2), (4, 6, 6, 2)),
    "max pool": (lambda s: s.MaxPool((2, 2), (2, 2)), (2, 8, 8, 2), (2, 4, 4, 2)),
    "average pool": (lambda s: s.AvgPool((3, 3), (2, 2), "SAME"), (2, 8, 8, 2), (2, 4, 4, 2)),
    "flatten": (lambda s: s.Flatten, (4, 8, 3), (4, 24)),
    "residual": (lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(5), s.Identity), s.FanInSum), (4, 5), (4, 5)),
    "concatenated": (lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(3), s.Identity), s.FanInConcat()), (4, 5), (4, 8)),
    "network": (lambda s: s.serial(s.Dense(8), s.Relu, s.BatchNorm(0), s.Dropout(0.5), s.Dense(2), s.LogSoftmax), (6, 3), (6, 2)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer_shapes(jax, stax, name):
    make, shape, want = LAYERS[name]
    init, apply = make(stax)
    out_shape, params = init(jax.random.PRNGKey(0), shape)
    out = apply(params, np.random.default_rng(0).standard_normal(shape).astype(np.float32), rng=jax.random.PRNGKey(1))
    assert tuple(out_shape) == out.shape == want and np.isfinite(np.asarray(out)).all()


def test_pooling_values(jax, stax):
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    for layer, want in (
        (stax.MaxPool((2, 2), (2, 2)), [[5, 7], [13, 15]]),
        (stax.AvgPool((2, 2), (2, 2)), [[2.5, 4.5], [10.5, 12.5]]),
        (stax.SumPool((2, 2), (2, 2)), [[10, 18], [42, 50]]),
    ):
        assert np.asarray(layer[1]((), x))[0, ..., 0].tolist() == want


def test_dropout(jax, stax):
    _, apply = stax.Dropout(0.8)
    out = np.asarray(apply((), np.ones((100, 100), np.float32), rng=jax.random.PRNGKey(0)))
    assert set(np.unique(out)) == {0.0, np.float32(1.25)} and abs((out > 0).mean() - 0.8) < 0.02
    with pytest.raises(ValueError, match="Dropout layer requires apply_fun to be called with a PRNG key argument"):
        apply((), np.ones(3, np.float32))


@pytest.mark.parametrize(
    "name, args, steps",
    [
        ("sgd", (0.1,), 100),
        ("momentum", (0.05, 0.9), 200),
        ("nesterov", (0.05, 0.9), 200),
        ("adagrad", (1.0,), 300),
        ("rmsprop", (0.02,), 300),
        ("rmsprop_momentum", (0.005,), 400),
        ("adam", (0.1,), 300),
        ("adamax", (0.1,), 300),
        ("sm3", (1.0,), 400),
    ],
)
def test_optimizers_find_the_minimum(jax, jnp, optimizers, name, args, steps):
    if name == "sm3" and jax.__name__ == "jax":
        pytest.skip("JAX's does not trace")
    target = {"a": np.array([1.0, -2.0], np.float32), "b": np.array([0.5], np.float32)}
    init, update, params_of = getattr(optimizers, name)(*args)
    loss = lambda p: sum(jnp.sum((p[k] - target[k]) ** 2) for k in target)
    step = jax.jit(lambda i, s: update(i, jax.grad(loss)(params_of(s)), s))
    state = init({k: jnp.zeros(v.shape) for k, v in target.items()})
    for i in range(steps):
        state = step(i, state)
    for k in target:
        np.testing.assert_allclose(params_of(state)[k], target[k], atol=0.05)
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    np.testing.assert_array_equal(params_of(again)["a"], params_of(state)["a"])


def test_schedules_and_norms(jax, jnp, optimizers):
    at = lambda schedule, *steps: [round(float(schedule(i)), 5) for i in steps]
    assert at(optimizers.exponential_decay(0.1, 10, 0.5), 0, 10, 20) == [0.1, 0.05, 0.025]
    assert at(optimizers.inverse_time_decay(0.1, 10, 1.0, True), 9, 10) == [0.1, 0.05]
    assert at(optimizers.polynomial_decay(1.0, 10, 0.0, 2.0), 0, 5, 20) == [1, 0.25, 0]
    assert at(optimizers.piecewise_constant([3, 6], [1.0, 0.5, 0.1]), 3, 4, 7) == [1, 0.5, 0.1]
    tree = [jnp.ones(3), {"a": jnp.ones(6)}]
    assert float(optimizers.l2_norm(tree)) == 3 and float(optimizers.l2_norm(optimizers.clip_grads(tree, 1.5))) == pytest.approx(1.5)
    with pytest.raises(ValueError, match="boundaries length must be one shorter than values length"):
        optimizers.piecewise_constant([3], [1.0])


def test_check_grads_tells_right_from_wrong(jax, jnp):
    jax.test_util.check_grads(lambda d: jnp.sum(d["a"] ** 3) * d["b"], ({"a": jnp.arange(3.0), "b": jnp.array(2.0)},), order=2)
    wrong = jax.custom_jvp(lambda x: x**2)
    wrong.defjvp(lambda p, t: (p[0] ** 2, t[0]))
    for modes in (["fwd"], ["rev"]):
        with pytest.raises(AssertionError):
            jax.test_util.check_grads(wrong, (jnp.array(3.0),), order=1, modes=modes)


def test_ravel_pytree(jax, jnp):
    ravel_pytree = importlib.import_module(jax.__name__ + ".flatten_util").ravel_pytree
    tree = {"a": jnp.arange(3), "b": (1.5, jnp.ones((2, 2), jnp.float16))}
    flat, unravel = ravel_pytree(tree)
    back = unravel(flat)
    assert flat.shape == (8,) and back["a"].dtype == np.int32 and back["b"][1].dtype == np.float16 and back["b"][1].shape == (2, 2)
    with pytest.raises(ValueError):
        unravel(flat[:3])


def test_config(jax, jnp):
    assert jax.config.jax_enable_x64 is False and jax.config.jax_numpy_rank_promotion == "allow"
    with jax.enable_x64(True):
        assert jnp.ones(1).dtype == np.float64
        seen = []
        thread = threading.Thread(target=lambda: seen.append(jnp.ones(1).dtype))
        thread.start()
        thread.join()
        assert seen == [np.float32]  # the context is this thread's alone
        with jax.enable_x64(False):
            assert jnp.ones(1).dtype == np.float32
        assert jnp.ones(1).dtype == np.float64
    assert jnp.ones(1).dtype == np.float32
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError):
        jnp.ones((2, 3)) + jnp.ones(3)
    with (
        jax.numpy_dtype_promotion("strict"),
        pytest.raises(importlib.import_module(jax.__name__ + ".dtypes").TypePromotionError, match="no available implicit dtype promotion path"),
    ):
        jnp.ones(3) + jnp.ones(3, int)


def test_disable_jit(jax, jnp):
    seen = []

    @jax.jit
    def f(x):
        seen.append(bool(x > 0))
        return x * 2

    with jax.disable_jit():
        assert float(f(1.0)) == 2 and float(f(-1.0)) == -2
    assert seen == [True, False]


def test_debug_print(jax, jnp):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        jax.jit(lambda x: jax.debug.print("x={x} y={}", 3, x=x))(2)
        jax.vmap(lambda x: jax.debug.print("lane {}", x))(jnp.arange(2))
        jax.effects_barrier()
    text = out.getvalue()
    assert "x=2 y=3\n" in text and "lane 0" in text and "lane 1" in text
    with pytest.raises(ValueError, match="Unused positional arguments"):
        jax.debug.print("nothing", 3)
    seen = []
    jax.jit(lambda x: jax.debug.callback(lambda v: seen.append(np.asarray(v).tolist()), x))(jnp.arange(3))
    jax.effects_barrier()
    assert seen == [[0, 1, 2]]


def test_named_scope_and_call(jax):
    with jax.named_scope("outer"):
        assert float(jax.named_call(lambda x: x + 1, name="inner")(1.0)) == 2
    with pytest.raises(TypeError):
        jax.named_scope(3)


def test_default_device(child):
    out = child(
        """
        first, second = jax.devices()
        with jax.default_device(second):
            print(jnp.ones(1).devices() == {second}, end=" ")
            with jax.default_device(first):
                print(jnp.ones(1).devices() == {first}, end=" ")
            print(jnp.ones(1).devices() == {second}, end=" ")
        jax.config.update("jax_default_device", second)
        print(jnp.ones(1).devices() == {second}, end=" ")
        jax.config.update("jax_default_device", None)
        print(jnp.ones(1).devices() == {first})
        """,
        NUM_CPU_DEVICES="2",
    )
    assert out.split() == ["True"] * 5
