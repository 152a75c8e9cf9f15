"""Special functions that are compositions, and random bits as primitives: against values computed with mpmath, at edges, under transforms."""

import numpy as np
import pytest

# (x, q, value), the last two beyond what a plain sum of ten terms reaches.
ZETA = [
    (1.125, 0.5, 10.140483757876494), (2.0, 0.25, 17.19732915450711), (3.5, 1.75, 0.19036957871506133), (2.0, 1e4, 1.0000500016666666e-4),
    (40.0, 0.5, 1099511627776.0), (30.0, 3.0, 4.857804189667247e-15), (3.0, -2.25, -61.94847488703008),
]  # fmt: skip
# (a, b, x, I_x(a, b))
BETA = [
    (0.5, 2.5, 0.125, 0.5634119389796182), (2.0, 3.0, 0.875, 0.992919921875), (0.125, 50.0, 0.0078125, 0.9066653224212645),
    (50.0, 0.125, 0.9921875, 0.09333467757873552), (3.0, 0.5, 0.0009765625, 2.9114494847012885e-10),
]  # fmt: skip
# (a, x, P(a, x), dP/da, -dP/da / density)
GAMMA = [
    (0.5, 0.25, 0.5204998778130465, -0.797947316783223, 0.9080144917641113), (1.5, 3.0, 0.8883897749052875, -0.15058944435108407, 1.547612717429594),
    (10.0, 8.0, 0.2833757412729891, -0.11260572310818615, 0.9075477177235485), (2.0, 0.0625, 0.0018736207606819771, -0.006936823609929422, 0.11814736472416724),
]  # fmt: skip
# (z, log gamma, gamma, digamma): by the expansion at infinity, by recurrence, by reflection
COMPLEX_GAMMA = [
    (0.5 + 0.5j, 0.11238724280962312 - 0.7507292021220507j, 0.8181639995417473 - 0.7633138287139826j, -0.8681073626454773 + 1.4406595199775145j),
    (3 - 2j, -0.03163905937396119 - 2.022193197501327j, -0.4226372863112022 - 0.8718142556965068j, 1.1645915153739774 - 0.6708072826422302j),
    (-2.3 + 0.6j, -0.9783385317079858 - 8.192934401305635j, -0.1249983082842202 - 0.3545457459653226j, 1.192389490322607 + 2.8851052285338525j),
    (-0.7 - 0.2j, 1.2068474867912513 + 3.483554001467165j, -3.149369665379378 - 1.1210029647106106j, -1.1326107506944416 - 2.139536580946692j),
    (-0.79 + 0j, 1.7081687166810473 - 3.141592653589793j, -5.518845648000958 + 0j, -3.772521466826828 + 0j),
    (2 + 9j, -9.916256495649161 + 13.011295381823176j, 4.455952617384687e-05 + 2.1246464305221782e-05j, 2.210449783569402 + 1.4054846736783655j),
    (-3.5 - 20j, -42.505868919109744 - 33.236088498964925j, -8.555826070781427e-20 - 3.359622316583676e-19j, 3.0152501448203775 - 1.7682304397880664j),
    (1.001 + 0.001j, -5.772148646116944e-4 - 5.755715322051254e-4j, 0.9994227861461337 - 5.752393678651092e-4j, -0.5755707329951877 + 0.0016425321176843j),
]  # fmt: skip
inf, nan = np.inf, np.nan


def columns(rows, jnp):
    return [jnp.array(c, jnp.float32) for c in zip(*rows, strict=True)]


def same_in_programs_and_batches(jax, f, *xs):
    y = np.asarray(f(*xs))
    np.testing.assert_allclose(jax.jit(f)(*xs), y, rtol=1e-6 if jax.__name__ == "jax" else 0)
    np.testing.assert_allclose(jax.vmap(f)(*xs), y, rtol=1e-6)
    half = f(*[x.astype("float16") for x in xs])
    assert half.dtype == "float16"


def test_zeta(jax, jnp):
    x, q, want = columns(ZETA, jnp)
    np.testing.assert_allclose(jax.lax.zeta(x, q), want, rtol=5e-6)
    np.testing.assert_allclose(jax.scipy.special.zeta(x, q), want, rtol=5e-6)
    same_in_programs_and_batches(jax, jax.lax.zeta, x[1:4], q[1:4])


@pytest.mark.ours
def test_zeta_where_jax_refuses_or_leaves_terms_out(jax, jnp):
    np.testing.assert_allclose(jax.lax.zeta(2.0, -20.5), 9.82199434464988, rtol=1e-6)
    np.testing.assert_array_equal(jax.lax.zeta(jnp.array([2.0, inf, inf, 1, 3]), jnp.array([inf, 2, 1, 1, 0])), [0, 0, 1, inf, inf])
    # d/dq zeta(x, q) = -x zeta(x + 1, q)
    np.testing.assert_allclose(jax.grad(jax.lax.zeta, 1)(2.5, 0.75), -2.5 * jax.lax.zeta(3.5, 0.75), rtol=1e-5)
    jax.test_util.check_grads(jax.lax.zeta, (2.5, 0.75), order=1, atol=1e-2, rtol=1e-2, eps=1e-2)


