"""A character-level transformer with a cache of keys and values.

A decoder with attention, layer norms and an Adam written with `tree_map` learns from the topics of `help()`, text that Python contains (`pydoc_data.topics`). It then
generates text in one compiled loop (`lax.scan`), a character a step, with a cache of keys and values. The cached steps are compared with the whole network on the finished text.

    python examples/transformer.py --png transformer.png
"""

import re
import sys
import time
from pydoc_data.topics import topics

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
from ferrax import lax, nn, random
from ferrax.tree_util import tree_map
from gallery import bar, options, plot, save

CONTEXT, WIDTH, HEADS, LAYERS, BATCH, RATE = 64, 96, 4, 3, 24, 3e-3
TEXT = re.sub(" {2,}", " ", "\n".join(topics[name] for name in sorted(topics)).encode("ascii", "replace").decode())
LETTERS = sorted(set(TEXT))
CODE = {c: i for i, c in enumerate(LETTERS)}


def init(key):
    """Parameters; those of the blocks have a leading axis, over which the network scans."""
    keys = random.split(key, 6)

    def weights(k, m, n):
        return random.normal(k, (LAYERS, m, n)) * m**-0.5

    block = {
        "qkv": weights(keys[0], WIDTH, 3 * WIDTH),
        "out": weights(keys[1], WIDTH, WIDTH) / LAYERS**0.5,
        "up": weights(keys[2], WIDTH, 4 * WIDTH),
        "down": weights(keys[3], 4 * WIDTH, WIDTH) / LAYERS**0.5,
        "norms": jnp.ones((LAYERS, 2, WIDTH)),
    }
    letters = random.normal(keys[4], (len(LETTERS), WIDTH)) * 0.1
    return {"letters": letters, "places": random.normal(keys[5], (CONTEXT, WIDTH)) * 0.1, "blocks": block, "norm": jnp.ones(WIDTH)}


def norm(x, scale):
    return nn.standardize(x) * scale


