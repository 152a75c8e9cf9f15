"""BlackJAX: samplers, adaptation, variational inference, diagnostics."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from outcomes import Programs

rng = np.random.RandomState(0)
K = jax.random.key(0)


def programs(t):
    ld = lambda x: -0.5 * jnp.sum((x["a"] - 1) ** 2) - 0.5 * jnp.sum((x["b"] / 2) ** 2)
    p0 = {"a": jnp.zeros(2), "b": jnp.ones(())}

    def loop(alg, p=p0, n=30):
        s = alg.init(p) if "rng" not in str(alg.init.__code__.co_varnames[:3]) else alg.init(p, K)

        def one(s, k):
            s, i = alg.step(k, s)
            return s, s.position

        s, ps = jax.jit(lambda s: jax.lax.scan(one, s, jax.random.split(K, n)))(s)
        return jax.tree.map(lambda v: v[-1], ps)

    inv = jnp.ones(3)
    for n, mk in dict(
        nuts=lambda: blackjax.nuts(ld, 0.5, inv),
        hmc=lambda: blackjax.hmc(ld, 0.3, inv, 5),
        mala=lambda: blackjax.mala(ld, 0.3),
        rmh=lambda: blackjax.additive_step_random_walk(ld, blackjax.mcmc.random_walk.normal(jnp.ones(3) * 0.3)),
        barker=lambda: blackjax.barker_proposal(ld, 0.3),
        ghmc=lambda: blackjax.ghmc(ld, 0.3, jax.tree.map(jnp.ones_like, p0), 0.9, 0.1),
        mclmc=lambda: blackjax.mclmc(ld, L=1.0, step_size=0.3),
        dynhmc=lambda: blackjax.dynamic_hmc(ld, 0.3, inv),
    ).items():
        t(n, lambda: loop(mk()))
    v = jnp.zeros(2)
    lv = lambda x: -0.5 * jnp.sum((x - 1) ** 2)
    t("ess", lambda: loop(blackjax.elliptical_slice(lambda x: -0.5 * jnp.sum((x - 1) ** 2), mean=jnp.zeros(2), cov=jnp.eye(2)), v))
    t("imh", lambda: loop(blackjax.irmh(lv, lambda k: jax.random.normal(k, (2,))), v))
    t("slice", lambda: loop(blackjax.hrss(lv, cov=jnp.eye(2)), v) if hasattr(blackjax, "hrss") else 0)
    t("pathfinder", lambda: blackjax.vi.pathfinder.approximate(K, lv, v)[0].elbo)
    t("mfvi", lambda: (lambda a: a.step(K, a.init(v))[1].elbo)(blackjax.meanfield_vi(lv, optax.adam(1e-2), 10)))
    kernel = dict(length_scale=jnp.array(1.0))
    points = jnp.asarray(rng.randn(5, 2), jnp.float32)
    t("svgd", lambda: (lambda a: a.step(a.init(points, kernel)).particles)(blackjax.svgd(jax.grad(lv), optax.adam(1e-1))))
    t("sgld", lambda: (lambda g: blackjax.sgld(g).step(K, v, jnp.ones(2), 1e-2))(lambda p, b: jax.grad(lv)(p)))
    t(
        "smc",
        lambda: (lambda a: a.step(K, a.init(jnp.asarray(rng.randn(20, 2), jnp.float32)))[0].particles.mean(0))(
            blackjax.adaptive_tempered_smc(
                lambda x: -0.5 * jnp.sum(x**2),
                lv,
                blackjax.hmc.build_kernel(),
                blackjax.hmc.init,
                dict(step_size=jnp.array([0.1]), inverse_mass_matrix=jnp.ones((1, 2)), num_integration_steps=jnp.array([3])),
                blackjax.smc.resampling.systematic,
                0.5,
                num_mcmc_steps=3,
            )
        ),
    )
    t(
        "diag",
        lambda: (
            blackjax.diagnostics.effective_sample_size(jnp.asarray(rng.randn(2, 100, 3), jnp.float32)),
            blackjax.diagnostics.potential_scale_reduction(jnp.asarray(rng.randn(2, 100, 3), jnp.float32)),
        ),
    )
    t("inf loop", lambda: blackjax.util.run_inference_algorithm(K, blackjax.nuts(lv, 0.5, jnp.ones(2)), 20, initial_position=v)[0].position)
    t("pytree", lambda: blackjax.util.generate_gaussian_noise(K, p0))


def chain(algorithm, position, steps=20, keys=False):
    """The last position of a chain, and what its last step says of itself."""
    state = algorithm.init(position, K) if keys else algorithm.init(position)
    step = lambda state, key: algorithm.step(key, state)
    state, info = jax.jit(lambda s: jax.lax.scan(step, s, jax.random.split(K, steps)))(state)
    return state.position, jax.tree.map(lambda v: v[-1], getattr(info, "acceptance_rate", ()))


def gaussian(covariance):
    """Whether a chain's mean is that of the posterior, which one chain of those that the signs of eigenvectors leave open is as good as another for."""
    prior = np.linalg.inv(np.asarray(covariance))
    mean = np.linalg.solve(prior + 2 * np.eye(2), [2, 2])
    algorithm = blackjax.mgrad_gaussian(lambda x: -jnp.sum((x - 1) ** 2), covariance=covariance, step_size=0.5)
    step = lambda state, key: (lambda s: (s, s.position))(algorithm.step(key, state)[0])
    draws = jax.jit(lambda s: jax.lax.scan(step, s, jax.random.split(K, 4000)))(algorithm.init(jnp.array([0.5, 0.5])))[1]
    return bool((abs(np.asarray(draws.mean(0)) - mean) < 0.06).all()), bool((abs(np.cov(draws.T) - np.linalg.inv(prior + 2 * np.eye(2))) < 0.06).all())


