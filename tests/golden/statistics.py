"""Writes statistics.json beside this file: logarithms of densities and distribution functions, by mpmath to 50 digits from their definitions.

usage: python tests/golden/statistics.py        (needs mpmath)

A row is [distribution, shape parameters, points, {function: values}]; the points and parameters are binary fractions, so that every dtype has them.
"""
import json
import pathlib

from mpmath import mp, mpf

mp.dps = 50
inf = mpf("inf")
G, LG, log, exp, pi, sqrt = mp.gamma, mp.loggamma, mp.log, mp.exp, mp.pi, mp.sqrt
LB = lambda a, b: LG(a) + LG(b) - LG(a + b)
Q = lambda a, x: mp.gammainc(a, x, inf, regularized=True)
P = lambda a, x: mp.gammainc(a, 0, x, regularized=True)
I = lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True)
N = lambda x: mp.erfc(-x / sqrt(2)) / 2
phi = lambda x: exp(-x * x / 2) / sqrt(2 * pi)
choose = lambda n, k: mp.binomial(n, k)
LINE = [-300.0, -40.0, -8.5, -1.0, -0.125, 0.0, 0.25, 1.0, 3.5, 12.0, 60.0, 1000.0]
HALF = [2**-20, 0.125, 0.5, 1.0, 2.0, 4.5, 20.0, 150.0, 700.0]
UNIT = [2**-20, 0.125, 0.5, 0.75, 1 - 2**-10]
COUNTS = [0, 1, 2, 3, 5, 9, 40]

# distribution: shape parameters, points, density, distribution function, survival function
CONTINUOUS = {
    "norm": ([()], LINE, phi, N, lambda x: N(-x)),
    "cauchy": ([()], [-1e10, *LINE, 1e10], lambda x: 1 / (pi * (1 + x * x)), lambda x: mp.acot(-x) / pi % 1 if x else mpf(0.5), lambda x: mp.acot(x) / pi % 1 if x else mpf(0.5)),
    "laplace": ([()], LINE, lambda x: exp(-abs(x)) / 2, lambda x: exp(x) / 2 if x < 0 else 1 - exp(-x) / 2, None),
    "logistic": ([()], LINE, lambda x: exp(-abs(x)) / (1 + exp(-abs(x))) ** 2, lambda x: 1 / (1 + exp(-x)), lambda x: 1 / (1 + exp(x))),
    "gumbel_r": ([()], LINE[2:], lambda x: exp(-(x + exp(-x))), lambda x: exp(-exp(-x)), lambda x: -mp.expm1(-exp(-x))),
    "gumbel_l": ([()], [-x for x in LINE[2:]], lambda x: exp(x - exp(x)), lambda x: -mp.expm1(-exp(x)), lambda x: exp(-exp(x))),
    "expon": ([()], HALF, lambda x: exp(-x), lambda x: -mp.expm1(-x), lambda x: exp(-x)),
    "uniform": ([()], UNIT, lambda x: mpf(1), lambda x: x, None),
    "gamma": ([(0.125,), (1,), (1.5,), (30,), (1000,)], HALF, lambda x, a: exp((a - 1) * log(x) - x - LG(a)), lambda x, a: P(a, x), lambda x, a: Q(a, x)),
    "chi2": ([(1,), (3,), (64,)], HALF, lambda x, k: exp((k / 2 - 1) * log(x / 2) - x / 2 - LG(k / 2)) / 2, lambda x, k: P(k / 2, x / 2), lambda x, k: Q(k / 2, x / 2)),
    "beta": ([(0.5, 0.5), (2, 3), (1, 1), (30, 0.5), (40, 60)], UNIT, lambda x, a, b: exp((a - 1) * log(x) + (b - 1) * log(1 - x) - LB(a, b)), lambda x, a, b: I(a, b, x),
             lambda x, a, b: I(b, a, 1 - x)),
    "pareto": ([(3,), (0.25,)], [1 + 2**-10, 1.5, 4.0, 1e6], lambda x, b: b / x ** (b + 1), lambda x, b: 1 - x**-b, lambda x, b: x**-b),
    "t": ([(1,), (3.5,), (200,), (1e7,)], [*LINE, 1e10], lambda x, v: exp(LG((v + 1) / 2) - LG(v / 2) - (v + 1) / 2 * mp.log1p(x * x / v)) / sqrt(v * pi), None, None),
    "gennorm": ([(0.5,), (1,), (3,)], [-40.0, -3.0, -0.125, 0.0, 0.5, 2.0], lambda x, b: b / (2 * G(1 / b)) * exp(-(abs(x) ** b)),
                lambda x, b: Q(1 / b, abs(x) ** b) / 2 if x < 0 else 1 - Q(1 / b, x**b) / 2, None),
    "truncnorm": ([(-2, 1), (0.5, 3), (-60, -30), (30, 31)], [-40.0, -30.5, -1.5, 0.0, 0.75, 2.5, 30.5], lambda x, a, b: phi(x) / (N(b) - N(a) if b < 0 else N(-a) - N(-b)),
                  lambda x, a, b: (N(x) - N(a)) / (N(b) - N(a)) if b < 0 else (N(-a) - N(-x)) / (N(-a) - N(-b)),
                  lambda x, a, b: (N(b) - N(x)) / (N(b) - N(a)) if b < 0 else (N(-x) - N(-b)) / (N(-a) - N(-b))),
    "vonmises": ([(0.25,), (2,), (1000,)], [-7.0, 0.0, 0.0625, 1.0, 3.0, 9.0], lambda x, k: exp(k * mp.cos(x)) / (2 * pi * mp.besseli(0, k)), None, None),
    "wrapcauchy": ([(0.5,), (0.984375,), (2**-6,)], [0.0, 2**-8, 1.0, 3.0, 6.0], lambda x, c: (1 - c * c) / (2 * pi * (1 + c * c - 2 * c * mp.cos(x))), None, None),
}  # fmt: skip
DISCRETE = {
    "bernoulli": ([(0.25,), (0,), (1,)], [0, 1], lambda k, p: p if k else 1 - p),
    "binom": ([(4, 0.25), (40, 0.5), (9, 1), (100000, 0.0001220703125)], COUNTS, lambda k, n, p: choose(n, k) * p**k * (1 - p) ** (n - k) if k <= n else mpf(0)),
    "betabinom": ([(4, 1, 2), (40, 0.5, 30)], COUNTS, lambda k, n, a, b: choose(n, k) * exp(LB(k + a, n - k + b) - LB(a, b)) if k <= n else mpf(0)),
    "geom": ([(0.25,), (1,), (2**-12,)], COUNTS, lambda k, p: p * (1 - p) ** (k - 1) if k else mpf(0)),
    "nbinom": ([(3, 0.25), (2.5, 0.5), (1000, 0.9375)], COUNTS, lambda k, n, p: exp(LG(k + n) - LG(k + 1) - LG(n)) * p**n * (1 - p) ** k),
    "poisson": ([(0,), (0.125,), (3,), (100,)], COUNTS, lambda k, m: m**k * exp(-m) / mp.factorial(k)),
}  # fmt: skip
ENTROPY = [0.125, 1.0, 3.0, 10.0, 99.0, 101.0, 1000.0]


