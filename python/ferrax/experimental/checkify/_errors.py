"""Errors as values, which a function transformed by `checkify` returns beside its result.

    error_of(code, payload, slots, sites)      # code: -1, or the number of the place that failed

Invariant: a number identifies one place of one program as long as the program is alive; a payload
has a slot for each type of value in a message.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any, TypeAlias

import numpy as np

from ... import _core, lax
from ..._core import bind
from ...tree_util import register_pytree_node


class JaxException(Exception):
    """The exception that `Error.get_exception` returns."""


class NaNError(JaxException):
    """An operation made a NaN."""


class DivisionByZeroError(JaxException):
    """A denominator was zero."""


class OOBError(JaxException):
    """An index lay outside of its array."""


class FailedCheckError(JaxException):
    """A `check` failed."""


class JaxRuntimeError(ValueError):
    """The exception that `Error.throw` raises."""


ErrorCategory: TypeAlias = type[JaxException]
user_checks: frozenset[Any] = frozenset({FailedCheckError})
nan_checks: frozenset[Any] = frozenset({NaNError})
index_checks: frozenset[Any] = frozenset({OOBError})
div_checks: frozenset[Any] = frozenset({DivisionByZeroError})
float_checks: frozenset[Any] = nan_checks | div_checks
automatic_checks: frozenset[Any] = float_checks | index_checks
all_checks: frozenset[Any] = automatic_checks | user_checks


class Site:
    """A place that can fail: `text(values)` words the failure, from the values of its payload."""

    __slots__ = ("__weakref__", "kind", "text")

    def __init__(self, kind, text):
        self.kind, self.text = kind, text


class Sites:
    """The source locations for the numbers in a program.

    Part of an error's structure: structures with the same locations are equal.
    """

    def __init__(self, table=None):
        self.table = table or {}

    def __eq__(self, other):
        return type(other) is Sites

    def __hash__(self):
        return hash(Sites)


_numbers = itertools.count()
# The number of each place of a check. It is kept as long as programs or errors refer to the place.
_known = weakref.WeakValueDictionary()


class Error:
    """The first failure of a checkified function, or none.

    A pytree: it passes through `jit`, `vmap` and loops.

    A mapped error holds one failure for each element of the batch.
    """

    def __init__(self, _pred: Any, _code: Any, _metadata: Any, _payload: Any) -> None:
        """An error without failure, for libraries that store one: all four arguments are empty.

        Other errors come from `checkify`.
        """
        if _pred or _code or _metadata or _payload:
            raise TypeError("an Error that is made holds nothing: _pred, _code, _metadata and _payload must be empty")
        self._set(np.int32(-1), [], (), Sites())

    def _set(self, code, payload, slots, sites):
        self._code, self._payload, self._slots, self._sites = code, payload, slots, sites

    def _failures(self):
        """(the index of each lane that failed, its exception), in order."""
        codes = np.asarray(self._code)
        values = [np.asarray(x) for x in self._payload]
        for index in np.ndindex(codes.shape):
            code = int(codes[index])
            if code >= 0:
                yield index, exception_of(code, dict(zip(self._slots, [v[index] for v in values], strict=True)), self._sites)

    def get_exception(self) -> JaxException | None:
        """The exception of the first failure; None if there is none."""
        return next((e for _, e in self._failures()), None)

    def get(self) -> str | None:
        """The message of the failure, one line for each failed element of the batch if the error is
        mapped; None if there is none.
        """
        found = list(self._failures())
        if not found:
            return None
        if not np.shape(self._code):
            return str(found[0][1])
        return "\n".join(f"at mapped index {', '.join(map(str, index))}: {e}" for index, e in found)

    def throw(self) -> None:
        """Raises the failure, if there is one. In a program, `check_error` says the same.

        Raises:
            JaxRuntimeError: with the message.
        """
        found = self.get_exception()
        if found is not None:
            raise JaxRuntimeError(str(found))

    def __repr__(self):
        if isinstance(self._code, _core.Tracer):
            return f"Error({self._code})"
        return f"Error({self.get()!r})"


def exception_of(code, values, sites):
    site = sites.table.get(code) or _known[code]
    return site.kind(site.text(values, sites))


def error_of(code, payload, slots, sites):
    """The error with a code, -1 for none, and the contents of its slots."""
    error = Error.__new__(Error)
    error._set(code, payload, slots, sites)
    return error


def _unflatten_error(aux, children):
    code, *payload = children
    return error_of(code, payload, *aux)


register_pytree_node(Error, lambda e: ((e._code, *e._payload), (e._slots, e._sites)), _unflatten_error)

init_error: Error = error_of(np.int32(-1), [], (), Sites())

# Tracebacks and pickles name the public module.
for _public in (Error, JaxException, NaNError, DivisionByZeroError, OOBError, FailedCheckError, JaxRuntimeError):
    _public.__module__ = __name__.rpartition(".")[0]


class State:
    """The error during the evaluation of a program.

    Payloads of one type share a slot, because only one error is stored at a time.
    """

    def __init__(self, code, payload, sites):
        self.code, self.payload, self.sites = code, payload, sites

    @classmethod
    def empty(cls, slots, sites):
        zero = lambda slot: lax.full(slot[0], 0, slot[1])
        return cls(_core.asarray(np.int32(-1)), {slot: zero(slot) for slot in slots}, sites)

    def values(self):
        return [self.code, *self.payload.values()]

    def like(self, values):
        return State(values[0], dict(zip(self.payload, values[1:], strict=True)), self.sites)

    def failing(self, failed, site, values):
        """The state after a place was passed that fails if `failed` (one truth, or one a lane, all
        lanes in front) and shows `values`.
        """
        number = next(_numbers)
        _known[number] = self.sites.table[number] = site
        if failed.ndim:
            lanes = failed.ndim
            flat = lax.reshape(failed, (failed.size,))
            first = lax.argmax(flat, 0, np.int32)
            values = [lax.dynamic_index_in_dim(lax.reshape(v, (failed.size, *v.shape[lanes:])), first, keepdims=False) if failed.size else None for v in values]
            if not failed.size:
                return self
            failed = lax.reduce_or(flat, (0,))
        new = lax.bitwise_and(failed, lax.lt(self.code, np.int32(0)))
        payload = dict(self.payload)
        for slot, v in zip(slots_of([v.aval for v in values]), values, strict=True):
            payload[slot] = _choose(new, v, payload[slot])
        return State(_choose(new, _core.asarray(np.int32(number)), self.code), payload, self.sites)

    def or_else(self, code, payload):
        """This state where it is an error, else that of this code and payload."""
        none = lax.lt(self.code, np.int32(0))
        payload = {slot: _choose(none, v, old) for (slot, old), v in zip(self.payload.items(), payload, strict=True)}
        return State(_choose(none, code, self.code), payload, self.sites)


def _choose(pred, a, b):
    """`a` where `pred`, a truth, else b."""
    return bind("select_n", pred, b, a)


def slots_of(avals):
    """A slot (shape, dtype, count) for each value of a payload."""
    seen, out = {}, []
    for a in avals:
        key = tuple(a.shape), a.dtype
        out.append((*key, seen.setdefault(key, 0)))
        seen[key] += 1
    return out
