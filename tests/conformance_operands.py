"""Operands and parameters of the conformance cases: what a field of a form is filled in with.

A field is words between braces. Of an operand they say its dtype, its shape and its values, each at most once and in any order:

    {real}   {float ranked}   {int32 2x3 0..4}   {= fits}   {inexact square spd}

`=` is the dtype of the first operand of the form, `same` its shape, `fits` a shape that broadcasts with it. Any other field is a parameter (`{axis}`, of the
first operand), a choice (`{1|2|None}`), or the name of an operand before it (`{0}`).

Invariant: what is drawn depends on the function's name and the number of the case alone.
"""

import ml_dtypes
import numpy as np

PYTHON = "a number of Python's"

# Dtypes by the word for them: those that are there in any case, and those that 64-bit types add. A dtype that stands twice is drawn twice as often.
DTYPES = {
    "bool": ("bool", ""),
    "int": ("int32 int32 uint8 int8 uint32 int16", "int64 int64 uint64"),
    "signed": ("int32 int32 int8 int16", "int64 int64"),
    "float": ("float32 float32 float32 bfloat16 float16", "float64 float64 float64"),
    "full": ("float32", "float64"),
    "complex": ("complex64", "complex128"),
    "real": ("float32 float32 float32 int32 int32 uint8 bfloat16 float16 int8 uint32", "float64 float64 int64"),
    "inexact": ("float32 float32 float32 complex64 bfloat16 float16", "float64 float64 complex128"),
    "fullinexact": ("float32 float32 complex64", "float64 float64 complex128"),
    "num": ("float32 float32 float32 int32 int32 uint8 complex64 bfloat16 float16 int8 uint32", "float64 float64 int64 complex128"),
    "fullnum": ("float32 float32 float32 int32 int32 uint8 complex64", "float64 float64 int64 complex128"),
    "any": ("float32 float32 float32 int32 int32 bool uint8 complex64 bfloat16 float16 int8 uint32", "float64 float64 int64 complex128 bool"),
}
DTYPES |= {name: (name, "") for names in DTYPES.values() for group in names for name in group.split()} | {"uint16": ("uint16", ""), "int64": ("int32", "int64")}
SHAPES = {
    "anyshape": [(), (3,), (3,), (2, 3), (2, 3), PYTHON, (1,), (0,), (2, 1, 3), (2, 0)],
    "array": [(), (3,), (3,), (2, 3), (2, 3), (1,), (0,), (2, 1, 3), (2, 0)],
    "ranked": [(3,), (3,), (2, 3), (2, 3), (1,), (0,), (2, 1, 3), (2, 0)],
    "filled": [(3,), (2, 3), (2, 3), (1,), (2, 1, 3), (4,)],
    "matrix": [(2, 3), (3, 3), (0, 2), (2, 2, 3), (1, 1), (3, 2)],
    "square": [(3, 3), (2, 2), (3, 3), (1, 1), (2, 3, 3)],
    "wide": [(2, 3), (3, 3), (1, 3), (2, 2, 3)],
    "tall": [(3, 2), (3, 3), (4, 1), (2, 3, 2)],
    "vector": [(4,), (4,), (1,), (5,), (3,)],
    "scalar": [(), PYTHON],
}
FLOAT_EDGES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 1e-3, 30.0, -30.0, 3.0, 1000.0, "max", "tiny"]
LANES = 12  # edges are taken from the list in turns, so that small arrays have some


def is_float(dtype):
    return np.dtype(dtype).kind == "f" or np.dtype(dtype) == ml_dtypes.bfloat16


def distinct(rng, shape, low, high):
    """Numbers that keep clear of each other."""
    n = int(np.prod(shape))
    return rng.permutation(low + (high - low) * (np.arange(n) + 0.37) / max(n, 1)).reshape(shape)


def edges(rng, shape, dtype):
    n = int(np.prod(shape))
    if is_float(dtype):
        info = ml_dtypes.finfo(dtype)
        values = [float(info.max) if e == "max" else float(info.tiny) if e == "tiny" else e for e in FLOAT_EDGES]
        with np.errstate(over="ignore"):
            return rng.permutation(np.array(values))[np.arange(n) % len(values)].reshape(shape).astype(dtype)
    info = np.iinfo(dtype)
    values = [0, 1, 2, 3, 7, info.max, info.min, info.max - 1] + [-1, -2, -3, info.min + 1] * (info.min < 0)
    return np.array([values[k] for k in rng.permutation(len(values))], dtype)[np.arange(n) % len(values)].reshape(shape)


