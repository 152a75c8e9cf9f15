"""Diffrax: solvers, adjoints, noise, events, interpolation, a neural differential equation."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix as optx
import pytest
from outcomes import Programs

rng = np.random.RandomState(0)
K = jax.random.key(0)


def programs(t):
    vf = lambda t, y, a: -a * y
    term = dfx.ODETerm(vf)
    for n in "Euler Heun Midpoint Ralston Bosh3 Tsit5 Dopri5 Dopri8 ImplicitEuler Kvaerno3 Kvaerno4 Kvaerno5 ReversibleHeun LeapfrogMidpoint".split():
        s = getattr(dfx, n)()
        kw = dict(stepsize_controller=dfx.PIDController(1e-4, 1e-5)) if n not in ("Euler", "LeapfrogMidpoint") else {}
        t(n, lambda: dfx.diffeqsolve(term, s, 0, 1, 0.1, jnp.array([1.0, 2.0]), 1.5, **kw).ys)

    def grad_of(adj, **kw):
        return jax.grad(
            lambda a: dfx.diffeqsolve(
                term, dfx.Tsit5(), 0, 1, 0.1, jnp.array([1.0, 2.0]), a, adjoint=adj, stepsize_controller=dfx.PIDController(1e-4, 1e-5), **kw
            ).ys.sum()
        )(1.5)

    for n in (
        "RecursiveCheckpointAdjoint()",
        "DirectAdjoint()",
        "BacksolveAdjoint()",
        "RecursiveCheckpointAdjoint(checkpoints=4)",
    ):
        t(n, lambda: grad_of(eval("dfx." + n)))
    t(
        "ForwardMode",
        lambda: jax.jvp(lambda a: dfx.diffeqsolve(term, dfx.Tsit5(), 0, 1, 0.1, jnp.array([1.0, 2.0]), a, adjoint=dfx.ForwardMode()).ys, (1.5,), (1.0,)),
    )
    t("saveat", lambda: dfx.diffeqsolve(term, dfx.Tsit5(), 0, 1, 0.1, jnp.array([1.0, 2.0]), 1.5, saveat=dfx.SaveAt(ts=jnp.linspace(0, 1, 4))).ys)
    t("dense", lambda: dfx.diffeqsolve(term, dfx.Tsit5(), 0, 1, 0.1, jnp.array([1.0, 2.0]), 1.5, saveat=dfx.SaveAt(dense=True)).evaluate(0.33))
    t("steps", lambda: dfx.diffeqsolve(term, dfx.Tsit5(), 0, 1, 0.25, jnp.array([1.0, 2.0]), 1.5, saveat=dfx.SaveAt(steps=True), max_steps=8).ts)
    t("stats", lambda: dfx.diffeqsolve(term, dfx.Tsit5(), 0, 1, 0.1, jnp.array([1.0, 2.0]), 1.5).stats)
    t("jit", lambda: eqx.filter_jit(dfx.diffeqsolve)(term, dfx.Tsit5(), 0, 1, 0.1, jnp.array([1.0, 2.0]), 1.5).ys)
    t(
        "vmap",
        lambda: jax.vmap(lambda y: dfx.diffeqsolve(term, dfx.Dopri5(), 0, 1, 0.1, y, 1.5, stepsize_controller=dfx.PIDController(1e-4, 1e-5)).ys)(
            jnp.array([1.0, 10.0, 100.0])
        ),
    )
    bm = dfx.VirtualBrownianTree(0, 1, 1e-3, (), jax.random.key(1))
    sde = dfx.MultiTerm(dfx.ODETerm(lambda t, y, a: -y), dfx.ControlTerm(lambda t, y, a: 0.1 * y, bm))
    for n in "Euler Heun ItoMilstein StratonovichMilstein ShARK SRA1 SPaRK".split():
        t(
            "sde " + n,
            lambda: (
                dfx.diffeqsolve(
                    sde
                    if n in ("Euler", "Heun", "ItoMilstein", "StratonovichMilstein")
                    else dfx.MultiTerm(
                        dfx.ODETerm(lambda t, y, a: -y),
                        dfx.ControlTerm(
                            lambda t, y, a: jnp.array(0.1), dfx.VirtualBrownianTree(0, 1, 1e-3, (), jax.random.key(1), levy_area=dfx.SpaceTimeLevyArea)
                        ),
                    ),
                    getattr(dfx, n)(),
                    0,
                    1,
                    0.05,
                    1.0,
                ).ys
            ),
        )
    t("unsafe", lambda: dfx.UnsafeBrownianPath((), jax.random.key(1)).evaluate(0.0, 1.0))
    t(
        "event",
        lambda: (
            dfx.diffeqsolve(
                dfx.ODETerm(lambda t, y, a: jnp.array([y[1], -9.8])),
                dfx.Tsit5(),
                0,
                jnp.inf,
                0.1,
                jnp.array([10.0, 0.0]),
                event=dfx.Event(lambda t, y, args, **k: y[0], optx.Newton(1e-5, 1e-5)),
                stepsize_controller=dfx.PIDController(1e-4, 1e-4),
            ).ts
        ),
    )
    t(
        "steady",
        lambda: (
            dfx.diffeqsolve(
                term,
                dfx.Tsit5(),
                0,
                30,
                0.1,
                jnp.array(1.0),
                1.0,
                event=dfx.Event(dfx.steady_state_event(1e-3, 1e-3)),
                stepsize_controller=dfx.PIDController(1e-3, 1e-3),
            ).ts
        ),
    )
    ts = jnp.linspace(0, 1, 5)
    ysd = jnp.asarray(rng.randn(5, 2), jnp.float32)
    t("cubic", lambda: dfx.CubicInterpolation(ts, dfx.backward_hermite_coefficients(ts, ysd)).evaluate(0.3))
    t("linear", lambda: dfx.LinearInterpolation(ts, ysd).evaluate(0.3))
    t(
        "cde",
        lambda: (
            dfx.diffeqsolve(
                dfx.ControlTerm(lambda t, y, a: jnp.ones((1, 2)) * y, dfx.LinearInterpolation(ts, ysd)).to_ode(), dfx.Tsit5(), 0, 1, 0.1, jnp.ones(1)
            ).ys
        ),
    )
    t("semi", lambda: dfx.diffeqsolve((dfx.ODETerm(lambda t, v, a: v), dfx.ODETerm(lambda t, x, a: -x)), dfx.SemiImplicitEuler(), 0, 1, 0.1, (1.0, 0.0)).ys)
    t(
        "imex",
        lambda: (
            dfx.diffeqsolve(
                dfx.MultiTerm(dfx.ODETerm(lambda t, y, a: -y), dfx.ODETerm(lambda t, y, a: -0.5 * y)),
                dfx.KenCarp4(),
                0,
                1,
                0.1,
                1.0,
                stepsize_controller=dfx.PIDController(1e-4, 1e-5),
            ).ys
        ),
    )
    t("maxsteps", lambda: dfx.diffeqsolve(term, dfx.Tsit5(), 0, 1, 0.001, 1.0, 1.0, max_steps=4), raises="EquinoxRuntimeError", why="four steps do not suffice")
    t("maxs2", lambda: str(dfx.diffeqsolve(term, dfx.Tsit5(), 0, 1, 0.001, 1.0, 1.0, max_steps=4, throw=False).result))
    t(
        "clip",
        lambda: (
            dfx.diffeqsolve(
                term, dfx.Tsit5(), 0, 1, 0.1, 1.0, 1.0, stepsize_controller=dfx.ClipStepSizeController(dfx.PIDController(1e-3, 1e-3), jump_ts=jnp.array([0.5]))
            ).ys
        ),
    )
    t("prog", lambda: dfx.diffeqsolve(term, dfx.Tsit5(), 0, 1, 0.1, 1.0, 1.0, progress_meter=dfx.NoProgressMeter()).ys)
    t("rev", lambda: dfx.diffeqsolve(term, dfx.Tsit5(), 1, 0, -0.1, 1.0, 1.0).ys)

    class F(eqx.Module):
        m: eqx.nn.MLP

        def __call__(self, t, y, a):
            return self.m(y)

    f0 = F(eqx.nn.MLP(2, 2, 8, 1, activation=jnp.tanh, key=K))

    def tr():
        o = optax.adam(1e-2)
        m = f0
        st = o.init(eqx.filter(m, eqx.is_inexact_array))
        ls = []

        @eqx.filter_jit
        def step(m, st):
            def loss(m):
                return jnp.mean(
                    (
                        jax.vmap(
                            lambda y: (
                                dfx.diffeqsolve(
                                    dfx.ODETerm(m), dfx.Tsit5(), 0, 1, 0.1, y, saveat=dfx.SaveAt(ts=ts), stepsize_controller=dfx.PIDController(1e-3, 1e-6)
                                ).ys
                            )
                        )(ysd)
                        - 1
                    )
                    ** 2
                )

            l, g = eqx.filter_value_and_grad(loss)(m)
            u, st = o.update(g, st, m)
            return eqx.apply_updates(m, u), st, l

        for _ in range(3):
            m, st, l = step(m, st)
            ls.append(l)
        return ls

    t("node", tr)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_diffrax(name):
    PROGRAMS.check(name)
