"""Explicit random state, and the figures printed in the founding documents."""

import numpy as np
import pytest


def test_a_key_is_a_value(jax, close):
    random = jax.random
    key = random.PRNGKey(42)
    assert np.asarray(key).tolist() == [0, 42] and key.dtype == np.uint32
    assert float(random.normal(key)) == float(random.normal(key))
    close(random.normal(key), -0.02830462)
    one, other = random.split(key)
    assert np.asarray(one).tolist() != np.asarray(other).tolist()


def test_draws_do_not_depend_on_the_transform(jax, close):
    random = jax.random
    keys = random.split(random.PRNGKey(42), num=10)
    close(jax.vmap(lambda k: random.normal(k, (3,)))(keys)[4], random.normal(keys[4], (3,)), 0)
    close(jax.jit(lambda k: random.uniform(k, (4,)))(keys[0]), random.uniform(keys[0], (4,)), 0)


@pytest.fixture
def original_layout(jax):
    """The documents' figures come from the counter layout that cannot be partitioned."""
    jax.config.update("jax_threefry_partitionable", False)
    yield
    jax.config.update("jax_threefry_partitionable", True)


def test_figures_of_the_documents(jax, close, original_layout):
    random = jax.random
    key = random.PRNGKey(42)
    close(random.normal(key), -0.18471177)
    key, k1, k2 = random.split(key, num=3)
    close(random.normal(k1), 0.107961535)
    close(random.normal(k2), -1.2226542)
    close(random.uniform(random.PRNGKey(0)), 0.41845703)
    close(random.uniform(random.split(random.PRNGKey(0))[1]), 0.10536897)
