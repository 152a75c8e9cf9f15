"""A neural ordinary differential equation of a pendulum, with Equinox and Diffrax.

The network learns the motion of a pendulum from noisy measurements. Equinox holds it, Diffrax solves the equation with adaptive steps, Optax trains; all are unmodified. The gradient passes through the
solver (`RecursiveCheckpointAdjoint`). Training starts with short stretches of each trajectory, each with its own initial state, and continues with longer ones up to the whole.

    python -m ferrax examples/neural_ode.py --png neural_ode.png
"""

import sys

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gallery import bar, options, plot, save

END, NOISE = 8.0, 0.03


def pendulum(t, y, args):
    return jnp.stack([y[1], -jnp.sin(y[0]) * 2 - 0.15 * y[1]])


class Field(eqx.Module):
    """What moves a state: a network of the state."""

    net: eqx.nn.MLP

    def __init__(self, key):
        self.net = eqx.nn.MLP(2, 2, 32, 2, activation=jnp.tanh, key=key)

    def __call__(self, t, y, args):
        return self.net(y)


def solve(field, y0, times, **options):
    """States f32[T, 2] at the times."""
    term = diffrax.ODETerm(field)
    control = diffrax.PIDController(rtol=1e-4, atol=1e-5)
    return diffrax.diffeqsolve(
        term, diffrax.Tsit5(), times[0], times[-1], 0.05, y0, saveat=diffrax.SaveAt(ts=times), stepsize_controller=control, max_steps=1024, **options
    ).ys


def draw(path, field, times, seen, starts, history):
    plt = plot()
    if plt is None:
        return
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
    left.plot(history, linewidth=0.8)
    left.set(yscale="log", xlabel="step", ylabel="mean squared error", title="learning")
    fine = jnp.linspace(0, 2 * END, 300)
    for k in range(3):
        y = solve(field, starts[k], fine)
        middle.plot(fine, solve(pendulum, starts[k], fine)[:, 0], "k--", linewidth=0.8)
        middle.plot(fine, y[:, 0], color=f"C{k}")
        middle.plot(times, seen[k, :, 0], ".", color=f"C{k}", markersize=4)
    middle.axvspan(END, 2 * END, color="0.95", zorder=0)
    middle.set(xlabel="time", ylabel="angle", title="seen, learned, true (dashed), foretold (grey)")
    grid = np.stack(np.meshgrid(np.linspace(-2.5, 2.5, 17), np.linspace(-3, 3, 17)), -1).astype(np.float32)
    arrows = jax.vmap(jax.vmap(lambda y: field(0.0, y, None)))(jnp.asarray(grid))
    right.quiver(grid[..., 0], grid[..., 1], arrows[..., 0], arrows[..., 1], color="0.6")
    for k in range(3):
        right.plot(*solve(field, starts[k], fine).T, color=f"C{k}")
    right.set(xlabel="angle", ylabel="speed", title="the field that was learned")
    save(figure, path)


def main():
    args = options(__doc__, "neural_ode.png")
    k_net, k_start, k_noise = jax.random.split(jax.random.key(args.seed), 3)
    swings, stages = (8, ((25, 5, 1e-2),)) if args.short else (24, ((150, 5, 1e-2), (150, 10, 5e-3), (200, 40, 2e-3)))
    times = jnp.linspace(0, END, 40)
    starts = jax.random.uniform(k_start, (swings, 2), minval=-1.5, maxval=1.5)
    seen = jax.jit(jax.vmap(lambda y0: solve(pendulum, y0, times)))(starts)
    seen = seen + NOISE * jax.random.normal(k_noise, seen.shape)

    field, history, total = Field(k_net), [], sum(n for n, *_ in stages)
    show = bar(total)
    for steps, length, rate in stages:
        tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(rate, steps, 0.1)))
        stretches = seen.reshape(-1, length, 2)

        @eqx.filter_jit
        def step(field, state, y, times=times[:length], tx=tx):
            def loss(field):
                got = jax.vmap(lambda y0: solve(field, y0, times))(y[:, 0])
                return jnp.mean((got - y) ** 2)

            value, grads = eqx.filter_value_and_grad(loss)(field)
            updates, state = tx.update(grads, state)
            return eqx.apply_updates(field, updates), state, value

        state = tx.init(eqx.filter(field, eqx.is_inexact_array))
        for _ in range(steps):
            field, state, value = step(field, state, stretches)
            history.append(float(value))
            show(len(history), f"error {history[-1]:.5f}")
    print(f"mean squared error {history[0]:.3f} at first, {history[-1]:.4f} at last; the noise alone is {NOISE**2:.4f}")
    draw(args.png, field, times, np.asarray(seen), starts, history)
    if history[-1] > (0.6 * history[0] if args.short else 0.01):
        sys.exit("it should have learned to swing")


if __name__ == "__main__":
    main()
