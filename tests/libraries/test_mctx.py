"""mctx: searches in trees."""

import jax
import jax.numpy as jnp
import mctx
import pytest
from outcomes import Programs

K = jax.random.key(0)


def programs(t):
    def rec(params, key, action, emb):
        r = jnp.sin(action + emb)
        return (
            mctx.RecurrentFnOutput(
                reward=r, discount=jnp.full_like(r, 0.9), prior_logits=jnp.stack([jnp.cos(emb), jnp.sin(emb), emb * 0], -1), value=jnp.tanh(emb)
            ),
            emb + action,
        )

    root = mctx.RootFnOutput(prior_logits=jnp.array([[0.1, 0.2, 0.3], [0.0, 1.0, -1.0]]), value=jnp.array([0.5, 0.1]), embedding=jnp.array([0.0, 1.0]))
    for pol in ("muzero_policy", "gumbel_muzero_policy"):
        t(pol, lambda pol=pol: (lambda o: (o.action, o.action_weights))(jax.jit(lambda k: getattr(mctx, pol)(None, k, root, rec, num_simulations=16))(K)))
    t("summary", lambda: mctx.muzero_policy(None, K, root, rec, num_simulations=8).search_tree.summary().visit_counts)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_mctx(name):
    PROGRAMS.check(name)