def kernels(t):
    """Kernels of Markov chains beyond the usual."""
    banana = lambda x: -0.5 * (x[0] ** 2 + (x[1] - 0.5 * x[0] ** 2) ** 2)
    x0, ones = jnp.array([0.5, 0.5]), jnp.ones(2)
    dense = jnp.array([[1.0, 0.3], [0.3, 0.8]])
    t("nuts dense", lambda: chain(blackjax.nuts(banana, 0.4, dense), x0))
    t("nuts depth", lambda: chain(blackjax.nuts(banana, 0.4, ones, max_num_doublings=3), x0))
    t("hmc divergent", lambda: jax.jit(blackjax.hmc(banana, 50.0, ones, 3).step)(K, blackjax.hmc(banana, 50.0, ones, 3).init(x0))[1].is_divergent)
    for n in ("mclachlan", "yoshida", "velocity_verlet"):
        t(f"hmc {n}", lambda: chain(blackjax.hmc(banana, 0.3, ones, 4, integrator=getattr(blackjax.mcmc.integrators, n)), x0))
    t("mhmc", lambda: chain(blackjax.mhmc(banana, 0.3, ones, 4), x0))
    t("dmhmc", lambda: chain(blackjax.dmhmc(banana, 0.3, ones), x0, keys=True))
    t("orbital", lambda: jax.jit(blackjax.orbital_hmc(banana, 0.3, ones, 4).step)(K, blackjax.orbital_hmc(banana, 0.3, ones, 4).init(x0))[0].positions)
    t("rmhmc", lambda: chain(blackjax.rmhmc(banana, 0.2, lambda x: jnp.diag(1 + 0.1 * x**2), 3), x0, 8))
    t("adjusted mclmc", lambda: chain(blackjax.adjusted_mclmc(banana, 0.3, num_integration_steps=4), x0))
    t("adjusted mclmc dynamic", lambda: chain(blackjax.adjusted_mclmc_dynamic(banana, 0.3), x0, keys=True))
    t("gaussian", lambda: gaussian(dense))
    t("coordinate slice", lambda: chain(blackjax.coordinate_slice(banana), x0, 5))
    t("slice of directions", lambda: chain(blackjax.slice_sampling(banana), x0, 5))
    t("random walk", lambda: chain(blackjax.normal_random_walk(banana, jnp.ones(2) * 0.4), x0))
    t("rmh proposal", lambda: chain(blackjax.rmh(banana, lambda key, x: x + 0.3 * jax.random.normal(key, x.shape)), x0))
    t(
        "laplace",
        lambda: chain(
            blackjax.laplace_hmc(
                lambda theta, phi: -0.5 * jnp.sum((theta - phi) ** 2) - 0.5 * jnp.sum(phi**2) - jnp.sum((theta - 1) ** 2), jnp.zeros(2), 0.2, ones, 3
            ),
            x0,
            4,
        ),
    )
    t(
        "chains",
        lambda: jax.vmap(lambda k, x: blackjax.nuts(banana, 0.4, ones).step(k, blackjax.nuts(banana, 0.4, ones).init(x))[0].position)(
            jax.random.split(K, 3), jnp.ones((3, 2))
        ),
    )
    t(
        "thinned",
        lambda: (
            blackjax.util.run_inference_algorithm(K, blackjax.util.thin_algorithm(blackjax.hmc(banana, 0.3, ones, 3), 2), 4, initial_position=x0)[1][0].position
        ),
    )
    t(
        "shape",
        lambda: blackjax.nuts(banana, 0.3, jnp.ones((2, 2, 2))).init(x0) and chain(blackjax.nuts(banana, 0.3, jnp.ones((2, 2, 2))), x0),
        raises=ValueError,
        why="a mass matrix has one or two axes",
    )
    t(
        "of integers",
        lambda: chain(blackjax.nuts(lambda x: -jnp.sum(x**2), 0.3, ones), jnp.array([1, 2])),
        raises=TypeError,
        why="positions are not differentiable",
    )


