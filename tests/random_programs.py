"""Random programs: lines of Python over values of any shape and dtype, as hypothesis draws them.

A line is made from a template, whose {words} are drawn: an operand of some kind, or a parameter that fits the operands before it on the line.

    x2 = n.sum(x0, axis=(0,), keepdims=True)
    x3 = n.logaddexp(x1, x2)

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


class Lines:
    """A program: its inputs, its lines, and the values they have on the library under test."""

    def __init__(self, jax, inputs):
        self.jax, self.inputs, self.lines = jax, inputs, []
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
        except (TypeError, ValueError, IndexError):
            return False
        if value.size > MOST:
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
    "slice_sizes": lambda draw, x: [draw(st.integers(0, size)) for size in x.shape],
}


def line(draw, template, values):
    """The template filled in; None where no operand fits."""
    chosen, words = [], {}

    def operand(fits):
        indices = [i for i, x in enumerate(values) if fits(x)]
        if not indices:
            raise LookupError
        i = draw(st.sampled_from(indices[::-1]))
        chosen.append(values[i])
        return f"x{i}"

    def word(match):
        name = match[1]
        if name == "0":
            return words["0"]
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


@st.composite
def programs(draw, jax, most=6):
    """A program of up to `most` lines over up to three inputs, the first of which is of floats. 64-bit types are on."""
    inputs = []
    for i in range(draw(st.integers(1, 3))):
        shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
        inputs.append(value(draw, shape, draw(st.sampled_from(DTYPES[: None if i else 2]))))
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
