"""The matrix of rules: every primitive, every transform, every class of dtypes. `python tests/rules.py` in the repository writes docs/rules.md.

A cell is what was seen when the primitive's example ran under the transform: values are compared with eager evaluation, derivatives with differences in
double precision and with each other. Nothing is taken from the declarations of rules.
"""

import contextlib
import functools
import importlib
import io
import pathlib
import sys
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from rule_examples import more

from examples import examples, floats, ints

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "rules.md"
CLASSES = {
    "bool": ("bool",),
    "integer": ("int8", "int32", "int64", "uint8", "uint32"),
    "half": ("float16", "bfloat16"),
    "float": ("float32", "float64"),
    "complex": ("complex64", "complex128"),
    "narrow integer": ("int2", "uint2", "int4", "uint4"),
    "narrow float": ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float4_e2m1fn"),
}
TRANSFORMS = ("eval", "jit", "vmap", "jvp", "vjp", "vmap(grad)", "grad(vmap)", "hessian")
PLAIN = TRANSFORMS[:3]
HOLDS, NONE, REFUSED = "yes", "–", "no"

# Why a derivative is refused. JAX refuses these too.
REASONS = {
    "pure_callback": "a function of the host has no derivative, unless `custom_jvp` or `custom_vjp` defines one",
    "io_callback": "a function of the host has no derivative, unless `custom_jvp` or `custom_vjp` defines one",
    "nextafter": "the neighbour of a number depends on the representation of numbers and is not a differentiable function of it",
    "custom_vjp_call": "its author has defined reverse mode alone",
    "hessenberg": "not given, as in JAX: the reflections are not continuous where a column below the diagonal is zero",
    "tridiagonal": "not given, as in JAX: the reflections are not continuous where a column below the diagonal is zero",
    "schur": "not given, as in JAX: the order of the eigenvalues, and vectors where they meet, are not continuous",
}
# What a derivative is by convention, where it is not that of the values.
CONVENTIONS = {
    "stop_gradient": "zero, which is what it is for",
    "reduce_precision": "that of the identity, as in JAX",
    "sign": "zero, at complex numbers too, as in JAX",
}
# Programs do not show these by make_jaxpr: they stand in the reverse of a `while_loop`, run outside of programs, or are left out as they do nothing.
UNSEEN = {"tape_len", "empty_tape", "xla_pmap", "shard_map", "custom_lin"}


def as_dtype(x, dtype):
    """The example's numbers in another dtype: integers from 1 on, booleans of both kinds, complex numbers off the axes."""
    if dtype == "bool":
        return x > np.median(x)
    if dtype.startswith(("int", "uint")):
        return np.clip(np.floor(np.abs(x) * 2) + 1, 1, 100).astype(dtype)
    if dtype.startswith("complex"):
        return (x + 0.25j * np.cos(3 * x)).astype(dtype)
    return x if dtype == "bfloat16" else x.astype(dtype)


def inexact(x):
    return np.issubdtype(x.dtype, np.inexact) or str(x.dtype) == "bfloat16"


