"""Branches that pass arrays on, update, exchange or replace them: compiled in place, they compute what they do one operation at a time."""

import numpy as np
import pytest

N = 96  # enough elements for a place in memory of their own


def moves(jnp):
    """What a branch does to two arrays and a number, at a place i."""
    return {
        "pass": lambda i, a, b, s: (a, b, s),
        "update": lambda i, a, b, s: (a.at[i].add(s), b, s + 1),
        "both": lambda i, a, b, s: (a.at[i].set(b[i]), b.at[-1 - i].set(a[i]), s),
        "exchange": lambda i, a, b, s: (b, a, s * 2),
        "same": lambda i, a, b, s: (a, a, s),
        "same updated": lambda i, a, b, s: (a.at[i].mul(3), a, s),
        "replace": lambda i, a, b, s: (b + 1, b, s - 1),
        "cross": lambda i, a, b, s: (a - b, a + b, s),
        "read late": lambda i, a, b, s: (jnp.zeros_like(a), b.at[i].set(a[i]), a[0]),
        "slice": lambda i, a, b, s: (a.at[3:9].set(b[:6] * s), b, a.sum()),
    }


NAMES = list(moves(np))


def program(jax, jnp, lax, names, nested):
    table = moves(jnp)

    def chosen(k, branches, *operands):
        if len(branches) == 2:
            return lax.cond(k % 2 == 1, branches[1], branches[0], *operands)
        return lax.switch(k % len(branches), branches, *operands)

    def step(i, state):
        a, b, s, k = state
        branches = [table[n] for n in names]
        if nested:
            first = branches[0]
            branches[0] = lambda i, *x: chosen(k // 3, [first, table["update"]], i, *x)
        a, b, s = chosen(k + i, branches, i, a, b, s)
        if not nested:
            a, b, s = chosen(k // 2 + i, branches[::-1], i, a, b, s)
        return a, b, s / 2, (k * 5 + 3) % 64

    def f(a, b, k):
        return lax.fori_loop(0, 7, step, (a, b, jnp.asarray(1.5, a.dtype), k))

    return f


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_branches_in_place(jax, jnp, lax, seed, nested):
    rng = np.random.default_rng(seed)
    names = list(rng.choice(NAMES, rng.integers(2, 5), replace=False))
    f = program(jax, jnp, lax, names, nested)
    a, b = rng.standard_normal((2, N)).astype(np.float32)
    with jax.disable_jit():
        want = f(jnp.asarray(a), jnp.asarray(b), jnp.int32(seed))
    got = jax.jit(f)(a, b, np.int32(seed))
    for x, y in zip(want, got, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=1e-6)
    tangents = jax.jit(lambda a, b: jax.jvp(lambda a, b: f(a, b, jnp.int32(seed))[:2], (a, b), (b, a))[1])(a, b)
    with jax.disable_jit():
        slow = jax.jvp(lambda a, b: f(a, b, jnp.int32(seed))[:2], (jnp.asarray(a), jnp.asarray(b)), (jnp.asarray(b), jnp.asarray(a)))[1]
    for x, y in zip(slow, tangents, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5)
    loss = lambda a, b: sum((x * x).sum() for x in f(a, b, jnp.int32(seed))[:2])
    gradient = jax.jit(jax.grad(loss, (0, 1)))(a, b)
    slope = jax.jvp(loss, (a, b), (b, a))[1]
    np.testing.assert_allclose(sum((g * t).sum() for g, t in zip(gradient, (b, a), strict=True)), slope, rtol=1e-3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", NAMES)
def test_one_switch_outside_of_loops(jax, jnp, lax, name, other):
    table = moves(jnp)
    a, b = np.arange(N, dtype=np.float32), np.linspace(1, 2, N, dtype=np.float32)

    def f(p, a, b):
        a, b = a * 2, b * 3  # arrays of the program's own, which may be written over
        return lax.cond(p, table[name], table[other], 4, a, b, jnp.float32(2))

    for p in (True, False):
        with jax.disable_jit():
            want = f(p, jnp.asarray(a), jnp.asarray(b))
        for x, y in zip(want, jax.jit(f)(p, a, b), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6)


@pytest.mark.ours
def test_a_branch_that_passes_an_array_on_does_nothing(jax, jnp, lax):
    def step(i, a):
        return lax.cond(a[i] > 0, lambda a: a.at[i].set(-a[i]), lambda a: a, a)

    text = jax.jit(lambda a: lax.fori_loop(0, N, lambda i, a: step(i, jnp.sort(a)), a)).lower(np.ones(N, np.float32)).compile().as_text()
    branches = text[text.index("branch 0") :]
    assert "copy" not in branches[: branches.index("scatter")]


@pytest.mark.ours
def test_branches_that_store_are_part_of_a_nest(jax, jnp, lax):
    """A table that is filled element by element, with a choice at each."""

    def f(a):
        def cell(i, j, t):
            t = lax.cond(j > 0, lambda t: t.at[i, j].set(jnp.maximum(t[i, j], t[i, j - 1])), lambda t: t, t)
            return lax.cond(i > 0, lambda t: t.at[i, j].add(t[i - 1, j] / 2), lambda t: t, t)

        n = a.shape[0]
        return lax.fori_loop(0, n, lambda i, t: lax.fori_loop(0, n, lambda j, t: cell(i, j, t), t), a)

    a = np.random.default_rng(0).standard_normal((12, 12)).astype(np.float32)
    want = a.copy()
    for i in range(12):
        for j in range(12):
            if j > 0:
                want[i, j] = max(want[i, j], want[i, j - 1])
            if i > 0:
                want[i, j] += want[i - 1, j] / 2
    compiled = jax.jit(f).lower(a).compile()
    np.testing.assert_array_equal(compiled(a), want)
    assert "nest of" in compiled.as_text()
