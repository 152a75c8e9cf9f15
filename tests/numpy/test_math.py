"""Elementwise functions against numpy: in float32 against the value in float64, integers exactly."""

import math
import operator
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import FLOATS, INTS, SLACK, SMALLEST, arrays, broadcastable, floats, same, same_bits

# name: (from, to, units in the last place of float32 allowed)
UNARY = {
    "abs": (None, None, 0), "negative": (None, None, 0), "sign": (None, None, 0), "floor": (None, None, 0), "ceil": (None, None, 0),
    "trunc": (None, None, 0), "rint": (None, None, 0), "square": (None, None, 1), "sqrt": (0, None, 1), "reciprocal": (None, None, 1),
    "exp": (-87, 88, 2), "exp2": (-125, 127, 2), "expm1": (-87, 88, 2), "log": (1e-37, None, 2), "log2": (1e-37, None, 2),
    "log10": (1e-37, None, 3), "log1p": (-0.9999, None, 2), "sin": (-1e4, 1e4, 2), "cos": (-1e4, 1e4, 2), "tan": (-1e4, 1e4, 3),
    "arcsin": (-1, 1, 3), "arccos": (-1, 1, 3), "arctan": (None, None, 2), "sinh": (-88, 88, 3), "cosh": (-88, 88, 3), "tanh": (None, None, 2),
    "arcsinh": (None, None, 4), "arccosh": (1, None, 4), "arctanh": (-0.9999, 0.9999, 4), "cbrt": (None, None, 2),
    "isnan": (None, None, 0), "isinf": (None, None, 0), "isfinite": (None, None, 0), "signbit": (None, None, 0),
    "deg2rad": (None, None, 2), "rad2deg": (-1e30, 1e30, 2),
}  # fmt: skip


def ulps(got, exact):
    """The largest distance of float32 `got` from float64 `exact`, in units in the last place; inf and NaN must match."""
    got, exact = np.asarray(got), np.asarray(exact)
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        wild = ~np.isfinite(rounded) | ~np.isfinite(got)
        np.testing.assert_array_equal(got[wild], rounded[wild])
        unit = np.maximum(np.spacing(np.abs(rounded)).astype(np.float64), SMALLEST)[~wild]
    return np.max(np.abs(got[~wild].astype(np.float64) - exact[~wild]) / unit, initial=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_by_constants(jnp, jax, x64, dtype):
    """Quotients by powers of two are products: they have the bits of quotients, between the smallest and the greatest of either, and of infinities and nans."""
    info = np.finfo(dtype)
    few = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, -3 * info.smallest_subnormal, 1 / 3, -np.pi * 1e30]
    x = np.concatenate([np.array(few, dtype), (np.random.default_rng(0).normal(size=60) * 2.0 ** np.linspace(-120, 120, 60)).astype(dtype)])
    lowest, highest = int(np.log2(info.smallest_subnormal)), int(info.maxexp) - 1
    for k in [*range(lowest, lowest + 4), *range(int(info.minexp) - 2, int(info.minexp) + 3), -2, -1, 0, 1, 9, *range(highest - 3, highest + 1)]:
        for c in (np.ldexp(1.0, k), -np.ldexp(1.0, k), 3 * np.ldexp(1.0, k - 1)):
            c = np.asarray(c, dtype)
            with np.errstate(all="ignore"):
                want = x / c
            for got in (jax.jit(lambda x, c=c: x / c)(x), jnp.asarray(x) / c):
                np.testing.assert_array_equal(np.asarray(got), want, str(c))
                assert (np.signbit(np.asarray(got)) == np.signbit(want))[~np.isnan(want)].all(), c


