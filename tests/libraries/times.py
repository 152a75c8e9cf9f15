"""How long a program of each library takes, here and on JAX, and the table of docs/libraries.md.

    python tests/libraries/times.py optax                      # in this environment: seconds to the first result, and of a call after that
    python tests/libraries/times.py --table PYTHON JAXS_PYTHON # both, library by library in turns; writes the table

Each measurement is a process of its own. The first result counts from the start of `import jax`: imports, tracing, compiling, running. A call after
that is the median of those that fit into half a second. The least of three processes stands in the table, as others use the machine too.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

from page import versions

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "libraries.md"
HEAD = "| library | version | first result, ms | on JAX | a call after that, us | on JAX |\n|---|---|---|---|---|---|\n"


def layers(jax, jnp, *sizes):
    """The parameters of a perceptron, and the function that they are for."""
    keys = jax.random.split(jax.random.key(0), len(sizes))
    params = [(jax.random.normal(k, (m, n)) * 0.1, jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:], strict=False)]

    def apply(params, x):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = params[-1]
        return x @ w + b

    return params, apply


def batch(jax):
    key = jax.random.key(1)
    return jax.random.normal(key, (64, 16)), jax.random.normal(key, (64, 4))


def optax(jax, jnp):
    """A step of clipped AdamW with a schedule."""
    import optax

    params, apply = layers(jax, jnp, 16, 64, 64, 4)
    how = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-3, 10, 1000)))

    @jax.jit
    def step(params, state, x, y):
        grads = jax.grad(lambda p: optax.squared_error(apply(p, x), y).mean())(params)
        updates, state = how.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    return step, (params, how.init(params), *batch(jax))


def flax_linen(jax, jnp):
    """A step of a convolutional network with batch normalization and a TrainState."""
    import optax
    from flax import linen as nn
    from flax.training import train_state

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Conv(8, (3, 3))(x)))
            return nn.Dense(10)(nn.avg_pool(x, (2, 2), (2, 2)).reshape(len(x), -1))

    x, y = jnp.ones((16, 8, 8, 1)), jnp.zeros(16, int)
    variables = Net().init(jax.random.key(0), x)
    state = train_state.TrainState.create(apply_fn=Net().apply, params=variables["params"], tx=optax.sgd(0.1, 0.9))

    @jax.jit
    def step(state, stats, x, y):
        def loss(p):
            out, new = state.apply_fn({"params": p, "batch_stats": stats}, x, mutable=["batch_stats"])
            return optax.softmax_cross_entropy_with_integer_labels(out, y).mean(), new

        grads, new = jax.grad(loss, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads), new["batch_stats"]

    return step, (state, variables["batch_stats"], x, y)


def flax_nnx(jax, jnp):
    """A step of a perceptron with dropout and an Optimizer."""
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.a, self.b = nnx.Linear(16, 64, rngs=rngs), nnx.Linear(64, 4, rngs=rngs)
            self.drop = nnx.Dropout(0.1, rngs=rngs)

        def __call__(self, x):
            return self.b(self.drop(nnx.relu(self.a(x))))

    net = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(net, optimizer, x, y):
        loss, grads = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(net)
        optimizer.update(net, grads)
        return loss

    return step, (net, optimizer, *batch(jax))


def equinox(jax, jnp):
    """A step of a perceptron with Optax."""
    import equinox as eqx
    import optax

    net, how = eqx.nn.MLP(16, 4, 64, 2, key=jax.random.key(0)), optax.adam(1e-3)

    @eqx.filter_jit
    def step(net, state, x, y):
        grads = eqx.filter_grad(lambda m: ((jax.vmap(m)(x) - y) ** 2).mean())(net)
        updates, state = how.update(grads, state, net)
        return eqx.apply_updates(net, updates), state

    return step, (net, how.init(eqx.filter(net, eqx.is_array)), *batch(jax))


def lineax(jax, jnp):
    """The gradient through a solution by GMRES, of 40 unknowns."""
    import lineax as lx

    a = jax.random.normal(jax.random.key(0), (40, 40)) * 0.05 + jnp.eye(40)
    solve = lambda a, b: lx.linear_solve(lx.MatrixLinearOperator(a), b, lx.GMRES(1e-5, 1e-5)).value
    return jax.jit(jax.grad(lambda a, b: (solve(a, b) ** 2).sum())), (a, jnp.ones(40))


def optimistix(jax, jnp):
    """A fit by Levenberg and Marquardt's method."""
    import optimistix as optx

    t = jnp.linspace(0, 1, 30)
    fit = lambda y: optx.least_squares(lambda p, _: p[0] * jnp.exp(-p[1] * t) - y, optx.LevenbergMarquardt(1e-5, 1e-5), jnp.array([1.0, 1.0])).value
    return jax.jit(fit), (2 * jnp.exp(-3 * t),)


