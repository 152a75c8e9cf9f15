"""What programs ask of a GPU, counted: `python tests/gpu_costs.py` prints the rows of tests/golden/gpu_costs.txt, `--write` rewrites it.

The counts are those of Mesa's lavapipe; `FERRAX_GPU_PACE` fixes how work is divided, so they are the same each time. A program runs twice: the
first run tells its pipelines, the second all else. Waits are not among them: a result may be there before it is awaited. Downloads are, and a loop that reads
a predicate waits for each.
"""

import os
import pathlib
import sys

os.environ.setdefault("FERRAX_GPU", "software")
os.environ["FERRAX_GPU_PACE"] = "1e15"

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
from ferrax import lax

GOLDEN = pathlib.Path(__file__).with_name("golden") / "gpu_costs.txt"
COLUMNS = ("dispatches", "submissions", "uploads", "downloads", "host_steps", "bound_bytes")
HEAD = f"""\
# What programs ask of a GPU at a run after the first: {", ".join(COLUMNS[:-1])},
# KiB of the buffers that dispatches are given; and the pipelines of the first run. Written by `python tests/gpu_costs.py --write`.
"""


def array(*shape):
    return jnp.asarray(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32))


def layer_norm(x, scale, bias=0.0):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * scale + bias


def rows():
    """Programs over rows, and sums."""
    x, w, b, big = array(512, 512), array(512, 512) + 1, array(512), array(2048, 1024)
    nn = jax.nn
    yield "softmax", jax.jit(nn.softmax), (x,)
    yield "softmax grad", jax.jit(jax.grad(lambda x: (nn.softmax(x) * w).sum())), (x,)
    yield "softmax of 8192", jax.jit(nn.softmax), (array(16, 8192),)
    yield "softmax of bfloat16", jax.jit(nn.softmax), (x.astype(jnp.bfloat16),)
    yield "log softmax loss", jax.jit(lambda x: -nn.log_softmax(x)[:, 3].mean()), (x,)
    yield "log softmax loss grad", jax.jit(jax.grad(lambda x: -nn.log_softmax(x)[:, 3].mean())), (x,)
    yield "layer norm", jax.jit(lambda x: layer_norm(x, b, b)), (x,)
    yield "layer norm grad", jax.jit(jax.grad(lambda x: (layer_norm(x, b, b) * w).sum())), (x,)
    yield "sum of 2M", jax.jit(jnp.sum), (big,)
    yield "mean, var, std of 256k", jax.jit(lambda x: (x.mean(), x.var(), x.std())), (x,)
    yield "argmax of rows", jax.jit(lambda x: x.argmax(-1)), (x,)


def moves():
    """Products, sorts, concatenations, updates."""
    x, w, b, keys = array(512, 512), array(512, 512), array(512), array(16384)
    yield "relu(x@W.T+b)", jax.jit(lambda x: jax.nn.relu(x @ w.T + b)), (x,)
    yield "bfloat16 product", jax.jit(lambda x: x @ x), (x.astype(jnp.bfloat16),)
    yield "x.T@x of 8192x64", jax.jit(lambda a, b: a.T @ b), (array(8192, 64), array(8192, 64))
    yield "matrix by vector", jax.jit(lambda a, b: a @ b), (x, b)
    yield "sort of 16k", jax.jit(jnp.sort), (keys,)
    yield "argsort of 16k", jax.jit(jnp.argsort), (keys,)
    yield "sort of 1M", jax.jit(jnp.sort), (array(1 << 20),)
    yield "top_k 10 of 16k", jax.jit(lambda x: lax.top_k(x, 10)), (keys,)
    yield "permutation of 4096", jax.jit(lambda k: jax.random.permutation(k, 4096)), (jax.random.key(0),)
    yield "cumsum of 16k", jax.jit(jnp.cumsum), (keys,)
    yield "concatenation of 40", jax.jit(lambda *x: jnp.concatenate(x)), tuple(array(100) for _ in range(40))
    i = jnp.asarray(np.random.default_rng(0).integers(0, 1 << 18, 4096))
    yield "set 4096 of 256k", jax.jit(lambda t, i, u: t.at[i].set(u)), (array(1 << 18), i, array(4096))


def loss_of(model):
    """Mean cross entropy of a model."""
    return lambda p, x, y: -jnp.take_along_axis(jax.nn.log_softmax(model(p, x)), y[..., None], -1).mean()


def descent(loss):
    return jax.jit(lambda p, *data: jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss)(p, *data)))


def mlp(p, x):
    for w, b in p[:-1]:
        x = jax.nn.relu(x @ w + b)
    return x @ p[-1][0] + p[-1][1]


