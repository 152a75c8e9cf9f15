"""Derivatives at poles, ties and ends of domain: JAX's where it has a value, a finite one where it gives NaN."""

import itertools
import math

import numpy as np
import pytest

f32 = np.float32
INF = f32(np.inf)


def ruled_loop(j):
    """A loop of unknown length, whose derivative is said to be 7."""
    f = j.custom_jvp(lambda x: j.lax.while_loop(lambda c: c < 100.0, lambda c: c * x, x))
    f.defjvp(lambda p, t: (f(p[0]), t[0] * 7.0))
    return f


def tripled(j, x):
    ref = j.new_ref(x)
    ref[...] = ref[...] * 3.0
    return ref[...]


SAME_AS_JAX = {
    "max of a tie": (lambda j, n: j.grad(n.max)(n.ones(2)), [0.5, 0.5]),
    "maximum of a tie": (lambda j, n: j.grad(n.maximum)(1.0, 1.0), 0.5),
    "clip at its bound": (lambda j, n: j.grad(lambda x: n.clip(x, 0.0, 1.0))(1.0), 0.5),
    "relu at 0": (lambda j, n: j.grad(j.nn.relu)(0.0), 0.0),
    "abs at 0": (lambda j, n: j.grad(n.abs)(0.0), 1.0),
    "sort": (lambda j, n: j.grad(lambda x: (n.sort(x) * n.arange(1.0, 4)).sum())(n.array([2.0, 3.0, 1.0])), [2, 3, 1]),
    "median of an even count": (lambda j, n: j.grad(n.median)(n.array([1.0, 2.0, 3.0, 4.0])), [0, 0.5, 0.5, 0]),
    "prod with a zero": (lambda j, n: j.grad(n.prod)(n.array([0.0, 2.0, 3.0])), [6, 0, 0]),
    "prod with two zeros": (lambda j, n: j.grad(n.prod)(n.array([0.0, 0.0, 3.0])), [0, 0, 0]),
    "cumprod with a zero": (lambda j, n: j.grad(lambda x: n.cumprod(x).sum())(n.array([2.0, 0.0, 3.0])), [1, 8, 0]),
    "powers at 0": (lambda j, n: n.array([j.grad(lambda x: x**2)(0.0), j.grad(lambda x: x**1.5)(0.0), j.grad(j.grad(lambda x: x**2.0))(0.0)]), [0, 0, 2]),
    "power of a negative": (lambda j, n: j.grad(lambda x: x**3.0)(-2.0), 12),
    "set twice": (lambda j, n: j.grad(lambda u: n.arange(3.0).at[n.array([0, 0])].set(u).sum())(n.array([1.0, 2.0])), [0, 1]),
    "mul twice": (lambda j, n: j.grad(lambda x: x.at[n.array([0, 0])].mul(n.array([2.0, 3.0])).sum())(n.ones(3)), [6, 1, 1]),
    "clipped gather": (lambda j, n: j.grad(lambda x: x.at[n.array([0, 0, 5])].get(mode="clip").sum())(n.ones(3)), [2, 0, 1]),
    "segment below 0": (lambda j, n: j.jacrev(lambda d: j.ops.segment_sum(d, n.array([0, -1]), 1))(n.ones(2)), [[1, 0]]),
    "masked logsumexp": (lambda j, n: j.grad(lambda x: j.nn.logsumexp(x, where=n.array([True, False])))(n.array([1.0, 2.0])), [1, 0]),
    "dead branch under vmap": (lambda j, n: j.vmap(j.grad(lambda x: j.lax.cond(x > 0, n.sqrt, lambda x: x, x)))(n.array([0.0, 4.0])), [1, 0.25]),
    "the largest by its index": (lambda j, n: j.grad(lambda x: x[n.argmax(x)])(n.ones(2)), [1, 0]),
    "abs of a complex 0": (lambda j, n: j.grad(n.abs)(0 + 0j), 0),
    "arccos at 1": (lambda j, n: j.grad(n.arccos)(1.0), -np.inf),
    "max twice": (lambda j, n: j.grad(lambda u: n.zeros(3).at[n.array([0, 0])].max(u)[0])(n.array([2.0, 2.0])), [0.5, 0.5]),
    "max out of bounds": (lambda j, n: j.grad(lambda u: n.zeros(3).at[n.array([0, 7])].max(u, mode="drop").sum())(n.array([2.0, 2.0])), [1, 0]),
    "reductions of what broadcasts": (lambda j, n: j.grad(lambda z: n.sum(n.exp(z)) + n.sum(n.exp(z) - n.zeros(1000)))(1.0), 1001 * np.e),
    "logaddexp of a scalar under vmap": (lambda j, n: j.vmap(j.grad(n.logaddexp), (0, None))(n.zeros(3), 0.0), [0.5] * 3),
    "jvp of grad": (lambda j, n: n.array(j.jvp(lambda x: j.grad(lambda y: x * y**2)(3.0), (2.0,), (1.0,))), [12, 6]),
    "a rule around a loop": (lambda j, n: j.grad(ruled_loop(j))(3.0), 7),
    "a mutable reference": (lambda j, n: j.grad(lambda x: tripled(j, x) ** 2)(2.0), 36),
    "gather between slices": (lambda j, n: j.jit(j.grad(lambda x: (x[:, n.array([2, 0, 2])] ** 2).sum()))(n.ones((1, 3, 1)))[0, :, 0], [2, 0, 4]),
    "complex to real": (lambda j, n: j.grad(lambda z: z.imag**2)(2j), -4j),
    "holomorphic": (lambda j, n: j.grad(lambda z: z**2, holomorphic=True)(1 + 1j), 2 + 2j),
    "sinc at 0": (lambda j, n: n.array([j.grad(n.sinc)(0.0), j.grad(j.grad(n.sinc))(0.0)]), [0, -(np.pi**2) / 3]),
    "mod": (lambda j, n: n.array(j.grad(n.mod, (0, 1))(-5.0, 3.0)), [1, 2]),
    "far tails": (lambda j, n: n.array([j.grad(j.nn.softplus)(1e4), j.grad(j.nn.log_sigmoid)(-1e4), j.grad(n.tanh)(100.0)]), [1, 1, 0]),
    "perturbations apart": (lambda j, n: j.grad(lambda x: x * j.grad(lambda y: x + y)(x))(5.0), 1),
    "an output is an input": (
        lambda j, n: n.array(j.grad(lambda x, y: (lambda p: p[0] * p[1])(j.jit(lambda x, y: (x, x * y))(x, y)), (0, 1))(2.0, 3.0)),
        [12, 4],
    ),
}
BETTER_THAN_JAX = {
    "abs of infinity": (lambda j, n: j.grad(n.abs)(n.array(np.inf + 0j)), 1),
    "logaddexp of nothing": (lambda j, n: n.array(j.grad(n.logaddexp, (0, 1))(-INF, -INF)), [0, 0]),
    "dead branch of arccos": (lambda j, n: j.grad(lambda x: n.where(x < 1, n.arccos(x), 0.0))(1.0), 0),
    "mul twice, by the factors": (lambda j, n: j.grad(lambda u: n.ones(3).at[n.array([0, 0])].mul(u).sum())(n.array([2.0, 3.0])), [3, 2]),
    "max out of bounds, clipped": (lambda j, n: j.grad(lambda u: n.zeros(3).at[n.array([0, 7])].max(u, mode="clip").sum())(n.array([2.0, 2.0])), [1, 1]),
    "apply twice": (
        lambda j, n: j.grad(lambda x: x.at[n.array([0, 0, 2])].apply(n.sin).sum())(n.ones(3)),
        [np.cos(np.sin(1)) * np.cos(1), 1, np.cos(1)],
    ),
    "dead branch of where": (lambda j, n: j.grad(lambda x: n.where(x < 1, x, n.sqrt(x)))(0.0), 1),
    "x ** 0. at 0": (lambda j, n: j.grad(lambda x: x**0.0)(0.0), 0),
    "x ** 1. twice at 0": (lambda j, n: j.grad(j.grad(lambda x: x**1.0))(0.0), 0),
    "x ** y at the origin": (lambda j, n: n.array(j.grad(lambda x, y: x**y, (0, 1))(0.0, 0.0)), [0, 0]),
    "norm at 0": (lambda j, n: j.grad(n.linalg.norm)(n.zeros(2)), [0, 0]),
    "std of equals": (lambda j, n: j.grad(n.std)(n.ones(3)), [0, 0, 0]),
    "squared norm at 0": (lambda j, n: j.grad(lambda x: n.linalg.norm(x) ** 2)(n.zeros(2)), [0, 0]),
    "arctan2 at the origin": (lambda j, n: n.array(j.grad(n.arctan2, (0, 1))(0.0, 0.0)), [0, 0]),
    "logsumexp of nothing": (lambda j, n: j.grad(j.nn.logsumexp)(n.array([-INF, -INF])), [0, 0]),
    "gather out of bounds": (lambda j, n: j.grad(lambda x: x[n.array([0, 0, 5])].sum())(n.ones(3)), [2, 0, 1]),
    "while_loop in reverse": (lambda j, n: j.grad(lambda x: j.lax.while_loop(lambda c: c < 100.0, lambda c: c * x, x))(3.0), 405),
    "fori_loop with a traced bound": (lambda j, n: j.jit(j.grad(lambda x, k: j.lax.fori_loop(0, k, lambda i, c: c * x, 1.0)))(2.0, 5), 80),
}


