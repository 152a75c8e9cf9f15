"""The text of programs equals what JAX 0.10.2 prints, up to parameters at their default. `cargo xtask bless` does not touch this golden:
it comes from JAX, by `python tests/golden/programs.py`.
"""

import pytest
from golden import programs

GOLDEN = programs.read()


def test_every_program_has_a_golden(jax):
    assert set(programs.programs(jax)) == set(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_text(jax, name):
    f, args = programs.programs(jax)[name]
    assert programs.normal(jax.make_jaxpr(f)(*args)) == GOLDEN[name]
