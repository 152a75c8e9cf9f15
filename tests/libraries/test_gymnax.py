"""gymnax: steps of environments in a scan, and batches of them."""

import gymnax
import jax
import pytest
from jax import random
from outcomes import Programs

KO = jax.random.PRNGKey(0)


def programs(t):
    for n in [
        "CartPole-v1",
        "Pendulum-v1",
        "Acrobot-v1",
        "MountainCar-v0",
        "Catch-bsuite",
        "DeepSea-bsuite",
        "Breakout-MinAtar",
        "SpaceInvaders-MinAtar",
        "Asterix-MinAtar",
        "FourRooms-misc",
        "MetaMaze-misc",
        "Reacher-misc",
        "GaussianBandit-misc",
        "MemoryChain-bsuite",
    ]:

        def roll(n=n):
            env, p = gymnax.make(n)

            @jax.jit
            def go(k):
                obs, s = env.reset(k, p)

                def step(c, k):
                    obs, s = c
                    a = env.action_space(p).sample(k)
                    out = env.step(k, s, a, p)
                    obs, s, r, d = (out[0], out[1], out[2], out[3])
                    return ((obs, s), (r, d, obs.sum()))

                return jax.lax.scan(step, (obs, s), random.split(k, 12))[1]

            return go(KO)

        t(n, roll)

        def vm(n=n):
            env, p = gymnax.make(n)
            return jax.vmap(lambda k: env.reset(k, p)[0])(random.split(KO, 3))

        t(n + " vmap", vm)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_gymnax(name):
    PROGRAMS.check(name)