@pytest.mark.parametrize("name", SAME_AS_JAX)
def test_same_as_jax(jax, jnp, name):
    call, want = SAME_AS_JAX[name]
    np.testing.assert_allclose(np.asarray(call(jax, jnp)), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BETTER_THAN_JAX)
def test_finite_where_jax_gives_nan(jax, jnp, name):
    if jax.__name__ == "jax":
        pytest.skip("JAX gives NaN, drops an index or refuses")
    call, want = BETTER_THAN_JAX[name]
    np.testing.assert_allclose(np.asarray(call(jax, jnp)), want, rtol=1e-5, atol=1e-6)


def test_known_not_to_be_the_limit(jax, jnp):
    """0 * inf = 0 makes the second derivative of norm ** 2 vanish at 0; the limit is twice the identity. JAX gives NaN."""
    if jax.__name__ == "jax":
        pytest.skip("JAX gives NaN")
    assert np.asarray(jax.hessian(lambda x: jnp.linalg.norm(x) ** 2)(jnp.zeros(2))).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("method", ["set", "add", "multiply", "max"])
def test_a_scatter_may_be_batched_along_any_axis(jax, jnp, method):
    rng = np.random.default_rng(0)
    x, u = rng.standard_normal((2, 3, 4, 5)).astype(f32), rng.standard_normal((2, 3, 3, 5)).astype(f32)
    i = np.array([[2, 0, 1], [3, 1, 0]])
    write = lambda x, i, u: getattr(x.at[:, i], method)(u)
    loss = lambda x, i, u: jnp.sum(jnp.sin(write(x, i, u)))
    rows = [tuple(map(jnp.asarray, row)) for row in zip(x, i, u, strict=True)]
    values = np.stack([write(*row) for row in rows])
    slopes = [np.stack(s) for s in zip(*(jax.grad(loss, (0, 2))(*row) for row in rows), strict=True)]
    for axis, index_axis, update_axis, out in itertools.product(range(4), range(2), range(4), range(4)):
        axes = (axis, index_axis, update_axis)
        args = [jnp.asarray(np.moveaxis(a, 0, to)) for a, to in zip((x, i, u), axes, strict=True)]
        np.testing.assert_allclose(jax.vmap(write, axes, out)(*args), np.moveaxis(values, 0, out), rtol=1e-6)
        if out == axis:
            got = jax.vmap(jax.grad(loss, (0, 2)), axes, out)(*args)
            for g, s in zip(got, slopes, strict=True):
                np.testing.assert_allclose(g, np.moveaxis(s, 0, out), rtol=1e-5, atol=1e-6)