class Case:
    """A primitive's example with its data in one dtype, as a function of the data."""

    def __init__(self, jax, example, dtype):
        self.jax, self.dtype, self.example = jax, dtype, example
        args = [jax.numpy.asarray(a) for a in example.args]
        for k in example.data:
            args[k] = jax.numpy.asarray(as_dtype(np.asarray(example.args[k]), dtype), dtype)
        self.args = args
        self.xs = tuple(args[k] for k in example.data)
        self.wide = "complex128" if dtype.startswith("complex") else "float64"
        self.tol = {"float16": 3e-2, "bfloat16": 2e-1, "float32": 2e-3, "complex64": 2e-3}.get(dtype, 1e-5)

    def f(self, *xs):
        args = list(self.args)
        for k, x in zip(self.example.data, xs, strict=True):
            args[k] = x
        return [y for y in self.jax.tree_util.tree_leaves(self.example.f(*args)) if hasattr(y, "dtype")]

    def loss(self, *xs):
        """A real number that depends on all results, twice differentiable where they are."""
        jnp, total = self.jax.numpy, 0.0
        for y in self.f(*xs):
            if inexact(y):
                y = y.astype("complex128" if np.issubdtype(y.dtype, np.complexfloating) else "float64")
                w = np.cos(np.arange(y.size, dtype=float)).reshape(y.shape)
                total = total + jnp.sum(jnp.real(y) * w) + 0.5 * jnp.sum(jnp.real(y * jnp.conj(y)))
        return total

    def directions(self, seed=1):
        rng = np.random.default_rng(seed)
        out = []
        for x in self.xs:
            t = rng.standard_normal(x.shape)
            t = t + 1j * rng.standard_normal(x.shape) if self.dtype.startswith("complex") else t
            out.append(self.jax.numpy.asarray(t, x.dtype))
        return tuple(out)

    def widened(self):
        """The same example with its data, as they are rounded in the narrow dtype, in double precision."""
        case = Case(self.jax, Example(self.example.means, self.example.args, self.example.data), self.wide)
        case.xs = tuple(x.astype(self.wide) for x in self.xs)
        for k, x in zip(case.example.data, case.xs, strict=True):
            case.args[k] = x
        return case

    def close(self, got, want, tol=None):
        tol = tol or self.tol * self.example.slack
        for g, w in zip(got, want, strict=True):
            g, w = wide(g), wide(w)
            size = np.abs(w)
            scale = np.max(size, initial=1.0, where=np.isfinite(size))
            with np.errstate(invalid="ignore"):
                near = g.shape == w.shape and (np.abs(g - w) <= tol * (scale + size)).all()
            if not near:  # a NaN or an infinity, or an error to report
                np.testing.assert_allclose(g, w, rtol=tol, atol=tol * scale)

    # ---- what each column tries

    def eval(self):
        assert self.f(*self.xs), "no result"

    def jit(self):
        if self.example.impure:
            assert [y.shape for y in self.jax.jit(self.f)(*self.xs)] == [y.shape for y in self.f(*self.xs)]
            return
        for g, w in zip(self.jax.jit(self.f)(*self.xs), self.f(*self.xs), strict=True):
            np.testing.assert_array_equal(bits(self.jax, g), bits(self.jax, w))

    def lanes(self):
        scale = [np.asarray([1, 0.99, 1.01]).reshape((3,) + (1,) * x.ndim) for x in self.xs]
        if not inexact(self.xs[0]):
            return tuple(self.jax.numpy.stack([x, x, x]) for x in self.xs)
        return tuple((x[None].astype(self.wide) * s).astype(x.dtype) for x, s in zip(self.xs, scale, strict=True))

    def vmap(self):
        if not self.xs:
            lanes, want = self.jax.vmap(lambda _: self.f())(np.zeros(3)), self.f()
            for y, w in zip(lanes, want, strict=True):
                assert (y.shape, y.dtype) == ((3, *w.shape), w.dtype)
                for i in range(0 if self.example.impure else 3):
                    np.testing.assert_array_equal(bits(self.jax, y)[i], bits(self.jax, w))
            return
        xs = self.lanes()
        got = self.jax.vmap(self.f)(*xs)
        for i in range(3):
            want = self.f(*(x[i] for x in xs))
            self.close([bits(self.jax, y)[i] for y in got], [bits(self.jax, y) for y in want], max(self.tol / 50, 1e-6))

    def differences(self, ts):
        """Tangents of the results along these directions, in double precision."""
        case, h = self.widened(), 1e-6
        ts = [t.astype(self.wide) for t in ts]
        at = lambda s: [wide(y) for y in case.f(*(x + s * h * t for x, t in zip(case.xs, ts, strict=True)))]
        return [(a - b) / (2 * h) for a, b in zip(at(1), at(-1), strict=True)]

    def jvp(self):
        ts = self.directions()
        ys, tangents = self.jax.jvp(self.f, self.xs, ts)
        pairs = [(t, w) for t, w, y in zip(tangents, self.differences(ts), ys, strict=True) if inexact(y)]
        self.close([t for t, _ in pairs], [w for _, w in pairs])

    def vjp(self):
        ts = self.directions(2)
        ys, pull = self.jax.vjp(self.f, *self.xs)
        rng = np.random.default_rng(3)
        cts = []
        for y in ys:
            c = rng.standard_normal(y.shape)
            if inexact(y):
                c = c + 1j * rng.standard_normal(y.shape) if np.issubdtype(y.dtype, np.complexfloating) else c
                cts.append(self.jax.numpy.asarray(c, y.dtype))
            else:
                cts.append(np.zeros(y.shape, self.jax.dtypes.float0))
        back = pull(cts)
        pair = lambda cs, ts: sum(np.sum(wide(c) * wide(t)).real for c, t in zip(cs, ts, strict=True) if c.dtype != self.jax.dtypes.float0)
        size = sum(np.sum(np.abs(wide(c) * wide(t))) for c, t in zip(back, ts, strict=True))
        got, want = pair(back, ts), pair(cts, self.differences(ts))
        assert abs(got - want) <= 2 * self.tol * self.example.slack * (1 + size), (got, want)

    def grad(self, *xs):
        return self.jax.grad(self.loss, tuple(range(len(xs))))(*xs)

    @functools.cached_property
    def grads_of_lanes(self):
        return [self.grad(*(x[i] for x in self.lanes())) for i in range(3)]

    def vmap_grad(self):
        got = self.jax.vmap(self.grad)(*self.lanes())
        for i, want in enumerate(self.grads_of_lanes):
            self.close([g[i] for g in got], want, self.tol)

    def grad_vmap(self):
        xs = self.lanes()
        got = self.jax.grad(lambda *xs: self.jax.numpy.sum(self.jax.vmap(self.loss)(*xs)), tuple(range(len(xs))))(*xs)
        for i, want in enumerate(self.grads_of_lanes):
            self.close([g[i] for g in got], want, self.tol)

    def hessian(self):
        if self.dtype.startswith("complex"):
            got = self.jax.jvp(self.grad, self.xs, self.directions(4))[1]
        else:
            h = self.jax.hessian(self.loss, tuple(range(len(self.xs))))(*self.xs)
            ts = self.directions(4)
            got = [sum(np.tensordot(wide(b), wide(t), t.ndim) for b, t in zip(row, ts, strict=True)) for row in h]
        case = self.widened()
        ts = [t.astype(self.wide) for t in self.directions(4)]
        step = 1e-6
        at = lambda s: [wide(g) for g in case.grad(*(x + s * step * t for x, t in zip(case.xs, ts, strict=True)))]
        want = [(a - b) / (2 * step) for a, b in zip(at(1), at(-1), strict=True)]
        self.close(got, want, self.tol * 10 * self.example.slack)


