"""Writes the corpora that tests/math.rs measures against, one file for each function, from mpmath.

    python crates/ferrax-kernel/tests/math/corpus.py [NAME ...]

A row is `argument[,argument],nearest,rest`: the bits of each argument and of the representable number nearest to the
exact value, in hexadecimal (8 digits: binary32, 16: binary64), and what is left of the exact value in hundredths of
a unit in the last place. Arguments are edges, random bit patterns over all exponents, and draws where the function
is at work. At zeros, ones, infinities and NaN the value is JAX's wherever that is a zero, an infinity or a NaN.
"""
import pathlib
import random
import struct
import sys

import jax
import numpy as np
from jax import lax
from mpmath import mp, mpf

jax.config.update("jax_enable_x64", True)
HERE = pathlib.Path(__file__).parent
INF = float("inf")
NAN = float("nan")


class Format:
    def __init__(self, wide):
        self.wide = wide
        self.digits = 53 if wide else 24
        self.least = -1074 if wide else -149
        self.normal = float(mpf(2) ** (self.least + self.digits - 1))
        self.max = mpf(2) ** (1024 if wide else 128) * (1 - mpf(2) ** -self.digits)
        self.dtype = np.float64 if wide else np.float32
        self.codes = ("<d", "<Q", 16) if wide else ("<f", "<I", 8)

    def round(self, x):
        with np.errstate(over="ignore"):
            return float(self.dtype(x))

    def bits(self, x):
        real, word, width = self.codes
        if x != x:
            return "7ff8000000000000" if self.wide else "7fc00000"
        return f"{struct.unpack(word, struct.pack(real, x))[0]:0{width}x}"

    def unbits(self, n):
        real, word, _ = self.codes
        return struct.unpack(real, struct.pack(word, n))[0]

    def nearest(self, exact):
        """The representable number nearest to an exact one, and the rest in hundredths of a unit."""
        if exact == 0:
            return 0.0, 0
        exponent = max(mp.frexp(abs(exact))[1] - self.digits, self.least)
        scaled = mp.ldexp(exact, -exponent)
        whole = mp.nint(scaled)
        value = mp.ldexp(whole, exponent)
        if abs(value) > self.max:
            return (INF if exact > 0 else -INF), 0
        rest = int(mp.nint((scaled - whole) * 100))
        value = float(value)
        return (value if value != 0 or exact > 0 else -0.0), rest


def uniform(lo, hi):
    return lambda rng, fmt: rng.uniform(lo, hi)


def near(x):
    """Around x at every distance that the format resolves."""
    return lambda rng, fmt: x + rng.choice((-1, 1)) * 2.0 ** rng.uniform(-fmt.digits, 0)


def logarithmic(lo, hi, both=True):
    return lambda rng, fmt: (rng.choice((-1, 1)) if both else 1) * 2.0 ** rng.uniform(lo, hi)


def multiples_of_half_pi(limit):
    return lambda rng, fmt: float(mpf(rng.randint(-limit, limit)) * mp.pi / 2)


def exp_range(rng, fmt):
    return rng.uniform(-746, 710) if fmt.wide else rng.uniform(-104, 89)


def exp2_range(rng, fmt):
    return rng.uniform(-1076, 1024) if fmt.wide else rng.uniform(-150, 128)


def real(f):
    """f, refusing what is not real."""
    def g(*x):
        y = f(*x)
        if isinstance(y, mp.mpc):
            raise ValueError
        return y
    return g


def clipped(f, bound):
    """f, whose answer in either format is settled past the bound."""
    return lambda x: f(max(min(x, mpf(bound)), -mpf(bound)))


def logistic(x):
    return 1 / (1 + mp.exp(-x)) if x > 0 else mp.exp(x) / (1 + mp.exp(x))


def erf_inv(x):
    """By Newton's method on erf, or on log erfc away from 0."""
    a = abs(x)
    if a >= 1:
        raise ValueError
    slope = lambda y: mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    if a < 0.5:
        y = a * mp.sqrt(mp.pi) / 2
        for _ in range(12):
            y -= (mp.erf(y) - a) * slope(y)
    else:
        gap = mp.log(1 - a)
        y = mp.sqrt(-gap)
        for _ in range(16):
            c = mp.erfc(y)
            y += (mp.log(c) - gap) * c * slope(y)
    return mp.sign(x) * y


