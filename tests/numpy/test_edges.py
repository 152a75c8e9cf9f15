"""Mistakes that the conformance suite has found: values at the ends of dtypes, derivatives of functions that need values, types of results."""

import numpy as np
import pytest

EDGES = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]


def complexes(dtype, values=EDGES):
    return np.array([complex(x, y) for x in values for y in values], dtype)


def same(got, want):
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_array_equal(np.isnan(g), np.isnan(w))
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


def annex_g(z, w):
    """z / w by the C standard's example code, for all but finite quotients of finite numbers."""
    a, b, c, d = z.real, z.imag, w.real, w.imag
    infinite = lambda x, y: np.isinf(x) | np.isinf(y)
    box = lambda x, on: np.where(on, np.copysign(np.isinf(x) * 1.0, x), x)
    zero = (c == 0) & (d == 0)
    far, near = infinite(a, b), infinite(c, d)
    p, q = box(a, far), box(b, far)
    r, s = box(c, near), box(d, near)
    size = np.where(near, 0.0, np.inf)
    re, im = size * (p * r + q * s), size * (q * r - p * s)
    inf = np.copysign(np.inf, c)
    return np.where(zero, inf * a, re) + 0.0, np.where(zero, inf * b, im) + 0.0, zero | (far ^ near)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_quotients_at_zero_and_infinity(jax, jnp, x64, dtype):
    z, w = (v.ravel() for v in np.meshgrid(complexes(dtype), complexes(dtype)))
    got = np.asarray(jnp.asarray(z) / jnp.asarray(w))
    with np.errstate(all="ignore"):
        re, im, known = annex_g(z, w)
    # where the plain formula has one part that is a number, that stands
    lost = known & np.isnan(re) & np.isnan(im)
    assert np.all(np.isnan(got[lost].real) & np.isnan(got[lost].imag))
    finite = np.isfinite(z) & ~lost
    zero = finite & (w == 0)
    np.testing.assert_array_equal(got.real[zero], re[zero])
    np.testing.assert_array_equal(got.imag[zero], im[zero])
    far = finite & (np.isinf(w.real) | np.isinf(w.imag))
    assert np.all(got[far] == 0)
    infinite = (np.isinf(z.real) | np.isinf(z.imag)) & (np.isfinite(w) | (w == 0))
    assert np.all(np.isinf(got[infinite].real) | np.isinf(got[infinite].imag))
    assert np.isinf(complex(jax.jit(lambda z: z / 0)(dtype_of(jnp, dtype)(1 + 1j))).real)


def dtype_of(jnp, name):
    return getattr(jnp, name)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_reciprocals_of_complex_zeros_and_infinities(jnp, x64, dtype):
    got = np.asarray(jnp.reciprocal(jnp.array([0, complex(-0.0, 0), complex(np.inf, np.inf), complex(np.nan, np.inf)], dtype)))
    assert got[0].real == np.inf and got[1].real == -np.inf and got[2] == 0 and got[3] == 0


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", "sin cos sinh cosh arcsin arccos arcsinh arccosh sqrt".split())
def test_complex_functions_at_infinity(jnp, x64, name, dtype):
    z = complexes(dtype, [0.0, -0.0, 0.5, np.inf, -np.inf])
    z = z[np.isinf(z.real) | np.isinf(z.imag)]
    with np.errstate(all="ignore"):
        want = getattr(np, name)(z)
    got = np.asarray(getattr(jnp, name)(jnp.asarray(z)))
    if name in ("sin", "cos", "sinh", "cosh"):
        # the C standard leaves the signs of infinities open, and parts that are not finite beside a sine of infinity
        known = np.isfinite(z.imag if name.endswith("h") else z.real)
        got, want, z = got[known], want[known], z[known]
    same(got, want)


def test_complex_hyperbolic_functions_keep_zeros(jnp):
    for name in ("sinh", "cosh"):
        for z in (complex(1, 0.0), complex(1, -0.0), complex(-1, 0.0), complex(-1, -0.0)):
            got, want = complex(getattr(jnp, name)(jnp.complex64(z))), complex(getattr(np, name)(np.complex64(z)))
            assert np.copysign(1, got.imag) == np.copysign(1, want.imag), (name, z)


