"""Writes special.json beside this file: values of special functions by mpmath to 60 digits, from their definitions.

usage: python tests/golden/special.py        (needs mpmath)

A row is [function, keyword arguments, arguments: columns of binary fractions, values: one list a result]; complex numbers are pairs.
"""
import json
import pathlib

from mpmath import mp, mpc, mpf

mp.dps = 60
inf = mp.inf
sqrt, exp, log, pi = mp.sqrt, mp.exp, mp.log, mp.pi
WIDE = [2.0**-30, 2.0**-10, 0.125, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5, 6.0, 7.5, 9.75, 10.25, 12.0, 20.0, 33.0, 50.0, 100.0, 1000.0]
BOTH = [-x for x in WIDE] + WIDE


def erfcx(x):
    return exp(x * x) * mp.erfc(x) if x < 60 else asymptotic(x)


def asymptotic(x):
    return mp.fsum((-1) ** n * mp.fac2(2 * n - 1) / (2 * x * x) ** n for n in range(20)) / (x * sqrt(pi))


def wofz(z):
    with mp.workdps(200):
        return exp(-z * z) * mp.erfc(mpc(0, -1) * z)


def owens_t(h, a):
    end = min(abs(a), 60 / h) if h > 1 else abs(a)
    value = mp.quad(lambda t: exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [end * k / 20 for k in range(21)]) / (2 * pi)
    return value if a > 0 else -value


def harmonic(n, m, t, p):
    k = abs(m)
    x = mp.cos(mpf(t))
    legendre = (-1) ** k * (1 - x * x) ** (mpf(k) / 2) * mp.diff(lambda y: mp.legendre(n, y), x, k)
    value = legendre * sqrt((2 * n + 1) / (4 * pi) * mp.factorial(n - k) / mp.factorial(n + k)) * mp.expj(k * mpf(p))
    return value if m >= 0 else (-1) ** k * mp.conj(value)


GRID = [complex(x, y) for x in (-7.5, -3.0, -0.5, 0.0, 0.25, 1.0, 2.5, 5.0, 9.0) for y in (-2.5, -0.75, 0.0, 0.0625, 0.5, 2.0, 5.5)]
REAL = {
    "erfcx": (erfcx, [-9.0, -4.5, -1.0, *WIDE]),
    "dawsn": (lambda x: sqrt(pi) / 2 * exp(-x * x) * mp.erfi(x), BOTH[:19] + BOTH[20:39]),
    "log_ndtr": (lambda x: log(mp.ncdf(x)), [*[-x for x in WIDE], 0.125, 0.5, 1.0, 3.0, 5.0]),
    "expi": (mp.ei, [*[-x for x in WIDE[:16]], *WIDE[:3], 0.25, *WIDE[3:19], 80.0]),
    "exp1": (mp.e1, WIDE[:18]),
    "sici": (lambda x: (mp.si(x), mp.ci(abs(x))), [*BOTH, 4.0, 8.0, 1e5]),
    "fresnel": (lambda x: (mp.fresnels(x), mp.fresnelc(x)), [*BOTH, 2.5, 4.0, 31.25, 5000.5]),
    "spence": (lambda x: mp.polylog(2, 1 - x).real, [*WIDE, 0.9990234375, 1.0009765625, 2.0**40]),
}  # fmt: skip
PAIRS = {
    "expn": (lambda n, x: mp.expint(n, x), [(n, x) for n in (0, 1, 2, 3, 10, 300) for x in (2.0**-20, 0.125, 0.5, 1.0, 1.0625, 2.0, 10.0, 50.0)]),
    "owens_t": (owens_t, [(h, a) for h in (0.0, 0.125, 1.0, 3.0, 8.0) for a in (2.0**-7, 0.5, 0.984375, 1.0, 1.5, 7.0, 100.0, -2.0)]),
}  # fmt: skip


KUMMER = [(1, 2), (2.5, 2.5), (0.5, 1.5), (3, 0.25), (-2, 3), (-2, -4), (-0.5, 2), (1.5, -0.5), (10, 4)]
GAUSS = [(1, 2, 3), (0.5, 0.5, 1), (1, 1, 2), (1.5, 2.5, 0.75), (0.25, -0.5, 2), (2, 3, 1.5), (-0.5, 0.75, -1.5), (5, 0.5, 9), (1, 2, 2)]


def rows():
    for name, (f, xs) in REAL.items():
        values = [f(mpf(x)) for x in xs]
        values = zip(*[v if isinstance(v, tuple) else (v,) for v in values], strict=True)
        yield name, {}, [xs], [list(map(float, v)) for v in values]
    for name, (f, points) in PAIRS.items():
        yield name, {}, [list(c) for c in zip(*points, strict=True)], [[float(f(*map(mpf, p))) for p in points]]
    pair = lambda z: [float(z.real), float(z.imag)]
    points = [(a, b, x) for a, b in KUMMER for x in (-300.0, -80.0, -20.0, -3.0, -0.125, 2.0**-10, 0.5, 4.0, 30.0, 75.0)]
    yield "hyp1f1", {}, [list(c) for c in zip(*points, strict=True)], [[float(mp.hyp1f1(*map(mpf, p))) for p in points]]
    points = [(a, b, c, x) for a, b, c in GAUSS for x in (-1000.0, -5.0, -1.0, -0.875, -0.125, 2.0**-10, 0.5, 0.75, 0.984375, 1 - 2.0**-14)]
    points += [(-3, 2, 4, 2.5), (2, -2, 0.5, -40.0), (-3, 2, -4, 0.5), (-3, 2, -3, 0.5), (1, 2, 4, 1.0), (0.5, -0.25, 1.5, 1.0), (2.0, 0.5, 2.25, 1.0)]
    yield "hyp2f1", {}, [list(c) for c in zip(*points, strict=True)], [[float(mp.hyp2f1(*map(mpf, p))) for p in points]]
    x = [*[-x for x in WIDE[2:9]], 0.0, *WIDE, 1e5]
    for v in (1, 5, 40):
        yield "bessel_jn", {"v": v}, [x], [[[float(mp.besselj(k, mpf(t))) for t in x] for k in range(v + 1)]]
    points = [(n, m, t, p) for n in (0, 1, 2, 5, 20) for m in (-20, -3, -1, 0, 1, 2, 5) if abs(m) <= n for t in (0.125, 1.5, 3.0) for p in (-1.0, 0.75)]
    values = [harmonic(*p) for p in points]
    yield "sph_harm_y", {}, [list(c) for c in zip(*points, strict=True)], [[pair(v) for v in values]]
    yield "wofz", {}, [[pair(z) for z in GRID]], [[pair(wofz(mpc(z))) for z in GRID]]


if __name__ == "__main__":
    pathlib.Path(__file__).with_suffix(".json").write_text("[\n" + ",\n".join(json.dumps(row) for row in rows()) + "\n]\n")
