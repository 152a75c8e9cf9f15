"""Functions of symbolic sizes, traced at several sizes: numbers that differ between the programs are fitted by expressions of the sizes.

    sizes 601, 653 ..: iota[shape=(601,)]  iota[shape=(653,)]   ->   iota[shape=(b,)]

In Python code the sizes of traced arrays are symbolic (`TracedSize`); a comparison raises an error if its result depends on the sizes.
Where code of this package compares sizes, the result at large sizes is assumed, and becomes a condition that the exported program checks.

Invariant: the expression of a size agrees with all traces, and is the only one of its form that does; a function whose programs differ in
more than sizes is refused.
"""

from __future__ import annotations

import fractions
import itertools
import math
import random
import re
import sys
import threading
from collections.abc import Sequence
from typing import Any

from . import _core
from ._api import ShapeDtypeStruct
from ._symbolic import SizeExpr, SymbolicScope, at_least_zero, inconclusive, symbolic_shape
from ._tree_prefixes import broadcast_prefix
from .errors import InconclusiveDimensionOperation
from .tree_util import tree_flatten, tree_unflatten

_RANGES = ((601, 1279), (101, 600), (17, 100), (4, 16), (1, 16), (1, 4096))
_FEWEST, _MOST = 6, 24


class TracedSize(int):
    """A symbolic size during tracing: an integer that carries its expression."""

    def __new__(cls, expr, n):
        self = int.__new__(cls, n)
        self.expr = expr
        return self

    def _binary(name):
        def method(self, other):
            if isinstance(other, bool) or not isinstance(other, (int, SizeExpr)):
                return _as_array(self, name, other)
            if isinstance(other, SizeExpr):
                return NotImplemented
            out = getattr(self.expr, name)(getattr(other, "expr", other))
            return _sized(out, getattr(int, name)(int.__int__(self), int.__int__(other)))

        method.__name__ = name
        return method

    for _name in ("add", "sub", "mul", "floordiv", "mod"):
        locals()[f"__{_name}__"] = _binary(f"__{_name}__")
        locals()[f"__r{_name}__"] = _binary(f"__r{_name}__")
    del _name, _binary

    def __truediv__(self, other):
        return _as_array(self, "__truediv__", other)

    def __rtruediv__(self, other):
        return _as_array(self, "__rtruediv__", other)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __neg__(self):
        return _sized(-self.expr, -int.__int__(self))

    def __pow__(self, n, modulus=None):
        if modulus is not None or not isinstance(n, int) or isinstance(n, TracedSize):
            return _as_array(self, "__pow__", n)
        return _sized(self.expr**n, int.__int__(self) ** n)

    def extremum(self, name, other):
        """The larger (`"max"`) or smaller (`"min"`) of two sizes."""
        found = self.expr.extremum(name, getattr(other, "expr", other))
        return _sized(found, {"max": max, "min": min}[name](int.__index__(self), int.__index__(other)))

    def slicing(self, s):
        """Assumes, for a slice of an axis of this size, whether the size is below or above its bounds."""
        for v in (s.start, s.stop):
            if isinstance(v, int):
                _ = v <= self if v >= 0 else -v <= self

    def _comparison(name, sign, offset, symbol):
        def method(self, other):
            if not isinstance(other, int):
                return NotImplemented
            difference = (self.expr - getattr(other, "expr", other)) * sign - offset
            found = at_least_zero(difference, self.expr.scope)
            if found is not None:
                return found
            if not _asked_by_this_package():
                raise inconclusive(f"comparison '{self.expr}' {symbol} '{other}' is inconclusive.")
            answer = getattr(int, name)(int.__int__(self), int.__int__(other))
            _state.assumed.append(difference if answer else -difference - 1)
            return answer

        method.__name__ = name
        return method

    __ge__, __gt__ = _comparison("__ge__", 1, 0, ">="), _comparison("__gt__", 1, 1, ">")
    __le__, __lt__ = _comparison("__le__", -1, 0, "<="), _comparison("__lt__", -1, 1, "<")
    del _comparison

    # Equality is that of the numbers: at a sample of primes two sizes that differ are equal by accident only.
    __hash__, __eq__, __ne__ = int.__hash__, int.__eq__, int.__ne__

    def __bool__(self):
        return self > 0

    def __int__(self):
        if not _asked_by_this_package():
            raise inconclusive(f"'{self.expr}' used in a context that requires a constant")
        return int.__index__(self)

    def __float__(self):
        if not _asked_by_this_package():
            raise TypeError(f"float() argument must be a string or a real number, not the symbolic size '{self.expr}'")
        return float(int.__index__(self))

    def __repr__(self):
        return repr(self.expr)

    __str__ = __repr__

    def __format__(self, spec):
        return format(repr(self.expr), spec)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class _State(threading.local):
    """What tracing at symbolic sizes has found on this thread."""

    table = None  # {size: TracedSize}, while the sizes are symbolic
    made = ()  # the expressions that operations on sizes gave
    assumed = ()  # expressions that were taken to be at least 0