@pytest.mark.ours
@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1.0, 1e20, 1e37])
@pytest.mark.parametrize("jit", [False, True])
def test_slopes_of_hypot_do_not_leave_the_range(jax, jnp, scale, jit):
    """The partial derivatives of hypot(x, y) are x / hypot and y / hypot, whatever the size of x and y."""
    wrap = jax.jit if jit else (lambda f: f)
    x, y = jnp.float32(3 * scale / 5), jnp.float32(-4 * scale / 5)
    np.testing.assert_allclose(wrap(jax.grad(jnp.hypot, (0, 1)))(x, y), (0.6, -0.8), rtol=1e-6)
    np.testing.assert_allclose(wrap(lambda x, y: jax.jvp(jnp.hypot, (x, y), (jnp.float32(2), jnp.float32(1))))(x, y)[1], 0.4, rtol=1e-5)
    rows = wrap(jax.vmap(jax.grad(jnp.hypot), (0, None)))(jnp.stack([x, -x]), y)
    np.testing.assert_allclose(rows, [0.6, -0.6], rtol=1e-6)


@pytest.mark.ours
@pytest.mark.parametrize("ratio", [1e-12, 1e-5, 0.03, 0.75, 1.0, 40.0, 1e7])
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e15])
def test_second_slopes_of_hypot_do_not_cancel(jax, jnp, ratio, scale):
    """They are y^2, -x y and x^2 over the cube of hypot, near the axes too, where 1 - (x / hypot)^2 has no digits."""
    for sign in (1, -1):
        x, y = float(np.float32(scale)), float(np.float32(sign * scale * ratio))
        h = math.hypot(x, y)
        got = jax.jit(jax.hessian(lambda v: jnp.hypot(v[0], v[1])))(jnp.array([x, y], np.float32))
        want = np.array([[(y / h) ** 2 / h, -x / h * (y / h) / h], [-x / h * (y / h) / h, (x / h) ** 2 / h]])
        np.testing.assert_allclose(got, want, rtol=2e-6)


