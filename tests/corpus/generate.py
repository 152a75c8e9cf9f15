"""Writes the corpus: what each primitive must answer, one file per family.

    python -m venv .venv && .venv/bin/pip install jax==0.10.2 mpmath
    .venv/bin/python tests/corpus/generate.py

An entry is a primitive applied to types (`apply`), or a whole program (`program`); then the operands, flat, and the results. A string
among the operands names an entry of the file's `[values]`. Elementary functions are mpmath's, rounded once; arithmetic, comparisons and what moves elements are
numpy's; what numpy does not have, or IEEE leaves open (integer division by zero, order of scatters), is what JAX answers on CPU.
How near a result must come stands in tolerance.toml, by primitive (or by the entry's `tolerance`).

Output is the same each time: nothing here is drawn but from the seeded generator below, family by family.
"""
import os
import pathlib
import sys

os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import ml_dtypes
import mpmath as mp
import numpy as np
from jax import lax

mp.mp.prec = 300
SHORT = {"bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
         "uint64": "u64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128"}
INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
BF16 = ml_dtypes.bfloat16
HERE = pathlib.Path(__file__).parent
np.seterr(all="ignore")


# ---- writing ----

def number(v, d):
    if d == bool:
        return "true" if v else "false"
    if d.kind in "iu":
        v = int(v)
        return str(v) if v < 2**63 else f'"{v}"'
    x = float(v)
    if x != x:
        return "nan"
    if x in (mp.inf, -mp.inf):
        return "inf" if x > 0 else "-inf"
    s = repr(x)
    if d.itemsize == 4 and np.float32(float(str(v))).tobytes() == np.float32(v).tobytes():
        s = str(v)
    if "e" in s and "." not in s:
        s = s.replace("e", ".0e")
    return s


def flat(x):
    x = np.asarray(x)
    if x.dtype.kind == "c":
        x = np.stack([x.real, x.imag], -1)
    return x.dtype, [number(v, x.dtype) for v in x.ravel()]


def short(x):
    return SHORT[np.dtype(x).name]


def aval(x):
    x = np.asarray(x)
    return f"{short(x.dtype)}[{','.join(map(str, x.shape))}]"


class Family:
    def __init__(self, name):
        self.name, self.cases, self.seen = name, [], {}

    def value(self, x):
        d, words = flat(x)
        text = "[" + ", ".join(words) + "]"
        if len(words) > 6:
            self.seen.setdefault(text, [short(d), 0])[1] += 1
        return text

    def entry(self, head, ins, outs, tolerance=None):
        self.cases.append((head, [self.value(x) for x in ins], [self.value(x) for x in outs], tolerance))

    def apply(self, name, ins, outs, params="", tolerance=None, types=None):
        params = f"[{params}]" if params else ""
        head = " ".join([name + params, *(types or map(aval, ins))])
        self.entry(f'apply = "{head}"', ins, outs if isinstance(outs, (list, tuple)) else [outs], tolerance)

    def program(self, text, ins, outs, tolerance=None):
        self.entry(f'program = "{" ".join(text.split())}"', ins, outs, tolerance)

    def write(self):
        names, count = {}, {}
        for text, (d, uses) in self.seen.items():
            if uses > 1:
                count[d] = count.get(d, 0) + 1
                names[text] = f"{d}_{count[d]}"
        lines = [f"# {self.name}: made by generate.py, which says what the entries mean."]
        if names:
            lines += ["", "[values]", *(f"{n} = {text}" for text, n in names.items())]
        show = lambda xs: "[" + ", ".join(f'"{names[x]}"' if x in names else x for x in xs) + "]"
        for head, ins, outs, tolerance in self.cases:
            lines += ["", "[[case]]", head, f"in = {show(ins)}", f"out = {show(outs)}"]
            lines += [f'tolerance = "{tolerance}"'] if tolerance else []
        (HERE / f"{self.name}.toml").write_text("\n".join(lines) + "\n")


def items(v):
    """As programs print a tuple."""
    return "(" + ", ".join(map(str, v)) + ("," if len(v) == 1 else "") + ")"


# ---- values ----

def edges(d):
    d = np.dtype(d)
    if d == bool:
        return np.array([False, True])
    if d.kind in "iu":
        i = np.iinfo(d)
        return np.array([i.min, i.min + 1, i.max, 0, 1, 2, 7, 8, *((-1, -2, -7, -100) if i.min else (200, 16, 31, 33)), 100, i.max - 1, 3, 5], d)
    f = ml_dtypes.finfo(d)
    return np.array([0., -0., 1, -1, np.inf, -np.inf, np.nan, f.max, f.min, f.tiny, 2.25, 2.5, -3.7, 0.1, 0.5, -0.5, 1.5, -2.5, 3.7, 65504, 2049], d)


def pairs(x, n=14):
    a, b = np.meshgrid(x[:n], x[:n], indexing="ij")
    return a.ravel(), b.ravel()


def rounded(x, d):
    """An mpf to the nearest value of a dtype, once."""
    d = np.dtype(d)
    if mp.isnan(x) or mp.isinf(x) or x == 0:
        return d.type(float(x))
    f = ml_dtypes.finfo(d)
    digits, least = f.nmant + 1, int(f.minexp)
    sign, man, exp, bc = x._mpf_
    unit = max(exp + bc - digits, least - digits + 1)  # the exponent of the last place
    if unit > exp + bc:
        man, exp = 0, unit  # below half of the least subnormal
    elif exp < unit:
        shift = unit - exp
        q, r, half = man >> shift, man & ((1 << shift) - 1), 1 << (shift - 1)
        man, exp = q + (r > half or (r == half and q & 1)), unit
    if man and man.bit_length() + exp > int(f.maxexp):
        y = np.inf
    else:
        y = float(mp.mpf(man) * mp.mpf(2) ** exp)
    return d.type(-y if sign else y)


def exact(f, *xs):
    """A function of mpmath on the exact values of arrays of one dtype; `nan` outside its real domain."""
    def one(*v):
        try:
            y = f(*(mp.mpf(float(x)) for x in v))
        except (ValueError, ZeroDivisionError):
            return mp.nan
        return y if isinstance(y, mp.mpf) else mp.mpf(y) if not isinstance(y, mp.mpc) else (y.real if y.imag == 0 else mp.nan)
    d = xs[0].dtype
    return np.array([rounded(one(*v), d) for v in zip(*xs, strict=True)], d)


def by_ieee(f, where, *xs):
    """What IEEE's functions of numpy or the C library say at zeros, infinities and nans."""
    y = np.array([f(*map(float, v)) for v in zip(*(x[where] for x in xs), strict=True)], np.float64)
    return y.astype(xs[0].dtype)


def elementary(f, at_special, *xs):
    odd = np.zeros(xs[0].shape, bool)
    for x in xs:
        w = x.astype(np.float64)
        odd |= ~np.isfinite(w) | (w == 0)
    y = np.zeros_like(xs[0])
    y[odd] = by_ieee(at_special, odd, *xs)
    y[~odd] = exact(f, *(x[~odd] for x in xs))
    return y


# ---- pointwise ----

def points(d, rng):
    d = np.dtype(d)
    f = ml_dtypes.finfo(d)
    one = d.type(1)
    beside = [np.nextafter(one, d.type(2)), np.nextafter(one, d.type(0)), -np.nextafter(one, d.type(0)), -np.nextafter(one, d.type(2))]
    some = [0., -0., 1, -1, np.inf, -np.inf, np.nan, f.max, f.min, f.tiny, -f.tiny, 0.5, -0.5, 1.5, -2.5, 0.1, -0.1, 3.7, -3.7, 9.25, 2, -2, 3, -7,
            1e-3, -1e-3, 20, -20, 88, -87, 700, -700, 1e4, -12345.]
    spread = [rng.uniform(-1, 1, 10), rng.uniform(-30, 30, 10), 10 ** rng.uniform(-4, 4, 6)]
    return np.concatenate([np.array([*some, *beside], d), *(s.astype(d) for s in spread)]).astype(d)


def pole(at, value):
    """`value` at the integers from 0 down, `at` elsewhere."""
    return lambda x: value if x <= 0 and x == mp.floor(x) else at(x)


def within(lo, hi, f, low=None, high=None):
    return lambda x: (low if x == lo and low is not None else high if x == hi and high is not None else f(x)) if lo <= x <= hi else mp.nan


def scaled_bessel(n):
    def f(x):
        # the series cancels nothing, but its terms grow as exp(|x|); from 1e3 on, Hankel's expansion is exact in any precision here
        a = abs(x)
        if a < 1000:
            y = mp.besseli(n, a) * mp.exp(-a)
        else:
            term, y, mu = mp.mpf(1), mp.mpf(1), 4 * n * n
            for k in range(1, 40):
                term *= -(mu - (2 * k - 1) ** 2) / (k * 8 * a)
                y += term
            y /= mp.sqrt(2 * mp.pi * a)
        return -y if n == 1 and x < 0 else y
    return f


def scaled_bessel_gap(x):
    a = abs(x)
    if a < 1000:
        return (mp.besseli(0, a) - mp.besseli(1, a)) * mp.exp(-a)
    return scaled_bessel(0)(a) - scaled_bessel(1)(a)


def inverse_erf(x):
    if abs(x) >= 1:
        return mp.nan if abs(x) > 1 else mp.sign(x) * mp.inf
    return mp.erfinv(x)


NEAR = {
    "exp": (mp.exp, np.exp), "exp2": (lambda x: mp.mpf(2) ** x, np.exp2), "expm1": (mp.expm1, np.expm1),
    "log": (within(0, mp.inf, mp.log), np.log), "log1p": (within(-1, mp.inf, mp.log1p, low=-mp.inf), np.log1p),
    "sin": (mp.sin, np.sin), "cos": (mp.cos, np.cos), "tan": (mp.tan, np.tan),
    "asin": (within(-1, 1, mp.asin), np.arcsin), "acos": (within(-1, 1, mp.acos), np.arccos), "atan": (mp.atan, np.arctan),
    "sinh": (mp.sinh, np.sinh), "cosh": (mp.cosh, np.cosh), "tanh": (mp.tanh, np.tanh),
    "asinh": (mp.asinh, np.arcsinh), "acosh": (within(1, mp.inf, mp.acosh), np.arccosh),
    "atanh": (within(-1, 1, mp.atanh, low=-mp.inf, high=mp.inf), np.arctanh),
    "logistic": (lambda x: 1 / (1 + mp.exp(-x)), lambda x: 1 / (1 + np.exp(-x))),
    "rsqrt": (within(0, mp.inf, lambda x: 1 / mp.sqrt(x)), lambda x: 1 / np.sqrt(x)),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), np.cbrt),
    "erf": (lambda x: mp.erf(x) if abs(x) < 1e4 else mp.sign(x), lambda x: float(lax.erf(x))), "erfc": (lambda x: mp.erfc(x) if abs(x) < 1e4 else mp.mpf(0 if x > 0 else 2), lambda x: float(lax.erfc(x))),
    "erf_inv": (inverse_erf, lambda x: float(lax.erf_inv(x))),
    "lgamma": (pole(lambda x: mp.log(abs(mp.gamma(x))) if abs(x) < 1e5 else mp.loggamma(x), mp.inf), lambda x: float(lax.lgamma(x))),
    "digamma": (pole(mp.digamma, mp.nan), lambda x: float(lax.digamma(x))),
    "bessel_i0e": (scaled_bessel(0), lambda x: float(lax.bessel_i0e(x))), "bessel_i1e": (scaled_bessel(1), lambda x: float(lax.bessel_i1e(x))),
    "bessel_i0e_minus_i1e": (scaled_bessel_gap, lambda x: np.float64(lax.bessel_i0e(x)) - abs(np.float64(lax.bessel_i1e(x)))),
}