_state = _State()


def _asked_by_this_package():
    """Whether the method that calls this was called by a function of this package, or by numpy for one."""
    frame = sys._getframe(2)
    while frame is not None and _package(frame) == "numpy":
        frame = frame.f_back
    return frame is not None and _package(frame) == __name__.partition(".")[0]


def _package(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0]


def _sized(expr, n):
    """The size that an operation on sizes gave."""
    if not isinstance(expr, SizeExpr):
        return n
    made = TracedSize(expr, n)
    if _state.table is not None:
        _state.table.setdefault(n, made)
        _state.made.append(expr)
    return made


def _as_array(size, name, other):
    """An operation on a size and another value: applied to the size as an array."""
    if isinstance(other, TracedSize):
        other = _core.asarray(int.__index__(other))
    return getattr(_core.asarray(int.__index__(size)), name)(other)


class SymbolicAval:
    """The type of an array of symbolic shape, as `Exported.in_avals` has it."""

    def __init__(self, shape, dtype, weak_type=False):
        self.shape, self.dtype, self.weak_type = tuple(shape), dtype, weak_type

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    sharding = None

    def __eq__(self, other):
        return isinstance(other, SymbolicAval) and (self.shape, self.dtype, self.weak_type) == (other.shape, other.dtype, other.weak_type)

    def __hash__(self):
        return hash((self.shape, self.weak_type))

    def str_short(self, short_dtypes=False):
        """`float32[b,3]`."""
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def __str__(self):
        return f"{'~' if self.weak_type else ''}{self.str_short()}"

    def __repr__(self):
        return f"ShapedArray({self.str_short()}{', weak_type=True' if self.weak_type else ''})"


def sliced(shape, index):
    """Records the assumptions that an index makes about the sizes that it slices."""
    entries = [e for e in (index if isinstance(index, tuple) else (index,)) if e is not None]
    dots = next((i for i, e in enumerate(entries) if e is Ellipsis), len(entries))
    after = len(entries) - dots - 1
    for i, e in enumerate(entries):
        axis = i if i < dots else len(shape) - after + i - dots - 1
        if isinstance(e, slice) and 0 <= axis < len(shape) and isinstance(shape[axis], TracedSize):
            shape[axis].slicing(e)


def is_symbolic_dim(p: int) -> bool:
    """Whether a size is symbolic.

    Args:
        p: a size, an int or a symbolic expression.

    Returns:
        bool: False for an integer.
    """
    return isinstance(p, (SizeExpr, TracedSize))


def symbolic_scope(name, names, leaves):
    """The scope of the symbolic sizes among these arguments; None if there are none.

    Raises:
      ValueError: there are several scopes.
    """
    found = None
    for path, x in zip(names, leaves, strict=True):
        for n in getattr(x, "shape", ()) if isinstance(x, ShapeDtypeStruct) else ():
            if not isinstance(n, SizeExpr):
                continue
            if found is None:
                found, first = n.scope, path
            elif n.scope is not found:
                raise ValueError(
                    f"Invalid mixing of symbolic scopes when exporting {name}.\nExpected current (from {first}) {found._text()}\n"
                    f"and found for '{n}' ({path}) {n.scope._text()}\nhelp: make all of them by one symbolic_shape, or pass it scope="
                )
    return found


def at_sizes(leaves, sample):
    """The arguments with their symbolic sizes at these values."""
    out = []
    for x in leaves:
        if isinstance(x, ShapeDtypeStruct) and any(isinstance(n, SizeExpr) for n in x.shape):
            x = x.update(shape=[_value(n, sample) for n in x.shape])
        out.append(x)
    return out


def _value(n, sample):
    return n.value(sample) if isinstance(n, SizeExpr) else n


class Samples:
    """Values for the names of a scope that satisfy its constraints: first those with which user code is traced, then as many as requested."""

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
        """For each name a sample where its size is larger than the numbers that programs name, if the constraints admit one."""
        for name in self.names:
            for _ in range(200):
                sample = {n: self._random.randint(17, 100) for n in self.names} | {name: self._random.randint(17000, 21000)}
                if self._fits(sample):
                    yield sample
                    break

    def apart(self, e, f):
        """A sample at which two expressions differ; None if none was found."""
        for k in range(3000):
            sample = {n: self._random.randint(1, (8, 40, 300, 3000)[k % 4]) for n in self.names}
            if self._fits(sample) and e.value(sample) != f.value(sample):
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
        raise ValueError("no sizes were found that keep the constraints of the symbolic scope")

    def _fits(self, sample):
        values = ((d.value(sample), equal) for d, equal in self._conditions)
        return all(v == 0 if equal else v >= 0 for v, equal in values)