def adaptation(t):
    """What finds step sizes and metrics."""
    normal = lambda x: -0.5 * jnp.sum((x / jnp.array([1.0, 3.0])) ** 2)
    x0 = jnp.array([0.5, 0.5])
    t("pathfinder then nuts", lambda: blackjax.pathfinder_adaptation(blackjax.nuts, normal).run(K, x0, 30)[0].parameters["step_size"])
    t("chees", lambda: (lambda r: r[0].parameters["step_size"])(blackjax.chees_adaptation(normal, 4).run(K, jnp.ones((4, 2)) * x0, 0.2, optax.adam(0.05), 20)))
    t("meads", lambda: (lambda r: r[0].parameters["step_size"])(blackjax.meads_adaptation(normal, 4).run(K, jax.random.normal(K, (4, 2)), 10)))

    def tuned():
        state = blackjax.mcmc.mclmc.init(x0, normal, K)
        kernel = blackjax.mcmc.mclmc.build_kernel()
        return blackjax.mclmc_find_L_and_step_size(kernel, 60, state, K, normal, diagonal_preconditioning=False)[1].step_size

    t("mclmc tuned", tuned)

    def averaged():
        init, update, final = blackjax.optimizers.dual_averaging.dual_averaging()
        state = init(0.0)
        for g in (0.5, -0.2, 0.1):
            state = update(state, g)
        return state.log_x, final(state)

    t("dual averaging", averaged)
    t("lbfgs", lambda: blackjax.optimizers.lbfgs.minimize_lbfgs(lambda x: -normal(x - 1), x0)[0].params)


def in_double(t):
    """Adaptations whose many decisions would turn one rounding of single precision into another step size."""

    def parts():
        tree = lambda x: -0.5 * jnp.sum((x["a"] - 1) ** 2) - 0.5 * jnp.sum((x["b"] / 2) ** 2)
        normal = lambda x: -0.5 * jnp.sum((x / jnp.array([1.0, 3.0])) ** 2)
        return tree, {"a": jnp.zeros(2), "b": jnp.ones(())}, normal, jnp.array([0.5, 0.5])

    def warm():
        tree, start, *_ = parts()
        found = blackjax.window_adaptation(blackjax.nuts, tree).run(K, start, 60)[0]
        return found.state.position, found.parameters["step_size"]

    def window(sampler, **how):
        *_, normal, start = parts()
        found = blackjax.window_adaptation(sampler, normal, **how).run(K, start, 60)[0].parameters
        return found["step_size"], found["inverse_mass_matrix"]

    def low_rank():
        *_, normal, start = parts()
        return blackjax.window_adaptation_low_rank(blackjax.nuts, normal, max_rank=1).run(K, start, 60)[0].parameters["step_size"]

    with jax.enable_x64(True):
        t("warm", warm)
        t("window dense", lambda: window(blackjax.nuts, is_mass_matrix_diagonal=False))
        t("window of hmc", lambda: window(blackjax.hmc, num_integration_steps=4))
        t("low rank", low_rank)


