"""Flax nnx, Flax linen, Equinox, Optax and Orbax over eight devices, as their guides do it: parameters, optimiser states and batches in parts, a checkpoint restored to
another sharding.

How many devices there are is said before the library starts, so the programs run in a process of their own.
"""

import functools
import os
import pathlib
import tempfile

os.environ.setdefault("FERRAX_NUM_CPU_DEVICES", "8")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from flax import nnx
from flax.training import train_state
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from outcomes import Programs

X = np.linspace(-1, 1, 16 * 8, dtype=np.float32).reshape(16, 8)
Y = np.sin(3 * X.sum(1, keepdims=True)).astype(np.float32)


def mesh_of(*sizes, axes=("data", "model")):
    return jax.make_mesh(sizes, axes[: len(sizes)], axis_types=(AxisType.Auto,) * len(sizes))


def lies(tree):
    """Where each array of a tree lies: the specs, and the shapes of its parts."""
    return [f"{tuple(getattr(x.sharding, 'spec', ()))} {x.addressable_shards[0].data.shape} of {len(x.addressable_shards)}" for x in jax.tree.leaves(tree)]


# ---- Flax nnx: the guide "Scale up on multiple devices"


class DotReluDot(nnx.Module):
    def __init__(self, depth, rngs, sharded=True):
        init = nnx.initializers.lecun_normal()
        cut = lambda *names: nnx.with_partitioning(init, names) if sharded else init
        self.dot1 = nnx.Linear(depth, depth, kernel_init=cut(None, "model"), use_bias=False, rngs=rngs)
        self.w2 = nnx.Param(cut("model", None)(rngs.params(), (depth, depth)))

    def __call__(self, x):
        return jnp.dot(jax.nn.relu(self.dot1(x)), self.w2[...])


class MultiDotReluDot(nnx.Module):
    def __init__(self, depth, layers, rngs):
        self.layers = nnx.List([DotReluDot(depth, rngs) for _ in range(layers)])

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def nnx_model(mesh):
    @nnx.jit
    def create():
        model = MultiDotReluDot(8, 2, nnx.Rngs(0))
        state = nnx.state(model)
        nnx.update(model, jax.lax.with_sharding_constraint(state, nnx.get_named_sharding(state, mesh)))
        return model

    with jax.set_mesh(mesh):
        return create()


def nnx_training(steps=4):
    mesh = mesh_of(2, 4)
    model = nnx_model(mesh)
    with jax.set_mesh(mesh):
        optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    data = NamedSharding(mesh, P("data", None))
    x, y = jax.device_put(X, data), jax.device_put(np.repeat(Y, 8, 1), data)

    @nnx.jit
    def train_step(model, optimizer, x, y):
        loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
        optimizer.update(model, grads)
        return loss

    with jax.set_mesh(mesh):
        losses = [train_step(model, optimizer, x, y) for _ in range(steps)]
    return model, optimizer, losses


def nnx_programs(t):
    t("nnx specs", lambda: [str(x) for x in jax.tree.leaves(nnx.get_partition_spec(nnx.state(nnx_model(mesh_of(2, 4)))), is_leaf=lambda x: isinstance(x, P))])
    t("nnx parts", lambda: lies(nnx.state(nnx_model(mesh_of(2, 4)))))
    t("nnx losses", lambda: nnx_training()[2])
    t("nnx trained", lambda: jax.tree.leaves(nnx.state(nnx_training()[0], nnx.Param)))
    t("nnx trained parts", lambda: lies(nnx.state(nnx_training()[0], nnx.Param)))
    t("nnx optimizer", lambda: [x for x in jax.tree.leaves(nnx.state(nnx_training()[1])) if jnp.issubdtype(x.dtype, jnp.floating)])

    def evaluated():
        mesh = mesh_of(2, 4)
        model = nnx_model(mesh)
        graph, state = nnx.split(model)
        x = jax.device_put(X, NamedSharding(mesh, P("data")))
        return jax.jit(lambda s, x: nnx.merge(graph, s)(x))(state, x)

    t("nnx split and merged", evaluated)


