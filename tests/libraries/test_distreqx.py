"""distreqx: distributions and bijections as Equinox modules."""

import jax
import jax.numpy as jnp
import pytest
from distreqx import bijectors as B, distributions as D
from outcomes import Programs

KO = jax.random.PRNGKey(0)

# Means and entropies that distreqx does not define.
UNDEFINED = ("cat stats", "tr stats", "tr ent", "mix ent")


def programs(t):
    ds = dict(
        normal=lambda: D.Normal(jnp.zeros(2), jnp.ones(2)),
        gamma=lambda: D.Gamma(jnp.array(2.0), jnp.array(1.0)),
        beta=lambda: D.Beta(jnp.array(2.0), jnp.array(1.0)),
        bern=lambda: D.Bernoulli(logits=jnp.array(0.3)),
        cat=lambda: D.Categorical(logits=jnp.arange(3.0)),
        mvn=lambda: D.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)),
        mvt=lambda: D.MultivariateNormalTri(jnp.zeros(2), jnp.eye(2)),
        uni=lambda: D.Uniform(jnp.array(0.0), jnp.array(2.0)),
        log=lambda: D.Logistic(jnp.array(0.0), jnp.array(1.0)),
        ind=lambda: D.Independent(D.Normal(jnp.zeros(2), jnp.ones(2))),
        tr=lambda: D.Transformed(D.Normal(jnp.array(0.0), jnp.array(1.0)), B.Tanh()),
        mix=lambda: D.MixtureSameFamily(D.Categorical(logits=jnp.zeros(2)), jax.vmap(lambda l: D.Normal(l, jnp.array(1.0)))(jnp.arange(2.0))),
    )
    for n, m in ds.items():
        t(n, lambda m=m: (lambda d, x: (x, d.log_prob(x)))(m(), m().sample(KO)))
        undefined = lambda name: dict(raises=NotImplementedError, why="distreqx does not define it") if name in UNDEFINED else {}
        t(n + " stats", lambda m=m: m().mean(), **undefined(n + " stats"))
        t(n + " grad", lambda m=m: jax.grad(lambda x: m().log_prob(x).sum())(jnp.asarray(m().sample(KO), float)))
        t(n + " ent", lambda m=m: m().entropy(), **undefined(n + " ent"))
    t("kl", lambda: D.Normal(jnp.array(0.0), jnp.array(1.0)).kl_divergence(D.Normal(jnp.array(1.0), jnp.array(2.0))))
    for b in "Sigmoid Tanh ScalarAffine".split():
        t(b, lambda b=b: (getattr(B, b)(jnp.array(1.0), jnp.array(2.0)) if b == "ScalarAffine" else getattr(B, b)()).forward_and_log_det(jnp.array(0.3)))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_distreqx(name):
    PROGRAMS.check(name)
