"""Functions over rows in compiled loops give the bits that they give one operation at a time."""

import numpy as np
import pytest


def functions(jax, jnp):
    return {
        "tanh": jnp.tanh,
        "exp": lambda x: jnp.exp(-x),
        "log1p": lambda x: jnp.log1p(jnp.abs(x)),
        "sin": jnp.sin,
        "power": lambda x: jnp.abs(x) ** -1.5,
        "powers": lambda x: jnp.abs(x) ** x,
        "arctan2": lambda x: jnp.arctan2(x, x[::-1]),
        "logistic": jax.nn.sigmoid,
        "erf": jax.scipy.special.erf,
        "two": lambda x: jnp.tanh(x) * jnp.exp(-(x**2)),
        "nested": lambda x: jnp.tanh(jnp.sin(x) + 0.5) + x,
        "masked": lambda x: jnp.where(x > 0, jnp.log1p(jnp.abs(x)), x),
        "softmax": lambda x: jnp.exp(x - x.max()) / jnp.exp(x - x.max()).sum(),
        "sum": lambda x: x * 0.5 + jnp.exp(-jnp.abs(x)).sum() / 100,
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [7, 8, 13, 25, 64, 100, 131, 700])
@pytest.mark.parametrize("name", ["tanh", "exp", "log1p", "sin", "power", "powers", "arctan2", "logistic", "erf", "two", "nested", "masked", "softmax", "sum"])
def test_functions_of_rows(jax, jnp, lax, name, n, dtype):
    f = functions(jax, jnp)[name]
    with jax.enable_x64(dtype == "float64"):
        a = np.random.default_rng(n).standard_normal((5, n)).astype(dtype)

        def step(i, a):
            return a.at[i].set(f(a[i - 1] + a[i] * 0.5))

        got = jax.jit(lambda a: lax.fori_loop(1, 5, step, a))(a)
        want = jnp.asarray(a)
        for i in range(1, 5):
            want = step(i, want)
        tight = dict(rtol=2e-6, atol=1e-7) if dtype == "float32" else dict(rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(got, want, **tight)


@pytest.mark.ours
@pytest.mark.parametrize("name", ["tanh", "exp", "power", "powers", "logistic", "erf", "two", "nested", "masked"])
@pytest.mark.parametrize("n", [13, 64, 100, 257])
def test_bits_of_functions_of_rows(jax, jnp, lax, name, n):
    f = functions(jax, jnp)[name]
    a = np.random.default_rng(n).standard_normal((5, n)).astype(np.float32)
    step = lambda i, a: a.at[i].set(f(a[i - 1] + a[i]))
    got = jax.jit(lambda a: lax.fori_loop(1, 5, step, a))(a)
    want = jnp.asarray(a)
    for i in range(1, 5):
        want = step(i, want)
    assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


@pytest.mark.ours
def test_a_function_without_recorded_operations_is_called_once_for_a_row(jax, jnp, lax):
    a, w = np.ones((5, 100), np.float32), np.ones((100, 100), np.float32)
    f = lambda a, w: lax.fori_loop(1, 5, lambda i, a: a.at[i].set(jnp.sin(w @ a[i - 1])), a)
    text = jax.jit(f).lower(a, w).compile().as_text()
    assert "1 functions over rows" in text, text[-400:]
