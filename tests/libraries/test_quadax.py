"""quadax: adaptive, fixed and sampled quadrature, their gradients."""

import jax
import jax.numpy as jnp
import pytest
import quadax
from outcomes import Programs


def programs(t):
    f = lambda x: jnp.exp(-(x**2)) * jnp.cos(x)
    for n in "quadgk quadcc quadts romberg rombergts".split():
        t(n, lambda n=n: getattr(quadax, n)(f, jnp.array([0.0, 1.0]), epsabs=1e-05, epsrel=1e-05)[0])
        t(
            n + " grad",
            lambda n=n: jax.grad(
                lambda a: getattr(quadax, n)(lambda x, a: jnp.exp(-a * x**2), jnp.array([0.0, 1.0]), args=(a,), epsabs=1e-05, epsrel=1e-05)[0]
            )(1.0),
        )
    t("inf", lambda: quadax.quadgk(lambda x: jnp.exp(-(x**2)), jnp.array([-jnp.inf, jnp.inf]), epsabs=1e-05, epsrel=1e-05)[0])
    t("info", lambda: quadax.quadgk(f, jnp.array([0.0, 0.5, 1.0]), epsabs=1e-05, epsrel=1e-05, full_output=True)[1].neval)
    t(
        "trap",
        lambda: (
            quadax.trapezoid(f(jnp.linspace(0, 1, 9)), dx=0.125),
            quadax.simpson(f(jnp.linspace(0, 1, 9)), dx=0.125),
            quadax.cumulative_trapezoid(f(jnp.linspace(0, 1, 9)), dx=0.125),
            quadax.cumulative_simpson(f(jnp.linspace(0, 1, 9)), dx=0.125),
        ),
    )
    t("vmap", lambda: jax.vmap(lambda b: quadax.quadgk(f, jnp.array([0.0, b]), epsabs=1e-05, epsrel=1e-05)[0])(jnp.arange(1.0, 4.0)))
    t("adaptive", lambda: quadax.adaptive_quadrature(quadax.ClenshawCurtisRule(order=16), f, jnp.array([0.0, 1.0]), epsabs=1e-05, epsrel=1e-05)[0])


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_quadax(name):
    PROGRAMS.check(name)
