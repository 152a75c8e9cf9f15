"""Decompositions, solutions and Fourier transforms beside JAX, in one process.

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
TRANSFORMS = {
    "fft 1024 x 1024 (rows)": ("fft", (1024, 1024)),
    "fft 2^20": ("fft", (2**20,)),
    "fft 1000 x 1009 (prime)": ("fft", (1000, 1009)),
    "fft 100003 (prime)": ("fft", (100_003,)),
    "rfft 1024 x 1024 (rows)": ("rfft", (1024, 1024)),
    "fft2 1024 x 1024": ("fft2", (1024, 1024)),
    "fft2 32 x 64 x 64": ("fft2", (32, 64, 64)),
}


PAUSE = 0.02  # seconds: the other library's threads look for more work for a while after their last call, and take a core meanwhile


def seconds(f, *x):
    start = time.perf_counter()
    ready = f(*x)
    for y in ready if isinstance(ready, tuple) else (ready,):
        y.block_until_ready()
    return time.perf_counter() - start


def seconds_after_a_pause(f, *x):
    """Of the second of two calls, as `steady` measures."""
    time.sleep(PAUSE)
    seconds(f, *x)
    return seconds(f, *x)


def medians(make, libraries, rounds):
    """The median time of each library's function and operands, which `make` gives."""
    runs = [make(lib, importlib.import_module(lib.__name__ + ".numpy")) for lib in libraries]
    for f, x in runs:
        seconds(f, *x)
    times = [[seconds_after_a_pause(f, *x) for f, x in runs] for _ in range(rounds)]
    return [statistics.median(t) for t in zip(*times, strict=True)]


def transform(name, shape, dtype, libraries, rounds):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    if name != "rfft":
        x = x + 1j * x[..., ::-1]

    def make(lib, jnp):
        return lib.jit(lambda x: getattr(jnp.fft, name)(x)), (jnp.asarray(x),)

    return medians(make, libraries, rounds)


def measure(name, n, dtype, libraries, rounds):
    batch = BATCHES.get(n, 1)
    a = np.random.default_rng(0).standard_normal((batch, n, n)).astype(dtype)
    h = a @ a.swapaxes(1, 2) + n * np.eye(n, dtype=dtype)

    def make(lib, jnp):
        return lib.jit(lambda a, h: FUNCTIONS[name](jnp.linalg, a, h)), (jnp.asarray(a), jnp.asarray(h))

    return medians(make, libraries, rounds)


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

    def report(what, times):
        line = f"{what:26}" + "  ".join(f"{t * 1e3:10.3f} ms" for t in times)
        if len(times) > 1:
            ratios.append(times[1] / times[0])
            line += f"  {ratios[-1]:6.2f} times as fast"
        print(line, flush=True)

    for name in FUNCTIONS:
        for n in arguments.sizes:
            times = measure(name, n, arguments.dtype, libraries, arguments.rounds)
            report(f"{name:10} {BATCHES.get(n, 1):6} x {n:5}", times)
    for what, (name, shape) in TRANSFORMS.items():
        report(what, transform(name, shape, arguments.dtype, libraries, arguments.rounds))
    if ratios:
        print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