@pytest.mark.ours  # JAX does not return
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_divisors_of_the_least_integer(jnp, dtype):
    info = np.iinfo(dtype)
    x, y = np.meshgrid(*[np.array([info.min, info.min + 1, -7, -1, 0, 1, 6, info.max], dtype)] * 2)
    np.testing.assert_array_equal(jnp.gcd(x, y), np.gcd(x, y))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(jnp.lcm(x, y), np.lcm(x, y))


VALUES_WANTED = {
    "unique": lambda n, x: n.unique(x),
    "union1d": lambda n, x: n.union1d(x, n.array([5.0])),
    "setdiff1d": lambda n, x: n.setdiff1d(x, n.array([1.0])),
    "intersect1d": lambda n, x: n.intersect1d(x, n.array([2.0, 1.0])),
    "intersect1d with indices": lambda n, x: n.intersect1d(x, n.array([2.0, 1.0]), return_indices=True)[0],
    "setxor1d": lambda n, x: n.setxor1d(x, n.array([1.0, 5.0])),
    "trim_zeros": lambda n, x: n.trim_zeros(n.concatenate([n.zeros(1), x])),
    "roots": lambda n, x: n.sort(n.real(n.roots(x))),
}


@pytest.mark.parametrize("name", VALUES_WANTED)
def test_values_are_known_where_only_derivatives_follow_them(jax, jnp, name):
    f = lambda x: VALUES_WANTED[name](jnp, x)
    x = jnp.array([1.0, -3.0, 2.0])
    value, tangent = jax.jvp(f, (x,), (jnp.ones(3),))
    np.testing.assert_allclose(value, f(x), rtol=1e-5)
    assert tangent.shape == value.shape
    assert jax.grad(lambda x: jnp.sum(f(x)))(x).shape == (3,)


@pytest.mark.ours  # JAX gives zeros
def test_derivatives_of_sets_are_those_of_their_elements(jax, jnp):
    x, t = jnp.array([3.0, 1.0, 2.0, 1.0]), jnp.array([30.0, 10.0, 20.0, 10.0])
    for f, want in ((jnp.unique, [10, 20, 30]), (lambda x: jnp.setdiff1d(x, jnp.array([2.0])), [10, 30]), (lambda x: jnp.intersect1d(x, x), [10, 20, 30])):
        assert jax.jvp(f, (x,), (t,))[1].tolist() == want
    assert jax.jvp(lambda x: jnp.setxor1d(x, jnp.array([1.0, 5.0])), (x,), (t,))[1].tolist() == [20, 30, 0]


def test_traced_values_are_refused_as_before(jax, jnp):
    for wrap in (jax.jit, lambda f: lambda x: jax.vmap(f)(x[None]), lambda f: jax.grad(lambda x: jax.jit(lambda y: jnp.sum(f(y)))(x))):
        with pytest.raises(jax.errors.ConcretizationTypeError):
            wrap(jnp.unique)(jnp.arange(3.0))


def test_sets_that_differ_in_not_a_number(jnp):
    got = jnp.setxor1d(jnp.array([1.0, np.nan, 2.0, 2.0]), jnp.array([2.0, 3.0, np.nan]))
    np.testing.assert_array_equal(got, [1, 3, np.nan, np.nan])
    assert jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3]), assume_unique=True).tolist() == [1, 3]
    assert jnp.setxor1d(jnp.zeros(0), jnp.zeros(0)).shape == (0,)


def test_a_dtype_is_a_kind_by_its_name(jnp):
    assert jnp.isdtype(np.dtype("float16"), "float16") and not jnp.isdtype("float16", "float32")
    assert jnp.isdtype("float16", ("bool", "float16"))
    with pytest.raises(ValueError, match="Unrecognized kind='foo' expected one of"):
        jnp.isdtype("float16", "foo")


