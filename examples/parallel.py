"""One transformer on many devices: data, tensor, sequence and fully sharded parallelism.

The mesh has four axes. `data` and `full` divide the batch, `seq` divides sequences, `tensor` divides heads and hidden units, and `full` also divides the parameters
with their optimiser states. One table of specs says which axis divides what. An axis of size one has no effect, so the same function is trained with each kind of parallelism,
or with several of them together, and takes the same steps.

    python -m ferrax examples/parallel.py
    FERRAX_NUM_CPU_DEVICES=8 python -m ferrax examples/parallel.py --mesh data=2,full=2,tensor=2
    mpirun -n 4 python -m ferrax examples/parallel.py --mesh full=4 --folder run

With `--folder` each process writes its own parts of a checkpoint every few steps; a run that finds a checkpoint continues from it, on any mesh.
"""

import json
import math
import os
import pathlib
import re
import shutil
import sys
import time
from pydoc_data.topics import topics

import jax
import jax.numpy as jnp
import numpy as np
from gallery import bar, options, plot, save
from jax import lax, nn, random
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

CONTEXT, WIDTH, HEADS, LAYERS, BATCH, PARTS, RATE = 64, 96, 8, 3, 48, 2, 3e-3
AXES = ("data", "full", "seq", "tensor")
TEXT = re.sub(" {2,}", " ", "\n".join(topics[name] for name in sorted(topics)).encode("ascii", "replace").decode())
LETTERS = sorted(set(TEXT))
VOCABULARY = -(-len(LETTERS) // 32) * 32  # so that many devices divide it

# How each parameter is cut. Those of blocks have a leading axis, over which the network scans.
SPECS = {
    "letters": P("full", "tensor"),
    "places": P(None, "full"),
    "qkv": P(None, "full", None, "tensor"),
    "out": P(None, "tensor", None, "full"),
    "up": P(None, "full", "tensor"),
    "down": P(None, "tensor", "full"),
    "norms": P(),
    "norm": P(),
}
BATCHES = P(None, ("data", "full"))  # (part, sequence of the part, place)
STREAM = P(("data", "full"), "seq")  # (sequence, place, unit)


def init(key):
    keys = random.split(key, 6)
    head = WIDTH // HEADS

    def weights(k, *shape, inputs):
        return random.normal(k, shape) * inputs**-0.5

    return {
        "letters": random.normal(keys[0], (VOCABULARY, WIDTH)) * 0.1,
        "places": random.normal(keys[1], (CONTEXT, WIDTH)) * 0.1,
        "qkv": weights(keys[2], LAYERS, WIDTH, 3, HEADS, head, inputs=WIDTH),
        "out": weights(keys[3], LAYERS, HEADS, head, WIDTH, inputs=WIDTH) / LAYERS**0.5,
        "up": weights(keys[4], LAYERS, WIDTH, 4 * WIDTH, inputs=WIDTH),
        "down": weights(keys[5], LAYERS, 4 * WIDTH, WIDTH, inputs=4 * WIDTH),
        "norms": jnp.ones((LAYERS, 2, WIDTH)),
        "norm": jnp.ones(WIDTH),
    }


def standardized(x, scale):
    return nn.standardize(x) * scale


def loss(params, codes, cut):
    """Mean cross entropy, in bits a letter, over a batch i32[B, CONTEXT + 1]; `cut` says how the stream of activations is cut."""

    def block(x, p):
        qkv = jnp.einsum("btw,wchd->cbthd", standardized(x, p["norms"][0]), p["qkv"])
        scores = jnp.einsum("bqhd,bkhd->bhqk", qkv[0], qkv[1]) * (WIDTH // HEADS) ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((CONTEXT, CONTEXT), bool)), scores, -jnp.inf)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), qkv[2])
        x = cut(x + jnp.einsum("bthd,hdw->btw", mixed, p["out"]))
        return cut(x + nn.gelu(standardized(x, p["norms"][1]) @ p["up"]) @ p["down"]), None

    x = cut(params["letters"][codes[:, :-1]] + params["places"])
    x, _ = lax.scan(block, x, {k: params[k] for k in ("qkv", "out", "up", "down", "norms")})
    log_p = nn.log_softmax(standardized(x, params["norm"]) @ params["letters"].T)
    return -jnp.mean(jnp.take_along_axis(log_p, codes[:, 1:, None], 2)) / jnp.log(2.0)


def make_step(mesh):
    """A step of Adam over the gradients of all parts of a batch."""
    shardings = {name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}
    whole = NamedSharding(mesh, P())
    cut = lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, STREAM))
    kept = lambda tree: {name: lax.with_sharding_constraint(x, shardings[name]) for name, x in tree.items()}

    def step(state, batch):
        params, m, v, n = state

        def part(total, codes):
            value, grads = jax.value_and_grad(loss)(params, codes, cut)
            return jax.tree.map(jnp.add, total, (value, kept(grads))), None

        zeros = jax.tree.map(jnp.zeros_like, params)
        (value, grads), _ = lax.scan(part, (jnp.zeros(()), zeros), batch)
        value, grads = jax.tree.map(lambda x: x / PARTS, (value, grads))
        n = n + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, grads)
        rate = RATE * jnp.minimum(1, n / 50) * jnp.sqrt(1 - 0.99**n) / (1 - 0.9**n)
        return (jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v), m, v, n), value

    states = (shardings, shardings, shardings, whole)
    return jax.jit(step, in_shardings=(states, NamedSharding(mesh, BATCHES)), out_shardings=(states, whole), donate_argnums=0), states