@pytest.mark.parametrize("name", UNARY)
@given(data=st.data())
def test_unary_float(jnp, name, data):
    low, high, allowed = UNARY[name]
    x = data.draw(arrays(np.float32, elements=floats(np.float32, low, high)))
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype(np.float64))
    got = np.asarray(getattr(jnp, name)(x))
    if want.dtype == bool:
        same(got, want)
    else:
        assert got.dtype == np.float32 and got.shape == x.shape
        assert ulps(got, want) <= max(allowed, 0.5) * SLACK


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "arctan2", "sqrt"])
def test_special_values(jnp, name):
    edges = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 2e-38, -2e-38], np.float32)
    with np.errstate(all="ignore"):
        if name == "arctan2":
            x, y = (a.ravel() for a in np.meshgrid(edges, edges))
            got, want = jnp.arctan2(x, y), np.arctan2(x, y)
        else:
            got, want = getattr(jnp, name)(edges), getattr(np, name)(edges)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=2e-38)
    zero = (np.asarray(want) == 0) & (np.asarray(got) == 0)
    assert np.array_equal(np.signbit(np.asarray(got))[zero], np.signbit(want)[zero])


INTEGER_BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"]
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]


@pytest.mark.parametrize("name", INTEGER_BINARY + COMPARISONS)
@given(data=st.data())
def test_integers_wrap_as_numpy_does(jnp, name, data):
    dtype = data.draw(st.sampled_from(INTS))
    x, y = data.draw(broadcastable([dtype]))
    with np.errstate(all="ignore"):
        same(getattr(jnp, name)(x, y), getattr(np, name)(x, y))


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "divmod", "fmod", "power"])
@given(data=st.data())
def test_integer_division_and_power(jnp, name, data):
    dtype = data.draw(st.sampled_from([np.int32, np.uint8, np.int16]))
    x, y = data.draw(broadcastable([dtype]))
    y = np.abs(y) % 7 + np.asarray(1, dtype)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
        got = getattr(jnp, name)(x, y)
    for g, w in zip(got, want, strict=True) if name == "divmod" else [(got, want)]:
        same(g, w)


@given(st.data())
def test_shifts(jnp, data):
    dtype = data.draw(st.sampled_from(INTS))
    x = data.draw(arrays(dtype, (5,)))
    s = data.draw(arrays(dtype, (5,), elements=st.integers(0, np.dtype(dtype).itemsize * 8 - 1)))
    same(jnp.left_shift(x, s), np.left_shift(x, s))
    same(jnp.right_shift(x, s), np.right_shift(x, s))


@pytest.mark.ours
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "true_divide", "maximum", "minimum", "copysign"])
@given(data=st.data())
def test_float_arithmetic_is_exactly_rounded(jnp, name, data):
    x, y = data.draw(broadcastable([np.float32]))
    if name == "true_divide":
        y = np.where(y == 0, np.float32(1), y).astype(np.float32)
    check = same if name in ("maximum", "minimum") else same_bits
    with np.errstate(all="ignore"):
        check(getattr(jnp, name)(x, y), getattr(np, name)(x, y))


@pytest.mark.parametrize("name", ["hypot", "arctan2", "logaddexp", "fmod", "remainder", "floor_divide", "float_power", "nextafter", "heaviside"])
@given(data=st.data())
def test_float_binary(jnp, name, data):
    x, y = data.draw(broadcastable([np.float32]))
    if name in ("fmod", "remainder", "floor_divide"):
        y = np.where(np.abs(y) < 1e-3, np.float32(1), y).astype(np.float32)
    if name == "float_power":
        x, y = np.abs(x).astype(np.float32) + np.float32(0.01), np.clip(y, -8, 8)
    with np.errstate(all="ignore"):
        want = np.asarray(getattr(np, name)(x, y), np.float32)
    np.testing.assert_allclose(getattr(jnp, name)(x, y), want, rtol=1e-5, atol=1e-6)


@given(st.data())
def test_where_and_clip(jnp, data):
    x, y = data.draw(broadcastable([np.float32]))
    c = data.draw(arrays(bool, np.broadcast_shapes(x.shape, y.shape)))
    same(jnp.where(c, x, y), np.where(c, x, y))
    same(jnp.clip(x, -1, 1), np.clip(x, -1, 1))


