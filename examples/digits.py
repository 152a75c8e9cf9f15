"""Handwritten digits: a network with dropout, trained by Adam.

Two hidden layers learn to classify the 1,797 images of 8 x 8 pixels that scikit-learn contains. The gradient is `jit(value_and_grad(...))`, Adam is written with
`tree_map`. NumPy alone computes the test accuracy from the exported parameters, and the program compares the time of a step with that of the same step in NumPy.

    cargo xtask demo
    python examples/digits.py --epochs 40 --png digits.png
"""

import statistics
import sys
import time

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
from ferrax import nn, random
from ferrax.tree_util import tree_map
from gallery import bar, options, plot, save
from sklearn.datasets import load_digits

SIZES = (64, 128, 64, 10)
KEEP, BATCH, RATE, B1, B2, EPS = 0.8, 64, 2e-3, 0.9, 0.999, 1e-8


def load(seed=0, n_test=360):
    """Pixels scaled to [0, 1] and labels, split once and for all: ((x, y) to learn from, (x, y) to be tested on)."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    x, y = (digits.data / 16).astype(np.float32)[order], digits.target.astype(np.int32)[order]
    return (x[n_test:], y[n_test:]), (x[:n_test], y[:n_test])


# ---------------------------------------------------------------- the network


def init(key):
    keys = random.split(key, len(SIZES) - 1)
    he = nn.initializers.he_normal()
    return [{"w": he(k, (m, n)), "b": jnp.zeros(n)} for k, m, n in zip(keys, SIZES[:-1], SIZES[1:], strict=True)]


def logits(params, x, key):
    """Scores f32[n, 10] of images f32[n, 64], with a fresh dropout mask for every hidden layer."""
    *hidden, last = params
    for layer, k in zip(hidden, random.split(key, len(hidden)), strict=True):
        x = nn.relu(x @ layer["w"] + layer["b"])
        x = jnp.where(random.bernoulli(k, KEEP, x.shape), x / KEEP, 0.0)
    return x @ last["w"] + last["b"]


def loss(params, x, y, key):
    """Mean cross entropy over a batch."""
    log_p = nn.log_softmax(logits(params, x, key))
    return -jnp.mean(jnp.sum(nn.one_hot(y, SIZES[-1]) * log_p, axis=1))


def adam(params, grads, state):
    """One step of Adam (Kingma and Ba, 2015, algorithm 1)."""
    t = state["t"] + 1
    m = tree_map(lambda m, g: B1 * m + (1 - B1) * g, state["m"], grads)
    v = tree_map(lambda v, g: B2 * v + (1 - B2) * g * g, state["v"], grads)
    scale = RATE * jnp.sqrt(1 - B2**t) / (1 - B1**t)
    params = tree_map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + EPS), params, m, v)
    return params, {"m": m, "v": v, "t": t}


@jax.jit
def step(params, state, x, y, key):
    value, grads = jax.value_and_grad(loss)(params, x, y, key)
    params, state = adam(params, grads, state)
    return params, state, value


# ---------------------------------------------------------------- the same in NumPy


def predict_numpy(params, x):
    """Scores without dropout, by NumPy alone."""
    *hidden, last = params
    for layer in hidden:
        x = np.maximum(x @ layer["w"] + layer["b"], 0)
    return x @ last["w"] + last["b"]


def step_numpy(params, state, x, y, rng):
    """The training step with its gradient by hand."""
    *hidden, last = params
    inputs, masks = [x], []
    for layer in hidden:
        z = inputs[-1] @ layer["w"] + layer["b"]
        mask = ((z > 0) & (rng.random(z.shape, dtype=np.float32) < KEEP)) / np.float32(KEEP)
        masks.append(mask)
        inputs.append(z * mask)
    z = inputs[-1] @ last["w"] + last["b"]
    z = z - z.max(1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
    rows = np.arange(len(y))
    value = -log_p[rows, y].mean()
    ct = np.exp(log_p)
    ct[rows, y] -= 1
    ct /= len(y)
    grads = []
    for layer, x_in, mask in zip(reversed(params), reversed(inputs), [*reversed(masks), None], strict=True):
        grads.append({"w": x_in.T @ ct, "b": ct.sum(0)})
        if mask is not None:
            ct = (ct @ layer["w"].T) * mask
    t = state["t"] + 1
    scale = np.float32(RATE * np.sqrt(1 - B2**t) / (1 - B1**t))
    new, m_new, v_new = [], [], []
    for p, g, m, v in zip(params, reversed(grads), state["m"], state["v"], strict=True):
        m = {k: np.float32(B1) * m[k] + np.float32(1 - B1) * g[k] for k in g}
        v = {k: np.float32(B2) * v[k] + np.float32(1 - B2) * g[k] * g[k] for k in g}
        new.append({k: p[k] - scale * m[k] / (np.sqrt(v[k]) + np.float32(EPS)) for k in g})
        m_new.append(m)
        v_new.append(v)
    return new, {"m": m_new, "v": v_new, "t": t}, value


# ---------------------------------------------------------------- the run


def batches(x, y, epochs, rng):
    for _ in range(epochs):
        order = rng.permutation(len(y))
        for start in range(0, len(y) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            yield x[chosen], y[chosen]


def train(x, y, epochs, seed):
    key, k = random.split(random.key(seed))
    params = init(k)
    zeros = tree_map(jnp.zeros_like, params)
    state = {"m": zeros, "v": zeros, "t": jnp.asarray(0.0)}
    losses, show = [], bar(epochs * (len(y) // BATCH))
    for n, (xb, yb) in enumerate(batches(x, y, epochs, np.random.default_rng(seed)), 1):
        params, state, value = step(params, state, xb, yb, random.fold_in(key, n))
        losses.append(float(value))
        show(n, f"loss {losses[-1]:.4f}")
    return params, state, losses


def seconds_per_step(f, rounds=200):
    times = []
    for n in range(rounds):
        start = time.perf_counter()
        f(n)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def draw(path, losses, x, y, scores):
    """Left the loss; right 40 test images with what was read: the mistakes first, in red."""
    plt = plot()
    if plt is None:
        return
    read = scores.argmax(1)
    shown = np.argsort(read == y, kind="stable")[:40]
    figure = plt.figure(figsize=(13, 5.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.2))
    axes = left.subplots()
    axes.plot(losses, color="0.8", linewidth=0.8, label="each step")
    smooth = np.convolve(losses, np.ones(20) / 20, "valid")
    axes.plot(np.arange(len(smooth)) + 19, smooth, color="tab:blue", label="mean of 20")
    axes.set(yscale="log", xlabel="step", ylabel="cross entropy", title="loss")
    axes.legend()
    for axes, n in zip(right.subplots(5, 8).flat, shown, strict=True):
        axes.imshow(x[n].reshape(8, 8), cmap="gray_r")
        right_read = read[n] == y[n]
        axes.set_title(str(read[n]) if right_read else f"{read[n]} (is {y[n]})", color="black" if right_read else "tab:red", fontsize=9)
        axes.axis("off")
    right.suptitle(f"{(read == y).mean():.1%} of {len(y)} test images; the mistakes come first")
    save(figure, path)


def main():
    args = options(__doc__, "digits.png", epochs=40)
    epochs = 12 if args.short else args.epochs

    (x, y), (x_test, y_test) = load()
    print(f"{len(y)} images to learn from, {len(y_test)} to be tested on; layers {' -> '.join(map(str, SIZES))}, dropout {1 - KEEP:.0%}")
    params, state, losses = train(x, y, epochs, args.seed)

    exported = tree_map(np.asarray, params)
    scores = predict_numpy(exported, x_test)
    accuracy = (scores.argmax(1) == y_test).mean()
    print(f"test accuracy (NumPy, from the exported parameters): {accuracy:.2%}")

    xb, yb, key = jnp.asarray(x[:BATCH]), jnp.asarray(y[:BATCH]), random.key(1)
    ours = seconds_per_step(lambda n: jax.block_until_ready(step(params, state, xb, yb, key)))
    rng, state_np = np.random.default_rng(0), tree_map(np.asarray, state)
    state_np["t"] = float(state_np["t"])
    theirs = seconds_per_step(lambda n: step_numpy(exported, state_np, x[:BATCH], y[:BATCH], rng))
    print(f"time per step: {ours * 1e6:.0f} us; the same written in NumPy by hand: {theirs * 1e6:.0f} us ({theirs / ours:.1f}x)")

    draw(args.png, losses, x_test, y_test, scores)
    if accuracy <= (0.93 if args.short else 0.97):
        sys.exit("the network should read more of the test images")


if __name__ == "__main__":
    main()
