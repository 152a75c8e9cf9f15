"""Loops that are written element by element: those whose iterations touch different elements run as vectors, all give what the steps give one by one."""

import ferrax as jax
import ferrax.lax as lax
import ferrax.numpy as jnp
import numpy as np
import pytest

N = 37


def place(r, length):
    """A first index and a step whose N indices lie in an array of this length."""
    step = int(r.choice([-3, -2, -1, 1, 1, 2, 3, 0]))
    low, high = min(0, step * (N - 1)), max(0, step * (N - 1))
    return int(r.integers(-low, length - high)), step


def program(r, length):
    """The indices that an iteration reads of x and y, and those that it writes of y; and what it computes."""
    reads = [(str(r.choice(["x", "x", "y"])), place(r, length)) for _ in range(int(r.integers(1, 4)))]
    writes = [place(r, length) for _ in range(int(r.integers(1, 3)))]
    if r.random() < 0.3 and reads[0][0] == "y":
        writes[0] = reads[0][1]
    if r.random() < 0.3:
        first, step = writes[0]
        beside = first + int(r.choice([-1, 1]))
        if 0 <= min(beside, beside + step * (N - 1)) and max(beside, beside + step * (N - 1)) < length:
            writes.append((beside, step))
    kinds = [str(r.choice(["add", "mul", "max", "where", "index", "square"])) for _ in range(3)]
    return reads, writes, kinds


def value(xp, kinds, terms, i, dtype):
    v = terms[0]
    for k, kind in enumerate(kinds):
        t = terms[(k + 1) % len(terms)]
        if kind == "add":
            v = v + t
        elif kind == "mul":
            v = (v * t) % 7 if np.dtype(dtype).kind == "i" else xp.minimum(v * t / 4, t + 2)
        elif kind == "max":
            v = xp.maximum(v, t)
        elif kind == "where":
            v = xp.where(v > t, v - t, v + 1)
        elif kind == "index":
            v = v + xp.asarray(i % 5).astype(dtype)
        else:
            v = xp.minimum(v * v / 2, t + 8) if np.dtype(dtype).kind == "f" else v * v % 11
    return xp.asarray(v).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("seed", range(12))
def test_element_loops_are_their_iterations(seed, dtype):
    r = np.random.default_rng([seed, len(dtype), ord(dtype[0])])
    with jax.enable_x64(dtype.endswith("64")):
        for _ in range(8):
            length = int(r.integers(3 * N, 4 * N))
            x, y = (r.integers(0, 9, length).astype(dtype) for _ in range(2))
            reads, writes, kinds = program(r, length)

            def at(p, i):
                return p[0] + p[1] * i

            def body(i, y):
                for p in writes:
                    terms = [(x if of == "x" else y)[at(q, i)] for of, q in reads]
                    y = y.at[at(p, i)].set(value(jnp, kinds, terms, i, dtype))
                return y

            want = y.copy()
            for i in range(N):
                for p in writes:
                    terms = [(x if of == "x" else want)[at(q, i)] for of, q in reads]
                    want[at(p, i)] = value(np, kinds, terms, np.int64(i), dtype)
            x, y = jnp.asarray(x), jnp.asarray(y)
            got = jax.jit(lambda y: lax.fori_loop(0, N, body, y))(y)
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 3, 8, 16, 19, 64])
def test_maps_run_as_vectors(n, reverse):
    x = np.random.default_rng(n).normal(size=n).astype(np.float32)

    def body(_, x):
        return None, (jnp.sqrt(jnp.abs(x)) * 2, x > 0, jnp.floor(x))

    f = jax.jit(lambda x: lax.scan(body, None, x, reverse=reverse)[1])
    for got, want in zip(f(x), (np.sqrt(np.abs(x)) * np.float32(2), x > 0, np.floor(x)), strict=True):
        np.testing.assert_array_equal(got, want)
    # bools are written side by side only
    if n >= 16 and not reverse:
        assert "of vectors" in f.lower(x).compile().as_text() or "native" not in f.lower(x).compile().as_text()


def test_counters_that_follow_the_iterations():
    def body(i, s):
        y, j, k = s
        return y.at[j % 20].add(k), j + 3, k - 2

    y, j, k = jax.jit(lambda y: lax.fori_loop(5, 25, body, (y, jnp.int32(7), jnp.int32(100))))(jnp.zeros(20, jnp.int32))
    want, a, b = np.zeros(20, np.int32), 7, 100
    for _ in range(20):
        want[a % 20] += b
        a, b = a + 3, b - 2
    np.testing.assert_array_equal(y, want)
    assert (int(j), int(k)) == (a, b)


def test_counters_that_wrap_are_carried():
    # 2**31 - 5 + 3 * 10 is not an int32: the sums wrap one by one
    def body(i, s):
        y, j = s
        return y.at[i].set(j), j + 3

    y, j = jax.jit(lambda y: lax.fori_loop(0, 10, body, (y, jnp.int32(2**31 - 5))))(jnp.zeros(10, jnp.int32))
    want = (np.int64(2**31 - 5) + 3 * np.arange(11)).astype(np.int32)
    np.testing.assert_array_equal(y, want[:-1])
    assert int(j) == want[-1]


@pytest.mark.parametrize("size", [2, 8, 9, 12, 16, 17, 40])
def test_windows_that_move(size):
    x = np.random.default_rng(0).integers(0, 9, 300).astype(np.float32)
    n = 300 - size

    def body(i, s):
        y, rows = s
        w = lax.dynamic_slice(x, (i,), (size,))
        return y.at[i].set(w.sum()), lax.dynamic_update_slice(rows, (w * 2 + rows[i])[None], (i, 0))

    f = jax.jit(lambda: lax.fori_loop(0, n, body, (jnp.zeros(n), jnp.ones((n, size)))))
    windows = np.lib.stride_tricks.sliding_window_view(x, size)[:n]
    y, rows = f()
    np.testing.assert_array_equal(y, windows.sum(1))
    np.testing.assert_array_equal(rows, windows * 2 + 1)
    if "native" in f.lower().compile().as_text():
        assert "loop, " not in f.lower().compile().as_text()
