"""Writes coefficients.rs: minimax polynomials for math.rs, found here by Remez's exchange in mpmath.

    python crates/ferrax-kernel/src/math/fit.py [NAME ...]

Each row of FITS is (name, target, weight, interval, terms in f32, terms in f64): the polynomial p with that many
coefficients that makes max |weight * (p - target)| least, its coefficients rounded to the format one after another,
highest first, the lower ones refitted each time. The error printed beside each polynomial is log2 of the maximum.
With names, only those are fitted; the others stay as they are in the file.
"""
import functools
import pathlib
import re
import struct
import sys

from mpmath import mp, mpf

mp.dps = 60


def to_f32(x):
    # Round to 24 bits directly: going through f64 would round twice.
    with mp.workprec(24):
        return +mpf(x)


def to_f64(x):
    with mp.workprec(53):
        return +mpf(x)


def solve(points):
    """The polynomial whose weighted error alternates with one level over the points."""
    n = len(points) - 1
    a = mp.matrix(n + 1, n + 1)
    b = mp.matrix(n + 1, 1)
    for i, (x, t, w) in enumerate(points):
        for j in range(n):
            a[i, j] = w * x**j
        a[i, n] = (-1) ** i
        b[i] = w * t
    s = mp.lu_solve(a, b)
    return [s[j] for j in range(n)]


def horner(cs, x):
    p = mpf(0)
    for c in reversed(cs):
        p = p * x + c
    return p


def errors(cs, grid):
    return [w * (horner(cs, x) - t) for x, t, w in grid]