@pytest.mark.parametrize("target", ["float16", "float32", "int8", "int32", "uint8", "uint32", "bool", "complex64"])
@given(data=st.data())
def test_conversions_in_range(jnp, target, data):
    source = data.draw(st.sampled_from(FLOATS + INTS))
    high = 100 if target != "bool" else 2
    low = 0 if np.dtype(source).kind == "u" or np.dtype(target).kind == "u" else -high
    elements = st.integers(low, high) if np.dtype(source).kind in "iu" else floats(source, low, high)
    x = data.draw(arrays(source, elements=elements))
    same(jnp.asarray(x).astype(target), x.astype(target))


def test_float_to_integer_saturates(jnp):
    x = jnp.array([1e20, -1e20, jnp.nan, jnp.inf, -jnp.inf, 1.9, -1.9], jnp.float32)
    assert np.asarray(x.astype(jnp.int32)).tolist() == [2**31 - 1, -(2**31), 0, 2**31 - 1, -(2**31), 1, -1]
    assert np.asarray(x.astype(jnp.uint8)).tolist() == [255, 0, 0, 255, 0, 1, 0]


@pytest.mark.parametrize("name", ["add", "multiply", "exp", "tanh", "sqrt"])
def test_narrow_floats_round_once(jnp, name):
    x = np.linspace(0.1, 8, 50).astype(np.float16)
    y = x[::-1].copy()
    args = (x, y) if name in ("add", "multiply") else (x,)
    want = getattr(np, name)(*(a.astype(np.float64) for a in args))
    got = np.asarray(getattr(jnp, name)(*args))
    assert got.dtype == np.float16
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2**-10)


