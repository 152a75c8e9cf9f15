"""Medians, quantiles and percentiles of nothing: nan of the shape that a reduction has, as numpy's median; and of slices of nan alone."""

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
import pytest

SHAPES = [((0,), None), ((0,), 0), ((3, 0), 1), ((3, 0), 0), ((0, 3), 0), ((0, 3), 1), ((0, 3), None), ((2, 0, 3), 1), ((2, 0, 3), (0, 1)), ((0, 0), 0)]
METHODS = ["linear", "lower", "higher", "midpoint", "nearest"]


@pytest.fixture(autouse=True)
def wide(x64):
    """Both widths are there."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, jnp.bfloat16], ids=["float32", "float64", "int32", "bfloat16"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_medians_of_empty_arrays(shape, axis, dtype, keepdims):
    a = jnp.zeros(shape, dtype)
    want = np.median(np.zeros(shape), axis=axis, keepdims=keepdims)
    of = jnp.mean(a, axis=axis).dtype
    for f in (jnp.median, jnp.nanmedian):
        got = f(a, axis=axis, keepdims=keepdims)
        np.testing.assert_array_equal(np.asarray(got, np.float64), want)
        assert got.dtype == of
        np.testing.assert_array_equal(np.asarray(jax.jit(lambda a: f(a, axis=axis, keepdims=keepdims))(a), np.float64), want)


@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("q", [0.5, [0.25, 0.5], []], ids=["one", "two", "none"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_quantiles_of_empty_arrays(shape, axis, q, name):
    q = jnp.asarray(q, jnp.float64)
    for method in METHODS:
        for keepdims in (False, True):
            f = lambda a: getattr(jnp, name)(a, q, axis=axis, method=method, keepdims=keepdims)
            got = f(jnp.zeros(shape))
            want = (*q.shape, *np.zeros(shape).sum(axis=axis, keepdims=keepdims).shape)
            assert got.shape == want
            assert np.isnan(got).all()
            assert jax.grad(lambda a: f(a).sum())(jnp.zeros(shape)).shape == shape


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
def test_quantiles_of_slices_of_nan_alone(method):
    a = np.array([[1.0, np.nan, 3.0], [np.nan] * 3])
    for q in (0.0, 0.3, [0.25, 1.0]):
        np.testing.assert_allclose(jnp.nanquantile(a, jnp.asarray(q), axis=1, method=method), np.nanquantile(a, q, axis=1, method=method))
        np.testing.assert_allclose(jnp.nanmedian(a, axis=1), np.nanmedian(a, axis=1))
