"""Sums, counts and squares of floats of 16 bits on the way to a result: none is rounded, or leaves the dtype's range, before the result is.

The law: a function gives what it gives of the same numbers in float64, rounded once more or less, and so does its derivative.
"""

import numpy as np
import pytest

N = 70_000  # more than float16 can count
MANY = {
    "ones": np.ones(N),
    "equal": np.full(N, 300.0),
    "both signs": np.where(np.arange(N) % 2, 300.0, -300.0),
    "tiny": np.where(np.arange(N) % 3, 1e-4, 3e-4),
    "one differs": np.where(np.arange(N) == 5, 2.0, 0.5),
}
REDUCTIONS = {
    "max": lambda j, n, x: n.max(x),
    "min": lambda j, n, x: n.min(x),
    "amax of rows": lambda j, n, x: n.amax(x.reshape(2, -1), 1).sum(),
    "max of columns": lambda j, n, x: n.max(x.reshape(-1, 2), 0).sum(),
    "nanmax": lambda j, n, x: n.nanmax(x),
    "nanmin": lambda j, n, x: n.nanmin(x),
    "mean": lambda j, n, x: n.mean(x),
    "mean where": lambda j, n, x: n.mean(x, where=n.arange(N) > 3),
    "nanmean": lambda j, n, x: n.nanmean(x),
    "average": lambda j, n, x: n.average(x, weights=n.full(N, 2, x.dtype)),
    "var": lambda j, n, x: n.var(x / 4),
    "nanvar": lambda j, n, x: n.nanvar(x / 4),
    "std": lambda j, n, x: n.std(x),
    "nanstd": lambda j, n, x: n.nanstd(x),
    "ptp": lambda j, n, x: n.ptp(x),
    "median": lambda j, n, x: n.median(x),
    "norm": lambda j, n, x: n.linalg.norm(x / 4),
    "norm of few": lambda j, n, x: n.linalg.norm(x[:4]),
    "norm of order 3": lambda j, n, x: n.linalg.norm(x, ord=3),
    "norm inf": lambda j, n, x: n.linalg.norm(x, ord=n.inf),
    "norm of a matrix": lambda j, n, x: n.linalg.norm(x[:16].reshape(4, 4)),
    "logsumexp": lambda j, n, x: j.scipy.special.logsumexp(x),
    "weighted logsumexp": lambda j, n, x: j.scipy.special.logsumexp(x, b=n.ones(N, x.dtype)),
    "logsumexp where": lambda j, n, x: j.nn.logsumexp(x, where=n.arange(N) > 3),
    "logaddexp.reduce": lambda j, n, x: n.logaddexp.reduce(x),
    "logaddexp2.reduce of rows": lambda j, n, x: n.logaddexp2.reduce(x.reshape(-1, 2), (1, 0)),
    "logaddexp.reduce where": lambda j, n, x: n.logaddexp.reduce(x, where=n.arange(N) > 3, initial=1.5),
    "logaddexp.accumulate": lambda j, n, x: n.logaddexp.accumulate(x)[-1],
    "logaddexp2.accumulate": lambda j, n, x: n.logaddexp2.accumulate(x)[-1],
    "subtract.reduce": lambda j, n, x: n.subtract.reduce(x[:300] / 8),
    "subtract.accumulate": lambda j, n, x: n.subtract.accumulate(x[:300] / 8)[-1],
    "add.reduceat": lambda j, n, x: n.add.reduceat(x[:300] / 8, n.array([0, 7]))[1],
    "multiply.reduceat": lambda j, n, x: n.multiply.reduceat(x[:12] / 256, n.array([0, 3]))[1],
    "logmeanexp": lambda j, n, x: j.nn.logmeanexp(x),
    "log_softmax": lambda j, n, x: j.nn.log_softmax(x)[7],
    "log_softmax where": lambda j, n, x: j.nn.log_softmax(x, where=n.arange(N) > 3)[7],
    "softmax": lambda j, n, x: j.nn.softmax(x)[5],
    "scipy's softmax": lambda j, n, x: j.scipy.special.softmax(x)[5],
    "standardize": lambda j, n, x: j.nn.standardize(x, epsilon=1e-4)[5],
    "stable standardize": lambda j, n, x: j.nn.standardize(x, epsilon=1e-4, algorithm="stable")[5],
    "cov": lambda j, n, x: n.cov(x / 4),
    "segment_max": lambda j, n, x: j.ops.segment_max(x, n.zeros(N, int), 1)[0],
    "trapezoid": lambda j, n, x: n.trapezoid(x, dx=1 / 4096) / 16,
    "trapezoid over points": lambda j, n, x: n.trapezoid(x[:128], n.arange(128, dtype=x.dtype) / 128),
    "quantile": lambda j, n, x: n.quantile(x, 0.75),
    "percentile": lambda j, n, x: n.percentile(x, n.asarray(75, x.dtype)),
    "scattered minimum": lambda j, n, x: n.full(1, 1000, x.dtype).at[n.zeros(N, int)].min(x)[0],
}
# A derivative that is the difference of nearly equal terms, in elements that a narrow float does not tell apart.
CANCELS = {("std", "ones"), ("nanstd", "ones"), ("std", "equal"), ("nanstd", "equal")}


