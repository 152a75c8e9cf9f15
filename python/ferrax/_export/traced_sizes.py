"""Functions of symbolic sizes, traced at several sizes: numbers that differ between the programs
are fitted by expressions of the sizes.

    sizes 601, 653 ..: iota[shape=(601,)]  iota[shape=(653,)]   ->   iota[shape=(b,)]

In Python code the sizes of traced arrays are symbolic (`TracedSize`); a comparison raises an error
if its result depends on the sizes.
Where code of this package compares sizes, the result at large sizes is assumed, and becomes a
condition that the exported program checks.

Invariant: the expression of a size agrees with all traces, and is the only one of its form that
does; a function whose programs differ in more than sizes is refused.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
import threading
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._tracing.trace import ShapeDtypeStruct
from .._trees.prefixes import broadcast_prefix
from ..errors import InconclusiveDimensionOperation
from ..tree_util import tree_flatten, tree_unflatten
from .fit import Fit, Samples as Samples
from .symbolic import SizeExpr, SymbolicScope, UnexpectedDimVar, at_least_zero, inconclusive, symbolic_shape, tracing

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

    def as_array(self):
        """The number as an array."""
        return _core.asarray(int.__index__(self))

    def extremum(self, name, other):
        """The larger (`"max"`) or smaller (`"min"`) of two sizes."""
        found = self.expr.extremum(name, getattr(other, "expr", other))
        return _sized(found, {"max": max, "min": min}[name](int.__index__(self), int.__index__(other)))

    def slicing(self, s):
        """Assumes, for a slice of an axis of this size, whether the size is below or above its
        bounds.
        """
        for v in (s.start, s.stop):
            if isinstance(v, SizeExpr):
                v = v.traced_size()
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
    """The findings of tracing at symbolic sizes on this thread."""

    table = None  # {size: TracedSize}, while the sizes are symbolic
    made = ()  # the expressions that operations on sizes gave
    assumed = ()  # expressions that were taken to be at least 0


_state = _State()


def _asked_by_this_package():
    """Whether the method that calls this was called by a function of this package, or by numpy for
    one.
    """
    frame = sys._getframe(2)
    while frame is not None and _package(frame) == "numpy":
        frame = frame.f_back
    return frame is not None and _package(frame) == __name__.partition(".")[0]


def _package(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0]


def _sized(expr, n):
    """The size that is the result of an operation on sizes."""
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
                    f"and found for '{n}' ({path}) {n.scope._text()}\nhelp: create all of them in one call of symbolic_shape, or pass scope= to it"
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


def traced_symbolically(trace, sample, sizes):
    """`trace()` at a sample, with symbolic sizes in the place of those of `sizes`.

    Returns:
        The trace, the expressions that were created, and those that were assumed to be at least 0.
    """
    before = _state.table, _state.made, _state.assumed, tracing.size
    table = {}
    for e in sizes:
        table.setdefault(e.value(sample), TracedSize(e, e.value(sample)))
    _state.table, _state.made, _state.assumed = table, [], []
    tracing.size = lambda e: _at_sample(e, sample, sizes)
    old = _core.symbolic_sizes(table)
    try:
        made = trace()
        return made, list(dict.fromkeys([*sizes, *_state.made])), _state.assumed
    except (TypeError, ValueError, IndexError) as e:
        _undivided(e, table)
        if len(e.args) == 1 and isinstance(e.args[0], str):
            e.args = (re.sub(r"\b\d+\b", lambda m: _symbolic(int(m.group()), table), e.args[0]),)
        raise
    finally:
        _core.symbolic_sizes(old)
        _state.table, _state.made, _state.assumed, tracing.size = before


def _at_sample(e, sample, sizes):
    """A size that the traced function took from around it."""
    scope = sizes[0].scope
    if e.scope is not scope:
        scope._check_same_scope(e, "in a traced function")
    missing = sorted(e.names() - set(sample))
    if missing:
        raise UnexpectedDimVar(f"Encountered dimension variable '{missing[0]}' that is not appearing in the shapes of the function arguments.")
    return _sized(e, e.value(sample))


def _symbolic(n, table):
    """A number of a message as the size that it is at the sample.

    Small ones are more often themselves.
    """
    return repr(table[n]) if n > 16 and n in table else str(n)


def _undivided(e, table):
    """Raises JAX's error for a reshape with -1 whose other sizes divide the array's for some values
    of the symbolic ones only.
    """
    found = re.search(r"array of shape \((.*?)\) \(size (\S+)\) into shape \((.*?)\) because the product", str(e))
    if not found:
        return
    scope = next((size.expr.scope for size in table.values()), None)
    old, new = (symbolic_shape(text, scope=scope) for text in (found[1], found[3]))
    if not any(isinstance(n, SizeExpr) for n in [*old, *new]):
        return
    rest = re.sub(r", -(?=\d)", ", - ", str(math.prod(old, start=1) % math.prod(new, start=1)))
    shapes = [f"({', '.join(map(str, s))}{',' * (len(s) == 1)})" for s in (old, new)]
    raise InconclusiveDimensionOperation(
        f"Cannot divide evenly the sizes of shapes {shapes[0]} and {shapes[1]}. The remainder {rest} should be 0.\n"
        "help: make the size a multiple, as in symbolic_shape('2*n'), or give the scope a constraint, as 'mod(n, 2) == 0'"
    ) from None


def family_of(names, trace_at, samples, sizes):
    """The programs that `trace_at(sample)` gives, as one.

    Returns:
        The core's `ProgramFamily` and the expressions of its sizes.

    Raises:
        InconclusiveDimensionOperation: the programs differ in more than sizes, or a size is not an
          expression that was found.
    """
    known = list(dict.fromkeys(sizes))
    at, n = [samples[i] for i in range(_FEWEST)], _FEWEST
    at += samples.sides(known)
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
            raise _undetermined(f"no expression in the symbolic sizes was found for a size or number of the program: {where}")
        at += [samples[i] for i in range(n, n + _FEWEST)]
        n += _FEWEST
    # values that are clamped by a number, or compared with one, are found by sizes beyond it
    large = list(samples.large())
    everywhere = _one(names, programs + [trace_at(s) for s in large])
    found = Fit(at + large, known, samples.names).expressions(everywhere.sizes)
    if None in found:
        where = everywhere.sizes[found.index(None)]
        raise _undetermined(
            f"a size or number of the program is {where[0]} at {at[0]}, and {where[-1]} at {large[-1]}, which no expression that was tried gives"
        )
    return everywhere, found


def _one(names, programs):
    try:
        return _core.ProgramFamily(names, programs)
    except ValueError as e:
        raise _undetermined(f"the programs traced at several sizes differ in more than sizes: {e}") from None


def _undetermined(why):
    return InconclusiveDimensionOperation(
        f"The program cannot be exported for all values of its symbolic dimensions: {why}.\n"
        "help: Python loops over a size, NumPy arrays of a symbolic shape, and numbers that NumPy computes from a size cause this;"
        " use lax loops and jax.numpy"
    )


def symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None) -> Any:
    """`args` as `ShapeDtypeStruct`s with symbolic shapes.

    Args:
        args: a pytree of arrays or `ShapeDtypeStruct`s.
        shapes_specs: None, a text as `symbolic_shape` takes it, or a pytree prefix of `args` of
          these.
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
