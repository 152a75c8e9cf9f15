"""Mutable references: arrays that are written to, in programs too.

    ref = new_ref(jnp.zeros(3))
    ref[0] = 1.0                                # in place
    jit(lambda x: ref.addupdate(x))(2.0)        # by any code that has it in scope

A reference is a name for a value; reads and writes happen in the order in which the code runs. The
runtime has no references: a program that uses one takes its value as an input and returns the new
value, and so does each loop and branch around the use. The input is donated, so that the update is
in place.

A program that writes to a captured reference is traced twice: in the first trace the access raises
`Captured`, which passes through the user's code; the function that makes the program in which the
reference is defined then traces again, with the value as an input. One that only reads has the
value as a constant in its first call, whose trace is not kept; from the second call on the value is
an input there too.

Invariant: a reference belongs to one program under construction (or to none, outside); its value is
read and set only there.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.shapes import Shaped
from .._trees import flat as _flat
from .._trees.flat import argument_names, describe
from ..tree_util import tree_flatten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._base.layouts import Format
    from .._core import Array, ShapedArray
    from .._sharding.shardings import Sharding


__all__ = ["Ref", "RefType"]

# The kind of references that derivatives ignore.
NO_GRAD = "no_grad_no_remat"
# The trace of a reference whose value is a constant so far.
ANYWHERE = object()
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
# Whether any reference was ever made: transforms look for them only then.
seen = []


class Captured(BaseException):
    """A program under construction reached a reference from outside.

    Not an Exception: it has to pass the user's `except`.
    """

    def __init__(self, ref):
        self.ref, self.staging = ref, ref._staging
        super().__init__(
            f"a mutable reference of type {ref._type()} is used inside a transformation that does not pass references on: make it an argument of a"
            " jitted function, a loop or a branch"
        )


class RefType:
    """The type of a reference: that of its value."""

    def __init__(self, inner_aval: ShapedArray) -> None:
        self.inner_aval = inner_aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.inner_aval.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self.inner_aval.dtype

    @property
    def sharding(self) -> Sharding:
        """The sharding."""
        return self.inner_aval.sharding

    @property
    def weak_type(self) -> bool:
        """Whether the dtype yields to other dtypes."""
        return self.inner_aval.weak_type

    def __eq__(self, other):
        return type(other) is RefType and self.inner_aval == other.inner_aval

    def __hash__(self):
        return hash((RefType, self.inner_aval))

    def __repr__(self):
        return f"Ref{{{str(self.inner_aval).removeprefix('~')}}}"


_ROLES = {
    "vmap": ("vmapped", "an unbatched", "to the vmapped"),
    "grad": ("a differentiated", "a non-differentiated", "of the differentiated"),
}


_LOCAL = threading.local()


def passes():
    """The derivatives under construction in this thread (`_backward`), outermost first."""
    if not hasattr(_LOCAL, "passes"):
        _LOCAL.passes = []
    return _LOCAL.passes


def _readable(home):
    """Whether a reference of the program `home` (None: of none) may be a constant here: its program
    is under construction still, around this one.
    """
    return not _core.reading_forbidden() and (home is None or home in _core.traces())


def _caller():
    """The innermost running line outside this package, as text; None if there is none."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"


# For each `vjp` of a function of references that is at work, those that the function has used.
watched: list[set[int]] = []


