"""Whole programs: regression, graph networks, a tutorial's training loop, layers in the style of stax."""

import dataclasses
import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

# Zachary (1977): who met whom outside of the karate club, and which side each member took when it split.
FRIENDS = {
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31), 1: (2, 3, 7, 13, 17, 19, 21, 30), 2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13), 4: (6, 10), 5: (6, 10, 16), 6: (16,), 8: (30, 32, 33), 9: (33,), 13: (33,), 14: (32, 33), 15: (32, 33), 18: (32, 33),
    19: (33,), 20: (32, 33), 22: (32, 33), 23: (25, 27, 29, 32, 33), 24: (25, 27, 31), 25: (31,), 26: (29, 33), 27: (33,), 28: (31, 33),
    29: (32, 33), 30: (32, 33), 31: (32, 33), 32: (33,),
}  # fmt: skip
FACTION = np.array([0] * 9 + [1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0] + [1] * 12)


def test_linear_regression(jax, jnp, close):
    x = jnp.asarray(np.random.default_rng(0).standard_normal((100, 3)).astype(np.float32))
    y = x @ jnp.array([1.0, -2.0, 0.5])
    grad = jax.jit(jax.grad(lambda p, x, y: jnp.mean((x @ p - y) ** 2)))
    p = jnp.zeros(3)
    for _ in range(300):
        p = p - 0.1 * grad(p, x, y)
    close(p, [1.0, -2.0, 0.5], 1e-3)


def normalised_adjacency():
    a = np.eye(34, dtype=np.float32)
    for i, others in FRIENDS.items():
        for j in others:
            a[i, j] = a[j, i] = 1
    assert (a.sum() - 34) / 2 == 78
    d = a.sum(1) ** -0.5
    return a * d[:, None] * d[None]


def test_a_graph_network_finds_the_factions_from_their_leaders(jax, jnp):
    nn, random, tree = jax.nn, jax.random, jax.tree_util
    adjacency, features = jnp.asarray(normalised_adjacency()), jnp.eye(34)
    target, leaders = nn.one_hot(FACTION, 2), np.array([0, 33])

    def layer(key, m, n):
        return nn.initializers.glorot_uniform()(key, (m, n)), jnp.zeros(n)

    def convolve(p, x):
        return jnp.matmul(adjacency, jnp.dot(x, p[0])) + p[1]

    def predict(params):
        return nn.log_softmax(convolve(params[1], nn.relu(convolve(params[0], features))))

    def loss(params):
        decay = sum(jnp.sum(v**2) for v in tree.tree_leaves(params))
        return -jnp.mean(jnp.sum(predict(params)[leaders] * target[leaders], axis=1)) + 5e-4 * decay

    @jax.jit
    def step(params):
        value, grads = jax.value_and_grad(loss)(params)
        return tree.tree_map(lambda p, g: p - 0.5 * g, params, grads), value

    k1, k2 = random.split(random.PRNGKey(0))
    params, losses = [layer(k1, 34, 16), layer(k2, 16, 2)], []
    for _ in range(200):
        params, value = step(params)
        losses.append(float(value))
    assert losses[-1] < 0.2 * losses[0]
    assert float((predict(params).argmax(1) == FACTION).mean()) > 0.9


def test_a_sparse_product_and_its_gradient(jax, jnp, close):
    rng = np.random.default_rng(0)
    n, e = 50, 200
    rows, cols, vals = rng.integers(0, n, e), rng.integers(0, n, e), rng.standard_normal(e).astype(np.float32)
    dense = np.zeros((n, n), np.float32)
    np.add.at(dense, (rows, cols), vals)
    b = rng.standard_normal((n, 4)).astype(np.float32)

    @jax.jit
    def product(v, b):
        return jax.ops.segment_sum(b.take(cols, 0) * v[:, None], rows, n)

    out = dense @ b
    close(product(jnp.asarray(vals), jnp.asarray(b)), out, 1e-4)
    gv, gb = jax.grad(lambda v, b: (product(v, b) ** 2).sum(), argnums=(0, 1))(jnp.asarray(vals), jnp.asarray(b))
    close(gb, 2 * dense.T @ out, 1e-3)
    close(gv, 2 * (out[rows] * b[cols]).sum(1), 1e-3)