@pytest.mark.parametrize("values", MANY)
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_reductions_of_many_narrow_floats(jax, jnp, x64, dtype, name, values):
    if jax.__name__ == "jax":
        pytest.skip("JAX rounds counts and sums")
    f = lambda x: REDUCTIONS[name](jax, jnp, x)
    x = jnp.asarray(MANY[values]).astype(dtype)
    wide = x.astype("float64")
    eps, tiny = float(jnp.finfo(dtype).eps), float(jnp.finfo(dtype).smallest_subnormal)
    (got, slope), (want, want_slope) = jax.value_and_grad(f)(x), jax.value_and_grad(f)(wide)
    assert got.dtype == x.dtype
    np.testing.assert_allclose(float(got), float(want), rtol=4 * eps, atol=2 * tiny + (eps if "softmax" in name or "standard" in name else 0))
    if (name, values) in CANCELS:
        assert np.isfinite(np.asarray(slope, float)).all()
        return
    size = np.abs(np.asarray(want_slope)).max()
    np.testing.assert_allclose(np.asarray(slope, float), want_slope, rtol=16 * eps, atol=16 * eps * size + 2 * tiny)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_slopes_of_many_equal_terms_sum_to_one(jax, jnp, dtype):
    if jax.__name__ == "jax":
        pytest.skip("JAX rounds counts and sums")
    x = jnp.zeros(2**16, dtype)
    for f in (jnp.max, jnp.min, jax.nn.logsumexp, jnp.mean, jnp.nanmean, jax.nn.logmeanexp):
        assert set(np.asarray(jax.grad(f)(x), float).tolist()) == {2.0**-16}
    assert float(jax.nn.logsumexp(x)) == pytest.approx(16 * np.log(2), rel=1e-2)
    assert not np.asarray(jax.grad(lambda x: jax.nn.log_softmax(x).sum())(x), float).any()
    assert not np.asarray(jax.jvp(jnp.max, (x,), (jnp.ones_like(x),))[1] - 1, float).any()


MEETING = {
    "segment_sum": lambda j, n, x: j.ops.segment_sum(x, n.arange(x.size) % 2, 2)[1],
    "bincount": lambda j, n, x: n.bincount(n.arange(x.size) % 3, weights=x, length=3)[1],
    "add": lambda j, n, x: n.ones(4, x.dtype).at[n.arange(x.size) % 4].add(x)[2],
    "add of rows": lambda j, n, x: n.ones((3, 2), x.dtype).at[n.arange(x.size // 2) % 3].add(x.reshape(-1, 2))[1, 1],
    "subtract": lambda j, n, x: (x[:4] * 2).at[n.arange(x.size) % 4].subtract(x)[2],
    "add to few of many": lambda j, n, x: n.zeros(10**5, x.dtype).at[n.arange(x.size) % 5 * 20000].add(x)[40000],
    "gather": lambda j, n, x: n.mean(x[:7][n.arange(x.size) % 7]),
    "take of rows": lambda j, n, x: n.mean(n.take(x[:9].reshape(3, 3), n.arange(x.size) % 3, axis=0)),
    "take_along_axis": lambda j, n, x: n.sum(n.take_along_axis(x[:6].reshape(2, 3), n.arange(3000).reshape(2, -1) % 3, 1)),
}


@pytest.mark.ours
@pytest.mark.parametrize("name", MEETING)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_many_narrow_floats_scattered_to_one_element(jax, jnp, x64, dtype, name):
    """A sum of 256 ones is the last that bfloat16 tells from the next, of 2048 that of float16: updates are added in single precision."""
    f = lambda x: MEETING[name](jax, jnp, x)
    x = jnp.asarray(1 + np.arange(9000) % 5 / 8).astype(dtype)
    wide, eps = x.astype("float64"), float(jnp.finfo(dtype).eps)
    (want, want_slope), rows = jax.value_and_grad(f)(wide), jax.vmap(f)(jnp.stack([x, x]))
    assert rows.dtype == x.dtype
    np.testing.assert_allclose(np.asarray(rows, float), [float(want)] * 2, rtol=4 * eps)
    for grad in (jax.value_and_grad(f), jax.jit(jax.value_and_grad(f))):
        got, slope = grad(x)
        np.testing.assert_allclose(float(got), float(want), rtol=4 * eps)
        np.testing.assert_allclose(np.asarray(slope, float), want_slope, rtol=8 * eps, atol=1e-9)
