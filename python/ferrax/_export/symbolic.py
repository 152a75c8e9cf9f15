"""Symbolic sizes: polynomials over names, floor divisions, remainders, maxima and minima.

A scope holds the constraints on its names.

>>> b, c = symbolic_shape("b, 2*c")
>>> (b * c + 3 * b) // b
2*c + 3

Invariant: an expression is in normal form, so that equal polynomials compare equal and print alike;
a comparison whose result is not the same for all sizes that the scope admits raises.
"""

from __future__ import annotations

import math
import re
import sys
import threading
from collections.abc import Sequence

import numpy as np

from ..errors import InconclusiveDimensionOperation

_INFINITE = math.inf
_OPERATIONS = ("floordiv", "mod", "max", "min")


class SymbolicScope:
    """The context of symbolic sizes: only sizes of one scope can be combined, and its constraints
    hold for them.

    Args:
        constraints_str: constraints as `"a >= b + 2"`, `"a <= 64"`, `"mod(a, 8) == 0"`.

    Raises:
        ValueError: a constraint cannot be read.
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str):
            raise ValueError(f"The symbolic constraints should be a sequence of strings. Got {constraints_str!r}")
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __name__.partition(".")[0]:
            frame = frame.f_back
        self._made_at = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        # (text, difference, whether it is 0 rather than at least 0), and the replacement of a term that an equality allows
        self.constraints, self._equal = [], {}
        # the least and the greatest value of a name, by the constraints that have no other name
        self.bounds: dict[str, tuple[float, float]] = {}
        for text in constraints_str:
            self._constrain(text)

    def _constrain(self, text):
        if not isinstance(text, str):
            raise ValueError(f"symbolic constraint must be a string; got {text!r}")
        parts = re.split(r"(>=|<=|==)", text)
        if len(parts) != 3:
            raise ValueError(f"Constraint parsing error: must contain one of '==' or '>=' or '<='\nfound {text!r}")
        low, high = (_parse_one(p, self, f"constraint '{text}'") for p in (parts[2], parts[0]))
        if parts[1] == "<=":
            low, high = high, low
        difference = _lift(high, self) - _lift(low, self)
        if not isinstance(difference, SizeExpr):
            if difference < 0 or (parts[1] == "==" and difference):
                raise ValueError(f"Unsatisfiable explicit constraint: {text}")
            return
        self.constraints.append((text, difference, parts[1] == "=="))
        self._bound(difference, parts[1] == "==")
        if parts[1] == "==":
            left = _lift(high, self)
            if len(left.terms) == 1 and next(iter(left.terms.values())) == 1:
                self._equal[next(iter(left.terms))] = low

    def _bound(self, difference, is_zero):
        """Notes what `k name + c >= 0` says of the name."""
        names = [t for t in difference.terms if t]
        if len(names) != 1 or len(names[0]) != 1 or not isinstance(names[0][0], str):
            return
        (name,), k, c = names[0], difference.terms[names[0]], difference.terms.get((), 0)
        low, high = self.bounds.get(name, (1, _INFINITE))
        if k > 0 or is_zero:
            low = max(low, -(c // k))
        if k < 0 or is_zero:
            high = min(high, c // -k)
        self.bounds[name] = low, high

    def _check_same_scope(self, other, when):
        if other.scope is not self:
            raise ValueError(
                f"Invalid mixing of symbolic scopes {when}.\nExpected {self._text()}\nand found for '{other}' {other.scope._text()}\n"
                "help: create all of them in one call of symbolic_shape, or pass scope= to it"
            )

    def _text(self):
        known = f" with constraints:\n  {chr(10).join(c[0] for c in self.constraints)}" if self.constraints else ""
        return f"scope {id(self)} created at {self._made_at}{known}"

    __repr__ = __str__ = lambda self: self._text().removeprefix("scope ")


class SizeExpr:
    """A symbolic size.

    Sums, differences, products, powers, floor divisions and remainders of it and of integers are
    symbolic sizes.
    """

    __slots__ = ("scope", "terms")
    __array_priority__ = 1000

    def __init__(self, terms, scope):
        # {term: coefficient}; a term is a sorted tuple of factors, a factor a name or (operation, a, b)
        self.terms, self.scope = terms, scope

    # ---- arithmetic

    def _with(self, other):
        """The other operand as an expression of this scope; None if it cannot be one."""
        other = getattr(other, "expr", other)  # of an argument that is traced
        if isinstance(other, SizeExpr):
            self.scope._check_same_scope(other, "for linear combination")
            return other
        if isinstance(other, bool) or not hasattr(other, "__index__") or (hasattr(other, "ndim") and not isinstance(other, np.integer)):
            return None
        return _constant(int(other.__index__()), self.scope)

    def _computed(self, name, other):
        """An operation on the size and a value that is not a size: it is computed on arrays."""
        if isinstance(other, (bool, str, bytes)) or other is None:
            return NotImplemented
        return getattr(self.__jax_array__(), name)(other)

    def __add__(self, other):
        o = self._with(other)
        if o is None:
            return self._computed("__add__", other)
        terms = dict(self.terms)
        for t, k in o.terms.items():
            terms[t] = terms.get(t, 0) + k
        return _normal(terms, self.scope)

    def __neg__(self):
        return SizeExpr({t: -k for t, k in self.terms.items()}, self.scope)

    def __sub__(self, other):
        o = self._with(other)
        return self._computed("__sub__", other) if o is None else self + -o

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        o = self._with(other)
        if o is None:
            return self._computed("__mul__", other)
        terms = {}
        for t, k in self.terms.items():
            for u, m in o.terms.items():
                both = tuple(sorted(t + u, key=_factor_text))
                terms[both] = terms.get(both, 0) + k * m
        return _normal(terms, self.scope)

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, n):
        if isinstance(n, float):
            raise ValueError(f"Symbolic dimension cannot be raised to non-integer powers: '{self}' ** '{n}'")
        if not hasattr(n, "__index__"):
            return NotImplemented
        if n < 0:
            raise ValueError(f"Symbolic dimension cannot be raised to negative powers: '{self}' ** '{n}'")
        out = _constant(1, self.scope)
        for _ in range(n):
            out = out * self
        return _unlift(_lift(out, self.scope))

    def __floordiv__(self, other):
        o = self._with(other)
        return self._computed("__floordiv__", other) if o is None else _floordiv(self, o)

    def __rfloordiv__(self, other):
        o = self._with(other)
        return self._computed("__rfloordiv__", other) if o is None else _floordiv(o, self)

    def __mod__(self, other):
        o = self._with(other)
        return self._computed("__mod__", other) if o is None else _mod(self, o)

    def __rmod__(self, other):
        o = self._with(other)
        return self._computed("__rmod__", other) if o is None else _mod(o, self)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    # ---- comparison

    def __eq__(self, other):
        other = getattr(other, "expr", other)
        o = None if isinstance(other, SizeExpr) and other.scope is not self.scope else self._with(other)
        return o is not None and o.terms == self.terms

    def __hash__(self):
        return hash(frozenset(self.terms.items()))

    def _compare(self, other, sign, offset, symbol):
        """Whether sign * (self - other) - offset >= 0."""
        other = getattr(other, "expr", other)
        if isinstance(other, SizeExpr):
            self.scope._check_same_scope(other, f"when comparing '{self}' {symbol} '{other}'")
        o = self._with(other)
        if o is None:
            return NotImplemented
        found = at_least_zero((_lift(self, self.scope) - o) * sign - offset, self.scope)
        if found is None:
            raise inconclusive(f"comparison '{self}' {symbol} '{other}' is inconclusive.")
        return found

    def __ge__(self, other):
        return self._compare(other, 1, 0, ">=")

    def __gt__(self, other):
        return self._compare(other, 1, 1, ">")

    def __le__(self, other):
        return self._compare(other, -1, 0, "<=")

    def __lt__(self, other):
        return self._compare(other, -1, 1, "<")

    def __int__(self):
        raise inconclusive(f"'{self}' used in a context that requires a constant")

    # ---- in a function that is traced

    def traced_size(self):
        """The size as the traced function's arguments have it.

        Raises:
            TypeError: no function of this scope's sizes is being traced.
            UnexpectedDimVar: it has names that no argument's shape has.
        """
        found = traced(self)
        if found is None:
            raise TypeError("'_DimExpr' object cannot be interpreted as an integer")
        return found

    def __index__(self):
        return int.__index__(self.traced_size())

    def __jax_array__(self):
        found = traced(self)
        if found is None:
            raise NotImplementedError(
                "Evaluation rule for 'dim_as_value' is not implemented. It seems that you are using shape polymorphism outside jax.export."
            )
        return found.as_array()

    def __truediv__(self, other):
        return self.__jax_array__() / other

    def __rtruediv__(self, other):
        return other / self.__jax_array__()

    # ---- the rest

    def extremum(self, name, other):
        """The larger (`"max"`) or smaller (`"min"`) of two sizes."""
        o = self._with(other)
        return NotImplemented if o is None else _unlift(_lift(_extremum(name, self, _unlift(o)), self.scope))

    def value(self, sizes):
        """The number it is where the names have these sizes."""
        return sum(k * math.prod(_factor_value(f, sizes) for f in t) for t, k in self.terms.items())

    def names(self):
        """The names that it contains."""
        return {n for t in self.terms for f in t for n in _factor_names(f)}

    def __repr__(self):
        out = ""
        for t, k in sorted(self.terms.items(), key=lambda i: _order(i[0]), reverse=True):
            body = _product_text(t)
            text = f"{abs(k)}" if not body else body if abs(k) == 1 else f"{abs(k)}*{body}"
            out += f" {'-' if k < 0 else '+'} {text}" if out else f"- {text}" if k < 0 and body else f"{'-' if k < 0 else ''}{text}"
        return out or "0"

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _again, (repr(self), self.scope)


# the name that types of shapes have in messages, and that libraries look for
SizeExpr.__name__ = SizeExpr.__qualname__ = "_DimExpr"


class UnexpectedDimVar(Exception):
    """A symbolic size has a name that the shapes of the function's arguments do not have."""


