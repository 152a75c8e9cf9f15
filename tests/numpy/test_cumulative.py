"""Running sums of many terms: as accurate as a sum of them, in one documented order, whatever the layout, the direction or the transform.

The order: blocks of 64 elements in turn, the totals of blocks likewise, each block beside the total before it.
"""

import numpy as np
import pytest

RUN = 64


def running(x, combine):
    """The definition, by NumPy in x's dtype, along the first axis."""
    if len(x) <= RUN:
        out = x.copy()
        for i in range(1, len(x)):
            out[i] = combine(out[i - 1], out[i])
        return out
    out = np.concatenate([running(x[i : i + RUN], combine) for i in range(0, len(x), RUN)])
    totals = running(np.array([out[min(i + RUN, len(x)) - 1] for i in range(0, len(x), RUN)]), combine)
    for i in range(RUN, len(x), RUN):
        out[i : i + RUN] = combine(totals[i // RUN - 1], out[i : i + RUN])
    return out


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize(
    "shape", [(63,), (64,), (65,), (255,), (256,), (257,), (4097,), (10_000,), (3, 700), (5, 700), (2, 4200, 3), (300, 40), (300, 270), (9000, 33), (130, 7, 2)]
)
def test_running_sums_have_the_documented_order(jax, jnp, lax, x64, shape, dtype, reverse):
    if jax.__name__ == "jax":
        pytest.skip("another order")
    r = np.random.default_rng(sum(shape))
    x = r.standard_normal(shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        x = (x + 1j * r.standard_normal(shape)).astype(dtype)
    for axis in range(len(shape)):
        lines = np.moveaxis(x, axis, 0)[::-1] if reverse else np.moveaxis(x, axis, 0)
        want = np.moveaxis(running(lines, np.add)[:: -1 if reverse else 1], 0, axis)
        for f in (lambda x, axis=axis: lax.cumsum(x, axis=axis, reverse=reverse), jax.jit(lambda x, axis=axis: lax.cumsum(x * 1, axis=axis, reverse=reverse))):
            np.testing.assert_array_equal(f(jnp.asarray(x)), want)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("terms", ["a constant", "uniform", "of both signs", "one large"])
def test_long_running_sums_are_accurate(jax, jnp, lax, terms, dtype, reverse):
    n = 100_003
    r = np.random.default_rng(0)
    x = {"a constant": np.full(n, 0.1), "uniform": r.random(n), "of both signs": r.standard_normal(n), "one large": np.where(np.arange(n) == 100, 1e3, 1e-3)}[
        terms
    ]
    x = jnp.asarray(x * (2.0**-4 if dtype == "float16" else 1)).astype(dtype)
    exact = np.asarray(x).astype(np.float64)
    exact = np.cumsum(exact[::-1])[::-1] if reverse else np.cumsum(exact)
    got = np.asarray(lax.cumsum(x, reverse=reverse)).astype(np.float64)
    if jax.__name__ != "jax":
        size = np.abs(exact) if terms != "of both signs" else np.maximum(np.abs(exact), np.sqrt(np.arange(1.0, n + 1)[:: -1 if reverse else 1]))
        assert (np.abs(got - exact) / size).max() < (2e-6 if dtype == "float32" else float(jnp.finfo(dtype).eps))


@pytest.mark.parametrize("reverse", [False, True])
def test_long_running_logsumexps_are_accurate(jax, jnp, lax, reverse):
    n = 50_000
    x = np.random.default_rng(0).standard_normal((n, 2)).astype(np.float32)
    lines = x.astype(np.float64)[:: -1 if reverse else 1]
    exact = np.log(np.cumsum(np.exp(lines), 0))[:: -1 if reverse else 1]
    np.testing.assert_allclose(lax.cumlogsumexp(jnp.asarray(x), axis=0, reverse=reverse), exact, rtol=1e-6, atol=1e-6)
    for k in range(2):
        np.testing.assert_allclose(lax.cumlogsumexp(jnp.asarray(x[:, k]), reverse=reverse), exact[:, k], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.float32])
def test_running_sums_of_small_integers_are_exact(jnp, dtype):
    x = np.random.default_rng(0).integers(-3 if np.dtype(dtype).kind != "u" else 0, 4, (5000, 3)).astype(dtype)
    np.testing.assert_array_equal(jnp.cumsum(x, 0, dtype=dtype), np.cumsum(x, 0, dtype=dtype))
    np.testing.assert_array_equal(jnp.cumsum(x[:, 1], dtype=dtype), np.cumsum(x[:, 1], dtype=dtype))


def test_choices_by_many_equal_weights_are_balanced(jax, jnp):
    n, draws = 500_000, 400_000
    picked = np.asarray(jax.random.choice(jax.random.key(0), n, (draws,), p=jnp.full(n, 1 / n, np.float32)))
    share = (picked < n // 2).mean()
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(draws)