def batch_of(step, seed, mesh):
    """The batch of a step, the same whatever came before: each process reads its own part of it."""
    starts = np.random.default_rng((seed, step)).integers(0, len(CODES) - CONTEXT - 1, (PARTS, BATCH // PARTS))

    def part(index):
        return CODES[starts[index[:2]][..., None] + np.arange(CONTEXT + 1)][..., index[2]]

    return jax.make_array_from_callback((*starts.shape, CONTEXT + 1), NamedSharding(mesh, BATCHES), part)


CODES = np.array([LETTERS.index(c) for c in TEXT], np.int32)


# ---- checkpoints: a folder for each step, in which each process writes the parts that it holds and others do not


def names_of(tree):
    return [(re.sub(r"\W+", ".", jax.tree_util.keystr(path)).strip("."), x) for path, x in jax.tree_util.tree_leaves_with_path(tree)]


def write(folder, step, state):
    """Writes a checkpoint: it counts once its folder has its name, which it gets when all processes have written."""
    place = folder / f"step-{step}.unfinished"
    place.mkdir(parents=True, exist_ok=True)
    parts, data = [], {}
    for name, x in names_of(state):
        for shard in x.addressable_shards:
            if shard.replica_id == 0:
                ranges = [s.indices(n)[:2] for s, n in zip(shard.index, x.shape, strict=True)]
                parts.append({"name": name, "at": ranges, "key": f"{name}.{shard.device.id}"})
                data[parts[-1]["key"]] = np.asarray(shard.data)
    process = jax.process_index()
    np.savez(place / f"parts-{process}.npz", **data)
    (place / f"parts-{process}.json").write_text(json.dumps(parts))
    multihost_utils.sync_global_devices(f"step {step} is written")
    if process == 0:
        place.rename(folder / f"step-{step}")
        for old in sorted(checkpoints(folder))[:-2]:
            shutil.rmtree(folder / f"step-{old}")


def checkpoints(folder):
    """The steps of the checkpoints that are complete."""
    return [int(found[1]) for p in folder.glob("step-*") if (found := re.fullmatch(r"step-(\d+)", p.name))]


def read(folder, step, like, shardings):
    """A checkpoint on any mesh: each part is put together from those that were written."""
    place = folder / f"step-{step}"
    files = [(json.loads(p.read_text()), np.load(p.with_suffix(".npz"))) for p in place.glob("parts-*.json")]

    def leaf(name, aval, sharding):
        def part(index):
            bounds = [s.indices(n)[:2] for s, n in zip(index, aval.shape, strict=True)]
            out = np.empty([stop - start for start, stop in bounds], aval.dtype)
            for parts, data in files:
                for p in (p for p in parts if p["name"] == name):
                    common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(bounds, p["at"], strict=True)]
                    if all(a < b for a, b in common):
                        to = tuple(slice(a - start, b - start) for (a, b), (start, _) in zip(common, bounds, strict=True))
                        source = tuple(slice(a - start, b - start) for (a, b), (start, _) in zip(common, p["at"], strict=True))
                        out[to] = data[p["key"]][source]
            return out

        return jax.make_array_from_callback(aval.shape, sharding, part)

    leaves = [leaf(name, aval, s) for (name, aval), s in zip(names_of(like), jax.tree.leaves(shardings), strict=True)]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


# ---- the run


def mesh_of(text):
    """A mesh of all devices: `full=2,tensor=2`, the rest of the devices on `data`."""
    sizes = {name: int(n) for name, n in (word.split("=") for word in text.split(",") if word)}
    sizes.setdefault("data", len(jax.devices()) // math.prod(sizes.values()))
    return jax.make_mesh([sizes.get(a, 1) for a in AXES], AXES, axis_types=(AxisType.Auto,) * len(AXES))


def report(step, compiled, mesh):
    """How the step is cut, and what a device reads of others' in it, where the library says so."""
    costs = compiled.cost_analysis()
    moved = f"; a device reads {costs['bytes communicated'] / 1e6:.2f} MB of others' a step" if "bytes communicated" in costs else ""
    cut = ", ".join(f"{name} {n}" for name, n in mesh.shape.items() if n > 1) or "one device"
    print(f"{len(jax.devices())} devices, {jax.process_count()} processes: {cut}{moved}")


def main():
    args = options(__doc__, "parallel.png", mesh="", folder="", steps=0, every=10)
    if launched():
        jax.distributed.initialize()
    steps = args.steps or (12 if args.short else 400)
    mesh = mesh_of(args.mesh)
    step, shardings = make_step(mesh)
    start = lambda: (params := init(random.key(args.seed)), jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params), jnp.zeros(()))
    folder = pathlib.Path(args.folder) if args.folder else None
    done = max(checkpoints(folder), default=0) if folder else 0
    if done:
        state = read(folder, done, jax.eval_shape(start), shardings)
    else:
        state = jax.jit(start, out_shardings=shardings)()

    first = jax.process_index() == 0
    show = bar(steps) if first else lambda *_: None
    if first and done:
        print(f"goes on from step {done}")
    batch = batch_of(done, args.seed, mesh)
    compiled = step.lower(state, batch).compile()
    if first:
        report(step, compiled, mesh)
    history, begun = [], time.perf_counter()
    for n in range(done, steps):
        state, value = step(state, batch)
        batch = batch_of(n + 1, args.seed, mesh)
        history.append(float(value))
        letters = (n + 1 - done) * BATCH * CONTEXT / (time.perf_counter() - begun)
        show(n + 1, f"{history[-1]:.4f} bits a letter, {letters:,.0f} letters a second")
        if folder and (n + 1) % args.every == 0:
            write(folder, n + 1, state)
            if first:
                print(f"checkpoint {n + 1}", flush=True)
    if first:
        print(f"after {steps} steps: {history[-1]:.6f} bits a letter" if history else "nothing left to do")
        draw(args.png, done, history)


def launched():
    """Whether a launcher started several processes."""
    return any(int(os.environ.get(name, 1)) > 1 for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"))


def draw(path, done, history):
    plt = plot()
    if plt is None or not history:
        return
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    axes.plot(range(done + 1, done + 1 + len(history)), history, linewidth=0.9)
    axes.set(xlabel="step", ylabel="bits a letter", title="what the next letter costs, the same on every mesh")
    save(figure, path)


if __name__ == "__main__":
    sys.exit(main())