def pointwise(F):
    rng = np.random.default_rng(0)
    exact_unary = {"neg": np.negative, "abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt, "is_finite": np.isfinite,
                   "square": np.square, "copy": np.copy, "stop_gradient": np.copy}
    exact_unary["sign"] = lax.sign  # zeros keep their sign
    for d in FLOATS:
        x = edges(d)
        for n, f in exact_unary.items():
            F.apply(n, [x], np.asarray(f(x)).astype(bool if n == "is_finite" else d))
        F.apply("round", [x], lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), "rounding_method=0")
        F.apply("round", [x], np.rint(x), "rounding_method=1")
        for y in (0, 1, 2, 3, -1, -2):
            small = np.array([0., -0., 1, -1, 0.5, -2, 4, np.inf, -np.inf, np.nan], d)
            F.apply("integer_pow", [small], lax.integer_pow(small, y), f"y={y}")
        if np.dtype(d).itemsize == 2:
            wide = np.array([300, -300, 0.003, 1.25, -1.5], d)  # narrow floats: the power alone is rounded
            for y in (7, -2, -3):
                F.apply("integer_pow", [wide], exact(lambda x, y=y: x**y, wide), f"y={y}")
        x = points(d, rng)
        for n, (f, at) in NEAR.items():
            if n.startswith("bessel") and np.dtype(d).itemsize < 4:
                continue
            v = x
            if n in ("lgamma", "digamma"):
                v = x[~((x.astype(float) < -2e4) & np.isfinite(x.astype(float)))]
            F.apply(n, [v], elementary(f, at, v))
        for n in ("neg", "abs", "sin", "exp", "lgamma"):
            F.apply(n, [np.zeros((0, 3), d)], np.zeros((0, 3), d))
            one = np.array(0.75, d)
            f = {"neg": np.negative, "abs": np.abs}.get(n) or (lambda v: exact(NEAR[n][0], v.reshape(1)))
            F.apply(n, [one], np.asarray(f(one)).reshape(()))
            F.apply(n, [one.reshape(1)], np.asarray(f(one)).reshape(1))
        orders, at = pairs(np.array([1, 2, 3, 5, 0.5, 1.5, 10, 37.25], d), 8)
        orders = np.floor(orders)
        orders[orders > 10] = 4 if np.dtype(d).itemsize < 8 else 37  # factorials leave the range of float32
        F.apply("polygamma", [orders, at], exact(lambda n, x: mp.digamma(x) if n == 0 else mp.psi(int(n), x), orders, at))
    for d in INTS:
        x = edges(d)
        for n in ("neg", "abs", "sign", "square")[0 if np.iinfo(d).min else 2:]:
            F.apply(n, [x], getattr(lax, n)(x))
        F.apply("integer_pow", [x], lax.integer_pow(x, 3), "y=3")
        F.apply("population_count", [x], lax.population_count(x))
        F.apply("clz", [x], lax.clz(x))
    for d in [bool, *INTS]:
        F.apply("not", [edges(d)], lax.bitwise_not(edges(d)))
    binary(F)
    complexes(F)


def beyond(x, y):
    return np.where(x == y, y, np.nextafter(x, y))  # numpy's own gives x for equal float16


def total_order(x):
    """Integers that compare as the total order of floats: -nan, -inf .. -0, 0 .. inf, nan."""
    if x.dtype.kind in "biu":
        return x
    bits = x.view(f"i{x.itemsize}").astype(np.int64)
    return np.where(bits < 0, bits ^ np.iinfo(f"i{x.itemsize}").max, bits)


def binary(F):
    for d in [bool, *INTS, *FLOATS]:
        x, y = pairs(edges(d))
        for n in "eq ne lt le gt ge max min".split():
            F.apply(n, [x, y], getattr(lax, n)(x, y))
        for n, f in {"le_to": np.less_equal, "lt_to": np.less}.items():
            F.apply(n, [x, y], f(total_order(x), total_order(y)))
    for d in FLOATS:
        x, y = pairs(edges(d))
        for n, f in {"add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod, "nextafter": beyond}.items():
            F.apply(n, [x, y], f(x, y).astype(d))
        some = np.array([0., 1, -1, 2.5, np.inf, -np.inf, np.nan, 0.5], d)
        x, y = pairs(some)
        x, y = pairs(np.array([0., -0., 1, -1, np.inf, -np.inf, np.nan, 2.25, 0.5, -0.5, -2, 3, 7.5, 0.1, -3, -100], d), 16)
        F.apply("pow", [x, y], elementary(lambda a, b: a ** b, lambda a, b: float(lax.pow(a, b)), x, y))
        F.apply("atan2", [x, y], elementary(mp.atan2, np.arctan2, x, y))
        F.apply("pow", [np.array([2, -3, 0.5, 0, np.inf], d), np.array([3, 3, -2, 0, -1], np.int32)], np.array([8, -27, 4, 1, 0], d))
        F.apply("add", [np.arange(6).reshape(2, 3).astype(d), np.array(0.5, d)], np.arange(6).reshape(2, 3).astype(d) + d(0.5))
        F.apply("mul", [np.arange(3).reshape(3, 1).astype(d), np.arange(4).reshape(1, 4).astype(d)], np.multiply.outer(np.arange(3), np.arange(4)).astype(d))
        F.apply("sub", [np.zeros((2, 0), d), np.array(1, d)], np.zeros((2, 0), d))
    for d in INTS:
        x, y = pairs(edges(d))
        for n in "add sub mul div rem shift_left shift_right_logical shift_right_arithmetic".split():
            F.apply(n, [x, y], getattr(lax, n)(x, y))
        high = [int(a) * int(b) >> 8 * x.itemsize for a, b in zip(x, y, strict=True)]
        F.apply("mulhi", [x, y], np.array(high, d))
    for d in [bool, *INTS]:
        x, y = pairs(edges(d))
        for n in "and or xor".split():
            F.apply(n, [x, y], getattr(lax, "bitwise_" + n)(x, y))


def complexes(F):
    for d in (np.complex64, np.complex128):
        r = np.float32 if d == np.complex64 else np.float64
        a, b = np.array([0.5, -1.5, 2, -0.25, 3, 1], r), np.array([1, 0.5, -2, -0.75, 0.5, 0], r)
        z = (a + 1j * b).astype(d)
        w = z[::-1].copy()
        F.apply("complex", [a, b], z)
        F.apply("real", [z], z.real.copy())
        F.apply("imag", [z], z.imag.copy())
        F.apply("conj", [z], z.conj(), "input_dtype=" + np.dtype(d).name)
        for n, f in {"neg": np.negative, "square": np.square}.items():
            F.apply(n, [z], f(z))
        for n, f in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "eq": np.equal, "ne": np.not_equal}.items():
            F.apply(n, [z, w], f(z, w))
        wide = {"exp": mp.exp, "log": mp.log, "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos, "atan": mp.atan, "sinh": mp.sinh,
                "cosh": mp.cosh, "tanh": mp.tanh, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh, "sqrt": mp.sqrt, "rsqrt": lambda x: 1 / mp.sqrt(x),
                "log1p": lambda x: mp.log(1 + x), "expm1": lambda x: mp.exp(x) - 1, "logistic": lambda x: 1 / (1 + mp.exp(-x)), "sign": lambda x: x / abs(x)}
        # away from the axes, where the branch cuts are
        off = np.array([0.5 + 1j, -1.5 + 0.5j, 2 - 2j, -0.25 - 0.75j, 3 + 0.5j, 0.125 - 0.25j], d)
        for n, f in wide.items():
            y = [f(mp.mpc(complex(v))) for v in off]
            F.apply(n, [off], np.array([complex(float(rounded(v.real, r)), float(rounded(v.imag, r))) for v in y], d), tolerance="complex_function")
        F.apply("abs", [off], np.array([rounded(abs(mp.mpc(complex(v))), r) for v in off], r), tolerance="complex_function")
        y = [mp.mpc(complex(u)) / mp.mpc(complex(v)) for u, v in zip(off, off[::-1], strict=True)]
        F.apply("div", [off, off[::-1].copy()], np.array([complex(float(rounded(v.real, r)), float(rounded(v.imag, r))) for v in y], d), tolerance="complex_function")
        y = [mp.mpc(complex(u)) ** mp.mpc(complex(v)) for u, v in zip(off, off[::-1], strict=True)]
        F.apply("pow", [off, off[::-1].copy()], np.array([complex(float(rounded(v.real, r)), float(rounded(v.imag, r))) for v in y], d), tolerance="complex_function")
        pairs = [(mp.mpc(complex(u)), mp.mpc(complex(v))) for u, v in zip(off, off[::-1], strict=True)]
        y = [-1j * mp.log((v + 1j * u) / mp.sqrt(v * v + u * u)) for u, v in pairs]
        F.apply("atan2", [off, off[::-1].copy()], np.array([complex(float(rounded(v.real, r)), float(rounded(v.imag, r))) for v in y], d), tolerance="complex_function")


# ---- dtypes ----

def convert(F):
    for a in [bool, *INTS, *FLOATS]:
        for b in [bool, *INTS, *FLOATS]:
            x = edges(a)
            F.apply("convert_element_type", [x], lax.convert_element_type(x, b), f"new_dtype={np.dtype(b).name} weak_type=False")
    x = np.array([0.5, -1, np.inf], np.float32)
    F.apply("convert_element_type", [x], x.astype(np.complex64), "new_dtype=complex64 weak_type=False")
    F.apply("convert_element_type", [np.zeros((0,), np.int32)], np.zeros((0,), np.float32), "new_dtype=float32 weak_type=False")


def bitcast(F):
    rng = np.random.default_rng(2)
    for e, m in [(5, 10), (8, 7), (8, 0), (1, 3), (4, 3), (8, 23), (11, 52), (5, 2), (2, 23)]:
        for d in (np.float32, np.float64):
            x = np.concatenate([edges(d), rng.normal(size=12).astype(d), (rng.normal(size=12) * 1e-5).astype(d), (rng.normal(size=8) * 1e5).astype(d)])
            F.apply("reduce_precision", [x], lax.reduce_precision(x, e, m), f"exponent_bits={e} mantissa_bits={m}")
    for d, to in [(np.float32, np.int32), (np.float32, np.uint32), (np.float64, np.int64), (np.float16, np.uint16), (BF16, np.int16)]:
        x = np.array([0., -0., 1, -2.5, np.inf, -np.inf], d)
        F.apply("bitcast_convert_type", [x], x.view(to), f"new_dtype={np.dtype(to).name}")
    x = np.array([1, 2, 3, 0x01020304], np.uint32)
    F.apply("bitcast_convert_type", [x], x.view(np.uint8).reshape(4, 4), "new_dtype=uint8")
    F.apply("bitcast_convert_type", [x.reshape(2, 2)], x.view(np.uint64), "new_dtype=uint64")
    F.apply("bitcast_convert_type", [np.array([[1, 2], [0, 0x3f80]], np.uint16)], np.array([[1, 2], [0, 0x3f80]], np.uint16).view(np.float32)[:, 0], "new_dtype=float32")