def test_containers_of_results(jax, jnp, lax):
    assert type(lax.rng_bit_generator(jnp.arange(4, dtype="uint32"), (3,))) is tuple
    shape = lax.shape_as_value((2, 3))
    assert isinstance(shape, np.ndarray) and shape.dtype == np.int32
    assert jax.tree_util.default_registry.flatten_one_level([1, (2,)])[0] == [1, (2,)]


@pytest.mark.parametrize("call", ["boxcox(2.0, n)", "gammaln(n)", "erf(n)", "gammainc(1.0, n)", "entr(n)", "polygamma(1, n)", "i0e(n)", "comb(n, 2)"])
def test_functions_of_floats_take_integers_of_any_size(jax, call):
    special = jax.scipy.special
    whole, real = (eval(f"special.{call}", dict(special=special, n=n)) for n in (2**32 - 1, float(2**32 - 1)))
    assert whole.dtype == real.dtype == np.float32
    np.testing.assert_array_equal(whole, real)


@pytest.mark.parametrize("dtype, of", [("float16", "float16"), ("int32", "float32"), ("complex64", "complex64")])
def test_companion_matrices_of_constants_have_the_coefficients_dtype(jax, jnp, dtype, of):
    assert [jax.scipy.linalg.fiedler_companion(jnp.ones(n, dtype)).dtype for n in (1, 2, 3)] == [of] * 3


def test_companion_matrices_of_unsigned_coefficients(jax, jnp):
    got = jax.scipy.linalg.companion(jnp.array([1, 3, 4], "uint32"))
    np.testing.assert_array_equal(got, [[-3, -4], [1, 0]])


def test_ranks_of_vectors_have_one_dtype(jnp, x64):
    assert jnp.linalg.matrix_rank(jnp.ones(3)).dtype == np.int32


@pytest.mark.parametrize("y", [2**31, 2**32 - 1, 2**100 + 1, -(2**31) - 1, -(2**40)])
def test_powers_of_any_integer(jnp, y):
    x = np.array([2.0, 1.0, -1.0, 0.5, 0.0, np.inf], np.float32)
    with np.errstate(all="ignore"):
        want = np.array([np.inf, 1, -1 if y % 2 else 1, 0, 0, np.inf], np.float32)
        want = 1 / want if y < 0 else want
    np.testing.assert_array_equal(jnp.power(x, y), want)
    assert jnp.power(2.0, y).dtype == np.float32
    if y > 0:
        assert jnp.power(jnp.array([0, 1, 2, 3]), y).tolist() == [0, 1, 0, (pow(3, y, 2**32) + 2**31) % 2**32 - 2**31]
    else:
        with pytest.raises(TypeError, match="Integers cannot be raised to negative powers"):
            jnp.power(jnp.array([2]), y)


def test_arrays_of_bfloat16_are_exchanged_with_the_library_itself(jnp):
    x = jnp.array([1.5, 2.5], jnp.bfloat16)
    got = jnp.from_dlpack(x)
    assert got.dtype == x.dtype and got.tolist() == [1.5, 2.5]


def test_triangles_of_ones_are_float32(jnp, x64):
    assert jnp.tri(2).dtype == np.float32 and jnp.tri(2, dtype=float).dtype == np.float64


def test_names_of_the_results_of_unique(jnp):
    x = jnp.array([1, 2, 1])
    assert [type(f(x)).__name__ for f in (jnp.unique_all, jnp.unique_counts, jnp.unique_inverse)] == [
        "_UniqueAllResult",
        "_UniqueCountsResult",
        "_UniqueInverseResult",
    ]


@pytest.mark.parametrize(
    "mean, cov, of", [("float32", "float32", "float32"), ("float64", "float32", "float64"), ("int32", "int32", "float32"), ("float16", "float32", "float32")]
)
def test_normal_vectors_have_the_dtype_of_their_parameters(jax, jnp, x64, mean, cov, of):
    assert jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(2, mean), jnp.eye(2, dtype=cov)).dtype == of


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max", "segment_min"])
def test_segments_in_buckets_keep_their_dtype(jax, jnp, name):
    got = getattr(jax.ops, name)(jnp.arange(4, dtype="uint8"), jnp.array([0, 1, 1, 0]), 2, bucket_size=2)
    assert got.dtype == np.uint8


