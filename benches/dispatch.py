"""What a call costs before any arithmetic: Ferrax beside JAX and NumPy, in one process.

    cargo xtask bench dispatch
    python benches/dispatch.py --only jax --row eager

The libraries take turns within each round, so that a busy moment of the machine hits all of them; the figure is the median over rounds.
The goals are those the project set itself against JAX 0.10.2 on two cores.
"""

import argparse
import gc
import glob
import importlib
import importlib.metadata
import os
import statistics
import subprocess
import sys
import time

import numpy as np

ROWS = []
REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Library:
    """One library under measurement: its root and its numpy."""

    def __init__(self, name):
        self.name = name
        self.root = importlib.import_module(name)
        self.np = np if name == "numpy" else importlib.import_module(name + ".numpy")

    @property
    def transforms(self):
        return self.name != "numpy"


def row(text, goal, unit="us", calls=1000, rounds=31, numpy=False):
    """Registers a row. The function gives a callable to be timed; called `calls` times in each of `rounds` rounds."""

    def register(make):
        ROWS.append(dict(text=text, goal=goal, unit=unit, calls=calls, rounds=rounds, numpy=numpy, make=make))
        return make

    return register


@row("eager x + y, n = 10", 0.5, numpy=True)
def eager_add(lib):
    x, y = lib.np.ones(10, lib.np.float32), lib.np.ones(10, lib.np.float32)
    return lambda: x + y


@row("eager x[3], n = 10", 1.0, numpy=True)
def eager_index(lib):
    x = lib.np.ones(10, lib.np.float32)
    return lambda: x[3]


@row("jitted x + y, n = 10", 1.0)
def jitted_add(lib):
    x, y = lib.np.ones(10), lib.np.ones(10)
    f = lib.root.jit(lambda x, y: x + y)
    return lambda: f(x, y)


@row("jitted, 40-leaf dict of dicts", 6.0, calls=200)
def jitted_tree(lib):
    tree = {f"layer{i}": {f"w{j}": lib.np.ones(10) for j in range(5)} for i in range(8)}
    f = lib.root.jit(lambda t: lib.root.tree_util.tree_map(lambda v: v + 1, t))
    return lambda: f(tree)


@row("eager grad of a four-op function", 20.0, calls=20)
def eager_grad(lib):
    g = lib.root.grad(lambda x: lib.np.sin(x) * x + lib.np.cos(x))
    return lambda: g(0.7)


TRACED = 400