class Xor:
    """A dataset as the tutorial writes it: float64 points round the corners of a square, label 1 where just one coordinate is 1."""

    def __init__(self, size, seed, std=0.1):
        rng = np.random.RandomState(seed)
        corners = rng.randint(0, 2, (size, 2)).astype(np.float32)
        self.label = (corners.sum(1) == 1).astype(np.int32)
        self.data = corners + rng.normal(0, std, corners.shape)

    def batches(self, n, order):
        for start in range(0, len(order), n):
            chosen = list(order[start : start + n])
            yield [np.stack([self.data[i] for i in chosen]), np.array([self.label[i] for i in chosen])]


def test_a_training_loop_with_state_and_loader(jax, jnp):
    @partial(jax.tree_util.register_dataclass, data_fields=["params", "step"], meta_fields=["apply_fn", "lr"])
    @dataclasses.dataclass
    class TrainState:
        params: Any
        step: Any
        apply_fn: Callable
        lr: float

    def apply(p, x):
        h = jnp.tanh(x @ p["linear1"]["kernel"] + p["linear1"]["bias"])
        return h @ p["linear2"]["kernel"] + p["linear2"]["bias"]

    def loss_and_accuracy(state, params, batch):
        x, y = batch
        logits, y = state.apply_fn(params, x).squeeze(axis=-1), y.astype(jnp.float32)
        loss = (jnp.maximum(logits, 0) - logits * y + jnp.log1p(jnp.exp(-jnp.abs(logits)))).mean()
        return loss, ((logits > 0) == y).mean()

    traces = []

    @jax.jit
    def train_step(state, batch):
        traces.append(1)
        (loss, accuracy), grads = jax.value_and_grad(loss_and_accuracy, argnums=1, has_aux=True)(state, state.params, batch)
        params = jax.tree_util.tree_map(lambda p, g: p - state.lr * g, state.params, grads)
        return TrainState(params, state.step + 1, state.apply_fn, state.lr), loss, accuracy

    evaluate = jax.jit(lambda state, batch: loss_and_accuracy(state, state.params, batch)[1])

    k1, k2 = jax.random.split(jax.random.PRNGKey(42))
    params = {
        "linear1": {"kernel": jax.random.normal(k1, (2, 8)), "bias": jnp.zeros(8)},
        "linear2": {"kernel": jax.random.normal(k2, (8, 1)), "bias": jnp.zeros(1)},
    }
    state, data, rng = TrainState(params, jnp.asarray(0), apply, 0.3), Xor(2560, 42), np.random.RandomState(0)
    for _ in range(20):
        for batch in data.batches(128, rng.permutation(2560)):
            state, *_ = train_step(state, batch)
    assert len(traces) == 1 and int(state.step) == 400
    train_step(state, [batch[0].astype(np.float32), batch[1]])
    assert len(traces) == 1, "without x64, float64 and float32 batches are one signature"

    held_out = list(Xor(500, 123).batches(128, range(500)))
    sizes = [len(y) for _, y in held_out]
    assert sizes == [128, 128, 128, 116]
    accuracy = sum(evaluate(state, batch) * n for batch, n in zip(held_out, sizes, strict=True)) / sum(sizes)
    assert f"Accuracy of the model: {100.0 * accuracy:4.2f}%" == "Accuracy of the model: 100.00%"


def test_layers_in_the_style_of_stax(jax, jnp):
    stax = importlib.import_module(jax.__name__ + ".example_libraries.stax")
    optimizers = importlib.import_module(jax.__name__ + ".example_libraries.optimizers")
    init, apply = stax.serial(stax.Dense(32), stax.Relu, stax.Dense(2), stax.LogSoftmax)
    _, params = init(jax.random.PRNGKey(0), (-1, 2))
    x = np.random.default_rng(1).standard_normal((256, 2)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    target = np.eye(2, dtype=np.float32)[y]
    start, update, get = optimizers.adam(1e-2)

    @jax.jit
    def step(i, state):
        grads = jax.grad(lambda p: -jnp.mean(jnp.sum(apply(p, x) * target, 1)))(get(state))
        return update(i, grads, state)

    state = start(params)
    for i in range(200):
        state = step(i, state)
    assert float((apply(get(state), x).argmax(1) == y).mean()) > 0.95
