"""Taylor-mode differentiation: against nested `jvp`, against series that are known, and against the chain rule's algebra."""

import importlib
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st


@pytest.fixture(scope="module")
def jet(jax):
    return importlib.import_module(f"{jax.__name__}.experimental.jet").jet


def nested(jax, f, x, terms):
    """The derivatives of t -> f(x + terms[0] t + terms[1] t^2 / 2 + ..) at 0, by nested jvp."""

    def along(t):
        return f(x + sum(c * t ** (k + 1) / math.factorial(k + 1) for k, c in enumerate(terms)))

    out, g = [], along
    for _ in terms:
        g = (lambda g: lambda t: jax.jvp(g, (t,), (np.float32(1.0),))[1])(g)
        out.append(g(np.float32(0.0)))
    return out


FUNCTIONS = {
    "exp": lambda jnp, lax, x: jnp.exp(x),
    "log": lambda jnp, lax, x: jnp.log(x),
    "log1p": lambda jnp, lax, x: jnp.log1p(x),
    "expm1": lambda jnp, lax, x: jnp.expm1(x),
    "exp2": lambda jnp, lax, x: jnp.exp2(x),
    "sin": lambda jnp, lax, x: jnp.sin(x) * jnp.cos(x),
    "sinh": lambda jnp, lax, x: jnp.sinh(x) + 2 * jnp.cosh(x),
    "tan": lambda jnp, lax, x: jnp.tan(x),
    "tanh": lambda jnp, lax, x: jnp.tanh(x),
    "logistic": lambda jnp, lax, x: lax.logistic(x),
    "atan": lambda jnp, lax, x: jnp.arctan(x),
    "asin": lambda jnp, lax, x: jnp.arcsin(x),
    "acos": lambda jnp, lax, x: jnp.arccos(x),
    "asinh": lambda jnp, lax, x: jnp.arcsinh(x),
    "acosh": lambda jnp, lax, x: jnp.arccosh(x + 1.5),
    "atanh": lambda jnp, lax, x: jnp.arctanh(x),
    "erf": lambda jnp, lax, x: lax.erf(x) - 3 * lax.erfc(x),
    "erf_inv": lambda jnp, lax, x: lax.erf_inv(x),
    "lgamma": lambda jnp, lax, x: lax.lgamma(x + 1),
    "digamma": lambda jnp, lax, x: lax.digamma(x + 1),
    "sqrt": lambda jnp, lax, x: jnp.sqrt(x),
    "rsqrt": lambda jnp, lax, x: lax.rsqrt(x),
    "cbrt": lambda jnp, lax, x: jnp.cbrt(x),
    "powers": lambda jnp, lax, x: x**3 + x**-2 + x**2.5 + 2.0**x + x**x,
    "div": lambda jnp, lax, x: x / (1 + x * x),
    "atan2": lambda jnp, lax, x: jnp.arctan2(x, 1 + x),
    "choice": lambda jnp, lax, x: jnp.where(x > 0.3, x * x, -x) + jnp.abs(x - 1) + jnp.maximum(x, 0.2) + jnp.clip(x, 0, 1),
    "flat": lambda jnp, lax, x: jnp.sign(x) + jnp.floor(x) * x,
    "shapes": lambda jnp, lax, x: jnp.concatenate([jnp.stack([x, x**2]).reshape(-1)[::-1], jnp.pad(x.reshape(1), (1, 2))]),
    "product": lambda jnp, lax, x: jnp.dot(jnp.stack([x, x**2]), jnp.stack([jnp.sin(x), x])),
    "sums": lambda jnp, lax, x: jnp.cumsum(jnp.stack([x, x**2, x**3])) + jnp.cumprod(jnp.stack([x, x, x])),
    "extremes": lambda jnp, lax, x: jnp.max(jnp.stack([x, x**2])) + jnp.sort(jnp.stack([x, x**2]))[0],
    "gather": lambda jnp, lax, x: jnp.stack([x, x**2, x**3])[np.array([2, 0])].at[1].add(x * x),
    "slices": lambda jnp, lax, x: lax.dynamic_update_slice(jnp.zeros(3) + x * x, x.reshape(1), (1,)),
}


@pytest.mark.ours
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_against_nested_jvp(jax, jnp, lax, jet, name):
    f = lambda x: FUNCTIONS[name](jnp, lax, x)
    x, terms = np.float32(0.4), [np.float32(c) for c in (0.7, -0.3, 0.5, 0.2)]
    out, series = jet(f, (x,), (terms,))
    np.testing.assert_allclose(out, f(x), rtol=1e-6)
    for got, want in zip(series, nested(jax, f, x, terms), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3 * max(1.0, float(np.abs(want).max())))
    scaled = jet(f, (x,), ([c / math.factorial(k + 1) for k, c in enumerate(terms)],), factorial_scaled=False)[1]
    for k, (a, b) in enumerate(zip(scaled, series, strict=True)):
        np.testing.assert_allclose(a, b / math.factorial(k + 1), rtol=1e-4, atol=1e-4)


