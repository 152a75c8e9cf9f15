"""Samples of symbolic sizes, and the expressions of sizes that have given values at them.

    Fit([{"b": 3}, {"b": 7}, ..], [b], ["b"]).expressions([(7, 15, ..)])    # ["2*b + 1"]

Invariant: an expression that is found has the values at every sample.
"""

from __future__ import annotations

import fractions
import itertools
import math
import random

from .symbolic import SizeExpr, symbolic_shape

_RANGES = ((601, 1279), (101, 600), (17, 100), (4, 16), (1, 16), (1, 4096))


class Samples:
    """Values for the names of a scope that satisfy its constraints: first those with which user
    code is traced, then as many as requested.
    """

    def __init__(self, scope, sizes):
        self.names = sorted({n for e in sizes for n in e.names()})
        self._conditions = [(d, equal) for _, d, equal in scope.constraints if d.names() <= set(self.names)]
        self._conditions += [(e - 1, False) for e in sizes]
        self._random, self.made = random.Random(0), []

    def __getitem__(self, i):
        while len(self.made) <= i:
            self.made.append(self._draw())
        return self.made[i]

    def large(self):
        """For each name a sample where its size is larger than the numbers that programs name, if
        the constraints admit one.
        """
        for name in self.names:
            for _ in range(200):
                sample = {n: self._random.randint(17, 100) for n in self.names} | {name: self._random.randint(17000, 21000)}
                if self._fits(sample):
                    yield sample
                    break

    def sides(self, known):
        """Samples on either side of where each maximum and minimum among the expressions
        changes.
        """
        out = []
        for e in known:
            for f in {f for t in e.terms for f in t if not isinstance(f, str) and f[0] in ("max", "min")}:
                difference = f[1] - f[2]
                for sign in (1, -1):
                    if not any(sign * difference.value(s) > 0 for s in [*self.made, *out]):
                        found = self._random_sample(lambda s, d=difference, k=sign: k * d.value(s) > 0)
                        out += [found] if found else []
        return out

    def apart(self, e, f):
        """A sample at which two expressions differ; None if none was found."""
        return self._random_sample(lambda s: e.value(s) != f.value(s))

    def _random_sample(self, wanted):
        for k in range(3000):
            sample = {n: self._random.randint(1, (8, 40, 300, 3000)[k % 4]) for n in self.names}
            if self._fits(sample) and wanted(sample):
                return sample
        return None

    def _draw(self):
        for low, high in _RANGES:
            # primes are not multiples of each other, and do not occur as sizes in programs
            primes = [n for n in range(low, high + 1) if n > 16 and all(n % k for k in range(2, math.isqrt(n) + 1))]
            # for the others any numbers are suitable: odd numbers alone would not distinguish halves
            for pool in filter(None, (() if self.made else primes, range(low, high + 1))):
                for _ in range(400):
                    sample = {n: self._random.choice(pool) for n in self.names}
                    distinct = len(set(sample.values())) == len(sample) and sample not in self.made
                    if distinct and self._fits(sample):
                        return sample
        for _ in range(20000):
            sample = {n: self._random.randint(1, 40) for n in self.names}
            if self._fits(sample):
                return sample
        raise ValueError("no sizes were found that satisfy the constraints of the symbolic scope")

    def _fits(self, sample):
        values = ((d.value(sample), equal) for d, equal in self._conditions)
        return all(v == 0 if equal else v >= 0 for v, equal in values)


