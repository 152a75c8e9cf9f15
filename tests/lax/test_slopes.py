"""Slopes of pointwise functions where a result is rounded to its limit: sigmoid(40) is 1 in float64, and its slope is 4.2e-18.

The law: a first or second derivative has a relative error of a few roundings on the whole range, also where 1 - y or 1 - x^2 would cancel.
"""

import numpy as np
import pytest

long = np.longdouble


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def bell(x):
    """The slope of sigmoid."""
    e = np.exp(-np.abs(x))
    return e / (1 + e) ** 2


WIDE = np.concatenate([[0.0], np.geomspace(1e-12, 1, 25)[:-1], np.linspace(1, 340, 120)])
WIDE = np.concatenate([WIDE, -WIDE[1:]])
UNIT = np.concatenate([np.geomspace(1e-12, 0.5, 20), 1 - 2.0 ** -np.arange(1, 53)])
UNIT = np.concatenate([[0.0], UNIT, -UNIT])
ABOVE_ONE = np.concatenate([1 + 2.0 ** -np.arange(0, 53), np.geomspace(2, 1e30, 60)])
LARGE = np.concatenate([np.geomspace(1e-12, 1e30, 120), -np.geomspace(1e-12, 1e30, 120)])
POSITIVE = np.geomspace(1e-30, 1e30, 120)
# name: function, points, slope, second derivative (or None), what the second derivative's error is measured by where it passes 0
FUNCTIONS = {
    "expm1": (lambda j, n, x: n.expm1(x), WIDE, lambda x: np.exp(x), lambda x: np.exp(x), None),
    "sigmoid": (lambda j, n, x: j.nn.sigmoid(x), WIDE, bell, lambda x: bell(x) * -np.tanh(x / 2), bell),
    "expit": (lambda j, n, x: j.scipy.special.expit(x), WIDE, bell, lambda x: bell(x) * -np.tanh(x / 2), bell),
    "softplus": (lambda j, n, x: j.nn.softplus(x), WIDE, sigmoid, bell, None),
    "logaddexp": (lambda j, n, x: n.logaddexp(x, 3.0), WIDE / 20, lambda x: sigmoid(x - 3), lambda x: bell(x - 3), None),
    "logaddexp2": (lambda j, n, x: n.logaddexp2(x, 3.0), WIDE / 20, lambda x: sigmoid((x - 3) * np.log(long(2))), None, None),
    "log_sigmoid": (lambda j, n, x: j.nn.log_sigmoid(x), WIDE, lambda x: sigmoid(-x), lambda x: -bell(x), None),
    "elu": (lambda j, n, x: j.nn.elu(x), WIDE, lambda x: np.where(x > 0, 1, np.exp(np.minimum(x, 0))), None, None),
    "arcsin": (lambda j, n, x: n.arcsin(x), UNIT, lambda x: 1 / np.sqrt((1 - x) * (1 + x)), lambda x: x / ((1 - x) * (1 + x)) ** long(1.5), None),
    "arccos": (lambda j, n, x: n.arccos(x), UNIT, lambda x: -1 / np.sqrt((1 - x) * (1 + x)), lambda x: -x / ((1 - x) * (1 + x)) ** long(1.5), None),
    "arctanh": (lambda j, n, x: n.arctanh(x), UNIT, lambda x: 1 / ((1 - x) * (1 + x)), lambda x: 2 * x / ((1 - x) * (1 + x)) ** 2, None),
    "arccosh": (lambda j, n, x: n.arccosh(x), ABOVE_ONE, lambda x: 1 / np.sqrt((x - 1) * (x + 1)), None, None),
    "arcsinh": (lambda j, n, x: n.arcsinh(x), LARGE, lambda x: 1 / np.sqrt(x * x + 1), None, None),
    "arctan": (lambda j, n, x: n.arctan(x), LARGE[np.abs(LARGE) < 1e15], lambda x: 1 / (x * x + 1), None, None),
    "tan": (lambda j, n, x: n.tan(x), np.linspace(-1.5, 1.5, 61), lambda x: 1 / np.cos(x) ** 2, None, None),
    "log1p": (lambda j, n, x: n.log1p(x), np.concatenate([-UNIT[UNIT >= 0], POSITIVE]), lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2, None),
    "sqrt": (lambda j, n, x: n.sqrt(x), POSITIVE, lambda x: 0.5 / np.sqrt(x), None, None),
    "cbrt": (lambda j, n, x: n.cbrt(x), POSITIVE, lambda x: 1 / (3 * np.cbrt(x) ** 2), None, None),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_are_accurate_where_results_saturate(jax, jnp, x64, name, dtype):
    if jax.__name__ == "jax":
        pytest.skip("JAX uses the rounded result")
    f, points, slope, second, size = FUNCTIONS[name]
    limit = 80 if dtype is np.float32 and points is WIDE else 1e30
    x = np.unique(points[np.abs(points) <= limit].astype(dtype))
    if points is UNIT:
        x = x[np.abs(x) < 1]
    if points is ABOVE_ONE:
        x = x[x > 1]
    if name == "log1p":
        x = x[x > -1]
    eps, least = np.finfo(dtype).eps, float(np.finfo(dtype).tiny)
    first = jax.grad(lambda v: f(jax, jnp, v))
    at = x.astype(long)
    for g in (jax.vmap(first), jax.jit(jax.vmap(first))):
        got, want = np.asarray(g(x)).astype(long), slope(at)
        np.testing.assert_array_less(np.abs(got - want), 32 * eps * np.abs(want) + 4 * least, err_msg=name)
    if second is None:
        return
    want = second(at)
    in_range = np.abs(want) < float(np.finfo(dtype).max) / 4
    got = np.asarray(jax.vmap(jax.grad(first))(x)).astype(long)[in_range]
    scale = np.abs(want) if size is None else size(at)
    np.testing.assert_array_less(np.abs(got - want[in_range]), 64 * eps * scale[in_range] + 8 * least, err_msg=name)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_slopes_of_narrow_floats_do_not_vanish_before_they_underflow(jax, jnp, dtype):
    if jax.__name__ == "jax":
        pytest.skip("JAX uses the rounded result")
    x = np.array([-6.0, -5.0, -4.0, 4.0, 5.0, 6.0])
    for f, slope in ((jax.nn.sigmoid, bell), (jnp.expm1, np.exp), (jax.nn.softplus, sigmoid)):
        got = jax.vmap(jax.grad(f))(jnp.asarray(x).astype(dtype))
        np.testing.assert_allclose(np.asarray(got, float), slope(x), rtol=8 * float(jnp.finfo(dtype).eps))


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "expm1"])
def test_slopes_at_infinity_are_limits(jax, jnp, name):
    f = FUNCTIONS[name][0]
    got = [float(jax.grad(lambda v: f(jax, jnp, v))(s * np.inf)) for s in (-1, 1)]
    assert got == {"sigmoid": [0, 0], "softplus": [0, 1], "expm1": [0, np.inf]}[name]


