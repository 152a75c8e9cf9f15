"""Decompositions and solutions beside JAX, in one process.

    cargo xtask bench linalg
    python benches/linalg.py --sizes 8 50 --dtype float64

The libraries take turns within each round, so that a busy moment of the machine hits both; the figure is the median over rounds.
"""

import argparse
import importlib
import math
import statistics
import time

import numpy as np

FUNCTIONS = {
    "cholesky": lambda la, a, h: la.cholesky(h),
    "solve": lambda la, a, h: la.solve(a, h),
    "qr": lambda la, a, h: la.qr(a),
    "eigh": lambda la, a, h: la.eigh(h),
    "svd": lambda la, a, h: la.svd(a),
}
# how many matrices of a size are one batch
BATCHES = {8: 10_000, 50: 20}


def seconds(f, *x):
    start = time.perf_counter()
    ready = f(*x)
    for y in ready if isinstance(ready, tuple) else (ready,):
        y.block_until_ready()
    return time.perf_counter() - start


def measure(name, n, dtype, libraries, rounds):
    """The median time of each library."""
    batch = BATCHES.get(n, 1)
    a = np.random.default_rng(0).standard_normal((batch, n, n)).astype(dtype)
    h = a @ a.swapaxes(1, 2) + n * np.eye(n, dtype=dtype)
    runs = []
    for lib in libraries:
        jnp = importlib.import_module(lib.__name__ + ".numpy")
        f = lib.jit(lambda a, h, la=jnp.linalg: FUNCTIONS[name](la, a, h))
        x = (jnp.asarray(a), jnp.asarray(h))
        seconds(f, *x)
        runs.append((f, x))
    times = [[seconds(f, *x) for f, x in runs] for _ in range(rounds)]
    return [statistics.median(t) for t in zip(*times, strict=True)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=[8, 50, 300, 1000])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    libraries = [importlib.import_module("ferrax")]
    try:
        libraries.append(importlib.import_module("jax"))
    except ImportError:
        print("JAX is not installed: Ferrax alone")
    for lib in libraries:
        lib.config.update("jax_enable_x64", np.dtype(arguments.dtype).itemsize > 4)
    ratios = []
    for name in FUNCTIONS:
        for n in arguments.sizes:
            times = measure(name, n, arguments.dtype, libraries, arguments.rounds)
            line = f"{name:10} {BATCHES.get(n, 1):6} x {n:5}  " + "  ".join(f"{t * 1e3:10.3f} ms" for t in times)
            if len(times) > 1:
                ratios.append(times[1] / times[0])
                line += f"  {ratios[-1]:6.2f} times as fast"
            print(line, flush=True)
    if ratios:
        print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