class Ref(Shaped):
    """A mutable reference to an array, made by `new_ref`.

    `ref[index]` reads, `ref[index] = value` writes; `ref[...]` is all of it.
    """

    __slots__ = ("__weakref__", "_aval", "_back", "_home", "_kind", "_made", "_place", "_staging", "_traces", "_value")

    def __init__(self, value, kind=None):
        # A separate object that shares the memory: it is deleted and donated independently.
        self._value = _core.asarray(value, copy=True) if not isinstance(value, _core.Tracer) else value
        self._aval, self._staging, self._traces = self._value.aval, _core.staging(), _core.traces()
        self._home, self._kind = (self._staging, len(passes())), kind
        # The reference that represents this one in backward passes (`_backward`), made at its first use, and the argument of a jitted function that this one is.
        self._back = self._place = None
        self._made = _caller() if self._staging is not None else None
        seen[:] = [True]

    # Attributes that a `ShapeDtypeStruct` of a reference has too.
    is_ref = True

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self._aval.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self._aval.dtype

    @property
    def aval(self) -> ShapedArray:
        """The type."""
        return RefType(self._aval)

    @property
    def committed(self) -> bool:
        """Whether its value is bound to its devices."""
        return self._here().committed

    @property
    def format(self) -> Format:
        """The memory order and the sharding of its value."""
        return self._here().format

    def unsafe_buffer_pointer(self) -> int:
        """The address of its present value, which the next write may move."""
        return self._here().unsafe_buffer_pointer()

    def _type(self):
        return repr(self.aval)

    def _here(self):
        """Its value, in the program that it belongs to."""
        for used in watched:
            used.add(id(self))
        if self._staging is not ANYWHERE and self._staging != _core.staging():
            raise Captured(self)
        if self._value is None:
            raise ValueError(f"a mutable reference of type {self._type()} was freed")
        return self._value

    def _read(self) -> Any:
        """Its value, to be read alone: in a program around which it was made, a constant of that
        program, which is not kept for later calls.
        """
        if self._value is None or self._staging is ANYWHERE or self._staging == _core.staging() or not _readable(self._staging):
            return self._here()
        _core.note_read(self._staging)
        return self._value

    def __getitem__(self, idx: Any) -> Array:
        x = self._read()
        return _whole(x) if _is_all(idx) else x[_checked(idx, self.shape)]

    def __setitem__(self, idx: Any, value: Any) -> None:
        self._update("set", idx, value)

    def addupdate(self, value: Any, idx: Any = ...) -> None:
        """Adds to the elements at `idx`."""
        self._update("add", idx, value)

    def _update(self, what, idx, value):
        x = self._here()
        idx = idx if _is_all(idx) else _checked(idx, self.shape)
        value = _fitting(self, x, idx, value, "swap" if what == "set" else "addupdate")
        after = _whole(value) if _is_all(idx) and what == "set" else _written(what, x, idx, value)
        self._take(after, what)

    def _take(self, after, what="set", strip=False):
        """Sets the value, unless it belongs to a derivative or a `vmap` that the reference does
        not; of a derivative's, with `strip`, the value alone.
        """
        if after is self._value:
            return
        if after.aval.weak_type != self._aval.weak_type:  # the type of a reference does not change
            after = _core.bind("convert_element_type", after, new_dtype=self._aval.dtype, weak_type=self._aval.weak_type, sharding=None)
        outside = lambda owner: owner is not None and self._traces is not None and owner not in self._traces
        owner = _core.trace_of(after)
        if outside(owner) and owner.what != "vmap" and (strip or self._kind == NO_GRAD):
            after = _core.bind("stop_gradient", after)
            owner = _core.trace_of(after)
        if outside(owner):
            kind, role, where = _ROLES.get(owner.what, _ROLES["grad"])
            operation = "a set/swap" if what == "set" else "an addupdate"
            # a plain Exception, as in JAX
            raise Exception(
                f"performing {operation} operation with {kind} value on {role} array reference of type {self._type()}."
                f" Move the array reference to be an argument {where} function?"
            )
        self._value = after

    def __reduce__(self):
        return Ref, (_whole(self._here()), self._kind)

    @property
    def at(self) -> _At:
        """`ref.at[index]`: a part of it, which is read and written as the whole is."""
        return _At(self, ())

    @property
    def sharding(self) -> Sharding:
        """Where its value is."""
        return self._here().sharding

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        value = self._value
        return f"Ref{value!s}" if value is None or isinstance(value, _core.Tracer) else "Ref" + repr(value).removeprefix("Array")


