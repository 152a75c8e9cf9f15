"""Writes python/ferrax/scipy/_chebyshev_tables.py: Chebyshev coefficients of functions that `scipy.special` is made of, by mpmath to 60 digits.

usage: python tests/golden/chebyshev.py        (needs mpmath)

Each function is smooth on its interval, endpoints included: what is singular or large has been divided out.
"""
import itertools
import pathlib

from mpmath import mp, mpf

mp.dps = 60
N = 72
FILE = pathlib.Path(__file__).parents[2] / "python" / "ferrax" / "scipy" / "_chebyshev_tables.py"
sin, cos, sqrt, pi = mp.sin, mp.cos, mp.sqrt, mp.pi


def entire(x):
    """(Ei(|x|) - log|x| - gamma) / x, an entire function."""
    return mp.fsum(x ** (k - 1) / (k * mp.factorial(k)) for k in range(1, 120))


def sine_f(x):
    return mp.ci(x) * sin(x) + (pi / 2 - mp.si(x)) * cos(x)


def sine_g(x):
    return -mp.ci(x) * cos(x) + (pi / 2 - mp.si(x)) * sin(x)


def fresnel_f(x):
    return (mpf(1) / 2 - mp.fresnels(x)) * cos(pi * x * x / 2) - (mpf(1) / 2 - mp.fresnelc(x)) * sin(pi * x * x / 2)


def fresnel_g(x):
    return (mpf(1) / 2 - mp.fresnelc(x)) * cos(pi * x * x / 2) + (mpf(1) / 2 - mp.fresnels(x)) * sin(pi * x * x / 2)


# name: what it is, the function of the variable, the ends of its intervals
TABLES = {
    "EIN": ("(Ei(x) - log|x| - gamma) / x, of x", entire, (-1, 0, 3, 6)),
    "EI": ("x exp(-x) Ei(x), of 1 / x", lambda t: mp.exp(-1 / t) * mp.ei(1 / t) / t, (0, mpf(1) / 48, mpf(1) / 24, mpf(1) / 12, mpf(1) / 6)),
    "E1": ("x exp(x) E1(x), of 1 / x", lambda t: mp.exp(1 / t) * mp.e1(1 / t) / t, (0, mpf(1) / 4, 1)),
    "SI": ("Si(x) / x, of x^2", lambda u: mp.si(sqrt(u)) / sqrt(u), (0, 16)),
    "CIN": ("(Ci(x) - log(x) - gamma) / x^2, of x^2", lambda u: (mp.ci(sqrt(u)) - mp.log(sqrt(u)) - mp.euler) / u, (0, 16)),
    "SINE_F": ("x f(x), of 1 / x^2; Si(x) = pi / 2 - f(x) cos(x) - g(x) sin(x)", lambda u: sine_f(1 / sqrt(u)) / sqrt(u), (0, mpf(1) / 64, mpf(1) / 16)),
    "SINE_G": ("x^2 g(x), of 1 / x^2; Ci(x) = f(x) sin(x) - g(x) cos(x)", lambda u: sine_g(1 / sqrt(u)) / u, (0, mpf(1) / 64, mpf(1) / 16)),
    "FRESNEL_S": ("S(x) / x^3, of x^4", lambda u: mp.fresnels(u ** mpf("0.25")) / u ** mpf("0.75"), (0, mpf(81) / 16)),
    "FRESNEL_C": ("C(x) / x, of x^4", lambda u: mp.fresnelc(u ** mpf("0.25")) / u ** mpf("0.25"), (0, mpf(81) / 16)),
    "FRESNEL_F": ("pi x f(x), of 1 / x^4; C(x) = 1/2 + f(x) sin(pi x^2 / 2) - g(x) cos(pi x^2 / 2)", lambda u: pi * fresnel_f(u ** mpf("-0.25")) / u ** mpf("0.25"),
                  (0, mpf(1) / 81, mpf(16) / 81)),
    "FRESNEL_G": ("pi^2 x^3 g(x), of 1 / x^4; S(x) = 1/2 - f(x) cos(pi x^2 / 2) - g(x) sin(pi x^2 / 2)", lambda u: pi**2 * fresnel_g(u ** mpf("-0.25")) / u ** mpf("0.75"),
                  (0, mpf(1) / 81, mpf(16) / 81)),
}  # fmt: skip


def coefficients(f, low, high):
    nodes = [cos(pi * (j + mpf(1) / 2) / N) for j in range(N)]
    values = [f((low + high) / 2 + (high - low) / 2 * s) for s in nodes]
    out = [2 * mp.fsum(v * cos(pi * k * (j + mpf(1) / 2) / N) for j, v in enumerate(values)) / N for k in range(N)]
    out[0] /= 2
    size = max(map(abs, values))
    while abs(out[-1]) < size * mpf(2) ** -56:
        out.pop()
    assert len(out) < N - 8
    return [float(c) for c in out]


def text():
    lines = [
        '"""Chebyshev coefficients, written by tests/golden/chebyshev.py.', "",
        "Invariant: a table is a tuple of pieces (low, high, coefficients), the pieces in increasing order and adjacent.", "",
        "    len(SI[0][2]) coefficients give Si(x) / x on [0, 4]", '"""', "",
    ]  # fmt: skip
    for name, (what, f, ends) in TABLES.items():
        lines += [f"# {what}", f"{name} = ("]
        for low, high in itertools.pairwise(ends):
            lines += [f"    ({float(low)!r}, {float(high)!r}, (", *[f"        {c!r}," for c in coefficients(f, mpf(low), mpf(high))], "    )),"]
        lines += [")  # fmt: skip", ""]
    return "\n".join(lines[:-1]) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