def wide(x):
    x = np.asarray(x)
    return x.astype(np.complex128 if np.issubdtype(x.dtype, np.complexfloating) else np.float64)


def bits(jax, x):
    """Keys as the numbers they hold."""
    return np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)


class Example:
    """f(*args); those at `data` are taken to every dtype.

    slack: by how much tolerances are wider. means: the function whose derivative f has by convention. within: the function of one lane, for primitives that
    ask for an axis by its name. impure: every call gives another result.
    """

    def __init__(self, f, args, data=None, slack=1, means=None, within=None, impure=False):
        self.f, self.args, self.slack, self.means, self.within, self.impure = f, args, slack, means or f, within, impure
        self.data = tuple(k for k, a in enumerate(args) if np.asarray(a).dtype == np.float64) if data is None else data


def inner(jaxpr):
    """The names of all primitives in a program."""
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        for value in eqn.params.values():
            for sub in value if isinstance(value, (tuple, list)) else (value,):
                sub = getattr(sub, "jaxpr", sub)
                if hasattr(sub, "eqns"):
                    yield from inner(sub)


def table_of_examples(jax):
    """{primitive: example}"""
    found = {}
    for name, f, args, *options in more(jax, floats, ints):
        found[name] = Example(f, args, *options[:1], **(options[1] if len(options) > 1 else {}))
    for e in examples(jax).values():
        if e.args and np.asarray(e.args[0]).size:
            found.setdefault(e.primitive, Example(e.f, e.args))
    return found


def outcome(case, transform):
    try:
        getattr(case, transform.replace("(", "_").replace(")", ""))()
    except AssertionError as e:
        return f"wrong: {' '.join(str(e).split())[:300]}"
    except Exception as e:
        return f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
    return HOLDS


def taken(jax, name, example):
    """{dtype: (the case, its program)}; None for a dtype that the primitive does not take."""
    out = {}
    kinds = [d for dtypes in CLASSES.values() for d in dtypes] if example.data else ["float64"]
    for dtype in kinds:
        out[dtype] = None
        try:
            case = Case(jax, example, dtype)
            program = jax.make_jaxpr(case.f)(*case.xs)
            shown = jax.make_jaxpr(example.within, axis_env=[("i", 2)])(*case.xs) if example.within else program
        except (TypeError, ValueError, NotImplementedError):
            continue
        if name in UNSEEN | set(inner(shown.jaxpr)):
            out[dtype] = case, program
    return out


def observed(case, program):
    """{transform: what was seen}"""
    seen = {t: outcome(case, t) for t in PLAIN}
    smooth = case.example.data and inexact(case.xs[0]) and any(inexact(v.aval) for v in program.jaxpr.outvars)
    for t in TRANSFORMS[3:]:
        seen[t] = outcome(case, t) if smooth else NONE
    return seen


