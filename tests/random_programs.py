"""Random programs: lines of Python over values of any shape and dtype, as hypothesis draws them.

A line is made from a template, whose {words} are drawn: an operand of some kind, or a parameter that fits the operands before it on the line.

    x2 = n.sum(x0, axis=(0,), keepdims=True)
    x3 = n.logaddexp(x1, x2)

A loop has such lines as its body: `scan`, `fori_loop` or `while_loop` over carries of any shape and dtype, that updates, reads, moves and converts
them, writes to references made of them, and gives back what it passes on, reads or computes.

Invariant: each line runs on the library under test, and no value is large.
"""

import re

import numpy as np
from hypothesis import strategies as st

UNARY = "sin cos tanh exp log1p arctan sqrt square abs negative sign expm1 arcsinh log cbrt isfinite isnan reciprocal exp2 sinc positive conj".split()
BINARY = "add subtract multiply divide maximum minimum arctan2 power hypot logaddexp logaddexp2 equal less greater_equal not_equal logical_and float_power fmax".split()
BITS = "bitwise_and bitwise_or bitwise_xor left_shift right_shift".split()
REDUCTIONS = "sum mean max min prod any all std var argmax argmin count_nonzero nansum nanmean median".split()
ONE_AXIS = {"argmax", "argmin"}
CUMULATIVE = "cumsum cumprod nancumsum".split()
ACTIVATIONS = "relu sigmoid softplus silu elu gelu leaky_relu selu soft_sign log_sigmoid".split()
DTYPES = "float32 float64 int32 int64 uint8 bool".split()
WHOLE = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
NARROW_INTS = "uint2 int4 uint4".split()
NARROW_FLOATS = "float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e3m4 float4_e2m1fn".split()

TEMPLATES = """
n.{unary}({any})
n.{unary}({float})
nn.{activation}({float})
n.{binary}({any}, {fits})
n.{binary}({float}, {fits})
n.{binary}({any}, {number})
n.{binary}({number}, {any})
n.{bits}({int}, {int_that_fits})
n.{reduction}({any}, axis={axes}, keepdims={flag})
n.{cumulative}({ranked}, axis={axis})
{any}.reshape({sizes})
n.transpose({any}, {permutation})
n.expand_dims({any}, {new_axis})
{ranked}[{index}]
{filled}[{position}]
n.take({filled}, n.abs({int}) % {0}.shape[-1], axis=-1)
n.concatenate([{ranked}, {alike}], axis={axis})
n.stack([{any}, {alike}])
n.where({any} > 0, {fits}, {fits})
n.sort({ranked}, axis={axis})
n.argsort({ranked}, axis={axis})
n.flip({ranked}, axis={axis})
n.roll({ranked}, {small}, axis={axis})
n.repeat({ranked}, 2, axis={axis})
n.tile({any}, (2, 1))
n.diff({ranked}, axis={axis})
n.broadcast_to({any}, (2, *{0}.shape))
n.matmul({ranked}, {contracts})
n.tensordot({any}, {any}, 0)
n.einsum('{letters}->{some_letters}', {any_lettered})
{filled}.at[{position}].{update}({number})
{filled}.at[n.abs({int}) % {0}.shape[0]].add(1)
n.pad({filled}, {small}, mode={pad_mode})
n.clip({real}, -0.5, 0.75)
{real}.astype({dtype})
n.clip(n.nan_to_num({real}), 0, 1).astype({narrow_int}).astype({dtype})
n.flip(n.clip(n.nan_to_num({real_ranked}), 0, 1).astype({narrow_int}), axis={axis}).astype('int32')
(n.clip(n.nan_to_num({real}), 0, 1).astype({narrow_int}) * 3 + 1).astype('int32')
{real}.astype('float32').astype({narrow_float}).astype('float32')
n.sin({float}.astype('float32').astype({narrow_float})).astype('float32')
n.where({any} > 0, {fits}.astype('float32').astype({narrow_float}), 1).astype('float32')
n.concatenate([{float_ranked}.astype('float32').astype({narrow_float}), n.zeros_like({alike}, {narrow_float})], axis={axis}).astype('float32')
lax.fori_loop(0, {small}, lambda i, v: v * v, {float}.astype('float32').astype({narrow_float})).astype('float32')
n.tril({matrix})
n.diagonal({matrix})
nn.softmax({float_ranked}, axis={axis})
nn.logsumexp({float_ranked}, axis={axis})
nn.one_hot({int}, 3)
lax.cummax({real_ranked}, axis={forward_axis}, reverse={flag})
lax.top_k({float_filled}, 1)[0]
lax.dynamic_slice({filled}, [n.sum({int}).astype('int32')] * {0}.ndim, {slice_sizes})
lax.rev({ranked}, ({forward_axis},))
lax.cond(n.sum({any}) > 0, n.sin, lambda v: v * 2, {float})
lax.fori_loop(0, {small}, lambda i, v: n.cos(v) * 0.5 + i, {float})
lax.scan(lambda c, v: (n.tanh(c / 2 + n.sum(v)), c * v), n.sum({float_ranked} * 0), {0}, reverse={flag})[1]
lax.scan(lambda c, v: (c + v, n.sum(c)), {float_ranked}[:1].sum(0), {0})[0]
lax.while_loop(lambda v: abs(n.sum(v * v) - 5000) < 4999, lambda v: v / 2, {float})
jax.vmap(lambda v: n.sum(n.tanh(v)) * v)({float_ranked})
jax.grad(lambda v: n.sum(n.sin(v) * v))({float})
jax.jit(lambda v: n.sin(v) / (1 + v * v))({float})
jax.checkpoint(lambda v: n.sin(n.cos(v)))({float})
""".strip().splitlines()

