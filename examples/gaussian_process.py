"""Gaussian process regression of a noisy periodic signal.

The kernel is a slow trend plus a component that nearly repeats. Gradient ascent on the log marginal likelihood, through a Cholesky factorization, fits its six parameters from
several starts at once (`vmap`). The process then predicts, with error bars, what was not measured.

    python examples/gaussian_process.py --png gaussian_process.png
"""

import sys

import ferrax as jax
import ferrax.numpy as jnp
import ferrax.scipy.linalg as jsl
import numpy as np
from ferrax import random
from ferrax.scipy.optimize import minimize
from gallery import bar, options, plot, save

NAMES = ("trend height", "trend length", "wave height", "period", "wave memory", "noise")
TRUE_PERIOD, NOISE = 1.7, 0.15


def truth(t):
    return 0.25 * t + jnp.sin(2 * jnp.pi * t / TRUE_PERIOD) + 0.3 * jnp.cos(4 * jnp.pi * t / TRUE_PERIOD)


def kernel(log_params, s, t):
    """Covariance f32[n, m] of values at times f32[n] and f32[m]."""
    trend, length, wave, period, memory, _ = jnp.exp(log_params)
    d = s[:, None] - t[None]
    near_repeat = jnp.exp(-2 * jnp.sin(jnp.pi * d / period) ** 2 - 0.5 * (d / memory) ** 2)
    return trend**2 * jnp.exp(-0.5 * (d / length) ** 2) + wave**2 * near_repeat


def factor(log_params, t):
    noise = jnp.exp(log_params[5])
    return jnp.linalg.cholesky(kernel(log_params, t, t) + (noise**2 + 1e-5) * jnp.eye(len(t)))


def cost(log_params, t, y):
    """Minus the log marginal likelihood per measurement, and a wide prior that keeps parameters within reason."""
    low = factor(log_params, t)
    z = jsl.solve_triangular(low, y, lower=True)
    return (0.5 * z @ z + jnp.sum(jnp.log(jnp.diag(low)))) / len(y) + 1e-3 * jnp.sum(log_params**2)


def foretell(log_params, t, y, at):
    """Mean and covariance of the process at times f32[m], given the measurements."""
    low = factor(log_params, t)
    across = jsl.solve_triangular(low, kernel(log_params, t, at), lower=True)
    mean = across.T @ jsl.solve_triangular(low, y, lower=True)
    return mean, kernel(log_params, at, at) - across.T @ across


def draw(path, t, y, at, mean, deviation, draws, starts, found):
    plt = plot()
    if plt is None:
        return
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.6), width_ratios=(2.4, 1), layout="constrained")
    left.fill_between(at, mean - 2 * deviation, mean + 2 * deviation, alpha=0.2, label="two standard deviations")
    left.plot(at, draws.T, color="tab:blue", linewidth=0.5, alpha=0.5)
    left.plot(at, truth(at), "k--", linewidth=1, label="what was measured, without noise")
    left.plot(at, mean, color="tab:blue", label="foretold")
    left.plot(t, y, "k.", markersize=5, label="measurements")
    left.axvspan(float(t.max()), float(at.max()), color="0.95", zorder=0)
    left.set(xlabel="time", title="measured, and foretold beyond (grey)")
    left.legend(loc="upper left", fontsize=8)
    right.scatter(starts, found, c="tab:blue")
    right.axhline(TRUE_PERIOD, color="k", linestyle="--", linewidth=1)
    right.set(xlabel="period at the start", ylabel="period found", title="each start, climbed at once")
    save(figure, path)


def main():
    args = options(__doc__, "gaussian_process.png")
    k_time, k_noise, k_draw = random.split(random.key(args.seed), 3)
    t = jnp.sort(random.uniform(k_time, (40 if args.short else 70,), maxval=7.0))
    y = truth(t) + NOISE * random.normal(k_noise, t.shape)

    starts = jnp.exp(jnp.linspace(jnp.log(0.8), jnp.log(4.0), 4 if args.short else 12))
    guesses = jnp.log(jnp.stack([jnp.array([1.0, 5.0, 1.0, p, 5.0, 0.3]) for p in starts]))
    rounds, show = (2, bar(2, "round")) if args.short else (10, bar(10, "round"))
    climb = jax.jit(jax.vmap(lambda x: minimize(cost, x, args=(t, y), method="BFGS", options={"maxiter": 8}).x))
    price = jax.jit(jax.vmap(lambda x: cost(x, t, y)))
    for n in range(1, rounds + 1):
        moved = climb(guesses)
        guesses = jnp.where(jnp.isfinite(price(moved))[:, None], moved, guesses)
        show(n, f"best log likelihood {-float(price(guesses).min()) * len(t):7.2f}")
    best = guesses[jnp.argmin(price(guesses))]
    print("; ".join(f"{name} {value:.3f}" for name, value in zip(NAMES, np.exp(best), strict=True)))

    at = jnp.linspace(0, 11, 300)
    mean, covariance = jax.jit(foretell)(best, t, y, at)
    deviation = jnp.sqrt(jnp.diag(covariance) + 1e-5)
    draws = random.multivariate_normal(k_draw, mean, covariance + 1e-4 * jnp.eye(len(at)), (5,), method="svd")
    inside = jnp.mean(jnp.abs(truth(at) - mean) < 3 * deviation)
    print(f"{inside:.0%} of the truth lies within three standard deviations, also where nothing was measured")
    draw(args.png, t, y, at, mean, deviation, np.asarray(draws), starts, np.exp(guesses[:, 3]))
    if abs(float(jnp.exp(best[3])) - TRUE_PERIOD) > 0.1 or inside < 0.9:
        sys.exit("the period should have been found")


if __name__ == "__main__":
    main()
