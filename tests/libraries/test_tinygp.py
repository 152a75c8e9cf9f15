"""tinygp: kernels, quasiseparable kernels, densities, conditioning, gradients."""

import jax
import jax.numpy as jnp
import pytest
import tinygp
from outcomes import Programs
from tinygp import GaussianProcess, kernels

K = jax.random.key(0)


def programs(t):
    X = jnp.linspace(0, 3, 12)
    y = jnp.sin(X)
    for n, k in dict(
        expsq=kernels.ExpSquared(1.0),
        m32=kernels.Matern32(0.7),
        sum=kernels.ExpSquared(1.0) + kernels.Exp(2.0),
        cos=kernels.Cosine(2.0) * kernels.Matern52(1.0),
        rq=kernels.RationalQuadratic(alpha=1.0),
        quasi=kernels.quasisep.SHO(omega=1.5, quality=2.0, sigma=1.0),
        qm=kernels.quasisep.Matern32(1.0) + kernels.quasisep.Exp(0.5),
        celerite=kernels.quasisep.Celerite(1.0, 0.1, 0.5, 1.0),
    ).items():
        t(n, lambda k=k: GaussianProcess(k, X, diag=0.1).log_probability(y))
        t(n + " cond", lambda k=k: (lambda g: (g.loc, g.variance))(GaussianProcess(k, X, diag=0.1).condition(y, jnp.linspace(0, 3, 5)).gp))
        t(n + " sample", lambda k=k: GaussianProcess(k, X, diag=0.1).sample(K).shape)
    t(
        "grad",
        lambda: jax.jit(jax.grad(lambda p: GaussianProcess(jnp.exp(p[0]) * kernels.Matern52(jnp.exp(p[1])), X, diag=jnp.exp(p[2])).log_probability(y)))(
            jnp.zeros(3)
        ),
    )
    t(
        "quasi grad",
        lambda: jax.jit(jax.grad(lambda p: GaussianProcess(kernels.quasisep.Matern52(jnp.exp(p[1]), jnp.exp(p[0])), X, diag=jnp.exp(p[2])).log_probability(y)))(
            jnp.zeros(3)
        ),
    )
    t(
        "transform",
        lambda: GaussianProcess(tinygp.transforms.Linear(jnp.array([1.0, 2.0]), kernels.ExpSquared()), jnp.stack([X, X**2], 1), diag=0.1).log_probability(y),
    )
    t("mean", lambda: GaussianProcess(kernels.ExpSquared(), X, diag=0.1, mean=lambda x: 2 * x).log_probability(y))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_tinygp(name):
    PROGRAMS.check(name)