def lgamma(x):
    if x <= 0 and x == mp.floor(x):
        return mp.inf
    if x < 0:
        f = -x - mp.nint(-x)
        return mp.log(mp.pi / (-x * abs(mp.sin(mp.pi * f)))) - mp.loggamma(-x)
    return mp.loggamma(x)


def digamma(x):
    if x <= 0 and x == mp.floor(x):
        raise ValueError
    if x < 0:
        f = -x - mp.nint(-x)
        return mp.digamma(-x) - 1 / x + mp.pi * mp.cot(mp.pi * f)
    return mp.digamma(x)


def power(x, y):
    whole = y == mp.floor(y)
    if x < 0 and not whole:
        raise ValueError
    sign = -1 if x < 0 and whole and mp.fmod(y, 2) != 0 else 1
    log = max(min(mp.log(abs(x)) * y, mpf(20000)), mpf(-20000))
    return sign * mp.exp(log)


def anywhere(rng, fmt):
    return fmt.unbits(rng.getrandbits(64 if fmt.wide else 32))


def pair(a, b):
    return lambda rng, fmt: (a(rng, fmt), b(rng, fmt))


def pow_finite(rng, fmt):
    x = 2.0 ** rng.uniform(-20, 20)
    return x, rng.uniform(-1, 1) * (1050 if fmt.wide else 140) / abs(np.log2(x))


def pow_near_one(rng, fmt):
    x = fmt.round(near(1.0)(rng, fmt))
    bound = 700 if fmt.wide else 80
    return x, rng.uniform(-bound, bound) / (abs(float(mp.log(abs(x)))) if x not in (0, 1) else 1.0)


def pow_integer(rng, fmt):
    return rng.uniform(-30, 30), float(rng.randint(-20, 20))


ANGLES = [uniform(-7, 7), multiples_of_half_pi(10**3), multiples_of_half_pi(10**7), logarithmic(5, 60)]
UNIT = [uniform(-1, 1), near(0), near(1), near(-1), near(0.5)]

# name: (exact, JAX's, draws)
UNARY = {
    "exp": (clipped(mp.exp, 20000), lax.exp, [uniform(-4, 4), exp_range, near(0)]),
    "exp2": (clipped(lambda x: mp.power(2, x), 20000), lax.exp2, [uniform(-4, 4), exp2_range, near(0)]),
    "expm1": (clipped(mp.expm1, 20000), lax.expm1, [uniform(-4, 4), exp_range, near(0), uniform(0.3, 0.5)]),
    "logistic": (clipped(logistic, 20000), lax.logistic, [uniform(-8, 8), exp_range, near(0)]),
    "log": (real(mp.log), lax.log, [uniform(0, 4), near(1), logarithmic(-30, 30, False)]),
    "log1p": (real(mp.log1p), lax.log1p, [uniform(-1, 4), near(0), logarithmic(-30, 30, False)]),
    "sin": (mp.sin, lax.sin, ANGLES),
    "cos": (mp.cos, lax.cos, ANGLES),
    "tan": (mp.tan, lax.tan, ANGLES),
    "asin": (real(mp.asin), lax.asin, UNIT),
    "acos": (real(mp.acos), lax.acos, UNIT),
    "atan": (mp.atan, lax.atan, [uniform(-3, 3), near(0), logarithmic(-3, 30)]),
    "sinh": (clipped(mp.sinh, 20000), lax.sinh, [uniform(-4, 4), exp_range, near(0)]),
    "cosh": (clipped(mp.cosh, 20000), lax.cosh, [uniform(-4, 4), exp_range, near(0)]),
    "tanh": (clipped(mp.tanh, 100), lax.tanh, [uniform(-1, 1), uniform(-10, 10), near(0)]),
    "asinh": (mp.asinh, lax.asinh, [uniform(-4, 4), near(0), logarithmic(-3, 40)]),
    "acosh": (real(mp.acosh), lax.acosh, [uniform(1, 5), near(1), logarithmic(1, 40, False)]),
    "atanh": (real(mp.atanh), lax.atanh, UNIT[:4]),
    "erf": (clipped(mp.erf, 100), lax.erf, [uniform(-1.5, 1.5), uniform(-6, 6), near(0)]),
    "erfc": (clipped(mp.erfc, 100), lax.erfc, [uniform(-1.5, 1.5), uniform(0, 28), uniform(0, 10.5), near(0)]),
    "erf_inv": (erf_inv, lax.erf_inv, UNIT[:4]),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), lax.cbrt, [uniform(-9, 9), logarithmic(-40, 40)]),
    "sqrt": (real(mp.sqrt), lax.sqrt, [uniform(0, 9), logarithmic(-40, 40, False)]),
    "rsqrt": (real(lambda x: 1 / mp.sqrt(x)), lax.rsqrt, [uniform(0, 9), logarithmic(-40, 40, False)]),
    "lgamma": (lgamma, lax.lgamma, [uniform(0, 10), uniform(8, 200), near(1), near(2), uniform(-6, 0)]),
    "digamma": (digamma, lax.digamma, [uniform(0, 10), uniform(8, 200), near(1), uniform(-6, 0)]),
}
BINARY = {
    "atan2": (mp.atan2, lax.atan2, [pair(uniform(-2, 2), uniform(-2, 2)), pair(logarithmic(-40, 40), logarithmic(-40, 40))]),
    "pow": (power, lax.pow, [pow_finite, pow_near_one, pow_integer]),
}
SPECIAL = (0.0, 1.0, -1.0, INF, -INF)