def transformer(p, tokens):
    x, heads = p["e"][tokens], 4
    batch, steps, width = x.shape
    for layer in p["layers"]:
        h = layer_norm(x, layer["g1"])
        split = lambda n: (h @ layer[n]).reshape(batch, steps, heads, -1).transpose(0, 2, 1, 3)
        q, k, v = split("q"), split("k"), split("v")
        scores = jnp.where(jnp.tril(jnp.ones((steps, steps), bool)), q @ k.transpose(0, 1, 3, 2) / 4.0, -1e9)
        a = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, steps, width)
        x = x + a @ layer["o"]
        x = x + jax.nn.gelu(layer_norm(x, layer["g2"]) @ layer["a"]) @ layer["b"]
    return x @ p["o"]


def models():
    """Steps of training."""
    params = [(array(a, b) * 0.05, array(b)) for a, b in ((784, 128), (128, 128), (128, 10))]
    x, y = array(64, 784), jnp.asarray(np.arange(64) % 10)
    yield "MLP", jax.jit(mlp), (params, x)
    yield "MLP step", descent(loss_of(mlp)), (params, x, y)
    d = 64
    layer = lambda: {
        **{n: array(d, d) * 0.1 for n in "qkvo"},
        "a": array(d, 4 * d) * 0.1,
        "b": array(4 * d, d) * 0.1,
        "g1": array(d),
        "g2": array(d),
    }
    params = {"e": array(100, d), "layers": [layer(), layer()], "o": array(d, 100) * 0.1}
    tokens = jnp.asarray(np.arange(128).reshape(4, 32) % 100)
    yield "transformer", jax.jit(transformer), (params, tokens)
    yield "transformer step", descent(lambda p, t: loss_of(transformer)(p, t[:, :-1], t[:, 1:])), (params, tokens)


def loops():
    """Control flow."""
    xs, w, x = array(100, 64), array(64, 64) * 0.1, array(64)
    run = lambda xs, w: lax.scan(lambda c, x: (jnp.tanh(c @ w + x), c), jnp.zeros(64), xs)
    yield "scan of 100", jax.jit(lambda xs: lax.scan(lambda c, x: (c * 0.9 + x, c.sum() + x), jnp.zeros(64), xs)), (xs,)
    yield "scan of 100 products", jax.jit(run), (xs, w)
    yield "scan of 100 products, grad", jax.jit(jax.grad(lambda w, xs: run(xs, w)[1].sum())), (w, xs)
    yield "fori_loop of 100", jax.jit(lambda x: lax.fori_loop(0, 100, lambda i, x: x * 0.99 + i, x)), (x,)
    count = lambda c: (c[0] + 1, c[1] * 0.99 + 1)
    yield "while_loop of 100", jax.jit(lambda x: lax.while_loop(lambda c: c[0] < 100, count, (0, x))), (x,)
    newton = lambda x: lax.while_loop(lambda c: jnp.abs(c * c - 2) > 1e-6, lambda c: 0.5 * (c + 2 / c), x)
    yield "Newton's method", jax.jit(newton), (jnp.float32(1000.0),)
    yield "cond", jax.jit(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x)), (jnp.bool_(True), x)


def times(n, f):
    def repeated(x):
        for _ in range(n):
            x = f(x)
        return x

    return repeated


def eager():
    """Operations one by one, and many shapes."""
    x = array(64)
    yield "1000 eager adds", times(1000, lambda x: x + x), (x,)
    yield "1000 eager adds of a literal", times(1000, lambda x: x + 1.5), (x,)

    def shapes(first):
        return [jnp.ones(n) + 1 for n in range(first, first + 300)][-1]

    yield "300 shapes", shapes, (1,)


def cost(device, f, args):
    """The differences of the device's counters."""
    now = device.counters
    jax.block_until_ready(args)
    before = now()
    jax.block_until_ready(f(*args))
    first = now()
    jax.block_until_ready(f(*args))
    again = now()
    counts = [again[c] - first[c] for c in COLUMNS]
    return [*counts[:-1], -(-counts[-1] // 1024), first["pipelines"] - before["pipelines"]]


def table(only=""):
    device = jax.devices("gpu")[0]
    kept = []  # pipelines live as long as their programs
    yield HEAD
    with jax.default_device(device):
        for part in (rows, moves, models, loops, eager):
            for name, f, args in part():
                if only in name:
                    kept.append(f)
                    counts = cost(device, f, args)
                    yield f"{name:28}" + "".join(f"{n:8}" for n in counts) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        GOLDEN.write_text("".join(table()))
    else:
        for line in table(*sys.argv[1:]):
            print(line, end="", flush=True)