# ---- Flax linen: the guide "Scale up Flax modules on multiple devices"


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        init = nn.initializers.lecun_normal()
        x = nn.relu(nn.Dense(16, kernel_init=nn.with_partitioning(init, (None, "model")))(x))
        return nn.Dense(1, kernel_init=nn.with_partitioning(init, ("model", None)))(x)


def linen_state(mesh):
    net, tx = Net(), optax.adamw(1e-2)

    def init(key, x):
        return train_state.TrainState.create(apply_fn=net.apply, params=net.init(key, x)["params"], tx=tx)

    place = lambda *s: NamedSharding(mesh, P(*s))
    x = jax.device_put(X, place("data", None))
    abstract = jax.eval_shape(init, jax.random.key(0), x)
    shardings = nn.get_sharding(abstract, mesh)
    state = jax.jit(init, in_shardings=(place(), x.sharding), out_shardings=shardings)(jax.random.key(0), x)
    return state, shardings, x, place


def linen_training(steps=4):
    state, shardings, x, place = linen_state(mesh_of(2, 4))
    y = jax.device_put(Y, place("data", None))

    @functools.partial(jax.jit, in_shardings=(shardings, x.sharding, y.sharding), out_shardings=(shardings, place()))
    def step(state, x, y):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((state.apply_fn({"params": p}, x) - y) ** 2))(state.params)
        return state.apply_gradients(grads=grads), loss

    losses = []
    for _ in range(steps):
        state, loss = step(state, x, y)
        losses.append(loss)
    return state, losses


def linen_programs(t):
    t("linen parts", lambda: lies(linen_state(mesh_of(2, 4))[0].params))
    t("linen optimizer parts", lambda: lies(linen_state(mesh_of(2, 4))[0].opt_state))
    t("linen losses", lambda: linen_training()[1])
    t("linen trained", lambda: linen_training()[0].params)
    t("linen trained parts", lambda: lies(linen_training()[0].params))


# ---- Equinox: the guide "Parallelism": data parallel, and with parameters in parts


def equinox_training(model_sharding, data_spec, mesh, steps=4):
    model = eqx.nn.MLP(8, 1, 16, 2, key=jax.random.key(1))
    optim = optax.adam(3e-3)
    state = optim.init(eqx.filter(model, eqx.is_array))
    data = NamedSharding(mesh, data_spec)

    @eqx.filter_jit(donate="all")
    def train_step(model, state, x, y):
        model, state = eqx.filter_shard((model, state), model_sharding)
        x, y = eqx.filter_shard((x, y), data)
        loss, grads = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        updates, state = optim.update(grads, state, model)
        model = eqx.apply_updates(model, updates)
        model, state = eqx.filter_shard((model, state), model_sharding)
        return model, state, loss

    model, state = eqx.filter_shard((model, state), model_sharding)
    losses = []
    for _ in range(steps):
        x, y = eqx.filter_shard((jnp.asarray(X), jnp.asarray(Y)), data)
        model, state, loss = train_step(model, state, x, y)
        losses.append(loss)
    return model, losses


def equinox_programs(t):
    mesh = mesh_of(8, axes=("batch",))
    whole = NamedSharding(mesh, P())
    t("equinox losses", lambda: equinox_training(whole, P("batch"), mesh)[1])
    t("equinox trained", lambda: eqx.filter(equinox_training(whole, P("batch"), mesh)[0], eqx.is_array))
    t("equinox parts", lambda: lies(eqx.filter(equinox_training(whole, P("batch"), mesh)[0], eqx.is_array)))

    def cut(x):
        return NamedSharding(mesh, P("batch") if x.ndim and x.shape[0] % 8 == 0 else P())

    def fully():
        model = eqx.nn.MLP(8, 1, 16, 2, key=jax.random.key(1))
        params, static = eqx.partition(model, eqx.is_array)
        params = jax.tree.map(lambda x: jax.device_put(x, cut(x)), params)
        x = jax.device_put(X, NamedSharding(mesh, P("batch")))
        grads = jax.jit(jax.grad(lambda p: (jax.vmap(eqx.combine(p, static))(x) ** 2).mean()), out_shardings=jax.tree.map(cut, params))(params)
        return grads, lies(grads)

    t("equinox fully sharded", fully)


# ---- Optax: states follow parameters