MOST = 200  # elements of a value

# Lines of the bodies of loops. Integers wrap and change their width, arrays are updated and read where the loop's own numbers say.
BODY_TEMPLATES = """
{any} + {fits}
{real} - {fits}
{float} * 0.5 - {fits}
n.sin({float})
n.{unary_of_bodies}({float})
n.where({real} > {number}, {fits}, {fits})
n.maximum({real}, {fits})
n.minimum({real}, {number})
({real} >= {fits}).astype({whole})
{whole_number} * 3 + {int_that_fits}
({whole_number} - {int_that_fits}).astype({whole})
{whole_number}.astype({whole}).astype({whole})
({whole_number} << {small}) ^ ({0} >> 1)
{whole_number} // ({int_that_fits} | 1)
{whole_number} % ({int_that_fits} | 1)
n.arange({ranked}.shape[0], dtype={whole}) - {counter}.astype({same_whole})
(n.arange({ranked}.shape[0], dtype={whole}) - {scalar_int}.astype({same_whole})).astype({whole})
{int_ranked} + (n.arange({0}.shape[0], dtype={whole}) * {number_of_steps} - {scalar_int}.astype({same_whole})).astype({0}.dtype)[..., *[None] * ({0}.ndim - 1)]
{filled}[(n.arange({0}.shape[0], dtype={whole}) - {scalar_int}.astype({same_whole})) % {0}.shape[0]]
n.arange({ranked}.shape[0]).astype({whole}) * 2 - {counter}
{real}.astype({float_dtype})
{filled}.at[{place}].{update}({number})
{filled}.at[{place}].{update}({alike_filled}[{same_place}])
{filled}.at[{position}].{update}({alike_filled}[{same_position}])
{filled}.at[{counter} % {0}.shape[0]].{update}({number})
{filled}.at[-1 - {counter} % {0}.shape[0]].{update}({0}[0])
{filled}.at[{counter}].{update}({0}[-1], mode={mode})
{matrix_filled}.at[:, {counter} % {0}.shape[1]].{update}({0}[:, 0])
{matrix_filled}.at[{place}, {counter} % {0}.shape[1]].{update}({number})
{filled}.at[n.arange({0}.shape[0])[::-1]].{update}({alike_filled})
{filled}.at[n.abs({int}.astype('int32')) % {0}.shape[0]].{update}({number})
{filled}[{counter} % {0}.shape[0]]
n.take({filled}, n.abs({int}.astype('int32')) % {0}.shape[0], axis=0)
lax.dynamic_slice({filled}, [{counter}] * {0}.ndim, {slice_sizes})
lax.dynamic_update_slice({filled}, {alike_filled}[: {part}], [{counter}] + [0] * ({0}.ndim - 1))
lax.dynamic_update_slice({filled}, {0}[: {part}] * 2, [{counter} - 1] + [0] * ({0}.ndim - 1))
n.roll({ranked}, {small}, axis={axis})
n.roll({ranked}, {counter}, axis={axis})
n.flip({ranked}, axis={axis})
n.concatenate([{ranked}[1:], {0}[:1]])
n.concatenate([{filled}[: {part}], {alike_filled}[{same_part} :]])
{ranked}[1:] + {0}[:-1]
n.pad({ranked}[1:], [(1, 0)] + [(0, 0)] * ({0}.ndim - 1))
n.expand_dims({any}, 0).at[{counter}].add({0})
lax.reduce_window({float_filled}, 0.0, lax.add, (2,) * {0}.ndim, (1,) * {0}.ndim, 'SAME')
n.{cumulative}({float_ranked}, axis={axis})
n.{reduction_of_bodies}({real}, axis={axes})
n.transpose({matrix})
lax.cond({counter} % 2 == 0, lambda v: v, lambda v: v[::-1], {ranked})
lax.fori_loop(0, {small}, lambda i, v: v + i.astype(v.dtype), {any})
lax.fori_loop(0, {small}, lambda i, v: v.at[i % v.shape[0]].{update}(v[-1]), {filled})
[r := jax.new_ref({filled}), r.__setitem__({place}, {0}[-1]), r[...]][-1]
[r := jax.new_ref({filled}), r.__setitem__({counter} % {0}.shape[0], {0}[0]), r[...]][-1]
[r := jax.new_ref({filled}), r.__setitem__({position}, {0}[0]), r[{counter} % {0}.shape[0]]][-1]
[r := jax.new_ref({filled}), lax.fori_loop(0, {small}, lambda i, c: (r.__setitem__(i % {0}.shape[0], r[0] + r[-1]), c)[1], 0), r[...]][-1]
[r := jax.new_ref({filled}), lax.cond({counter} % 2 == 0, lambda: r.__setitem__(0, {0}[-1]), lambda: None), r[...]][-1]
""".strip().splitlines()


