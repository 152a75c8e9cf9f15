"""Time steps over slices: what one pass writes and the next reads may be one pass, but never where an element is read after its neighbour's pass wrote it."""

import numpy as np
import pytest


def sweep(rng, xp, names, shape):
    """A random update of a window of one array by windows of others or of itself, as a function of a dict of arrays."""
    into = rng.choice(names)
    size = tuple(int(rng.integers(max(1, n - 3), n + 1)) for n in shape)
    at = tuple(int(rng.integers(0, n - m + 1)) for n, m in zip(shape, size, strict=True))
    window = tuple(slice(a, a + m) for a, m in zip(at, size, strict=True))
    reads = []
    for _ in range(rng.integers(1, 4)):
        a = tuple(int(rng.integers(0, n - m + 1)) for n, m in zip(shape, size, strict=True))
        reads.append((rng.choice(names), tuple(slice(b, b + m) for b, m in zip(a, size, strict=True)), float(np.round(rng.uniform(-0.4, 0.4), 2))))
    kind = rng.choice(["set", "add", "multiply"])

    def apply(x):
        value = sum(by * x[name][w] for name, w, by in reads)
        if kind == "multiply":
            value = xp.cos(value) if xp is not np else np.cos(value)
        new = dict(x)
        if xp is np:
            new[into] = x[into].copy()
            old = new[into][window]
            new[into][window] = {"set": value, "add": old + value, "multiply": old * value}[kind]
        else:
            new[into] = getattr(x[into].at[window], kind)(value)
        return new

    return apply


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(37,), (11, 9), (6, 5, 7)])
@pytest.mark.parametrize("seed", range(12))
def test_sweeps(jax, jnp, lax, seed, shape, dtype):
    with jax.enable_x64(dtype == "float64"):
        names = ["a", "b", "c"]
        count = np.random.default_rng(seed).integers(1, 5)
        ours, theirs = (
            [sweep(rng, xp, names, shape) for _ in range(count)]
            for rng, xp in ((np.random.default_rng(seed + 1000), jnp), (np.random.default_rng(seed + 1000), np))
        )
        x = {n: np.random.default_rng(seed).standard_normal(shape).astype(dtype) for n in names}

        def step(_, x):
            for f in ours:
                x = f(x)
            return x

        got = jax.jit(lambda x: lax.fori_loop(0, 4, step, x))(x)
        want = x
        for _ in range(4):
            for f in theirs:
                want = {n: v.astype(dtype) for n, v in f(want).items()}
        for n in names:
            np.testing.assert_allclose(got[n], want[n], rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.ours
def test_a_sweep_is_one_pass(jax, lax):
    """Two sweeps of a time step: two vector loops, and no array between a sweep and the window it is put to."""

    def step(_, s):
        a, b = s
        b = b.at[1:-1, 1:-1].set(0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]))
        return a.at[1:-1, 1:-1].set(0.25 * (b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])), b

    x = np.ones((18, 34), np.float32)
    text = jax.jit(lambda a, b: lax.fori_loop(0, 5, step, (a, b))).lower(x, x).compile().as_text()
    line = next(line for line in text.splitlines() if line.startswith("nest of"))
    assert " 2 stores" in line, line