def logarithm(x):
    return float(log(x)) if x > 0 else float("-inf")


def rows():
    for name, (parameters, points, density, cdf, sf) in CONTINUOUS.items():
        for shapes in parameters:
            inside = [x for x in points if name != "truncnorm" or shapes[0] <= x <= shapes[1]]
            values = {
                f: [logarithm(g(mpf(x), *map(mpf, shapes))) for x in inside] for f, g in (("logpdf", density), ("logcdf", cdf), ("logsf", sf)) if g is not None
            }
            yield name, shapes, inside, values
    for name, (parameters, points, density) in DISCRETE.items():
        for shapes in parameters:
            yield name, shapes, points, {"logpmf": [logarithm(density(mpf(k), *map(mpf, shapes))) for k in points]}
    for m in (0.125, 3, 100):
        yield "poisson", (m,), COUNTS, {"logcdf": [logarithm(Q(k + 1, mpf(m))) for k in COUNTS]}


def entropy(m):
    p = lambda k: exp(-m + k * log(m) - LG(k + 1))
    return float(-mp.fsum(p(k) * log(p(k)) for k in range(int(m + 40 * sqrt(m) + 60))))


if __name__ == "__main__":
    text = "[\n" + ",\n".join(json.dumps(row) for row in [*rows(), ("entropy", (), ENTROPY, {"entropy": [entropy(mpf(m)) for m in ENTROPY]})]) + "\n]\n"
    pathlib.Path(__file__).with_suffix(".json").write_text(text.replace("-Infinity", "null"))