def test_zeta_has_poles_and_is_undefined_beyond(jax, jnp):
    x, q = jnp.array([1.0, 2, 2, 0.5, 3, 2.5, nan, 2]), jnp.array([1.0, 0, -1, 1, -1, -1.5, 1, nan])
    np.testing.assert_array_equal(jax.lax.zeta(x, q), [inf, inf, inf, nan, nan, nan, nan, nan])


def test_incomplete_beta(jax, jnp):
    a, b, x, want = columns(BETA, jnp)
    # JAX loses two digits at b = 50.
    np.testing.assert_allclose(jax.lax.betainc(a, b, x), want, rtol=3e-4 if jax.__name__ == "jax" else 1e-4)
    np.testing.assert_array_equal(jax.scipy.special.betainc(a, b, x), jax.lax.betainc(a, b, x))
    np.testing.assert_allclose(jax.lax.betainc(a, b, x) + jax.lax.betainc(b, a, 1 - x), 1, rtol=1e-5)
    same_in_programs_and_batches(jax, jax.lax.betainc, a[:2], b[:2], x[:2])


@pytest.mark.ours
def test_incomplete_beta_of_large_parameters(jax, jnp):
    # JAX is off by a thousandth here.
    np.testing.assert_allclose(jax.lax.betainc(1000.0, 2000.0, 0.328125), 0.27345443591870916, rtol=2e-5)


def test_incomplete_beta_at_the_ends(jax, jnp):
    a = jnp.array([0.0, 1, 1, 1, -1, inf, 1, 0, 1, 1])
    b = jnp.array([1.0, 0, 1, 1, 1, 1, inf, 0, nan, 1])
    x = jnp.array([0.5, 0.5, 0, 1, 0.5, 0.5, 0.5, 0.5, 0.5, -1])
    np.testing.assert_array_equal(jax.lax.betainc(a, b, x), [1, 0, 0, 1, nan, 0, 1, nan, nan, nan])


def test_incomplete_beta_is_differentiable_in_x(jax):
    # Its slope is the density x^(a-1) (1-x)^(b-1) / B(a, b), for (2, 3) 12 x (1-x)^2.
    np.testing.assert_allclose(jax.grad(jax.lax.betainc, 2)(2.0, 3.0, 0.25), 12 * 0.25 * 0.75**2, rtol=1e-5)


# (a, b, x, dI/da, dI/db), from differences with forty digits
BETA_SLOPES = [
    (0.009999999776482582, 0.30000001192092896, 0.20000000298023224, -4.100336693796914, 0.11161392243295368),
    (0.30000001192092896, 2.5, 0.75, -0.02510644308142417, 0.009895608764793722),
    (1.0, 1.0, 0.5, -0.34657359027997264, 0.34657359027997264),
    (2.5, 0.009999999776482582, 0.9900000095367432, -0.004635577347663226, 3.240678777963694),
    (2.0, 3.0, 0.25, -0.22805360232434638, 0.1069215300522914),
    (10.0, 50.0, 0.20000000298023224, -0.08561181418216333, 0.018908612739566753),
    (50.0, 10.0, 0.8999999761581421, -0.006286439178846363, 0.04224447535825966),
    (0.30000001192092896, 300.0, 0.0010000000474974513, -0.8777495175261522, 0.0005758830568268489),
    (300.0, 2.5, 0.9900000095367432, -0.0019338051609448022, 0.22483623113620493),
    (300.0, 300.0, 0.4699999988079071, -0.0056965872291736015, 0.005364643229469378),
    (50.0, 50.0, 0.5, -0.040060974249332894, 0.040060974249332894),
    (3000.0, 3000.0, 0.5, -0.005150680373715937, 0.005150680373715937),
    (3000.0, 10.0, 0.9950000047683716, -0.00015856896247494636, 0.03911889159200515),
]  # fmt: skip


def _slopes_of_beta(jax, *args):
    return jax.vmap(jax.grad(jax.lax.betainc, (0, 1)))(*args)