@given(z=st.lists(st.complex_numbers(max_magnitude=50, min_magnitude=0.01), min_size=1, max_size=4))
def test_complex(jnp, z):
    # A zero imaginary part puts a root on its cut, where the sign of the zero decides.
    z = np.array([v if abs(v.imag) > 1e-3 else v + 0.5j for v in z], np.complex64)
    wide = z.astype(np.complex128)
    for name in ("exp", "sqrt", "conj", "real", "imag", "abs", "angle", "square", "negative"):
        want = getattr(np, name)(wide)
        scale = max(float(np.max(np.abs(want))), 1e-3)
        np.testing.assert_allclose(np.asarray(getattr(jnp, name)(z)), want, rtol=2e-5, atol=2e-6 * scale)
    np.testing.assert_allclose(np.asarray(jnp.asarray(z) * z), wide * wide, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(np.asarray(jnp.asarray(z) / z), np.ones(z.shape), rtol=1e-4)


PARTS = st.sampled_from([-1.0, 0.0, 2.0, np.nan])


@given(x=st.lists(st.builds(complex, PARTS, PARTS), min_size=3, max_size=3), y=st.lists(st.builds(complex, PARTS, PARTS), min_size=3, max_size=3))
def test_complex_numbers_are_ordered_by_real_then_imaginary_part(jnp, x, y):
    def by_parts(f):
        return [f(u.imag, v.imag) if u.real == v.real else f(u.real, v.real) for u, v in zip(x, y, strict=True)]

    a, b = jnp.array(x, complex), jnp.array(y, complex)
    for name, symbol in (("less", "lt"), ("less_equal", "le"), ("greater", "gt"), ("greater_equal", "ge")):
        f = getattr(operator, symbol)
        assert np.asarray(getattr(jnp, name)(a, b)).tolist() == np.asarray(f(a, b)).tolist() == by_parts(f)
        assert np.asarray(f(a, 1.0)).tolist() == np.asarray(f(a, jnp.ones(3, complex))).tolist()


def test_arctan2_of_complex_numbers_is_the_angle_of_their_sum(jnp):
    y, x = np.array([0.3 + 0.2j, -1 + 2j, 3j, 1 - 0.5j], np.complex64), np.array([1 + 1j, -2 + 0.1j, 0.5 + 0j, -1 + 0.2j], np.complex64)
    wide = y.astype(complex), x.astype(complex)
    want = -1j * np.log((wide[1] + 1j * wide[0]) / np.sqrt(wide[1] ** 2 + wide[0] ** 2))
    np.testing.assert_allclose(jnp.arctan2(y, x), want, rtol=2e-6)


def test_results_of_comparisons_are_weak_where_the_operands_are(jax, jnp):
    assert jnp.equal(1, 2.0).weak_type and (jnp.array(True) == 1).weak_type and jnp.isnan(1.0).weak_type
    assert not (jnp.arange(3) < 2).weak_type and jnp.arange(3)[jnp.equal(1, 1)].shape == (1, 3)
    assert jnp.where(jnp.less(1, 2), 1, 2) == 1 and (jnp.array([True]) & jnp.equal(1, 1)).dtype == bool


def test_booleans_count_as_narrow_integers(jnp, x64):
    b = jnp.array([True, False])
    for y in (b << b, b >> b, b**b, b**2, jnp.square(b), b // True, b % True, jnp.fmod(b, True), jnp.left_shift(b, True)):
        assert y.dtype == np.int32
    assert (2**b).dtype == np.int64 and not (2**b).weak_type


@pytest.mark.ours
@pytest.mark.parametrize("name", ["arcsin", "arccos", "arcsinh", "arccosh", "arctan", "arctanh", "sqrt", "log", "log1p"])
def test_on_a_branch_cut_the_sign_of_zero_decides_on_the_side(jnp, name):
    # JAX takes -0 for 0 in all but the arctangents and logarithms.
    z = np.array([complex(x, y) for x in (3.0, -3.0, 0.5, -0.5, 2.0, 0.0, -0.0) for y in (0.0, -0.0, 2.0, -2.0)])
    with np.errstate(all="ignore"):
        want = getattr(np, name)(z)
    got = np.asarray(getattr(jnp, name)(z.astype(np.complex64)))
    finite = np.isfinite(want)
    np.testing.assert_allclose(got[finite], want[finite], rtol=1e-6, atol=1e-7)


def test_doubles_are_doubles(jnp, x64):
    x = np.linspace(0.1, 5, 101)
    for name in ("exp", "log", "sin", "cos", "tanh", "sqrt", "log1p", "expm1", "arctan"):
        got = np.asarray(getattr(jnp, name)(x))
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, getattr(np, name)(x), rtol=1e-15)


def test_special_functions(jax, jnp):
    x = np.array([-3, -1, -0.5, 0.1, 0.5, 1, 2, 5], np.float32)
    np.testing.assert_allclose(jax.lax.erf(x), [math.erf(v) for v in x], rtol=1e-6)
    np.testing.assert_allclose(jax.lax.erfc(x), [math.erfc(v) for v in x], rtol=2e-5)
    np.testing.assert_allclose(jax.lax.lgamma(np.abs(x)), [math.lgamma(abs(v)) for v in x], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.lax.erf_inv(np.float32([-0.5, 0.1, 0.9])), [-0.47693628, 0.08885599, 1.1630871], rtol=1e-5)
    np.testing.assert_allclose(jax.lax.digamma(np.float32([0.5, 1, 10])), [-1.9635100, -0.5772157, 2.2517526], rtol=1e-5)


def test_numpy_functions_accept_the_arguments_of_numpy(jnp):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in (2, 2.5, True, np.float32(2), np.int8(2), np.arange(3), 1 + 2j):
            np.testing.assert_allclose(np.asarray(jnp.add(value, 1)), np.add(value, 1), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex64])
def test_a_product_with_booleans_is_a_selection(jax, jnp, dtype):
    x = np.array([np.inf, np.nan, -1, 2, -0.0], dtype)
    mask = np.array([True, False, False, True, True])
    want = np.where(mask, x, 0)
    for f in (jnp.multiply, lambda x, m: m * x, jax.jit(lambda x, m: x * m), jax.vmap(jnp.multiply)):
        got = f(jnp.asarray(x), jnp.asarray(mask))
        same_bits(got, want)
    same_bits(jnp.asarray(x)[:, None] * jnp.asarray(mask), np.where(mask, x[:, None], 0))
    same_bits(jnp.asarray(x) * jnp.asarray(False), np.zeros(5, dtype))


