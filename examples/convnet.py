"""A convolutional network in Flax, with Optax, resumed from an Orbax checkpoint.

The libraries are unmodified: the program contains `import jax`, and Ferrax serves it. The network is trained twice, once without a break and once in two halves, the second of which
starts from the checkpoint. Both runs end with the same parameters, bit for bit.

    python -m ferrax examples/convnet.py --png convnet.png
"""

import pathlib
import sys
import tempfile

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax.training import train_state
from gallery import bar, options, plot, save
from sklearn.datasets import load_digits

BATCH = 64


class Net(nn.Module):
    """Two convolutions with batch norms, then dense layers with dropout: scores f32[n, 10] of images f32[n, 8, 8, 1]."""

    @nn.compact
    def __call__(self, x, train):
        for width in (16, 32):
            x = nn.Conv(width, (3, 3))(x)
            x = nn.BatchNorm(use_running_average=not train)(x)
            x = nn.max_pool(nn.relu(x), (2, 2), strides=(2, 2))
        x = nn.relu(nn.Dense(64)(x.reshape(len(x), -1)))
        x = nn.Dropout(0.25, deterministic=not train)(x)
        return nn.Dense(10)(x)


class State(train_state.TrainState):
    batch_stats: dict
    key: jax.Array


def fresh(seed, steps):
    net = Net()
    k_init, k_dropout = jax.random.split(jax.random.key(seed))
    variables = net.init(k_init, jnp.zeros((1, 8, 8, 1)), train=False)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(3e-3, steps)))
    key = jax.random.key_data(k_dropout)
    return State.create(apply_fn=net.apply, params=variables["params"], tx=tx, batch_stats=variables["batch_stats"], key=key)


@jax.jit
def step(state, x, y):
    def loss(params):
        scores, updates = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats},
            x,
            train=True,
            mutable=["batch_stats"],
            rngs={"dropout": jax.random.fold_in(jax.random.wrap_key_data(state.key), state.step)},
        )
        return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean(), updates

    (value, updates), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, batch_stats=updates["batch_stats"]), value


def train(state, x, y, upto, show):
    """Steps until `upto`; which batch a step takes depends on its number alone."""
    history, per_epoch = [], len(y) // BATCH
    while (n := int(state.step)) < upto:
        order = np.random.default_rng(n // per_epoch).permutation(len(y))
        chosen = order[n % per_epoch * BATCH :][:BATCH]
        state, value = step(state, x[chosen], y[chosen])
        history.append(float(value))
        show(n + 1, f"loss {history[-1]:.4f}")
    return state, history


def arrays(state):
    """What a checkpoint holds of a state: the rest is code."""
    return {"step": state.step, "params": state.params, "opt_state": state.opt_state, "batch_stats": state.batch_stats, "key": state.key}


def draw(path, first, second, straight, x, y, read, filters):
    plt = plot()
    if plt is None:
        return
    figure = plt.figure(figsize=(13, 5), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=(1.2, 0.8, 1))
    axes = left.subplots()
    axes.plot(straight, color="0.75", linewidth=3, label="straight through")
    axes.plot(first, linewidth=0.9, label="first half")
    axes.plot(np.arange(len(second)) + len(first), second, linewidth=0.9, label="second half, from the checkpoint")
    axes.set(yscale="log", xlabel="step", ylabel="cross entropy")
    axes.legend()
    for axis, f in zip(middle.subplots(4, 4).flat, np.moveaxis(filters[:, :, 0], -1, 0), strict=True):
        axis.imshow(f, cmap="gray")
        axis.axis("off")
    middle.suptitle("the first layer")
    shown = np.argsort(read == y, kind="stable")[:20]
    for axis, n in zip(right.subplots(4, 5).flat, shown, strict=True):
        axis.imshow(x[n, :, :, 0], cmap="gray_r")
        axis.set_title(str(read[n]) if read[n] == y[n] else f"{read[n]} (is {y[n]})", color="black" if read[n] == y[n] else "tab:red", fontsize=9)
        axis.axis("off")
    right.suptitle(f"{(read == y).mean():.1%} of {len(y)} test images; mistakes first")
    save(figure, path)


def main():
    args = options(__doc__, "convnet.png")
    steps = 60 if args.short else 440
    digits = load_digits()
    order = np.random.default_rng(args.seed).permutation(len(digits.target))
    x, y = (digits.images[order, :, :, None] / 16).astype(np.float32), digits.target[order].astype(np.int32)
    x, x_test, y, y_test = x[360:], x[:360], y[360:], y[:360]

    straight, losses = train(fresh(args.seed, steps), x, y, steps, bar(steps, "straight"))
    show = bar(steps, "in halves")
    half, first = train(fresh(args.seed, steps), x, y, steps // 2, show)
    with tempfile.TemporaryDirectory() as folder, ocp.CheckpointManager(pathlib.Path(folder) / "run") as manager:
        manager.save(int(half.step), args=ocp.args.StandardSave(arrays(half)))
        manager.wait_until_finished()
        state = fresh(args.seed + 1, steps)  # another start: all that counts comes from the disk
        state = state.replace(**manager.restore(manager.latest_step(), args=ocp.args.StandardRestore(arrays(state))))
    resumed, second = train(state, x, y, steps, show)
    for a, b in zip(jax.tree.leaves(arrays(straight)), jax.tree.leaves(arrays(resumed)), strict=True):
        np.testing.assert_array_equal(a, b)
    print("straight through and resumed: the same parameters, bit for bit")

    scores = jax.jit(lambda s, x: s.apply_fn({"params": s.params, "batch_stats": s.batch_stats}, x, train=False))(resumed, x_test)
    read = np.asarray(scores).argmax(1)
    print(f"{(read == y_test).mean():.2%} of {len(y_test)} test images")
    draw(args.png, first, second, losses, x_test, y_test, read, np.asarray(resumed.params["Conv_0"]["kernel"]))
    if (read == y_test).mean() < (0.8 if args.short else 0.97):
        sys.exit("the network should read more of the images")


if __name__ == "__main__":
    main()