def remez(grid, n):
    m = len(grid)
    pick = [round((1 - mp.cos(mp.pi * (i + 0.5) / (n + 1))) / 2 * (m - 1)) for i in range(n + 1)]
    best, best_level = None, None
    for _ in range(20):
        cs = solve([grid[i] for i in pick])
        es = errors(cs, grid)
        level = max(abs(e) for e in es)
        if best_level is None or level < best_level:
            best, best_level = cs, level
        # one extremum for each run of equal sign, then the best alternating window of the needed length
        runs = []
        for i, e in enumerate(es):
            if runs and (es[runs[-1]] > 0) == (e > 0):
                if abs(e) > abs(es[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > n + 1:
            if abs(es[runs[0]]) < abs(es[runs[-1]]):
                runs.pop(0)
            else:
                runs.pop()
        if len(runs) < n + 1:
            raise ArithmeticError("the error does not alternate")
        pick = runs
        if level < min(abs(es[i]) for i in pick) * mpf("1.02"):
            break
    return best


def fit(target, weight, lo, hi, n, rounding):
    lo, hi = mpf(lo), mpf(hi)
    m = 40 * n
    # an interior Chebyshev grid, denser at the ends, that avoids removable singularities at exact points
    xs = [lo + (hi - lo) * (1 - mp.cos(mp.pi * (i + mpf("0.37")) / m)) / 2 for i in range(m)]
    ws = [abs(weight(x)) for x in xs]
    # a weight that vanishes somewhere would leave the exchange singular there
    floor = max(ws) / 30
    grid = [(x, target(x), max(w, floor)) for x, w in zip(xs, ws)]
    cs = []
    rest = grid
    for i in reversed(range(n)):
        c = rounding(remez(rest, i + 1)[i])
        cs.insert(0, c)
        rest = [(x, t - c * x**i, w) for x, t, w in rest]
    level = max(abs(e) for e in errors(cs, grid))
    return cs, mp.log(level, 2)


def sq(f):
    """f, a function of x, as a function of z = x^2."""
    return lambda z: f(mp.sqrt(z))


def scaled_erfc(x):
    """Between 1.12 and 1.29, so that its polynomial's first coefficient is most of it."""
    return (2 * x + 1) * mp.exp(x * x) * mp.erfc(x)


def stirling(z):
    return (z - 0.5) * mp.log(z) - z + mp.log(2 * mp.pi) / 2


ERF_INV_AT_0 = mp.sqrt(mp.pi) / 2


@functools.cache
def erf_inv_ratio(w):
    """erf_inv(x) / x as a function of w = -log(1 - x^2)."""
    x = mp.sqrt(-mp.expm1(-w))
    if w < 1:
        return mp.findroot(lambda y: mp.erf(y) - x, x * mpf("0.9")) / x
    log_gap = -w - mp.log1p(x)  # log(1 - x)
    return mp.findroot(lambda y: mp.log(mp.erfc(y)) - log_gap, mp.sqrt(max(w - mp.log(w * 2 + 1), mpf("0.5")))) / x


LN2_2 = mpf("0.3475")
QUARTER = (mp.pi / 4 * mpf("1.0001")) ** 2
S2 = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.0001")
DIGAMMA_ROOT = mp.findroot(mp.digamma, mpf("1.4616"))
ERFCX_SHIFT = mpf(3)

# name: (doc, target, weight, interval32, terms32, interval64, terms64)
FITS = {
    "EXP": ("(e^r - 1 - r) / r^2 on |r| <= ln(2)/2", lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.expm1(r), (-LN2_2, LN2_2), 5, (-LN2_2, LN2_2), 11),
    "EXP2": ("(2^r - 1 - r ln(2)) / r^2 on |r| <= 1/2", lambda r: (mp.expm1(r * mp.ln(2)) - r * mp.ln(2)) / r**2, lambda r: r**2, (-0.5, 0.5), 5, (-0.5, 0.5), 11),
    "LOG": ("(2 atanh(s) - 2 s) / s^3 of s^2 on |s| <= 0.1716", sq(lambda s: (2 * mp.atanh(s) - 2 * s) / s**3), lambda z: z, None, 0, (0, S2), 7),
    "LOG1P": ("(log(1 + f) - f) / f^2 on 1 + f in [sqrt(1/2), sqrt(2)]", lambda f: (mp.log1p(f) - f) / f**2, lambda f: f**2 / mp.log1p(f), (mpf("-0.2929"), mpf("0.4143")), 9, None, 0),
    "LOG_TAIL": ("(2 atanh(s) - 2 s - 2/3 s^3) / s^5 of s^2 on |s| <= 0.1716", sq(lambda s: (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5), lambda z: z**2, (0, S2), 4, (0, S2), 9),
    "SIN": ("(sin(r) - r) / r^3 of r^2 on |r| <= pi/4", sq(lambda r: (mp.sin(r) - r) / r**3), lambda z: z, (0, QUARTER), 3, (0, QUARTER), 6),
    "COS": ("(cos(r) - 1 + r^2/2) / r^4 of r^2 on |r| <= pi/4", sq(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4), lambda z: z**2, (0, QUARTER), 3, (0, QUARTER), 6),
    "ATAN": ("(atan(t) - t) / t^3 of t^2 on |t| <= 7/16", sq(lambda t: (mp.atan(t) - t) / t**3), lambda z: z, (0, mpf("0.1916")), 5, (0, mpf("0.1916")), 11),
    "ASIN": ("(asin(x) - x) / x^3 of x^2 on |x| <= 1/2", sq(lambda x: (mp.asin(x) - x) / x**3), lambda z: z, (0, 0.25), 5, (0, 0.25), 12),
    "SINH": ("(sinh(x) - x) / x^3 of x^2 on |x| <= 1", sq(lambda x: (mp.sinh(x) - x) / x**3), lambda z: z, (0, 1), 4, (0, 1), 8),
    "TANH": ("(tanh(x) - x) / x^3 of x^2 on |x| <= 0.625", sq(lambda x: (mp.tanh(x) - x) / x**3), lambda z: z, (0, mpf("0.391")), 5, (0, mpf("0.391")), 11),
    "ERF": ("erf(x) / x - 1 of x^2 on |x| <= 1", sq(lambda x: mp.erf(x) / x - 1), lambda z: 1, (0, 1), 8, (0, 1), 14),
    "ERF_FAR": ("-log(1 - erf(x)) on 1 <= x <= 4", lambda x: -mp.log(mp.erfc(x)), mp.erfc, (1, 4), 8, None, 0),
    "ERFCX": ("(2 x + 1) e^(x^2) erfc(x) of 1 / (x + 3) on x >= 0.79", lambda s: scaled_erfc(1 / s - ERFCX_SHIFT), lambda s: 1 / scaled_erfc(1 / s - ERFCX_SHIFT), (1 / mpf("13.3"), 1 / mpf("3.79")), 11, (1 / mpf("30.5"), 1 / mpf("3.79")), 20),
    "ERF_INV": ("(erf_inv(x) / x - sqrt(pi)/2) / w of w - 3.125, w = -log(1 - x^2) <= 6.25", lambda v: (erf_inv_ratio(v + mpf("3.125")) - ERF_INV_AT_0) / (v + mpf("3.125")), lambda v: (v + mpf("3.125")) / erf_inv_ratio(v + mpf("3.125")), (mpf("-3.1249"), mpf("3.13")), 12, (mpf("-3.1249"), mpf("3.13")), 24),
    "ERF_INV_TAIL": ("erf_inv(x) / x of sqrt(w) - 3.25, 6.25 <= w <= 16", lambda v: erf_inv_ratio((v + mpf("3.25")) ** 2), lambda v: 1 / erf_inv_ratio((v + mpf("3.25")) ** 2), (mpf("-0.751"), mpf("0.751")), 10, (mpf("-0.751"), mpf("0.751")), 22),
    "ERF_INV_FAR": ("erf_inv(x) / x of sqrt(w) - 5, w >= 16", lambda v: erf_inv_ratio((v + 5) ** 2), lambda v: 1 / erf_inv_ratio((v + 5) ** 2), None, 0, (mpf("-1.001"), mpf("1.1")), 20),
    "LGAMMA": ("lgamma(2 + u) / u on |u| <= 1/2", lambda u: mp.loggamma(2 + u) / u, lambda u: u / mp.loggamma(2 + u), (-0.5, 0.5), 9, (-0.5, 0.5), 19),
    "STIRLING": ("z (lgamma(z) - (z - 1/2) ln(z) + z - ln(2 pi)/2) of 1/z^2 on z >= 8", sq(lambda w: (mp.loggamma(1 / w) - stirling(1 / w)) / w), lambda w: 1 / mpf(16), (mpf(2) ** -60, mpf(1) / 64), 3, (mpf(2) ** -60, mpf(1) / 64), 7),
    "DIGAMMA": ("digamma(3/2 + u) / (3/2 + u - root) on |u| <= 1/2", lambda u: mp.digamma(1.5 + u) / (1.5 + u - DIGAMMA_ROOT), lambda u: (1.5 + u - DIGAMMA_ROOT) / mp.digamma(1.5 + u), (-0.5, 0.5), 10, (-0.5, 0.5), 21),
    "DIGAMMA_TAIL": ("z^2 (ln(z) - 1/(2 z) - digamma(z)) of 1/z^2 on z >= 8", sq(lambda w: (mp.log(1 / w) - w / 2 - mp.digamma(1 / w)) / w**2), lambda w: w, (mpf(2) ** -60, mpf(1) / 64), 3, (mpf(2) ** -60, mpf(1) / 64), 8),
    "CBRT": ("x^(-1/3) on 1 <= x <= 2", lambda x: x ** (-mpf(1) / 3), lambda x: x ** (mpf(1) / 3), (1, 2), 4, (1, 2), 6),
}


HEADER = "//! Minimax polynomials, lowest coefficient first. Made by `fit.py`; the comment gives log2 of the largest weighted error.\n\n"


def text(c, wide):
    if wide:
        return repr(float(c))
    import numpy as np

    return np.format_float_scientific(np.float32(float(c)), unique=True, trim="0") if abs(c) < 1e-4 or abs(c) >= 1e7 else np.format_float_positional(np.float32(float(c)), unique=True, trim="0")


def literal(c, wide):
    out = text(c, wide)
    assert struct.unpack("<d", struct.pack("<d", float(out)))[0] == float(out)
    if not wide:
        import numpy as np

        assert float(np.float32(out)) == float(c), (out, c)
    else:
        assert float(out) == float(c)
    if "e" in out:
        mantissa, exponent = out.split("e")
        out = f"{mantissa}e{int(exponent)}"
    return out


def rows(name):
    doc, target, weight, i32, n32, i64, n64 = FITS[name]
    out = []
    for wide, interval, n, rounding in ((False, i32, n32, to_f32), (True, i64, n64, to_f64)):
        if interval is None:  # the format has no such argument
            continue
        cs, level = fit(target, weight, *interval, n, rounding)
        width = 64 if wide else 32
        out.append(f"/// {doc}: {mp.nstr(level, 4)}.")
        out.append(f"pub(super) const {name}_{width}: [f{width}; {n}] = [")
        out += [f"    {literal(c, wide)}," for c in cs]
        out.append("];")
        print(name, width, n, mp.nstr(level, 5), file=sys.stderr, flush=True)
    return "\n".join(out) + "\n"


def main():
    path = pathlib.Path(__file__).with_name("coefficients.rs")
    names = sys.argv[1:] or list(FITS)
    out = HEADER
    for name in FITS:
        if name in names:
            out += rows(name)
        else:
            out += "".join(re.findall(rf"^///[^\n]*\npub\(super\) const {name}_(?:32|64): .*?\];\n", path.read_text(), re.M | re.S))
    path.write_text(out)


main()