def test_derivatives_do_not_pass_through_masks_of_products(jax, jnp):
    x = jnp.array([0.0, 4.0])
    assert np.array_equal(jax.grad(lambda x: (jnp.log(x) * (x > 0)).sum())(x), [0, 0.25])
    assert np.array_equal(jax.jvp(lambda x: x * jnp.array([False, True]), (x,), (jnp.array([np.inf, 1.0]),))[1], [0, 1])
    with pytest.raises((TypeError, ValueError), match="(?i)incompatible shapes"):
        x * jnp.zeros(3, bool)
    assert (jnp.arange(3) * jnp.array([True, False, True])).dtype == np.int32


def test_booleans_divide_as_integers(jax, jnp):
    x, y = jnp.array([False, True, False]), jnp.array([True, True, True])
    for quotient, rest in ((x // y, x % y), divmod(x, y), (jnp.floor_divide(x, y), jnp.fmod(x, y))):
        assert quotient.dtype == rest.dtype == np.int32
        assert quotient.tolist() == [0, 1, 0] and rest.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["tanh", "arctanh", "arctan", "tan"])
def test_both_parts_of_complex_functions_are_accurate(jnp, name):
    r = np.random.default_rng(0)
    spread = lambda: np.sign(r.standard_normal(300)) * 10 ** r.uniform(-6, 1.5, 300)
    z = np.concatenate(
        [
            spread() + 1j * spread(),
            spread() * 1e-2 + 1j * (1 + spread() * 1e-2),
            1 + spread() * 1e-2 + 1j * spread() * 1e-2,
            spread() * 1e-3 + 1j * (np.pi / 2 + spread() * 1e-2),
        ]
    )
    z = z.astype(np.complex64)
    got = np.asarray(getattr(jnp, name)(z))
    for x, w in zip(got, getattr(np, name)(z.astype(complex)), strict=True):
        for a, b in ((x.real, w.real), (x.imag, w.imag)):
            assert abs(float(a) - b) <= 6 * np.spacing(np.float32(abs(b))), (name, x, w)


@pytest.mark.parametrize(
    "name, z, want",
    [
        ("arctanh", complex(np.inf, np.inf), complex(0, np.pi / 2)),
        ("arctanh", complex(2, -0.0), complex(0.5493061542510986, -np.pi / 2)),
        ("arctanh", complex(1e30, 1e30), complex(5e-31, np.pi / 2)),
        ("arctanh", complex(3e38, -3e38), complex(0, -np.pi / 2)),
        ("arctanh", complex(1, 1e-30), complex(34.88534, np.pi / 4)),
        ("arctan", complex(np.inf, 2), complex(np.pi / 2, 0)),
        ("tanh", complex(np.inf, np.inf), 1),
        ("tanh", complex(-60, 1), complex(-1, 0)),
        ("tan", complex(1, np.inf), 1j),
    ],
)
def test_ends_of_complex_functions(jnp, name, z, want):
    np.testing.assert_allclose(np.asarray(getattr(jnp, name)(np.complex64(z))), np.complex64(want), rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda jnp: jnp.arange(3) ** -1,
        lambda jnp: jnp.arange(3) ** jnp.array(-1),
        lambda jnp: jnp.arange(3) ** np.int32(-1),
        lambda jnp: np.arange(3, dtype=np.int32) ** jnp.array(-1),
        lambda jnp: jnp.power(jnp.arange(3), np.array(-1)),
        lambda jnp: jnp.array([True, True, True]) ** -1,
    ],
)
def test_integers_to_known_negative_powers(jnp, f):
    with pytest.raises(TypeError, match=r"^Integers cannot be raised to negative powers, got integer_pow\(int32\[3\], -1\)"):
        f(jnp)


def test_known_integer_exponents_are_parameters(jax, jnp):
    for y in (2, np.int32(2), np.array(2)):
        (eqn,) = jax.make_jaxpr(lambda x: x**y)(jnp.arange(3, dtype=np.int8)).eqns
        assert eqn.primitive.name == "integer_pow" and eqn.params["y"] == 2 and eqn.outvars[0].aval.dtype == np.int8


def test_power_of_a_modulus_is_refused(jnp):
    for f in (lambda: pow(jnp.arange(3), 2, 3), lambda: pow(2, jnp.arange(3), 3)):
        with pytest.raises(TypeError):
            f()