class _Tracing(threading.local):
    """`size(expr)`: the size in the function that this thread traces."""

    size = None


tracing = _Tracing()


def traced(expr):
    """The size in the function that is being traced; None if none is."""
    return tracing.size(expr) if tracing.size is not None else None


def _again(text, scope):
    return _parse_one(text, scope, text)


def _factor_text(f):
    return f if isinstance(f, str) else f"{f[0]}({f[1]}, {f[2]})"


def _factor_value(f, sizes):
    if isinstance(f, str):
        return sizes[f]
    a, b = (x.value(sizes) if isinstance(x, SizeExpr) else x for x in f[1:])
    return {"floordiv": lambda: a // b, "mod": lambda: a % b, "max": lambda: max(a, b), "min": lambda: min(a, b)}[f[0]]()


def _factor_names(f):
    return {f} if isinstance(f, str) else {n for x in f[1:] if isinstance(x, SizeExpr) for n in x.names()}


def _order(term):
    return len(set(term)), len(term), sorted(map(_factor_text, term), reverse=True)


def _product_text(term):
    parts = []
    for f in dict.fromkeys(term):
        n = term.count(f)
        parts.append(_factor_text(f) if n == 1 else f"{_factor_text(f)}^{n}")
    return "*".join(parts)


def _constant(n, scope):
    return SizeExpr({(): n} if n else {}, scope)


def _lift(x, scope):
    return x if isinstance(x, SizeExpr) else _constant(x, scope)


def _unlift(e):
    return e.terms.get((), 0) if set(e.terms) <= {()} else e


def _normal(terms, scope):
    """The expression of these terms; an integer if it is one."""
    for t in [t for t in terms if t in scope._equal]:
        k = terms.pop(t)
        for u, m in _lift(scope._equal[t], scope).terms.items():
            terms[u] = terms.get(u, 0) + k * m
    return _unlift(SizeExpr({t: k for t, k in terms.items() if k}, scope))


def _operation(name, a, b):
    scope = a.scope
    return _normal({((name, _unlift(a), _unlift(b)),): 1}, scope)


def _quotients(e, o):
    """e as (q, r), e = q * o + r: the terms that a divisor of one term divides, and the others."""
    ((divisor, k),) = o.terms.items()
    q, r = {}, {}
    for t, m in e.terms.items():
        rest = list(t)
        if m % k == 0 and all(f in rest and (rest.remove(f) or True) for f in divisor):
            q[tuple(rest)] = m // k
        else:
            r[t] = m
    return SizeExpr(q, e.scope), SizeExpr(r, e.scope)


def _floordiv(e, o):
    n = _unlift(o)
    if n == 0 and not isinstance(n, SizeExpr):
        raise ZeroDivisionError("integer division or modulo by zero")
    if len(o.terms) == 1:
        q, r = _quotients(e, o)
        if set(r.terms) <= {()} and not isinstance(n, SizeExpr):
            return _unlift(_lift(q + r.terms.get((), 0) // n, e.scope))
        if not r.terms:
            return _unlift(q)
        if q.terms and not isinstance(n, SizeExpr) and () not in r.terms:
            return q + _operation("floordiv", r, o)
    if e.terms == o.terms:
        return 1
    return _operation("floordiv", e, o)


def _mod(e, o):
    n = _unlift(o)
    if n == 0 and not isinstance(n, SizeExpr):
        raise ZeroDivisionError("integer division or modulo by zero")
    if len(o.terms) == 1:
        r = _quotients(e, o)[1]
        if not r.terms:
            return 0
        if not isinstance(n, SizeExpr):
            if set(r.terms) <= {()}:
                return r.terms[()] % n
            low, high = _bounds(r)
            if 0 <= low and high < n:
                return _unlift(r)
            return _operation("mod", r, o)
    if e.terms == o.terms:
        return 0
    return _operation("mod", e, o)


def _extremum(name, a, b):
    scope = (a if isinstance(a, SizeExpr) else b).scope
    first = at_least_zero(_lift(a, scope) - b, scope)
    if first is None:
        return _operation(name, _lift(a, scope), _lift(b, scope))
    return a if first == (name == "max") else b


# ---- known constraints


def _factor_bounds(f, scope):
    if isinstance(f, str):
        return scope.bounds.get(f, (1, _INFINITE))
    (a, b), (c, d) = (_bounds(x) if isinstance(x, SizeExpr) else (x, x) for x in f[1:])
    if f[0] == "max":
        return max(a, c), max(b, d)
    if f[0] == "min":
        return min(a, c), min(b, d)
    if c <= 0:
        return -_INFINITE, _INFINITE
    if f[0] == "mod":
        return 0, d - 1
    ends = [x if math.isinf(x) else 0 if math.isinf(y) else x // y for x in (a, b) for y in (c, d)]
    ends += [-1] if a < 0 and math.isinf(d) else []
    return min(ends), max(ends)


def _bounds(e):
    """The least and the greatest value of an expression."""
    low = high = 0
    for t, k in e.terms.items():
        a, b = 1, 1
        for f in t:
            ends = [0 if 0 in (x, y) else x * y for x in (a, b) for y in _factor_bounds(f, e.scope)]
            a, b = min(ends), max(ends)
        low, high = low + k * (a if k > 0 else b), high + k * (b if k > 0 else a)
    return low, high


def at_least_zero(e, scope):
    """Whether an expression is at least 0: True, False, or None where that depends on the sizes."""
    if not isinstance(e, SizeExpr):
        return e >= 0
    if _shown(e, scope):
        return True
    return False if _shown(-e - 1, scope) else None


def _shown(e, scope, depth=2):
    """Whether the expression is provably at least 0, by its bounds or after subtracting a multiple
    of a known nonnegative expression.
    """
    if not isinstance(e, SizeExpr):
        return e >= 0
    if _bounds(e)[0] >= 0:
        return True
    if depth == 0:
        return False
    known = []
    for _, d, equal in scope.constraints:
        known += [d, -d] if equal else [d]
    for f in {f for t in e.terms for f in t if isinstance(f, tuple)}:
        known += _facts(f, scope)
    for d in known:
        for t in set(e.terms) & set(d.terms) - {()}:
            k = -(-abs(e.terms[t]) // abs(d.terms[t])) if e.terms[t] * d.terms[t] > 0 else 0
            if k and _shown(e - d * k, scope, depth - 1):
                return True
    return False


def _facts(f, scope):
    """Expressions that are at least 0 by the definition of an operation."""
    x = _normal({(f,): 1}, scope)
    a, b = (_lift(y, scope) for y in f[1:])
    if f[0] == "max":
        return [d for d in (x - a, x - b) if isinstance(d, SizeExpr)]
    if f[0] == "min":
        return [d for d in (a - x, b - x) if isinstance(d, SizeExpr)]
    if _bounds(b)[0] < 1:
        return []
    quotient = x if f[0] == "floordiv" else _floordiv(a, b)
    rest = a - _lift(quotient, scope) * b
    return [d for d in (rest, b - rest - 1 if isinstance(rest, SizeExpr) else rest) if isinstance(d, SizeExpr)]


def inconclusive(what):
    """JAX's error for a question about symbolic sizes that has no one answer."""
    return InconclusiveDimensionOperation(
        f"Symbolic dimension {what}\nThis error arises for comparison operations with shapes that\n"
        "are non-constant, and the result of the operation cannot be represented as\n"
        "a boolean value for all values of the symbolic dimensions involved.\n"
        "help: give symbolic_shape a constraint that decides it"
    )


# ---- from text


class _Parser:
    _TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z]\w*)|(\.\.\.|\*\*|.))", re.DOTALL)

    def __init__(self, text, scope, what):
        self.text, self.scope, self.what, self.at = text, scope, what, 0

    def fail(self, why):
        raise ValueError(f"syntax error in symbolic shape {self.what}: {why}. Parsed '{self.text[: self.at]}', remaining '{self.text[self.at :]}'.")

    def peek(self):
        m = self._TOKEN.match(self.text, self.at)
        return m.group().strip() if m and m.group().strip() else ""

    def take(self, *wanted):
        token = self.peek()
        if wanted and token not in wanted:
            return None
        m = self._TOKEN.match(self.text, self.at)
        self.at = m.end() if m else self.at
        return token

    def sum(self):
        sign = -1 if self.take("-") else 1
        out = self.product() * sign
        while op := self.take("+", "-"):
            out = out + self.product() * (-1 if op == "-" else 1)
        return out

    def product(self):
        out = self.power()
        while self.take("*"):
            out = out * self.power()
        return out

    def power(self):
        base = self.factor()
        if not self.take("^", "**"):
            return base
        n = self.take()
        if not n.isdigit():
            self.fail(f"expecting an exponent but found '{n}'")
        return base ** int(n)

    def factor(self):
        if self.take("("):
            out = self.sum()
            if not self.take(")"):
                self.fail("expecting )")
            return out
        if self.take("-"):
            return self.factor() * -1
        at, token = self.at, self.take()
        if token.isdigit():
            return int(token)
        if not re.fullmatch(r"[A-Za-z]\w*", token or ""):
            self.at = at
            self.fail(f"expecting one of {{NAME, MINUS, NUMBER}} but found {token or 'the end'!r}")
        if token not in _OPERATIONS or not self.take("("):
            return _normal({(token,): 1}, self.scope)
        a = self.sum()
        if not self.take(","):
            self.fail("expecting ,")
        b = self.sum()
        if not self.take(")"):
            self.fail("expecting )")
        if not isinstance(a, SizeExpr) and not isinstance(b, SizeExpr):
            return _factor_value((token, a, b), {})
        if token in ("max", "min"):
            return _extremum(token, a, b)
        return a // b if token == "floordiv" else a % b


def _parse_one(text, scope, what):
    p = _Parser(text, scope, what)
    out = p.sum()
    if p.peek():
        p.fail(f"unexpected '{p.peek()}'")
    return out


def symbolic_shape(
    shape_spec: str | None, *, constraints: Sequence[str] = (), scope: SymbolicScope | None = None, like: Sequence[int | None] | None = None
) -> Sequence[int]:
    """A shape with symbolic sizes, from its text.

    >>> symbolic_shape("b, 2*h, 3", constraints=["b >= 2"])
    (b, 2*h, 3)

    Args:
        shape_spec: sizes between commas, in brackets or not: integers, names, and sums,
          differences, products, `floordiv(a, b)`, `mod(a, b)`, `max(a, b)`, `min(a, b)` of them.
          `_` takes a size, and a last `...` all remaining ones, from `like`. None means `...`.
        constraints: see `SymbolicScope`.
        scope: the scope of the new names; a new one if None.
        like: the sizes to use for `_` and `...`.

    Returns:
        A tuple of integers and symbolic sizes.

    Raises:
        ValueError: the text or a constraint cannot be read, `like` does not fit, or both `scope`
          and `constraints` are given.
    """
    if scope is not None and constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    if scope is None:
        scope = SymbolicScope(constraints)
    spec = "..." if shape_spec is None else shape_spec
    if not isinstance(spec, str):
        raise ValueError(f"polymorphic shape spec should be None or a string. Found {spec!r}.")
    text = spec.strip()
    if text.startswith("(") and text.endswith(")") and text.find(")") == len(text) - 1:
        text = text[1:-1]
    p, out = _Parser(text, scope, ""), []
    while p.peek():
        p.what = f"'{spec}' in dimension {len(out)}"
        known = like[len(out)] if like is not None and len(out) < len(like) else None
        token = p.peek()
        if token in ("...", "_"):
            if like is None:
                p.fail("spec contains ... but no 'like' shape was given")
            p.take()
            rest = like[len(out) :] if token == "..." else like[len(out) : len(out) + 1]
            if (token == "_" and not rest) or None in rest:
                p.fail("'like' has no size there")
            out += rest
        else:
            size = p.sum()
            if not isinstance(size, SizeExpr) and known is not None and size != known:
                p.fail(f"different size {size} for known dimension; like={tuple(like)}")
            out.append(size)
        if p.peek() and not p.take(","):
            p.fail(f"expecting , but found '{p.peek()}'")
        elif token == "..." and p.peek():
            p.fail("... is not the last")
    return tuple(out)
