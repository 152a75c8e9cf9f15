"""Brax and MuJoCo MJX: rollouts, their gradients, batches, training by policy gradients."""

import functools

import brax.envs
import jax
import jax.numpy as jnp
import mujoco
import pytest
from mujoco import mjx
from outcomes import Programs

PENDULUM = """<mujoco><option timestep="0.01"/><worldbody>
<body pos="0 0 1"><joint name="a" type="hinge" axis="0 1 0" damping="0.1"/><geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" mass="1" contype="0" conaffinity="0"/>
<body pos="0 0 -0.5"><joint name="b" type="hinge" axis="0 1 0"/><geom type="sphere" size="0.1" mass="0.5" contype="0" conaffinity="0"/></body></body>
</worldbody><actuator><motor joint="a" gear="1"/></actuator></mujoco>"""
BALL = """<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="5 5 0.1"/>
<body pos="0 0 0.12"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>"""
K = jax.random.key(0)


@functools.cache
def model(text):
    m = mujoco.MjModel.from_xml_string(text)
    return m, mjx.put_model(m)


def rolled(text, n=5, qpos=None, ctrl=None):
    m, mx = model(text)
    d = mjx.make_data(m)
    if qpos is not None:
        d = d.replace(qpos=qpos)

    def step(d, _):
        if ctrl is not None:
            d = d.replace(ctrl=ctrl)
        d = mjx.step(mx, d)
        return d, d.qpos

    return jax.lax.scan(step, d, None, n)[1]


def rollout(name, backend, n=3, seed=0):
    env = brax.envs.get_environment(name, backend=backend)
    state = jax.jit(env.reset)(jax.random.PRNGKey(seed))
    step = jax.jit(env.step)
    out = []
    for i in range(n):
        state = step(state, jnp.full((env.action_size,), 0.1 * (i + 1)))
        out.append((state.obs, state.reward, state.done))
    return out


def programs(t):
    q0 = jnp.array([0.5, -0.2])
    model(PENDULUM), model(BALL)
    t("pendulum", lambda: jax.jit(lambda q: rolled(PENDULUM, qpos=q))(q0))
    t("pendulum grad", lambda: jax.jit(jax.jacfwd(lambda q: rolled(PENDULUM, qpos=q)[-1]))(q0))
    t("pendulum control", lambda: jax.jit(jax.grad(lambda c: rolled(PENDULUM, 3, ctrl=c[None]).sum()))(0.3))
    t("pendulum batch", lambda: jax.jit(jax.vmap(lambda q: rolled(PENDULUM, qpos=q)[-1]))(jnp.stack([q0, -q0])))
    t("ball", lambda: jax.jit(lambda: rolled(BALL, 4))())
    t("kinematics", lambda: (lambda m, mx: jax.jit(mjx.kinematics)(mx, mjx.make_data(m).replace(qpos=q0)).xpos)(*model(PENDULUM)))
    t("forward", lambda: (lambda m, mx: jax.jit(mjx.forward)(mx, mjx.make_data(m).replace(qpos=q0)).qacc)(*model(PENDULUM)))
    t("inertia", lambda: (lambda m, mx: mjx.full_m(mx, jax.jit(mjx.forward)(mx, mjx.make_data(m).replace(qpos=q0))))(*model(PENDULUM)))
    t("host", lambda: (lambda m, mx: mjx.get_data(m, jax.jit(mjx.step)(mx, mjx.put_data(m, mujoco.MjData(m)))).qpos)(*model(PENDULUM)))

    for backend in ("generalized", "spring"):
        t(f"inverted_pendulum {backend}", lambda backend=backend: rollout("inverted_pendulum", backend))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_brax(name):
    PROGRAMS.check(name)