def split(p, x):
    """Queries, keys and values f32[.., HEADS, WIDTH / HEADS] of x f32[.., WIDTH]."""
    q, k, v = jnp.split(norm(x, p["norms"][0]) @ p["qkv"], 3, axis=-1)
    return tuple(t.reshape(*x.shape[:-1], HEADS, WIDTH // HEADS) for t in (q, k, v))


def rest(p, x, mixed):
    """What follows attention in a block."""
    x = x + mixed.reshape(x.shape) @ p["out"]
    return x + nn.gelu(norm(x, p["norms"][1]) @ p["up"]) @ p["down"]


def logits(params, codes):
    """Scores f32[T, letters] of what follows each of the letters i32[T]."""

    def block(x, p):
        q, k, v = split(p, x)
        scores = jnp.einsum("qhd,khd->hqk", q, k) * (WIDTH // HEADS) ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool)), scores, -jnp.inf)
        return rest(p, x, jnp.einsum("hqk,khd->qhd", nn.softmax(scores), v)), None

    x = params["letters"][codes] + params["places"][: len(codes)]
    x, _ = lax.scan(block, x, params["blocks"])
    return norm(x, params["norm"]) @ params["letters"].T


def one_letter(params, cache, code, at):
    """Scores of what follows `code` at place `at`, from the keys and values of all places before it; and the cache with its own."""

    def block(x, layer):
        p, keys, values = layer
        q, k, v = split(p, x)
        keys, values = keys.at[at].set(k), values.at[at].set(v)
        scores = jnp.einsum("hd,khd->hk", q, keys) * (WIDTH // HEADS) ** -0.5
        scores = jnp.where(jnp.arange(CONTEXT) <= at, scores, -jnp.inf)
        return rest(p, x, jnp.einsum("hk,khd->hd", nn.softmax(scores), values)), (keys, values)

    x, cache = lax.scan(block, params["letters"][code] + params["places"][at], (params["blocks"], *cache))
    return norm(x, params["norm"]) @ params["letters"].T, cache


@jax.jit
def write(params, key, start, known, heat):
    """CONTEXT letters after the first of `start` i32[CONTEXT], and the scores f32[CONTEXT, letters] of each.

    The first `known` of `start` are given, those after them drawn from their scores at a temperature.
    """
    shape = (LAYERS, CONTEXT, HEADS, WIDTH // HEADS)

    def step(carry, at):
        cache, code = carry
        scores, cache = one_letter(params, cache, code, at)
        drawn = random.categorical(random.fold_in(key, at), scores / heat)
        code = jnp.where(at + 1 < known, start[(at + 1) % CONTEXT], drawn)
        return (cache, code), (code, scores)

    _, (codes, scores) = lax.scan(step, ((jnp.zeros(shape), jnp.zeros(shape)), start[0]), jnp.arange(CONTEXT))
    return codes, scores


def loss(params, codes):
    """Mean cross entropy, in bits a letter, over a batch i32[B, CONTEXT + 1]."""
    log_p = nn.log_softmax(jax.vmap(logits, in_axes=(None, 0))(params, codes[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(log_p, codes[:, 1:, None], 2)) / jnp.log(2.0)


@jax.jit
def train_step(params, state, codes):
    value, grads = jax.value_and_grad(loss)(params, codes)
    m, v, t = state
    t = t + 1
    m = tree_map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = tree_map(lambda v, g: 0.99 * v + 0.01 * g * g, v, grads)
    rate = RATE * jnp.minimum(1, t / 50) * jnp.sqrt(1 - 0.99**t) / (1 - 0.9**t)
    return tree_map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v), (m, v, t), value


def draw(path, history, table):
    plt = plot()
    if plt is None:
        return
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), width_ratios=(1, 1.6), layout="constrained")
    left.plot(history, linewidth=0.8)
    left.set(xlabel="step", ylabel="bits a letter", title="what the next letter costs")
    codes, scores = table
    p = np.asarray(nn.softmax(scores))
    best = np.argsort(-p.max(0))[:24]
    best = best[np.argsort([LETTERS[i] for i in best])]
    right.imshow(p[:, best].T, aspect="auto", cmap="Blues", vmin=0, vmax=1)
    shown = {"\n": "\\n", " ": "_"}
    names = [shown.get(LETTERS[i], LETTERS[i]) for i in codes]
    right.set_xticks(range(len(names)), names, family="monospace", fontsize=8)
    right.set_yticks(range(len(best)), [shown.get(LETTERS[i], LETTERS[i]) for i in best], family="monospace", fontsize=8)
    right.set(title="what it wrote (below), and how likely it thought each letter")
    save(figure, path)


def main():
    args = options(__doc__, "transformer.png")
    steps = 30 if args.short else 700
    text = np.array([CODE[c] for c in TEXT], np.int32)
    params = init(random.key(args.seed))
    size = sum(p.size for p in jax.tree.leaves(params))
    print(f"{len(text)} letters of {len(LETTERS)} kinds; {size} parameters in {LAYERS} blocks")

    zeros = tree_map(jnp.zeros_like, params)
    state, rng, show, history = (zeros, zeros, jnp.asarray(0.0)), np.random.default_rng(args.seed), bar(steps), []
    for n in range(1, steps + 1):
        starts = rng.integers(0, len(text) - CONTEXT - 1, BATCH)
        params, state, value = train_step(params, state, text[starts[:, None] + np.arange(CONTEXT + 1)])
        history.append(float(value))
        show(n, f"{history[-1]:.3f} bits a letter")

    started, starts = time.perf_counter(), ("The function ", "If the object ", "A class ", "Changed in version ", "The following ")
    for n, words in enumerate(starts[:1] if args.short else starts):
        start = jnp.asarray([CODE[c] for c in words.ljust(CONTEXT)])
        codes, scores = write(params, random.key(n), start, len(words), 0.5)
        print("  " + repr(words[0] + "".join(LETTERS[i] for i in codes)))
    print(f"written in {time.perf_counter() - started:.2f} s, compiling included")

    # The cache gives what the whole network gives over the same letters.
    whole = jax.jit(logits)(params, jnp.concatenate([start[:1], codes[:-1]]))
    np.testing.assert_allclose(scores, whole, rtol=1e-3, atol=1e-3)
    print("with the cache and without: the same scores")
    draw(args.png, history, (np.asarray(codes), scores))
    if np.mean(history[-5:]) > (5.3 if args.short else 2.7):
        sys.exit("it should have learned more")


if __name__ == "__main__":
    main()