@pytest.mark.ours
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("jit", [False, True])
def test_slopes_of_arctan2_do_not_leave_the_range(jax, jnp, dtype, jit):
    """Of arctan2(y, x) they are x / r and -y / r over r, whatever the size of x and y; the second derivatives are of the size 1 / r^2."""
    wrap = jax.jit if jit else (lambda f: f)
    for scale in (2.0**-10, 1.0, 2.0**10) if dtype == "float16" else (2.0**-90, 2.0**-60, 1.0, 2.0**70, 2.0**120):
        y, x = jnp.asarray(3 * scale, dtype), jnp.asarray(-4 * scale, dtype)
        want = np.array([-4, -3]) / 25 / scale
        np.testing.assert_allclose(np.asarray(wrap(jax.grad(jnp.arctan2, (0, 1)))(y, x), float), want, rtol=2e-3 if dtype == "float16" else 1e-6)
        rows = wrap(jax.vmap(jax.grad(jnp.arctan2), (0, None)))(jnp.stack([y, -y]), x)
        np.testing.assert_allclose(np.asarray(rows, float), want[[0, 0]], rtol=2e-3 if dtype == "float16" else 1e-6)
        if scale in (2.0**-60, 1.0) and dtype != "float16":
            second = wrap(jax.grad(jax.grad(jnp.arctan2)))(y, x)
            np.testing.assert_allclose(float(second) * scale * scale, 24 / 625, rtol=1e-5)
    assert np.asarray(wrap(jax.hessian(lambda z: jnp.arctan2(z[0], z[1])))(jnp.zeros(2, dtype))).shape == (2, 2)
    assert [float(s) for s in wrap(jax.grad(jnp.arctan2, (0, 1)))(jnp.zeros((), dtype), jnp.zeros((), dtype))] == [0, 0]


