"""Bytes and messages of a training step over many devices: counted on those there are, by formula beyond; the tables and the picture of docs/scale.md.

    python benches/scale.py                  # prints both tables
    python benches/scale.py --write          # into docs/scale.md, with its picture
    mpirun -n 4 python benches/scale.py --count data,full,tensor,seq     # counts on the devices of this run

The network is L blocks of attention and a hidden layer, of N bytes of parameters, whose stream of activations has A bytes. Invariant: what is counted equals the formula; a test
asks for it (tests/sharding/test_scale.py).
"""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
WIDTH, HEADS, BATCH, CONTEXT, LAYERS = 128, 16, 16, 64, 2
TENSORS = 4  # parameters of a block
KINDS = ("data", "full", "tensor", "seq")
NAMES = {"data": "data", "full": "fully sharded", "tensor": "tensor", "seq": "sequence"}

# What a device reads of others in a step, in all-reduces, and in all-gathers and reduce-scatters: of N, of A, and how often in a block.
#         all-reduced (N, A L), gathered or scattered (N, A L), all-reduces and others in a block
TERMS = {
    "data": ((1, 0), (0, 0), (TENSORS, 0)),
    "full": ((0, 0), (3, 0), (0, 3 * TENSORS)),
    "tensor": ((0, 4), (0, 0), (4, 0)),
    "seq": ((1, 0), (0, 6), (TENSORS, 6)),
}


def volumes(kind, n, a, layers):
    """Bytes that are all-reduced in a step, and bytes that are gathered or scattered."""
    reduced, gathered, _ = TERMS[kind]
    return reduced[0] * n + reduced[1] * a * layers, gathered[0] * n + gathered[1] * a * layers


def moved(kind, p, n, a, layers):
    """(bytes, messages) of a device in a step over p devices, as this library sends them: directly, each to each."""
    reduced, gathered = volumes(kind, n, a, layers)
    _, _, (reduces, gathers) = TERMS[kind]
    return (2 * reduced + gathered) * (p - 1) / p, layers * (2 * reduces + gathers) * (p - 1)


def seconds(kind, p, n, a, layers, latency, rate, shape):
    """What a step's messages take by the model of latency and rate: around a ring, or along a tree (recursive halving and doubling)."""
    reduced, gathered = volumes(kind, n, a, layers)
    _, _, (reduces, gathers) = TERMS[kind]
    rounds = {"ring": p - 1, "tree": math.ceil(math.log2(p))}[shape]
    return layers * (2 * reduces + gathers) * rounds * latency + (2 * reduced + gathered) * (p - 1) / p / rate


# ---- counting