def test_structures_of_one_node_are_leaves(jax):
    tree = jax.tree_util
    assert [tree.treedef_is_leaf(tree.tree_structure(x)) for x in (None, (), {}, 1, [1])] == [True, True, True, True, False]


@pytest.mark.parametrize("base", ["uint32", "int8", "uint8", "bool", "float16", "complex64"])
@pytest.mark.parametrize("exponent", ["int32", "int8"])
def test_a_known_exponent_leaves_the_base_its_dtype(jax, jnp, base, exponent):
    x, y = jnp.array([0, 1, 3], base), jnp.array(5, exponent)
    for got in (jnp.power(x, y), x**y, jax.jit(lambda x: x**y)(x)):
        assert got.dtype == ("int32" if base == "bool" else base) and not got.weak_type
        assert got.tolist() == [0, 1, 1 if base == "bool" else 243 - 256 if base == "int8" else 243]
    assert jax.jit(lambda x, y: x**y)(x, y).dtype == (exponent if base == "bool" else jnp.promote_types(base, exponent))


def test_powers_are_weak_where_the_base_is_and_the_exponent_is_known(jax, jnp):
    for x, of in ((3, "int32"), (2.5, "float32"), (2j, "complex64")):
        got, traced = jnp.power(x, jnp.int8(2)), jax.jit(jnp.power)(x, jnp.int32(2))
        assert (got.dtype, got.weak_type) == (of, True) and got == x**2
        assert (traced.dtype, traced.weak_type) == (of, False) and abs(traced - x**2) < 1e-5
    assert not jnp.power(3, np.array(True)).weak_type


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap"])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
def test_flat_indices_have_the_requested_dtype(jnp, mode, dtype):
    index = (jnp.array([0, 1]), jnp.array([1, 2]))
    got = jnp.ravel_multi_index(index, (2, 3), mode=mode, dtype=dtype)
    assert got.dtype == dtype and got.tolist() == [1, 5]


@pytest.mark.parametrize("wrap", ["eager", "jit"])
def test_derivatives_beyond_the_degree_are_empty(jax, jnp, wrap):
    f = lambda p: jnp.polyder(p, 5)
    got = (jax.jit(f) if wrap == "jit" else f)(jnp.array([1, 2, 3, 4]))
    assert got.shape == (0,) and got.dtype == np.float32
    assert jnp.polyder(jnp.ones(4), 4).shape == (0,)


def test_the_bound_that_polyfit_chooses_is_weak(jnp):
    x = jnp.arange(4.0)
    for rcond, weak in ((None, True), (1e-3, True), (np.float32(1e-3), False)):
        got = jnp.polyfit(x, x, 1, rcond=rcond, full=True)[4]
        assert (got.dtype, got.weak_type) == (np.float32, weak)


def test_a_ufunc_that_is_made_by_its_class_takes_arrays(jnp):
    negative, one = jnp.ufunc(lambda x: -x, 1, 1), jnp.ufunc(lambda x: 1, 1, 1)
    got = negative(-0.5)
    assert (got.dtype, got.weak_type, float(got)) == (np.float32, True, 0.5)
    assert one(jnp.zeros(3)).tolist() == [1, 1, 1]
    assert jnp.ufunc(lambda x, y: x + y, 2, 1)(np.ones((2, 1)), jnp.ones(3)).shape == (2, 3)
    with pytest.raises(TypeError, match="requires ndarray or scalar arguments"):
        negative([1, 2])


@pytest.mark.ours  # JAX rounds them
@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types")
@pytest.mark.parametrize("value", [1.5, np.float16(1.5)])
def test_elements_that_are_not_named_keep_their_bits(jnp, value):
    x = jnp.array([3, -2147483647, 16777217])
    assert x.at[0].set(value).tolist() == jnp.put(x, 0, value, inplace=False).tolist() == [1, -2147483647, 16777217]


