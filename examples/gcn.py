"""Graph convolutions on the karate club, dense and sparse.

Two of the 34 members of Zachary's karate club are labelled: the instructor (0) and the officer (33). From these labels and the 78 friendships, two graph convolutions
(Kipf and Welling, 2017) learn which side each of the others took when the club split. The same network runs with a dense matrix of the graph and with a sparse one
(`experimental.sparse.BCOO`), and learns the same.

    python examples/gcn.py --png gcn.png
"""

import sys

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
from ferrax import nn, random
from ferrax.experimental import sparse
from ferrax.tree_util import tree_map
from gallery import bar, options, plot, save

# W. W. Zachary, An information flow model for conflict and fission in small groups, 1977: who was seen with whom outside the club.
FRIENDS = """
0-1 0-2 0-3 0-4 0-5 0-6 0-7 0-8 0-10 0-11 0-12 0-13 0-17 0-19 0-21 0-31 1-2 1-3 1-7 1-13 1-17 1-19 1-21 1-30 2-3 2-7 2-8 2-9 2-13 2-27 2-28 2-32 3-7
3-12 3-13 4-6 4-10 5-6 5-10 5-16 6-16 8-30 8-32 8-33 9-33 13-33 14-32 14-33 15-32 15-33 18-32 18-33 19-33 20-32 20-33 22-32 22-33 23-25 23-27 23-29
23-32 23-33 24-25 24-27 24-31 25-31 26-29 26-33 27-33 28-31 28-33 29-32 29-33 30-32 30-33 31-32 31-33 32-33
"""
SIDE = np.array([c == "O" for c in "HHHHHHHHHOHHHHOOHHOHOHOOOOOOOOOOOO"], int)  # Mr. Hi the instructor, or the officer
KNOWN = np.array([0, 33])
WIDTH, RATE = 8, 0.05


def edges():
    """The friendships, each in both directions, and each member's with themselves: i32[190, 2]."""
    pairs = np.array([pair.split("-") for pair in FRIENDS.split()], np.int32)
    own = np.repeat(np.arange(34, dtype=np.int32)[:, None], 2, 1)
    return np.concatenate([pairs, pairs[:, ::-1], own])


def graph():
    """D^-1/2 (A + I) D^-1/2 of the club, as a sparse matrix of 34 x 34."""
    index = edges()
    degree = np.bincount(index[:, 0])
    weight = 1 / np.sqrt(degree[index[:, 0]] * degree[index[:, 1]])
    return sparse.BCOO((jnp.asarray(weight, jnp.float32), jnp.asarray(index)), shape=(34, 34))


def init(key):
    k1, k2 = random.split(key)
    glorot = nn.initializers.glorot_normal()
    return {"in": glorot(k1, (34, WIDTH)), "out": glorot(k2, (WIDTH, 2))}


def logits(params, a):
    """Scores f32[34, 2]. Members have no features but themselves, so the first layer's weights are a row for each."""
    hidden = jnp.tanh(a @ params["in"])
    return a @ (hidden @ params["out"])


def loss(params, a):
    log_p = nn.log_softmax(logits(params, a))
    fit = -jnp.mean(log_p[KNOWN, SIDE[KNOWN]])
    return fit + 5e-3 * sum(jnp.sum(w**2) for w in params.values())


@jax.jit
def step(params, velocity, a):
    value, grads = jax.value_and_grad(loss)(params, a)
    velocity = tree_map(lambda v, g: 0.9 * v + g, velocity, grads)
    return tree_map(lambda p, v: p - RATE * v, params, velocity), velocity, value


def train(params, a, steps, what):
    velocity, show, history = tree_map(jnp.zeros_like, params), bar(steps, what), []
    for n in range(1, steps + 1):
        params, velocity, value = step(params, velocity, a)
        history.append(float(value))
        show(n, f"loss {history[-1]:.4f}")
    return params, history


def layout(rounds=300, seed=1):
    """Places of the members in the plane: friends pull, everybody pushes."""
    place = np.random.default_rng(seed).normal(size=(34, 2))
    pairs = edges()
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    for n in range(rounds):
        apart = place[:, None] - place[None]
        distance = np.linalg.norm(apart, axis=-1) + 1e-3
        move = (apart / distance[..., None] ** 3).sum(1)
        np.add.at(move, pairs[:, 0], -0.6 * (place[pairs[:, 0]] - place[pairs[:, 1]]))
        place = place + 0.1 * (1 - n / rounds) * np.clip(move, -3, 3)
    return place


def draw(path, history, p):
    plt = plot()
    if plt is None:
        return
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5.4), width_ratios=(1, 1.5), layout="constrained")
    for name, values in history.items():
        left.plot(values, label=name, linestyle="--" if name == "sparse" else "-")
    left.set(xlabel="step", ylabel="loss", yscale="log", title="the same learning, dense and sparse")
    left.legend()
    place = layout()
    for i, j in edges():
        right.plot(*place[[i, j]].T, color="0.8", linewidth=0.8, zorder=1)
    points = right.scatter(*place.T, c=p, cmap="coolwarm", vmin=0, vmax=1, s=260, edgecolor=np.where(SIDE, "darkred", "darkblue"), linewidth=1.6, zorder=2)
    for i, (x, y) in enumerate(place):
        right.text(x, y, str(i), ha="center", va="center", fontsize=8, weight="bold" if i in KNOWN else "normal")
    figure.colorbar(points, label="probability of the officer's side")
    right.set(title="filled: what the network says; rim: what happened; bold: told")
    right.axis("off")
    save(figure, path)


def main():
    args = options(__doc__, "gcn.png")
    steps = 60 if args.short else 300
    a = graph()
    start = init(random.key(args.seed))
    _, dense_losses = train(start, a.todense(), steps, "dense")
    params, sparse_losses = train(start, a, steps, "sparse")
    np.testing.assert_allclose(dense_losses, sparse_losses, rtol=1e-4)

    p = np.asarray(nn.softmax(logits(params, a))[:, 1])
    right = (p > 0.5) == SIDE
    print(f"{right.sum()} of 34 members as it happened; wrong about {np.flatnonzero(~right).tolist()}")
    draw(args.png, {"dense": dense_losses, "sparse": sparse_losses}, p)
    if right.sum() < 31:
        sys.exit("the network should be right about 31 members or more")


if __name__ == "__main__":
    main()
