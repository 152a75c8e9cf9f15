"""BlackJAX: samplers, adaptation, variational inference, diagnostics."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from outcomes import assert_agrees, cases, outcomes, stored

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
    t("warm", lambda: (lambda r: (r[0].state.position, r[0].parameters["step_size"]))(blackjax.window_adaptation(blackjax.nuts, ld).run(K, p0, 60)))
    t("pathfinder", lambda: blackjax.vi.pathfinder.approximate(K, lv, v)[0].elbo)
    t("mfvi", lambda: (lambda a: a.step(K, a.init(v))[1].elbo)(blackjax.meanfield_vi(lv, __import__("optax").adam(1e-2), 10)))
    t("svgd", lambda: (lambda a: a.step(a.init(jnp.asarray(rng.randn(5, 2), jnp.float32))).particles if 0 else 1)(0))
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


OUTCOMES = outcomes(programs)


@pytest.mark.parametrize("name", cases(__file__, OUTCOMES))
def test_blackjax(name):
    assert_agrees(OUTCOMES.get(name), stored(__file__).get(name))
