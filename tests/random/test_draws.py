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


# Draws of float32 whose uniform number is in the first cell of its grid, [0, 2^-23), and in the last: (seed, place among 2^20).
OUTER_CELLS = ((4, 286683), (14, 875088))
# The distribution functions of what is infinite or steep at an end, and how far out 2^-23 is on either side: (name, arguments, below, above).
STEEP = [
    ("exponential", (), (0, 2.0**-23), (15.9, 26)), ("gumbel", (), (-3.3, -2.7), (15.9, 26)), ("rayleigh", (2.0,), (0, 1e-3), (2 * 5.6, 2 * 7.2)),
    ("laplace", (), (-27, -15), (15, 27)), ("logistic", (), (-26, -15.9), (15.9, 26)), ("cauchy", (), (-1e12, -2.6e6), (2.6e6, 1e12)),
    ("weibull_min", (1.0, 2.0), (0, 3.6e-4), (3.9, 5.1)), ("geometric", (np.float32(0.001),), (0.5, 1.5), (15900, 26000)),
    ("truncated_normal", (-np.inf, 1.0), (-6.7, -5.1), (0.999, 1)), ("truncated_normal", (1.5, np.inf), (1.5, 1.501), (5.4, 7.2)),
    ("truncated_normal", (-9.0, 9.0), (-6.7, -5), (4.9, 6.7)), ("truncated_normal", (-np.inf, np.inf), (-6.7, -5), (4.9, 6.7)),
]  # fmt: skip


@pytest.mark.ours
@pytest.mark.parametrize("name, args, below, above", STEEP)
def test_outer_cells_of_the_uniform_numbers(jax, jnp, name, args, below, above):
    """No draw is infinite or 0 because 2^-23 of all uniform numbers are one number."""
    random, kwargs = jax.random, {} if name == "geometric" else {"dtype": "float32"}
    for end, (seed, place) in enumerate(OUTER_CELLS):
        key = random.key(seed)
        u = np.asarray(random.uniform(key, (1 << 20,), "float32"))
        assert u[place] == (0, 1 - 2.0**-23)[end]
        x = np.asarray(jax.jit(lambda key: getattr(random, name)(key, *args, shape=(1 << 20,), **kwargs))(key))
        assert np.isfinite(x).all()
        # these fall with the uniform number
        low, high = (below, above)[1 - end if name in ("rayleigh", "geometric", "laplace") else end]
        assert low < x[place] < high, (end, x[place])


DISTRIBUTIONS = {
    "exponential": lambda x: 1 - np.exp(-x), "gumbel": lambda x: np.exp(-np.exp(-x)), "rayleigh": lambda x: 1 - np.exp(-x * x / 2),
    "laplace": lambda x: 0.5 + 0.5 * np.sign(x) * (1 - np.exp(-abs(x))), "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "cauchy": lambda x: 0.5 + np.arctan(x) / np.pi,
}  # fmt: skip


@pytest.mark.ours
@pytest.mark.parametrize("dtype, share", [("float16", 2.0**-11), ("bfloat16", 2.0**-8)])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_half_precision_has_tails(jax, jnp, name, dtype, share):
    """In half precision the outer cells are frequent: their draws are finite, several, and as frequent as they should be."""
    args = (1.0,) if name == "rayleigh" else ()
    x = np.asarray(getattr(jax.random, name)(jax.random.key(5), *args, shape=(1 << 18,), dtype=dtype).astype("float32")).astype(float)
    assert np.isfinite(x).all()
    p = DISTRIBUTIONS[name](x)
    for beyond in (p < share, p > 1 - share):
        assert 0.7 * share < beyond.mean() < 1.3 * share
        assert len(np.unique(x[beyond])) > 1 or dtype == "bfloat16"