# ---- what moves elements ----

def moved(dtypes=(np.float32, np.int8, bool, np.float64, np.float16, np.complex64)):
    def of(shape, k):
        d = dtypes[k % len(dtypes)]
        n = int(np.prod(shape))
        if d == np.complex64:
            return (np.arange(n) - 1j * np.arange(n, 0, -1)).astype(d).reshape(shape)
        return (np.arange(n) % 2 == 1 if d == bool else np.arange(n) - n // 2).astype(d).reshape(shape)
    return of


def broadcast(F):
    x = moved()
    for shape, out, dims in [((), (2, 3), ()), ((3,), (2, 3), (1,)), ((2, 1), (2, 3, 4), (0, 2)), ((1, 2), (2, 3, 2), (0, 2)), ((3,), (0, 3), (1,)), ((3,), (3, 2), (0,)),
                             ((1,), (5,), (0,)), ((2, 2), (2, 2), (0, 1)), ((0,), (0, 3), (0,)), ((), (), ())]:
        for j in range(6):
            v = x(shape, j)
            F.apply("broadcast_in_dim", [v], lax.broadcast_in_dim(v, out, dims), f"broadcast_dimensions={items(dims)} shape={items(out)}")


def reshape(F):
    x = moved()
    for shape, out in [((2, 3), (3, 2)), ((1, 2, 3), (6,)), ((1, 1), ()), ((2, 0), (0, 7)), ((), (1,)), ((4, 6), (2, 2, 3, 2))]:
        for j in range(6):
            v = x(shape, j)
            F.apply("reshape", [v], v.reshape(out), f"new_sizes={items(out)}")
    # a view under the reshape
    v = np.arange(6, dtype=np.float32).reshape(2, 3)
    F.program("{ lambda ; a:f32[2,3]. let b:f32[3,2] = transpose[permutation=(1, 0)] a; c:f32[6] = reshape[dimensions=None new_sizes=(6,) sharding=None] b in (c,) }", [v], [v.T.reshape(6)])


def squeeze(F):
    x = moved()
    for shape, dims in [((1, 3), (0,)), ((1, 3, 1), (0, 2)), ((2, 1), (1,)), ((1,), (0,)), ((1, 0), (0,))]:
        for j in range(6):
            v = x(shape, j)
            F.apply("squeeze", [v], v.squeeze(dims), f"dimensions={items(dims)}")


def transpose(F):
    x = moved()
    for shape, p in [((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 1, 3), (1, 2, 0)), ((0, 3), (1, 0)), ((), ()), ((2, 3, 2, 2), (3, 1, 0, 2)), ((33, 17), (1, 0))]:
        for j in range(6):
            v = x(shape, j)
            F.apply("transpose", [v], np.transpose(v, p), f"permutation={items(p)}")


def rev(F):
    x = moved()
    for shape, dims in [((3,), (0,)), ((2, 3, 4), (0, 2)), ((2, 3), (1,)), ((0,), (0,)), ((2, 2), ()), ((1, 5), (0, 1))]:
        for j in range(6):
            v = x(shape, j)
            F.apply("rev", [v], np.flip(v, dims), f"dimensions={items(dims)}")


def device_put(F):
    x = moved()
    for j in range(6):
        v = x((2, 3), j)
        F.apply("device_put", [v], v, "devices=(0,) srcs=()")


def sharding_constraint(F):
    x = moved()
    for j in range(6):
        v = x((2, 3), j)
        F.apply("sharding_constraint", [v], v, "mesh=((x, 2),) spec=((x,), ()) unconstrained_dims=(1,)")


def reshard(F):
    x = moved()
    for j in range(6):
        v = x((2, 3), j)
        F.apply("reshard", [v], v)


def iota(F):
    for d in [*INTS, *FLOATS, np.complex64]:
        for shape, dim in [((5,), 0), ((2, 3), 1), ((2, 3), 0), ((2, 0), 1), ((1,), 0), ((2, 3, 2), 1)]:
            F.apply("iota", [], lax.broadcasted_iota(d, shape, dim), f"dimension={dim} dtype={np.dtype(d).name} shape={items(shape)}")


def slices(F):
    x = moved()
    for shape, lo, hi, by in [((4,), (1,), (3,), None), ((2, 6), (0, 1), (2, 5), (1, 2)), ((3, 6), (1, 0), (2, 6), (1, 3)), ((2, 1, 2), (1, 0, 1), (1, 1, 1), None), ((5,), (0,), (5,), None),
                              ((5,), (4,), (5,), (7,)), ((), (), (), None)]:
        for j in range(6):
            v = x(shape, j)
            F.apply("slice", [v], lax.slice(v, lo, hi, by), f"limit_indices={items(hi)} start_indices={items(lo)} strides={items(by) if by else None}")


def pad(F):
    x = moved()
    for shape, config in [((3,), [(1, 2, 0)]), ((2, 3), [(0, 1, 1), (2, 0, 2)]), ((3, 4), [(-1, 1, 0), (1, -2, 0)]), ((4,), [(-1, 0, 1)]), ((0,), [(2, 1, 3)]), ((2,), [(1, 1, 2)]),
                          ((3,), [(-2, -1, 0)]), ((2,), [(3, -4, 0)]), ((), [])]:
        for j in range(6):
            v = x(shape, j)
            fill = np.array(True) if v.dtype == bool else np.array(7, v.dtype)
            F.apply("pad", [v, fill], lax.pad(v, fill, config), "padding_config=" + items([items(c) for c in config]))
    v = np.array([1, 2], np.float32)
    for fill in (np.float32(-0.0), np.float32(np.inf), np.float32(np.nan)):
        F.apply("pad", [v, fill], np.array([fill, 1, fill, 2, fill], np.float32), "padding_config=((1, 1, 1),)")


def concatenate(F):
    x = moved()
    for shapes, dim in [([(2,), (3,)], 0), ([(2, 1), (2, 0), (2, 3)], 1), ([(2, 3)], 0), ([(1, 2, 1), (1, 2, 2)], 2), ([(0,), (0,)], 0), ([(1, 3), (2, 3), (1, 3)], 0)]:
        for j in range(6):
            v = [x(s, j) for s in shapes]
            F.apply("concatenate", v, np.concatenate(v, dim), f"dimension={dim}")
    for shape, axis, sizes in [((3,), 0, (1, 2)), ((2, 3), 1, (2, 0, 1)), ((2, 2, 2), 1, (1, 1)), ((4,), 0, (4,))]:
        for j in range(6):
            v = x(shape, j)
            F.apply("split", [v], np.split(v, np.cumsum(sizes)[:-1], axis), f"axis={axis} sizes={items(sizes)}")


def select(F):
    x = moved()
    for d in range(6):
        a, b = x((2, 3), d), np.flip(x((2, 3), d))
        p = np.array([[True, False, True], [False, False, True]])
        F.apply("select_n", [p, a, b], np.where(p, b, a))
        F.apply("select_n", [np.array(True), a, b], b)
        F.apply("select_n", [np.zeros(0, bool), a[0, :0], b[0, :0]], a[0, :0])
        which = np.array([[0, 1, 2], [2, 1, 0]], np.int32)
        F.apply("select_n", [which, a, b, a], np.choose(which, [a, b, a]))
    a = np.array([np.nan, -0., np.inf], np.float32)
    F.apply("select_n", [np.array([False, False, True]), a, np.zeros(3, np.float32)], np.array([np.nan, -0., 0.], np.float32))


def clamp(F):
    for d in [*INTS, *FLOATS]:
        x = edges(d)
        lo, hi = np.array(1, d), np.array(7, d)
        F.apply("clamp", [lo, x, hi], lax.clamp(lo, x, hi))
        F.apply("clamp", [np.full_like(x, 2), x, np.full_like(x, 5)], lax.clamp(np.full_like(x, 2), x, np.full_like(x, 5)))
        F.apply("clamp", [hi, x, lo], lax.clamp(hi, x, lo))
        F.apply("clamp", [lo, x[:0], hi], x[:0])


# ---- reading and writing at places ----

def numbers(record, **fields):
    return record + "(" + " ".join(f"{k}={items(v)}" for k, v in fields.items()) + ")"


def gather(F):
    for mode, name in (("clip", "CLIP"), ("fill", "FILL_OR_DROP")):
        for index in (np.int32, np.uint32, np.int64, np.uint8):
            def one(operand, indices, sizes, offset, collapsed, start_map, batch=(), index_batch=(), d=np.float32):
                x = np.arange(1, 1 + np.prod(operand)).astype(d).reshape(operand)
                i = np.asarray(indices).astype(index)
                dims = lax.GatherDimensionNumbers(offset_dims=offset, collapsed_slice_dims=collapsed, start_index_map=start_map, operand_batching_dims=batch,
                                                  start_indices_batching_dims=index_batch)
                fill = -5.0 if d == np.float32 else None
                out = lax.gather(x, i, dims, sizes, mode=mode, fill_value=fill)
                n = numbers("GatherDimensionNumbers", offset_dims=offset, collapsed_slice_dims=collapsed, start_index_map=start_map, operand_batching_dims=batch,
                            start_indices_batching_dims=index_batch)
                F.apply("gather", [x, i], out, f"dimension_numbers={n} fill_value={fill} indices_are_sorted=False mode=GatherScatterMode.{name} "
                        f"slice_sizes={items(sizes)} unique_indices=False")
            one((5, 4), [[0], [4], [5], [-1], [2]], (1, 4), (1,), (0,), (0,))
            one((5, 4), [[0], [3], [4], [-7], [100]], (2, 3), (0, 2), (), (0,))
            one((5, 4), [[0, 0], [3, 1], [4, 3], [-1, 2], [2, 9]], (2, 3), (1, 2), (), (0, 1))
            one((5, 4), [[[0, 1], [3, 1]], [[4, 3], [1, 0]]], (1, 1), (), (0, 1), (1, 0))
            one((3, 4, 2), [[[1], [0]], [[3], [4]], [[-1], [2]]], (1, 1, 2), (2,), (1,), (1,), (0,), (0,))
            one((3, 4, 2), [[[1], [0], [7]], [[3], [4], [2]]], (1, 2, 1), (0,), (2,), (1,), (0,), (1,))
            one((4,), np.zeros((0, 1)), (2,), (1,), (), (0,))
            if index == np.int32:
                for d in (np.float64, np.int32, np.uint8, BF16, np.bool_, np.complex64):
                    one((5, 4), [[0], [4], [5], [-1], [2]], (1, 4), (1,), (0,), (0,), d=d)


def scatter(F):
    rng = np.random.default_rng(3)
    functions = {"scatter": lax.scatter, "scatter-add": lax.scatter_add, "scatter-mul": lax.scatter_mul, "scatter-min": lax.scatter_min, "scatter-max": lax.scatter_max,
                 "scatter-sub": lax.scatter_sub}
    for mode, mode_name in (("clip", "CLIP"), ("fill", "FILL_OR_DROP")):
        for name, f in functions.items():
            for d in (np.float32, np.int32, np.uint8, BF16):
                def one(operand, indices, updates, window, inserted, index_map, batch=(), index_batch=()):
                    x, u = rng.integers(1, 9, operand).astype(d), rng.integers(1, 9, updates).astype(d)
                    i = np.asarray(indices, np.int32)
                    dims = lax.ScatterDimensionNumbers(update_window_dims=window, inserted_window_dims=inserted, scatter_dims_to_operand_dims=index_map,
                                                       operand_batching_dims=batch, scatter_indices_batching_dims=index_batch)
                    n = numbers("ScatterDimensionNumbers", update_window_dims=window, inserted_window_dims=inserted, scatter_dims_to_operand_dims=index_map,
                                operand_batching_dims=batch, scatter_indices_batching_dims=index_batch)
                    F.apply(name, [x, i, u], f(x, i, u, dims, mode=mode),
                            f"dimension_numbers={n} indices_are_sorted=False mode=GatherScatterMode.{mode_name} unique_indices=False")
                one((5,), [[0], [2], [2], [5], [-1], [4]], (6,), (), (0,), (0,))
                one((5, 4), [[0], [3], [4], [-7], [100]], (5, 2, 3), (1, 2), (), (0,))
                one((5, 4), [[0, 0], [3, 1], [4, 3], [-1, 2], [2, 9]], (2, 5), (0,), (1,), (1, 0))
                one((3, 4, 2), [[[1], [0]], [[3], [4]], [[-1], [2]]], (3, 2, 2), (2,), (1,), (1,), (0,), (0,))
                one((3,), np.zeros((0, 1)), (0,), (), (0,), (0,))


def dynamic_slice(F):
    for d in (np.int16, np.float32, np.float64, bool):
        x = (np.arange(20) % (2 if d == bool else 50)).astype(d).reshape(5, 4)
        for starts in [(0, 0), (1, 2), (4, 4), (-1, 1), (-100, 100)]:
            i = [np.int32(s) for s in starts]
            # JAX's functions wrap negative starts before the primitive, which clamps
            a, b = np.clip(starts, 0, [3, 1])
            F.apply("dynamic_slice", [x, *i], x[a:a + 2, b:b + 3], "slice_sizes=(2, 3)")
            u = (np.arange(6) % 2 + (d != bool)).astype(d).reshape(2, 3)
            y = x.copy()
            y[a:a + 2, b:b + 3] = u
            F.apply("dynamic_update_slice", [x, u, *i], y)
    x = np.arange(4, dtype=np.float32)
    for k in (np.int8, np.uint8, np.int64, np.uint32):
        F.apply("dynamic_slice", [x, k(3)], x[2:4], "slice_sizes=(2,)")
        F.apply("dynamic_slice", [x, k(1)], x[:0], "slice_sizes=(0,)")


# ---- reductions ----

def reduce(F):
    rng = np.random.default_rng(4)
    kinds = {"reduce_sum": (lax.reduce_sum, np.sum), "reduce_prod": (lax.reduce_prod, np.prod), "reduce_max": (lax.reduce_max, None), "reduce_min": (lax.reduce_min, None)}
    for d in [*INTS, *FLOATS]:
        for n, (f, _) in kinds.items():
            for shape, axes in [((3, 5), (1,)), ((2, 0), (1,)), ((3, 5), (0,)), ((2, 3, 2), (0, 2)), ((4,), ()), ((), ()), ((1,), (0,)), ((0, 3), (1,))]:
                x = rng.integers(0, 4, shape).astype(d)
                F.apply(n, [x], f(x, axes=axes), f"axes={items(axes)}")
        x = np.tile(rng.permutation(edges(d)), (3, 1)).astype(d)
        if np.dtype(d).kind not in "iu":
            x[1] = np.where(np.isnan(x[1].astype(np.float64)), d(2), x[1])
            x[2] = d(0)
            x[2, 3] = d(-0.)
        for n in ("reduce_max", "reduce_min"):
            F.apply(n, [x], kinds[n][0](x, axes=(1,)), "axes=(1,)")
    for d in (np.float32, np.float64):
        # sums of what has no rest: halves far below 2^24
        x = (rng.integers(-64, 64, (3, 300)) / 2).astype(d)
        F.apply("reduce_sum", [x], x.astype(np.float64).sum(1).astype(d), "axes=(1,)")
        F.apply("reduce_sum", [x], x.astype(np.float64).sum(0).astype(d), "axes=(0,)")
        for v, s in [([np.inf, 1, 2], np.inf), ([np.inf, -np.inf, 2], np.nan), ([-0., -0., -0.], None), ([np.nan, 1, 2], np.nan)]:
            if s is not None:
                F.apply("reduce_sum", [np.array(v, d)], np.array(s, d), "axes=(0,)")
    x = (np.arange(6) + 1j * np.arange(6, 0, -1)).reshape(2, 3).astype(np.complex64)
    F.apply("reduce_sum", [x], x.sum(1), "axes=(1,)")
    for d in (np.complex64, np.complex128):
        for shape, axes in [((2, 3), (1,)), ((5,), (0,)), ((2, 3), (0, 1)), ((3, 4), (0,)), ((1, 2), (0,)), ((2, 0), (1,))]:
            x = (rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)).astype(d)
            for n, f in kinds.items():
                if x.size or n in ("reduce_sum", "reduce_prod"):
                    F.apply(n, [x], f[0](x, axes=axes) if n != "reduce_prod" else np.prod(x, axes), f"axes={items(axes)}")
    for d in [bool, *INTS]:
        x = np.tile(edges(d), (2, 1))
        x[1] = x[1, 1]
        for n, f in {"reduce_and": np.bitwise_and, "reduce_or": np.bitwise_or, "reduce_xor": np.bitwise_xor}.items():
            F.apply(n, [x], f.reduce(x, 1), "axes=(1,)")
            F.apply(n, [x[:, :0]], f.reduce(x[:, :0], 1).astype(d), "axes=(1,)")


