"""Dynamax: hidden Markov models, linear and nonlinear Gaussian state space models, their smoothing, sampling and fitting."""

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest
from dynamax import hidden_markov_model as hmm
from dynamax.linear_gaussian_ssm import LinearGaussianSSM, parallel_lgssm_smoother
from dynamax.nonlinear_gaussian_ssm import ParamsNLGSSM, extended_kalman_filter, unscented_kalman_smoother
from dynamax.nonlinear_gaussian_ssm.inference_ukf import UKFHyperParams
from dynamax.utils.utils import psd_solve
from outcomes import Programs

K = jr.PRNGKey(0)
PI = jnp.array([0.6, 0.4])
A = jnp.array([[0.9, 0.1], [0.2, 0.8]])
LL = jnp.log(jnp.array([[0.7, 0.2], [0.1, 0.9], [0.5, 0.5], [0.8, 0.1]]))


def programs(t):
    t("filter", lambda: hmm.hmm_filter(PI, A, LL))
    t("smoother", lambda: hmm.hmm_smoother(PI, A, LL).smoothed_probs)
    t("two filter", lambda: hmm.hmm_two_filter_smoother(PI, A, LL).smoothed_probs)
    t("parallel", lambda: hmm.parallel_hmm_smoother(PI, A, LL).smoothed_probs)
    t("mode", lambda: hmm.hmm_posterior_mode(PI, A, LL))
    t("sample", lambda: hmm.hmm_posterior_sample(K, PI, A, LL))
    t("likelihood grad", lambda: jax.grad(lambda a: hmm.hmm_filter(PI, jax.nn.softmax(a), LL).marginal_loglik)(jnp.log(A)))
    t("vmap", lambda: jax.vmap(lambda l: hmm.hmm_filter(PI, A, l).marginal_loglik)(jnp.stack([LL, 2 * LL])))
    for name, make in {
        "gaussian": lambda: hmm.GaussianHMM(2, 2),
        "diagonal": lambda: hmm.DiagonalGaussianHMM(2, 2),
        "spherical": lambda: hmm.SphericalGaussianHMM(2, 2),
        "poisson": lambda: hmm.PoissonHMM(2, 2),
        "categorical": lambda: hmm.CategoricalHMM(2, 2, 3),
        "bernoulli": lambda: hmm.BernoulliHMM(2, 2),
    }.items():

        def program(make=make):
            model = make()
            params, props = model.initialize(K)
            states, emissions = model.sample(params, K, 12)
            return states, emissions, model.marginal_log_prob(params, emissions)

        t(name, program)

        def em(make=make):
            model = make()
            params, props = model.initialize(K)
            _, emissions = model.sample(params, jr.PRNGKey(1), 20)
            return model.fit_em(params, props, emissions, num_iters=2, verbose=False)[1]

        if name in ("gaussian", "categorical"):
            t(name + " em", em)

    def sgd():
        model = hmm.BernoulliHMM(2, 2)
        params, props = model.initialize(K)
        _, emissions = model.sample(params, K, 20)
        return model.fit_sgd(params, props, emissions, num_epochs=3)[1]

    t("sgd", sgd)

    model = LinearGaussianSSM(2, 1)
    params, props = model.initialize(K, dynamics_weights=jnp.array([[0.9, 0.2], [-0.2, 0.9]]), emission_weights=jnp.array([[1.0, 0.0]]))
    states, emissions = model.sample(params, K, 10)
    t("lgssm sample", lambda: (states, emissions))
    t("kalman", lambda: model.filter(params, emissions).filtered_means)
    t("rts", lambda: model.smoother(params, emissions).smoothed_means)
    t("parallel lgssm", lambda: parallel_lgssm_smoother(params, emissions).smoothed_means)
    t("posterior sample", lambda: model.posterior_sample(K, params, emissions))
    t("posterior predictive", lambda: model.posterior_predictive(params, emissions))
    t("lgssm grad", lambda: jax.jit(jax.grad(lambda y: model.marginal_log_prob(params, y)))(emissions))
    t("lgssm em", lambda: model.fit_em(params, props, emissions, num_iters=2, verbose=False)[1])
    nl = ParamsNLGSSM(jnp.zeros(1), jnp.eye(1), lambda x: jnp.sin(x) + x, 0.1 * jnp.eye(1), lambda x: x**2, 0.1 * jnp.eye(1))
    t("ekf", lambda: extended_kalman_filter(nl, emissions[:5]).filtered_means)
    t("ukf", lambda: unscented_kalman_smoother(nl, emissions[:5], UKFHyperParams()).smoothed_means)
    t("psd", lambda: psd_solve(jnp.eye(2) * 3, jnp.ones(2)))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_dynamax(name):
    PROGRAMS.check(name)
