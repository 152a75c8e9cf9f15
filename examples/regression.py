"""Bayesian regression with NUTS, in NumPyro and in BlackJAX.

A Poisson model explains the number of hired bicycles by the temperature and the day of the week; the data are simulated with known coefficients. The model is
written for NumPyro; BlackJAX samples the density that NumPyro makes of it. Both give the same posterior, which contains the true coefficients.

    python -m ferrax examples/regression.py --png regression.png
"""

import sys
import time

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from gallery import bar, options, plot, save
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import initialize_model

CAUSES = {"base": 3.0, "warmth": 0.5, "heat": -0.25, "weekend": -0.4}


def made_up(seed, days):
    """Temperatures, standardized; whether it was a weekend; rides."""
    rng = np.random.default_rng(seed)
    warmth, weekend = rng.normal(size=days), np.arange(days) % 7 >= 5
    rate = np.exp(CAUSES["base"] + CAUSES["warmth"] * warmth + CAUSES["heat"] * warmth**2 + CAUSES["weekend"] * weekend)
    return warmth.astype(np.float32), weekend.astype(np.float32), rng.poisson(rate).astype(np.int32)


def model(warmth, weekend, rides=None):
    base = numpyro.sample("base", dist.Normal(0, 5))
    slope = numpyro.sample("warmth", dist.Normal(0, 1))
    bend = numpyro.sample("heat", dist.Normal(0, 1))
    off = numpyro.sample("weekend", dist.Normal(0, 1))
    rate = jnp.exp(base + slope * warmth + bend * warmth**2 + off * weekend)
    numpyro.sample("rides", dist.Poisson(rate), obs=rides)


def with_numpyro(data, key, chains, warmup, draws):
    mcmc = MCMC(NUTS(model), num_warmup=warmup, num_samples=draws, num_chains=chains, chain_method="vectorized", progress_bar=False)
    mcmc.run(key, *data)
    return mcmc.get_samples(group_by_chain=True)


def with_blackjax(data, key, chains, warmup, draws):
    k_start, k_tune, k_draw = jax.random.split(key, 3)
    info = initialize_model(k_start, model, model_args=data)
    density = lambda z: -info.potential_fn(z)
    tuned, show = blackjax.window_adaptation(blackjax.nuts, density), bar(10, "blackjax")

    @jax.jit
    def tune(key):
        (state, parameters), _ = tuned.run(key, info.param_info.z, warmup)
        return state, parameters

    states, parameters = jax.vmap(tune)(jax.random.split(k_tune, chains))

    @jax.jit
    def tenth(states, keys):
        def one(state, parameters, key):
            kernel = blackjax.nuts(density, **parameters)
            return jax.lax.scan(lambda s, k: (lambda s: (s, s.position))(kernel.step(k, s)[0]), state, jax.random.split(key, draws // 10))

        return jax.vmap(one)(states, parameters, keys)

    drawn = []
    for n in range(1, 11):
        states, positions = tenth(states, jax.random.split(jax.random.fold_in(k_draw, n), chains))
        drawn.append(positions)
        show(n, f"{n * draws // 10} draws of each of {chains} chains")
    return {name: jnp.concatenate([d[name] for d in drawn], 1) for name in CAUSES}


def draw(path, data, samples):
    plt = plot()
    if plt is None:
        return
    figure = plt.figure(figsize=(14, 7), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1, 1.4))
    axes = upper.subplots(1, 4)
    for axis, (name, cause) in zip(axes, CAUSES.items(), strict=True):
        for who, (sampled, color) in {"NumPyro": (samples[0], "tab:blue"), "BlackJAX": (samples[1], "tab:orange")}.items():
            axis.hist(np.ravel(sampled[name]), 50, density=True, histtype="step", color=color, label=who)
        axis.axvline(cause, color="k", linestyle="--", linewidth=1, label="the cause")
        axis.set(title=name, yticks=[])
        axis.locator_params(axis="x", nbins=4)
    axes[0].legend(fontsize=8)
    wide = lower.subplots()
    warmth, weekend, rides = data
    at = np.linspace(-3, 3, 80)
    for flag, color, name in ((0, "tab:green", "working day"), (1, "tab:purple", "weekend")):
        s = {k: np.ravel(v)[::20, None] for k, v in samples[0].items()}
        rate = np.exp(s["base"] + s["warmth"] * at + s["heat"] * at**2 + s["weekend"] * flag)
        low, middle, high = np.percentile(rate, [3, 50, 97], axis=0)
        wide.fill_between(at, low, high, color=color, alpha=0.25)
        wide.plot(at, middle, color=color, label=name)
        wide.plot(warmth[weekend == flag], rides[weekend == flag], ".", color=color, markersize=4)
    wide.set(xlabel="temperature, standardized", ylabel="rides", title="what the posterior says, 94 % of it")
    wide.legend()
    save(figure, path)


def main():
    args = options(__doc__, "regression.png")
    chains, warmup, draws = (2, 150, 150) if args.short else (4, 500, 1000)
    data = made_up(args.seed, 200)
    started, both = time.perf_counter(), []
    for sampler in (with_numpyro, with_blackjax):
        both.append(jax.tree.map(np.asarray, sampler(data, jax.random.key(args.seed), chains, warmup, draws)))
        print(f"{sampler.__name__}: {chains} chains of {draws} draws, {time.perf_counter() - started:.1f} s with compiling")
        started = time.perf_counter()
    ours = True
    for name, cause in CAUSES.items():
        means, spread = [float(s[name].mean()) for s in both], float(both[0][name].std())
        fit = abs(means[0] - means[1]) < (0.6 if args.short else 0.2) * spread and abs(means[0] - cause) < 4 * spread
        ours &= fit
        print(f"{name:8s} caused by {cause:6.3f}; NumPyro {means[0]:6.3f}, BlackJAX {means[1]:6.3f}, each give or take {spread:.3f}")
    draw(args.png, data, both)
    if not ours:
        sys.exit("the samplers should agree with one another and with the causes")


if __name__ == "__main__":
    main()
