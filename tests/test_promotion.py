"""Types of results: the lattice as JAX 0.10.2 has it, and its laws."""
import itertools

import numpy as np
import pytest

from golden import promotion


def test_every_pair(jax):
    want = dict(line.split(" -> ") for line in promotion.FILE.read_text().splitlines())
    got = promotion.table(jax)
    assert {k: (got[k], v) for k, v in want.items() if got[k] != v} == {}


@pytest.mark.parametrize("a, b", list(itertools.combinations(promotion.DTYPES, 2)))
def test_the_lattice_commutes_and_joins(jnp, x64, a, b):
    join = jnp.promote_types(a, b)
    assert join == jnp.promote_types(b, a)
    assert jnp.promote_types(join, a) == join and jnp.promote_types(join, b) == join


def test_scalars_of_python_do_not_widen(jnp):
    for dtype in ("int8", "uint16", "float16", "bfloat16", "float32"):
        assert (jnp.ones(2, dtype) + 1).dtype == dtype
    assert (jnp.ones(2, "int8") + 1.0).dtype == "float32"
    assert (jnp.ones(2, "int8") + np.int16(1)).dtype == "int16"


def test_weak_types_survive_operations_with_scalars_only(jax, jnp):
    assert jnp.asarray(1.0).weak_type and (jnp.asarray(1.0) + 2).weak_type and jnp.sin(1.0).weak_type
    assert not jnp.float32(1.0).weak_type and not (jnp.float32(1.0) + 2).weak_type
    assert jax.jit(lambda x: x + 1)(1.0).weak_type