def populations(t):
    """Sequential Monte Carlo, variational inference, stochastic gradients, diagnostics."""
    prior, likelihood = (lambda x: -0.5 * jnp.sum(x**2)), (lambda x: -jnp.sum((x - 1) ** 2))
    start = jax.random.normal(K, (16, 2))
    hmc = dict(
        mcmc_step_fn=blackjax.hmc.build_kernel(),
        mcmc_init_fn=blackjax.hmc.init,
        mcmc_parameters=dict(step_size=jnp.array([0.1]), inverse_mass_matrix=jnp.ones((1, 2)), num_integration_steps=jnp.array([3])),
    )
    for n in ("systematic", "stratified", "multinomial", "residual"):
        resampling = getattr(blackjax.smc.resampling, n)
        t(f"resampling {n}", lambda: resampling(K, jnp.array([0.1, 0.2, 0.3, 0.4]), 8))
        t(
            f"tempered {n}",
            lambda: (lambda a: a.step(K, a.init(start), 0.3)[0].particles)(
                blackjax.tempered_smc(prior, likelihood, **hmc, resampling_fn=resampling, num_mcmc_steps=2)
            ),
        )
    t(
        "persistent",
        lambda: (lambda a: a.step(K, a.init(start), 0.4)[0].particles)(
            blackjax.persistent_sampling_smc(prior, likelihood, 3, **hmc, resampling_fn=blackjax.smc.resampling.systematic, num_mcmc_steps=2)
        ),
    )
    t("effective sizes", lambda: (blackjax.smc.ess.ess(jnp.array([-1.0, -2.0, -0.5])), blackjax.smc.solver.dichotomy(lambda x: x - 0.3, 0.0, 1.0)))
    t("nested", lambda: (lambda a: a.step(K, a.init(start))[0].particles)(blackjax.nss(prior, likelihood, 3)))
    t("full rank", lambda: (lambda a: a.step(K, a.init(jnp.zeros(2)))[1].elbo)(blackjax.fullrank_vi(likelihood, optax.adam(1e-2), 10)))
    t("mean field draws", lambda: (lambda a: a.sample(K, a.init(jnp.zeros(2)), 3))(blackjax.meanfield_vi(likelihood, optax.adam(1e-2), 10)))
    t("follmer", lambda: (lambda a: a.sample(K, a.init(jnp.zeros(2)), 3))(blackjax.schrodinger_follmer(likelihood, 4, 5)))
    t("many pathfinders", lambda: blackjax.multipathfinder(likelihood).init(K, start[:3], 10)[0].logp.mean(-1))
    data = jax.random.normal(jax.random.key(1), (32, 2)) + 1
    gradients = blackjax.sgmcmc.gradients.grad_estimator(prior, lambda x, d: -0.5 * jnp.sum((x - d) ** 2), 32)
    t("sgld of data", lambda: jax.lax.scan(lambda x, k: (blackjax.sgld(gradients).step(k, x, data[:8], 1e-3), None), jnp.zeros(2), jax.random.split(K, 10))[0])
    t("sghmc", lambda: blackjax.sghmc(gradients, 3).step(K, jnp.zeros(2), data[:8], 1e-3))
    t("sgnht", lambda: (lambda a: a.step(K, a.init(jnp.zeros(2), K), data[:8], 1e-3))(blackjax.sgnht(gradients)))
    t("control variates", lambda: blackjax.sgmcmc.gradients.control_variates(gradients, jnp.zeros(2), data)(jnp.ones(2), data[:8]))
    draws = jnp.cumsum(jax.random.normal(K, (2, 64, 2)), 1) * 0.1
    t("rank diagnostics", lambda: (blackjax.rhat(draws), blackjax.ess_bulk(draws), blackjax.ess_tail(draws)))
    t("pareto", lambda: (blackjax.pareto_khat(draws[0, :, 0]), blackjax.diagnostics.psis_weights(draws[0, :, 0])[0]))


def all_of(t):
    programs(t)
    kernels(t)
    adaptation(t)
    in_double(t)
    populations(t)


PROGRAMS = Programs(all_of)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_blackjax(name):
    PROGRAMS.check(name)