def argreduce(F):
    rng = np.random.default_rng(5)
    for d in [bool, *INTS, *FLOATS]:
        x = np.tile(rng.permutation(edges(d)), (3, 1)).astype(d)
        if np.dtype(d).kind == "f" or d == BF16:
            x[1] = np.where(np.isnan(x[1].astype(np.float64)), d(2), x[1])
            x[2] = d(0)
            x[2, 1] = d(-0.)
        for n, f in {"argmax": lax.argmax, "argmin": lax.argmin}.items():
            for index in (np.int32, np.uint8):
                F.apply(n, [x], f(x, 1, index), f"axes=(1,) index_dtype={np.dtype(index).name}")
            F.apply(n, [x], f(x, 0, np.int64), "axes=(0,) index_dtype=int64")
            F.apply(n, [x[:1, 0]], np.int32(0), "axes=(0,) index_dtype=int32")


def cumulative(F):
    rng = np.random.default_rng(6)
    kinds = {"cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate}
    for reverse in (False, True):
        flip = (lambda x, axis: np.flip(x, axis)) if reverse else (lambda x, axis: x)
        for n, f in kinds.items():
            for d in (np.int32, np.float32, np.float64, np.uint8, np.float16, BF16):
                x = rng.integers(0 if d == np.uint8 else -3, 4, (2, 5, 3)).astype(d)
                if d in (np.float32, np.float64):
                    x[0, 2, 1] = np.nan
                    x[1, 3, 2] = np.inf
                F.apply(n, [x], flip(np.asarray(f(flip(x, 1), 1)), 1).astype(d), f"axis=1 reverse={reverse}")
            if n in ("cumsum", "cumprod"):
                for d in (np.complex64, np.complex128):
                    x = (rng.integers(1, 4, (2, 5)) + 1j * rng.integers(5, 8, (2, 5))).astype(d)  # no zeros: their signs are the order's
                    F.apply(n, [x], flip(f(flip(x, 1), 1), 1), f"axis=1 reverse={reverse}")
            F.apply(n, [np.zeros((0, 2), np.float32)], np.zeros((0, 2), np.float32), f"axis=0 reverse={reverse}")
            F.apply(n, [np.array([3], np.float32)], np.array([3], np.float32), f"axis=0 reverse={reverse}")
        x = rng.normal(size=(3, 6)) * 5
        x[1, :3], x[2, 1], x[2, 4] = -np.inf, np.inf, -np.inf
        for d in (np.float64, np.float32):
            v = x.astype(d)
            y = np.array(lax.cumlogsumexp(v.astype(np.float64), axis=1, reverse=reverse))
            F.apply("cumlogsumexp", [v], y.astype(d), f"axis=1 reverse={reverse}")


def sides(v):
    return "(" + ", ".join(f"({a}, {b})" for a, b in v) + ("," if len(v) == 1 else "") + ")"


def windows(window, strides, padding, base=None, dilation=None):
    """The parameters, as programs print them."""
    one = (1,) * len(window)
    return (f"base_dilation={items(base or one)} padding={sides(padding)} window_dilation={items(dilation or one)} "
            f"window_dimensions={items(window)} window_strides={items(strides)}")


def reduce_window(F):
    rng = np.random.default_rng(7)
    kinds = {"sum": (lax.add, 0), "max": (lax.max, None), "min": (lax.min, None)}
    some = [((2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)), ((2, 3), (2, 1), ((1, 0), (2, 3)), (1, 1), (1, 1)),
            ((3, 2), (1, 2), ((2, 2), (1, 1)), (2, 3), (1, 1)), ((2, 2), (1, 1), ((3, 1), (-1, 4)), (1, 2), (2, 3)),
            ((1, 1), (1, 1), ((4, 0), (0, 4)), (1, 1), (1, 1)), ((1, 1), (6, 7), ((-5, 0), (0, -6)), (1, 1), (1, 1))]
    for n, (f, start) in kinds.items():
        for d in (np.float32, np.int32, np.uint8):
            low, high = (-np.inf, np.inf) if d == np.float32 else (np.iinfo(d).min, np.iinfo(d).max)
            init = d({"max": low, "min": high}.get(n, start))
            x = rng.integers(1, 5, (5, 6)).astype(d)
            for w in some:
                F.apply(f"reduce_window_{n}", [x], lax.reduce_window(x, init, f, *w), windows(*w))
            # longer than what is combined one by one: apart, overlapping, with holes
            x = rng.integers(1, 5, (3, 41)).astype(d)
            for w in [((3, 35), (3, 35), ((0, 0), (0, 3))), ((1, 37), (1, 1), ((0, 0), (2, 1))), ((2, 17), (1, 2), ((1, 0), (0, 0)), (1, 1), (1, 2)),
                      ((1, 41), (1, 1), ((0, 0), (0, 0)))]:
                F.apply(f"reduce_window_{n}", [x], lax.reduce_window(x, init, f, w[0], w[1], w[2], *w[3:]), windows(*w))
    for d in (np.float16, BF16):  # sums are rounded once
        x = np.full(3000, 1, d)
        F.apply("reduce_window_sum", [x], np.array([3000], d), windows((3000,), (1,), ((0, 0),)))
    x = np.array([1 + 2j, 1 - 1j, -3 + 0j, 1 + 2j], np.complex64)
    F.apply("reduce_window_sum", [x], x[:-1] + x[1:], windows((2,), (1,), ((0, 0),)))
    F.apply("reduce_window_max", [x], x[[0, 1, 3]], windows((2,), (1,), ((0, 0),)))
    F.apply("reduce_window_min", [x], x[[1, 2, 2]], windows((2,), (1,), ((0, 0),)))
    for w in [((3,), (1,), ((0, 0),)), ((1,), (1,), ((2, 0),))]:
        F.apply("reduce_window_sum", [np.zeros(0, np.float32)], np.zeros(2 if w[0] == (1,) else 0, np.float32), windows(*w))


def select_and_gather(F):
    rng = np.random.default_rng(17)
    for prim, f, init in [("ge", lax.max, -np.inf), ("le", lax.min, np.inf)]:
        for d in (np.float32, np.float16, np.int32):
            for shape, *w in [((5, 6), (2, 2), (2, 2), ((0, 0), (0, 0))), ((5, 6), (3, 2), (1, 1), ((1, 1), (0, 1))), ((4, 7), (2, 3), (3, 2), ((2, 1), (0, 2))),
                              ((2, 44), (1, 36), (1, 1), ((0, 0), (3, 0))), ((2, 44), (2, 40), (2, 40), ((0, 0), (0, 0)))]:
                x, t = rng.integers(0, 4, shape).astype(np.float32), rng.integers(1, 9, shape).astype(np.float32)
                pool = lambda x: lax.reduce_window(x, np.float32(init), f, *w)
                y, back = jax.vjp(pool, x)
                source = rng.integers(1, 9, y.shape).astype(np.float32)
                # the derivative of the choice that `back` makes: JAX's own jvp makes another one among equals where windows overlap
                basis = np.eye(y.size, dtype=np.float32).reshape(-1, *y.shape)
                dy = (np.asarray(jax.vmap(back)(basis)[0]) * t).sum((1, 2)).reshape(y.shape)
                params = windows(*w)
                base, rest = params.split(" padding=")
                dilation = rest.index("window_dilation")
                F.apply("select_and_gather_add", [t.astype(d), x.astype(d)], dy.astype(d),
                        f"{base} padding={rest[:dilation]}select_prim={prim} {rest[dilation:]}")
                F.apply("select_and_scatter_add", [source.astype(d), x.astype(d)], np.asarray(back(source)[0]).astype(d),
                        f"padding={rest[:dilation]}select_prim={prim} {rest[rest.index('window_dimensions'):]}")


def reduce_by(F):
    """Folds by programs: a product, and the greatest with its place."""
    rng = np.random.default_rng(18)
    mul = "{ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }"
    best = """{ lambda ; a:f32[] i:i32[] b:f32[] j:i32[]. let p:bool[] = gt a b; q:bool[] = eq a b; r:bool[] = lt i j; s:bool[] = and q r; t:bool[] = or p s;
              c:f32[] = select_n t b a; k:i32[] = select_n t j i in (c, k) }"""
    best = " ".join(best.split())
    one, none, never = np.float32(1), np.float32(-np.inf), np.int32(2**31 - 1)

    def pick(a, b):
        keep = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return tuple(jax.numpy.where(keep, x, y) for x, y in zip(a, b, strict=True))
    for shape, dims in [((2, 3), (1,)), ((5,), (0,)), ((3, 2, 4), (0, 2)), ((0, 2), (0,)), ((2, 1), ())]:
        x = rng.integers(1, 4, shape).astype(np.float32)
        F.apply("reduce", [x, one], x.prod(dims, dtype=np.float32), f"dimensions={items(dims)} jaxpr={mul}")
    x = rng.integers(0, 5, (4, 7)).astype(np.float32)
    i = np.arange(28, dtype=np.int32).reshape(4, 7)
    for dims in [(0,), (0, 1)]:
        F.apply("reduce", [x, i, none, never], list(lax.reduce((x, i), (none, never), pick, dims)), f"dimensions={items(dims)} jaxpr={best}")
    for w in [((2, 3), (1, 2), ((0, 0), (0, 0))), ((2, 2), (1, 1), ((1, 0), (2, 1)), (1, 2), (2, 1)), ((1, 1), (1, 1), ((2, 0), (0, 1)))]:
        base, rest = windows(*w).split(" padding=")
        y = lax.reduce_window(x, one, lambda a, b: a * b * np.float32(1), w[0], w[1], w[2], *w[3:])
        F.apply("reduce_window", [x, one], y, f"{base} consts=() jaxpr={mul} padding={rest}")
        if len(w) == 3:
            y = lax.reduce_window((x, i), (none, never), pick, *w)
            F.apply("reduce_window", [x, i, none, never], list(y), f"{base} consts=() jaxpr={best} padding={rest}")


def stack(F):
    for d in [bool, *INTS, *FLOATS]:
        x = np.resize(edges(d), 12).reshape(2, 6)
        for axis in (0, 1, 2):
            y = np.stack([x, x[::-1], x], axis)
            F.apply("stack", [x, x[::-1].copy(), x], y, f"axis={axis}")
            F.apply("unstack", [y], [np.take(y, i, axis) for i in range(3)], f"axis={axis}")
    z = np.array([1 + 2j, -3j], np.complex64)
    F.apply("stack", [z, -z], np.stack([z, -z], 1), "axis=1")
    F.apply("unstack", [np.zeros((2, 0), np.float32)], [np.zeros(0, np.float32)] * 2, "axis=0")


def tile(F):
    for d in [bool, *INTS, *FLOATS]:
        x = np.resize(edges(d), 6).reshape(2, 3)
        for reps in ((1, 1), (2, 1), (1, 3), (3, 2), (0, 2)):
            F.apply("tile", [x], np.tile(x, reps), f"reps={items(reps)}")
    F.apply("tile", [np.array([1 + 2j, -3j], np.complex64)], np.tile(np.array([1 + 2j, -3j], np.complex64), 2), "reps=(2,)")
    F.apply("tile", [np.array(4, np.int32)], np.array(4, np.int32), "reps=()")


def top_k(F):
    nan, inf = np.nan, np.inf
    rng = np.random.default_rng(11)
    for d in FLOATS:
        x = np.array([[3, nan, -0., 0., -inf, 1, inf, nan, -1], [0., -0., 0., -0., 5, 5, 3, 3, 5]], d)
        for axis in (1, 0):
            for k in range(0, x.shape[axis] + 1, 2):
                F.apply("top_k", [x], lax.top_k(x, k, axis=axis), f"axis={axis} k={k}")
        x = rng.permutation(40).reshape(4, 10).astype(d)
        params = "aggregate_to_topk=True is_max_k={} k=3 recall_target=0.95 reduction_dimension={} reduction_input_size_override=-1"
        F.apply("approx_top_k", [x], lax.top_k(x, 3), params.format(True, -1))
        low, at = lax.top_k(-x, 3, axis=0)
        F.apply("approx_top_k", [x], [-low, at], params.format(False, 0))
    for d in [bool, *INTS]:
        x = np.resize(edges(d), 24).reshape(2, 6, 2)
        F.apply("top_k", [x], lax.top_k(x, 4, axis=1), "axis=1 k=4")


def special(F):
    lower = lambda a, x: mp.gammainc(a, 0, x, regularized=True)
    slope = lambda a, x: mp.diff(lambda a: lower(a, x), a)
    gammas = {
        "igamma": lower,
        "igammac": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
        "igamma_grad_a": slope,
        "random_gamma_grad": lambda a, x: -slope(a, x) / (mp.exp(-x) * x ** (a - 1) / mp.gamma(a)),
    }
    nan, inf = np.nan, np.inf
    with mp.workprec(160):
        for d in FLOATS:
            a, x = pairs(np.array([0.25, 0.5, 1, 1.5, 2.75, 5, 10.5, 30], d), 8)
            for n, f in gammas.items():
                F.apply(n, [a, x], exact(f, a, x))
            s, w = np.meshgrid(np.array([1.25, 2, 3.5, 7, 20], d), np.array([0.25, 0.5, 1, 3.5, 12, 100], d))
            s, w = s.ravel(), w.ravel()
            F.apply("zeta", [s, w], exact(mp.zeta, s, w))
            b = np.array([0.5, 1, 2.5, 8, 40], d)
            b1, b2, at = (v.ravel() for v in np.meshgrid(b, b, np.array([0.125, 0.5, 0.75], d)))
            F.apply("regularized_incomplete_beta", [b1, b2, at], exact(lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), b1, b2, at))
            mass = lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True)
            F.apply("betainc_grad_a", [b1, b2, at], exact(lambda a, b, x: mp.diff(lambda a: mass(a, b, x), a), b1, b2, at))
            F.apply("betainc_grad_b", [b1, b2, at], exact(lambda a, b, x: mp.diff(lambda b: mass(a, b, x), b), b1, b2, at))
    # the ends
    for d in (np.float32, np.float64):
        a, x, p = np.array([[2, 0, 0.0], [2, inf, 1], [0, 1, 1], [-1, 1, nan], [1, -1, nan], [nan, 1, nan], [1, nan, nan], [inf, 1, 0], [0, 0, nan]], d).T.copy()
        F.apply("igamma", [a, x], p)
        F.apply("igammac", [a, x], 1 - p)
        x, w, y = np.array([[1, 2, inf], [2, 0, inf], [0.5, 1, nan], [2, inf, 0], [inf, 2, 0], [inf, 1, 1], [2, -3, inf], [3, -3, nan], [2.5, -0.5, nan], [nan, 1, nan]], d).T.copy()
        F.apply("zeta", [x, w], y)
        a, b, x, y = np.array([[1, 2, 0, 0], [1, 2, 1, 1], [0, 2, 0.5, 1], [2, 0, 0.5, 0], [0, 0, 0.5, nan], [-1, 1, 0.5, nan], [1, 1, 2, nan], [1, inf, 0.5, 1], [nan, 1, 0.5, nan]], d).T.copy()
        F.apply("regularized_incomplete_beta", [a, b, x], y)
        a, b, x, y = np.array([[1, 2, 0, 0], [1, 2, 1, 0], [0, 2, 0.5, nan], [-1, 1, 0.5, nan], [1, 1, 2, nan], [1, inf, 0.5, 0], [inf, 1, 0.5, 0], [inf, inf, 0.5, nan], [nan, 1, 0.5, nan]], d).T.copy()
        F.apply("betainc_grad_a", [a, b, x], y)
        F.apply("betainc_grad_b", [a, b, x], y)