class Lines:
    """A program: its inputs, its lines, and the values they have on the library under test."""

    def __init__(self, jax, inputs, most=MOST):
        self.jax, self.inputs, self.lines, self.most = jax, inputs, [], most
        self.values = [jax.numpy.asarray(x) for x in inputs]

    def __repr__(self):
        head = [f"x{i} = {x.dtype}{list(x.shape)}" for i, x in enumerate(self.inputs)]
        return "\n    ".join(["", *head, *(f"x{i} = {line}" for i, line in enumerate(self.lines, len(self.inputs)))]) + "\n"

    def on(self, jax):
        """The program as a function of its inputs, that gives the values of its lines, on either library."""
        codes = [compile(line, line, "eval") for line in self.lines]
        names = dict(jax=jax, n=jax.numpy, nn=jax.nn, lax=jax.lax)

        def run(*xs):
            values = {f"x{i}": x for i, x in enumerate(xs)}
            for i, code in enumerate(codes, len(xs)):
                values[f"x{i}"] = eval(code, {**names, **values})
            return [values[f"x{i}"] for i in range(len(xs), len(values))]

        return run

    def append(self, line):
        """Whether the line runs and stays small; then it is the program's next."""
        names = {f"x{i}": x for i, x in enumerate(self.values)}
        try:
            value = eval(line, dict(jax=self.jax, n=self.jax.numpy, nn=self.jax.nn, lax=self.jax.lax, **names))
        except (TypeError, ValueError, IndexError, OverflowError):
            return False
        if value.size > self.most:
            return False
        self.lines.append(line)
        self.values.append(value)
        return True


def is_float(x):
    return x.dtype.kind == "f"


KINDS = {
    "any": lambda x: True,
    "float": is_float,
    "int": lambda x: x.dtype.kind in "iu",
    "real": lambda x: x.dtype.kind != "c",
    "ranked": lambda x: x.ndim > 0,
    "filled": lambda x: x.ndim > 0 and x.size > 0,
    "matrix": lambda x: x.ndim >= 2,
    "float_ranked": lambda x: is_float(x) and x.ndim > 0,
    "float_filled": lambda x: is_float(x) and x.ndim > 0 and x.size > 0,
    "real_ranked": lambda x: x.dtype.kind in "fiu" and x.ndim > 0,
    "whole_number": lambda x: x.dtype.kind in "iu",
    "scalar_int": lambda x: x.dtype.kind in "iu" and x.ndim == 0,
    "int_ranked": lambda x: x.dtype.kind in "iu" and x.ndim > 0,
    "counter": lambda x: x.dtype == np.int32 and x.ndim == 0,
    "matrix_filled": lambda x: x.ndim >= 2 and x.size > 0,
}


def broadcasts(*xs):
    try:
        np.broadcast_shapes(*(x.shape for x in xs))
        return True
    except ValueError:
        return False


