"""`ufunc` objects: functions of scalars with reduce, accumulate, at, outer and reduceat.

Invariant: calling one costs what the plain function costs.

    >>> jnp.add.reduce(jnp.arange(4))
    Array(6, dtype=int32)
"""

from __future__ import annotations

import numpy as np

from .. import _core
from .._core import bind, elementwise
from .._dtypes import is_bool
from ..lax import fori_loop, scan
from ._arguments import as_array, canonicalize_axis, check_arraylike, filled_like, jitted, pointwise, scalar_like


class ufunc:
    """A function of `nin` scalars that applies to arrays, elementwise.

    identity: what reduction starts from; None where there is nothing. Made by `frompyfunc` or found as `jnp.add` and others.
    """

    def __init__(self, func, nin, nout, *, name=None, nargs=None, identity=None, call=None, reductions=None, primitive=None):
        self.__name__ = self.__qualname__ = name or getattr(func, "__name__", "func")
        self.__doc__ = getattr(func, "__doc__", None)
        self.nin, self.nout, self.identity = nin, nout, identity
        self._call, self._reductions, self._prim, self._jits = call or func, reductions or {}, primitive, {}

    @property
    def nargs(self):
        """The number of inputs."""
        return self.nin

    def __repr__(self):
        return f"<jnp.ufunc '{self.__name__}'>"

    def __hash__(self):
        return hash((self.__name__, self.identity, self.nin, self.nout, id(self._call)))

    def __eq__(self, other):
        return isinstance(other, ufunc) and self._call is other._call and self.__name__ == other.__name__

    def __call__(self, *args, out=None, where=None):
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
        from .. import ShapeDtypeStruct, eval_shape

        element = ShapeDtypeStruct((), a.dtype)
        return eval_shape(self._call, element, element).dtype

    def _binary(self, method):
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions returning a single value")

    def reduce(self, a, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=None):
        """The function folded over `axis` (None: all), from the left. where: which elements take part; then `initial` or an identity."""
        self._binary("reduce")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduce()")
        check_arraylike(f"{self.__name__}.reduce", a)
        if self.identity is None and initial is None and where is not None:
            raise ValueError(f"reduction operation {self.__name__!r} does not have an identity, so to use a where mask one has to specify 'initial'.")
        if isinstance(axis, list):
            axis = tuple(axis)
        return self._jit("reduce", ("axis", "dtype", "keepdims"))(
            as_array("reduce", a), axis=axis, dtype=dtype, keepdims=bool(keepdims), initial=initial, where=where
        )

    def _reduce(self, a, axis, dtype, keepdims, initial, where):
        fast = self._reductions.get("reduce")
        if fast is not None:
            return fast(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        from ._selecting import where as choose
        from ._shaping import moveaxis, reshape

        if where is not None:
            start = self.identity if initial is None else initial
            a = choose(where, a, start)
        a = a.astype(self._result(a) if dtype is None else dtype)
        if isinstance(axis, tuple):
            axes = tuple([canonicalize_axis(d, a.ndim) for d in axis])
            if len(axes) == 1:
                axis = axes[0]
            else:
                kept = [d for d in range(a.ndim) if d not in axes]
                shape = tuple([1 if d in axes else n for d, n in enumerate(a.shape)])
                a = reshape(moveaxis(a, axes, tuple(range(len(axes)))), (-1, *[a.shape[d] for d in kept]))
                out = self._reduce(a, 0, None, False, initial, None)
                return reshape(out, shape) if keepdims else out
        shape = a.shape
        if axis is None:
            a, axis = reshape(a, (-1,)), 0
            final = (1,) * len(shape)
        else:
            axis = canonicalize_axis(axis, a.ndim)
            final = shape[:axis] + (1,) + shape[axis + 1 :]
        n = a.shape[axis]
        if n == 0:
            if self.identity is None and initial is None:
                raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity.")
            from ._creation import full

            start = self.identity if initial is None else initial
            out = full(a.shape[:axis] + a.shape[axis + 1 :], start, a.dtype)
        else:
            first = _slice_at(a, 0, axis)
            start, at = (first, 1) if initial is None else (self(_core.asarray(initial, a.dtype), first), 1)
            if n == 1:
                out = start
            else:

                def step(carry, _):
                    i, value = carry
                    element = _dynamic_at(a, i, axis)
                    return (bind("add", i, np.int32(1)), self(value, element).astype(value.dtype)), None

                (_, out), _ = scan(step, (np.int32(at), start), None, length=n - 1)
        return reshape(out, final) if keepdims else out

    def accumulate(self, a, axis=0, dtype=None, out=None):
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
        from ._joining import concatenate
        from ._shaping import moveaxis

        a = a.astype(self._result(a) if dtype is None else dtype)
        if axis is None or a.ndim == 0:
            raise ValueError("accumulate does not allow multiple axes" if axis is None else "cannot accumulate on a scalar")
        axis = canonicalize_axis(axis, a.ndim)
        rows = moveaxis(a, axis, 0)
        if rows.shape[0] == 0:
            return a

        def step(carry, x):
            y = self(carry, x).astype(carry.dtype)
            return y, y

        _, rest = scan(step, rows[0], rows[1:])
        return moveaxis(concatenate([rows[:1], rest]), 0, axis)

    def at(self, a, indices, b=None, /, *, inplace=True):
        """a with a[indices] replaced by the function of it (and of b), once for each mention. `inplace` must be False."""
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
        from ._creation import arange
        from ._shaping import ravel
        from ._taking import unravel_index

        # One element after another, so that repeated indices see one another's results.
        positions = ravel(arange(a.size).reshape(a.shape)[indices])
        values = ravel(_core.broadcast_to(_core.asarray(b), arange(a.size).reshape(a.shape)[indices].shape))

        def step(carry, x):
            i, value = x
            where = unravel_index(i, carry.shape)
            return carry.at[where].set(self(carry[where], value)), None

        return scan(step, a, (positions, values))[0]

    def outer(self, A, B, /):
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

    def reduceat(self, a, indices, axis=0, dtype=None, out=None):
        """Folds of a[indices[i]:indices[i + 1]] along `axis` for every i; the last runs to the end."""
        self._binary("reduceat")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduceat()")
        check_arraylike(f"{self.__name__}.reduceat", a, indices)
        return self._jit("reduceat", ("axis", "dtype"))(as_array("reduceat", a), as_array("reduceat", indices), axis=axis, dtype=dtype)

    def _reduceat(self, a, indices, axis, dtype):
        from ._inserting import append
        from ._selecting import where
        from ._shaping import expand_dims
        from ._taking import take

        if dtype is not None:
            a = a.astype(dtype)
        axis = canonicalize_axis(axis, a.ndim)
        n = a.shape[axis]
        out = take(a, indices, axis=axis)
        starts, ends = indices, append(indices[1:], n)
        shape = [1] * out.ndim
        shape[axis] = -1

        def step(i, out):
            # Elements join the fold of every interval they lie in, in order.
            element = expand_dims(_dynamic_at(a, i, axis), axis)
            inside = (starts < i) & (i < ends)
            return where(inside.reshape(shape), self(out, element), out)

        return fori_loop(0, n, step, out)


def _slice_at(a, i, axis):
    starts, limits = [0] * a.ndim, list(a.shape)
    starts[axis], limits[axis] = i, i + 1
    row = bind("slice", a, start_indices=tuple(starts), limit_indices=tuple(limits), strides=None)
    return bind("squeeze", row, dimensions=(axis,))


def _dynamic_at(a, i, axis):
    return a[(slice(None),) * axis + (i,)]


def frompyfunc(func, /, nin, nout, *, identity=None):
    """A `ufunc` from a traceable function of `nin` scalars that returns `nout`. Raises ValueError for no inputs."""
    from ._vectorizing import vectorize

    if nin == 0:
        raise ValueError("frompyfunc requires at least one input")
    lifted = vectorize(func)
    name = getattr(func, "__name__", "func")

    def call(*args):
        if len(args) != nin:
            raise TypeError(f"{name}() takes {nin} positional arguments but {len(args)} were given")
        check_arraylike(name, *args)
        return compiled(*args)

    compiled = jitted(name, (), lambda *args: lifted(*args))
    return ufunc(func, nin, nout, name=name, identity=identity, call=call)


# ---- the functions that JAX makes ufuncs of


def _add(x, y, /):
    """x + y, elementwise; logical or for bool."""
    return pointwise("add", "add", x, y) if not _both_bool(x, y) else elementwise("or", x, y)


def _subtract(x, y, /):
    """x - y, elementwise."""
    return pointwise("subtract", "sub", x, y)


def _multiply(x, y, /):
    """x * y, elementwise; logical and for bool."""
    return pointwise("multiply", "mul", x, y) if not _both_bool(x, y) else elementwise("and", x, y)


def _both_bool(x, y):
    return getattr(x, "dtype", type(x)) == np.bool_ and getattr(y, "dtype", type(y)) == np.bool_


def _maximum(x, y, /):
    """The larger of x and y, elementwise; nan where either is nan."""
    return pointwise("maximum", "max", x, y)


def _minimum(x, y, /):
    """The smaller of x and y, elementwise; nan where either is nan."""
    return pointwise("minimum", "min", x, y)


def _negative(x, /):
    """-x, elementwise. x: any number but bool."""
    return pointwise("negative", "neg", x)


def _bitwise_and(x, y, /):
    """Bitwise and. x, y: integer or bool."""
    return pointwise("bitwise_and", "and", x, y)


def _bitwise_or(x, y, /):
    """Bitwise or. x, y: integer or bool."""
    return pointwise("bitwise_or", "or", x, y)


def _bitwise_xor(x, y, /):
    """Bitwise exclusive or. x, y: integer or bool."""
    return pointwise("bitwise_xor", "xor", x, y)


def _logical(name, primitive, x, y):
    check_arraylike(name, x, y)
    x, y = _core.promote_shapes(*_core.promote_dtypes(x, y))
    if not is_bool(x.dtype):
        zero = filled_like(0, x if x.ndim else y)
        x, y = bind("ne", x, zero), bind("ne", y, zero)
    return bind(primitive, x, y)


def _logical_and(x, y, /):
    """Whether x and y are both nonzero."""
    return _logical("logical_and", "and", x, y)


def _logical_or(x, y, /):
    """Whether x or y is nonzero."""
    return _logical("logical_or", "or", x, y)


def _logical_xor(x, y, /):
    """Whether exactly one of x and y is nonzero."""
    return _logical("logical_xor", "xor", x, y)


def _log_of_sum(name, x, y, exp, scale):
    check_arraylike(name, x, y)
    x, y = _core.promote_dtypes_inexact(x, y)
    x, y = _core.promote_shapes(x, y)

    def value(x, y):
        # delta is nan for equal infinities and for nan: there x + y is the answer.
        top, delta = bind("max", x, y), bind("sub", x, y)
        odd, total = bind("ne", delta, delta), bind("add", x, y)
        rest = bind("log1p", bind(exp, bind("neg", bind("abs", delta))))
        if scale is not None:
            rest = bind("mul", filled_like(scale, rest), rest)
        return (bind("select_n", odd, bind("add", top, rest), total),)

    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        out = call(x, y)

        # d/dx = exp(x - out), the share of x in the sum. Beside an infinite sum the difference says nothing: +inf is all of it, -inf nothing.
        def share(x):
            x, total = _same(x, out)
            v = bind("sub", x, total)
            return bind(exp, bind("select_n", bind("ne", v, v), v, _core.broadcast_to(bind("min", x, scalar_like(0, x)), v.shape)))

        wx, wy = share(x), share(y)
        return (out,), (bind("add", bind("mul", *_same(dx, wx)), bind("mul", *_same(dy, wy))),)

    def call(x, y):
        return _core.custom_jvp_call(name, value, rule, [x, y])[0]

    if x.dtype.kind == "c":
        return _complex_log_of_sum(x, y, exp, scale)
    return call(x, y)


def _same(x, y):
    return _core.promote_shapes(x, y)


def _complex_log_of_sum(x, y, exp, scale):
    from ._exponential import exp as e
    from ._exponential import exp2, log1p, log2
    from ._selecting import where

    power = e if exp == "exp" else exp2
    first = where(x.real > y.real, x, y)
    delta = where(x.real > y.real, y - x, x - y)
    total = first + (log1p(power(delta)) if scale is None else log2(power(delta) + 1))
    im = total.imag
    bound = filled_like(np.pi if scale is None else np.pi * scale, im)
    return bind("complex", total.real, (im + bound) % (2 * bound) - bound)


def _logaddexp(x, y, /):
    """log(exp(x) + exp(y)), without overflow."""
    return _log_of_sum("logaddexp", x, y, "exp", None)


def _logaddexp2(x, y, /):
    """log2(2 ** x + 2 ** y), without overflow."""
    return _log_of_sum("logaddexp2", x, y, "exp2", 1 / np.log(2))


def _reduction(name):
    def reduce(a, axis, dtype, keepdims, initial, where):
        from . import _reductions

        fun = getattr(_reductions, name)
        extra = {} if name in ("max", "min", "all", "any") else {"dtype": dtype}
        if name in ("all", "any"):
            return fun(a, axis=axis, keepdims=keepdims, where=where)
        return fun(a, axis=axis, keepdims=keepdims, initial=initial, where=where, **extra)

    return reduce


def _running(name):
    def accumulate(a, axis, dtype):
        from . import _cumulative

        return getattr(_cumulative, name)(a, axis=axis, dtype=dtype)

    return accumulate


def _scatter(method):
    # Sums of booleans are their maxima, products their minima; differences there are none.
    of_bool = {"add": "max", "multiply": "min"}.get(method, method)

    def at(a, indices, b):
        return getattr(a.at[indices], of_bool if _both_bool(a, b) else method)(b)

    return at


def _make(fun, nin, identity, **reductions):
    name = fun.__name__ = fun.__qualname__ = fun.__name__[1:]
    return ufunc(fun, nin, 1, name=name, identity=identity, call=fun, reductions=reductions)


add = _make(_add, 2, 0, reduce=_reduction("sum"), accumulate=_running("cumsum"), at=_scatter("add"))
subtract = _make(_subtract, 2, None, at=_scatter("subtract"))
multiply = _make(_multiply, 2, 1, reduce=_reduction("prod"), accumulate=_running("cumprod"), at=_scatter("multiply"))
maximum = _make(_maximum, 2, None, reduce=_reduction("max"), at=_scatter("max"))
minimum = _make(_minimum, 2, None, reduce=_reduction("min"), at=_scatter("min"))
negative = _make(_negative, 1, None)
bitwise_and = _make(_bitwise_and, 2, -1)
bitwise_or = _make(_bitwise_or, 2, 0)
bitwise_xor = _make(_bitwise_xor, 2, 0)
logical_and = _make(_logical_and, 2, True, reduce=_reduction("all"))
logical_or = _make(_logical_or, 2, False, reduce=_reduction("any"))
logical_xor = _make(_logical_xor, 2, False)
logaddexp = _make(_logaddexp, 2, -np.inf)
logaddexp2 = _make(_logaddexp2, 2, -np.inf)