def rng(F):
    """States and bits that JAX gives on CPU, where the default is philox."""
    low = np.array([1, 2, 3, 4], np.uint32)
    full = np.array([7, 2**32 - 1, 2**32 - 2, 5], np.uint32)  # whose counter carries
    over = np.array([2**32 - 1] * 4, np.uint32)  # into the key's words, in a block of philox
    for state in (low, full, over, np.array([2**40 + 3, 2**64 - 2], np.uint64)):
        for d in (np.uint8, np.uint16, np.uint32, np.uint64):
            for shape in ((), (1,), (5,), (4,), (3, 4), (2, 3), (3, 5), (2, 0)):
                for name in ("RNG_THREE_FRY", "RNG_PHILOX", "RNG_DEFAULT")[: 3 if shape == (3, 4) else 2]:
                    out = lax.rng_bit_generator(state, shape, d, algorithm=lax.RandomAlgorithm[name])
                    F.apply("rng_bit_generator", [state], out, f"algorithm=RandomAlgorithm.{name} dtype={np.dtype(d).name} shape={items(shape)}")


def barrier(F):
    x, y = np.arange(3, dtype=np.float32), np.array([1 + 2j], np.complex64)
    F.apply("optimization_barrier", [x, y], [x, y])


def sort(F):
    rng = np.random.default_rng(8)
    nan, inf = np.nan, np.inf
    for d in FLOATS:
        x = np.array([[3, nan, -0., 0., -inf, 1, inf, nan, -1], [0., -0., 0., -0., 5, 4, 3, 2, 1]], d)
        y = np.arange(18, dtype=np.int32).reshape(2, 9)
        for dim in (1, 0):
            F.apply("sort", [x, y], lax.sort((x, y), dimension=dim, is_stable=True, num_keys=1), f"dimension={dim} is_stable=True num_keys=1")
    for d in [bool, *INTS]:
        x = np.resize(edges(d), 24).reshape(2, 6, 2)
        F.apply("sort", [x], np.sort(x, 1), "dimension=1 is_stable=True num_keys=1")
    a, b, c = rng.integers(0, 3, 30).astype(np.int32), rng.integers(0, 3, 30).astype(np.float32), np.arange(30, dtype=np.int64)
    F.apply("sort", [a, b, c], lax.sort((a, b, c), num_keys=2), "dimension=0 is_stable=True num_keys=2")
    F.apply("sort", [a, b, a[::-1].copy()], lax.sort((a, b, a[::-1]), num_keys=2), "dimension=0 is_stable=True num_keys=2")
    for x in (np.zeros(0, np.float32), np.array([2], np.float32), rng.permutation(700).astype(np.float32)):
        F.apply("sort", [x], np.sort(x), "dimension=0 is_stable=True num_keys=1")
    z = np.array([1 + 2j, 1 + 1j, 0 + 5j], np.complex64)
    F.apply("sort", [z], np.sort(z), "dimension=0 is_stable=True num_keys=1")


