"""The text of programs equals what JAX 0.10.2 prints, up to parameters at their default. `cargo xtask bless` does not touch this golden:
it comes from JAX, by `python tests/golden/programs.py`.
"""

import functools

import numpy as np
import pytest
from golden import programs

GOLDEN = programs.read()


def test_every_program_has_a_golden(jax):
    assert set(programs.programs(jax)) == set(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_text(jax, name):
    f, args = programs.programs(jax)[name]
    assert programs.normal(jax.make_jaxpr(f)(*args)) == GOLDEN[name]


@pytest.mark.parametrize("precision", ["highest", ("float32", None), "BF16_BF16_F32"])
def test_products_have_the_requested_precision(jax, jnp, lax, precision):
    x, P = np.ones((2, 2), np.float32), lax.Precision
    want = {"highest": (P.HIGHEST, P.HIGHEST), "BF16_BF16_F32": lax.DotAlgorithmPreset.BF16_BF16_F32}.get(precision, (P.HIGHEST, P.DEFAULT))
    for f in (lax.dot, functools.partial(jnp.einsum, "ij,jk")):
        (eqn,) = [e for e in jax.make_jaxpr(lambda x: f(x, x, precision=precision))(x).eqns if e.primitive.name == "dot_general"]
        assert eqn.params["precision"] == want
    assert lax.dot_general_p.bind(x, x, **eqn.params).tolist() == [[2, 2], [2, 2]]