@pytest.mark.ours
def test_the_finer_gumbel_draws_of_half_precision(jax):
    x = np.asarray(jax.random.gumbel(jax.random.key(5), (1 << 18,), "bfloat16", mode="high").astype("float32"))
    assert np.isfinite(x).all() and x.max() < 20 and (x > 9.7).mean() < 3 * np.exp(-9.7) + 2e-5
    fine = np.asarray(jax.random.gumbel(jax.random.key(5), (1 << 18,), "float16", mode="high").astype("float32"))
    assert np.isfinite(fine).all() and fine.max() > 11


@pytest.mark.ours
def test_small_gamma_draws_have_tails(jax):
    """log gamma(a) for small a is log(u) / a, of u from the last cell too."""
    random = jax.random
    x = np.asarray(random.loggamma(random.key(5), 0.01, (1 << 16,), "float16").astype("float32"))
    # of the log of a uniform number: a tail beyond 2^-10 is spread
    far = x[x < 100 * np.log(2.0**-10)]
    assert np.isfinite(x).all() and len(np.unique(far)) > 5


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.ours
def test_uniform_over_all_numbers(jax, jnp, dtype):
    """The distance of the bounds overflows; the numbers between them do not."""
    random, most = jax.random, float(jnp.finfo(dtype).max)
    for low, high in ((-most, most), (-0.875 * most, 0.75 * most), (-most, 0.5 * most)):
        low, high = (float(jnp.asarray(v, dtype)) for v in (low, high))
        for f in (random.uniform, jax.jit(random.uniform, static_argnums=(1, 2))):
            x = np.asarray(f(random.key(2), (4000,), dtype, low, high).astype("float32")).astype(float)
            assert np.isfinite(x).all() and low <= x.min() and x.max() <= high
            assert abs(x.mean() - (low + high) / 2) < 0.03 * (high - low) and abs(x.std() - (high - low) / 12**0.5) < 0.02 * (high - low)
    bounds = jnp.array([0, -most], dtype), jnp.array([1, most], dtype)
    x = random.uniform(random.key(2), (1000, 2), dtype, *bounds)
    np.testing.assert_array_equal(x[:, 0], random.uniform(random.key(2), (1000, 2), dtype)[:, 0])


@pytest.mark.ours
def test_inverse_gaussian_draws_of_a_large_mean(jax):
    """A difference of large numbers gave 0 and infinity."""
    x = np.asarray(jax.random.wald(jax.random.key(1), 1e5, (1 << 16,), "float32")).astype(float)
    # for an infinite mean 1 / x is chi-square of one degree of freedom
    assert np.isfinite(x).all() and x.min() > 0
    for q, share in ((1 / 2.706, 0.10), (1 / 0.4549, 0.5), (1 / 0.0158, 0.90)):
        assert abs((x < q).mean() - share) < 0.01


@pytest.mark.ours
@pytest.mark.parametrize("rate", [1e3, 3e4, 1e5, 1e6, 1e7])
def test_poisson_draws_of_large_rates(jax, rate):
    """Which draws are accepted is decided by a logarithm that is not rounded more than it varies."""
    n = 1 << 17
    z = (np.asarray(jax.random.poisson(jax.random.key(0), rate, (n,))).astype(float) - rate) / rate**0.5
    assert abs(z.mean()) * n**0.5 < 5 and abs(z.var() - 1) * (n / 2) ** 0.5 < 5
    assert abs((z**4).mean() - 3) * (n / 96) ** 0.5 < 5


@pytest.mark.ours
@pytest.mark.parametrize("trials, p", [(1e5, 0.3), (1e6, 0.3), (1e7, 0.3), (1e7, 0.75), (1e6, 5e-5)])
def test_binomial_draws_of_many_trials(jax, trials, p):
    n, p = 1 << 17, float(np.float32(p))
    z = (np.asarray(jax.random.binomial(jax.random.key(0), trials, p, (n,))).astype(float) - trials * p) / (trials * p * (1 - p)) ** 0.5
    assert abs(z.mean()) * n**0.5 < 5 and abs(z.var() - 1) * (n / 2) ** 0.5 < 5
    assert abs((z**4).mean() - 3) * (n / 96) ** 0.5 < 5
