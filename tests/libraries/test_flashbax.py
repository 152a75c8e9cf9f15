"""Flashbax: buffers of experience."""

import flashbax as fbx
import jax
import jax.numpy as jnp
import pytest
from outcomes import Programs

KO = jax.random.PRNGKey(0)


def programs(t):
    ex = {"obs": jnp.zeros(3), "r": jnp.array(0.0)}
    item = lambda i: {"obs": jnp.full(3, i, jnp.float32), "r": jnp.float32(i)}

    def flat():
        b = fbx.make_flat_buffer(max_length=16, min_length=2, sample_batch_size=4)
        s = b.init(ex)
        for i in range(6):
            s = b.add(s, item(i))
        return (b.sample(s, KO).experience.first, b.can_sample(s))

    t("flat", flat)

    def prio():
        b = fbx.make_prioritised_flat_buffer(max_length=16, min_length=2, sample_batch_size=4)
        s = b.init(ex)
        for i in range(6):
            s = b.add(s, item(i))
        x = b.sample(s, KO)
        s = b.set_priorities(s, x.indices, jnp.ones(4) * 2.0)
        return (x.experience.first, x.probabilities, b.sample(s, KO).indices)

    t("prio", prio)

    def traj():
        b = fbx.make_trajectory_buffer(
            add_batch_size=2, sample_batch_size=3, sample_sequence_length=2, period=1, min_length_time_axis=2, max_length_time_axis=8
        )
        s = jax.jit(b.init)(ex)
        add = jax.jit(b.add)
        for i in range(4):
            s = add(s, jax.tree.map(lambda x: jnp.broadcast_to(x, (2, 1, *x.shape)), item(i)))
        return jax.jit(b.sample)(s, KO).experience

    t("traj", traj)

    def itemb():
        b = fbx.make_item_buffer(max_length=8, min_length=2, sample_batch_size=3)
        s = b.init(ex)
        for i in range(4):
            s = b.add(s, item(i))
        return b.sample(s, KO).experience

    t("item", itemb)

    def queue():
        b = fbx.make_trajectory_queue(max_length_time_axis=8, add_batch_size=2, add_sequence_length=2, sample_sequence_length=2)
        s = b.init(ex)
        s = b.add(s, jax.tree.map(lambda x: jnp.broadcast_to(x, (2, 2, *x.shape)), item(3)))
        s, x = b.sample(s)
        return x.experience

    t("queue", queue)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_flashbax(name):
    PROGRAMS.check(name)