def traced_symbolically(trace, sample, sizes):
    """`trace()` at a sample, with symbolic sizes in the place of those of `sizes`.

    Returns:
      The trace, the expressions that were created, and those that were assumed to be at least 0.
    """
    before = _state.table, _state.made, _state.assumed
    table = {}
    for e in sizes:
        table.setdefault(e.value(sample), TracedSize(e, e.value(sample)))
    _state.table, _state.made, _state.assumed = table, [], []
    old = _core.symbolic_sizes(table)
    try:
        made = trace()
        return made, list(dict.fromkeys([*sizes, *_state.made])), _state.assumed
    except (TypeError, ValueError, IndexError) as e:
        if len(e.args) == 1 and isinstance(e.args[0], str):
            e.args = (re.sub(r"\b\d+\b", lambda m: repr(table.get(int(m.group()), m.group())).strip("'"), e.args[0]),)
        raise
    finally:
        _core.symbolic_sizes(old)
        _state.table, _state.made, _state.assumed = before


def family_of(names, trace_at, samples, sizes):
    """The programs that `trace_at(sample)` gives, as one.

    Returns:
      The core's `ProgramFamily` and the expressions of its sizes.

    Raises:
      InconclusiveDimensionOperation: the programs differ in more than sizes, or a size is not an expression that was found.
    """
    known = list(dict.fromkeys(sizes))
    at, n = [samples[i] for i in range(_FEWEST)], _FEWEST
    for e, f in itertools.combinations(known, 2):
        if all(e.value(s) == f.value(s) for s in at):
            found = samples.apart(e, f)
            at += [found] if found else []
    programs = []
    while True:
        programs += [trace_at(s) for s in at[len(programs) :]]
        family = _one(names, programs)
        found = Fit(at, known, samples.names).expressions(family.sizes)
        missing = [v for v, e in zip(family.sizes, found, strict=True) if e is None]
        if not missing:
            break
        if n >= _MOST:
            where = ", ".join(f"{v} at {s}" for v, s in zip(missing[0][:3], at, strict=False))
            raise _undetermined(f"a size or a number in the program is no expression of the symbolic ones that was found: {where}")
        at += [samples[i] for i in range(n, n + _FEWEST)]
        n += _FEWEST
    # values that are clamped by a number, or compared with one, are found by sizes beyond it
    large = list(samples.large())
    everywhere = _one(names, programs + [trace_at(s) for s in large])
    found = Fit(at + large, known, samples.names).expressions(everywhere.sizes)
    if None in found:
        where = everywhere.sizes[found.index(None)]
        raise _undetermined(f"a size or a number in the program is {where[0]} at {at[0]}, and {where[-1]} at {large[-1]}")
    return everywhere, found


def _one(names, programs):
    try:
        return _core.ProgramFamily(names, programs)
    except ValueError as e:
        raise _undetermined(f"the programs traced at several sizes differ in more than sizes: {e}") from None


def _undetermined(why):
    return InconclusiveDimensionOperation(
        f"The program cannot be exported for all values of its symbolic dimensions: {why}.\n"
        "help: loops of Python over a size, arrays of numpy of a symbolic shape, and numbers that Python computes from a size make such programs;"
        " use lax loops, jax.numpy, and arrays of the size"
    )


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
        """For each size, given by its values, an expression as text; None if no unique expression was found."""
        found = [self._expression(v) for v in sizes]
        if None in found:
            # a number that is not an expression of the names may be one of the expressions found,
            # such as the size of an array
            new = symbolic_shape(",".join(filter(None, found)), scope=self.scope)
            new = list(dict.fromkeys(e for e in new if isinstance(e, SizeExpr)))[:40]
            self._extend([*new, *(e * f for e, f in itertools.combinations_with_replacement(new, 2))])
            found = [e or self._expression(v) for e, v in zip(found, sizes, strict=True)]
        return found

    def _expression(self, values):
        for e, at in self.terms:
            if all(map(_agree, at, values)):
                return repr(e)
        for search in (self._multiple, self._quotient, self._pair, self._extremum):
            found = search(values)
            if found is not None:
                return repr(found)
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


def symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None) -> Any:
    """`args` as `ShapeDtypeStruct`s with symbolic shapes.

    Args:
      args: a pytree of arrays or `ShapeDtypeStruct`s.
      shapes_specs: None, a text as `symbolic_shape` takes it, or a pytree prefix of `args` of these.
      constraints, scope: as `symbolic_shape` takes them.

    Returns:
      A pytree like `args`.

    Raises:
      ValueError: as `symbolic_shape`.
    """
    if scope is not None and constraints:
        raise ValueError("Cannot use both `scope` and `constraints`")
    if scope is None:
        scope = SymbolicScope(constraints)
    leaves, tree = tree_flatten(args)
    specs = broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    shapes = [symbolic_shape(s, like=getattr(x, "shape", ()), scope=scope) for s, x in zip(specs, leaves, strict=True)]
    return tree_unflatten(tree, [ShapeDtypeStruct(shape, ShapeDtypeStruct.like(x).dtype) for x, shape in zip(leaves, shapes, strict=True)])
