"""RLax: returns, losses, projections, policies, exploration."""

import jax
import jax.numpy as jnp
import pytest
import rlax
from outcomes import Programs

K = jax.random.key(0)


def programs(t):
    r = jnp.array([1.0, 0.0, -1.0, 2.0])
    d = jnp.array([0.9, 0.9, 0.0, 0.9])
    v = jnp.array([0.5, 0.2, 0.1, 0.4, 0.3])
    t("lambda", lambda: rlax.lambda_returns(r, d, v[1:], 0.9))
    t("nstep", lambda: rlax.n_step_bootstrapped_returns(r, d, v[1:], 2))
    t("gae", lambda: rlax.truncated_generalized_advantage_estimation(r, d, 0.95, v))
    t("vtrace", lambda: rlax.vtrace(v[:-1], v[1:], r, d, jnp.ones(4) * 1.2))
    t("vtrace td", lambda: rlax.vtrace_td_error_and_advantage(v[:-1], v[1:], r, d, jnp.ones(4) * 1.2))
    t("pg", lambda: jax.grad(lambda l: rlax.policy_gradient_loss(l, jnp.array([0, 1]), jnp.array([1.0, -1.0]), jnp.ones(2)))(jnp.ones((2, 3))))
    t("entropy", lambda: jax.grad(lambda l: rlax.entropy_loss(l, jnp.ones(2)))(jnp.arange(6.0).reshape(2, 3)))
    t("q", lambda: jax.vmap(rlax.q_learning)(jnp.ones((2, 3)), jnp.array([0, 1]), r[:2], d[:2], jnp.ones((2, 3))))
    t("dq", lambda: rlax.double_q_learning(jnp.ones(3), 1, 1.0, 0.9, jnp.arange(3.0), jnp.arange(3.0)[::-1]))
    t("cat", lambda: rlax.categorical_q_learning(jnp.linspace(-1, 1, 5), jnp.ones((3, 5)), 1, 0.5, 0.9, jnp.linspace(-1, 1, 5), jnp.arange(15.0).reshape(3, 5)))
    t(
        "quantile",
        lambda: rlax.quantile_q_learning(
            jnp.ones((5, 3)), jnp.linspace(0.1, 0.9, 5), 1, 0.5, 0.9, jnp.arange(15.0).reshape(5, 3), jnp.arange(15.0).reshape(5, 3), 1.0
        ),
    )
    t("l2proj", lambda: rlax.categorical_l2_project(jnp.linspace(-1, 1, 5), jnp.ones(5) / 5, jnp.linspace(-0.5, 0.5, 4)))
    t("tx", lambda: (rlax.signed_hyperbolic(r), rlax.signed_parabolic(r), rlax.SIGNED_HYPERBOLIC_PAIR.apply(r)))
    t("twohot", lambda: rlax.transform_to_2hot(jnp.array(0.3), -1.0, 1.0, 5))
    t("softmax", lambda: (lambda D: (D.sample(K, jnp.ones(3)), D.entropy(jnp.arange(3.0)), D.kl(jnp.arange(3.0), jnp.ones(3))))(rlax.softmax()))
    t("epsgreedy", lambda: (lambda D: (D.probs(jnp.arange(3.0)), D.logprob(jnp.array(1), jnp.arange(3.0))))(rlax.epsilon_greedy(0.1)))
    t("gauss", lambda: rlax.gaussian_diagonal().logprob(jnp.ones(3), jnp.zeros(3), jnp.ones(3)))
    t("mpo", lambda: rlax.clipped_surrogate_pg_loss(jnp.ones(3) * 1.3, jnp.array([1.0, -1.0, 2.0]), 0.2))
    t("huber", lambda: jax.grad(lambda x: rlax.huber_loss(x, 1.0).sum())(r))
    t("periodic", lambda: rlax.periodic_update(jnp.ones(2), jnp.zeros(2), jnp.array(4), 2))
    t("conditional", lambda: rlax.conditional_update(jnp.ones(2), jnp.zeros(2), jnp.array(True)))
    t("popart", lambda: rlax.popart(3, 0.01, 0.0001, 10000.0)[0]())
    t("tree", lambda: rlax.tree_split_leaves({"a": jnp.ones((2, 2))}))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_rlax(name):
    PROGRAMS.check(name)
