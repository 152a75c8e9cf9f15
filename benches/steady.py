"""What a call costs once it is compiled and its data is there: Ferrax beside JAX, in one process.

    cargo xtask bench steady                      every row, a few seconds each at most
    cargo xtask bench steady moves complex        rows whose group or text contains one of these
    cargo xtask bench steady --explain LU         which kernels, routines and loops run in these rows
    cargo xtask bench steady --torch PYTHON       beside PyTorch as well, which that Python has
    python benches/steady.py --rounds 15 roll     where the environment has both libraries

Both get the same inputs and take turns within each round, each after a pause and a call that does not count; a figure is the median over
rounds, results are compared. A row is also given as a fraction of the machine's own limit, measured in the same run: the bytes it must
move at the speed of a copy of that working set, or the floating-point operations it must do at the rate of the best large product,
whichever takes longer. First calls (tracing, compiling, running) are the medians of five processes of each library's own, one after the
other, which call every row once: what a program sees that has one library. benches/README.md says more.
"""

import argparse
import contextlib
import gc
import importlib
import os
import pickle
import statistics
import subprocess
import sys
import threading
import time
from typing import NamedTuple

import numpy as np
from workloads import ROWS

PAUSE = 0.005  # seconds before each turn: threads of the other library go on looking for work for some time, and take a core
BRIEF = 50e-6  # seconds of PyTorch's call below which a row is dispatch to it


class Library:
    """One library under measurement: its root, its numpy, and the modules that rows ask for."""

    def __init__(self, name):
        self.name = name
        self.root = importlib.import_module(name)
        self.np = importlib.import_module(name + ".numpy")
        self.lax = importlib.import_module(name + ".lax")
        self.nn = importlib.import_module(name + ".nn")
        self.ops = importlib.import_module(name + ".ops")
        self.random = importlib.import_module(name + ".random")
        self.special = importlib.import_module(name + ".scipy.special")

    def module(self, name):
        return importlib.import_module(f"{self.name}.{name}")


class Torch:
    """PyTorch in a process of its own, which takes its turns when asked."""

    def __init__(self, python):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch.py")
        self.process = subprocess.Popen([python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.version, names = pickle.load(self.process.stdout)
        self.names = set(names)

    def ask(self, message):
        pickle.dump(message, self.process.stdin)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)

    def prepare(self, spec):
        """The leaves of the result, or None where the row has no counterpart."""
        name = name_of(spec)
        if name not in self.names:
            return None
        answer = self.ask((name, spec["args"]))
        if isinstance(answer, str):
            print(f"{name:58s} PyTorch: {answer.splitlines()[0]}", flush=True)
            return None
        return answer

    def timed(self, calls):
        self.ask(1)
        return self.ask(calls) / calls


# ---- measuring ----


def ready(out):
    if isinstance(out, (list, tuple)):
        for o in out:
            ready(o)
    elif hasattr(out, "block_until_ready"):
        out.block_until_ready()
    return out


def leaves(out):
    return [x for o in out for x in leaves(o)] if isinstance(out, (list, tuple)) else [np.asarray(out)]


def differ(a, b, tolerance):
    """Where two results differ, in words; empty where they agree."""
    for x, y in zip(a, b, strict=True):
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"{x.dtype}{x.shape} is not {y.dtype}{y.shape}"
        scale = np.max(np.abs(y), initial=0, where=np.isfinite(y)) if y.size else 0
        if not np.allclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            return f"values differ by {np.nanmax(np.abs(x.astype(complex) - y)):.3g}"
    return ""


def name_of(spec):
    return f"{spec['group']}: {spec['text']}"


def chosen(words):
    """The rows that these words ask for; all if there is none."""
    return [spec for spec in ROWS if not words or any(w in name_of(spec) for w in words)]


def prepared(spec, lib):
    """The row's function under `jit`, as a call without arguments that waits for its result; in the width of the row's types."""
    args = [ready(lib.np.asarray(a)) for a in spec["args"]]
    f = lib.root.jit(spec["make"](lib))
    return lambda: ready(f(*args))


def first_calls_here(name, words):
    """{row: seconds of its first call}, in this process."""
    lib, seconds = Library(name), {}
    for spec in chosen(words):
        with lib.root.enable_x64(spec["x64"]):
            f = prepared(spec, lib)
            gc.collect()
            start = time.perf_counter()
            try:
                f()
            except Exception:  # the rounds say what was wrong
                continue
            seconds[name_of(spec)] = time.perf_counter() - start
    return seconds


def first_calls(libraries, words, processes=5):
    """{library: {row: seconds of its first call}}: medians over processes of the library's own, after one that does not count."""
    medians = {}
    for lib in libraries:
        command = [sys.executable, os.path.abspath(__file__), "--first-calls-of", lib.name, *words]
        runs = [pickle.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout) for _ in range(1 + processes)]
        medians[lib.name] = {row: statistics.median(run[row] for run in runs[1:]) for row in runs[0]}
    return medians