def test_slopes_of_complex_inverse_functions(jax, jnp, x64):
    z = np.array([2 + 1j, -2 + 1j, 0.3 - 0.2j, -3 - 0.5j, 1 + 1e-9j, 1e5 + 1j])
    for f, slope in (
        (jnp.arccosh, lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1))),
        (jnp.arctanh, lambda z: 1 / ((1 - z) * (1 + z))),
        (jax.nn.sigmoid, lambda z: 1 / ((1 + np.exp(z)) * (1 + np.exp(-z)))),
        (jnp.expm1, np.exp),
    ):
        z = z[np.abs(z.real) < 100] if f in (jnp.expm1, jax.nn.sigmoid) else z
        np.testing.assert_allclose(jax.vmap(jax.grad(f, holomorphic=True))(z), slope(z), rtol=1e-9)


@pytest.mark.ours
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_slopes_of_quotients_square_no_divisor(jax, jnp, x64, dtype):
    """-(x / y) / y: a square of y would leave the dtype's range long before the slope does."""
    info = jnp.finfo(dtype)
    low, high = float(info.tiny) * 8, float(info.max) / 8
    eps, kept = float(info.eps), 0
    for y in (low, low**0.75, low**0.5, 0.75, 300.0, high**0.75, high):
        for x in (low, low**0.5, 1.5, 40.0, high**0.5, high):
            u, v = jnp.asarray(x, dtype), jnp.asarray(y, dtype)
            exact_x, exact_y = np.longdouble(complex(u).real), np.longdouble(complex(v).real)
            want = -exact_x / exact_y / exact_y
            if not (low < exact_x / exact_y < high and low < abs(want) < high):
                continue
            f = jnp.divide
            holomorphic = dtype == "complex64"
            for grad in (jax.grad(f, 1, holomorphic=holomorphic), jax.jit(jax.grad(f, 1, holomorphic=holomorphic))):
                np.testing.assert_allclose(complex(grad(u, v)).real, float(want), rtol=4 * eps)
            np.testing.assert_allclose(complex(jax.jvp(lambda v, u=u: u / v, (v,), (jnp.ones_like(v),))[1]).real, float(want), rtol=4 * eps)
            kept += 1
        # what a number over itself loses
        if dtype != "complex64":
            assert abs(float(jax.grad(lambda v: v / v)(jnp.asarray(y, dtype)))) <= 2 * eps / y
    assert kept > 8


@pytest.mark.ours
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("n", [-5, -3, -2, -1, 2, 3, 5, 7])
def test_integer_powers_of_narrow_floats_round_once(jax, jnp, x64, dtype, n):
    x = jnp.asarray([s * v for v in (0.003, 0.02, 0.7, 1.25, 3.0, 17.0, 300.0) for s in (1, -1)]).astype(dtype)
    for run in (lambda x: jax.lax.integer_pow(x, n), jax.jit(lambda x: x**n)):
        want = (np.asarray(x.astype("float64")) ** n).astype("float32")
        np.testing.assert_array_equal(np.asarray(run(x), np.float32), np.asarray(jnp.asarray(want).astype(dtype), np.float32))


@pytest.mark.ours
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_slopes_of_inverse_functions_where_squares_leave_the_range(jax, jnp, x64, dtype):
    x = jnp.asarray([s * v for v in (3.0, 100.0, 200.0, 300.0, 1e3, 6e4, 1e18, 1e30) for s in (1, -1) if v < 1e5 or dtype != "float16"]).astype(dtype)
    for f in (jnp.arcsinh, lambda x: jnp.hypot(x, jnp.asarray(1, x.dtype))):
        got, want = jax.vmap(jax.grad(f))(x), jax.vmap(jax.grad(f))(x.astype("float64"))
        np.testing.assert_allclose(np.asarray(got, float), want, rtol=8 * float(jnp.finfo(dtype).eps), atol=float(jnp.finfo(dtype).smallest_subnormal))