def row(jax, name, example, turn=None):
    """{dtype: {transform: what was seen}}; None for a dtype that the primitive does not take.

    With a turn, one dtype of each class runs, chosen by it, for all of its class that are taken.
    """
    cases = taken(jax, name, example)
    out = dict.fromkeys(cases)
    for dtypes in CLASSES.values():
        kinds = [d for d in dtypes if cases.get(d)]
        if turn is None:
            out.update((d, observed(*cases[d])) for d in kinds)
        elif kinds:
            out.update(dict.fromkeys(kinds, observed(*cases[kinds[turn % len(kinds)]])))
    return out


def matrix(jax, only=None, every_dtype=True):
    """{primitive: {dtype: {transform: what was seen}}}; else of one dtype for each class, in turn from one primitive to the next."""
    core = importlib.import_module(f"{jax.__name__}._core")
    importlib.import_module(f"{jax.__name__}.experimental")
    table = table_of_examples(jax)
    with wide_types(jax), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        names = [name for name, _, _ in core.primitives() if only is None or name in only]
        turns = (None if every_dtype else turn for turn in range(len(names)))
        return {name: row(jax, name, table[name], turn) if name in table else None for name, turn in zip(names, turns, strict=True)}


@contextlib.contextmanager
def wide_types(jax):
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def marks(name, dtypes, seen):
    """The cell of one transform for the dtypes of a class."""
    got = {seen[d] for d in dtypes}
    if len(got) == 1 and got <= {HOLDS, NONE}:
        return got.pop()
    if name in REASONS and all(s in (HOLDS, NONE) or not s.startswith("wrong") for s in got):
        return REFUSED
    if name in CONVENTIONS:
        return f"{HOLDS}*"
    return "HOLE: " + "; ".join(sorted(f"{d}: {seen[d]}" for d in dtypes if seen[d] not in (HOLDS, NONE)))


def rows(table):
    """(primitive, dtypes, cells) for every class that a primitive takes; classes with equal cells stand together."""
    for name, kinds in table.items():
        if not kinds or not any(kinds.values()):
            yield name, (), ("HOLE: no example",) * len(TRANSFORMS)
            continue
        groups = {}
        if len(kinds) == 1:
            (seen,) = kinds.values()
            groups[tuple(marks(name, ["float64"], {"float64": seen[t]}) for t in TRANSFORMS)] = ["no data"]
        else:
            for kind, dtypes in CLASSES.items():
                taken = [d for d in dtypes if kinds[d]]
                if taken:
                    cells = tuple(marks(name, taken, {d: kinds[d][t] for d in taken}) for t in TRANSFORMS)
                    groups.setdefault(cells, []).append(kind if len(taken) == len(dtypes) else " ".join(taken))
        for cells, what in groups.items():
            yield name, tuple(what), cells


def holes(table):
    return [f"{name} {', '.join(what)} {t}: {c}" for name, what, cells in rows(table) for t, c in zip(TRANSFORMS, cells, strict=True) if c.startswith("HOLE")]


def page(table):
    classes = "; ".join(f"{kind}: {', '.join(dtypes)}" for kind, dtypes in CLASSES.items())
    lines = [
        "# Rules",
        "",
        "Every primitive under every transform, for every class of dtypes that it takes. Written by `python tests/rules.py` from the running library;",
        "`tests/docs/test_rules.py` proves that it is up to date.",
        "",
        f"- `{HOLDS}`: an example ran, and its values are those of eager evaluation; derivatives are those of differences in double precision, forward and",
        "  reverse mode agree, and lanes are a loop.",
        f"- `{NONE}`: there is nothing to differentiate: operands or results are integers, booleans, keys.",
        f"- `{REFUSED}`: refused; the reason is given below. `{HOLDS}*`: by a convention, given below.",
        f"- Classes: {classes}. A class that is not listed is refused by the primitive itself. `no data`: it has no operands to take to other dtypes.",
        "",
        f"| primitive | of | {' | '.join(TRANSFORMS)} |",
        "|---" * (len(TRANSFORMS) + 2) + "|",
    ]
    last = None
    for name, what, cells in rows(table):
        lines.append(f"| {'' if name == last else f'`{name}`'} | {', '.join(what)} | {' | '.join(cells)} |")
        last = name
    lines += ["", "Refused:", "", *(f"- `{name}`: {why}." for name, why in REASONS.items())]
    lines += ["", "By convention, the derivative is:", "", *(f"- of `{name}`: {why}." for name, why in CONVENTIONS.items()), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    import ferrax

    table = matrix(ferrax, set(sys.argv[1:]) or None)
    print(*holes(table), sep="\n")
    if not sys.argv[1:]:
        PAGE.write_text(page(table))