@pytest.mark.ours
@pytest.mark.parametrize("kind", ["scan", "while", "cond", "custom_jvp", "jit", "remat"])
def test_control_flow_and_calls(jax, jnp, lax, jet, kind):
    def custom(x):
        f = jax.custom_jvp(lambda x: x**3)
        f.defjvp(lambda p, t: (f(p[0]), 5 * p[0] ** 2 * t[0]))
        return f(x)

    f = {
        "scan": lambda x: lax.scan(lambda c, _: (jnp.sin(c) * x, c), x, None, length=3)[1].sum(),
        "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1],
        "cond": lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x),
        "custom_jvp": custom,
        "jit": jax.jit(lambda x: jnp.sin(x) ** 2),
        "remat": jax.checkpoint(lambda x: jnp.sin(x) ** 2),
    }[kind]
    x, terms = np.float32(0.4), [np.float32(c) for c in (0.7, -0.3, 0.5)]
    for got, want in zip(jet(f, (x,), (terms,))[1], nested(jax, f, x, terms), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@given(st.floats(-1.5, 1.5), st.integers(1, 8))
def test_known_series(jax, jnp, jet, x, order):
    line = [1.0] + [0.0] * (order - 1)
    for f, derivative in (
        (jnp.exp, lambda k: math.exp(x)),
        (jnp.sin, lambda k: math.sin(x + k * math.pi / 2)),
        (jnp.cosh, lambda k: math.cosh(x) if k % 2 == 0 else math.sinh(x)),
        (lambda x: 1 / (2 + x), lambda k: (-1) ** k * math.factorial(k) / (2 + x) ** (k + 1)),
        (lambda x: jnp.log(2 + x), lambda k: (-1) ** (k + 1) * math.factorial(k - 1) / (2 + x) ** k),
    ):
        for k, got in enumerate(jet(f, (x,), (line,))[1], 1):
            np.testing.assert_allclose(got, derivative(k), rtol=1e-3, atol=1e-3)


def test_several_arguments_and_arrays(jax, jnp, jet):
    x, w = np.ones((2, 3), np.float32), np.arange(6, dtype=np.float32).reshape(3, 2)
    out, series = jet(lambda x, w: jnp.tanh(x @ w), (x, w), ([x, 0 * x], [w, w]))
    f = lambda t: jnp.tanh((x + x * t) @ (w + w * t + w * t * t / 2))
    first = lambda t: jax.jvp(f, (t,), (1.0,))[1]
    np.testing.assert_allclose(out, f(0.0), rtol=1e-5)
    np.testing.assert_allclose(series[0], first(0.0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(series[1], jax.jvp(first, (0.0,), (1.0,))[1], rtol=1e-3, atol=1e-4)


def test_under_other_transforms(jax, jnp, jet):
    third = lambda x: jet(jnp.sin, (x,), ((1.0, 0.0, 0.0),))[1][2]
    np.testing.assert_allclose(third(0.5), -math.cos(0.5), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(third)(0.5), -math.cos(0.5), rtol=1e-5)
    np.testing.assert_allclose(jax.grad(third)(0.5), math.sin(0.5), rtol=1e-5)
    xs = np.linspace(0, 1, 3).astype(np.float32)
    np.testing.assert_allclose(jax.vmap(third)(xs), -np.cos(xs), rtol=1e-5)


def test_constants_pytrees_and_empty_series(jnp, jet):
    out, series = jet(lambda x: {"a": 3.0, "b": (x, x > 0)}, (2.0,), ((1.0, 0.5),))
    assert out["a"] == 3.0 and [float(t) for t in series["a"]] == [0.0, 0.0] and [float(t) for t in series["b"][0]] == [1.0, 0.5]
    assert jet(lambda x: x * 2, (2.0,), ((),)) == (4.0, [])


def test_complex(jax, jnp, jet):
    x = np.complex64(0.3 + 0.4j)
    series = jet(lambda x: jnp.exp(x) * x, (x,), ([np.complex64(1), np.complex64(0)],))[1]
    np.testing.assert_allclose(series, [np.exp(x) * (x + 1), np.exp(x) * (x + 2)], rtol=1e-5)


def test_refusals(jnp, jet):
    with pytest.raises(ValueError, match="jet terms have inconsistent lengths for different arguments"):
        jet(lambda a, b: a * b, (1.0, 2.0), ((1.0, 0.0), (1.0,)))
    with pytest.raises(ValueError, match="primal value at position 0 is not an array"):
        jet(lambda d: d["a"], ({"a": 1.0},), ({"a": [1.0]},))
    with pytest.raises(TypeError):
        jet(jnp.sin, (jnp.ones(3),), ((jnp.ones(2),),))
    with pytest.raises(TypeError):
        jet(lambda a: a * 2, (2,), ((1,),))


@pytest.mark.ours
def test_a_rule_for_a_primitive_of_ones_own(jax, jnp):
    jet = importlib.import_module(f"{jax.__name__}.experimental.jet")
    p = importlib.import_module(f"{jax.__name__}.extend.core").Primitive("cube_of_test_jet")
    p.def_impl(lambda x: x**3)
    p.def_abstract_eval(lambda x: x)
    jet.def_deriv(p, lambda x: 3 * x * x)
    assert [float(t) for t in jet.jet(p.bind, (2.0,), ((1.0, 0.0, 0.0),))[1]] == [12.0, 12.0, 6.0]
    jet.def_comp(p, lambda x: x * x * x)
    assert [float(t) for t in jet.jet(p.bind, (2.0,), ((1.0, 0.0, 0.0),))[1]] == [12.0, 12.0, 6.0]
    assert jet.fact(jnp.arange(5)).tolist() == [1.0, 1.0, 2.0, 6.0, 24.0]
