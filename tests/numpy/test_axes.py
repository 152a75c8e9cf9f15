"""Axes, counts and flags in every form that is one: NumPy's numbers, arrays of one number, lists, sets, ranges; the results are those of the plain form."""

import numpy as np
import pytest

X = np.linspace(0.5, 3, 6, dtype=np.float32).reshape(2, 3)
# Forms of the axis 1, and of the axes (0, 1).
ONE = {
    "number": np.int64(1),
    "scalar array": np.array(1),
    "list": [1],
    "array": np.array([1]),
    "range": range(1, 2),
    "set": {1},
    "tuple of NumPy's": (np.int32(1),),
}
TWO = {"list": [0, 1], "array": np.array([0, 1]), "range": range(2), "negative": (0, -1), "NumPy's": (np.int64(0), np.int32(-1))}


def functions(jax):
    jnp, special = jax.numpy, jax.scipy.special
    yield from {
        "logsumexp": special.logsumexp,
        "logmeanexp": jax.nn.logmeanexp,
        "vector_norm": lambda x, axis: jnp.linalg.vector_norm(x, axis=axis),
        "flip": jnp.flip,
        "expand_dims": jnp.expand_dims,
    }.items()


NAMES = ["logsumexp", "logmeanexp", "vector_norm", "flip", "expand_dims"]


@pytest.mark.parametrize("form", [*ONE, "jax scalar", "jax vector"])
@pytest.mark.parametrize("name", NAMES)
def test_one_axis_in_any_form(jax, name, form):
    f = dict(functions(jax))[name]
    axis = jax.numpy.asarray({"jax scalar": 1, "jax vector": [1]}[form]) if form not in ONE else ONE[form]
    np.testing.assert_array_equal(f(X, axis), f(X, 1))


@pytest.mark.parametrize("form", TWO)
@pytest.mark.parametrize("name", NAMES)
def test_two_axes_in_any_form(jax, name, form):
    f = dict(functions(jax))[name]
    np.testing.assert_array_equal(f(X, TWO[form]), f(X, (0, 1) if form not in ("negative", "NumPy's") or name != "expand_dims" else (0, -1)))


@pytest.mark.parametrize("axes", [(0, 0), (1, -1), [0, -2, 1]], ids=str)
def test_gradient_along_an_axis_twice(jnp, axes):
    for got, axis in zip(jnp.gradient(X, axis=axes), axes, strict=True):
        np.testing.assert_array_equal(got, jnp.gradient(X, axis=axis))


@pytest.mark.parametrize("flag,value", [(None, False), (0, False), ("x", True), (np.bool_(True), True)], ids=str)
def test_flags_are_true_or_false_as_python_has_it(jnp, flag, value):
    x = np.array([1, np.nan], np.float32)
    np.testing.assert_array_equal(jnp.isclose(x, x, equal_nan=flag), [True, value])
    assert bool(jnp.allclose(x, x, equal_nan=flag)) is value


def test_cov_without_a_bias_is_biased(jnp):
    np.testing.assert_allclose(jnp.cov(X, bias=None), jnp.cov(X, bias=True))
    np.testing.assert_allclose(jnp.cov(X, bias=0), jnp.cov(X))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("decimals", [5, 38, 39, 99, 400])
def test_rounding_to_more_decimals_than_a_float_has(jnp, dtype, decimals):
    x = jnp.asarray(X, dtype)
    np.testing.assert_allclose(np.asarray(jnp.round(x, decimals), np.complex64), np.asarray(x, np.complex64), rtol=1e-2 if dtype == "bfloat16" else 1e-3)


def test_a_number_of_sections_may_be_a_float(jnp):
    for split in (jnp.split, jnp.array_split, jnp.vsplit):
        assert [p.shape for p in split(X, 2.0)] == [(1, 3), (1, 3)]


def test_compress_with_a_size_drops_further_elements(jnp):
    np.testing.assert_array_equal(jnp.compress(np.array([0, 1, 1, 1]), np.array([4, 5]), size=2, fill_value=7), [5, 7])
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.compress(np.array([0, 1, 1]), np.array([4, 5]))


@pytest.mark.parametrize("dtype,want", [("int32", "float32"), ("bool", "float32"), ("float16", "float16"), ("complex64", "complex64")])
def test_the_polynomial_without_zeros(jnp, dtype, want):
    one = jnp.poly(np.zeros(0, dtype))
    assert one.shape == () and one.dtype == want and one == 1


@pytest.mark.parametrize("form", [*TWO, "jax vector"])
@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_axes_of_shifts_in_any_form(jnp, name, form):
    f = getattr(jnp.fft, name)
    axes = jnp.array([0, 1]) if form == "jax vector" else TWO[form]
    np.testing.assert_array_equal(f(X, axes), f(X, (0, 1)))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_a_transform_along_no_axis_is_along_all(jnp, name):
    f, many = getattr(jnp.fft, name), getattr(jnp.fft, name + "n")
    np.testing.assert_allclose(f(X, axis=None), many(X), rtol=1e-6)
    np.testing.assert_allclose(f(X, 4, axis=None), f(X, 4), rtol=1e-6)


def test_repeats_of_any_shape_are_a_list(jnp):
    np.testing.assert_array_equal(jnp.repeat(X, np.arange(6).reshape(3, 2)), np.repeat(X.ravel(), np.arange(6)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "complex64"])
def test_the_angle_of_a_scalar_is_of_the_default_precision(jnp, dtype):
    x = jnp.ones((2,), dtype)
    assert jnp.angle(x[0]).dtype == "float32"
    assert jnp.angle(x).dtype == (dtype if "16" in dtype else "float32")