def step_of(jax, kind, mesh):
    """A step of gradient descent that is cut in this way, and its arguments on the mesh."""
    import numpy as np
    from ferrax import lax, nn, numpy as jnp
    from ferrax.sharding import NamedSharding, PartitionSpec as P

    place = lambda *spec: NamedSharding(mesh, P(*spec))
    whole = {name: place() for name in ("qkv", "out", "up", "down")}
    places, stream = {
        "data": (whole, place("x")),
        "full": ({"qkv": place(None, "x"), "out": place(None, None, None, "x"), "up": place(None, "x"), "down": place(None, None, "x")}, place("x")),
        "tensor": ({"qkv": place(None, None, None, "x"), "out": place(None, "x"), "up": place(None, None, "x"), "down": place(None, "x")}, place()),
        "seq": (whole, place(None, "x")),
    }[kind]
    cut = lambda x: lax.with_sharding_constraint(x, stream)

    def block(x, p):
        qkv = jnp.einsum("btw,wchd->cbthd", x, p["qkv"])
        scores = nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", qkv[0], qkv[1]))
        x = cut(x + jnp.einsum("bthd,hdw->btw", jnp.einsum("bhqk,bkhd->bqhd", scores, qkv[2]), p["out"]))
        return cut(x + nn.gelu(x @ p["up"]) @ p["down"]), None

    def step(w, x):
        grads = jax.grad(lambda w: (lax.scan(block, x, w)[0] ** 2).mean())(w)
        return jax.tree.map(lambda p, g: p - 0.1 * g, w, grads)

    head = WIDTH // HEADS
    shapes = {"qkv": (WIDTH, 3, HEADS, head), "out": (HEADS, head, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    w = {name: jax.device_put(np.full((LAYERS, *shape), 0.01, np.float32), places[name]) for name, shape in shapes.items()}
    x = jax.device_put(np.ones((BATCH, CONTEXT, WIDTH), np.float32), stream)
    return jax.jit(step, in_shardings=(places, stream), out_shardings=places), w, x


def sizes():
    """Bytes of parameters and of the stream."""
    return 4 * LAYERS * 12 * WIDTH * WIDTH, 4 * BATCH * CONTEXT * WIDTH


def counted(jax, kinds, devices=None):
    """For each kind: devices, the (bytes, messages) that the plan says of one, and those that this process's devices counted in a step."""
    import numpy as np
    from ferrax.sharding import AxisType, Mesh

    devices = jax.devices() if devices is None else devices
    mesh, out = Mesh(np.array(devices), ("x",), axis_types=(AxisType.Auto,)), {}
    for kind in kinds:
        step, w, x = step_of(jax, kind, mesh)
        compiled = step.lower(w, x).compile()
        jax.block_until_ready(compiled(w, x))
        costs = compiled.cost_analysis()
        out[kind] = len(devices), (costs["bytes communicated"], costs["messages"]), compiled._communicated()
    return out


def count(kinds):
    """Counts on the devices of this run, and prints what those of all processes counted."""
    import ferrax as jax
    from ferrax.experimental.multihost_utils import process_allgather

    jax.distributed.initialize()
    found = counted(jax, kinds)
    total = {kind: process_allgather(list(mine)) for kind, (_, _, mine) in found.items()}
    if jax.process_index() == 0:
        print(json.dumps({kind: [p, planned, [float(x.sum()) for x in total[kind]]] for kind, (p, planned, _) in found.items()}))


def elsewhere(p):
    """What a process with p devices counts."""
    env = {**os.environ, "FERRAX_NUM_CPU_DEVICES": str(p)}
    done = subprocess.run([sys.executable, __file__, "--count", ",".join(KINDS)], env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# ---- docs/scale.md

MODEL = {"width": 4096, "layers": 32, "context": 4096, "batch": 256}
LATENCY, RATE = 5e-6, 25e9  # seconds a message, bytes a second: a network of 200 Gbit/s
SPEED = 3e14  # operations a second
FAR = (8, 64, 512, 4096)


def table_of_counts(devices=(2, 4, 8, 16)):
    """Rows of what was counted and what the formula says, in KB and messages a device."""
    n, a = sizes()
    rows = []
    for p in devices:
        for kind, (_, planned, total) in elsewhere(p).items():
            model = moved(kind, p, n, a, LAYERS)
            rows.append(f"| {NAMES[kind]} | {p} | {total[0] / p / 1e3:.1f} | {model[0] / 1e3:.1f} | {total[1] / p:.0f} | {model[1]} |")
            assert tuple(planned) == model, (kind, p, planned, model)
    return "\n".join(["| parallelism | devices | KB counted | KB by the model | messages counted | by the model |", "|---|---|---|---|---|---|", *rows])


def far():
    """For each kind and number of devices: GB a device, and seconds around a ring and along a tree. The batch is that of all devices."""
    w, layers = MODEL["width"], MODEL["layers"]
    n = 2 * 12 * layers * w * w  # bytes of bfloat16
    out = {}
    for kind in KINDS:
        for p in FAR:
            a = 2 * MODEL["batch"] * MODEL["context"] * w
            # what of the stream a group sees: all of it, where the batch is not cut
            out[kind, p] = moved(kind, p, n, a, layers)[0], *(seconds(kind, p, n, a, layers, LATENCY, RATE, s) for s in ("ring", "tree"))
    return out


def table_beyond():
    """Rows of what a step moves beyond this machine."""
    parameters = 12 * MODEL["layers"] * MODEL["width"] ** 2
    computing = 6 * parameters * MODEL["batch"] * MODEL["context"] / SPEED
    rows = [f"| {NAMES[kind]} | {p} | {b / 1e9:,.1f} | {ring:.2f} | {tree:.2f} | {computing / p:.2f} |" for (kind, p), (b, ring, tree) in far().items()]
    return "\n".join(["| parallelism | devices | GB a device | s, ring | s, tree | s, computing |", "|---|---|---|---|---|---|", *rows])


def picture():
    """The messages' time of a step by the number of devices, as SVG: rings drawn through, trees dashed."""
    width, height, left, top, right, bottom = 720, 380, 60, 20, 190, 46
    w, layers = MODEL["width"], MODEL["layers"]
    n, a = 2 * 12 * layers * w * w, 2 * MODEL["batch"] * MODEL["context"] * w
    ps = [2**k for k in range(1, 13)]
    lines = {(kind, shape): [seconds(kind, p, n, a, layers, LATENCY, RATE, shape) for p in ps] for kind in KINDS for shape in ("ring", "tree")}
    low, high = math.floor(math.log10(min(map(min, lines.values())))), math.ceil(math.log10(max(map(max, lines.values()))))
    x = lambda p: left + (math.log2(p) - 1) / 11 * (width - left - right)
    y = lambda s: top + (high - math.log10(s)) / (high - low) * (height - top - bottom)
    colours = dict(zip(KINDS, ("#3b6fb6", "#2a9d63", "#c8553d", "#8a6fc0"), strict=True))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="#777">']
    for k in range(low, high + 1):
        out.append(
            f'<line x1="{left}" x2="{width - right}" y1="{y(10**k):.1f}" y2="{y(10**k):.1f}" stroke="#9995"/><text x="{left - 8}" y="{y(10**k) + 4:.1f}" text-anchor="end">{10.0**k:g} s</text>'
        )
    out += [f'<text x="{x(p):.1f}" y="{height - bottom + 18}" text-anchor="middle">{p}</text>' for p in ps]
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 8}" text-anchor="middle">devices</text>')
    for (kind, shape), values in lines.items():
        points = " ".join(f"{x(p):.1f},{y(s):.1f}" for p, s in zip(ps, values, strict=True))
        dashes = ' stroke-dasharray="5 4"' if shape == "tree" else ""
        out.append(f'<polyline points="{points}" fill="none" stroke="{colours[kind]}" stroke-width="2"{dashes}/>')
    places = sorted(KINDS, key=lambda kind: -lines[kind, "ring"][-1])
    for i, kind in enumerate(places):
        at = top + 14 + 22 * i
        out.append(
            f'<line x1="{width - right + 16}" x2="{width - right + 40}" y1="{at - 4}" y2="{at - 4}" stroke="{colours[kind]}" stroke-width="2"/><text x="{width - right + 46}" y="{at}">{NAMES[kind]}</text>'
        )
    for i, (text, dashes) in enumerate((("ring", ""), ("tree", ' stroke-dasharray="5 4"'))):
        at = top + 14 + 22 * (len(KINDS) + i)
        out.append(
            f'<line x1="{width - right + 16}" x2="{width - right + 40}" y1="{at - 4}" y2="{at - 4}" stroke="#777" stroke-width="2"{dashes}/><text x="{width - right + 46}" y="{at}">{text}</text>'
        )
    return "\n".join([*out, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--count", default="", help="kinds to count on the devices of this run")
    args = parser.parse_args()
    if args.count:
        return count(args.count.split(","))
    tables = {"counted": table_of_counts(), "beyond": table_beyond()}
    print("\n\n".join(tables.values()))
    if args.write:
        page = ROOT / "docs" / "scale.md"
        text = page.read_text()
        for name, table in tables.items():
            text = re.sub(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", lambda found, table=table: found[1] + table + found[2], text, flags=re.S)
        page.write_text(text)
        (ROOT / "docs" / "pictures" / "scale.svg").write_text(picture())


if __name__ == "__main__":
    main()