# ---- products ----

def dot(F):
    rng = np.random.default_rng(9)
    for d, out in [(np.float32, np.float32), (np.float64, np.float64), (np.float16, np.float16), (BF16, np.float32), (np.float16, np.float32), (np.int32, np.int32), (np.uint8, np.uint8),
                   (np.int8, np.int32), (np.int64, np.int64), (np.int32, np.float32), (np.complex64, np.complex64)]:
        def one(x, y, contract, batch=((), ())):
            shape = lambda s: [int(v) for v in s]
            dims = f"(({shape(contract[0])}, {shape(contract[1])}), ({shape(batch[0])}, {shape(batch[1])}))"
            z = lax.dot_general(x, y, (contract, batch), preferred_element_type=out)
            F.apply("dot_general", [x, y], z, f"dimension_numbers={dims} preferred_element_type={np.dtype(out).name}")
        def ints(*shape):
            return (rng.integers(0, 5, shape) - 1j * rng.integers(0, 5, shape)).astype(d) if d == np.complex64 else rng.integers(0, 9, shape).astype(d)
        for b, m, k, n in [(1, 2, 3, 4), (2, 5, 7, 1), (1, 3, 0, 2), (3, 1, 1, 1)]:
            one(ints(b, m, k), ints(b, k, n), ((2,), (1,)), ((0,), (0,)))
        one(ints(2, 3), ints(4, 3), ((1,), (1,)))
        one(ints(3, 2), ints(4, 3), ((0,), (1,)))
        one(ints(2, 3, 4), ints(4, 2), ((0, 2), (1, 0)))
        one(ints(3), ints(3), ((0,), (0,)))
        one(ints(2), ints(3), ((), ()))
        one(ints(3, 2, 2), ints(2, 4, 3), ((0,), (2,)), ((2,), (0,)))
    # wide enough for the packed loops, and still exact
    for m, k, n in [(33, 65, 17), (1, 200, 40), (70, 9, 1)]:
        x, y = rng.integers(-8, 9, (m, k)).astype(np.float32), rng.integers(-8, 9, (k, n)).astype(np.float32)
        F.apply("dot_general", [x, y], x @ y, "dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=float32")
    for x, y in [([[np.inf, 1]], [[0], [1]]), ([[np.inf, 1]], [[2], [1]]), ([[np.nan, 0]], [[0], [0]])]:
        x, y = np.array(x, np.float32), np.array(y, np.float32)
        F.apply("dot_general", [x, y], x @ y, "dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=float32")