def numbers(rng, shape, dtype, bounds, style):
    """An array; bounds: (low, high) or None; style: `tame` for distinct values of moderate size, `edges`, or the name of a property of matrices."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        if style == "edges" and bounds is None:
            return edges(rng, shape, dtype)
        low, high = (int(np.ceil(n)) for n in bounds or (-4, 6))
        low = max(low, 0) if dtype.kind == "u" else low
        return rng.integers(low, max(high, low + 1), shape).astype(dtype)
    low, high = bounds or (-2, 2)
    if dtype.kind == "c":
        x = distinct(rng, shape, low, high) + 1j * distinct(rng, shape, low, high)
        return x.astype(dtype)
    if style == "edges" and bounds is None:
        return edges(rng, shape, dtype)
    return distinct(rng, shape, low, high).astype(dtype)


# Properties of matrices, made of any matrices.
PROPERTIES = {
    "spd": lambda x: x @ np.conj(np.swapaxes(x, -1, -2)) + x.shape[-1] * np.eye(x.shape[-1]),
    "symmetric": lambda x: (x + np.conj(np.swapaxes(x, -1, -2))) / 2,
    "regular": lambda x: x + 3 * np.eye(*x.shape[-2:]),
    "lower": lambda x: np.tril(x) + 3 * np.eye(x.shape[-1]),
    "sorted": lambda x: np.sort(x, -1),
    "weights": lambda x: np.abs(x) / np.sum(np.abs(x), -1, keepdims=True),
}


def pick(rng, items):
    return items[int(rng.integers(len(items)))]


def broadcasting(rng, shape):
    """A shape that broadcasts with this one."""
    if shape == PYTHON or rng.random() < 0.4:
        return shape
    ones = tuple(1 if rng.random() < 0.4 else n for n in shape)
    return pick(rng, [(), shape[1:], ones, PYTHON])


class Draw:
    """One case in the making: its operands so far."""

    def __init__(self, rng, wide, tame):
        self.rng, self.wide, self.tame, self.operands = rng, wide, tame, []

    def dtype(self, word):
        if word == "=":
            first = self.operands[0]
            return first.dtype if hasattr(first, "dtype") else np.dtype({bool: "bool", int: "int32", float: "float32", complex: "complex64"}[type(first)])
        narrow, more = DTYPES[word]
        return np.dtype(getattr(ml_dtypes, "bfloat16", None) if (name := pick(self.rng, (narrow + " " + more * self.wide).split())) == "bfloat16" else name)

    def shape(self, word):
        if word in ("same", "fits"):
            first = self.operands[0]
            shape = first.shape if hasattr(first, "shape") else PYTHON
            return shape if word == "same" else broadcasting(self.rng, shape)
        return pick(self.rng, SHAPES[word]) if word in SHAPES else tuple(int(n) for n in word.split("x"))

    def operand(self, words):
        kind, shape, bounds, style = None, None, None, "tame" if self.tame or self.rng.random() < 0.6 else "edges"
        for word in words:
            if word == "=" or word in DTYPES:
                kind = word
            elif ".." in word:
                bounds = tuple(float(n) for n in word.split(".."))
            elif word == "tame" or word in PROPERTIES:
                style = word
            else:
                shape = word
        dtype, shape = self.dtype(kind or "float"), self.shape(shape or "anyshape")
        if shape == PYTHON:
            x = numbers(self.rng, (1,), "float64" if is_float(dtype) else dtype, bounds, "tame")[0].item()
        else:
            x = numbers(self.rng, shape, dtype, bounds, style)
            x = PROPERTIES[style](x).astype(dtype) if style in PROPERTIES else x
        self.operands.append(x)
        return f"a{len(self.operands) - 1}"

    def first(self):
        return np.shape(self.operands[0]) if self.operands else ()

    def fill(self, words):
        """The text that stands for a field."""
        if "|" in words:
            return pick(self.rng, words.split("|"))
        if words.isdigit():
            return f"a{words}"
        if words in PARAMETERS:
            return repr(PARAMETERS[words](self.rng, self.first()))
        return self.operand(words.split())


def some_axes(rng, shape):
    n = len(shape)
    if n == 0 or rng.random() < 0.2:
        return None
    axes = tuple(int(k) for k in rng.permutation(n)[: int(rng.integers(1, n + 1))])
    axes = tuple(k - n if rng.random() < 0.4 else k for k in axes)
    return axes[0] if len(axes) == 1 and rng.random() < 0.5 else axes


def all_axes(rng, shape):
    return tuple(int(k) for k in rng.permutation(len(shape))[: int(rng.integers(1, len(shape) + 1))])


PARAMETERS = {
    "axis": lambda rng, shape: int(rng.integers(-len(shape), len(shape))) if shape else 0,
    "forward_axis": lambda rng, shape: int(rng.integers(len(shape))) if shape else 0,
    "new_axis": lambda rng, shape: int(rng.integers(-len(shape) - 1, len(shape) + 1)),
    "axes": some_axes,
    "tuple_of_axes": lambda rng, shape: all_axes(rng, shape) if shape else (),
    "permutation": lambda rng, shape: tuple(int(k) for k in rng.permutation(len(shape))),
    "flag": lambda rng, shape: bool(rng.integers(2)),
    "seed": lambda rng, shape: int(rng.integers(1000)),
    "dtype": lambda rng, shape: pick(rng, ["float32", "int32", "float16", "complex64", "uint8", "float64", "bool"]),
    "float_dtype": lambda rng, shape: pick(rng, ["float32", "float16", "bfloat16", "float64"]),
    "sizes": lambda rng, shape: pick(rng, [(-1,), (int(np.prod(shape)), 1), (1, -1), tuple(shape[::-1])]),
    "wider": lambda rng, shape: pick(rng, [shape, (2, *shape), (4, 2, *shape)]),
}
