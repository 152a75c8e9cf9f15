"""sympy2jax: expressions of SymPy as modules."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
import sympy
import sympy2jax
from outcomes import Programs


def programs(t):
    x, y = sympy.symbols("x y")
    m = sympy2jax.SymbolicModule([sympy.sin(x) * y + x**3, sympy.exp(-x) + 2.5, sympy.Max(x, y), sympy.sqrt(x) / y])
    t("call", lambda: m(x=jnp.array(0.5), y=jnp.array(2.0)))
    t("grad", lambda: jax.grad(lambda a: m(x=a, y=jnp.array(2.0))[0])(jnp.array(0.5)))
    t("sympy", lambda: str(m.sympy()[0]))
    t("filter", lambda: eqx.filter_jit(m)(x=jnp.array(0.5), y=jnp.array(2.0)))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_sympy2jax(name):
    PROGRAMS.check(name)
