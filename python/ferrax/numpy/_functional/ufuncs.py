"""`ufunc` objects: functions of scalars with reduce, accumulate, at, outer and reduceat.

Invariant: a call costs as much as one of the plain function.

    >>> jnp.add.reduce(jnp.arange(4))
    Array(6, dtype=int32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._base.dtypes import dtype_of, is_bool, is_floating, summed_in
from ..._base.shapes import canonicalize_axis
from ..._base.tracebacks import api_boundary
from ..._core import bind
from ..._tracing.picklable import public_name
from ..._tracing.trace import ShapeDtypeStruct, eval_shape
from ...lax import cumlogsumexp, fori_loop, scan
from .._creation.filled import full
from .._creation.ranges import arange
from .._indexing import selecting as _selecting
from .._indexing.makers import unravel_index
from .._indexing.taking import take
from .._logic import elementwise as _logic
from .._manipulation.inserting import append
from .._manipulation.joining import concatenate
from .._manipulation.shaping import expand_dims, moveaxis, ravel, reshape
from .._math import exponential as _exponential, operators as _operators
from .._reductions import cumulative as _cumulative, plain as _reductions
from .._support.arguments import as_array, check_arraylike, jitted
from .vectorizing import vectorize

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike


class ufunc:
    """A function of `nin` scalars that applies to arrays, elementwise.

    identity: the starting value of reductions; None if there is none. Made by `frompyfunc`, or one
    of `jnp.add` and others.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reductions: Any = None,
        primitive: Any = None,
    ) -> None:
        self.__name__ = self.__qualname__ = name or getattr(func, "__name__", "func")
        self.__doc__ = getattr(func, "__doc__", None)
        self._func, self._nin, self._nout, self._identity = func, nin, nout, identity
        self._call = call or _lifted(func, nin, self.__name__)
        self._reductions, self._prim, self._jits = reductions or {}, primitive, {}
        # Folds of the library's own functions round once; what a user's function does with a dtype is its own, and with its identity.
        self._users = call is None
        self._folded_in = (lambda dtype: dtype) if call is None else summed_in

    @property
    def nin(self) -> int:
        """The number of inputs."""
        return self._nin

    @property
    def nout(self) -> int:
        """The number of outputs."""
        return self._nout

    @property
    def identity(self) -> ArrayLike | None:
        """The starting value of reductions; None if there is none."""
        return self._identity

    @property
    def nargs(self) -> int:
        """The number of inputs."""
        return self._nin

    def __reduce__(self):
        return public_name(self) or (_again, (self._func, self._nin, self._nout, self._identity))

    def __repr__(self):
        return f"<jnp.ufunc '{self.__name__}'>"

    def __hash__(self):
        return hash((self.__name__, self.identity, self.nin, self.nout, self._func))

    def __eq__(self, other):
        return isinstance(other, ufunc) and self._func == other._func and self.__name__ == other.__name__

    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Any:
        if out is not None:
            raise NotImplementedError(f"out argument of {self}")
        if where is not None:
            raise NotImplementedError(f"where argument of {self}")
        return self._call(*args)

    def _jit(self, method, static):
        # One compiled function for each method, under the method's name, made when first used.
        if method not in self._jits:
            fun = getattr(self, "_" + method)

            def run(*args, **kwargs):
                return fun(*args, **kwargs)

            self._jits[method] = jitted(method, static, run)
        return self._jits[method]

    def _result(self, a):
        # The dtype that the function of two elements has: folds keep it.
        element = ShapeDtypeStruct((), a.dtype)
        return eval_shape(self._call, element, element).dtype

    def _binary(self, method):
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions returning a single value")

    @api_boundary
    def reduce(
        self,
        a: ArrayLike,
        axis: int | None = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The function folded over `axis` (None: all), from the left. where: the elements to
        include; requires `initial` or an identity.
        """
        self._binary("reduce")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduce()")
        check_arraylike(f"{self.__name__}.reduce", a)
        if self.identity is None and initial is None and where is not None:
            raise ValueError(f"reduction operation {self.__name__!r} does not have an identity, so to use a where mask one has to specify 'initial'.")
        if isinstance(axis, list):
            axis = tuple(axis)
        if where is not None:
            check_arraylike(f"{self.__name__}.reduce", where)
            if not is_bool(dtype_of(where)):
                raise ValueError(f"where argument must have dtype=bool; got dtype={dtype_of(where)}")
        return self._jit("reduce", ("axis", "dtype", "keepdims"))(
            as_array("reduce", a), axis=axis, dtype=dtype, keepdims=bool(keepdims), initial=initial, where=where
        )

    def _reduce(self, a, axis, dtype, keepdims, initial, where):
        fast = self._reductions.get("reduce")
        if fast is not None:
            return fast(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        a = a.astype(self._result(a) if dtype is None else dtype)
        where = None if where is None else _core.broadcast_to(_core.asarray(where), a.shape)
        return self._fold(a.astype(self._folded_in(a.dtype)), axis, keepdims, initial, where).astype(a.dtype)

    def _fold(self, a, axis, keepdims, initial, where):
        if isinstance(axis, tuple):
            axes = tuple([canonicalize_axis(d, a.ndim) for d in axis])
            if len(axes) == 1:
                axis = axes[0]
            else:
                kept = [d for d in range(a.ndim) if d not in axes]
                shape = tuple([1 if d in axes else n for d, n in enumerate(a.shape)])
                joined = lambda v: reshape(moveaxis(v, axes, tuple(range(len(axes)))), (-1, *[a.shape[d] for d in kept]))
                out = self._fold(joined(a), 0, False, initial, None if where is None else joined(where))
                return reshape(out, shape) if keepdims else out
        shape = a.shape
        if axis is None:
            a, axis, where = reshape(a, (-1,)), 0, None if where is None else reshape(where, (-1,))
            final = (1,) * len(shape)
        else:
            axis = canonicalize_axis(axis, a.ndim)
            final = shape[:axis] + (1,) + shape[axis + 1 :]
        n = a.shape[axis]
        if n == 0 and self.identity is None and initial is None:
            raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity.")
        if n > 0 and "log_sum" in self._reductions and is_floating(a.dtype):
            out = self._reductions["log_sum"](a if where is None else _selecting.where(where, a, self.identity), axis)
            out = out if initial is None else self(_core.asarray(initial, a.dtype), out)
        else:
            out = self._from_left(a, axis, initial, where)
        return reshape(out, final) if keepdims else out

    def _from_left(self, a, axis, initial, where):
        # Elements that are left out leave the value as it is.
        neutral = self.identity is None or not self._users
        if neutral and initial is None and where is None and a.shape[axis] > 0:
            start, at = _slice_at(a, 0, axis), 1
        else:
            start, at = full(a.shape[:axis] + a.shape[axis + 1 :], self.identity if initial is None else initial, a.dtype), 0

        def step(carry, _):
            i, value = carry
            after = self(value, _dynamic_at(a, i, axis)).astype(value.dtype)
            after = after if where is None else _selecting.where(_dynamic_at(where, i, axis), after, value)
            return (bind("add", i, np.int32(1)), after), None

        rest = a.shape[axis] - at
        return scan(step, (np.int32(at), start), None, length=rest)[0][1] if rest else start

    @api_boundary
    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """The running fold along `axis`."""
        self._binary("accumulate")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.accumulate()")
        check_arraylike(f"{self.__name__}.accumulate", a)
        return self._jit("accumulate", ("axis", "dtype"))(as_array("accumulate", a), axis=axis, dtype=dtype)

    def _accumulate(self, a, axis, dtype):
        fast = self._reductions.get("accumulate")
        if fast is not None:
            return fast(a, axis=axis, dtype=dtype)
        a = a.astype(self._result(a) if dtype is None else dtype)
        if axis is None or a.ndim == 0:
            raise ValueError("accumulate does not allow multiple axes" if axis is None else "cannot accumulate on a scalar")
        axis = canonicalize_axis(axis, a.ndim)
        if a.shape[axis] == 0:
            return a
        return self._scan(a.astype(self._folded_in(a.dtype)), axis).astype(a.dtype)

    def _scan(self, a, axis):
        if "log_sums" in self._reductions and is_floating(a.dtype):
            return self._reductions["log_sums"](a, axis)
        rows = moveaxis(a, axis, 0)

        def step(carry, x):
            y = self(carry, x).astype(carry.dtype)
            return y, y

        _, rest = scan(step, rows[0], rows[1:])
        return moveaxis(concatenate([rows[:1], rest]), 0, axis)

    @api_boundary
    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array:
        """`a` with a[indices] replaced by the function of it (and of b), once for each mention.

        `inplace` must be False.
        """
        if inplace:
            raise NotImplementedError(
                "Because JAX arrays are immutable, jnp.ufunc.at() cannot operate inplace like\nnp.ufunc.at(). Instead, you can pass inplace=False and capture the result; e.g.\n"
                ">>> arr = jnp.add.at(arr, ind, val, inplace=False)\n"
            )
        return self._jit("at", ())(a, indices, b) if b is not None else self._jit("at", ())(a, indices)

    def _at(self, a, indices, b=None):
        fast = self._reductions.get("at")
        a = as_array("at", a)
        if fast is not None:
            return fast(a, indices, b)
        if self.nin == 1:
            return a.at[indices].apply(self)
        # One element after another, so that an update at a repeated index reads the previous result.
        positions = ravel(arange(a.size).reshape(a.shape)[indices])
        values = ravel(_core.broadcast_to(_core.asarray(b), arange(a.size).reshape(a.shape)[indices].shape))

        def step(carry, x):
            i, value = x
            where = unravel_index(i, carry.shape)
            return carry.at[where].set(self(carry[where], value)), None

        return scan(step, a, (positions, values))[0]

    @api_boundary
    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """The function of every pair of elements; shape A.shape + B.shape."""
        self._binary("outer")
        check_arraylike(f"{self.__name__}.outer", A, B)
        return self._jit("outer", ())(as_array("outer", A), as_array("outer", B))

    def _outer(self, A, B):
        A, B = _core.promote_dtypes(A, B)
        rank = A.ndim + B.ndim
        if A.ndim and B.ndim:
            B = bind("broadcast_in_dim", B, shape=(1,) * A.ndim + tuple(B.shape), broadcast_dimensions=tuple(range(A.ndim, rank)))
            A = bind("broadcast_in_dim", A, shape=tuple(A.shape) + (1,) * (rank - A.ndim), broadcast_dimensions=tuple(range(A.ndim)))
        return self(A, B)

    @api_boundary
    def reduceat(self, a: ArrayLike, indices: Any, axis: int = 0, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Folds of a[indices[i]:indices[i + 1]] along `axis` for every i; the last runs to the
        end.
        """
        self._binary("reduceat")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduceat()")
        check_arraylike(f"{self.__name__}.reduceat", a, indices)
        return self._jit("reduceat", ("axis", "dtype"))(as_array("reduceat", a), as_array("reduceat", indices), axis=axis, dtype=dtype)

    def _reduceat(self, a, indices, axis, dtype):
        if dtype is not None:
            a = a.astype(dtype)
        axis = canonicalize_axis(axis, a.ndim)
        n = a.shape[axis]
        result, a = a.dtype, a.astype(self._folded_in(a.dtype))
        out = take(a, indices, axis=axis)
        starts, ends = indices, append(indices[1:], n)
        shape = [1] * out.ndim
        shape[axis] = -1

        def step(i, out):
            # Each element joins the folds of all intervals that contain it, in order.
            element = expand_dims(_dynamic_at(a, i, axis), axis)
            inside = (starts < i) & (i < ends)
            return _selecting.where(inside.reshape(shape), self(out, element), out)

        return fori_loop(0, n, step, out).astype(result)


def _slice_at(a, i, axis):
    starts, limits = [0] * a.ndim, list(a.shape)
    starts[axis], limits[axis] = i, i + 1
    row = bind("slice", a, start_indices=tuple(starts), limit_indices=tuple(limits), strides=None)
    return bind("squeeze", row, dimensions=(axis,))


def _dynamic_at(a, i, axis):
    return a[(slice(None),) * axis + (i,)]


def _lifted(func, nin, name):
    """A function of scalars as a function of arrays."""
    lifted = vectorize(func)
    compiled = jitted(name, (), lambda *args: lifted(*args))

    def call(*args):
        if len(args) != nin:
            raise TypeError(f"{name}() takes {nin} positional arguments but {len(args)} were given")
        check_arraylike(name, *args)
        return compiled(*args)

    return call


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A `ufunc` from a function of scalars.

    Args:
        func: traceable function of `nin` scalars that returns `nout`.
        nin: int, the number of arguments.
        nout: int, the number of results.
        identity: the starting value of reductions, or None.

    Returns:
        ufunc.

    Raises:
        ValueError: for no inputs.

    >>> jnp.frompyfunc(jnp.add, 2, 1, identity=0).reduce(jnp.array([1, 2, 3]))
    Array(6, dtype=int32)
    """
    if nin == 0:
        raise ValueError("frompyfunc requires at least one input")
    return ufunc(func, nin, nout, identity=identity)


def _again(func, nin, nout, identity):
    return frompyfunc(func, nin, nout, identity=identity)


if TYPE_CHECKING:

    class _Binary(ufunc):
        """A ufunc of two arguments, for type checkers."""

        def __call__(self, x: ArrayLike, y: ArrayLike, /, out: None = None, where: None = None) -> Array: ...

    class _Unary(ufunc):
        """A ufunc of one argument, for type checkers."""

        def __call__(self, x: ArrayLike, /, out: None = None, where: None = None) -> Array: ...


# ---- the functions that JAX makes ufuncs of


def _reduction(name):
    def reduce(a, axis, dtype, keepdims, initial, where):
        fun = getattr(_reductions, name)
        if name in ("all", "any"):
            if dtype is not None and not is_bool(dtype):
                raise TypeError(f"reductions of logical functions give bool, not dtype={dtype}")
            out = fun(a, axis=axis, keepdims=keepdims, where=where)
            return out if initial is None else {"all": _logic.logical_and, "any": _logic.logical_or}[name](out, initial)
        if name in ("max", "min"):
            a = a if dtype is None else a.astype(dtype)
            return fun(a, axis=axis, keepdims=keepdims, initial=initial, where=where)
        return fun(a, axis=axis, keepdims=keepdims, initial=initial, where=where, dtype=dtype)

    return reduce


def _running(name):
    def accumulate(a, axis, dtype):
        return getattr(_cumulative, name)(a, axis=axis, dtype=dtype)

    return accumulate


def _scatter(method):
    # Sums of booleans are their maxima, products their minima; they have no differences.
    of_bool = {"add": "max", "multiply": "min"}.get(method, method)

    def at(a, indices, b):
        return getattr(a.at[indices], of_bool if _operators.both_bool(a, b) else method)(b)

    return at


def _log_sum(exp, log):
    """log(sum(exp(a))) of floats along an axis, without overflow."""

    def reduce(a, axis):
        top = _reductions.max(a, axis=axis, keepdims=True)
        top = bind("stop_gradient", _selecting.where(bind("is_finite", top), top, 0))
        total = _reductions.sum(exp(a - top), axis=axis, keepdims=True)
        empty = total == 0
        # The logarithm never sees 0, whose slope is infinite.
        out = _selecting.where(empty, -np.inf, log(_selecting.where(empty, 1, total)) + top)
        return bind("squeeze", out, dimensions=(axis,))

    return reduce


def _log_sums(a, axis):
    return cumlogsumexp(a, axis)


def _log2_sums(a, axis):
    log2 = float(np.log(2))
    return cumlogsumexp(a * log2, axis) / log2


def _make(name, nin, identity, **reductions) -> Any:
    fun = getattr(_logic if name.startswith("logical_") else _operators, name)
    return ufunc(fun, nin, 1, name=name, identity=identity, call=fun, reductions=reductions)


add: _Binary = _make("add", 2, 0, reduce=_reduction("sum"), accumulate=_running("cumsum"), at=_scatter("add"))
subtract: _Binary = _make("subtract", 2, None, at=_scatter("subtract"))
multiply: _Binary = _make("multiply", 2, 1, reduce=_reduction("prod"), accumulate=_running("cumprod"), at=_scatter("multiply"))
maximum: _Binary = _make("maximum", 2, None, reduce=_reduction("max"), at=_scatter("max"))
minimum: _Binary = _make("minimum", 2, None, reduce=_reduction("min"), at=_scatter("min"))
negative: _Unary = _make("negative", 1, None)
bitwise_and: _Binary = _make("bitwise_and", 2, -1)
bitwise_or: _Binary = _make("bitwise_or", 2, 0)
bitwise_xor: _Binary = _make("bitwise_xor", 2, 0)
logical_and: _Binary = _make("logical_and", 2, True, reduce=_reduction("all"))
logical_or: _Binary = _make("logical_or", 2, False, reduce=_reduction("any"))
logical_xor: _Binary = _make("logical_xor", 2, False)
logaddexp: _Binary = _make("logaddexp", 2, -np.inf, log_sum=_log_sum(_exponential.exp, _exponential.log), log_sums=_log_sums)
logaddexp2: _Binary = _make("logaddexp2", 2, -np.inf, log_sum=_log_sum(_exponential.exp2, _exponential.log2), log_sums=_log2_sums)
