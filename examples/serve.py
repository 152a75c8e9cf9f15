"""Train in Python, serve from Rust: an exported classifier.

A classifier of points in the plane, exported for any number of points. The program writes `model.ferrax`, some points and the logits that Python computes for them;
`crates/ferrax/examples/serve.rs` reads the first two and computes the same logits, bit for bit, without Python.

    python examples/serve.py served                      # --png FILE draws what was learned
    cargo run --release -p ferrax --example serve -- served/model.ferrax served/points.f32 served/rust.f32
    cmp served/logits.f32 served/rust.f32
"""

import argparse
import pathlib
import sys

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
from ferrax import export, nn, random
from ferrax.tree_util import tree_map
from gallery import bar, plot, save

SIZES, RATE = (2, 32, 32, 3), 0.05


def spirals(n, seed=0):
    """Points of three spirals, and which each is of."""
    rng = np.random.default_rng(seed)
    label, r = rng.integers(0, 3, n), rng.uniform(0.1, 1, n)
    angle = 4 * r + label * 2 * np.pi / 3 + rng.normal(0, 0.1, n)
    return np.stack([r * np.cos(angle), r * np.sin(angle)], 1).astype(np.float32), label.astype(np.int32)


def init(key):
    keys = random.split(key, len(SIZES) - 1)
    he = nn.initializers.he_normal()
    return [{"w": he(k, (n, m)), "b": jnp.zeros(m)} for k, n, m in zip(keys, SIZES[:-1], SIZES[1:], strict=True)]


def logits(params, x):
    for layer in params[:-1]:
        x = nn.gelu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params, x, y):
    return -jnp.take_along_axis(nn.log_softmax(logits(params, x)), y[:, None], 1).mean()


@jax.jit
def step(params, momentum, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    momentum = tree_map(lambda m, g: 0.9 * m + g, momentum, grads)
    return tree_map(lambda p, m: p - RATE * m, params, momentum), momentum, value


def draw(path, classify, points, labels):
    plt = plot()
    if plt is None:
        return
    line = np.linspace(-1.3, 1.3, 300, dtype=np.float32)
    plane = np.stack(np.meshgrid(line, line), -1)
    p = np.asarray(nn.softmax(classify(plane.reshape(-1, 2)))).reshape(*plane.shape[:2], 3)
    figure, axes = plt.subplots(figsize=(6, 6), layout="constrained")
    axes.imshow(1 - 0.6 * (1 - p), origin="lower", extent=(-1.3, 1.3, -1.3, 1.3))
    axes.scatter(*points.T, c=np.eye(3)[labels] * 0.8, s=14, edgecolor="white", linewidth=0.5)
    axes.set(title="three spirals: 200 new points, and what the exported model says")
    save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the files go")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--png", help="a picture of the classes and the points; it takes matplotlib")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)

    x, y = spirals(1000)
    params = init(random.key(0))
    momentum, show = tree_map(jnp.zeros_like, params), bar(args.steps)
    for k in range(1, args.steps + 1):
        params, momentum, value = step(params, momentum, x, y)
        show(k, f"loss {float(value):.3f}")

    @jax.jit
    def classify(x):
        return logits(params, x)

    exported = export.export(classify)(jax.ShapeDtypeStruct(export.symbolic_shape("n, 2"), jnp.float32))
    (args.folder / "model.ferrax").write_bytes(exported.serialize())
    points, labels = spirals(200, seed=1)
    (args.folder / "points.f32").write_bytes(points.tobytes())
    answer = np.asarray(classify(points))
    (args.folder / "logits.f32").write_bytes(answer.tobytes())
    right = (answer.argmax(1) == labels).mean()
    print(f"{exported.in_avals[0]} -> {exported.out_avals[0]}: {right:.0%} of 200 new points are right")
    if args.png:
        draw(args.png, classify, points, labels)
    if right < 0.9 and args.steps >= 400:
        sys.exit("the classifier should be right about more of the points")


if __name__ == "__main__":
    main()
