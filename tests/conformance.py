"""The conformance suite: generated cases for every public function, on this library and on JAX beside it.

    python tests/conformance.py numpy lax                    # what differs in these tables without a reason; needs JAX
    python tests/conformance.py --only jax.numpy.sum numpy
    python tests/conformance.py --mode strict numpy          # under a setting of `config`: conformance_settings.py
    python tests/conformance.py --write                      # every table, some 90 minutes; writes docs/conformance.md

The tables stand in conformance_cases/. `== jax.numpy` opens a module; a line below it is names, a colon, and forms with a bar between them:

    sum prod: f({num}) | f({num ranked}, axis={axis}, keepdims={flag})

`f` is the function; fields are filled in by conformance_operands.py. `names [word ..]: forms` says how results are compared, `names -- reason` that they are not:
`tol=N` times the rounding of the dtype, relative to each number or, with `norm`, to the greatest; `zero=N` beside numbers of that size, where what is left of them
is rounding; `notvalue` by type alone; `eager` without `jit` and `jvp`, `nojvp` without the latter; `tame` with operands clear of kinks.

A case is a form that is filled in. Every case runs eagerly; every fourth, through `jit` too, and every fourth, with operands clear of kinks, through `jvp`.
Compared are values, dtypes, weak types, shapes, and containers; or that both raise. A difference has its reason in conformance_reasons.py, or is a bug.
"""

import argparse
import ast
import contextlib
import importlib
import inspect
import io
import json
import pathlib
import re
import sys
import types
import warnings
import zlib

import ml_dtypes
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from conformance_operands import Draw, is_float
from conformance_reasons import REASONS

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parent / "docs" / "conformance.md"
TABLES = ("numpy", "lax", "linalg", "fft", "scipy", "stats", "nn", "random", "rest")
FIELD = re.compile(r"\{([^{}]+)\}")
MIN_CASES = 20
# Parameters that choose nothing where there is one device and one algorithm, or whose value JAX itself refuses everywhere.
NOT_TRIED = {"out", "out_sharding", "device", "sharding", "precision", "order", "copy", "backend", "accuracy", "args", "kwargs", "self"}


class Line:
    """Functions that are called alike."""

    def __init__(self, module, names, options, forms, reason):
        self.module, self.names, self.options, self.forms, self.reason = module, names, options, forms, reason


def read(table):
    """The lines of a table."""
    module, pending = None, ""
    for raw in [*(HERE / "conformance_cases" / f"{table}.txt").read_text().splitlines(), "== end"]:
        if not raw.strip() or raw.startswith("#"):
            continue
        if raw[0].isspace():
            pending += " " + raw.strip()
            continue
        if pending:
            yield parsed(module, pending)
        pending = ""
        if raw.startswith("== "):
            module = raw[3:].strip()
        else:
            pending = raw.strip()


def parsed(module, text):
    if " -- " in text:
        names, reason = text.split(" -- ", 1)
        return Line(module, names.split(), {}, [], reason)
    head, forms = text.split(": ", 1)
    names, _, options = head.partition(" [")
    options = dict((w.split("=") + ["1"])[:2] for w in options.rstrip("]").split())
    return Line(module, names.split(), options, [form.strip() for form in forms.split(" | ")], None)


