"""NumPyro: samplers, guides, distributions, handlers, diagnostics."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.infer import HMC, MCMC, NUTS, SVI, Predictive, Trace_ELBO, autoguide
from outcomes import Programs

rng = np.random.RandomState(0)
K = jax.random.key(0)
points = np.linspace(-1, 1, 20)
seen = 1 + 2 * points + 0.1 * rng.randn(20)
x, y = jnp.asarray(points, jnp.float32), jnp.asarray(seen, jnp.float32)

# Distributions whose mean NumPyro does not define.
NO_MEAN = ("LKJCholesky", "TransformedDistribution", "Wishart")


def programs(t):
    def model(x, y=None):
        a = numpyro.sample("a", dist.Normal(0, 5))
        b = numpyro.sample("b", dist.Normal(0, 5))
        s = numpyro.sample("s", dist.HalfNormal(1))
        with numpyro.plate("n", len(x)):
            numpyro.sample("y", dist.Normal(a + b * x, s), obs=y)

    def nuts(kern=NUTS, **k):
        # In 64 bits and of few steps: on JAX itself, each step makes three or more roundings of one.
        with jax.enable_x64(True):
            m = MCMC(kern(model, **k), num_warmup=30, num_samples=20, progress_bar=False)
            m.run(K, points, seen)
            return {n: v.mean() for n, v in m.get_samples().items()}

    t("nuts", nuts)
    # One rounding of the data moves the mean of this chain by 1e-10, and that of "eight" as far.
    t("hmc", lambda: nuts(HMC, trajectory_length=1.0), within=1e-9)
    for d in [
        "Normal(0.,1.)",
        "Beta(2.,3.)",
        "Gamma(2.,3.)",
        "Cauchy(0.,1.)",
        "Laplace(0.,1.)",
        "StudentT(3.,0.,1.)",
        "Exponential(2.)",
        "HalfCauchy(1.)",
        "LogNormal(0.,1.)",
        "Uniform(0.,2.)",
        "Dirichlet(jnp.ones(3)*2)",
        "MultivariateNormal(jnp.zeros(2),jnp.eye(2)*2)",
        "LKJ(3,1.5)",
        "LKJCholesky(3,1.5)",
        "Bernoulli(.3)",
        "Binomial(5,.3)",
        "Categorical(jnp.array([.2,.8]))",
        "Poisson(3.)",
        "Geometric(.3)",
        "NegativeBinomial2(3.,2.)",
        "BetaBinomial(2.,3.,5)",
        "Multinomial(5,jnp.array([.2,.8]))",
        "VonMises(0.,2.)",
        "Gumbel(0.,1.)",
        "Logistic(0.,1.)",
        "Pareto(1.,2.)",
        "Weibull(1.,2.)",
        "InverseGamma(2.,3.)",
        "Chi2(3.)",
        "TruncatedNormal(0.,1.,low=-1.)",
        "Kumaraswamy(2.,3.)",
        "ZeroInflatedPoisson(.3,2.)",
        "MixtureSameFamily(dist.Categorical(jnp.array([.3,.7])),dist.Normal(jnp.array([0.,3.]),1.))",
        "TransformedDistribution(dist.Normal(0.,1.),dist.transforms.ExpTransform())",
        "Independent(dist.Normal(jnp.zeros(3),1.),1)",
        "OrderedLogistic(0.,jnp.array([-1.,1.]))",
        "GaussianRandomWalk(1.,5)",
        "AsymmetricLaplace(0.,1.,2.)",
        "SoftLaplace(0.,1.)",
        "LowRankMultivariateNormal(jnp.zeros(3),jnp.ones((3,1)),jnp.ones(3))",
        "Wishart(4.,jnp.eye(3))",
        "Delta(1.)",
        "HalfNormal(1.)",
        "Gompertz(1.,1.)",
        "Levy(0.,1.)",
        "MatrixNormal(jnp.zeros((2,2)),jnp.eye(2),jnp.eye(2))",
        "CAR(0.,.5,1.,jnp.array([[0.,1.],[1.,0.]]))",
    ]:

        def distribution(d=d):
            D = eval("dist." + d)
            draw = D.sample(K)
            return draw, D.log_prob(draw), () if d.startswith(NO_MEAN) else D.mean, D.event_shape

        t(d, distribution)

    def svi(guide, loss=Trace_ELBO()):
        s = SVI(model, guide(model), numpyro.optim.Adam(0.05), loss)
        r = s.run(K, 50, x, y, progress_bar=False)
        named = {} if guide.__name__ in ("AutoIAFNormal", "AutoBNAFNormal") else dict(list(r.params.items())[:2])
        return r.losses[-1], named

    for g in (
        "AutoNormal",
        "AutoDelta",
        "AutoDiagonalNormal",
        "AutoMultivariateNormal",
        "AutoLaplaceApproximation",
        "AutoLowRankMultivariateNormal",
        "AutoIAFNormal",
        "AutoBNAFNormal",
    ):
        t(g, lambda: svi(getattr(autoguide, g)))
    t("pred", lambda: Predictive(model, num_samples=3)(K, x)["y"])
    t("seed", lambda: handlers.trace(handlers.seed(model, 0)).get_trace(x)["a"]["value"])
    t("cond", lambda: handlers.trace(handlers.seed(handlers.condition(model, {"a": 1.0}), 0)).get_trace(x)["a"]["value"])
    t("ld", lambda: numpyro.infer.util.log_density(model, (x, y), {}, {"a": 1.0, "b": 2.0, "s": 0.5})[0])
    t("sub", lambda: handlers.trace(handlers.substitute(handlers.seed(model, 0), {"a": 3.0})).get_trace(x)["y"]["value"])
    t("scope", lambda: list(handlers.trace(handlers.seed(handlers.scope(model, "z"), 0)).get_trace(x)))
    t("init", lambda: numpyro.infer.util.initialize_model(K, model, model_args=(x, y)).param_info.z)

    def eight():
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        tau = numpyro.sample("tau", dist.HalfCauchy(5))
        with (
            numpyro.plate("J", 8),
            handlers.reparam(config={"theta": numpyro.infer.reparam.LocScaleReparam(0)}),
        ):
            th = numpyro.sample("theta", dist.Normal(mu, tau))
            numpyro.sample(
                "o", dist.Normal(th, jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])), obs=jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
            )

    def e8():
        with jax.enable_x64(True):
            m = MCMC(NUTS(eight), num_warmup=12, num_samples=8, num_chains=2, chain_method="vectorized", progress_bar=False)
            m.run(K)
            return {n: v.mean() for n, v in m.get_samples().items()}, m.get_extra_fields()["diverging"].sum()

    t("eight", e8, within=1e-9)

    def hmm():
        def tr(c, y):
            z = numpyro.sample("z", dist.Normal(c, 1.0))
            numpyro.sample("y", dist.Normal(z, 0.5), obs=y)
            return z, z

        from numpyro.contrib.control_flow import scan

        return scan(tr, 0.0, y)

    def mh():
        m = MCMC(NUTS(hmm), num_warmup=20, num_samples=20, progress_bar=False)
        m.run(K)
        return m.get_samples()["z"].mean()

    # A chain in float32: one rounding of the data moves its mean by 1e-4.
    t("scan", mh, within=1e-3)
    from numpyro.infer import AIES, SA, BarkerMH, DiscreteHMCGibbs

    t("sa", lambda: nuts(SA))
    t("barker", lambda: nuts(BarkerMH))

    def mix():
        p = numpyro.sample("p", dist.Dirichlet(jnp.ones(2)))
        mu = numpyro.sample("m", dist.Normal(0, 3).expand([2]))
        with numpyro.plate("n", 20):
            z = numpyro.sample("z", dist.Categorical(p))
            numpyro.sample("o", dist.Normal(mu[z], 1.0), obs=y)

    def dg():
        m = MCMC(DiscreteHMCGibbs(NUTS(mix)), num_warmup=20, num_samples=20, progress_bar=False)
        m.run(K)
        return m.get_samples()["m"].mean(0)

    # A chain in float32: each step makes several roundings of one.
    t("gibbs", dg, within=1e-3)
    t(
        "aies",
        lambda: (lambda m: (m.run(K, x, y), m.get_samples()["a"].mean())[1])(
            MCMC(AIES(model), num_warmup=20, num_samples=20, num_chains=8, chain_method="vectorized", progress_bar=False)
        ),
    )
    t("summary", lambda: numpyro.diagnostics.summary({"a": np.asarray(rng.randn(2, 50))})["a"]["n_eff"])
    t("ess", lambda: numpyro.diagnostics.effective_sample_size(rng.randn(2, 100)))
    t("hpdi", lambda: numpyro.diagnostics.hpdi(rng.randn(100)))
    t("prov", lambda: str(numpyro.infer.inspect.get_dependencies(model, (x, y))))
    t("rel", lambda: str(numpyro.infer.inspect.get_model_relations(model, (x, y))["sample_sample"]))
    t("kl", lambda: dist.kl_divergence(dist.Normal(0.0, 1.0), dist.Normal(1.0, 2.0)))
    t("biject", lambda: dist.biject_to(dist.constraints.simplex)(jnp.array([0.1, 0.2])))
    t("mask", lambda: dist.Normal(0.0, 1.0).mask(False).log_prob(1.0))
    t("valid", lambda: dist.Normal(0.0, -1.0, validate_args=True), raises=ValueError, why="a scale is positive")
    t("factor", lambda: numpyro.infer.util.log_density(lambda: numpyro.factor("f", 2.0), (), {}, {})[0])
    t("jit dist", lambda: jax.jit(lambda d: d.log_prob(1.0))(dist.Gamma(2.0, 3.0)))
    t("vmap d", lambda: jax.vmap(lambda l: dist.Normal(l, 1.0).log_prob(0.0))(x))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_numpyro(name):
    PROGRAMS.check(name)