def diffrax(jax, jnp):
    """The gradient through an adaptive solution of Lotka and Volterra's equations."""
    import diffrax as dfx

    def field(t, y, p):
        return jnp.array([p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]])

    def last(p):
        how = dfx.PIDController(rtol=1e-4, atol=1e-4)
        return dfx.diffeqsolve(dfx.ODETerm(field), dfx.Tsit5(), 0.0, 5.0, 0.1, jnp.array([2.0, 1.0]), p, stepsize_controller=how).ys.sum()

    return jax.jit(jax.value_and_grad(last)), (jnp.array([1.0, 0.5, 1.0, 0.5]),)


def numpyro(jax, jnp):
    """A hundred draws of NUTS from a linear regression."""
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    def model(x, y):
        a, b, s = (numpyro.sample(n, d) for n, d in (("a", dist.Normal(0, 5)), ("b", dist.Normal(0, 5)), ("s", dist.HalfNormal(1))))
        numpyro.sample("y", dist.Normal(a + b * x, s), obs=y)

    x = jnp.linspace(-1, 1, 50)
    chain = MCMC(NUTS(model), num_warmup=100, num_samples=100, progress_bar=False)

    def draw(x, y):
        chain.run(jax.random.key(0), x, y)
        return chain.get_samples()

    return draw, (x, 1 + 2 * x)


def distrax(jax, jnp):
    """The gradient of a mixture's log probability under a chain of bijectors."""
    import distrax as dx

    def loss(p, x):
        base = dx.MixtureSameFamily(dx.Categorical(logits=p["w"]), dx.Normal(p["m"], jnp.exp(p["s"])))
        return -dx.Transformed(base, dx.Chain([dx.Tanh(), dx.ScalarAffine(0.1, 0.5)])).log_prob(x).mean()

    p = {"w": jnp.zeros(3), "m": jnp.array([-1.0, 0.0, 1.0]), "s": jnp.zeros(3)}
    return jax.jit(jax.value_and_grad(loss)), (p, jnp.linspace(-0.9, 0.9, 64))