class Fit:
    """Finds the expression that has given values at samples."""

    def __init__(self, samples, known, names):
        self.samples, self.scope = samples, known[0].scope
        variables = symbolic_shape(",".join(names), scope=self.scope)
        most = 4 if len(names) == 1 else 3
        products = [math.prod(c[1:], start=c[0]) for k in range(1, most + 1) for c in itertools.combinations_with_replacement(variables, k)]
        self.terms, self._seen = [], set()
        self._extend([*known, *products])

    def _extend(self, found):
        for e in found:
            if isinstance(e, SizeExpr) and e not in self._seen:
                self._seen.add(e)
                self.terms.append((e, [e.value(s) for s in self.samples]))

    def expressions(self, sizes):
        """For each size, given by its values, an expression as text; None if no unique expression
        was found.
        """
        found = [self._expression(v) for v in sizes]
        if None in found:
            # a number that is not an expression of the names may be one of the expressions found,
            # such as the size of an array
            new = symbolic_shape(",".join(e for e in found if e and not e.startswith("ratio(")), scope=self.scope)
            new = list(dict.fromkeys(e for e in new if isinstance(e, SizeExpr)))[:40]
            self._extend([*new, *(e * f for e, f in itertools.combinations_with_replacement(new, 2))])
            found = [e or self._expression(v) for e, v in zip(found, sizes, strict=True)]
        return found

    def _expression(self, values):
        if any(isinstance(v, float) for v in values):
            return self._ratio(values)
        for e, at in self.terms:
            if all(map(_agree, at, values)):
                return repr(e)
        for search in (self._multiple, self._quotient, self._pair, self._extremum):
            found = search(values)
            if found is not None:
                return repr(found)
        return None

    def _ratio(self, values):
        """(k e + c) / m, or (k e + c) / (m e): a constant that Python's floats made of a size.

        It may have been rounded to single precision.
        """
        for e, at in self.terms:
            pairs = [(a, fractions.Fraction(v)) for a, v in zip(at, values, strict=True)]
            (a, v), (b, w) = min(pairs), max(pairs)
            if a == b or 0 in at:
                continue
            for over, slope in ((False, (w - v) / (b - a)), (True, (w * b - v * a) / (b - a))):
                found = _written(e, slope, (v * a if over else v) - slope * a, over, at, values)
                if found is not None:
                    return found
        return None

    def _multiple(self, values):
        """k e + c."""
        for e, at in self.terms:
            found = _line(at, values)
            if found is not None:
                return e * found[0] + found[1]
        return None

    def _pair(self, values):
        """k e + m f + c."""
        for (e, a), (f, b) in itertools.combinations(self.terms, 2):
            d = (a[1] - a[0]) * (b[2] - b[0]) - (a[2] - a[0]) * (b[1] - b[0])
            if d == 0:
                continue
            x, y = values[1] - values[0], values[2] - values[0]
            k = fractions.Fraction(x * (b[2] - b[0]) - y * (b[1] - b[0]), d)
            m = fractions.Fraction(y * (a[1] - a[0]) - x * (a[2] - a[0]), d)
            c = values[0] - k * a[0] - m * b[0]
            if k.denominator == m.denominator == c.denominator == 1 and all(_agree(k * p + m * q + c, v) for p, q, v in zip(a, b, values, strict=True)):
                return e * int(k) + f * int(m) + int(c)
        return None

    def _quotient(self, values):
        """m floordiv(k e + c, n) + d, where only one c will do."""
        step = math.gcd(*(v - values[0] for v in values))
        rest = values[0] % step
        quotients = [(v - rest) // step for v in values]
        for e, at in self.terms:
            for n in range(2, 65):
                for k in (1, 2, 3, 4):
                    if math.gcd(k, n) > 1:
                        continue
                    low = max(q * n - k * a for q, a in zip(quotients, at, strict=True))
                    high = min(q * n + n - 1 - k * a for q, a in zip(quotients, at, strict=True))
                    if low == high:
                        return (e * k + low) // n * step + rest
        return None

    def _extremum(self, values):
        """The smaller, or the larger, of an expression and a number."""
        for name, c in (("min", max(values)), ("max", min(values))):
            for e, at in self.terms:
                if list(values).count(c) > 1 and [{"min": min, "max": max}[name](a, c) for a in at] == list(values):
                    return symbolic_shape(f"{name}({e}, {c})", scope=self.scope)[0]
        return None


def _written(e, k, c, over, at, values):
    """The text of `k e + c`, or `over` e, by the simplest fractions near k and c; None if they do
    not give the values.
    """
    for digits in (1, 10, 100, 1000, 10**4, 10**6, 10**8):
        k_, c_ = k.limit_denominator(digits), c.limit_denominator(digits)
        exact = [(k_ * a + c_) / (a if over else 1) for a in at]
        if all(abs(x - fractions.Fraction(v)) <= abs(v) * 2**-23 for x, v in zip(exact, values, strict=True)):
            m = math.lcm(k_.denominator, c_.denominator)
            return f"ratio({int(k_ * m)}*({e!r}) + {int(c_ * m)}, {m}{f'*({e!r})' if over else ''})"
    return None


def _agree(n, found):
    """Whether a number was found to be `n`; a large one may have been rounded to a float."""
    return n == found or (abs(n) > 1 << 24 and abs(n - found) <= abs(n) >> 23)


def _line(at, values):
    """The integers (k, c) with k at + c = values."""
    pairs = [(a, v) for a, v in zip(at, values, strict=True)]
    other = next((p for p in pairs if p[0] != pairs[0][0]), None)
    if other is None or (other[1] - pairs[0][1]) % (other[0] - pairs[0][0]):
        return None
    k = (other[1] - pairs[0][1]) // (other[0] - pairs[0][0])
    c = pairs[0][1] - k * pairs[0][0]
    return (k, c) if all(_agree(k * a + c, v) for a, v in pairs) else None
