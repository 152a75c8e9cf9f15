"""Random draws equal JAX 0.10.2's: bit for bit where they are integer arithmetic, closely where they pass through a transcendental."""

import numpy as np
import pytest
from golden import draws
from hypothesis import given, settings, strategies as st

GOLDEN = draws.read()


@pytest.mark.parametrize("name, f, seed, layout, wide", list(draws.cases()))
def test_draw(jax, name, f, seed, layout, wide):
    got = draws.draw(jax, f, seed, layout, wide)
    dtype, values = GOLDEN[f"{name} | {seed} | {layout}"]
    want = np.asarray(values, dtype)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if name in draws.EXACT:
        assert got.tobytes() == want.tobytes()
    else:
        np.testing.assert_allclose(got, want, rtol=1e-12 if wide else 3e-6, atol=1e-12 if wide else 3e-6)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 33))
def test_lanes_jit_and_eager_draw_the_same(jax, seed, n):
    random = jax.random
    key = random.key(seed)
    for f in (lambda k: random.uniform(k, (n,)), lambda k: random.normal(k, (n,)), lambda k: random.randint(k, (n,), 0, 7)):
        want = np.asarray(f(key))
        assert np.array_equal(jax.jit(f)(key), want)
        keys = random.split(key, 3)
        assert np.array_equal(jax.vmap(f)(keys)[1], f(keys[1]))


def test_typed_and_raw_keys_hold_the_same_words(jax):
    random = jax.random
    typed, raw = random.key(7), random.PRNGKey(7)
    assert np.array_equal(random.key_data(typed), raw)
    assert np.array_equal(random.key_data(random.split(typed)), random.split(raw))
    assert str(typed.dtype) == "key<fry>" and typed.shape == ()
    assert np.array_equal(random.uniform(random.wrap_key_data(raw), (3,)), random.uniform(typed, (3,)))


def test_uniform_stays_below_one(jax):
    x = np.asarray(jax.random.uniform(jax.random.key(0), (1 << 20,)))
    assert 0 <= x.min() and x.max() < 1
    assert abs(x.mean() - 0.5) < 2e-3 and abs(x.var() - 1 / 12) < 1e-3


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_integers_are_flat(jax, dtype):
    x = np.asarray(jax.random.randint(jax.random.key(1), (60_000,), 0, 6, dtype))
    counts = np.bincount(x, minlength=6)
    assert len(counts) == 6 and ((counts - 10_000.0) ** 2 / 10_000).sum() < 30


@pytest.mark.parametrize(
    "name, args, mean, variance",
    [
        ("normal", (), 0, 1), ("exponential", (), 1, 1), ("gumbel", (), 0.5772157, np.pi**2 / 6), ("laplace", (), 0, 2), ("logistic", (), 0, np.pi**2 / 3),
        ("gamma", (2.5,), 2.5, 2.5), ("beta", (2.0, 3.0), 0.4, 0.04), ("poisson", (4.0,), 4, 4), ("bernoulli", (0.3,), 0.3, 0.21),
    ],
)  # fmt: skip
def test_moments(jax, name, args, mean, variance):
    x = np.asarray(getattr(jax.random, name)(jax.random.key(3), *args, shape=(40_000,))).astype(np.float64)
    assert abs(x.mean() - mean) < 6 * np.sqrt(variance / 40_000)
    assert abs(x.var() - variance) < 0.08 * variance