def haiku(jax, jnp):
    """A step of a perceptron with dropout."""
    import haiku as hk

    net = hk.transform(lambda x: hk.nets.MLP([64, 64, 4])(x, dropout_rate=0.1, rng=hk.next_rng_key()))
    x, y = batch(jax)
    params = net.init(jax.random.PRNGKey(0), x)

    @jax.jit
    def step(params, key, x, y):
        grads = jax.grad(lambda p: ((net.apply(p, key, x) - y) ** 2).mean())(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return step, (params, jax.random.PRNGKey(1), x, y)


def blackjax(jax, jnp):
    """A hundred steps of NUTS in one program."""
    import blackjax

    kernel = blackjax.nuts(lambda x: -0.5 * jnp.sum((x / jnp.array([1.0, 3.0])) ** 2), 0.5, jnp.ones(2))
    step = lambda state, key: (lambda s: (s, s.position))(kernel.step(key, state)[0])
    return jax.jit(lambda key, x: jax.lax.scan(step, kernel.init(x), jax.random.split(key, 100))[1]), (jax.random.key(0), jnp.ones(2))


def chex(jax, jnp):
    """A step on a dataclass with checks of shapes, and one of values (`chexify`)."""
    import chex

    @chex.dataclass
    class State:
        w: chex.Array
        n: chex.Array

    def step(state, x):
        chex.assert_rank([state.w, x], [2, 2])
        chex.assert_tree_all_finite(state)
        return State(w=state.w + x.T @ jnp.tanh(x @ state.w), n=state.n + 1)

    return chex.chexify(jax.jit(step), async_check=False), (State(w=jnp.ones((16, 8)) * 0.01, n=jnp.zeros((), int)), jnp.ones((32, 16)))


def jaxtyping(jax, jnp):
    """A jitted function whose annotations are checked while it is traced."""
    from beartype import beartype
    from jaxtyping import Array, Float, jaxtyped

    @jaxtyped(typechecker=beartype)
    def attend(q: Float[Array, "n d"], k: Float[Array, "m d"], v: Float[Array, "m e"]) -> Float[Array, "n e"]:
        return jax.nn.softmax(q @ k.T / 4) @ v

    return jax.jit(attend), (jnp.ones((32, 16)), jnp.ones((48, 16)), jnp.ones((48, 8)))


def einops(jax, jnp):
    """Attention in several heads."""
    from einops import einsum, rearrange

    def attend(x, w):
        q, k, v = (rearrange(x @ w[i], "b n (h d) -> b h n d", h=4) for i in range(3))
        return rearrange(einsum(jax.nn.softmax(einsum(q, k, "b h i d, b h j d -> b h i j")), v, "b h i j, b h j d -> b h i d"), "b h n d -> b n (h d)")

    return jax.jit(attend), (jnp.ones((4, 32, 32)), jnp.ones((3, 32, 32)) * 0.1)


def jraph(jax, jnp):
    """A graph network."""
    import jraph
    import numpy as np

    rng = np.random.RandomState(0)
    edges = rng.randint(0, 30, (2, 90))
    graph = jraph.GraphsTuple(
        nodes=jnp.ones((30, 8)), edges=jnp.ones((90, 4)), senders=jnp.asarray(edges[0]), receivers=jnp.asarray(edges[1]),
        n_node=jnp.array([30]), n_edge=jnp.array([90]), globals=jnp.ones((1, 2)),
    )  # fmt: skip
    take = lambda *parts: jnp.tanh(jnp.concatenate(parts, -1))
    net = jraph.GraphNetwork(lambda e, s, r, g: take(e, s, r, g)[:, :4], lambda n, s, r, g: take(n, s, r, g)[:, :8], lambda n, e, g: take(n, e, g)[:, :2])
    return jax.jit(net), (graph,)


LIBRARIES = {
    "optax": optax, "flax_linen": flax_linen, "flax_nnx": flax_nnx, "equinox": equinox, "lineax": lineax, "optimistix": optimistix, "diffrax": diffrax,
    "numpyro": numpyro, "distrax": distrax, "haiku": haiku, "blackjax": blackjax, "chex": chex, "jaxtyping": jaxtyping, "einops": einops, "jraph": jraph,
}  # fmt: skip
DISTRIBUTION = {"flax_linen": "flax", "flax_nnx": "flax", "haiku": "dm-haiku"}
TITLE = {
    "flax_linen": "Flax, linen",
    "flax_nnx": "Flax, nnx",
    "blackjax": "BlackJAX",
    "numpyro": "NumPyro",
    "jaxtyping": "jaxtyping",
    "einops": "einops",
    "jraph": "jraph",
}


def measured(name):
    """Seconds to the first result of a library's program, and of a call after that."""
    start = time.perf_counter()
    import jax
    import jax.numpy as jnp

    step, args = LIBRARIES[name](jax, jnp)
    jax.block_until_ready(step(*args))
    first, calls = time.perf_counter() - start, []
    end = time.perf_counter() + 0.5
    while not calls or time.perf_counter() < end:
        begin = time.perf_counter()
        jax.block_until_ready(step(*args))
        calls.append(time.perf_counter() - begin)
    return {"first": first, "steady": statistics.median(calls)}


def child(python, *args):
    """What this file prints when it is run so."""
    done = subprocess.run([python, __file__, *args], capture_output=True, text=True, cwd=HERE)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def row(name, ours, theirs):
    """A line of the table."""
    version = versions()[DISTRIBUTION.get(name, name)]
    runs = [(child(ours, name), child(theirs, name)) for _ in range(3)]
    least = lambda i, what: min(r[i][what] for r in runs)
    times = [f"{least(i, 'first') * 1e3:.0f}" for i in (0, 1)] + [f"{least(i, 'steady') * 1e6:.0f}" for i in (0, 1)]
    return f"| {TITLE.get(name, name.capitalize())} | {version} | {' | '.join(times)} |\n"


def main():
    if sys.argv[1] == "--table":
        rows = ""
        for name in LIBRARIES:
            rows += row(name, *sys.argv[2:4])
            print(rows.splitlines()[-1], flush=True)
        text = PAGE.read_text()
        before, after = text.split("<!-- times.py -->\n")[::2]
        PAGE.write_text(f"{before}<!-- times.py -->\n{HEAD}{rows}<!-- times.py -->\n{after}")
    else:
        print(json.dumps(measured(sys.argv[1])))


if __name__ == "__main__":
    main()
