"""Activations, normalisation, attention, initializers, special functions: against formulas and, where it is installed, against JAX."""

import math

import numpy as np
import pytest

X = np.array([-30.0, -3.0, -1.5, -1.0, -0.5, 0.0, 0.3, 1.0, 2.0, 3.0, 6.0, 40.0], np.float32)
sigmoid = lambda x: 1 / (1 + np.exp(-x))
softplus = lambda x: np.logaddexp(x, 0)
FORMULAS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": sigmoid,
    "softplus": softplus,
    "soft_sign": lambda x: x / (1 + abs(x)),
    "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "log_sigmoid": lambda x: -softplus(-x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "celu": lambda x: np.maximum(x, 0) + np.expm1(np.minimum(x, 0)),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip(x + 1, 0, 2) / 2,
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "identity": lambda x: x,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_activation(jax, name):
    f = getattr(jax.nn, name)
    want = FORMULAS[name](X.astype(np.float64))
    np.testing.assert_allclose(f(X), want, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(jax.jit(f)(X), np.asarray(f(X)), rtol=0, atol=0)
    inside = X[(abs(X) < 5) & ~np.isin(X, [0, -1, 1, -3, 3])]
    jax.test_util.check_grads(lambda x: f(x).sum(), (inside,), order=1, atol=2e-2, rtol=2e-2, eps=1e-2)


Z = np.array([-2 + 1j, -0.5 - 3j, -1j, 1j, 0.25 + 1j, 1 - 2j, 3 + 0.5j, 0], np.complex64)
positive = lambda z: (z.real > 0) | ((z.real == 0) & (z.imag > 0))
COMPLEX = {
    "elu": lambda z: np.where(positive(z), z, np.expm1(z)),
    "celu": lambda z: np.where(positive(z), z, np.expm1(z)),
    "selu": lambda z: 1.0507009873554805 * np.where(positive(z), z, 1.6732632423543772 * np.expm1(z)),
    "leaky_relu": lambda z: np.where(positive(z) | (z == 0), z, 0.01 * z),
    "hard_tanh": lambda z: np.where(positive(z - 1), 1, np.where(positive(-1 - z), -1, z)),
    "sparse_plus": lambda z: np.where(~positive(z + 1), 0, np.where(positive(1 - z), (z + 1) ** 2 / 4, z)),
    "log1mexp": lambda z: np.log(1 - np.exp(-z)),
    "relu": lambda z: np.where(positive(z), z, 0),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_activations_order_complex_numbers_by_real_part_first(jax, name):
    f = getattr(jax.nn, name)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.testing.assert_allclose(np.asarray(f(Z))[:-1], COMPLEX[name](Z.astype(complex))[:-1], rtol=2e-5, atol=1e-6)
    slope = jax.grad(f, holomorphic=True)(Z[4])
    step = 1e-4 * (COMPLEX[name](Z[4:5].astype(complex) + 1e-4) - COMPLEX[name](Z[4:5].astype(complex) - 1e-4)) / 2e-8
    np.testing.assert_allclose(slope, step[0], rtol=1e-4)


def test_integer_slopes_of_integers_stay_integers(jax, jnp):
    y = jax.nn.leaky_relu(jnp.arange(-2, 2), 3)
    assert y.dtype == np.int32 and y.tolist() == [-6, -3, 0, 1]


def test_kinks(jax, jnp):
    slopes = lambda f, xs: np.asarray(jax.vmap(jax.grad(f))(jnp.array(xs))).tolist()
    assert slopes(jax.nn.relu, [-1.0, 0.0, 1.0]) == [0, 0, 1] and slopes(jax.nn.relu6, [0.0, 3.0, 6.0, 7.0]) == [0, 1, 0, 0]
    assert slopes(jax.nn.softplus, [1e4, -1e4]) == [1, 0] and slopes(jax.nn.log_sigmoid, [-1e4]) == [1] and slopes(jax.nn.elu, [-200.0])[0] < 1e-30
    assert math.isnan(float(jax.nn.relu(jnp.nan)))


def test_gelu_exact(jax):
    want = [0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in X.astype(float)]
    np.testing.assert_allclose(jax.nn.gelu(X, approximate=False), want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1, None, (0, 1)])
@pytest.mark.parametrize("masked", [False, True])
def test_softmax(jax, jnp, axis, masked):
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    where = np.array([[1, 0, 1, 1], [1, 1, 1, 0], [0, 1, 1, 1]], bool) if masked else None
    e = np.exp(x.astype(np.float64)) * (1 if where is None else where)
    want = e / e.sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(jax.nn.softmax(x, axis=axis, where=where), want, rtol=1e-5, atol=1e-7)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(jax.nn.log_softmax(x, axis=axis, where=where), np.log(want), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(jax.nn.logsumexp(x, axis=axis, where=where), np.log(e.sum(axis=axis)), rtol=1e-5, atol=1e-6)
    jax.test_util.check_grads(lambda x: (jax.nn.softmax(x, axis=axis, where=where) ** 2).sum(), (x,), order=2, atol=2e-2, rtol=2e-2, eps=1e-2)


def test_softmax_of_large_numbers(jax, jnp):
    np.testing.assert_allclose(jax.nn.softmax(jnp.array([1e4, 1e4 - 1])), [0.7310586, 0.2689414], rtol=1e-5)
    np.testing.assert_allclose(jax.nn.logsumexp(jnp.array([-1e4, -1e4])), -1e4 + np.log(2), rtol=1e-6)


def test_logsumexp_with_weights_and_signs(jax, jnp):
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    log, sign = jax.nn.logsumexp(x, axis=0, b=np.array([[1.0, -2.0, 3.0]], np.float32), return_sign=True)
    np.testing.assert_allclose(log, [3.0485873, 4.7417345, 6.1471996], rtol=1e-5)
    assert np.asarray(sign).tolist() == [1, -1, 1]
    assert math.isnan(float(jax.nn.logsumexp(x, b=-1.0))) and float(jax.nn.logsumexp(jnp.zeros(0))) == -np.inf


def test_logsumexp_never_sees_what_is_masked_out(jax, jnp):
    x, where = jnp.array([0.0, jnp.inf, 0.0, jnp.nan]), jnp.array([True, False, True, False])
    value, slope = jax.value_and_grad(lambda x: jax.nn.logsumexp(x, where=where))(x)
    np.testing.assert_allclose(value, np.log(2), rtol=1e-6)
    assert slope.tolist() == [0.5, 0, 0.5, 0]


def test_standardize_and_one_hot(jax, jnp):
    x = np.random.default_rng(0).standard_normal((4, 50)).astype(np.float32) * 3 + 7
    want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(jax.nn.standardize(x), want, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(jax.nn.standardize(x + 1e4, algorithm="stable"), want, rtol=5e-2, atol=2e-3)
    with pytest.raises(ValueError, match="Unknown algorithm 'exact'. Expected 'fast' or 'stable'."):
        jax.nn.standardize(x, algorithm="exact")
    assert np.asarray(jax.nn.one_hot(jnp.array([0, 2, 5, -1]), 3)).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert jax.nn.one_hot(jnp.zeros((2, 2), int), 5, axis=0).shape == (5, 2, 2) and jax.nn.one_hot(1, 3, dtype=jnp.int32).dtype == np.int32
    with pytest.raises(TypeError):
        jax.nn.one_hot(jnp.array([0]), 2.5)


OPTIONS = {
    "plain": {},
    "causal": dict(is_causal=True),
    "scale": dict(scale=0.5),
    "bias": dict(bias=np.arange(30, dtype=np.float32).reshape(1, 1, 5, 6) / 10),
    "mask": dict(mask=np.tril(np.ones((5, 6), bool))[None, None]),
    "window": dict(local_window_size=(1, 2)),
    "lengths": dict(key_value_seq_lengths=np.array([6, 2])),
}


def attention(q, k, v, bias=None, mask=None, scale=None, is_causal=False, local_window_size=None, key_value_seq_lengths=None):
    """One head at a time, in float64."""
    out = np.zeros(q.shape)
    for b, n in np.ndindex(q.shape[0], q.shape[2]):
        kv = n // (q.shape[2] // k.shape[2])
        s = q[b, :, n].astype(float) @ k[b, :, kv].T.astype(float) * (scale or q.shape[-1] ** -0.5) + (0 if bias is None else bias[0, 0])
        t, u = np.ogrid[: q.shape[1], : k.shape[1]]
        seen = np.ones(s.shape, bool) if mask is None else mask[0, 0]
        seen = seen & (t >= u) if is_causal else seen
        seen = seen & (u >= t - local_window_size[0]) & (u <= t + local_window_size[1]) if local_window_size else seen
        seen = seen & (u < key_value_seq_lengths[b]) if key_value_seq_lengths is not None else seen
        e = np.where(seen, np.exp(s), 0)
        out[b, :, n] = e / e.sum(-1, keepdims=True) @ v[b, :, kv]
    return out


@pytest.mark.parametrize("name", OPTIONS)
def test_attention(jax, jnp, name):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(s).astype(np.float32) for s in ((2, 5, 4, 8), (2, 6, 2, 8), (2, 6, 2, 8)))
    options = {key: jnp.asarray(x) if isinstance(x, np.ndarray) else x for key, x in OPTIONS[name].items()}
    np.testing.assert_allclose(jax.nn.dot_product_attention(q, k, v, **options), attention(q, k, v, **OPTIONS[name]), rtol=2e-4, atol=2e-5)


def test_attention_of_complex_numbers_weighs_by_real_parts(jax):
    rng = np.random.default_rng(0)
    q, k, v = ((rng.standard_normal((2, 5, 3, 8, 2)) @ [1, 1j]).astype(np.complex64) for _ in range(3))
    scores = np.einsum("btnh,bsnh->bnts", q, k).real / np.sqrt(8)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    out, log = jax.nn.dot_product_attention(q, k, v, return_residual=True)
    np.testing.assert_allclose(out, np.einsum("bnts,bsnh->btnh", weights, v), rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(log, np.log(np.exp(scores).sum(-1)).swapaxes(1, 2), rtol=2e-4)


def test_attention_refuses_bad_shapes(jax):
    q, k = np.ones((1, 2, 3, 4), np.float32), np.ones((1, 2, 2, 4), np.float32)
    with pytest.raises(ValueError, match="The number of query heads must be a multiple of key/value heads, but got 3 vs 2"):
        jax.nn.dot_product_attention(q, k, k)
    with pytest.raises(ValueError, match="Unsupported implementation option: foo"):
        jax.nn.dot_product_attention(q, q, q, implementation="foo")


INITIALIZERS = {
    "glorot_uniform": 2 / 400,
    "glorot_normal": 2 / 400,
    "lecun_uniform": 1 / 100,
    "lecun_normal": 1 / 100,
    "he_uniform": 2 / 100,
    "he_normal": 2 / 100,
}


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializer_variance(jax, name):
    w = np.asarray(getattr(jax.nn.initializers, name)()(jax.random.key(0), (100, 300)))
    assert abs(w.mean()) < 3e-3 and abs(w.var() / INITIALIZERS[name] - 1) < 0.03


def test_orthogonal_initializers(jax):
    init = jax.nn.initializers
    w = np.asarray(init.orthogonal(2.0)(jax.random.key(0), (4, 3)))
    np.testing.assert_allclose(w.T @ w, 4 * np.eye(3), atol=1e-5)
    d = np.asarray(init.delta_orthogonal()(jax.random.key(0), (3, 3, 4, 4)))
    np.testing.assert_allclose(d[1, 1] @ d[1, 1].T, np.eye(4), atol=1e-5)
    assert abs(d).sum() == pytest.approx(abs(d[1, 1]).sum())
    for call, words in (
        (lambda k: init.orthogonal()(k, (3,)), "orthogonal initializer requires at least a 2D shape"),
        (lambda k: init.glorot_uniform()(k, (4,)), "Can't compute input and output sizes of a 1-dimensional weights tensor"),
        (lambda k: init.variance_scaling(1.0, "foo", "normal")(k, (4, 3)), "invalid mode for variance scaling initializer: foo"),
    ):
        with pytest.raises(ValueError, match=words):
            call(jax.random.key(0))


SPECIAL = {
    "gammaln": (math.lgamma, [0.3, 1.0, 2.5, 7.0]),
    "gamma": (math.gamma, [0.3, 1.0, 2.5, -1.5, 7.0]),
    "factorial": (lambda n: math.gamma(n + 1), [0.0, 1.0, 5.0]),
    "erf": (math.erf, [-2.0, 0.0, 0.5]),
    "erfc": (math.erfc, [-2.0, 0.0, 0.5, 4.0]),
    "expit": (lambda x: 1 / (1 + math.exp(-x)), [-3.0, 0.0, 2.0]),
    "logit": (lambda p: math.log(p / (1 - p)), [0.1, 0.5, 0.9]),
    "entr": (lambda x: -x * math.log(x) if x else 0.0, [0.0, 0.3, 2.0]),
    "ndtr": (lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), [-5.0, -1.0, 0.0, 2.0]),
    "log_ndtr": (lambda x: math.log(0.5 * math.erfc(-x / math.sqrt(2))), [-11.0, -5.0, 0.0, 3.0]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special(jax, name):
    f, xs = SPECIAL[name]
    np.testing.assert_allclose(getattr(jax.scipy.special, name)(np.array(xs, np.float32)), [f(x) for x in xs], rtol=3e-5, atol=1e-6)


def test_special_inverses(jax, jnp):
    s = jax.scipy.special
    p = np.array([1e-7, 0.001, 0.1, 0.5, 0.9, 0.999], np.float32)
    np.testing.assert_allclose(s.ndtr(s.ndtri(p)), p, rtol=1e-4)
    np.testing.assert_allclose(s.erf(s.erfinv(2 * p - 1)), 2 * p - 1, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(s.expit(s.logit(p)), p, rtol=1e-5)


def test_zero_times_log_of_zero(jax):
    s = jax.scipy.special
    assert float(s.xlogy(0.0, 0.0)) == 0 and float(s.xlog1py(0.0, -1.0)) == 0 and float(s.rel_entr(0.0, 0.0)) == 0 and float(s.rel_entr(1.0, 0.0)) == np.inf
    np.testing.assert_allclose(s.xlogy(2.0, 3.0), 2 * np.log(3), rtol=1e-6)


def test_lists_are_refused(jax):
    for f in (jax.nn.relu, jax.nn.silu, jax.nn.softmax, jax.nn.gelu):
        with pytest.raises(TypeError, match="requires ndarray or scalar arguments, got <class 'list'> at position 0."):
            f([1.0, 2.0])


def test_incomplete_gamma(jax, jnp):
    s = jax.scipy.special
    a, x = (v.ravel().astype(np.float32) for v in np.meshgrid([0.5, 1.0, 3.0, 40.0, 1000.0], [0.3, 1.0, 5.0, 45.0, 1020.0]))
    # P(n, x) of integer n is one minus a Poisson sum; P(1/2, x) is erf(sqrt(x)).
    poisson = lambda n, x: sum(math.exp(-x + k * math.log(x) - math.lgamma(k + 1)) for k in range(int(n)))
    want = [math.erf(math.sqrt(q)) if p == 0.5 else 1 - poisson(p, float(q)) for p, q in zip(a, x, strict=True)]
    # JAX loses three digits at a = 1000.
    np.testing.assert_allclose(s.gammainc(a, x), want, rtol=3e-4 if jax.__name__ == "jax" else 2e-5, atol=3e-6)
    np.testing.assert_allclose(np.asarray(s.gammainc(a, x)) + np.asarray(s.gammaincc(a, x)), 1, atol=1e-6)
    jax.test_util.check_grads(lambda a, x: s.gammainc(a, x).sum(), (a[a < 50], np.minimum(x[a < 50], 60)), order=1, atol=5e-3, rtol=5e-3, eps=1e-2)


@pytest.mark.ours
def test_products_of_scaled_blocks(jax, jnp):
    # JAX compiles none of these for CPUs, scaled_dot excepted.
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 12)).astype("float32"), rng.normal(size=(2, 5, 12)).astype("float32")
    s, t = rng.normal(size=(2, 3, 4)).astype("float32"), rng.normal(size=(2, 5, 4)).astype("float32")
    want = np.einsum("bmk,bnk->bmn", a * np.repeat(s, 3, -1), b * np.repeat(t, 3, -1))
    np.testing.assert_allclose(jax.nn.scaled_matmul(a, b, s, t), want, rtol=1e-5, atol=1e-5)
    assert jax.nn.scaled_matmul(a, b, s, t, preferred_element_type="bfloat16").dtype == "bfloat16"
    turned = dict(rhs_scale=t.swapaxes(1, 2), preferred_element_type="float32")
    np.testing.assert_allclose(jax.jit(lambda *x: jax.lax.scaled_dot(*x, lhs_scale=s, **turned))(a, b.swapaxes(1, 2)), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(jax.grad(lambda s: jax.nn.scaled_matmul(a, b, s, t).sum())(s).shape, s.shape)
    dims = (((2,), (2,)), ((0,), (0,)))
    np.testing.assert_allclose(jax.nn.scaled_dot_general(a, b, dims), np.einsum("bmk,bnk->bmn", a, b), rtol=1e-5, atol=1e-5)
    for shapes, words in (
        (((2, 3, 12), (5, 12), (2, 3, 4), (2, 5, 4)), "requires all inputs to be 3-dimensional arrays"),
        (((2, 3, 12), (2, 5, 11), (2, 3, 4), (2, 5, 4)), "requires inputs a and b to have matching batch"),
        (((2, 3, 12), (2, 5, 12), (2, 3, 4), (2, 5, 3)), "requires scales to have matching batch"),
        (((2, 3, 12), (2, 5, 12), (2, 1, 4), (2, 5, 4)), "requires scales to match non-contract dimensions"),
        (((2, 3, 12), (2, 5, 12), (2, 3, 5), (2, 5, 5)), "to be a multiple of that of the scales"),
    ):
        with pytest.raises(ValueError, match=words):
            jax.nn.scaled_matmul(*map(jnp.ones, shapes))
    config = jax.nn.get_scaled_dot_general_config("nvfp4")
    assert (config.block_size, config.data_type.__name__, config.scale_type.__name__) == (16, "float4_e2m1fn", "float8_e4m3fn") and config.global_scale == 1
    with pytest.raises(ValueError, match="Unsupported mode: foo"):
        jax.nn.get_scaled_dot_general_config("foo")


def test_scaled_dot_refuses(jax, jnp):
    o = jnp.ones
    for scale, words in (
        ((2, 5), "LHS contracting dim 1 of size 32 must be divisible by its scale's dim size 5."),
        ((1, 4), "LHS dim 0 of size 2 does not match scale dim size 1."),
        ((2,), "All input tensors must have the same rank. Got lhs rank: 2 rhs rank: 2 lhs_scale rank: 1 rhs_scale rank: 2."),
        ((2, 32), r"The ratio of LHS contracting dim 1 to its scale's dim size \(1\) must be at least 2."),
    ):
        with pytest.raises(TypeError, match=words):
            jax.lax.scaled_dot(o((2, 32)), o((32, 3)), lhs_scale=o(scale))
    with pytest.raises(TypeError, match="LHS contracting dim 1 of size 32 does not match RHS contracting dim 0 of size 31."):
        jax.lax.scaled_dot(o((2, 32)), o((31, 3)))
    with pytest.raises(TypeError, match="scaled_dot does not support 0-rank and 1-rank operands."):
        jax.lax.scaled_dot(o(2), o(2))
    assert jax.lax.scaled_dot(o((2, 32), int), o((32, 3), int)).dtype == "bfloat16"


SLOPES_AT_LARGE = {
    "gelu": lambda jax, x: jax.nn.gelu(x),
    "exact gelu": lambda jax, x: jax.nn.gelu(x, approximate=False),
    "soft_sign": lambda jax, x: jax.nn.soft_sign(x),
    "squareplus": lambda jax, x: jax.nn.squareplus(x),
    "squareplus of an integer": lambda jax, x: jax.nn.squareplus(x, 9),
    "silu": lambda jax, x: jax.nn.silu(x),
    "softplus": lambda jax, x: jax.nn.softplus(x),
    "log_sigmoid": lambda jax, x: jax.nn.log_sigmoid(x),
    "elu": lambda jax, x: jax.nn.elu(x),
}


@pytest.mark.ours
@pytest.mark.parametrize("name", SLOPES_AT_LARGE)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_activations_and_their_slopes_where_powers_leave_the_range(jax, jnp, x64, dtype, name):
    """Squares and cubes of these are infinite in float16, of the greatest in float32 too; the function and its slope are as in float64."""
    f = lambda x: SLOPES_AT_LARGE[name](jax, x)
    eps, tiny = float(jnp.finfo(dtype).eps), float(jnp.finfo(dtype).smallest_subnormal)
    x = jnp.asarray([s * v for v in (20.0, 50.0, 150.0, 300.0, 1e3, 6e4, 1e20) for s in (1, -1) if v < 1e5 or dtype != "float16"]).astype(dtype)
    for g in (f, jax.grad(f)):
        for run in (jax.vmap(g), jax.jit(jax.vmap(g))):
            got, want = run(x), jax.vmap(g)(x.astype("float64"))
            assert got.dtype == x.dtype
            np.testing.assert_allclose(np.asarray(got, float), want, rtol=8 * eps, atol=2 * tiny + (1e-13 if "exact" in name else 0))


@pytest.mark.ours
def test_derivatives_of_squareplus_in_both_arguments(jax, jnp, x64):
    """Against the plain formula, where nothing cancels."""
    plain = lambda x, b: (x + jnp.sqrt(x * x + b)) / 2
    for x, b in ((0.5, 4.0), (0.0, 1.0), (3.0, 0.25), (-0.7, 2.0)):
        for k in (0, 1):
            np.testing.assert_allclose(jax.grad(jax.nn.squareplus, k)(x, b), jax.grad(plain, k)(x, b), rtol=1e-13)
            for j in (0, 1):
                second = lambda f, k=k, j=j: jax.grad(jax.grad(f, k), j)
                np.testing.assert_allclose(second(jax.nn.squareplus)(x, b), second(plain)(x, b), rtol=1e-12)