@pytest.mark.ours
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_derivatives_of_sinc_near_zero(jax, jnp, x64, dtype):
    """By the series sum (-1)^k (pi x)^(2 k) / (2 k + 1)!, of which the quotient's derivatives keep no digit."""
    rtol = 1e-11 if dtype == "float64" else 3e-6
    for x in (0.0, 1e-300, 1e-30, 1e-8, 1e-5, 1e-3, 0.01, 0.1, 0.3, 0.32, -0.2):
        x = np.dtype(dtype).type(x)
        real = float(x.real)
        terms = [(-1) ** k * np.pi ** (2 * k) / float(math.factorial(2 * k + 1)) for k in range(14)]
        f = (lambda t: jnp.sinc(t)) if dtype != "complex64" else (lambda t: jnp.sinc(t.astype(dtype)).real)
        at = x if dtype != "complex64" else np.float32(real)
        for order in range(4):
            want = sum(c * math.perm(2 * k, order) * real ** (2 * k - order) for k, c in enumerate(terms) if 2 * k >= order)
            for grad in (jax.grad, lambda f: lambda t: jax.jvp(f, (t,), (t * 0 + 1,))[1]):
                g = f
                for _ in range(order):
                    g = grad(g)
                np.testing.assert_allclose(jax.jit(g)(at), want, rtol=rtol * 10**order, atol=1e-300)


@pytest.mark.ours
@pytest.mark.parametrize("x", [-1e9, -1e5, -300.0, -1.0, 0.0, 2.0, 1e5])
def test_squareplus_does_not_cancel(jax, jnp, x):
    root = math.hypot(x, 2.0)
    value, slope = (2 / (root - x), 2 / root / (root - x)) if x < 0 else ((root + x) / 2, (1 + x / root) / 2)
    np.testing.assert_allclose(jax.nn.squareplus(f32(x)), value, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(jax.nn.squareplus)(f32(x)), slope, rtol=1e-6)
    np.testing.assert_allclose(jax.nn.squareplus(f32(x), 0), max(x, 0))


NAN = f32(np.nan)
# (function of one argument, points where its value is nan)
NAN_VALUES = {
    "exp1": (lambda j, n, x: j.scipy.special.exp1(x), [-1.5, -0.5, NAN]),
    "zeta by its exponent": (lambda j, n, x: j.scipy.special.zeta(x, 2.0), [-1.5, 0.5, NAN]),
    "zeta by its shift": (lambda j, n, x: j.scipy.special.zeta(x, NAN), [2.0]),
    "hyp1f1": (lambda j, n, x: j.scipy.special.hyp1f1(x, 2.0, NAN), [1.0]),
    "hyp2f1": (lambda j, n, x: j.scipy.special.hyp2f1(1.0, NAN, 3.0, x), [0.5, -2.0]),
    "logaddexp, the second is nan": (lambda j, n, x: n.logaddexp(x, NAN), [-1.5, 3.0, INF, -INF]),
    "logaddexp2, the first is nan": (lambda j, n, x: n.logaddexp2(NAN, x), [-1.5, 3.0, INF, -INF]),
    "dirichlet by x": (lambda j, n, x: j.scipy.stats.dirichlet.logpdf(n.stack([x, 1 - x]), n.array([1.0, -1.0])), [0.5]),
    "dirichlet by alpha": (lambda j, n, x: j.scipy.stats.dirichlet.logpdf(n.array([0.5, 0.5]), n.stack([x, x])), [-1.5, NAN]),
    "dirichlet.pdf": (lambda j, n, x: j.scipy.stats.dirichlet.pdf(n.array([0.5, 0.5]), n.stack([x, x])), [-1.5, NAN]),
    "poisson.entropy": (lambda j, n, x: j.scipy.stats.poisson.entropy(x), [-1.5, NAN, -INF]),
}


@pytest.mark.ours  # JAX's zeta, by its exponent, has finite ones
@pytest.mark.parametrize("name", NAN_VALUES)
def test_derivatives_are_nan_where_the_value_is(jax, jnp, name):
    f, points = NAN_VALUES[name]
    g = lambda x: f(jax, jnp, x)
    for x in points:
        y, dy = jax.jvp(g, (f32(x),), (f32(1.0),))
        assert np.isnan([y, dy, jax.grad(g)(f32(x)), jax.jit(jax.grad(g))(f32(x))]).all(), x


@pytest.mark.ours  # JAX's is infinite
def test_hyp2f1_far_below_zero(jax, jnp):
    f = jax.scipy.special.hyp2f1
    for a, b, c in [(1.0, 2.0, 3.0), (0.5, 1.5, 2.0), (-0.5, 2.0, 3.0), (-0.5, 2.0, 1.2), (-1.5, 2.5, 0.7), (-1.5, -0.5, 2.0)]:
        far, end = f(a, b, c, -1e12), f(a, b, c, -jnp.inf)
        assert end == (0 if min(a, b) > 0 else np.sign(far) * np.inf), (a, b, c)


