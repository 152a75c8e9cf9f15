"""Random draws equal JAX's: bit for bit where no transcendental is involved, else within rounding."""

import json
import pathlib

import numpy as np
import pytest

GOLDENS = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "distributions.json").read_text())
SEED = 7


@pytest.fixture(autouse=True)
def flags(jax):
    yield
    jax.config.update("jax_threefry_partitionable", True)
    jax.config.update("jax_enable_x64", False)


def value(jax, x):
    if isinstance(x, dict):
        return jax.numpy.array(np.array(x["array"]))
    return tuple(x) if isinstance(x, list) else x


def label(case):
    return f"{case['name']}-{'partitionable' if case['partitionable'] else 'original'}-{'x64' if case['x64'] else 'x32'}-{case['dtype']}"


@pytest.mark.parametrize("case", GOLDENS, ids=label)
@pytest.mark.parametrize("kind", ["raw", "typed"])
def test_golden(jax, case, kind):
    jax.config.update("jax_threefry_partitionable", case["partitionable"])
    jax.config.update("jax_enable_x64", case["x64"])
    key = jax.random.PRNGKey(SEED) if kind == "raw" else jax.random.key(SEED)
    out = getattr(jax.random, case["name"])(key, *[value(jax, a) for a in case["args"]], **{k: value(jax, v) for k, v in case["kwargs"].items()})
    if case["name"] in ("split", "fold_in") and kind == "typed":
        out = jax.random.key_data(out)
    out = np.asarray(out)
    assert out.dtype.name == case["dtype"]
    if out.dtype.kind == "c":
        out = np.stack([out.real, out.imag], -1)
    if case["exact"]:
        np.testing.assert_array_equal(out.astype(np.float64) if "float" in case["dtype"] else out, np.array(case["value"]))
    else:
        tolerance = 2e-5 if case["name"] in ("gamma", "loggamma", "beta", "dirichlet", "t", "chisquare", "f", "generalized_normal", "ball") else 2e-6
        np.testing.assert_allclose(out, np.array(case["value"]), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed, words", [(0, [0, 0]), (42, [0, 42]), (-1, [0, 2**32 - 1]), (2**40 + 5, [0, 5]), (True, [0, 1])])
def test_seeds_without_64_bits(jax, seed, words):
    assert np.asarray(jax.random.PRNGKey(seed)).tolist() == words
    assert np.asarray(jax.random.key_data(jax.random.key(seed))).tolist() == words


@pytest.mark.parametrize("seed, words", [(0, [0, 0]), (-1, [2**32 - 1, 2**32 - 1]), (2**40 + 5, [256, 5])])
def test_seeds_with_64_bits(jax, seed, words):
    jax.config.update("jax_enable_x64", True)
    assert np.asarray(jax.random.PRNGKey(seed)).tolist() == words


def test_published_stream(jax):
    key = jax.random.key(0)
    assert np.asarray(jax.random.bits(key, (4,))).tolist() == [4070199207, 4202968722, 1427181096, 2012915765]
    assert np.asarray(jax.random.key_data(jax.random.split(key))).tolist() == [[1797259609, 2579123966], [928981903, 3453687069]]


def test_typed_keys_have_their_own_dtype(jax, jnp):
    key = jax.random.key(3)
    assert str(key.dtype) == "key<fry>" and key.shape == () and jax.random.key_impl(key) == "threefry2x32"
    assert jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and not jnp.issubdtype(key.dtype, np.number)
    again = jax.random.wrap_key_data(jax.random.key_data(key))
    assert np.array_equal(jax.random.key_data(again), jax.random.key_data(key))
    keys = jax.random.split(key, (2, 3))
    assert keys.shape == (2, 3) and keys[1, 2].shape == () and keys.reshape(6).shape == (6,)


def test_lanes_equal_single_draws(jax, jnp):
    keys = jax.random.split(jax.random.key(0), 5)
    for f in (
        lambda k: jax.random.normal(k, (3,)),
        lambda k: jax.random.permutation(k, 7),
        lambda k: jax.random.randint(k, (2,), 0, 9),
        lambda k: jax.random.key_data(jax.random.fold_in(k, 2)),
    ):
        lanes = jax.vmap(f)(keys)
        np.testing.assert_array_equal(np.asarray(lanes), np.stack([np.asarray(f(keys[i])) for i in range(5)]))


@pytest.mark.parametrize(
    "name, args", [("uniform", ((4,),)), ("normal", ((4,),)), ("randint", ((4,), 0, 9)), ("bernoulli", (0.3, (8,))), ("permutation", (9,))]
)
def test_jit_equals_eager(jax, name, args):
    key = jax.random.PRNGKey(1)
    f = lambda key: getattr(jax.random, name)(key, *args)
    np.testing.assert_array_equal(np.asarray(jax.jit(f)(key)), np.asarray(f(key)))


@pytest.mark.parametrize("bits", [8, 16])
def test_narrow_integers_are_unbiased(jax, bits):
    draws = np.asarray(jax.random.randint(jax.random.key(5), (60_000,), 0, 3, f"uint{bits}"))
    counts = np.bincount(draws, minlength=3)
    assert ((counts - 20_000) ** 2 / 20_000).sum() < 20  # chi-square of 2 degrees of freedom, p < 1e-4


@pytest.mark.ours
def test_bits_of_narrow_dtypes_are_the_low_ones(jax):
    """JAX gives those of uint8."""
    random, key = jax.random, jax.random.key(3)
    words = np.asarray(random.bits(key, (12,), "uint8"))
    for dtype, count in (("uint4", 16), ("uint2", 4)):
        draws = random.bits(key, (12,), dtype)
        assert draws.dtype.name == dtype and (np.asarray(draws).astype(int) == words % count).all()
    with pytest.raises(ValueError, match="must be an unsigned int dtype, got int4"):
        random.bits(key, (12,), "int4")


def test_uniform_stays_below_one(jax):
    draws = np.asarray(jax.random.uniform(jax.random.key(0), (1 << 18,)))
    assert draws.min() >= 0 and draws.max() < 1


def test_the_finest_gumbel_draws(jax, jnp):
    """Of 64 bits, in float32: JAX's within their last digits, right far out, and as "high" in other dtypes."""
    key = jax.random.key(3)
    draws = np.asarray(jax.random.gumbel(key, (1000,), mode="highest"))
    first = np.array([1076110585, 3213034100, 3174794875, 3215455103, 1066360522], np.uint32).view(np.float32)
    np.testing.assert_allclose(draws[:5], first, rtol=1e-6)
    np.testing.assert_allclose([draws.max(), draws.min()], [8.77985, -1.9760613], rtol=1e-5)
    # both ends of the interval: no draw is infinite, and few are equal
    many = np.asarray(jax.random.gumbel(key, (200_000,), mode="highest"))
    assert np.isfinite(many).all() and len(np.unique(many)) > 190_000
    np.testing.assert_allclose([many.mean(), many.var()], [0.5772157, np.pi**2 / 6], rtol=0.02)
    half = [np.asarray(jax.random.gumbel(key, (5,), jnp.float16, mode=m)) for m in ("high", "highest")]
    np.testing.assert_array_equal(*half)
    assert int(jax.random.categorical(key, jnp.arange(5.0), mode="highest")) == 4


def test_gamma_is_differentiable_in_its_shape(jax, jnp):
    key = jax.random.key(2)
    a = jnp.array([0.5, 1.5, 8.0])
    slope = jax.grad(lambda a: jax.random.gamma(key, a).sum())(a)
    # The mean of gamma(a) is a: the slope of the mean draw is 1.
    mean = jax.grad(lambda a: jax.random.gamma(key, jnp.full(4000, a)).mean())(2.0)
    assert slope.shape == (3,) and np.all(np.asarray(slope) > 0) and abs(float(mean) - 1) < 0.1


ERRORS = [
    (lambda r, k: r.split(3), TypeError, "invalid PRNG key data"),
    (lambda r, k: r.split(np.zeros(2)), TypeError, "expected key_data.dtype = uint32; got dtype=float64"),
    (lambda r, k: r.split([0, 1]), TypeError, "unexpected PRNG key type <class 'list'>"),
    (lambda r, k: r.normal(r.split(k)), ValueError, "normal accepts a single key, but was given a key array of shape (2, 2) != (). Use jax.vmap for batching."),
    (lambda r, k: r.PRNGKey(np.arange(3)), TypeError, "PRNGKey accepts a scalar seed, but was given an array of shape (3,) != ()"),
    (lambda r, k: r.PRNGKey(1.5), TypeError, "PRNG key seed must be an integer"),
    (lambda r, k: r.PRNGKey(2**70), OverflowError, "Python int too large to convert to C long"),
    (lambda r, k: r.key(0, impl="foo"), ValueError, 'unrecognized PRNG implementation "foo"'),
    (lambda r, k: r.fold_in(k, -1), OverflowError, "Python integer -1 out of bounds for uint32"),
    (lambda r, k: r.uniform(k, dtype=int), ValueError, "dtype argument to `uniform` must be a float dtype, got int32"),
    (lambda r, k: r.uniform(k, (1.5,)), TypeError, "Shapes must be 1D sequences of concrete values of integer type, got (1.5,)."),
    (lambda r, k: r.normal(k, dtype=int), ValueError, "dtype argument to `normal` must be a float or complex dtype, got int32"),
    (lambda r, k: r.bits(k, dtype=int), ValueError, "dtype argument to `bits` must be an unsigned int dtype, got int32"),
    (lambda r, k: r.randint(k, (2,), 0, 2, "float32"), TypeError, "randint only accepts integer dtypes, got float32"),
    (lambda r, k: r.bernoulli(k, 1), TypeError, "bernoulli probability `p` must have a floating dtype, got int32."),
    (lambda r, k: r.bernoulli(k, mode="x"), ValueError, "got mode='x', expected 'high' or 'low'"),
    (lambda r, k: r.permutation(k, 2.5), TypeError, "x must be an integer or at least 1-dimensional"),
    (lambda r, k: r.permutation(k, [1, 2]), TypeError, "permutation requires ndarray or scalar arguments, got <class 'list'> at position 0."),
    (lambda r, k: r.choice(k, 5, (10,), replace=False), ValueError, "Cannot take a larger sample (size 10) than population (size 5) when 'replace=False'"),
    (lambda r, k: r.choice(k, 5, (2,), p=np.ones(4, np.float32)), ValueError, "p has shape (4,) and a.shape[axis] is 5."),
    (lambda r, k: r.choice(k, 0), ValueError, "a must be greater than 0 unless no samples are taken"),
    (lambda r, k: r.gumbel(k, mode="lowest"), ValueError, "Must provide valid mode for gumbel got: lowest"),
    (lambda r, k: r.gumbel(k, mode="x"), ValueError, "Must provide valid mode for gumbel got: x"),
    (lambda r, k: r.truncated_normal(k, np.zeros(3), 1.0, (2,)), ValueError, "Incompatible shapes for broadcasting"),
    (lambda r, k: r.dirichlet(k, 2.0), ValueError, "dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0"),
    (lambda r, k: r.categorical(k, np.arange(3)), ValueError, "dtype argument to `gumbel` must be a float dtype, got int32"),
    (lambda r, k: r.beta(k, 1j, 1), ValueError, "In arguments to beta, cannot safely cast argument of type complex64 to float32"),
    (lambda r, k: r.t(k, np.float32([1, 2]), dtype="float16"), ValueError, "In arguments to t, cannot safely cast argument of type float32 to float16"),
    (lambda r, k: r.pareto(k, [1.0]), TypeError, ""),
    (lambda r, k: r.wrap_key_data(np.zeros(3, np.uint32)), TypeError, "expected key_data.shape to end with (2,); got shape=(3,)"),
]


@pytest.mark.parametrize("call, error, words", ERRORS, ids=[words[:40] for _, _, words in ERRORS])
def test_errors(jax, call, error, words):
    with pytest.raises(error) as e:
        call(jax.random, jax.random.PRNGKey(0))
    assert words in str(e.value)


def test_parameters_promote_and_add_axes_as_in_jax(jax, jnp):
    key, ones = jax.random.PRNGKey(0), jnp.ones(3)
    assert jax.random.double_sided_maxwell(key, ones, 1, (2,)).shape == (2, 3) and jax.random.double_sided_maxwell(key, ones, 1).shape == (3, 3)
    assert jax.random.double_sided_maxwell(key, ones, 1, (), "float16").dtype == jax.random.weibull_min(key, ones, 1, (3,), "float16").dtype == jnp.float32
    np.testing.assert_allclose(
        jax.random.double_sided_maxwell(key, jnp.arange(2.0), 1.0)[:, 1], 1 + jax.random.double_sided_maxwell(key, jnp.zeros(2), 1.0)[:, 1], rtol=1e-6
    )


def test_raw_keys_can_be_refused(jax):
    raw, typed = jax.random.PRNGKey(0), jax.random.key(0)
    with jax.legacy_prng_key("error"):
        assert jax.random.normal(typed).shape == ()
        with pytest.raises(ValueError, match="Legacy uint32 key array passed as key to jax.random function."):
            jax.random.normal(raw)
    with jax.legacy_prng_key("warn"), pytest.warns(UserWarning, match="Legacy uint32 key array"):
        jax.random.split(raw)


def test_keys_are_finite(jax, jnp):
    for keys in (jax.random.key(0), jax.random.split(jax.random.key(0))):
        for name, want in (("isfinite", True), ("isnan", False), ("isinf", False), ("isposinf", False), ("isneginf", False)):
            for f in (getattr(jnp, name), jax.jit(getattr(jnp, name))):
                assert f(keys).shape == keys.shape and (f(keys) == want).all()


@pytest.mark.parametrize("shape", [(), (3,)])
def test_bounds_with_more_axes_than_the_draw(jax, jnp, shape):
    key, low, high = jax.random.key(0), jnp.full((1,) * (len(shape) + 1), 2.0), jnp.full((1,) * (len(shape) + 1), 3.0)
    if not shape:
        drawn = jax.random.uniform(key, shape, minval=low, maxval=high)
        assert drawn.shape == (1,) and drawn[0] == jax.random.uniform(key, shape, minval=2.0, maxval=3.0)
        lanes = jax.vmap(lambda k, a, b: jax.random.uniform(k, (), jnp.float32, a, b))(
            jax.random.split(key, 4), jnp.arange(4.0)[:, None], jnp.arange(1.0, 5.0)[:, None]
        )
        assert lanes.shape == (4, 1) and (jnp.floor(lanes[:, 0]) == jnp.arange(4)).all()
    with pytest.raises(ValueError, match="randint parameter shapes must be broadcast-compatible"):
        jax.random.randint(key, shape, low.astype(int), 5)
    for wide in ((2, 3), (1, 3)):
        with pytest.raises((TypeError, ValueError)):
            jax.random.uniform(key, shape[:0], minval=jnp.zeros(wide))


ON_KEYS = {
    "ceil": lambda jnp, lax, keys: jnp.ceil(keys),
    "floor": lambda jnp, lax, keys: jnp.floor(keys),
    "round": lambda jnp, lax, keys: jnp.round(keys),
    "around": lambda jnp, lax, keys: jnp.around(keys, 1),
    "trunc": lambda jnp, lax, keys: jnp.trunc(keys),
    "rint": lambda jnp, lax, keys: jnp.rint(keys),
    "sort": lambda jnp, lax, keys: jnp.sort(keys),
    "sort from the end": lambda jnp, lax, keys: jnp.sort(keys, descending=True),
    "argsort": lambda jnp, lax, keys: jnp.argsort(keys),
    "lexsort": lambda jnp, lax, keys: jnp.lexsort((jnp.arange(4), keys)),
    "lax.sort": lambda jnp, lax, keys: lax.sort(keys),
    "lax.sort by two": lambda jnp, lax, keys: lax.sort((jnp.arange(4), keys), num_keys=2),
    "sort_key_val": lambda jnp, lax, keys: lax.sort_key_val(keys, jnp.arange(4)),
    "median": lambda jnp, lax, keys: jnp.median(keys),
    "unique": lambda jnp, lax, keys: jnp.unique(keys),
    "cumsum": lambda jnp, lax, keys: jnp.cumsum(keys),
    "max": lambda jnp, lax, keys: jnp.max(keys),
    "argmax": lambda jnp, lax, keys: jnp.argmax(keys),
    "segment_sum": lambda jnp, lax, keys: lax.scatter_add(keys, jnp.array([[0]]), keys[:1], lax.ScatterDimensionNumbers((), (0,), (0,))),
    **{
        f"at.{name}": lambda jnp, lax, keys, name=name: getattr(keys.at[0], name)(keys[1])
        for name in ("add", "subtract", "multiply", "divide", "power", "min", "max")
    },
}


@pytest.mark.parametrize("name", ON_KEYS)
def test_keys_are_no_numbers(jax, jnp, lax, name):
    keys = jax.random.split(jax.random.key(0), 4)
    for f in (ON_KEYS[name], jax.jit(lambda keys: ON_KEYS[name](jnp, lax, keys))):
        with pytest.raises((TypeError, ValueError)):
            f(keys) if f is not ON_KEYS[name] else f(jnp, lax, keys)
    order = jnp.array([2, 0, 3, 1])
    assert jnp.array_equal(keys[order].at[1].set(keys[2]), keys[jnp.array([2, 2, 3, 1])])