# Operands that fit those before them on the line.
BESIDE = {
    "fits": lambda x, before: broadcasts(x, *before),
    "int_that_fits": lambda x, before: x.dtype.kind in "iu" and broadcasts(x, *before),
    "alike": lambda x, before: x.shape == before[0].shape,
    "alike_filled": lambda x, before: x.shape == before[0].shape,
    "contracts": lambda x, before: x.ndim > 0 and x.shape[max(x.ndim - 2, 0)] == before[0].shape[-1],
}


def one_of(words):
    return lambda draw, x: draw(st.sampled_from(words))


def index(draw, x):
    entries = []
    for size in x.shape[: draw(st.integers(1, x.ndim))]:
        entry = draw(st.integers(-size, size - 1) | st.slices(size) | st.none()) if size else draw(st.slices(size))
        entries += [entry, slice(None)] if entry is None else [entry]
    return repr(tuple(entries))


def axes(draw, x, reduction):
    if x.ndim == 0 or draw(st.booleans()):
        return None
    if reduction in ONE_AXIS or draw(st.booleans()):
        return draw(st.integers(-x.ndim, x.ndim - 1))
    return tuple(draw(st.lists(st.integers(0, x.ndim - 1), min_size=1, max_size=x.ndim, unique=True)))


# Parameters; x is the first operand of the line, or None where none was drawn yet.
PARAMETERS = {
    "unary": one_of(UNARY),
    "binary": one_of(BINARY),
    "bits": one_of(BITS),
    "reduction": one_of(REDUCTIONS),
    "cumulative": one_of(CUMULATIVE),
    "activation": one_of(ACTIVATIONS),
    "update": one_of(["set", "add", "multiply", "min", "max"]),
    "dtype": lambda draw, x: repr(draw(st.sampled_from(DTYPES))),
    "narrow_int": lambda draw, x: repr(draw(st.sampled_from(NARROW_INTS))),
    "narrow_float": lambda draw, x: repr(draw(st.sampled_from(NARROW_FLOATS))),
    "number": one_of([2, 3, 0.5, -1, 1, 0, True, 2.5]),
    "small": one_of([0, 1, 2]),
    "flag": one_of([False, True]),
    "pad_mode": lambda draw, x: repr(draw(st.sampled_from(["constant", "edge", "reflect", "wrap"]))),
    "axis": lambda draw, x: draw(st.integers(-x.ndim, x.ndim - 1)),
    "forward_axis": lambda draw, x: draw(st.integers(0, x.ndim - 1)),
    "new_axis": lambda draw, x: draw(st.integers(-x.ndim - 1, x.ndim)),
    "permutation": lambda draw, x: draw(st.permutations(range(x.ndim))),
    "sizes": lambda draw, x: draw(st.sampled_from([(-1,), (x.size, 1), (1, x.size)] + [(k, x.size // k) for k in (2, 3) if x.size % k == 0])),
    "index": index,
    "position": one_of([0, -1, "slice(0, 2)", "slice(None, None, 2)", "..."]),
    "whole": lambda draw, x: repr(draw(st.sampled_from(WHOLE))),
    "float_dtype": one_of(["'float32'", "'float64'"]),
    "unary_of_bodies": one_of(["cos", "tanh", "abs", "negative", "floor", "sign"]),
    "reduction_of_bodies": one_of(["sum", "max", "min", "mean", "any"]),
    "number_of_steps": one_of([1, 2, 3, -1]),
    "mode": one_of(["'drop'", "'clip'"]),
    "place": lambda draw, x: draw(st.integers(-x.shape[0], x.shape[0] - 1)),
    "part": lambda draw, x: draw(st.integers(0, x.shape[0])),
    "slice_sizes": lambda draw, x: [draw(st.integers(0, size)) for size in x.shape],
}


def line(draw, template, values):
    """The template filled in; None where no operand fits."""
    chosen, words = [], {}

    def operand(fits):
        indices = [i for i, x in enumerate(values) if fits(x)]
        if not indices:
            raise LookupError
        i = draw(st.sampled_from([*indices[:-4:-1], *indices[::-1]]))  # often what was made last
        chosen.append(values[i])
        return f"x{i}"

    def word(match):
        name = match[1]
        if name == "0" or name.startswith("same_"):
            return words[name.removeprefix("same_")]
        if name == "letters":
            operand(lambda x: 0 < x.ndim < 5)
            words["any_lettered"] = f"x{next(i for i, x in enumerate(values) if x is chosen[0])}"
            words["letters"] = "abcd"[: chosen[0].ndim]
            return words["letters"]
        if name == "some_letters":
            return "".join(draw(st.lists(st.sampled_from(words["letters"]), unique=True)))
        if name == "any_lettered":
            return words[name]
        if name == "axes":
            return str(axes(draw, chosen[0], words["reduction"]))
        if name in KINDS:
            text = operand(KINDS[name])
            words.setdefault("0", text)
        elif name in BESIDE:
            text = operand(lambda x: BESIDE[name](x, chosen))
        else:
            text = str(PARAMETERS[name](draw, chosen[0] if chosen else None))
            words[name] = text
        return text

    try:
        return re.sub(r"\{(\w+)\}", word, template)
    except LookupError:
        return None


def value(draw, shape, dtype):
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0 if dtype.startswith("u") else -4, 6, shape).astype(dtype)


SMALL = st.lists(st.integers(1, 4), max_size=3).map(tuple)


@st.composite
def programs(draw, jax, most=6, shapes=SMALL, floats=DTYPES[:2]):
    """A program of up to `most` lines over up to three inputs, the first of which is of floats. 64-bit types are on."""
    inputs = []
    for i in range(draw(st.integers(1, 3))):
        inputs.append(value(draw, draw(shapes), draw(st.sampled_from([*floats, *DTYPES[2:]] if i else floats))))
    program = Lines(jax, inputs)
    for _ in range(draw(st.integers(2, most))):
        text = line(draw, draw(st.sampled_from(TEMPLATES)), program.values)
        if text is not None:
            program.append(text)
    return program


def lanes(draw, program):
    """For each input the axis it is mapped over, None for some, and a batch of it."""
    n = draw(st.integers(1, 3))
    in_axes = [draw(st.none() | st.integers(0, x.ndim)) for x in program.inputs]
    if all(a is None for a in in_axes):
        in_axes[0] = 0
    batch = [x if a is None else np.stack([value(draw, x.shape, x.dtype.name) for _ in range(n)], a) for x, a in zip(program.inputs, in_axes, strict=True)]
    return n, tuple(in_axes), batch


# Around every vector's length and every block's.
SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 65, 127, 128, 129]
LONGEST = 300  # elements of a value in a loop


@st.composite
def shapes_of_all_sizes(draw, longest=LONGEST):
    n, few = draw(st.sampled_from(SIZES)), draw(st.integers(0, 4))
    return draw(st.sampled_from([(), (n,), (n,), (n,), (few, n), (n, few), (2, few, 3)]).filter(lambda s: np.prod(s) <= longest))


def all_programs(jax, **options):
    """Programs over small arrays, and over arrays of sizes around every vector's length, empty ones too."""
    return programs(jax, shapes=SMALL | shapes_of_all_sizes(MOST), **options)


def any_value(draw, shape, dtype):
    """Numbers of all sizes that the dtype has, if it is one of integers."""
    if np.dtype(dtype).kind not in "iu" or draw(st.booleans()):
        return value(draw, shape, dtype)
    rng, bounds = np.random.default_rng(draw(st.integers(0, 2**16))), np.iinfo(dtype)
    return rng.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)


def fit(n, value, like):
    """The value in the shape and dtype of a carry."""
    return (value if value.shape == like.shape else n.resize(value, like.shape)).astype(like.dtype)


class Loop:
    """A loop as a function of its carries and of what it goes through."""

    def __init__(self, kind, body, carries, xs, length, reverse, following, outputs):
        self.kind, self.body, self.carries, self.xs = kind, body, carries, xs
        self.length, self.reverse, self.following, self.outputs = length, reverse, following, outputs

    @property
    def inputs(self):
        return [*self.carries, *self.xs]

    def __repr__(self):
        n, m = len(self.carries), len(self.xs)
        head = f"{self.kind}, {self.length} iterations{', in reverse' if self.reverse else ''}: x0 to x{n - 1} are carried"
        head += f", x{n} to x{n + m - 1} rows of arrays" if m else ""
        ends = [f"x{n + m} is the counter", f"carries become {[f'x{k}' for k in self.following]}", f"rows of results are {[f'x{k}' for k in self.outputs]}"]
        return f"\n    {head}{self.body!r}    " + "\n    ".join(ends) + "\n"

    def counts(self):
        """Whether the body reads the number of the iteration."""
        counter = len(self.inputs)
        return counter in (*self.following, *self.outputs) or any(re.search(rf"\bx{counter}\b", line) for line in self.body.lines)

    def step(self, jax):
        """One iteration, as a function of its number, the carries and the rows: the next carries and rows of results."""
        n, run = jax.numpy, self.body.on(jax)

        def step(i, carries, rows):
            values = [*carries, *rows, n.asarray(i, "int32")]
            values += run(*values)
            return tuple(fit(n, values[k], c) for k, c in zip(self.following, carries, strict=True)), tuple(values[k] for k in self.outputs)

        return step

    def by_steps(self, jax):
        """The results of the loop, by a loop of Python over operations that are run one by one."""
        step, count = self.step(jax), len(self.carries)

        def run(*inputs):
            carries, xs, made = inputs[:count], inputs[count:], []
            for i in range(self.length):
                row = self.length - 1 - i if self.reverse and self.kind == "scan" else i
                carries, ys = step(i, carries, tuple(x[row] for x in xs))
                made.append([np.asarray(y) for y in ys])
            if made and self.reverse:
                made.reverse()
            rows = (
                [np.stack(ys) for ys in zip(*made, strict=True)]
                if made
                else [np.zeros((0, *self.body.values[k].shape), self.body.values[k].dtype) for k in self.outputs]
            )
            return [*(np.asarray(c) for c in carries), *rows]

        return run

    def on(self, jax):
        """The loop on either library: its carries at the end, then its rows."""
        n, step, lax = jax.numpy, self.step(jax), jax.lax

        def scan(*inputs):
            carries, xs = inputs[: len(self.carries)], inputs[len(self.carries) :]
            if not self.counts():
                ended, ys = lax.scan(lambda c, rows: step(0, c, rows), tuple(carries), tuple(xs), length=self.length, reverse=self.reverse)
                return [*ended, *ys]
            (_, *carries), ys = lax.scan(
                lambda c, rows: (lambda made: ((c[0] + 1, *made[0]), made[1]))(step(c[0], c[1:], rows)),
                (n.zeros((), "int32"), *carries),
                tuple(xs),
                length=self.length,
                reverse=self.reverse,
            )
            return [*carries, *ys]

        def fori(*carries):
            return list(lax.fori_loop(0, self.length, lambda i, c: step(i, c, ())[0], carries))

        def loop(*carries):
            start = (n.zeros((), "int32"), *carries)
            return list(lax.while_loop(lambda c: c[0] < self.length, lambda c: (c[0] + 1, *step(c[0], c[1:], ())[0]), start))[1:]

        return {"scan": scan, "fori_loop": fori, "while_loop": loop}[self.kind]


@st.composite
def loops(draw, jax, dtypes=(*WHOLE, "float32", "float64", "bool"), most=8):
    """A loop of a few iterations, or of none. 64-bit types are on."""
    kind = draw(st.sampled_from(["scan", "scan", "fori_loop", "while_loop"]))
    length = draw(st.sampled_from([0, 1, 2, 3, 5, 9]))
    first, second = draw(shapes_of_all_sizes()), draw(shapes_of_all_sizes())
    shapes = st.sampled_from([first, first, second, first[:-1], (*second[:1], *first)]).filter(lambda shape: np.prod(shape) <= LONGEST)
    one = lambda *lead: any_value(draw, (*lead, *draw(shapes)), draw(st.sampled_from(dtypes)))
    carries = [one() for _ in range(draw(st.integers(1, 3)))]
    xs = [one(length) for _ in range(draw(st.integers(0, 2)))] if kind == "scan" else []
    # a body is drawn on rows of zeros where there are none
    rows = [x[0] if length else np.zeros(x.shape[1:], x.dtype) for x in xs]
    body = Lines(jax, [*carries, *rows, np.int32(0)], LONGEST)
    for _ in range(draw(st.integers(0, most))):
        templates = draw(st.lists(st.sampled_from(BODY_TEMPLATES), min_size=4, max_size=4))
        # the first that has operands here
        next((text for template in templates if (text := line(draw, template, body.values)) is not None and body.append(text)), None)
    # the last values are what was computed
    any_of = st.sampled_from(range(len(body.values))[::-1])
    # what has no elements fills nothing
    fills = lambda c: any_of.filter(lambda k: body.values[k].size > 0 or c.size == 0)
    alike = lambda c: st.sampled_from([k for k, v in enumerate(body.values) if v.shape == c.shape][::-1])
    following = [draw(fills(c) if draw(st.integers(0, 3)) == 3 else alike(c)) for c in carries]
    outputs = draw(st.lists(any_of, max_size=3)) if kind == "scan" else []
    return Loop(kind, body, carries, xs, length, draw(st.booleans()), following, outputs)