def optax_programs(t):
    mesh = mesh_of(2, 4)
    params = {"w": jax.device_put(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8), NamedSharding(mesh, P("data", "model"))), "b": jnp.zeros(8)}
    params["b"] = jax.device_put(params["b"], NamedSharding(mesh, P("model")))
    loss = lambda p: jnp.mean((jnp.tanh(X @ p["w"]) + p["b"] - 0.5) ** 2)
    rules = {
        "sgd": optax.sgd(0.1, momentum=0.9),
        "adamw": optax.adamw(1e-2),
        "clipped": optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-2)),
        "lamb": optax.lamb(1e-2),
        "accumulated": optax.MultiSteps(optax.sgd(0.1), 2),
        "lion": optax.lion(1e-3),
        "adafactor": optax.adafactor(1e-2, min_dim_size_to_factor=4),
        "scheduled": optax.adam(optax.cosine_decay_schedule(1e-2, 10)),
    }

    def trained(tx):
        p, state = params, jax.jit(tx.init)(params)

        @jax.jit
        def step(p, state):
            updates, state = tx.update(jax.grad(loss)(p), state, p)
            return optax.apply_updates(p, updates), state

        for _ in range(4):
            p, state = step(p, state)
        return p

    for name, tx in rules.items():
        t(f"optax {name}", lambda tx=tx: trained(tx))
        t(f"optax {name} parts", lambda tx=tx: lies(trained(tx)))
    t("optax states", lambda: lies(optax.adam(1e-2).init(params)[0].mu))


# ---- Orbax: saved in parts, restored to other meshes and specs


def orbax_programs(t):
    mesh = mesh_of(2, 4)
    tree = {
        "w": jax.device_put(np.arange(64, dtype=np.float32).reshape(8, 8), NamedSharding(mesh, P("data", "model"))),
        "b": jax.device_put(np.arange(16, dtype=np.int32), NamedSharding(mesh, P(("data", "model")))),
        "h": jax.device_put(jnp.arange(8, dtype=jnp.bfloat16), NamedSharding(mesh, P())),
    }

    def restored(place):
        path = pathlib.Path(tempfile.mkdtemp()) / "one"
        with ocp.StandardCheckpointer() as c:
            c.save(path, tree)
            c.wait_until_finished()
            abstract = {k: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place(k, x)) for k, x in tree.items()}
            out = c.restore(path, abstract)
        return out, lies(out)

    other = mesh_of(4, 2)
    line = mesh_of(8, axes=("line",))
    t("orbax as it was", lambda: restored(lambda k, x: x.sharding))
    t("orbax transposed mesh", lambda: restored(lambda k, x: NamedSharding(other, P("model") if x.ndim == 1 else P("model", "data"))))
    t("orbax on a line", lambda: restored(lambda k, x: NamedSharding(line, P("line"))))
    t("orbax whole", lambda: restored(lambda k, x: NamedSharding(line, P())))
    t("orbax columns", lambda: restored(lambda k, x: NamedSharding(line, P(None, "line") if x.ndim == 2 else P())))
    t("orbax one device", lambda: restored(lambda k, x: jax.sharding.SingleDeviceSharding(jax.devices()[3]))[0])

    def managed():
        folder = pathlib.Path(tempfile.mkdtemp())
        with ocp.CheckpointManager(folder, options=ocp.CheckpointManagerOptions(max_to_keep=2)) as m:
            for step in range(3):
                m.save(step, args=ocp.args.StandardSave({k: x + step for k, x in tree.items()}))
            m.wait_until_finished()
            abstract = {k: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(line, P("line"))) for k, x in tree.items()}
            out = m.restore(m.latest_step(), args=ocp.args.StandardRestore(abstract))
            return m.all_steps(), out, lies(out)

    t("orbax manager", managed)


def programs(t):
    nnx_programs(t)
    linen_programs(t)
    equinox_programs(t)
    optax_programs(t)
    orbax_programs(t)


PROGRAMS = Programs(programs, FERRAX_NUM_CPU_DEVICES="8", XLA_FLAGS="--xla_force_host_platform_device_count=8")

if __name__ == "__main__":
    PROGRAMS.print_all()
else:

    @pytest.mark.parametrize("name", PROGRAMS.cases())
    def test_sharded(name):
        PROGRAMS.check(name)