def fft(F):
    """numpy's, in double precision. Of the complex operand of IRFFT, what contradicts a real result is left out."""
    rng = np.random.default_rng(31)
    make = lambda shape: rng.integers(-4, 5, shape) + 1j * rng.integers(-4, 5, shape)
    kinds = [np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn]
    cases = [((1,), 1), ((2,), 1), ((3,), 1), ((8,), 1), ((2, 12), 1), ((2, 0, 4), 1), ((30,), 1), ((97,), 1), ((2, 3, 4), 2), ((2, 2, 3, 5), 3), ((3, 1, 2), 3), ((1, 4), 2), ((2, 17, 3), 2), ((64, 5), 2)]
    for real, complex_ in [(np.float32, np.complex64), (np.float64, np.complex128)]:
        for shape, axes in cases:
            lengths, last = shape[len(shape) - axes :], tuple(range(-axes, 0))
            for k, f in enumerate(kinds):
                x = make(shape if k < 3 else (*shape[:-1], shape[-1] // 2 + 1))
                x = x.real.astype(real) if k == 2 else x.astype(complex_)
                y = f(x.astype(np.complex128 if k != 2 else np.float64), lengths, last)
                F.apply("fft", [x], y.astype(real if k == 3 else complex_), f"fft_lengths={items(lengths)} fft_type={k}")
    # of an operand that was transposed for it: its axes in the middle, together, apart, in the other order
    for shape, order, lengths in [((2, 4, 3), (0, 2, 1), (4,)), ((2, 4, 2, 5), (0, 3, 1, 2), (4, 2)), ((4, 3, 2), (1, 0, 2), (4, 2)), ((3, 2, 4), (0, 2, 1), (4, 2))]:
        x = make(shape).astype(np.complex64)
        b = x.transpose(order)
        F.program(f"""{{ lambda ; a:{aval(x)}. let b:{aval(b)} = transpose[permutation={items(order)}] a; c:{aval(b)} = fft[fft_lengths={items(lengths)} fft_type=0] b in (c,) }}""",
                  [x], [np.fft.fftn(b, lengths, tuple(range(-len(lengths), 0))).astype(np.complex64)], "fft")


def ragged_dot(F):
    rng = np.random.default_rng(12)
    whole = lambda d, *shape: rng.integers(-4, 5, shape).astype(d)
    numbers = "dot_dimension_numbers={} lhs_ragged_dimensions={} rhs_group_dimensions={}"
    for d in (np.float32, np.float64, np.int32):
        for sizes in ([2, 3], [0, 5], [1, 2], [4, 9]):
            x, w, g = whole(d, 5, 3), whole(d, 2, 3, 4), np.array(sizes, np.int32)
            y = np.zeros((5, 4), d)
            for i in range(2):
                rows = slice(min(sum(sizes[:i]), 5), min(sum(sizes[: i + 1]), 5))
                y[rows] = x[rows] @ w[i]
            params = "preferred_element_type=None ragged_dot_dimension_numbers=RaggedDotDimensionNumbers({})"
            F.apply("ragged_dot_general", [x, w, g], y, params.format(numbers.format("(((1,), (1,)), ((), ()))", "(0,)", "(0,)")))
            x, w = whole(d, 5, 3), whole(d, 5, 4)
            parts = [slice(min(sum(sizes[:i]), 5), min(sum(sizes[: i + 1]), 5)) for i in range(2)]
            y = np.stack([x[p].T @ w[p] for p in parts])
            F.apply("ragged_dot_general", [x, w, g], y, params.format(numbers.format("(((0,), (0,)), ((), ()))", "(0,)", "()")))


def conv(F):
    rng = np.random.default_rng(10)
    specs = {"NCHW": ("NCHW", "OIHW", "NCHW"), "NHWC": ("NHWC", "HWIO", "NHWC"), "mixed": ("CHNW", "IHWO", "HNCW")}

    def one(a, b, strides, padding, ld, rd, fg, bg, layout="NCHW", out=None):
        rank = len(strides)
        l, r, o = ("".join(c for c in s if c not in "HW"[rank:]) for s in specs[layout])
        numbers = lax.conv_dimension_numbers((0,) * (2 + rank), (0,) * (2 + rank), (l, r, o))
        a, b = a.transpose(np.argsort(numbers.lhs_spec)), b.transpose(np.argsort(numbers.rhs_spec))
        # in double precision, where every sum here is exact
        wide = (lambda x: x.astype(np.float64) if x.dtype.kind in "f" or x.dtype == BF16 else x)
        y = lax.conv_general_dilated(wide(a), wide(b), strides, padding, ld, rd, (l, r, o), feature_group_count=fg, batch_group_count=bg,
                                     preferred_element_type=out if a.dtype.kind == "i" else None)
        numbers = "ConvDimensionNumbers(" + ", ".join(f"{k}={items(v)}" for k, v in numbers._asdict().items()) + ")"
        F.apply("conv_general_dilated", [a, b], np.asarray(y).astype(out or a.dtype),
                f"batch_group_count={bg} dimension_numbers={numbers} feature_group_count={fg} lhs_dilation={items(ld)} out_sharding=None padding={sides(padding)} "
                f"precision=None preferred_element_type={np.dtype(out).name if out else None} rhs_dilation={items(rd)} window_strides={items(strides)}")
    some = [
        ((2, 3, 8), (4, 3, 3), (1,), ((0, 0),), (1,), (1,), 1, 1),
        ((2, 4, 5, 4), (6, 2, 3, 2), (2, 1), ((1, 2), (0, 1)), (1, 1), (1, 1), 2, 1),
        ((4, 3, 5), (6, 3, 3), (1,), ((1, 1),), (2,), (2,), 1, 2),
        ((2, 4, 5, 5), (4, 1, 2, 2), (1, 1), ((-1, 2), (3, -1)), (1, 2), (2, 1), 4, 1),
        ((1, 2), (3, 2), (), (), (), (), 1, 1),
        ((1, 1, 9), (1, 1, 4), (2,), ((2, 1),), (1,), (1,), 1, 1),
        ((4, 1, 4), (4, 1, 2), (1,), ((1, 0),), (1,), (1,), 1, 4),
        ((2, 3, 4, 5), (2, 3, 3, 2), (2, 2), ((1, 0), (0, 2)), (2, 3), (1, 2), 1, 1),
    ]
    ints = lambda shape, d: rng.choice([-4, -3, -2, -1, 1, 2, 3, 4], shape).astype(d)  # no zero: whose sign a product of one term keeps, and a sum from 0 does not
    for d in (np.float32, np.float64, np.int32):
        for x, w, *rest in some:
            for layout in specs if d == np.float32 else ["NHWC"]:
                one(ints(x, d), ints(w, d), *rest, layout)
    for d, out in [(np.float16, None), (BF16, np.float32), (np.int8, np.int32), (np.uint8, None)]:
        one(ints((2, 3, 5), d), ints((2, 3, 2), d), (1,), ((1, 0),), (1,), (1,), 1, 1, out=out)
    z = lambda shape: (ints(shape, np.float32) + 1j * ints(shape, np.float32)).astype(np.complex64)
    one(z((2, 2, 5)), z((2, 2, 3)), (1,), ((1, 1),), (1,), (1,), 1, 1)
    one(ints((1, 2, 4), bool), ints((3, 2, 2), bool), (1,), ((1, 0),), (1,), (1,), 1, 1)
    # more than a plain loop does, and still exact
    one(ints((2, 9, 12, 11), np.float32), ints((33, 9, 3, 3), np.float32), (1, 2), ((1, 1), (0, 2)), (1, 1), (1, 1), 1, 1, "NHWC")
    # zeros that meet weights that are not finite
    w = np.array([[[np.inf, 1, 1]]], np.float32)
    F.apply("conv_general_dilated", [np.ones((1, 1, 3), np.float32), w], np.array([[[np.nan, np.inf, np.inf]]], np.float32),
            "batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=(1,) "
            "out_sharding=None padding=((1, 1),) precision=None preferred_element_type=None rhs_dilation=(1,) window_strides=(1,)")


# ---- keys ----

def key_bits(key):
    return np.asarray(jax.random.key_data(key))


def random(F):
    two, many = jax.random.key(2), jax.random.split(jax.random.key(9), 3)
    for seed in (np.int32(0), np.int32(-1), np.uint64(2**40 + 7), np.array([3, 2**31 - 1], np.int64)):
        data = key_bits(jax.vmap(jax.random.key)(seed) if seed.ndim else jax.random.key(seed))
        F.apply("random_seed", [seed], data, "impl=fry")
    words = np.array([[1, 2], [0xffffffff, 0]], np.uint32)
    F.apply("random_wrap", [words], words, "impl=fry")
    F.apply("random_unwrap", [words], words, types=["key<fry>[2]"])
    F.apply("random_clone", [words], words, types=["key<fry>[2]"])
    for partitionable in (True, False):
        with jax.threefry_partitionable(partitionable):
            original = "" if partitionable else "original=True "
            for width, d in ((8, np.uint8), (16, np.uint16), (32, np.uint32), (64, np.uint64)):
                for shape in ((), (5,), (2, 3), (0,)):
                    F.apply("random_bits", [key_bits(two)], jax.random.bits(two, shape, d), f"bit_width={width} {original}shape={items(shape)}", types=["key<fry>[]"])
            y = jax.vmap(lambda k: jax.random.bits(k, (3,), np.uint32))(many)
            F.apply("random_bits", [key_bits(many)], y, f"bit_width=32 {original}shape=(3,)", types=["key<fry>[3]"])
            for shape in ((2,), (2, 3), (1,)):
                F.apply("random_split", [key_bits(two)], key_bits(jax.random.split(two, shape)), f"{original}shape={items(shape)}", types=["key<fry>[]"])
    for n in (0, 1, 2**32 - 1):
        F.apply("random_fold_in", [key_bits(two), np.uint32(n)], key_bits(jax.random.fold_in(two, n)), types=["key<fry>[]", "u32[]"])
    y = key_bits(jax.vmap(jax.random.fold_in)(many, np.arange(3, dtype=np.uint32)))
    F.apply("random_fold_in", [key_bits(many), np.arange(3, dtype=np.uint32)], y, types=["key<fry>[3]", "u32[3]"])
    # the published vectors of threefry2x32, 20 rounds
    k = np.array([[0, 0], [0xffffffff] * 2, [0x13198a2e, 0x03707344]], np.uint32)
    c = np.array([[0, 0], [0xffffffff] * 2, [0x243f6a88, 0x85a308d3]], np.uint32)
    y = np.array([[0x6b200159, 0x99ba4efe], [0x1cb996fc, 0xbb002be7], [0xc4923a9c, 0x483df7a0]], np.uint32)
    F.apply("threefry2x32", [k[:, 0], k[:, 1], c[:, 0], c[:, 1]], [y[:, 0], y[:, 1]])
    # and of philox4x32, 10 rounds
    k = np.array([[0, 0], [2**32 - 1] * 2, [0xA4093822, 0x299F31D0]], np.uint32)
    c = np.array([[0] * 4, [2**32 - 1] * 4, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]], np.uint32)
    y = np.array([[0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]], np.uint32)
    F.apply("philox4x32", [*k.T, *c.T], [*y.T])


# ---- bodies ----

X = np.array([0.5, -2, 3], np.float32)


def call(F):
    F.program("{ lambda ; a:f32[3] b:f32[]. let c:f32[3] d:f32[] = jit[name=f jaxpr={ lambda ; a:f32[3] b:f32[]. let c:f32[3] = mul a b in (c, b) }] a b in (c, d) }",
              [X, np.float32(2)], [X * 2, np.float32(2)])
    F.program("""{ lambda ; a:i32[2]. let b:i32[2] = jit[name=f jaxpr={ lambda ; a:i32[2]. let b:i32[2] = jit[name=g jaxpr={ lambda ; a:i32[2]. let b:i32[2] = add a 1:i32[] in (b,) }] a;
              c:i32[2] = mul b b in (c,) }] a in (b,) }""", [np.array([1, 2], np.int32)], [np.array([4, 9], np.int32)])
    for differentiated in (True, False):
        F.program(f"""{{ lambda ; a:f32[3]. let b:f32[3] = remat2[jaxpr={{ lambda ; a:f32[3]. let b:f32[3] = mul a a; c:f32[3] = add b 1.0:f32[] in (c,) }} prevent_cse=True
                  differentiated={differentiated} policy=None] a in (b,) }}""", [X], [X * X + 1])


def custom(F):
    F.program("""{ lambda ; a:f32[3]. let b:f32[3] = custom_jvp_call[name=f call_jaxpr={ lambda ; a:f32[3]. let b:f32[3] = mul a a in (b,) }
              jvp={ lambda ; a:f32[3] t:f32[3]. let b:f32[3] = mul a a; c:f32[3] = mul a t in (b, c) } symbolic_zeros=False] a in (b,) }""", [X], [X * X])
    F.program("""{ lambda ; a:f32[3]. let b:f32[3] = custom_vjp_call[name=f call_jaxpr={ lambda ; a:f32[3]. let b:f32[3] = neg a in (b,) }
              fwd={ lambda ; a:f32[3]. let b:f32[3] = neg a in (b,) } bwd={ lambda ; g:f32[3]. let h:f32[3] = neg g in (h,) } num_outs=1 symbolic_zeros=False] a in (b,) }""", [X], [-X])


def cond(F):
    two = "{ lambda ; i:%s[] a:f32[3]. let b:f32[3] = cond[branches=({ lambda ; a:f32[3]. let b:f32[3] = neg a in (b,) } { lambda ; a:f32[3]. let b:f32[3] = mul a a in (b,) })] i a in (b,) }"
    for i in (-5, 0, 1, 7):
        F.program(two % "i32", [np.int32(i), X], [X * X if i > 0 else -X])
    three = """{ lambda ; i:i32[] a:i32[2] b:i32[2]. let c:i32[2] d:i32[] = cond[branches=({ lambda ; a:i32[2] b:i32[2]. let in (a, 1:i32[]) } { lambda ; a:i32[2] b:i32[2]. let in (b, 2:i32[]) }
            { lambda ; a:i32[2] b:i32[2]. let c:i32[2] = add a b; d:i32[] = reduce_sum[axes=(0,) out_sharding=None] c in (c, d) })] i a b in (c, d) }"""
    a, b = np.array([1, 2], np.int32), np.array([10, 20], np.int32)
    for i, y in enumerate([(a, np.int32(1)), (b, np.int32(2)), (a + b, np.int32(33))]):
        F.program(three, [np.int32(i), a, b], y)


def linear_solve(F):
    """The solver's answer is what comes out; the operator is for derivatives."""
    double, halve = (f"{{ lambda ; x:f32[3]. let y:f32[3] = mul x {k}:f32[] in (y,) }}" for k in ("2.0", "0.5"))
    F.program(f"""{{ lambda ; b:f32[3]. let x:f32[3] = custom_linear_solve[const_lengths=(0, 0, 0, 0) jaxprs=({double} {double} {halve} {halve})] b in (x,) }}""", [X], [X / 2])
    scale, unscale = (f"{{ lambda ; w:f32[] x:f32[3]. let y:f32[3] = {k} x w in (y,) }}" for k in ("mul", "div"))
    F.program(f"""{{ lambda ; w:f32[] b:f32[3]. let x:f32[3] = custom_linear_solve[const_lengths=(1, 1, 1, 1) jaxprs=({scale} {scale} {unscale} {unscale})] w w w w b in (x,) }}""",
              [np.float32(4), X], [X / 4])


def linalg(F):
    """Exact matrices where a result is not unique; else LAPACK's conventions, as JAX answers. In double precision: no GPU decomposes."""
    la = jax.lax.linalg
    rng = np.random.default_rng(11)
    a, b = rng.normal(size=(3, 3)), rng.normal(size=(3, 2))
    z = a + 1j * rng.normal(size=(3, 3))
    spd, hpd = a @ a.T + np.eye(3), z @ z.conj().T + np.eye(3)
    low = lambda x: np.tril(np.linalg.cholesky(x))
    for x in (spd, hpd, np.stack([np.eye(2), 4 * np.eye(2)])):
        F.apply("cholesky", [x], low(x))
    F.apply("cholesky", [np.array([[1., 2], [2, 1]])], np.array([[np.nan, 0], [np.nan, np.nan]]))
    F.apply("cholesky_update", [low(spd).T, a[0]], np.linalg.cholesky(spd + np.outer(a[0], a[0])).T)
    for lower, trans, unit in [(1, 0, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1)]:
        t = (np.tril if lower else np.triu)(a + 3 * np.eye(3))
        t = t - np.diag(np.diag(t)) + np.eye(3) if unit else t
        t = t.T if trans else t
        for left in (True, False):
            want = np.linalg.solve(t, b) if left else np.linalg.solve(t.T, b).T
            F.apply("triangular_solve", [a + 3 * np.eye(3), b if left else b.T], want,
                    f"conjugate_a=False left_side={left} lower={bool(lower)} transpose_a={bool(trans)} unit_diagonal={bool(unit)}")
    F.apply("triangular_solve", [z, b + 0j], np.linalg.solve(np.tril(z).conj().T, b), "conjugate_a=True left_side=True lower=True transpose_a=True unit_diagonal=False")
    F.apply("tridiagonal_solve", [np.array([0., 1, 2, 3]), np.array([0., 1, 1, 4]), np.array([2., 1, 1, 0]), np.ones((4, 1))],
            np.linalg.solve(np.array([[0., 2, 0, 0], [1, 1, 1, 0], [0, 2, 1, 1], [0, 0, 3, 4]]), np.ones((4, 1))), "perturb_singular=False")
    for x in (a, a[:2], a[:, :2], z, np.zeros((2, 2))):
        F.apply("lu", [x], list(la.lu(x)))
    F.apply("lu_pivots_to_permutation", [np.array([2, 2, 3], np.int32)], np.array([2, 0, 3, 1], np.int32), "permutation_size=4")
    F.apply("symmetric_product", [b, a], 2 * b @ b.T - a, "alpha=2.0 beta=-1.0")
    for x in (a, b, b.T, z):
        for full in (False, True):
            F.apply("qr", [x], list(la.qr(x, full_matrices=full)), f"full_matrices={full} pivoting=False use_magma=None")
    F.apply("qr", [np.array([[1., 0, 3], [0, 2, 0]])], [np.eye(2), np.array([[3., 0, 1], [0, 2, 0]]), np.array([2, 1, 0], np.int32)],
            "full_matrices=False pivoting=True use_magma=None")
    for x in (a, b, b.T, z):
        packed, taus = jax.numpy.linalg.qr(x, mode="raw")
        F.apply("geqrf", [x], [np.swapaxes(packed, -1, -2), taus])
    for x in (a, z):
        packed, taus = la.hessenberg(x)
        F.apply("hessenberg", [x], [packed, taus])
        F.apply("householder_product", [packed[1:, :-1], taus], la.householder_product(packed[1:, :-1], taus))
        F.apply("ormqr", [packed[1:, :-1], taus, (b + 0 * x[0, 0])[:2]], la.ormqr(packed[1:, :-1], taus, (b + 0 * x[0, 0])[:2], transpose=True), "left=True transpose=True")
    for x in (spd, hpd):
        for lower in (True, False):
            F.apply("tridiagonal", [x], list(la.tridiagonal(x, lower=lower)), f"lower={lower}")
    swap = np.array([[0., 1], [1, 0]])
    F.apply("eigh", [np.diag([2., 1])], [swap, np.array([1., 2])], "algorithm=None lower=True sort_eigenvalues=True subset_by_index=None")
    F.apply("eigh", [np.full((1, 1), np.nan)], [np.full((1, 1), np.nan), np.full(1, np.nan)], "algorithm=None lower=True sort_eigenvalues=True subset_by_index=None")
    F.apply("svd", [np.diag([3., 4])], [np.array([4., 3]), swap, swap], "algorithm=None compute_uv=True full_matrices=True subset_by_index=None")
    F.apply("svd", [a], np.linalg.svd(a, compute_uv=False), "algorithm=None compute_uv=False full_matrices=False subset_by_index=None")
    F.apply("eig", [np.diag([2., 1])], [np.array([2, 1 + 0j]), np.eye(2) + 0j, np.eye(2) + 0j],
            "compute_left_eigenvectors=True compute_right_eigenvectors=True enable_eigvec_derivs=False implementation=None")
    F.apply("eig", [np.array([[0., -4], [1, 0]])], np.array([2j, complex(0, -2)]),
            "compute_left_eigenvectors=False compute_right_eigenvectors=False enable_eigvec_derivs=False implementation=None")
    F.apply("schur", [np.array([[1., 5], [0, 2]])], [np.array([[1., 5], [0, 2]]), np.eye(2)], "compute_schur_vectors=True select_callable=None sort_eig_vals=False")


def loops(F):
    for n in (0, 1, 4):
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        for reverse in (False, True):
            step = f"""{{ lambda ; c:f32[2] x:f32[{n},2]. let d:f32[2] y:f32[{n},2] = scan[jaxpr={{ lambda ; c:f32[2] x:f32[2]. let s:f32[2] = add c x; t:f32[2] = mul s 2.0:f32[] in (s, t) }}
                   length={n} num_carry=1 num_consts=0 reverse={reverse} unroll=1] c x in (d, y) }}"""
            start, rows = np.array([1, -1], np.float32), x[::-1] if reverse else x
            sums = (start + np.cumsum(rows, 0)).astype(np.float32)
            F.program(step, [start, x], [sums[-1] if n else start, (sums[::-1] if reverse else sums) * 2])
    w = np.float32(3)
    F.program("""{ lambda ; w:f32[] x:f32[3]. let y:f32[3] = scan[jaxpr={ lambda ; w:f32[] x:f32[]. let y:f32[] = mul x w in (y,) } length=3 num_carry=0 num_consts=1 reverse=False unroll=2] w x in (y,) }""",
              [w, X], [X * 3])
    F.program("""{ lambda ; n:i32[] a:i32[3]. let b:i32[3] j:i32[] = while[body_jaxpr={ lambda ; a:i32[3] i:i32[]. let b:i32[3] = add a a; j:i32[] = add i 1:i32[] in (b, j) } body_nconsts=0
              cond_jaxpr={ lambda ; n:i32[] a:i32[3] i:i32[]. let p:bool[] = lt i n in (p,) } cond_nconsts=1] n a 0:i32[] in (b, j) }""",
              [np.int32(5), np.array([1, -1, 3], np.int32)], [np.array([32, -32, 96], np.int32), np.int32(5)])
    F.program("""{ lambda ; n:i32[] a:i32[3]. let b:i32[3] j:i32[] = while[body_jaxpr={ lambda ; a:i32[3] i:i32[]. let b:i32[3] = add a a; j:i32[] = add i 1:i32[] in (b, j) } body_nconsts=0
              cond_jaxpr={ lambda ; n:i32[] a:i32[3] i:i32[]. let p:bool[] = lt i n in (p,) } cond_nconsts=1] n a 0:i32[] in (b, j) }""",
              [np.int32(-1), np.array([1, -1, 3], np.int32)], [np.array([1, -1, 3], np.int32), np.int32(0)])
    # two that change places
    F.program("""{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] d:f32[3] = scan[jaxpr={ lambda ; a:f32[3] b:f32[3]. let in (b, a) } length=3 num_carry=2 num_consts=0 reverse=False unroll=1] a b in (c, d) }""",
              [X, X * 2], [X * 2, X])


def collective(F):
    """Over the three lanes of a vmap with a named axis."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    w = np.arange(18, dtype=np.float32).reshape(3, 3, 2)

    def one(name, params, v, out):
        F.entry(f'apply = "lanes 3: {name}[{params}] {aval(v[0])}"', [v], [out], name)
    for n, f in {"psum": np.sum, "pmax": np.max, "pmin": np.min}.items():
        for d in (np.float32, np.int32, np.float64):
            one(n, "axes=(i,)", x.astype(d), np.broadcast_to(f(x.astype(d), 0), x.shape))
        one(n, "axes=(i,)", x[:, 0], np.broadcast_to(f(x[:, 0]), (3,)))
    one("psum_invariant", "axes=(i,)", x, np.broadcast_to(x.sum(0), x.shape))
    one("unreduced_psum", "axes=(i,)", x, np.broadcast_to(x.sum(0), x.shape))
    for cast in ("pvary", "preduced", "vary_unreduced_cast_p", "reduced_vary_cast_p"):
        one(cast, "axes=(i,)", x, x)
    one("all_gather", "all_gather_dimension=0 axis_name=(i,) axis_size=3 tiled=False", x, np.broadcast_to(x, (3, 3, 4)))
    one("all_gather", "all_gather_dimension=1 axis_name=(i,) axis_size=3 tiled=False", x, np.broadcast_to(x.T, (3, 4, 3)))
    one("all_gather", "all_gather_dimension=0 axis_name=(i,) axis_size=3 tiled=True", x, np.broadcast_to(x.reshape(12), (3, 12)))
    for name in ("all_gather_invariant", "all_gather_reduced"):
        one(name, "all_gather_dimension=0 axis_name=(i,) axis_size=3 tiled=True", x, np.broadcast_to(x.reshape(12), (3, 12)))
    for name in ("reduce_scatter", "unreduced_reduce_scatter"):
        one(name, "axis_name=(i,) axis_size=3 scatter_dimension=0 tiled=False", w, w.sum(0))
    one("all_to_all", "axis_name=i axis_size=3 concat_axis=0 split_axis=0 tiled=False", w, w.transpose(1, 0, 2))
    apart = x[[2, 1, 2]]  # the largest of lanes 0 and 2, and of lane 1 alone
    one("pmax", "axes=(i,) axis_index_groups=((2, 0) (1,))", x, apart)
    one("psum", "axes=(i,) axis_index_groups=((2, 0) (1,))", x, np.stack([x[0] + x[2], x[1], x[0] + x[2]]))
    one("all_gather", "all_gather_dimension=0 axis_index_groups=((2, 0, 1),) axis_name=(i,) axis_size=3 tiled=False", x, np.broadcast_to(x[[2, 0, 1]], (3, 3, 4)))
    one("reduce_scatter", "axis_index_groups=((2, 0, 1),) axis_name=(i,) axis_size=3 scatter_dimension=0 tiled=False", w, w.sum(0)[[1, 2, 0]])
    one("all_to_all", "axis_index_groups=((2, 0, 1),) axis_name=i axis_size=3 concat_axis=0 split_axis=0 tiled=False", w, w[[2, 0, 1]].transpose(1, 0, 2)[[1, 2, 0]])
    one("ppermute", "axis_name=(i,) perm=((0, 1) (1, 2) (2, 0))", x, np.roll(x, 1, 0))
    one("ppermute", "axis_name=(i,) perm=((2, 0))", x, np.stack([x[2], np.zeros(4, np.float32), np.zeros(4, np.float32)]))


def pmap(F):
    """Inside a program, where it is a batched call."""
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    F.program("""{ lambda ; a:f32[3,2]. let b:f32[3,2] n:i32[3] = xla_pmap[axis_name=i axis_size=3 call_jaxpr={ lambda ; a:f32[2]. let b:f32[2] = psum[axes=(i,)] a; c:f32[2] = add b a;
              n:i32[] = axis_index[axis_name=i] in (c, n) } mapped=(True,) name=f] a in (b, n) }""", [x], [x.sum(0) + x, np.arange(3, dtype=np.int32)])
    F.program("""{ lambda ; a:f32[3,2]. let b:f32[3,2] = xla_pmap[axis_name=i axis_size=3 call_jaxpr={ lambda ; a:f32[2]. let b:f32[2] = psum[axes=(i,) axis_index_groups=((2, 0) (1,))] a
              in (b,) } mapped=(True,) name=f] a in (b,) }""", [x], [np.stack([x[0] + x[2], x[1], x[0] + x[2]])])


def shard_map(F):
    """Inside a program of one device, where the positions are lanes."""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    F.program("""{ lambda ; a:f32[4,3]. let b:f32[2,3] c:f32[4,3] n:i32[4] = shard_map[check_vma=False in_specs=(((i,), ()),) jaxpr={ lambda ; a:f32[2,3]. let b:f32[2,3] = psum[axes=(i,)] a;
              c:f32[2,3] = sub a b; n:i32[] = axis_index[axis_name=i]; m:i32[2] = broadcast_in_dim[shape=(2,) broadcast_dimensions=()] n in (b, c, m) } manual_axes=(i,)
              mesh=((i, 2),) out_specs=(((), ()), ((i,), ()), ((i,),))] a in (b, c, n) }""",
              [x], [x[:2] + x[2:], x - np.concatenate([x[:2] + x[2:]] * 2), np.array([0, 0, 1, 1], np.int32)])
    F.program("""{ lambda ; a:f32[4,3]. let b:f32[3,4] = shard_map[check_vma=False in_specs=(((i, j), ()),) jaxpr={ lambda ; a:f32[1,3]. let b:f32[3,1] = transpose[permutation=(1, 0)] a
              in (b,) } manual_axes=(j, i) mesh=((j, 2), (i, 2)) out_specs=(((), (i, j)),)] a in (b,) }""", [x], [x.T])


FAMILIES = [pointwise, convert, bitcast, broadcast, reshape, squeeze, transpose, rev, device_put, sharding_constraint, reshard, iota, ("slice", slices), pad, concatenate, select, clamp, gather, scatter, dynamic_slice, reduce,
            argreduce, cumulative, reduce_window, select_and_gather, reduce_by, sort, top_k, stack, tile, special, dot, fft, ragged_dot, conv, random, rng, barrier, call, custom, cond, linalg, linear_solve, loops, collective, pmap, shard_map]

if __name__ == "__main__":
    chosen = sys.argv[1:]  # all, or these
    for family in FAMILIES:
        name, make = family if isinstance(family, tuple) else (family.__name__, family)
        if chosen and name not in chosen:
            continue
        F = Family(name)
        make(F)
        F.write()
        print(f"{name}: {len(F.cases)} cases")
