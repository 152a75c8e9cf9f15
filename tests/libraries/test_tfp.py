"""TensorFlow Probability on JAX: distributions, bijectors, joint distributions, samplers, optimizers, special functions."""

import jax
import jax.numpy as jnp
import pytest
from outcomes import Programs
from tensorflow_probability.substrates import jax as tfp

tfd, tfb, tfk = tfp.distributions, tfp.bijectors, tfp.math.psd_kernels
K = jax.random.PRNGKey(0)


def programs(t):
    x = jnp.array([0.3, 0.7])
    one = jnp.float32(1)
    for name, make in {
        "Normal": lambda: tfd.Normal(0.0, 2.0),
        "Beta": lambda: tfd.Beta(2.0, 3.0),
        "Gamma": lambda: tfd.Gamma(2.0, 3.0),
        "InverseGamma": lambda: tfd.InverseGamma(2.0, 3.0),
        "Weibull": lambda: tfd.Weibull(2.0, 3.0),
        "Kumaraswamy": lambda: tfd.Kumaraswamy(2.0, 3.0),
        "StudentT": lambda: tfd.StudentT(3.0, 0.0, 1.0),
        "SkellamLike": lambda: tfd.LogNormal(0.0, 1.0),
        "Gumbel": lambda: tfd.Gumbel(0.0, 1.0),
        "TruncatedNormal": lambda: tfd.TruncatedNormal(0.0, 1.0, -1.0, 1.0),
        "SinhArcsinh": lambda: tfd.SinhArcsinh(0.0, 1.0, skewness=0.5),
        "VonMises": lambda: tfd.VonMises(0.3, 2.0),
        "GeneralizedNormal": lambda: tfd.GeneralizedNormal(0.0, 1.0, 1.5),
        "Johnson": lambda: tfd.JohnsonSU(0.1, 1.0, 0.0, 1.0),
    }.items():
        t(name, lambda make=make: (make().log_prob(x), make().sample(3, seed=K)))
        t(name + " slope", lambda make=make: jax.vmap(jax.grad(make().log_prob))(x))
    t("cdf", lambda: (tfd.Gamma(2.0, 1.0).cdf(x), tfd.Beta(2.0, 3.0).cdf(x), tfd.StudentT(3.0, 0.0, 1.0).cdf(x), tfd.VonMises(0.0, 1.0).cdf(x)))
    t("quantile", lambda: (tfd.Gamma(2.0, 1.0).quantile(x), tfd.Beta(2.0, 3.0).quantile(x), tfd.Normal(0.0, 1.0).quantile(x)))
    t("gamma reparam", lambda: jax.grad(lambda a: tfd.Gamma(a, 1.0).sample(seed=K))(2.0))
    t(
        "discrete",
        lambda: (
            tfd.Poisson(3.0).sample(4, seed=K),
            tfd.Binomial(5, probs=0.3).log_prob(jnp.array([0.0, 2.0])),
            tfd.NegativeBinomial(3.0, probs=0.4).log_prob(one),
            tfd.Zipf(2.0).log_prob(one),
        ),
    )
    t("multivariate", lambda: tfd.MultivariateNormalTriL(jnp.zeros(2), jnp.array([[1.0, 0.0], [0.5, 2.0]])).log_prob(x))
    t("wishart", lambda: tfd.WishartTriL(4.0, jnp.eye(2)).sample(seed=K))
    t("lkj", lambda: (tfd.CholeskyLKJ(3, 2.0).sample(seed=K), tfd.LKJ(2, 1.5).log_prob(jnp.array([[1.0, 0.3], [0.3, 1.0]]))))
    t(
        "dirichlet",
        lambda: (
            tfd.Dirichlet([1.0, 2.0, 3.0]).log_prob(jnp.array([0.2, 0.3, 0.5])),
            tfd.DirichletMultinomial(4.0, [1.0, 2.0]).log_prob(jnp.array([1.0, 3.0])),
        ),
    )
    t("mixture", lambda: tfd.MixtureSameFamily(tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([-1.0, 1.0], [1.0, 2.0])).log_prob(x))
    t("independent", lambda: tfd.Independent(tfd.Bernoulli(logits=x), 1).log_prob(jnp.array([0, 1])))
    t("kl", lambda: tfd.kl_divergence(tfd.Gamma(2.0, 1.0), tfd.Gamma(3.0, 2.0)))
    t(
        "hmm",
        lambda: tfd.HiddenMarkovModel(
            tfd.Categorical(probs=[0.5, 0.5]), tfd.Categorical(probs=[[0.9, 0.1], [0.2, 0.8]]), tfd.Normal([0.0, 3.0], 1.0), 4
        ).log_prob(jnp.array([0.1, 2.0, 3.0, 0.0])),
    )
    t(
        "kalman",
        lambda: tfd.LinearGaussianStateSpaceModel(
            3,
            jnp.eye(2),
            tfd.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)),
            jnp.array([[1.0, 0.0]]),
            tfd.MultivariateNormalDiag(jnp.zeros(1), jnp.ones(1)),
            tfd.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)),
        ).log_prob(jnp.ones((3, 1))),
    )
    t("gp", lambda: tfd.GaussianProcess(tfk.MaternFiveHalves(), jnp.linspace(0, 1, 4)[:, None], observation_noise_variance=0.1).log_prob(jnp.ones(4)))
    t(
        "gp regression",
        lambda: tfd.GaussianProcessRegressionModel(
            tfk.ExponentiatedQuadratic(), jnp.array([[0.5]]), jnp.linspace(0, 1, 4)[:, None], jnp.sin(jnp.linspace(0, 1, 4)), 0.01
        ).mean(),
    )
    for name, make in {
        "rq": lambda: tfk.RationalQuadratic(),
        "periodic": lambda: tfk.ExpSinSquared(),
        "poly": lambda: tfk.Polynomial(),
        "sum": lambda: tfk.Linear() + tfk.MaternOneHalf(),
    }.items():
        t("kernel " + name, lambda make=make: make().matrix(jnp.arange(3.0)[:, None], jnp.arange(2.0)[:, None]))
    for name, make in {
        "Softplus": lambda: tfb.Softplus(),
        "Sigmoid": lambda: tfb.Sigmoid(-1.0, 2.0),
        "SoftClip": lambda: tfb.SoftClip(0.0, 2.0),
        "Chain": lambda: tfb.Chain([tfb.Shift(1.0), tfb.Scale(2.0), tfb.Tanh()]),
        "SinhArcsinh": lambda: tfb.SinhArcsinh(0.5, 1.0),
        "RationalQuadraticSpline": lambda: tfb.RationalQuadraticSpline(
            bin_widths=jnp.array([1.0, 1.0]), bin_heights=jnp.array([0.5, 1.5]), knot_slopes=jnp.array([2.0]), range_min=0.0
        ),
        "SoftmaxCentered": lambda: tfb.SoftmaxCentered(),
        "FillScaleTriL": lambda: tfb.FillScaleTriL(),
        "CorrelationCholesky": lambda: tfb.CorrelationCholesky(),
        "Ordered": lambda: tfb.Ascending(),
        "Cumsum": lambda: tfb.Cumsum(),
    }.items():
        v = jnp.array([0.3, 0.7, 0.1])
        t("bijector " + name, lambda make=make, v=v: (make().forward(v), make().forward_log_det_jacobian(v, event_ndims=make().forward_min_event_ndims)))
    t("maf", lambda: tfb.MaskedAutoregressiveFlow(shift_and_log_scale_fn=lambda y: (jnp.cumsum(y) - y, 0 * y), is_constant_jacobian=True).forward(x))
    t("transformed", lambda: tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Exp()).log_prob(x))
    joint = tfd.JointDistributionNamed(dict(m=tfd.Normal(0.0, 1.0), s=tfd.Exponential(1.0), x=lambda m, s: tfd.Normal(m, s)))
    t("joint", lambda: (joint.sample(seed=K), joint.log_prob(m=0.1, s=0.5, x=0.3)))

    def root():
        m = yield tfd.JointDistributionCoroutine.Root(tfd.Normal(0.0, 1.0))
        yield tfd.Normal(m, 1.0)

    t("coroutine", lambda: tfd.JointDistributionCoroutine(root).log_prob((0.1, 0.2)))
    t("autobatched", lambda: tfd.JointDistributionSequentialAutoBatched([tfd.Normal(0.0, 1.0), lambda m: tfd.Normal(m, 1.0)]).log_prob([0.1, 0.2]))
    target = lambda x: tfd.MultivariateNormalDiag(jnp.zeros(2), jnp.array([1.0, 2.0])).log_prob(x)
    for name, kernel in {
        "hmc": lambda: tfp.mcmc.HamiltonianMonteCarlo(target, step_size=0.3, num_leapfrog_steps=3),
        "nuts": lambda: tfp.mcmc.NoUTurnSampler(target, step_size=0.3, max_tree_depth=3),
        "rwm": lambda: tfp.mcmc.RandomWalkMetropolis(target),
        "mala": lambda: tfp.mcmc.MetropolisAdjustedLangevinAlgorithm(target, step_size=0.3),
        "adapted": lambda: tfp.mcmc.DualAveragingStepSizeAdaptation(
            tfp.mcmc.HamiltonianMonteCarlo(target, step_size=0.3, num_leapfrog_steps=2), num_adaptation_steps=4
        ),
        "slice": lambda: tfp.mcmc.SliceSampler(target, step_size=0.5, max_doublings=3),
    }.items():
        t(
            "mcmc " + name,
            lambda kernel=kernel: jax.jit(lambda k: tfp.mcmc.sample_chain(6, jnp.zeros(2), kernel=kernel(), num_burnin_steps=2, trace_fn=None, seed=k))(K),
        )
    t("ess", lambda: (tfp.mcmc.effective_sample_size(jax.random.normal(K, (20,))), tfp.mcmc.potential_scale_reduction(jax.random.normal(K, (20, 3)))))
    rosenbrock = lambda x: jnp.sum(100.0 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2, -1)
    t("bfgs", lambda: tfp.optimizer.bfgs_minimize(jax.value_and_grad(rosenbrock), jnp.array([-1.0, 1.0]), max_iterations=40).position)
    t("lbfgs", lambda: tfp.optimizer.lbfgs_minimize(jax.value_and_grad(rosenbrock), jnp.array([-1.0, 1.0]), max_iterations=40).position)
    t("nelder mead", lambda: tfp.optimizer.nelder_mead_minimize(rosenbrock, initial_vertex=jnp.array([-1.0, 1.0]), max_iterations=20).position)
    t("brent", lambda: tfp.math.find_root_chandrupatla(lambda x: x**3 - 2.0, jnp.float32(0), jnp.float32(2)).estimated_root)
    t("ode", lambda: tfp.math.ode.DormandPrince().solve(lambda t, y: -y, 0.0, jnp.ones(2), solution_times=jnp.array([0.5, 1.0])).states)
    t(
        "special",
        lambda: (
            tfp.math.bessel_kve(0.5, x),
            tfp.math.bessel_ive(1.5, x),
            tfp.math.erfcx(x),
            tfp.math.owens_t(x, 0.5),
            tfp.math.lambertw(x),
            tfp.math.betainc(2.0, 3.0, x),
            tfp.math.igammainv(2.0, x) if hasattr(tfp.math, "igammainv") else 0,
        ),
    )
    t(
        "special slopes",
        lambda: [
            jax.vmap(jax.grad(f))(x)
            for f in (lambda v: tfp.math.bessel_kve(0.5, v), tfp.math.lambertw, lambda v: tfp.math.owens_t(v, 0.5), lambda v: tfp.math.betainc(2.0, 3.0, v))
        ],
    )
    t("interp", lambda: tfp.math.interp_regular_1d_grid(x, 0.0, 1.0, jnp.array([0.0, 2.0, 3.0])))
    t("quadrature", lambda: tfp.math.scan_associative(jnp.add, jnp.arange(5.0)))
    t(
        "sts",
        lambda: (
            tfp.sts.LocalLinearTrend()
            .make_state_space_model(4, [0.1, 0.2], initial_state_prior=tfd.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)))
            .log_prob(jnp.ones((4, 1)))
        ),
    )
    t(
        "stats",
        lambda: (
            tfp.stats.percentile(jnp.arange(5.0), 30.0),
            tfp.stats.auto_correlation(jnp.array([1.0, 2.0, 0.0, 1.0])),
            tfp.stats.covariance(jnp.arange(6.0).reshape(3, 2)),
        ),
    )
    t("vi", lambda: tfp.vi.monte_carlo_variational_loss(target, tfd.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)), sample_size=4, seed=K))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_tfp(name):
    PROGRAMS.check(name)
