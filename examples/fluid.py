"""Control of a fluid: gradients through a smoke simulation.

An incompressible fluid on a periodic square, after Stam (Stable Fluids, 1999): the velocity advects smoke and itself, and a Fourier transform removes its divergence.
Gradient descent through all steps of the simulation finds the initial velocity that turns a round puff of smoke into the letter F. `checkpoint` stores one state
a step and recomputes the rest.

    python examples/fluid.py --png fluid.png --gif fluid.gif
"""

import sys

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
from ferrax import lax
from ferrax.tree_util import tree_map
from gallery import bar, options, plot, save


def target(n):
    """The letter F, of n x n, with soft edges."""
    f = np.zeros((16, 16))
    f[3:14, 5:7] = f[3:5, 5:12] = f[7:9, 5:10] = 1
    f = np.kron(f, np.ones((n // 16, n // 16)))
    return jnp.asarray(sum(np.roll(f, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) / 9, jnp.float32)


def puff(n, mass):
    """A round cloud with the mass of the letter."""
    y, x = jnp.mgrid[:n, :n] / n - 0.5
    cloud = jax.nn.sigmoid((0.24 - jnp.hypot(x, y)) * 60)
    return cloud * mass / cloud.sum()


def without_divergence(v):
    """The part of a velocity f32[2, n, n] that neither gathers nor thins the fluid."""
    n = v.shape[-1]
    k = jnp.stack(jnp.meshgrid(jnp.fft.fftfreq(n) * n, jnp.fft.rfftfreq(n) * n, indexing="ij"))
    squared = jnp.sum(k**2, 0)
    f = jnp.fft.rfft2(v)
    f = f - k * jnp.sum(k * f, 0) / jnp.where(squared > 0, squared, 1)
    return jnp.fft.irfft2(f, s=(n, n))


def carried(field, v):
    """The field where each point's fluid was a step ago, between four points linearly."""
    n = field.shape[-1]
    place = jnp.mgrid[:n, :n] - v
    low = jnp.floor(place)
    part = place - low
    i, j = low.astype(int) % n
    i1, j1 = (i + 1) % n, (j + 1) % n
    top = field[i, j] * (1 - part[1]) + field[i, j1] * part[1]
    bottom = field[i1, j] * (1 - part[1]) + field[i1, j1] * part[1]
    return top * (1 - part[0]) + bottom * part[0]


@jax.checkpoint
def step(state, _):
    smoke, v = state
    v = without_divergence(jax.vmap(carried, in_axes=(0, None))(v, v))
    smoke = carried(smoke, v)
    return (smoke, v), smoke


def simulate(v, smoke, steps):
    """All states of the smoke, f32[steps, n, n]."""
    return lax.scan(step, (smoke, without_divergence(v)), length=steps)[1]


def cost(v, smoke, goal, steps):
    end = simulate(v, smoke, steps)[-1]
    return jnp.mean((end - goal) ** 2) + 1e-6 * jnp.mean(v**2)


def draw(path, gif, frames, v, goal, history):
    plt = plot()
    if plt is None:
        return
    figure, axes = plt.subplots(2, 4, figsize=(13, 6.8), layout="constrained")
    shown = np.linspace(0, len(frames) - 1, 6).astype(int)
    for axis, k in zip(axes.flat, shown, strict=False):
        axis.imshow(frames[k], cmap="magma", vmin=0, vmax=1)
        axis.set_title(f"step {k}")
        axis.axis("off")
    n = len(goal)
    at = np.arange(0, n, max(n // 16, 1))
    axes[1, 2].quiver(at, at, v[1][np.ix_(at, at)], -v[0][np.ix_(at, at)])
    axes[1, 2].contour(goal, [0.5], colors="tab:red", linewidths=1)
    axes[1, 2].set(title="the velocity that was found", aspect="equal", xlim=(0, n), ylim=(n, 0))
    axes[1, 2].axis("off")
    axes[1, 3].plot(history)
    axes[1, 3].set(yscale="log", xlabel="descent", title="distance from the letter")
    save(figure, path)
    if gif:
        from matplotlib.animation import FuncAnimation, PillowWriter

        small = plt.figure(figsize=(3, 3))
        picture = small.add_axes((0, 0, 1, 1)).imshow(frames[0], cmap="magma", vmin=0, vmax=1)
        FuncAnimation(small, lambda k: (picture.set_data(frames[min(k, len(frames) - 1)]),), len(frames) + 15).save(gif, PillowWriter(15))
        print(f"movie: {gif}")


def main():
    args = options(__doc__, "fluid.png", gif="")
    n, steps, rounds = (32, 8, 12) if args.short else (64, 24, 120)
    goal = target(n)
    smoke = puff(n, goal.sum())
    v, show, history = jnp.zeros((2, n, n)), bar(rounds, "descent"), []
    moments = (v, v)

    @jax.jit
    def descend(v, moments, t):
        value, g = jax.value_and_grad(cost)(v, smoke, goal, steps)
        m, s = moments
        m, s = 0.9 * m + 0.1 * g, 0.99 * s + 0.01 * g * g
        v = v - 0.08 * (m / (1 - 0.9**t)) / (jnp.sqrt(s / (1 - 0.99**t)) + 1e-9)
        return v, (m, s), value

    for k in range(1, rounds + 1):
        v, moments, value = descend(v, moments, jnp.float32(k))
        history.append(float(value))
        show(k, f"distance {history[-1]:.5f}")
    frames = np.concatenate([smoke[None], jax.jit(simulate, static_argnums=2)(v, smoke, steps)])
    print(f"distance {history[0]:.4f} at the start, {history[-1]:.4f} at the end; mass {frames[0].sum():.0f}, then {frames[-1].sum():.0f}")
    draw(args.png, args.gif, frames, np.asarray(tree_map(np.asarray, without_divergence(v))), np.asarray(goal), history)
    if history[-1] > history[0] * (0.7 if args.short else 0.25):
        sys.exit("the smoke should have come nearer")


if __name__ == "__main__":
    main()
