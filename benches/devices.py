"""Times over several devices: weak scaling, the training example beside JAX with as many host devices, and processes under MPI beside devices of one process.

    python benches/devices.py                              # weak scaling, and MPI where mpirun is on the path
    python benches/devices.py --oracle PYTHON              # with a Python that has JAX: the training example in both, in turn

Each figure is the median of the rounds; a round runs each side once, in turn, in a process of its own.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
EXAMPLE = [str(ROOT / "examples" / "parallel.py")]
LAYERS, WIDTH, ROWS = 4, 512, 256  # of weak scaling: layers that share a weight, and rows of each device


def weak(devices, rounds=200):
    """Median seconds of a gradient step of layers: of one device, of as many independent ones at once, and of one step over a mesh, each device with its own rows. The three are taken in turn."""
    import ferrax as jax
    import ferrax.numpy as jnp
    import numpy as np
    from ferrax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

    def loss(w, x):
        for _ in range(LAYERS):
            x = jnp.tanh(x @ w)
        return (x**2).mean()

    def of(places):
        """A step over a mesh of these devices and its arguments."""
        mesh = Mesh(np.array(places), ("x",), axis_types=(AxisType.Auto,))
        whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("x"))
        step = jax.jit(lambda w, x: w - 0.01 * jax.grad(loss)(w, x), in_shardings=(whole, rows), out_shardings=whole)
        w = jax.device_put(np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype("f4") * WIDTH**-0.5, whole)
        x = jax.device_put(np.random.default_rng(1).standard_normal((ROWS * len(places), WIDTH)).astype("f4"), rows)
        return step, w, x

    places = jax.devices()[:devices]
    alone = [of([place]) for place in places]
    sides = {"alone": alone[:1], "at once": alone, "mesh": [of(places)]}
    taken = {name: [] for name in sides}
    for _ in range(rounds):
        for name, steps in sides.items():
            jax.set_num_threads(len(places) if name == "mesh" else 1)
            began = time.perf_counter()
            jax.block_until_ready([step(w, x) for step, w, x in steps])
            taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(values[rounds // 10 :]) for name, values in taken.items()}


def run(command, **env):
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=True).stdout


def letters(command, **env):
    """Letters a second of a run of the training example."""
    out = run([*command, "--steps", "100"], MPLBACKEND="agg", **env)
    return float(re.findall(r"([\d,]+) letters a second", out)[-1].replace(",", ""))


def in_turn(rounds, sides):
    """The median of each side; sides are functions without arguments."""
    found = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            found[name].append(side())
    return {name: statistics.median(values) for name, values in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", help="a Python that has JAX")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--weak", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.weak:
        print(json.dumps(weak(args.weak)))
        return

    cores = os.cpu_count() or 1
    rounds = [json.loads(run([sys.executable, __file__, "--weak", str(cores)], FERRAX_NUM_CPU_DEVICES=str(cores))) for _ in range(args.rounds)]
    took = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
    print(
        f"weak scaling, 1 to {cores} devices: {took['alone'] * 1e3:.2f} ms alone, {took['at once'] * 1e3:.2f} at once, {took['mesh'] * 1e3:.2f} over the mesh: "
        f"{took['alone'] / took['mesh']:.0%} of one device, {took['at once'] / took['mesh']:.0%} of independent ones"
    )
    ours = [sys.executable, "-m", "ferrax", *EXAMPLE]
    if args.oracle:
        theirs = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
        found = in_turn(args.rounds, {"ferrax": lambda: letters(ours, FERRAX_NUM_CPU_DEVICES="8"), "jax": lambda: letters([args.oracle, *EXAMPLE], **theirs)})
        print(f"training example on 8 devices: {found['ferrax']:,.0f} letters a second, JAX {found['jax']:,.0f}: {found['ferrax'] / found['jax']:.2f} times")
    if shutil.which("mpirun"):
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
        found = in_turn(
            args.rounds,
            {
                "one": lambda: letters(ours, FERRAX_NUM_CPU_DEVICES="4"),
                "two": lambda: letters([*mpirun, *ours], FERRAX_NUM_CPU_DEVICES="2", FERRAX_NUM_THREADS="1"),
            },
        )
        print(
            f"training example on 4 devices: {found['one']:,.0f} letters a second in one process, {found['two']:,.0f} in two under MPI: {found['two'] / found['one']:.0%}"
        )


if __name__ == "__main__":
    main()
