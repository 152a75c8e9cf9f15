"""Draws of normal distributions that are cut: in both tails, far out, of narrow and of one-sided intervals."""

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
import pytest
from ferrax import random

COUNT = 50_000
INTERVALS = [
    (-1.0, 1.0), (0.0, np.inf), (3.0, 9.0), (3.9, 4.1), (4.5, 5.0), (5.0, 6.0), (5.0, np.inf), (6.5, 6.6), (8.0, 8.1), (10.0, 12.0), (20.0, np.inf),
    (30.0, np.inf), (30.0, 30.01), (29.0, 200.0),
]  # fmt: skip


@pytest.fixture(autouse=True)
def wide(x64):
    """Both widths are there."""


def moments(low, high):
    """Mean and variance of x - low, by Gauss and Legendre's rule over where the density is not nothing."""
    end = min(high - low, 40 / max(low, 1))
    nodes, weights = np.polynomial.legendre.leggauss(300)
    d = (nodes + 1) / 2 * end
    weights = weights * np.exp(-d * (low + d / 2))
    mean = np.average(d, weights=weights)
    return mean, np.average((d - mean) ** 2, weights=weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("low, high", INTERVALS)
@pytest.mark.parametrize("side", [1, -1])
def test_moments(dtype, low, high, side):
    bounds = (low, high) if side > 0 else (-high, -low)
    x = np.asarray(random.truncated_normal(random.key(2), *bounds, (COUNT,), dtype))
    assert x.dtype == dtype and (x > bounds[0]).all() and (x < bounds[1]).all()
    d = side * x.astype(np.float64) - low
    mean, variance = moments(low, high)
    assert abs(d.mean() - mean) < 5 * np.sqrt(variance / COUNT)
    assert abs(d.var() / variance - 1) < 0.03
    # As many values as there are numbers, or as bits are drawn; of an interval that is not far, as many as its error function has.
    numbers = 6 * np.sqrt(variance) / np.spacing(dtype(low if low else 1))
    if low == 3.9:
        numbers = 9000
    assert len(np.unique(x)) > 0.1 * min(COUNT, numbers)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16], ids=["float16", "bfloat16"])
def test_half_precision_fills_what_it_has(dtype):
    for low, high in [(2.5, 3.5), (5.0, 6.0), (-6.0, -5.0), (10.0, 14.0)]:
        x = np.asarray(random.truncated_normal(random.key(2), low, high, (20_000,), dtype)).astype(np.float64)
        assert low <= x.min() and x.max() <= high
        numbers = 1 / abs(low) / (float(jnp.finfo(dtype).eps) * abs(low))
        assert len(np.unique(x)) > numbers


def test_far_bounds_may_be_traced_and_mixed():
    low, high = jnp.array([-1.0, 5.0, -np.inf, 3.0, 7.0]), jnp.array([1.0, 6.0, -20.0, 9.0, np.inf])
    one = lambda a, b: random.truncated_normal(random.key(0), a, b, (), jnp.float32)
    each = [float(one(float(a), float(b))) for a, b in zip(low, high, strict=True)]
    np.testing.assert_array_equal(jax.vmap(one)(low, high), each)
    np.testing.assert_array_equal([jax.jit(one)(a, b) for a, b in zip(low, high, strict=True)], each)
    for slope in jax.vmap(jax.grad(one, (0, 1)))(low, high):
        assert np.isfinite(slope).all()


@pytest.mark.parametrize("low, high", [(6.5, 7.0), (8.0, 8.3), (-9.0, -7.0), (20.0, 21.0)])
def test_slopes_by_the_bounds(low, high):
    f = lambda a, b: random.truncated_normal(random.key(1), a, b, (50,), jnp.float64)
    forward, reverse = jax.jacfwd(f, (0, 1))(low, high), jax.jacrev(f, (0, 1))(low, high)
    h = 1e-5
    want = ((f(low + h, high) - f(low - h, high)) / (2 * h), (f(low, high + h) - f(low, high - h)) / (2 * h))
    for a, b, c in zip(forward, reverse, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-8)
