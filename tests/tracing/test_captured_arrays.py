"""NumPy arrays that a traced function uses several times: one constant of its program, as long as they have their elements."""

import numpy as np
import pytest

USES = {
    "twice": lambda jax, x, c: x + c + c,
    "in products": lambda jax, x, c: (x * c) @ c,
    "through functions": lambda jax, x, c: jax.numpy.sin(c) + jax.numpy.where(x > 0, c, x),
    "under grad": lambda jax, x, c: jax.grad(lambda v: (v * c * c).sum())(x),
    "under vmap": lambda jax, x, c: jax.vmap(lambda v: v + c[0] + (v * c).sum() + c.sum() + (c * v).sum())(x),
    "as values and as an operand": lambda jax, x, c: jax.numpy.stack([x, c]) + c,
}


def constants(jax, f, *args):
    return [v for v in jax.make_jaxpr(f)(*args).consts if np.size(v) > 1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "complex64", "bfloat16"])
def test_one_constant_of_each_dtype(jax, jnp, dtype):
    c = np.asarray(jnp.arange(3).astype(dtype)) if dtype != "float64" else np.arange(3.0)
    x = jnp.ones(3)
    assert len(constants(jax, lambda x: (x + c) * c, x)) == 1
    np.testing.assert_array_equal(jax.jit(lambda x: (x + c) * c)(x), (x + c) * c)


@pytest.mark.parametrize("name", USES)
def test_one_constant_of_each_use(jax, jnp, name):
    c, x = np.arange(3.0), jnp.arange(3.0) + 1
    f = lambda x: USES[name](jax, x, c)
    assert len(constants(jax, f, x)) == 1
    np.testing.assert_allclose(jax.jit(f)(x), f(x), rtol=1e-6)


def test_other_arrays_are_other_constants(jax, jnp):
    c, d, x = np.arange(3.0), np.arange(3.0), jnp.ones(3)
    assert len(constants(jax, lambda x: x + c + d + c + d, x)) == 2
    assert len(constants(jax, lambda x: x + c + c[::-1], x)) == 2


@pytest.mark.ours  # JAX reads it when the program is compiled
def test_a_write_between_two_uses_is_seen(jax, jnp):
    c = np.ones(3)

    def f(x):
        x = x + c
        c[0] += 1
        y = x + c
        return y + c

    assert len(constants(jax, f, jnp.zeros(3))) == 2
    c[:] = 1
    assert jax.jit(f)(jnp.zeros(3)).tolist() == [5, 3, 3]


@pytest.mark.ours  # JAX may take the former elements
def test_programs_share_nothing(jax, jnp):
    c, x = np.ones(3), jnp.zeros(3)
    f, g = jax.jit(lambda x: x + c + c), jax.jit(lambda x: x - c - c)
    first = f(x)
    c[:] = 5
    assert first.tolist() == [2, 2, 2] and g(x).tolist() == [-10, -10, -10] and f(x).tolist() == [2, 2, 2]
    inner = jax.jit(lambda x: jax.jit(lambda x: x + c)(x) + c)
    assert inner(x).tolist() == [10, 10, 10]


@pytest.mark.ours
def test_nothing_is_kept_alive(jax, jnp):
    import gc
    import weakref

    c = np.ones(1000)
    seen, before = weakref.ref(c), len(jax.live_arrays())
    jaxpr = jax.make_jaxpr(lambda x, c=c: x + c + c)(jnp.ones(1000))
    assert len(jaxpr.consts) == 1
    del c, jaxpr
    gc.collect()
    assert seen() is None and len(jax.live_arrays()) <= before + 1
