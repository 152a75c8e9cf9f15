"""Mutable references in backward passes, as `bwd` rules read and write them.

In the backward pass, rules run in the reverse of the order in which their functions were called, so
that the writes of later calls happen first. Each reference that a rule gets therefore has a
companion, its `BackwardRef`, which passes through programs, loops and branches like the reference
itself: it is an input and an output of each such call.
Its value is not used; its cotangent, which passes through the same calls in reverse, is the content
of the reference. The pullback starts this cotangent with the reference's value, and finally sets
the reference to it.

Invariant: a `BackwardRef` made outside of a function that is differentiated is an input and an
output of this function.

    grad(lambda x: stash(ref, jnp.sin(x)))(1.0)        # the rule of `stash` writes: ref[...] = cotangent
"""

import numpy as np

from .. import _core
from .._base.dtypes import is_inexact, is_key
from .._trees import flat as _flat
from .refs import Ref, bound, passes, settle, values_of


class BackwardUnknown(BaseException):
    """A jitted function was not given the backward reference of its argument number `i`.

    Not an Exception: it has to pass the user's `except`.
    """

    def __init__(self, function, i):
        self.function, self.i = function, i
        super().__init__("a backward pass writes to a mutable reference inside a transformation that does not pass references on")


class _Unbound(BaseException):
    """A derivative used a backward reference from outside, which therefore must become one of its
    inputs.
    """

    def __init__(self, ref, taken):
        self.ref, self.taken = ref, taken


class _Pass:
    """A derivative under construction, and the backward references that are its inputs."""

    def __init__(self, refs):
        self.refs, self.staging = refs, _core.staging()


class BackwardRef(Ref):
    """The counterpart of a reference in backward passes.

    Its type is that of a cotangent: an integer is represented by floats that hold 16 bits each.
    """

    __slots__ = ("owner",)

    @classmethod
    def of(cls, owner, value):
        """A new backward reference of `owner`, with a value of the program that `owner` belongs
        to.
        """
        self = cls.__new__(cls)
        self.owner, self._value, self._aval = owner, value, _core.get_aval(value)
        self._home, self._kind, self._back, self._place = owner._home, None, None, None
        self._staging, self._traces = owner._home[0], None
        owner._back = self
        return self

    def _here(self):
        value = super()._here()
        for i in reversed(range(self._home[1], len(passes()))):
            taken = passes()[i]
            if taken.staging == _core.staging() and not any(r is self for r in taken.refs):
                raise _Unbound(self, taken)
        return value


def backward_of(ref):
    """The backward reference of a reference, created if necessary."""
    if ref._back is None:
        if ref._place is not None:
            raise BackwardUnknown(*ref._place)
        if is_key(ref.dtype):
            raise TypeError(f"a custom derivative rule cannot take a mutable reference to keys, {ref._type()}")
        shape = tuple(ref._aval.shape)
        shape = shape if is_inexact(ref.dtype) else (_pieces(ref.dtype), *shape)
        BackwardRef.of(ref, _core.asarray(np.zeros(shape, ref.dtype if is_inexact(ref.dtype) else np.float32)))
    return ref._back


def _pieces(dtype):
    return max(1, dtype.itemsize // 2)


def as_cotangent(x):
    """A reference's value as a cotangent: exact, for every dtype."""
    dtype = x.dtype
    convert = lambda x, dtype: _core.bind("convert_element_type", x, new_dtype=np.dtype(dtype), weak_type=False, sharding=None)
    if is_inexact(dtype):
        return _core.bind("convert_element_type", x, new_dtype=dtype, weak_type=False, sharding=None)
    n = _pieces(dtype)
    parts = []
    for i in range(n):
        part = _core.bind("shift_right_arithmetic", x, np.asarray(16 * i, dtype)) if i else x
        if i < n - 1:
            part = _core.bind("and", part, np.asarray(0xFFFF, dtype))
        parts.append(convert(part, np.float32))
    return _core.bind("concatenate", *[p.reshape((1, *p.shape)) for p in parts], dimension=0)


def from_cotangent(ct, dtype):
    """The value that `as_cotangent` made of this."""
    convert = lambda x, dtype: _core.bind("convert_element_type", x, new_dtype=dtype, weak_type=False, sharding=None)
    if is_inexact(dtype):
        return ct
    parts = [ct[i] for i in range(_pieces(dtype))]
    if dtype == np.bool_:
        return _core.bind("ne", parts[0], np.float32(0))
    # the highest part has the sign
    whole = convert(convert(parts[-1], np.dtype(np.int32)), dtype)
    for part in reversed(parts[:-1]):
        shifted = _core.bind("shift_left", whole, np.asarray(16, dtype))
        whole = _core.bind("or", shifted, convert(convert(part, np.dtype(np.int32)), dtype))
    return whole


def linearized(flat, leaves):
    """(outputs, the linear map, references): `_core.linearize` of a flat function, whose map has a
    further input and output for each of the references.
    """
    if not _flat.references.seen:
        return (*_core.linearize(flat, leaves), [])
    refs = []
    while True:
        values = values_of(refs)
        taken = _Pass(list(refs))
        passes().append(taken)

        def run(*xs, taken=taken):
            with bound(taken.refs, xs[len(leaves) :]):
                outs = flat(*xs[: len(leaves)])
                return [*outs, *values_of(taken.refs)]

        try:
            outs, linear = _core.linearize(run if refs else flat, [*leaves, *values])
            return outs[: len(outs) - len(refs)], linear, [r.owner for r in refs]
        except _Unbound as e:
            if e.taken is not taken:
                raise
            refs.append(e.ref)
        finally:
            passes().remove(taken)


def transposed(linear, cts, refs, wanted=None):
    """The cotangents of the inputs, of those that are `wanted` where that is given.

    The backward pass updates the references.
    """
    if not refs:
        return linear.transpose(cts, wanted)
    wanted = None if wanted is None else [*wanted, *[True] * len(refs)]
    found = linear.transpose([*cts, *[as_cotangent(r._here()) for r in refs]], wanted)
    n = len(found) - len(refs)
    settle(refs, [r._value if ct is None else from_cotangent(ct, r.dtype) for r, ct in zip(refs, found[n:], strict=True)])
    return found[:n]