@row("tracing, per primitive", 2.0, calls=1, rounds=15)
def tracing(lib):
    sin, x = lib.np.sin, lib.np.ones(10)

    def body(x, y):
        for _ in range(TRACED // 4):
            x = sin(x * y + y) - x
        return x

    # A fresh function each time: both libraries remember what they traced.
    return lambda: lib.root.make_jaxpr(lambda x, y: body(x, y))(x, x)


tracing.per = TRACED


@row("first call of jit(x + 1)", 0.3, unit="ms", calls=1, rounds=15)
def first_call(lib):
    x = lib.np.ones(10)
    return lambda: finish(lib.root.jit(lambda x: x + 1)(x))


@row("first call, gradient of a 20-layer MLP", 4.0, unit="ms", calls=1, rounds=7)
def first_mlp(lib):
    jnp = lib.np
    params = [(jnp.full((16, 16), 0.1), jnp.zeros(16)) for _ in range(20)]
    x = jnp.ones((8, 16))

    def loss(params, x):
        for w, b in params:
            x = jnp.tanh(x @ w + b)
        return jnp.mean(x**2)

    return lambda: finish(lib.root.jit(lib.root.grad(lambda p, x: loss(p, x)))(params, x))


@row("first call, gradient of a transformer block", 15.0, unit="ms", calls=1, rounds=5)
def first_transformer(lib):
    jnp, nn = lib.np, importlib.import_module(lib.name + ".nn")
    d, heads, n = 32, 4, 16
    p = {name: jnp.full((d, d), 0.05) for name in ("q", "k", "v", "o")}
    p |= {"up": jnp.full((d, 4 * d), 0.05), "down": jnp.full((4 * d, d), 0.05), "g1": jnp.ones(d), "g2": jnp.ones(d)}
    x = jnp.asarray(np.random.default_rng(0).standard_normal((2, n, d)).astype(np.float32))

    def norm(x, g):
        m = x.mean(-1, keepdims=True)
        return (x - m) / jnp.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5) * g

    def loss(p, x):
        h = norm(x, p["g1"])
        q, k, v = (jnp.reshape(h @ p[w], (2, n, heads, d // heads)) for w in "qkv")
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(d // heads).astype(np.float32)
        scores = jnp.where(jnp.tril(jnp.ones((n, n), bool)), scores, -1e9)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores, -1), v).reshape(x.shape) @ p["o"]
        return jnp.mean((x + nn.gelu(norm(x, p["g2"]) @ p["up"]) @ p["down"]) ** 2)

    return lambda: finish(lib.root.jit(lib.root.grad(lambda p, x: loss(p, x)))(p, x))


def finish(out):
    """Waits for what a call left pending, outside the timed part."""
    if isinstance(out, (list, tuple)):
        for o in out:
            finish(o)
    elif isinstance(out, dict):
        finish(list(out.values()))
    elif hasattr(out, "block_until_ready"):
        out.block_until_ready()


def measure(spec, libraries):
    """{library: seconds per call}, or an exception in place of the figure."""
    calls, out, fns = spec["calls"], {}, {}
    for lib in libraries:
        if lib.transforms or spec["numpy"]:
            try:
                fns[lib.name] = spec["make"](lib)
                for _ in range(3):
                    finish(fns[lib.name]())
            except Exception as error:  # a row that one library cannot run must not hide the others
                fns.pop(lib.name, None)
                out[lib.name] = error
    times = {name: [] for name in fns}
    gc.collect()
    gc.disable()
    try:
        for _ in range(spec["rounds"]):
            for name, f in fns.items():
                start = time.perf_counter()
                for _ in range(calls):
                    last = f()
                times[name].append((time.perf_counter() - start) / calls)
                finish(last)
                del last
    finally:
        gc.enable()
    per = getattr(spec["make"], "per", 1)
    return out | {name: statistics.median(t) / per for name, t in times.items()}


def import_time(name, rounds=7):
    """Seconds that the import takes in a fresh process that has numpy already."""
    modules = f"import {name}, {name}.numpy"
    code = f"import numpy, time; t = time.perf_counter(); {modules}; print(time.perf_counter() - t)"
    # as a user has it: bytecode compiled once, by the first run
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    run = lambda: float(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout)
    run()
    return statistics.median(run() for _ in range(rounds))


def size(name):
    """Megabytes to be fetched or installed: the newest wheel in dist/ for Ferrax, the installed files for JAX."""
    if name == "ferrax":
        wheels = sorted(glob.glob(os.path.join(REPOSITORY, "dist", "ferrax-*.whl")), key=os.path.getmtime)
        return os.path.getsize(wheels[-1]) / 1e6 if wheels else None
    packages = ("jax", "jaxlib", "scipy", "opt_einsum")
    files = [f for package in packages for f in importlib.metadata.files(package) or []]
    return sum(os.path.getsize(f.locate()) for f in files if f.locate().exists()) / 1e6


def cell(value, unit):
    if value is None:
        return "-"
    if isinstance(value, Exception):
        return type(value).__name__[:12]
    return f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}"


class Table:
    def __init__(self):
        print(f"{'':44s} {'ferrax':>13s} {'jax':>13s} {'numpy':>13s} {'jax/ferrax':>11s} {'goal':>10s}  within 2x")
        self.missed, self.rows = [], []

    def add(self, text, unit, goal, figures):
        ours, theirs = figures.get("ferrax"), figures.get("jax")
        number = lambda v: isinstance(v, (int, float))
        ratio = f"{theirs / ours:.1f}x" if number(ours) and number(theirs) else "-"
        verdict = ("yes" if ours <= 2 * goal else "NO") if number(ours) else "-"
        if verdict == "NO" or isinstance(ours, Exception):
            self.missed.append(text)
        cells = " ".join(f"{cell(figures.get(n), unit):>13s}" for n in ("ferrax", "jax", "numpy"))
        self.rows.append([text, *(cell(figures[n], unit) if n in figures else "" for n in ("ferrax", "jax", "numpy"))])
        print(f"{text:44s} {cells} {ratio:>11s} {goal:>7g} {unit}  {verdict}", flush=True)
        for name, error in figures.items():
            if isinstance(error, Exception):
                print(f"    {name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:150])

    def markdown(self, note):
        """The rows as a table for documents, with a line on what was measured."""
        lines = [["", "Ferrax", "JAX", "NumPy"], ["---"] * 4, *self.rows]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + f"\n\n{note}\n"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="ferrax,jax,numpy", help="libraries, separated by commas")
    options.add_argument("--row", default="", help="only rows whose text contains this")
    options.add_argument("--markdown", metavar="FILE", help="write the table for a document, too")
    options = options.parse_args()
    names = options.only.split(",")
    libraries = [Library(name) for name in names]
    versions = ", ".join(f"{lib.name} {lib.root.__version__}" for lib in libraries)
    print(f"{versions}; Python {sys.version.split()[0]}; {os.cpu_count()} cores\n")
    table = Table()
    for spec in ROWS:
        if options.row in spec["text"]:
            scale = {"us": 1e6, "ms": 1e3}[spec["unit"]]
            figures = {k: v if isinstance(v, Exception) else v * scale for k, v in measure(spec, libraries).items()}
            table.add(spec["text"], spec["unit"], spec["goal"], figures)
    packages = [name for name in names if name != "numpy"]
    if options.row in "import, over numpy's own":
        table.add("import, over numpy's own", "ms", 60, {name: import_time(name) * 1e3 for name in packages})
    if options.row in "wheel (jax: installed)":
        table.add("wheel (jax: installed)", "MB", 15, {name: size(name) for name in packages})
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write(table.markdown(f"{versions}; Python {sys.version.split()[0]}; {os.cpu_count()} cores."))
    if "ferrax" in names:
        print(f"\nmissed: {', '.join(table.missed)}" if table.missed else "\nevery measured goal is met within a factor of two")


if __name__ == "__main__":
    main()