def edges(fmt):
    least = float(mp.ldexp(1, fmt.least))
    most = float(fmt.max)
    below_one = float(1 - mp.ldexp(1, -fmt.digits))
    above_one = float(1 + mp.ldexp(1, 1 - fmt.digits))
    positive = [0.0, least, 3 * least, fmt.normal - least, fmt.normal, 0.25, 0.5, below_one, 1.0, above_one, 1.5, 2.0, 3.0, 4.0, 8.0, 100.0, most / 2, most, INF]
    return [s * x for x in positive for s in (1, -1)] + [NAN]


def expected(fmt, exact, theirs, args):
    subnormal = any(0 < abs(a) < fmt.normal for a in args)
    if any(a in SPECIAL or a != a for a in args) and not subnormal:  # which JAX may flush
        value = float(theirs(*(jax.numpy.asarray(a, fmt.dtype) for a in args)))
        if value - value != 0 or value == 0 and all(a in SPECIAL for a in args):
            return value, 0
        if len(args) == 2 and any(a == 0 or a - a != 0 for a in args):
            # pow answers 1 here, and atan2 a multiple of pi / 4
            return (value, 0) if value in (0, 1) else fmt.nearest(mp.nint(value * 4 / mp.pi) * mp.pi / 4)
    if any(a != a for a in args):
        return NAN, 0
    # Huge arguments of sin, and arguments next to a zero, cancel that many digits.
    precision = 1400 if any(abs(a) > 2.0**60 or 0 < abs(a) < 2.0**-60 for a in args) else 300
    try:
        with mp.workprec(precision):
            value = exact(*map(mpf, args))
    except (ValueError, ZeroDivisionError):
        return NAN, 0
    if isinstance(value, mp.mpc) or value != value:
        return NAN, 0
    if abs(value) == mp.inf:
        return float(value), 0
    if args[0] == 0 and (value == 0 or theirs is lax.atan2):
        # mpmath has no -0
        value = abs(value) * mp.mpf(np.copysign(1, args[0]))
        return (args[0], 0) if value == 0 else fmt.nearest(value)
    with mp.workprec(precision):
        return fmt.nearest(value)


def main():
    mp.prec = 300
    for name in sys.argv[1:] or [*UNARY, *BINARY]:
        exact, theirs, draws = (UNARY | BINARY)[name]
        rng = random.Random(name)
        rows = []
        for fmt in (Format(False), Format(True)):
            some = edges(fmt)
            if name in UNARY:
                args = [(x,) for x in some]
                args += [(anywhere(rng, fmt),) for _ in range(90)]
                args += [(fmt.round(d(rng, fmt)),) for d in draws for _ in range(300 // len(draws))]
            else:
                few = [x for x in some if abs(x) in (0, 0.5, 1, 2, 3, INF) or x != x]
                args = [(x, y) for x in few for y in few]
                args += [(rng.choice(some), rng.choice(some)) for _ in range(60)]
                args += [(anywhere(rng, fmt), anywhere(rng, fmt)) for _ in range(60)]
                args += [tuple(map(fmt.round, d(rng, fmt))) for d in draws for _ in range(300 // len(draws))]
            for a in dict.fromkeys(args):
                value, rest = expected(fmt, exact, theirs, a)
                rows.append(",".join([*map(fmt.bits, a), fmt.bits(value), str(rest)]))
        (HERE / f"{name}.csv").write_text("\n".join(dict.fromkeys(rows)) + "\n")
        print(name, len(rows), flush=True)


main()