@pytest.mark.ours
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-9), ("float32", 2e-4)])
def test_incomplete_beta_is_differentiable_in_its_parameters(jax, jnp, x64, dtype, tolerance):
    """JAX refuses these derivatives."""
    a, b, x, by_a, by_b = (np.array(c) for c in zip(*BETA_SLOPES, strict=True))
    args = [jnp.asarray(v, dtype) for v in (a, b, x)]
    for f in (_slopes_of_beta, lambda jax, *v: jax.jit(lambda *v: _slopes_of_beta(jax, *v))(*v)):
        got = f(jax, *args)
        np.testing.assert_allclose(got[0], by_a, rtol=tolerance)
        np.testing.assert_allclose(got[1], by_b, rtol=tolerance)
    forward = [jax.jvp(jax.lax.betainc, args, [jnp.full_like(v, i == j) for j, v in enumerate(args)])[1] for i in (0, 1)]
    np.testing.assert_allclose(forward, [by_a, by_b], rtol=tolerance)


@pytest.mark.ours
def test_derivatives_of_incomplete_beta_over_a_grid(jax, jnp, x64):
    """Against differences; at the ends of x they are 0."""
    n = np.array([0.3, 1.0, 2.0, 7.5, 30.0, 200.0])
    a, b, x = (v.ravel() for v in np.meshgrid(n, n, [0.02, 0.2, 0.5, 0.8, 0.98]))
    by_a, by_b = _slopes_of_beta(jax, a, b, x)
    f, h = jax.lax.betainc, 1e-5
    np.testing.assert_allclose(by_a, (f(a * (1 + h), b, x) - f(a * (1 - h), b, x)) / (2 * h * a), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(by_b, (f(a, b * (1 + h), x) - f(a, b * (1 - h), x)) / (2 * h * b), rtol=1e-6, atol=1e-9)
    for end in (0.0, 1.0):
        np.testing.assert_array_equal(_slopes_of_beta(jax, a, b, jnp.full_like(x, end)), 0)
    edge = np.array([np.inf, 1.0, -1.0, 1.0, np.nan]), np.array([1.0, np.inf, 1.0, 1.0, 1.0]), np.array([0.5, 0.5, 0.5, 2.0, 0.5])
    np.testing.assert_array_equal(_slopes_of_beta(jax, *edge)[0], [0, 0, nan, nan, nan])


@pytest.mark.ours
def test_second_derivatives_of_incomplete_beta(jax, jnp, x64):
    for at in ((2.0, 3.0, 0.3), (12.0, 30.0, 0.25), (0.7, 40.0, 0.01), (25.0, 1.5, 0.97)):
        hessian = np.array(jax.hessian(jax.lax.betainc, (0, 1, 2))(*at))
        gradient = lambda v: np.array(jax.grad(jax.lax.betainc, (0, 1, 2))(*v))
        rows = [(gradient(at + h) - gradient(at - h)) / (2 * h.max()) for h in np.diag(1e-5 * np.array(at))]
        np.testing.assert_allclose(hessian, rows, rtol=2e-5, atol=1e-7)


@pytest.mark.ours
def test_distribution_functions_are_differentiable_in_beta_parameters(jax, jnp, x64):
    for name in ("cdf", "sf", "logcdf", "logsf"):
        f = getattr(jax.scipy.stats.beta, name)
        for a, b, x in ((2.0, 3.0, 0.3), (60.0, 45.0, 0.6), (0.5, 8.0, 0.02)):
            by_a, by_b = jax.grad(f, (1, 2))(x, a, b)
            h = 1e-6
            np.testing.assert_allclose(by_a, (f(x, a + h, b) - f(x, a - h, b)) / (2 * h), rtol=1e-5, atol=1e-8)
            np.testing.assert_allclose(by_b, (f(x, a, b + h) - f(x, a, b - h)) / (2 * h), rtol=1e-5, atol=1e-8)
        # outside the support nothing moves
        np.testing.assert_array_equal(jax.grad(f, (1, 2))(2.0, 3.0, 4.0), 0)


@pytest.mark.ours
def test_incomplete_beta_of_unlike_parameters(jax, jnp):
    """Beside a large parameter log gamma of it and of the sum cancel: single precision was left without a digit."""
    a, b, x = np.float32([5, 2.5, 0.5, 1e7, 3000]), np.float32([1e7, 3000, 1e6, 5, 2.5]), np.float32([4e-7, 8.326394e-4, 1e-6, 0.9999995, 0.9991674])
    np.testing.assert_allclose(
        jax.lax.betainc(a, b, x), [0.3711633865393979, 0.5840181076002244, 0.8427008443141734, 0.48203068857599285, 0.4159981094192007], rtol=2e-4
    )


def test_incomplete_gamma_primitives(jax, jnp):
    lax = jax.lax
    a, x, p, by_shape, move = columns(GAMMA, jnp)
    for f, want in ((lax.igamma, p), (lax.igammac, 1 - p), (lax.igamma_grad_a, by_shape), (lax.random_gamma_grad, move)):
        np.testing.assert_allclose(f(a, x), want, rtol=5e-5)
        same_in_programs_and_batches(jax, f, a[:2], x[:2])
    np.testing.assert_allclose(jax.vmap(jax.grad(lax.igamma))(a, x), by_shape, rtol=5e-5)
    np.testing.assert_allclose(jax.vmap(jax.grad(lax.igammac))(a, x), -by_shape, rtol=5e-5)
    ends = jnp.array([0.0, 1, -1, 1, 1, nan, 0]), jnp.array([1.0, 0, 1, -1, inf, 1, 0])
    np.testing.assert_array_equal(lax.igamma(*ends), [1, 0, nan, nan, 1, nan, nan])
    np.testing.assert_array_equal(lax.igammac(*ends), [0, 1, nan, nan, 0, nan, nan])


@pytest.mark.ours
def test_incomplete_gamma_functions_of_an_infinite_order(jax, jnp):
    # JAX has NaN from x = 1 on, and for derivatives.
    lax = jax.lax
    a, x = jnp.full(6, inf), jnp.array([0.0, 0.5, 3.0, 1e30, inf, -1.0])
    for f, want in (
        (lax.igamma, [0, 0, 0, 0, 1, nan]),
        (lax.igammac, [1, 1, 1, 1, 0, nan]),
        (lax.igamma_grad_a, [0, 0, 0, 0, nan, nan]),
        (jax.vmap(jax.grad(lax.igamma, 1)), [0, 0, 0, 0, nan, nan]),
        (jax.vmap(jax.grad(lax.igammac, 0)), [0, 0, 0, 0, nan, nan]),
    ):
        np.testing.assert_array_equal(f(a, x), want)
        np.testing.assert_array_equal(jax.jit(f)(a, x), want)


@pytest.mark.parametrize("dtype, error", [("complex64", 2e-6), ("complex128", 5e-15)])
def test_gamma_of_complex_numbers(jax, jnp, x64, dtype, error):
    z, log, gamma, _ = (np.array(c) for c in zip(*COMPLEX_GAMMA, strict=True))
    z = z.astype(dtype)
    for f in (jax.scipy.special.loggamma, jax.jit(jax.scipy.special.loggamma)):
        got = f(z)
        assert got.dtype == dtype
        assert (abs(got - log) <= error * np.maximum(1, abs(log))).all()
    assert (abs(jax.scipy.special.gamma(z)[:-2] - gamma[:-2]) <= 10 * error * abs(gamma[:-2])).all()
    assert np.isnan(jax.scipy.special.gamma(np.array([0, -1, -7], dtype))).all()
    np.testing.assert_allclose(jax.scipy.special.loggamma(jnp.array([0.5, -0.5, -1.5, -2.0])), [np.log(np.pi) / 2, nan, nan, nan], rtol=1e-6)


@pytest.mark.ours
def test_gamma_of_complex_numbers_has_slopes_and_both_sides_of_its_cut(jax, jnp, x64):
    # JAX has no reverse mode here, and takes -0 for 0.
    z, log, gamma, digamma = (np.array(c) for c in zip(*COMPLEX_GAMMA, strict=True))
    np.testing.assert_allclose(jax.vmap(jax.grad(jax.scipy.special.loggamma, holomorphic=True))(z), digamma, rtol=1e-13)
    np.testing.assert_allclose(jax.jvp(jax.scipy.special.gamma, (z,), (1j * np.ones_like(z),))[1], 1j * gamma * digamma, rtol=1e-13)
    np.testing.assert_allclose(jax.scipy.special.loggamma(complex(-0.79, -0.0)), np.conj(log[4]), rtol=1e-14)


@pytest.mark.parametrize("name", ["igamma", "igammac", "igamma_grad_a", "zeta"])
def test_operands_have_one_float_dtype_and_shapes_that_fit(jax, jnp, name):
    f = getattr(jax.lax, name)
    assert f(1.5, 2.5).weak_type and jax.jit(f)(1.5, 2.5).weak_type and not f(1.5, jnp.ones(2)).weak_type
    with pytest.raises(TypeError, match=f"lax.{name} requires arguments to have the same dtypes, got float16, float32."):
        f(jnp.ones(2, "float16"), 1.0)
    with pytest.raises(TypeError, match=f"{name}: arrays must have the same number of dimensions, got {{1, 2}}"):
        f(jnp.ones((2, 1)), jnp.ones(3))
    f, x = getattr(jax.lax, name), jnp.ones(3)
    with pytest.raises(TypeError, match=f"{name} does not accept dtype int32 at position 0. Accepted dtypes at position 0 are subtypes of floating."):
        f(jnp.array([1]), jnp.array([2]))
    with pytest.raises(TypeError, match=f"lax.{name} requires arguments to have the same dtypes, got float32, float16."):
        f(x, jnp.float16(1))
    with pytest.raises(TypeError, match=r"got incompatible shapes for broadcasting: \(3,\), \(2,\)"):
        f(x, x[:2])
    assert str(jax.make_jaxpr(f)(1.0, 2.0)) == f"{{ lambda ; a:f32[] b:f32[]. let c:f32[] = {name} a b in (c,) }}"


# The words that JAX draws from the state (1, 2, 3, 4) with threefry.
WORDS = [1576285164, 2249660814, 740599976, 2425682526, 2436392515, 1497962777]


@pytest.mark.parametrize(
    "shape, dtype, blocks, order",
    [((5,), "uint32", 3, [0, 1, 2, 3, 4]), ((6,), "uint32", 3, [0, 1, 2, 3, 4, 5]), ((2, 3), "uint32", 3, [0, 2, 4, 1, 3, 5]), ((3, 2), "uint32", 3, [0, 1, 2, 3, 4, 5]),
     ((), "uint32", 1, [0]), ((1, 3), "uint8", 2, [0, 1, 2]), ((4,), "uint16", 2, [0, 1, 2, 3]), ((0,), "uint32", 0, [])],
)  # fmt: skip
def test_random_bits(jax, jnp, shape, dtype, blocks, order):
    draw = lambda s: jax.lax.rng_bit_generator(s, shape, dtype, algorithm=jax.lax.RandomAlgorithm.RNG_THREE_FRY)
    state = jnp.array([1, 2, 3, 4], "uint32")
    for f in (draw, jax.jit(draw)):
        after, bits = f(state)
        assert bits.shape == shape and bits.dtype == dtype
        np.testing.assert_array_equal(after, [1, 2, 3 + blocks, 4])
        np.testing.assert_array_equal(np.ravel(bits), np.array(WORDS)[order].astype(dtype))


def test_the_counter_of_random_bits_carries(jax, jnp):
    state = jnp.array([1, 2, 2**32 - 1, 4], "uint32")
    after, bits = jax.lax.rng_bit_generator(state, (5,), algorithm=jax.lax.RandomAlgorithm.RNG_THREE_FRY)
    np.testing.assert_array_equal(after, [1, 2, 2, 5])
    np.testing.assert_array_equal(bits, [1659226264, 1696293625, 2593290630, 1369596596, 1606051822])


def test_random_bits_of_64_bit_states(jax, jnp):
    # A state of two words of 64 bits is those of 32, low ones first.
    with jax.enable_x64(True):
        threefry = jax.lax.RandomAlgorithm.RNG_THREE_FRY
        state = jnp.array([1, 2, 3, 4], "uint32")
        after, bits = jax.lax.rng_bit_generator(state, (3,), "uint64", algorithm=threefry)
        np.testing.assert_array_equal(bits, np.array([9662219624799024108, 10418227120389269672, 6433701140276733507], np.uint64))
        np.testing.assert_array_equal(after, [1, 2, 6, 4])


def test_uniform_numbers_of_the_host(jax, jnp):
    draw = jax.jit(lambda: jax.lax.rng_uniform(2.0, 3.0, (50,)))
    first, second = np.asarray(draw()), np.asarray(draw())
    assert first.dtype == np.float32 and (first >= 2).all() and (first <= 3).all() and (first != second).any()
    assert set(np.asarray(jax.lax.rng_uniform(0, 3, (200,))).tolist()) == {0, 1, 2}
    with pytest.raises(ValueError, match="must be scalars"):
        jax.lax.rng_uniform(jnp.zeros(2), jnp.ones(2), (3,))


def test_continued_fractions_end_where_rounding_begins(jax):
    """Each further ratio would add its rounding: 28 000 roundings here, after 20 000 steps. The value is mpmath's."""
    got = jax.scipy.special.gammaincc(np.float32(0.0208214670419693), np.float32(1.6736572980880737))
    np.testing.assert_allclose(got, 0.0016624917175546293, rtol=1e-5)


def test_incomplete_gamma_functions_of_large_orders(jax, jnp):
    """Values of SciPy 1.16, and of an integral in 40 digits, from which SciPy's are a third off; about their order they are nearly the normal distribution's."""
    q = jax.scipy.special.gammaincc
    p = jax.scipy.special.gammainc
    a = np.array([1e6, 1e7, 1e8, 1e9, 2.0**31], np.float32)
    want = [0.49986702, 0.49995795, 0.4999867, 0.49999579, 0.49999713]
    np.testing.assert_allclose(q(a, a), want, rtol=3e-7)
    np.testing.assert_allclose(p(a, a), 1 - np.array(want), rtol=3e-7)
    np.testing.assert_allclose(q(np.float32(1e8), np.float32(100010000)), 0.158655254, rtol=1e-5)
    with jax.enable_x64(True):
        np.testing.assert_allclose(p(1e8, 1e8 - 6e4), 9.7952134364735972e-10, rtol=1e-13)
        np.testing.assert_allclose(p(1e12, 1e12 - 6.5e6), 4.0156335348067007e-11, rtol=1e-13)
        a = 1e12
        z = np.array([-30.0, -6, -1, 0, 0.5, 3, 20])
        at = a + z * np.sqrt(a)
        tail = 0.5 * jax.scipy.special.erfc(z / np.sqrt(2))
        np.testing.assert_allclose(q(a, at), tail, rtol=5e-3)
        np.testing.assert_allclose(q(a, at) + p(a, at), np.ones(7), rtol=1e-15)
        assert q(1e9, 3e38) == 0 and p(1e9, 3e38) == 1 and q(1e9, 0.0) == 1
    assert np.isfinite(jax.grad(p, 1)(jnp.float32(1e9), jnp.float32(1e9)))


def test_derivatives_of_incomplete_gamma_functions_in_a_large_order(jax):
    """Of integrals in 50 digits: of the density's derivative over the tail, by the density for the way a draw moves."""
    a, x, moves, slope = np.array(
        [
            (1e6, 1e6, 1.00000016666668333, -0.000398942313646625205),
            (1e6, 1.002e6, 1.0009995008324179, -0.0000540808600284676738),
            (1e6, 5e5, 0.693147294265591211, 0),
            (1e6, 1e3, 0.00691467044350497259, 0),
            (1e6, 1.05e6, 1.02459361831011516, 0),
            (1e6, 3e6, 1.64791869706337768, 0),
            (1e6, 1e9, 6.91467044350513449, 0),
            (1e8, 1e8, 1.00000000166666667, -0.0000398942280733884579),
            (1e8, 100010000, 1.00005000000016666, -0.0000241966691808179156),
            (1e8, 99950000, 0.999749959989163459, -1.4809056819852582e-10),
            (1e10, 10000300000, 1.00001499986666917, -4.43218080492679085e-8),
            (1e12, 999993500000, 0.999996749993124977, -2.66932092439740839e-16),
            (1e12, 1e12, 1.00000000000016667, -3.98942280401465923e-7),
        ]
    ).T
    special, lax = jax.scipy.special, jax.lax
    slope_of = jax.vmap(jax.grad(special.gammainc))
    with jax.enable_x64(True):
        np.testing.assert_allclose(lax.random_gamma_grad(a, x), moves, rtol=3e-14)
        np.testing.assert_allclose(slope_of(a, x), slope, rtol=1e-12)
        np.testing.assert_allclose(jax.vmap(jax.grad(special.gammaincc))(a, x), -slope, rtol=1e-12)
    a, x = a.astype(np.float32), x.astype(np.float32)
    np.testing.assert_allclose(lax.random_gamma_grad(a, x), moves, rtol=3e-6)
    at = a == x
    np.testing.assert_allclose(np.asarray(slope_of(a, x))[at], slope[at], rtol=1e-6)
    assert np.isfinite(lax.random_gamma_grad(np.float32(1e6), np.array([1e-38, 1e38], np.float32))).all()


def test_bessel_functions_beyond_the_range_of_the_exponential(jax):
    """exp(90) is beyond float32, I0(90) is not; mpmath's values."""
    s, x = jax.scipy.special, np.array([-91.5, 90], np.float32)
    want = np.array([2.284237153e38, 5.139238346e37])
    np.testing.assert_allclose(s.i0(x), want, rtol=1e-6)
    np.testing.assert_allclose(jax.numpy.i0(x), want, rtol=1e-6)
    np.testing.assert_allclose(s.i1(x), [-2.271720499e38, 5.110606815e37], rtol=1e-6)
    np.testing.assert_allclose(jax.grad(jax.numpy.i0)(x[0]), -2.271720499e38, rtol=1e-6)


def test_derivatives_of_bessel_functions(jax):
    """Of I0 and I1, first to third, beside mpmath's values: beyond the exponential's range, where |x| has a kink, and between."""
    s, x = jax.scipy.special, np.array([-91.5, 0, 0.001, 1.1, 20], np.float32)
    want = {
        s.i0: [
            [-2.271720499e38, 0, 5.000000625e-4, 0.6374888, 4.2454974e7],
            [2.259409511e38, 0.5, 0.5000002, 0.7466247, 4.1435509e7],
            [-2.247298e38, 0, 3.75e-4, 0.4855893, 4.0489294e7],
        ],
        s.i1: [
            [2.259409511e38, 0.5, 0.5000002, 0.7466247, 4.1435509e7],
            [-2.247298e38, 0, 3.75e-4, 0.4855893, 4.0489294e7],
            [2.235383e38, 0.375, 0.375, 0.5813607, 3.9607592e7],
        ],
    }
    for f, orders in want.items():
        for values in orders:
            f = jax.grad(f)
            np.testing.assert_allclose(jax.vmap(f)(x), values, rtol=2e-5)


# (a, x, Q(a, x)): of small orders, where 1 - P has no digits
SMALL_ORDERS = [
    (1e-30, 1e-20, 4.5474486194979385e-29), (1e-30, 0.125, 1.6234256405841689e-30), (1e-30, 0.96875, 2.3124901984638792e-31), (1e-30, 1.5, 1.0001958240663266e-31),
    (1e-10, 0.5, 5.5977359480549881e-11), (1e-3, 1e-20, 0.044456803696696492), (1e-3, 0.125, 0.0016228138903121214), (1e-3, 0.96875, 0.00023148009452847845),
    (1e-3, 1.5, 0.00010015295965701438), (0.25, 1e-20, 0.99998896737348679), (0.25, 0.96875, 0.071180687835436476), (0.25, 1.5, 0.03341644415897903),
    (0.75, 0.125, 0.78304341930439369), (0.75, 0.5, 0.47206289016532821), (0.75, 0.96875, 0.26958749872877432), (0.75, 1.5, 0.14759955436475043),
]  # fmt: skip
# (a, x, dQ/da)
SMALL_ORDER_SLOPES = [
    (1e-3, 1e-20, 43.454406546972914), (1e-3, 0.125, 1.6222014168970265), (1e-3, 0.96875, 0.23171110942803277), (1e-3, 1.5, 0.10028634765036702),
    (0.25, 0.125, 1.2360782806752975), (0.25, 0.96875, 0.33338680575691248), (0.75, 0.5, 0.58342845833661528), (0.75, 1.5, 0.28224836530791839),
]  # fmt: skip


@pytest.mark.ours
def test_incomplete_gamma_functions_of_small_orders(jax, jnp, x64):
    lax = jax.lax
    for rows, f in ((SMALL_ORDERS, lax.igammac), (SMALL_ORDER_SLOPES, jax.grad(lax.igammac))):
        for a, x, want in rows:
            np.testing.assert_allclose(f(a, x), want, rtol=1e-13)
    orders = np.float32([1e-30, 1e-20, 1e-10, 1e-5, 0.01, 0.3, 0.5, 0.7, 0.99])
    a, x = (v.ravel() for v in np.meshgrid(orders, np.float32([1e-30, 1e-8, 0.01, 0.5, 0.9, 1.0, 1.2, 1.9, 3.0, 20.0])))
    for f in (lax.igamma, lax.igammac, jax.vmap(jax.grad(lax.igammac)), jax.vmap(jax.grad(lax.igammac, 1))):
        np.testing.assert_allclose(f(a, x), f(a.astype(float), x.astype(float)), rtol=1e-5, atol=1e-37)
    total = lax.igamma(a, x) + lax.igammac(a, x)
    np.testing.assert_allclose(total, 1, rtol=3e-7)


# (a, b, x, I_x(a, b)): of large parameters about the mean, and of small ones, where the complement of 1 has no digits
UNLIKE_SIZES = [
    (2e4, 3e4, 0.40625, 0.9978036618147675), (2e4, 3e4, 0.39453125, 0.006220359864021952), (1000.0, 4000.0, 0.1875, 0.012591835613305005),
    (2.0**18, 2.0**19, 0.3330078125, 0.2702006650907029), (2.0**22, 2.0**24, 0.199951171875, 0.28810067655325994),
    (0.5, 2.0**-20, 0.75, 2.5118933216303548e-6), (2.0**-20, 0.5, 0.75, 0.99999895228315939), (3.0, 2.0**-30, 0.5, 6.3467007710846494e-11),
    (2.0**-40, 2.0**-42, 0.125, 0.19999999999964604), (0.25, 40.0, 0.03125, 0.95329157935833054),
]  # fmt: skip
# (a, b, x, its derivatives in a and b)
UNLIKE_SIZES_SLOPES = [
    (0.5, 2.0**-20, 0.75, -4.4321355085999911e-6, 2.6339063094025333), (2.0**-20, 0.5, 0.25, -2.6339063094025333, 4.4321355085999911e-6),
    (3.0, 2.0**-20, 0.5, -6.3873856762396839e-8, 0.068147310241474269),
]  # fmt: skip


@pytest.mark.ours
def test_incomplete_beta_of_large_and_small_parameters(jax, jnp, x64):
    lax = jax.lax
    for dtype, rtol in (("float64", 1e-11), ("float32", 1e-5)):
        for *at, want in UNLIKE_SIZES:
            np.testing.assert_allclose(lax.betainc(*(jnp.asarray(v, dtype) for v in at)), want, rtol=rtol)
        for a, b, x, by_a, by_b in UNLIKE_SIZES_SLOPES:
            got = jax.grad(lax.betainc, (0, 1))(*(jnp.asarray(v, dtype) for v in (a, b, x)))
            np.testing.assert_allclose(got, (by_a, by_b), rtol=rtol)


@pytest.mark.ours
@pytest.mark.parametrize("a, b", [(2e5, 3e5), (1e3, 1e6), (3e6, 7e6), (5e7, 9e7), (1e8, 1e11), (50.0, 1e7)])
def test_incomplete_beta_of_single_precision_about_the_mean(jax, jnp, x64, a, b):
    """lambda = a - (a+b) x, on which all depends there, is not rounded on its way; by the fraction, and beyond 1e6 by the uniform expansion."""
    f = jax.lax.betainc
    a, b = np.float32(a), np.float32(b)
    mean, width = float(a) / (float(a) + float(b)), np.sqrt(float(a) * float(b) / (float(a) + float(b)) ** 3)
    x = np.float32(mean + width * np.linspace(-3, 3, 25))
    args, wide = (np.full_like(x, a), np.full_like(x, b), x), (np.full(x.shape, float(a)), np.full(x.shape, float(b)), x.astype(float))
    np.testing.assert_allclose(f(*args), f(*wide), rtol=1e-5)
    for k in range(3):
        slope = jax.vmap(jax.grad(f, k))
        want = slope(*wide)
        np.testing.assert_allclose(slope(*args), want, rtol=1e-3 if b < 1e7 else 2e-2, atol=1e-4 * np.abs(want).max())
    # I_x(a, b) + I_(1-x)(b, a) = 1
    np.testing.assert_allclose(f(*wide) + f(wide[1], wide[0], 1 - wide[2]), 1, rtol=1e-9)


# (x, i0e', i0e'') and (x, i1e', i1e'')
SCALED_BESSEL = {
    "bessel_i0e": [
        (0.5, -0.48861446726427837, 0.66438732815881335), (7.5, -0.0102746185288413, 0.0021437421845420404), (8.5, -0.0084524879602517417, 0.0015462282623157358),
        (100.0, -0.00020022627396642997, 3.0110176815574211e-6), (1000.0, -6.3101989626271155e-6, 9.4676683256014869e-9),
    ],
    "bessel_i1e": [
        (2.0**-20, 0.49999904632653624, -0.99999821186224835), (0.5, 0.17577286089453498, -0.39024983720839651), (7.5, -0.00813087634429926, 0.0013944406444499357),
        (8.5, -0.0069062596979360059, 0.0010731843678164705), (100.0, -0.00019721525628487255, 2.9355501838043297e-6),
        (1000.0, -6.300731294301514e-6, 9.4439932256286566e-9),
    ],
}  # fmt: skip


@pytest.mark.ours
@pytest.mark.parametrize("name", SCALED_BESSEL)
def test_derivatives_of_scaled_bessel_functions(jax, jnp, x64, name):
    """I0 and I1 agree in more and more digits as x grows, and the derivative is their difference."""
    f = getattr(jax.lax, name)
    # i0e is even, so its first derivative is odd; i1e is odd
    odd = 0 if name == "bessel_i0e" else 1
    for dtype, rtol in (("float64", 1e-13), ("float32", 2e-5)):
        for x, first, second in SCALED_BESSEL[name]:
            for sign in (1, -1):
                at = jnp.asarray(sign * x, dtype)
                np.testing.assert_allclose(jax.grad(f)(at), sign ** (1 + odd) * first, rtol=rtol)
                np.testing.assert_allclose(jax.grad(jax.grad(f))(at), sign**odd * second, rtol=16 * rtol)
    x = np.float32([1e-30, 1e-4, 0.01, 0.999, 1.0, 1.001, 3, 7.999, 8, 8.001, 50, 1e4, 1e5, 1e8])
    for g in (f, jax.grad(f), jax.grad(jax.grad(f)), jax.grad(jax.grad(jax.grad(f)))):
        np.testing.assert_allclose(jax.jit(jax.vmap(g))(x), jax.vmap(g)(x.astype(float)), rtol=2e-3, atol=1e-37)
    assert jax.grad(f)(inf) == 0


@pytest.mark.ours
def test_slopes_of_draws_from_the_von_mises_distribution_stay_accurate(jax, jnp, x64):
    """The derivative of log pdf in kappa holds i0e'/i0e, which was left without a digit at 1e5."""
    f = jax.grad(jax.scipy.stats.vonmises.logpdf, 1)
    for kappa in (1.0, 50.0, 1e3, 1e5, 1e7):
        np.testing.assert_allclose(f(jnp.float32(1e-3), jnp.float32(kappa)), f(float(np.float32(1e-3)), float(np.float32(kappa))), rtol=2e-4)