class _Part(Shaped):
    """A part of a reference, selected by several indices in turn."""

    __slots__ = ("_indices", "_ref")

    def __init__(self, ref, indices):
        self._ref, self._indices = ref, indices

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return functools.reduce(lambda shape, idx: _selected(shape, self.dtype, idx), self._indices, self._ref.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self._ref.dtype

    @property
    def at(self) -> Any:
        """Views of parts: `x.at[i]`."""
        return _At(self._ref, self._indices)

    def __repr__(self):
        return f"{self._ref!r}.at" + "".join(f"[{i}]" for i in self._indices)

    def _split(self, idx):
        """The index into the whole reference that starts a selection, and the indices into that
        part.
        """
        indices = (*self._indices, idx)
        return indices[0], [i for i in indices[1:] if not _is_all(i)]

    def __getitem__(self, idx):
        first, rest = self._split(idx)
        x = self._ref[first]
        for i in rest:
            x = x[_checked(i, tuple(x.shape))]
        return x

    def __setitem__(self, idx, value):
        self._update("set", idx, value)

    def addupdate(self, value, idx=...):
        """Adds to the elements at `idx`."""
        self._update("add", idx, value)

    def _update(self, what, idx, value):
        first, rest = self._split(idx)
        if not rest:
            self._ref._update(what, first, value)
            return
        parts = [self._ref[first]]
        for i in rest[:-1]:
            parts.append(parts[-1][_checked(i, tuple(parts[-1].shape))])
        value = _fitting(self._ref, parts[-1], rest[-1], value, "swap" if what == "set" else "addupdate", tuple(parts[-1].shape))
        after = getattr(parts[-1].at[rest[-1]], what)(value)
        for x, i in zip(reversed(parts[:-1]), reversed(rest[:-1]), strict=True):
            after = x.at[i].set(after)
        self._ref._update("set", first, after)


class _At:
    """`ref.at`, to be indexed."""

    __slots__ = ("_indices", "_ref")
    __iter__ = None  # `list(ref.at)` would index it without end

    def __init__(self, ref, indices):
        self._ref, self._indices = ref, indices

    def __getitem__(self, idx):
        return _Part(self._ref, (*self._indices, idx))


def _whole(x):
    return x if isinstance(x, _core.Tracer) else _core.asarray(x, copy=True)


def _is_all(idx):
    return idx is ... or (type(idx) is tuple and (len(idx) == 0 or (len(idx) == 1 and idx[0] is ...)))


def _checked(idx, shape):
    """The index. ValueError for a Python integer that is out of bounds."""
    entries = idx if isinstance(idx, tuple) else (idx,)
    n_axes = sum(e is not None and e is not ... for e in entries)
    dim = 0
    for e in entries:
        if e is None:
            continue
        if e is ...:
            dim += len(shape) - n_axes
            continue
        if isinstance(e, (int, np.integer)) and not isinstance(e, (bool, np.bool_)) and dim < len(shape) and not -shape[dim] <= e < shape[dim]:
            raise ValueError(f"Out of bound indexer: idx={e}, dim={shape[dim]}.")
        dim += 1
    return idx


def _fitting(ref, x, idx, value, what, shape=None):
    """The value, broadcast to the shape that the index selects, and in the reference's dtype."""
    aval = _core.get_aval(value)
    if aval.dtype != ref.dtype and not (aval.weak_type and _core.result_type(x, value) == ref.dtype and np.can_cast(aval.dtype, ref.dtype, "same_kind")):
        raise ValueError(f"Invalid dtype for `{what}`. Ref dtype: {ref.dtype}. Value dtype: {aval.dtype}. ")
    shape = ref.shape if shape is None else shape
    expected = shape if _is_all(idx) else _selected(shape, ref.dtype, idx)
    if tuple(aval.shape) != expected:
        raise ValueError(f"Invalid shape for `{what}`. Ref shape: {ref.shape}. Expected shape: {expected}. Value shape: {tuple(aval.shape)}.")
    value = value if isinstance(value, _core.Array) else _core.asarray(value)
    return _core.bind("convert_element_type", value, new_dtype=ref.dtype, weak_type=False, sharding=None)


def _selected(shape, dtype, idx):
    """The shape that an index selects."""
    entries = idx if isinstance(idx, tuple) else (idx,)
    leaves = [e for e in entries if isinstance(e, (_core.Array, np.ndarray, list))]
    if not leaves:
        zeros = [0 if isinstance(e, (int, np.integer)) else e for e in entries]
        return np.empty(shape, np.bool_)[tuple(zeros)].shape if all(shape) else _abstract(shape, dtype, idx)
    return _abstract(shape, dtype, idx)


def _abstract(shape, dtype, idx):
    program, _ = _core.make_program(lambda x: [x[idx]], [_core.ShapedArray(shape, dtype)])
    return tuple(program.out_avals[0].shape)


def _written(what, x, idx, value):
    """`x` with a value set or added at an index.

    Outside of programs the array is donated, so that the write is in place.
    """
    entries = idx if isinstance(idx, tuple) else (idx,)
    if not _core.at_root() or any(isinstance(v, _core.Tracer) for v in (x, value, *entries)):
        return getattr(x.at[idx], what)(value)
    is_array = [
        isinstance(e, (_core.Array, np.ndarray, int, np.integer)) and not isinstance(e, (bool, np.bool_)) and np.asarray(e).dtype != np.bool_ for e in entries
    ]
    try:
        write = _writer(what, tuple(None if a else _Fixed(e) for e, a in zip(entries, is_array, strict=True)), isinstance(idx, tuple))
    except TypeError:  # a list or a mask, which cannot be hashed
        return getattr(x.at[idx], what)(value)
    return write(x, value, [e for e, a in zip(entries, is_array, strict=True) if a])


class _Fixed:
    """A static part of an index: a slice, None, an ellipsis."""

    def __init__(self, entry):
        self.entry = entry
        self._key = ("slice", entry.start, entry.stop, entry.step) if isinstance(entry, slice) else entry
        hash(self._key)

    def __eq__(self, other):
        return type(other) is _Fixed and type(self.entry) is type(other.entry) and self._key == other._key

    def __hash__(self):
        return hash(self._key)


@functools.lru_cache(maxsize=256)
def _writer(what, fixed, is_tuple):
    def ref_write(x, value, moving):
        given = iter(moving)
        entries = tuple([next(given) if e is None else e.entry for e in fixed])
        return getattr(x.at[entries if is_tuple else entries[0]], what)(value)

    return _core.jit(ref_write, donate_argnums=[0])


# ---------------------------------------------------------------- threading references


def without_refs(fun, args, kwargs):
    """`fun` as a function of the leaves that are not references, and these arguments.

    The references are captured.

    Structures are unchanged: a reference is replaced by None.
    """
    leaves, tree = tree_flatten((args, kwargs))

    def run(*args, **kwargs):
        given = iter(tree_flatten((args, kwargs))[0])
        args, kwargs = tree.unflatten([x if isinstance(x, Ref) else next(given) for x in leaves])
        return fun(*args, **kwargs)

    run.__wrapped__ = fun  # errors name the user's function
    run.__name__ = getattr(fun, "__name__", "fun")
    return run, *tree.unflatten([None if isinstance(x, Ref) else x for x in leaves])


@contextlib.contextmanager
def bound(refs, values):
    """Gives references other values while the current program is made."""
    before = [(r._value, r._staging, r._traces) for r in refs]
    for r, v in zip(refs, values, strict=True):
        r._value, r._staging, r._traces = v, _core.staging(), _core.traces()
    try:
        yield
    finally:
        for r, (value, staging, traces) in zip(refs, before, strict=True):
            r._value, r._staging, r._traces = value, staging, traces


def thread_references(plain, threaded, given=()):
    """Returns `plain()`; if that uses references of the enclosing program, `threaded(refs)`, which
    passes their values through and sets the new ones.

    given: references that are known to be used.
    """
    refs = list(given)
    while True:
        try:
            return threaded(list(refs)) if refs else plain()
        except Captured as e:
            if e.staging != _core.staging() or any(e.ref is r for r in refs):
                raise
            refs.append(e.ref)


def forgetting_writes(make):
    """`make()`, a program or its types, with the current values of outer references; writes are
    discarded.
    """

    def constant(refs):
        values = values_of(refs)
        with bound(refs, values):
            for r in refs:
                r._staging, r._traces = ANYWHERE, None
            return make()

    return thread_references(make, constant)


def values_of(refs):
    """The values of references, in the program that they belong to."""
    return [r._here() for r in refs]


def settle(refs, values, strip=False):
    """Sets references to their values after a program.

    With `strip`, derivatives under construction do not pass through.
    """
    for r, v in zip(refs, values, strict=True):
        r._take(v, strip=strip)


def is_ref(x):
    """Whether x is a reference, or represents one (`ShapeDtypeStruct(is_ref=True)`)."""
    return isinstance(x, Ref) or (getattr(x, "is_ref", False) is True and not isinstance(x, _core.Array))


def cannot_return(fun, what, ref, argument=None, at=""):
    """Why a function must not return a reference; `argument` makes the name of the argument that it
    is.
    """
    text = f"function {describe(fun)} traced for {what} returned a mutable array reference of type {ref._type()}{at}, but mutable array references cannot be returned."
    if argument:
        return text + f"\n\nThe returned mutable array was passed in as the argument {argument()}."
    return text + (f"\n\nThe returned mutable array was created on line {ref._made}." if ref._made else "")


def _closed_over(fun):
    """The references that are values of variables from around a Python function."""
    for cell in getattr(fun, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # not assigned yet
            if isinstance(cell.cell_contents, Ref):
                yield cell.cell_contents


def check_aliases(what, fun, args, kwargs, closed=()):
    """Raises ValueError if a reference is passed twice to a function, or is in its reach already:
    in `closed`, or among the variables it closes over.
    """
    closed = [*closed, *_closed_over(fun)]
    leaves = tree_flatten((args, kwargs))[0]
    seen_at = {}
    for i, r in enumerate(leaves):
        if isinstance(r, _Part):
            raise NotImplementedError(f"{describe(fun)} was given a part of a mutable reference, {r!r}; give it the reference and the index")
        if not isinstance(r, Ref):
            continue
        name = lambda k: argument_names(fun, args, kwargs)[k]
        if any(r is c for c in closed):
            how = f"was both closed over and passed as the argument {name(i)}"
        elif id(r) in seen_at:
            how = f"appeared at both {name(seen_at[id(r)])} and {name(i)}"
        else:
            seen_at[id(r)] = i
            continue
        raise ValueError(
            f"only one reference to a mutable array may be passed as an argument to a function, but when tracing {describe(fun)} for {what} the"
            f" mutable array reference of type {r._type()} {how}."
        )


_flat.references = sys.modules[__name__]
