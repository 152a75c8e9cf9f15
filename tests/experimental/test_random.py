"""`experimental.random`: generators with state are keys and counters, in every transform; numbers are those of `random` for the folded keys."""

import importlib

import numpy as np
import pytest


@pytest.fixture
def random(jax):
    return importlib.import_module(f"{jax.__name__}.experimental.random")


def keyed(jax, seed, count):
    return jax.random.fold_in(jax.random.key(seed), count)


DRAWS = {
    "random": (lambda r: r.random((2, 2)), lambda jax, k: jax.random.uniform(k, (2, 2))),
    "uniform": (lambda r: r.uniform(1, np.array([2.0, 5.0])), lambda jax, k: jax.random.uniform(k, (2,), minval=1, maxval=np.array([2.0, 5.0]))),
    "normal": (lambda r: r.normal(1.0, 2.0, 3), lambda jax, k: 1 + 2 * jax.random.normal(k, (3,))),
    "half": (lambda r: r.normal(size=(), dtype="float16"), lambda jax, k: jax.random.normal(k, (), "float16")),
    "integers": (lambda r: r.integers(5, size=4), lambda jax, k: jax.random.randint(k, (4,), 0, 5)),
    "between": (lambda r: r.integers(2, np.array([5, 9])), lambda jax, k: jax.random.randint(k, (2,), 2, np.array([5, 9]))),
    "key": (lambda r: r.key(), lambda jax, k: k),
    "keys": (lambda r: r.key((2, 3)), lambda jax, k: jax.random.split(k, (2, 3))),
}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_folded_keys(jax, random, name, staged):
    draw, want = DRAWS[name]
    rng = random.stateful_rng(7)
    take = jax.jit(draw) if staged else draw
    for count in range(3):
        got, expected = take(rng), want(jax, keyed(jax, 7, count))
        assert got.dtype == expected.dtype and got.shape == expected.shape
        if name.startswith("key"):
            got, expected = map(jax.random.key_data, (got, expected))
        np.testing.assert_allclose(np.asarray(got, "float64"), np.asarray(expected, "float64"), rtol=2e-3 if name == "half" else 1e-6)


def test_vmap_takes_split_generators_and_children_are_apart(jax, jnp, random):
    rng = random.stateful_rng(123)
    out = jax.vmap(lambda r, x: x + r.uniform())(rng.split(3), jnp.zeros(3))
    keys = jax.random.split(keyed(jax, 123, 0), 3)
    want = [jax.random.uniform(jax.random.fold_in(k, 0)) for k in keys]
    np.testing.assert_allclose(out, np.array(want), rtol=1e-6)
    a, b = rng.spawn(2)
    assert a.integers(0, 1000, 4).tolist() != b.integers(0, 1000, 4).tolist() and jax.tree.structure(rng).num_leaves == 2


def test_loops_move_the_state_on(jax, random):
    rng = random.stateful_rng(3)
    total, _ = jax.jit(lambda r: jax.lax.scan(lambda c, _: (c + r.uniform(), None), 0.0, None, 4))(rng)
    np.testing.assert_allclose(total, sum(float(jax.random.uniform(keyed(jax, 3, i))) for i in range(4)), rtol=1e-6)
    np.testing.assert_allclose(rng.uniform(), jax.random.uniform(keyed(jax, 3, 4)), rtol=1e-6)


def test_unsupported_arguments(jax, jnp, random):
    rng = random.stateful_rng()
    with pytest.raises(TypeError, match="requires an explicit seed"):
        jax.jit(lambda: random.stateful_rng().uniform())()
    with pytest.raises(ValueError, match="split stateful generator"):
        rng.split(2).uniform()
    with pytest.raises(ValueError, match="typed PRNG key"):
        random.StatefulPRNG(jnp.zeros(2), rng._counter)
    with pytest.raises(ValueError, match="scalar integer ref"):
        random.StatefulPRNG(jax.random.key(0), 0)