def shared_extreme(sign):
    """The larger of two numbers, or with sign -1 the smaller, and its slopes: equal ones share."""
    return lambda x, y: (sign * max(sign * x, sign * y), *(0.5 + 0.5 * np.sign(sign * (np.array([x, y]) > [y, x]) - sign * (np.array([x, y]) < [y, x]))))


def log_of_sum(x, y):
    z, most = np.logaddexp(x, y), max(x, y)
    return (z, float(x == most), float(y == most)) if np.isposinf(most) else (z, *np.nan_to_num(np.exp([x - z, y - z])))


# a running combination: of two numbers, the result and its slopes
COMBINATIONS = {
    "cummax": shared_extreme(1),
    "cummin": shared_extreme(-1),
    "cumprod": lambda x, y: (x * y, y, x),
    "cumlogsumexp": log_of_sum,
}


def running_slopes(of_two, x):
    """The running combinations of numbers, and their Jacobian: pairs are combined, then scanned, then completed."""

    def combined(a, b):
        with np.errstate(all="ignore"):
            y, left, right = of_two(a[0], b[0])
            # of what is infinite and does not contribute, nothing
            return y, sum(np.where(row == 0, 0, slope * row) for slope, row in ((left, a[1]), (right, b[1])))

    def scanned(v):
        if len(v) < 2:
            return v
        odd = scanned([combined(a, b) for a, b in zip(v[:-1:2], v[1::2], strict=False)])
        even = v[:1] + [combined(a, b) for a, b in zip(odd, v[2::2], strict=False)]
        return [pair for both in itertools.zip_longest(even, odd) for pair in both if pair is not None]

    return np.array([row for _, row in scanned(list(zip(x, np.eye(len(x)), strict=True)))]).reshape(len(x), len(x))


RUNNING = {
    "ties": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "constant": lambda rng, n: np.full(n, 2.0),
    "numbers": lambda rng, n: rng.normal(size=n),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.3, 0.0, rng.normal(size=n)),
    "-inf first": lambda rng, n: np.where(np.arange(n) == 0, -np.inf, rng.normal(size=n)),
    "only -inf": lambda rng, n: np.full(n, -np.inf),
    "infinities": lambda rng, n: np.where(rng.random(n) < 0.3, rng.choice([-np.inf, np.inf], n), rng.integers(0, 3, n)),
}


@pytest.mark.ours  # JAX's cumlogsumexp: nan where all is -inf, powers of e beside inf
@pytest.mark.parametrize("kind", RUNNING)
@pytest.mark.parametrize("name", COMBINATIONS)
def test_slopes_of_running_combinations(jax, jnp, name, kind):
    """In the order of `associative_scan`, in which equal extremes share their slope; whichever way it runs, by columns and by rows."""
    if name == "cumprod" and "inf" in kind:
        pytest.skip("products of infinities have no slopes")
    f = getattr(jax.lax, name)
    rng = np.random.default_rng(5)
    for n in (1, 2, 3, 4, 5, 7, 8, 9, 16, 17):
        x = RUNNING[kind](rng, n).astype(f32)
        want = running_slopes(COMBINATIONS[name], x)
        np.testing.assert_allclose(jax.jacrev(f)(x), want, rtol=1e-5, atol=1e-6, err_msg=str(x))
        np.testing.assert_allclose(jax.jit(jax.jacfwd(f))(x), want, rtol=1e-5, atol=1e-6, err_msg=str(x))
        back = jax.jacrev(lambda x: f(x, reverse=True))(x[::-1])
        np.testing.assert_allclose(back[::-1, ::-1], want, rtol=1e-5, atol=1e-6, err_msg=str(x))
        columns = jax.jvp(lambda x: f(x, 0), (jnp.stack([x, x], 1),), (jnp.ones((n, 2)),))[1]
        np.testing.assert_allclose(columns, np.stack([want.sum(1)] * 2, 1), rtol=1e-5, atol=1e-5)
    assert jax.jacrev(f)(jnp.ones(0)).shape == (0, 0)