class Case:
    """A form filled in: an expression over `a0`, `a1` .. and its operands."""

    def __init__(self, function, number, form, options):
        self.function, self.options = function, options
        self.wide = number % 2 == 1
        self.way = ("eager", "jit", "eager", "jvp")[(number // 2) % 4] if "eager" not in options else "eager"
        if self.way == "jvp" and "nojvp" in options:
            self.way = "jit"
        rng = np.random.default_rng([zlib.crc32(function.encode()), number])
        draw = Draw(rng, self.wide, self.way == "jvp" or "tame" in options)
        self.expression = FIELD.sub(lambda m: draw.fill(m[1]), form)
        self.operands, self.as_numpy = draw.operands, number % 5 == 4

    def __str__(self):
        kind = lambda x: f"{x.dtype}[{','.join(map(str, x.shape))}]" if hasattr(x, "dtype") else repr(x)
        where = ", ".join(f"a{k}={kind(x)}" for k, x in enumerate(self.operands))
        way = "" if self.way == "eager" else f" {self.way}"
        return f"{self.function}: {self.expression}" + (f" where {where}" if where else "") + way + " x64" * self.wide


def count(line):
    """How many cases each function of a line has."""
    return max(MIN_CASES, 3 * len(line.forms))


def cases_of(line, name):
    forms = line.forms
    return [Case(f"{line.module}.{name}", i, forms[(i + i // len(forms)) % len(forms)], line.options) for i in range(count(line))]


def functions(table):
    """(line, name) for every function of a table."""
    return [(line, name) for line in read(table) for name in line.names]


def keywords(form):
    """The parameters that a form gives by name, and how many by position."""
    tree = ast.parse(FIELD.sub("x", form), mode="eval")
    names, most = set(), 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "f":
            names |= {k.arg for k in node.keywords if k.arg}
            most = max(most, len(node.args))
    return names, most


# ---- running


class Wrong(Exception):
    """What a case gives when it raises."""


def function_of(lib, dotted):
    path, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(path.replace("jax", lib.__name__, 1)), name)


def environment(lib, case):
    names = dict(jax=lib, n=lib.numpy, lax=lib.lax, nn=lib.nn, np=np, io=io, load=lambda path: importlib.import_module(f"{lib.__name__}.{path}"))
    return {**names, "f": function_of(lib, case.function)}


def outcome(lib, case, under=contextlib.nullcontext, forbidden=None):
    """What a library makes of a case: a list of leaves, or the exception.

    under: makes a context in which the function runs; operands are made outside. forbidden: what a warning begins with that counts as an exception.
    """
    lib.config.update("jax_enable_x64", case.wide)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if forbidden:
            warnings.filterwarnings("error", forbidden)
        try:
            env = environment(lib, case)
            code = compile(case.expression, case.function, "eval")
            xs = [lib.numpy.asarray(x) if hasattr(x, "dtype") and not case.as_numpy else x for x in case.operands]
            run = lambda *xs: eval(code, {**env, **{f"a{k}": x for k, x in enumerate(xs)}})
            with under():
                out = WAYS[case.way](lib, run, xs)
            return list(leaves(lib, out))
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as e:
            return Wrong(f"{type(e).__name__}: {str(e).strip().partition(chr(10))[0][:160]}")


def jitted(lib, run, xs):
    return [lib.jit(run)(*xs), run(*xs)]


def tangents(lib, run, xs):
    """The derivative along fixed directions, in the floating operands."""
    places = [k for k, x in enumerate(xs) if hasattr(x, "dtype") and (is_float(x.dtype) or x.dtype.kind == "c")]
    value = run(*xs)
    if not places or not any(inexact(y) for y in lib.tree_util.tree_leaves(value)):
        return [value]
    ts = [directions(xs[k].shape, xs[k].dtype, k) for k in places]

    def along(*ys):
        new = list(xs)
        for k, y in zip(places, ys, strict=True):
            new[k] = y
        return [y for y in lib.tree_util.tree_leaves(run(*new)) if inexact(y)]

    return [value, lib.jvp(along, tuple(xs[k] for k in places), tuple(lib.numpy.asarray(t) for t in ts))[1]]


def inexact(y):
    return (
        hasattr(y, "dtype")
        and hasattr(y, "shape")
        and not isinstance(y, type)
        and np.dtype(y.dtype).kind != "V"
        and (is_float(y.dtype) or np.dtype(y.dtype).kind == "c")
        if plain(y)
        else False
    )


def plain(y):
    """Whether numpy knows its dtype: keys have one of their own."""
    try:
        np.dtype(y.dtype)
        return True
    except (TypeError, AttributeError):
        return False


def directions(shape, dtype, k):
    n = int(np.prod(shape))
    t = np.cos(np.arange(n) * 1.7 + k + 1).reshape(shape)
    return (t + 1j * np.sin(np.arange(n) + k).reshape(shape) if np.dtype(dtype).kind == "c" else t).astype(dtype)


WAYS = {"eager": lambda lib, run, xs: run(*xs), "jit": jitted, "jvp": tangents}


def leaves(lib, v, where=""):
    """(where, what it is, its value) of each leaf of a result; what cannot be compared by value, by its text."""
    if isinstance(v, lib.Array):
        if lib.dtypes.issubdtype(v.dtype, lib.dtypes.prng_key):
            yield where, ["key", list(v.shape), str(v.dtype)], np.asarray(lib.random.key_data(v))
        else:
            yield where, ["array", list(v.shape), str(v.dtype) + "*" * bool(v.weak_type)], np.asarray(v)
    elif isinstance(v, (np.ndarray, np.generic)):
        yield where, ["numpy", list(v.shape), str(v.dtype)], np.asarray(v)
    elif isinstance(v, dict):
        yield where, [type(v).__name__, [str(k) for k in v], ""], None
        for k, x in v.items():
            yield from leaves(lib, x, f"{where}[{k!r}]")
    elif isinstance(v, (tuple, list)):
        yield where, [type(v).__name__, len(v), ""], None
        for k, x in enumerate(v):
            yield from leaves(lib, x, f"{where}[{k}]")
    elif isinstance(v, (bool, int, float, complex)):
        yield where, [type(v).__name__, [], ""], np.asarray(v)
    elif isinstance(v, type):
        yield where, ["type", v.__name__, ""], None
    elif isinstance(v, types.GeneratorType):
        yield from leaves(lib, list(v), where)
    else:
        text = re.sub(r"0x[0-9a-f]+", "0x", str(v)).replace(lib.__name__, "jax")
        yield where, ["text", text, ""], None


ROUNDING = {"float64": 1e-10, "complex128": 1e-10, "float32": 2e-5, "complex64": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


def tolerance(case, dtype):
    """That of the result's dtype, or of a half-precision operand, which is computed with before it is promoted."""
    halves = [ROUNDING[str(x.dtype)] for x in case.operands if hasattr(x, "dtype") and x.dtype.itemsize == 2 and is_float(x.dtype)]
    return max(ROUNDING[dtype], *halves, 0.0) * float(case.options.get("tol", 1))


def difference(case, ours, theirs):
    """What differs, in words; None where nothing does."""
    if isinstance(theirs, Wrong) or isinstance(ours, Wrong):
        if isinstance(theirs, Wrong) and isinstance(ours, Wrong):
            return None
        return f"raises {ours}" if isinstance(ours, Wrong) else f"answers, where JAX raises {theirs}"
    if len(ours) != len(theirs):
        return f"structure: {[o[1] for o in ours][:4]}, not {[t[1] for t in theirs][:4]}"
    for (where, what, got), (place, kind, want) in zip(ours, theirs, strict=True):
        if case.as_numpy and {what[0], kind[0]} == {"array", "numpy"}:
            what, kind = what[1:], kind[1:]  # the operand itself, or an array of it
        if where != place or what != kind:
            return f"type: {where} {' '.join(map(str, what))}, not {' '.join(map(str, kind))}"
        if want is not None and "notvalue" not in case.options:
            difference = values(case, got, want)
            if difference:
                return f"value: {where} {difference}"
    return None


def values(case, got, want):
    dtype = str(want.dtype)
    if dtype not in ROUNDING:
        off = (got != want) & ((got == got) | (want == want))
        return f"{off.sum()} of {off.size}: {got[off].ravel()[:4]}, not {want[off].ravel()[:4]}" if np.any(off) else None
    to = np.complex128 if want.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        got, want = (np.atleast_1d(flushed(x, float(ml_dtypes.finfo(want.dtype).tiny)).astype(to)) for x in (got, want))
        tol = tolerance(case, dtype)
        size = np.abs(want[np.isfinite(want)])
        near = tol * max(np.max(size, initial=0) if "norm" in case.options else min(np.max(size, initial=0), 1.0), float(case.options.get("zero", 0)))
        off = ~(alike(got.real, want.real, tol * np.abs(want), near) & alike(got.imag, want.imag, tol * np.abs(want), near))
    if not np.any(off):
        return None
    return f"{off.sum()} of {off.size}: {got[off].ravel()[:4]}, not {want[off].ravel()[:4]} at {np.argwhere(off)[0].tolist()}"


def flushed(x, tiny):
    """Without subnormal numbers: JAX flushes them to zero."""
    if x.dtype.kind == "c":
        return flushed(x.real, tiny) + 1j * flushed(x.imag, tiny)
    return np.where(np.abs(x) < tiny, 0, x)


def alike(got, want, rtol, atol):
    return (
        (got == want)
        | (np.isnan(got) & np.isnan(want))
        | (np.isfinite(got) & np.isfinite(want) & (np.abs(got - want) <= np.where(np.isfinite(rtol), rtol, 0) + atol))
    )


def run(lib, oracle, table, only=None, part=(0, 1), step=1, report=None):
    """{function: [cases, of which both raise, [[case, what differs], ...]]}"""
    out = {}
    for line, name in functions(table)[part[0] :: part[1]]:
        function = f"{line.module}.{name}"
        if line.reason or (only and function not in only and name not in only):
            continue
        raised, found = 0, []
        drawn = cases_of(line, name)[::step]
        for case in drawn:
            ours, theirs = outcome(lib, case), outcome(oracle, case)
            raised += isinstance(theirs, Wrong) and isinstance(ours, Wrong)
            what = difference(case, ours, theirs)
            if what:
                found.append([str(case), what])
        out[function] = [len(drawn), raised, found]
        if report:
            report(function, *out[function])
    return out


# ---- the page


def why(case, what):
    """The reason of a difference; None where there is none."""
    return next((reason for f, d, reason in REASONS if re.search(f, case) and re.search(d, what)), None)


def parameters(line, name):
    """The parameters that the forms of a function try, in its order; None where it shows none."""
    named, most = set(), 0
    for form in line.forms:
        some, many = keywords(form)
        named |= some
        most = max(most, many)
    return named, most


def tried(lib, line, name):
    """(parameters tried, parameters that are not)"""
    named, most = parameters(line, name)
    try:
        every = inspect.signature(function_of(lib, f"{line.module}.{name}")).parameters.values()
    except (TypeError, ValueError):
        return sorted(named), []
    got = [p.name for k, p in enumerate(every) if p.name in named or (k < most and p.kind is not p.KEYWORD_ONLY) or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return got, [p.name for p in every if p.name not in got and p.name not in NOT_TRIED]


def row(lib, line, name, result):
    shown = f"`{line.module}.{name}`"
    if line.reason:
        return f"| {shown} | | | | not compared: {line.reason} |"
    got, _ = tried(lib, line, name)
    differ, reasons = result or ("?", "")
    return f"| {shown} | {', '.join(got)} | {count(line)} | {differ or '0'} | {reasons} |"


HEAD = """# Conformance

What the conformance suite compares with JAX 0.10.2, function by function. Written by `python tests/conformance.py`, which needs JAX; `tests/api/test_conformance.py`
proves that every public function of these modules has its row, and, where JAX is installed, that no difference lacks a reason.

A case is a call with generated operands: ranks 0 to 3, sizes 0 and 1, Python's numbers and every dtype that the function takes, infinities, NaN and the ends of
integers, 64-bit types on and off. Compared are values within rounding, dtypes, weak types, shapes and containers, or that both raise. A quarter of the cases runs under `jit`
too, and a quarter is differentiated.

| function | parameters tried | cases | differ | why |
|---|---|---|---|---|
"""


def page(lib, results):
    return HEAD + "\n".join(row(lib, line, name, results.get(f"{line.module}.{name}")) for table in TABLES for line, name in functions(table)) + "\n"


def written():
    """{function: (cases that differ, why)} as the page has it."""
    found = re.findall(r"^\| `([\w.]+)` \| [^|]*\| \d+ \| (\d+) \| (.*) \|$", PAGE.read_text(), re.M) if PAGE.exists() else []
    return {function: (int(differ), reasons) for function, differ, reasons in found}


def summary(found):
    """{function: (cases that differ, why)} of what `run` gives."""
    return {
        f: (len(differ), "; ".join(dict.fromkeys(why(*d) or f"no reason: {d[0]} {d[1]}".replace("|", "/") for d in differ)))
        for f, (_, _, differ) in found.items()
    }


def tell(function, count, raised, found):
    new = [d for d in found if not why(*d)]
    if new or raised > count / 2:
        print(f"## {function}: {len(new)} of {count} differ, {raised} raise", flush=True)
    for case, what in new:
        print(f"{case}\n    {what}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*", default=TABLES)
    parser.add_argument("--only", default="", help="functions")
    parser.add_argument("--part", default="0/1", help="k/n: every n-th function from the k-th on")
    parser.add_argument("--step", type=int, default=1, help="every n-th case")
    parser.add_argument("--first", type=int, default=0, help="the number of the first of these (with --mode)")
    parser.add_argument("--write", action="store_true", help="these rows of docs/conformance.md")
    parser.add_argument("--mode", help="settings of `config`, or `all`: see conformance_settings.py")
    parser.add_argument("--json", action="store_true", help="print what differs as JSON")
    options = parser.parse_args()
    part = tuple(int(n) for n in options.part.split("/"))
    lib, oracle = importlib.import_module("ferrax"), importlib.import_module("jax")
    if options.mode:
        return importlib.import_module("conformance_settings").main(lib, oracle, options)
    for table in options.tables:
        found = run(lib, oracle, table, set(filter(None, options.only.split(","))), part, options.step, None if options.json else tell)
        if options.json:
            print(json.dumps(found))
        if options.write:
            PAGE.write_text(page(lib, {**written(), **summary(found)}))
        oracle.clear_caches()


if __name__ == "__main__":
    main()
