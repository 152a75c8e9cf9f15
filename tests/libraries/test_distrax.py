"""Distrax: distributions, bijectors, with TensorFlow Probability's beside them."""

import distrax
import jax
import jax.numpy as jnp
import pytest
from outcomes import Programs

K = jax.random.key(0)


def programs(t):
    for d in [
        "Normal(0.,1.)",
        "Bernoulli(probs=.3)",
        "Categorical(logits=jnp.array([0.,1.]))",
        "MultivariateNormalDiag(jnp.zeros(2),jnp.ones(2))",
        "Beta(2.,3.)",
        "Gamma(2.,3.)",
        "Dirichlet(jnp.ones(3))",
        "Uniform(0.,1.)",
        "Laplace(0.,1.)",
        "Logistic(0.,1.)",
        "Gumbel(0.,1.)",
        "VonMises(0.,1.)",
        "MultivariateNormalTri(jnp.zeros(2),jnp.eye(2))",
        "MultivariateNormalFullCovariance(jnp.zeros(2),jnp.eye(2)*2)",
        "OneHotCategorical(logits=jnp.zeros(3))",
        "Softmax(jnp.array([0.,1.]),.5)",
        "Greedy(jnp.array([0.,1.]))",
        "EpsilonGreedy(jnp.array([0.,1.]),.1)",
        "MixtureSameFamily(distrax.Categorical(jnp.zeros(2)),distrax.Normal(jnp.array([0.,1.]),1.))",
        "Independent(distrax.Normal(jnp.zeros(3),1.),1)",
        "Transformed(distrax.Normal(0.,1.),distrax.Tanh())",
        "Multinomial(5,probs=jnp.array([.3,.7]))",
        "Deterministic(1.)",
        "ClippedNormal(0.,1.,-1.,1.)",
        "LogStddevNormal(0.,0.)",
        "Quantized(distrax.Normal(0.,2.))",
    ]:
        t(d, lambda: (lambda D: (D.sample(seed=K), D.log_prob(D.sample(seed=K)), D.sample_and_log_prob(seed=K, sample_shape=(2,))[0]))(eval("distrax." + d)))
    for b in [
        "Tanh()",
        "Sigmoid()",
        "ScalarAffine(1.,2.)",
        "Chain([distrax.Tanh(),distrax.ScalarAffine(0.,2.)])",
        "Inverse(distrax.Tanh())",
        "RationalQuadraticSpline(jnp.zeros(13),-2.,2.)",
        "Lambda(jnp.exp)",
        "Lambda(lambda x: x*2+1)",
        "LowerUpperTriangularAffine(jnp.eye(2)*2,jnp.zeros(2))",
    ]:
        t(b, lambda: (lambda B: (B.forward_and_log_det(jnp.array([0.3, 0.5])), B.inverse(B.forward(jnp.array([0.3, 0.5])))))(eval("distrax." + b)))
    t("kl", lambda: distrax.Normal(0.0, 1.0).kl_divergence(distrax.Normal(1.0, 2.0)))
    t("ent", lambda: distrax.Categorical(logits=jnp.zeros(3)).entropy())
    t("jit", lambda: jax.jit(lambda d: d.log_prob(1.0))(distrax.Normal(0.0, 1.0)))
    t("grad", lambda: jax.grad(lambda m: distrax.Normal(m, 1.0).log_prob(1.0))(0.0))
    t("slice", lambda: distrax.Normal(jnp.arange(3.0), 1.0)[1].mean())
    t(
        "hmm",
        lambda: distrax.HMM(distrax.Categorical(jnp.zeros(2)), distrax.Categorical(jnp.zeros((2, 2))), distrax.Normal(jnp.array([0.0, 1.0]), 1.0)).forward(
            jnp.array([0.0, 1.0, 0.0])
        ),
    )
    t("as_bij", lambda: distrax.as_bijector(jnp.tanh).inverse(0.3))
    t("split", lambda: distrax.SplitCoupling(1, 1, lambda x: x, lambda p: distrax.ScalarAffine(p, 2.0)).forward(jnp.array([0.3, 0.5])))
    t(
        "maf",
        lambda: distrax.MaskedCoupling(jnp.array([True, False]), lambda x: x * 0 + 1, lambda p: distrax.ScalarAffine(p, 2.0)).forward(jnp.array([0.3, 0.5])),
    )
    t("bad", lambda: distrax.Normal(0.0, 1.0).sample(), raises=TypeError, why="a sample needs a seed")
    t("tfp", lambda: distrax.as_distribution(__import__("tensorflow_probability").substrates.jax.distributions.Normal(0.0, 1.0)).log_prob(1.0))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_distrax(name):
    PROGRAMS.check(name)