def measure(spec, libraries, torch, rounds, clock):
    """{library: seconds a call}, and the leaves of the results."""
    with contextlib.ExitStack() as settings:
        for lib in libraries:
            settings.enter_context(lib.root.enable_x64(spec["x64"]))
        return measured(spec, libraries, torch, rounds, clock)


def measured(spec, libraries, torch, rounds, clock):
    fns, results = {}, {}
    for lib in libraries:
        fns[lib.name] = prepared(spec, lib)
        results[lib.name] = leaves(fns[lib.name]())
    start = time.perf_counter()
    for f in fns.values():
        f()
    once = (time.perf_counter() - start) / len(fns)
    calls = max(1, min(1000, int(0.03 / max(once, 1e-6))))
    answer = torch.prepare(spec) if torch else None
    if answer:
        results["torch"] = answer
    times = {name: [] for name in results}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, f in fns.items():
                time.sleep(PAUSE)
                f()
                start = clock()
                for _ in range(calls):
                    f()
                times[name].append((clock() - start) / calls)
            if answer:
                time.sleep(PAUSE)
                times["torch"].append(torch.timed(calls))
                time.sleep(4 * PAUSE)  # its threads look for work for longer
    finally:
        gc.enable()
    return {name: statistics.median(t) for name, t in times.items()}, results