def test_logarithms_of_gamma_tails_broadcast_under_derivatives(jnp, jax):
    x, a = jnp.ones((2, 3), "float32"), jnp.arange(1.0, 4.0)
    for f in (jax.scipy.stats.gamma.logcdf, jax.scipy.stats.gamma.logsf):
        y, dy = jax.jvp(f, (x, a), (x, a))
        np.testing.assert_allclose(y, np.broadcast_to(f(1.0, a), (2, 3)), rtol=1e-6)
        assert dy.shape == (2, 3) and np.isfinite(dy).all()


@pytest.mark.parametrize("policy", ["propagate", "omit"])
def test_the_standard_error_of_complex_numbers_is_complex(jnp, jax, policy):
    x = jnp.array([[1 + 1j, 3 - 1j], [2, 2j]])
    assert jax.scipy.stats.sem(x, -1, nan_policy=policy).dtype == x.dtype


def test_wide_unitary_matrices_are_tall_ones_transposed(jnp, jax):
    key = jax.random.key(235)
    wide, tall = (jax.random.orthogonal(key, n, (), "complex64", m) for n, m in ((2, 3), (3, 2)))
    np.testing.assert_array_equal(wide, tall.T)


def test_the_shape_of_a_number_is_an_array(jnp, jax):
    assert isinstance(jax.lax.shape_as_value(()), jax.Array) and isinstance(jax.lax.shape_as_value((2,)), np.ndarray)


FLOATS = [np.nan, np.inf, -np.inf, 1e20, -1e20, 300.7, -1.5, 16777217.0, 2147483647.0]
# A Python float in a computation with integers is converted as an array is.
TAKEN = {
    "full": lambda jnp, lax, v, d: jnp.full((1,), v, d)[0],
    "full of one": lambda jnp, lax, v, d: jnp.full((), v, d),
    "full_like": lambda jnp, lax, v, d: jnp.full_like(jnp.zeros(1, d), v)[0],
    "full_like of a dtype": lambda jnp, lax, v, d: jnp.full_like(jnp.zeros(1), v, dtype=d)[0],
    "lax.full": lambda jnp, lax, v, d: lax.full((1,), v, jnp.dtype(d))[0],
    "at.set": lambda jnp, lax, v, d: jnp.zeros(2, d).at[0].set(v)[0],
    "at.set of an array": lambda jnp, lax, v, d: jnp.zeros(2, d).at[jnp.array([1])].set(v)[1],
    "at.set of a mask": lambda jnp, lax, v, d: jnp.zeros(2, d).at[jnp.array([True, False])].set(v)[0],
    "max": lambda jnp, lax, v, d: jnp.max(jnp.full(1, jnp.iinfo(d).min, d), initial=v),
    "min": lambda jnp, lax, v, d: jnp.min(jnp.full(1, jnp.iinfo(d).max, d), initial=v),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types:FutureWarning")
def test_floats_taken_as_integers(jnp, lax, name, dtype):
    for v in FLOATS:
        exact = "full" in name and np.isfinite(v) and jnp.iinfo(dtype).min <= v <= jnp.iinfo(dtype).max
        want = jnp.asarray(int(v) if exact else v).astype(dtype)
        got = TAKEN[name](jnp, lax, v, dtype)
        assert (got, got.dtype) == (want, want.dtype), v


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
@pytest.mark.parametrize("make", ["array", "asarray", "list", "scalar type"])
def test_floats_refused_as_integers(jnp, make, dtype):
    takes = {
        "array": lambda v: jnp.array(v, dtype),
        "asarray": lambda v: jnp.asarray(v, dtype=dtype),
        "list": lambda v: jnp.array([1.0, v], dtype)[1],
        "scalar type": lambda v: getattr(jnp, dtype)(v),
    }[make]
    for v in FLOATS:
        try:
            want = np.asarray(v, dtype)
        except (ValueError, OverflowError) as e:
            with pytest.raises(type(e)) as found:
                takes(v)
            assert str(found.value) == str(e), v
        else:
            assert takes(v) == want, v