class Limits:
    """What this machine can do at best: bytes copied a second by working set, and floating-point operations a second by dtype."""

    def __init__(self):
        self.copies, self.rates = {}, {}

    def copy(self, working_set):
        """Bytes read and written a second by a copy of that many bytes in all, by one thread or by all, whichever is faster."""
        size = 1 << max(12, int(working_set - 1).bit_length())
        if size not in self.copies:
            self.copies[size] = max(self.timed(size, 1), self.timed(size, os.cpu_count() or 1) if size >= 1 << 20 else 0)
        return self.copies[size]

    @staticmethod
    def timed(size, threads):
        n = size // 2 // threads
        ends = [(np.ones(n, np.uint8), np.zeros(n, np.uint8)) for _ in range(threads)]
        repeats = max(1, (8 << 20) // size)

        def work(a, b):
            for _ in range(repeats):
                np.copyto(b, a)

        best = float("inf")
        for _ in range(7):
            workers = [threading.Thread(target=work, args=e) for e in ends[1:]]
            start = time.perf_counter()
            for w in workers:
                w.start()
            work(*ends[0])
            for w in workers:
                w.join()
            best = min(best, time.perf_counter() - start)
        return 2 * n * threads * repeats / best

    def rate(self, dtype):
        if dtype not in self.rates:
            a = np.ones((1024, 1024), dtype)
            best = float("inf")
            for _ in range(5):
                start = time.perf_counter()
                a @ a
                best = min(best, time.perf_counter() - start)
            self.rates[dtype] = 2 * 1024**3 / best
        return self.rates[dtype]

    def seconds(self, spec, results):
        moved = spec["bytes"] or sum(np.asarray(a).nbytes for a in spec["args"]) + sum(r.nbytes for r in results)
        return max(moved / self.copy(moved), spec["flops"] / self.rate(spec["dtype"]) if spec["flops"] else 0)


def time_text(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            return f"{seconds * scale:.3g} {unit}"


def mean(ratios):
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")


class Row(NamedTuple):
    """What is kept of a row: ratios to ours, and ours as a share of the limit."""

    jax: float
    first: float
    text: str
    share: float
    torch: float | None  # where it takes more than BRIEF

    @property
    def better(self):
        """The better of JAX and PyTorch."""
        return self.jax if self.torch is None else min(self.jax, self.torch)


def table(groups, note):
    """What is kept of each group as a table for documents."""
    heads = ["group", "rows", "JAX's time over Ferrax's", "slowest row", "first call", "share of the limit", "PyTorch's time over Ferrax's", "of rows"]
    lines = [heads, ["---"] * len(heads)]
    for group, rows in [*groups.items(), ("all", [row for kept in groups.values() for row in kept])]:
        slowest, beside = min(rows, key=lambda row: row.jax), [row.torch for row in rows if row.torch is not None]
        cells = [group, str(len(rows)), f"{mean([row.jax for row in rows]):.2f}", f"{slowest.text.replace('|', chr(92) + '|')}: {slowest.jax:.2f}"]
        cells += [f"{mean([row.first for row in rows]):.2f}", f"{mean([row.share for row in rows]):.0%}"]
        lines.append(cells + ([f"{mean(beside):.2f}", str(len(beside))] if beside else ["", ""]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + f"\n\n{note}\n"


def explain(words):
    """Prints how each row's plan runs: its kernels, routines and loops with the strategy of each."""
    lib = Library("ferrax")
    for spec in chosen(words):
        with lib.root.enable_x64(spec["x64"]):
            args = [lib.np.asarray(a) for a in spec["args"]]
            compiled = lib.root.jit(spec["make"](lib)).lower(*args).compile()
            ready(compiled(*args))
            print(f"{name_of(spec)}\n{compiled.as_text()}")
    return 0


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("words", nargs="*", help="only rows whose group or text contains one of these")
    options.add_argument("--only", default="ferrax,jax", help="libraries, separated by commas")
    options.add_argument("--explain", action="store_true", help="print the strategies of the rows in place of their times")
    options.add_argument("--no-first-calls", action="store_true", help="leave them out: they take longer than all else")
    options.add_argument("--first-calls-of", help=argparse.SUPPRESS)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--torch", metavar="PYTHON", help="an interpreter that has PyTorch: it takes its turns too")
    options.add_argument("--cpu", action="store_true", help="processor time of all threads in place of the clock's: for busy machines")
    options.add_argument("--markdown", metavar="FILE", help="write the groups as a table for a document, too")
    options = options.parse_args()
    if options.first_calls_of:
        pickle.dump(first_calls_here(options.first_calls_of, options.words), sys.stdout.buffer)
        return 0
    if options.explain:
        return explain(options.words)
    libraries = [Library(name) for name in options.only.split(",")]
    torch = Torch(options.torch) if options.torch else None
    clock = time.process_time if options.cpu else time.perf_counter
    versions = [f"{lib.name} {lib.root.__version__}" for lib in libraries] + ([f"torch {torch.version}"] if torch else [])
    versions = f"{', '.join(versions)}; numpy {np.__version__}; {os.cpu_count()} cores"
    print(versions)
    first = {} if options.no_first_calls else first_calls(libraries, options.words)
    beside = f" {'torch':>9s} {'/ours':>6s}" if torch else ""
    print(f"\n{'':58s} {'ferrax':>9s} {'jax':>9s} {'jax/ours':>9s} {'of limit':>8s} {'first':>8s} {'jax':>8s}{beside}")
    limits, groups = Limits(), {}
    for spec in chosen(options.words):
        name = name_of(spec)
        try:
            figures, out = measure(spec, libraries, torch, options.rounds, clock)
        except Exception as error:  # a row that cannot run must not hide the others
            print(f"{name:58s} {type(error).__name__}: {str(error).splitlines()[:1]}", flush=True)
            continue
        ours, theirs, third = (figures.get(name) for name in ("ferrax", "jax", "torch"))
        cells = [time_text(seconds) if seconds else "-" for seconds in (ours, theirs)]
        firsts = [first.get(lib, {}).get(name) for lib in ("ferrax", "jax")]
        ratio = theirs / ours if ours and theirs else None
        share = limits.seconds(spec, next(iter(out.values()))) / ours if ours else None
        if ratio:
            torch_ratio = third / ours if third and third > BRIEF else None
            of_first = firsts[1] / firsts[0] if all(firsts) else float("nan")
            groups.setdefault(spec["group"], []).append(Row(ratio, of_first, spec["text"], share, torch_ratio))
        firsts = [time_text(seconds) if seconds else "-" for seconds in firsts]
        wrong = differ(out["ferrax"], out["jax"], spec["tolerance"]) if ours and theirs else ""
        if third and ratio:
            beside = f" {time_text(third):>9s} {third / ours:6.2f}"
            against = differ([np.asarray(x, y.dtype) for x, y in zip(out["torch"], out["jax"], strict=True)], out["jax"], spec["tolerance"])
            wrong = wrong or (against and f"torch: {against}")
        elif torch:
            beside = f" {'':9s} {'':6s}"
        print(
            f"{name:58s} {cells[0]:>9s} {cells[1]:>9s} {f'{ratio:.2f}' if ratio else '-':>9s} {f'{share:.0%}' if share else '-':>8s} "
            f"{firsts[0]:>8s} {firsts[1]:>8s}{beside}{'  RESULTS: ' + wrong if wrong else ''}",
            flush=True,
        )
    every = [row for rows in groups.values() for row in rows]
    for group, rows in [*groups.items(), ("all", every)] if every else []:
        print(f"{group + ', geometric mean of ' + str(len(rows)):58s} {'':9s} {'':9s} {mean([row.jax for row in rows]):9.2f}")
    if every and first:
        print(f"{'first calls':58s} {'':9s} {'':9s} {mean([row.first for row in every]):9.2f}")
    peers = [row for row in every if row.torch is not None]
    if peers:
        print(f"\nrows in which PyTorch takes more than {time_text(BRIEF)}, geometric means of {len(peers)}:")
        for text, of in (("JAX", "jax"), ("PyTorch", "torch"), ("the better of the two", "better")):
            print(f"{text + ' over ours':58s} {'':9s} {'':9s} {mean([getattr(row, of) for row in peers]):9.2f}")
    print("\ncopy, GB/s by working set: " + ", ".join(f"{k >> 10} kB {v / 1e9:.0f}" for k, v in sorted(limits.copies.items())))
    if limits.rates:
        print("products, Gflop/s: " + ", ".join(f"{k} {v / 1e9:.0f}" for k, v in limits.rates.items()))
    if options.markdown and every:
        note = f"{versions}."
        if peers:
            note = f"The faster of JAX and PyTorch over Ferrax, {len(peers)} rows: {mean([row.better for row in peers]):.2f}. {note}"
        with open(options.markdown, "w") as file:
            file.write(table(groups, note))
    return 0


if __name__ == "__main__":
    sys.exit(main())
