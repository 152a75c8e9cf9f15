"""The functions of two elements that other modules use, and that `_functional.ufuncs` turns into
ufuncs: sums, products, order, bits.

Invariant: calling one costs what its primitive costs.

    >>> add(1, 2)
    Array(3, dtype=int32, weak_type=True)
"""

from __future__ import annotations

import numpy as np

from ... import _core
from ..._core import bind, elementwise
from .._support import sections
from .._support.arguments import broadcast_together, check_arraylike, filled_like, pointwise, scalar_like


@sections.promoted
def add(x, y, /):
    """x + y, elementwise; logical or for bool.

    >>> jnp.add(jnp.array([1, 2]), 3)
    Array([4, 5], dtype=int32)
    """
    return pointwise("add", "add", x, y) if not both_bool(x, y) else elementwise("or", x, y)


def subtract(x, y, /):
    """x - y, elementwise.

    Args:
        x, y: arrays of numbers that broadcast.

    Returns:
        Array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for bool.

    >>> jnp.subtract(jnp.array([1, 2]), 3)
    Array([-2, -1], dtype=int32)
    """
    return pointwise("subtract", "sub", x, y)


@sections.promoted
def multiply(x, y, /):
    """x * y, elementwise; logical and for bool.

    >>> jnp.multiply(jnp.array([1, 2]), 3)
    Array([3, 6], dtype=int32)
    """
    return pointwise("multiply", "mul", x, y) if not both_bool(x, y) else elementwise("and", x, y)


def both_bool(x, y):
    """Whether both operands are of dtype bool."""
    return getattr(x, "dtype", type(x)) == np.bool_ and getattr(y, "dtype", type(y)) == np.bool_


@sections.promoted
def maximum(x, y, /):
    """The larger of x and y, elementwise; nan where either is nan.

    >>> jnp.maximum(jnp.array([1, 5]), 3)
    Array([3, 5], dtype=int32)
    """
    return pointwise("maximum", "max", x, y)


@sections.promoted
def minimum(x, y, /):
    """The smaller of x and y, elementwise; nan where either is nan.

    >>> jnp.minimum(jnp.array([1, 5]), 3)
    Array([1, 3], dtype=int32)
    """
    return pointwise("minimum", "min", x, y)


def negative(x, /):
    """-x, elementwise.

    Args:
        x: array of numbers.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for bool.

    >>> jnp.negative(jnp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    """
    return pointwise("negative", "neg", x)


@sections.bits
def bitwise_and(x, y, /):
    """Bitwise and.

    >>> jnp.bitwise_and(jnp.array([6, 3]), 2)
    Array([2, 2], dtype=int32)
    """
    return pointwise("bitwise_and", "and", x, y)


@sections.bits
def bitwise_or(x, y, /):
    """Bitwise or.

    >>> jnp.bitwise_or(jnp.array([4, 3]), 2)
    Array([6, 3], dtype=int32)
    """
    return pointwise("bitwise_or", "or", x, y)


@sections.bits
def bitwise_xor(x, y, /):
    """Bitwise exclusive or.

    >>> jnp.bitwise_xor(jnp.array([6, 3]), 2)
    Array([4, 1], dtype=int32)
    """
    return pointwise("bitwise_xor", "xor", x, y)


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

        # d/dx = exp(x) / (exp(x) + exp(y)), the share of x in the sum: of the difference, since the sum is rounded. Between equal infinities
        # it is nan: +inf is all of the sum, -inf nothing.
        def share(x, y):
            x, y = _same(x, y)
            v = bind("sub", x, y)
            w = bind("logistic", v if scale is None else bind("mul", filled_like(1 / scale, v), v))
            infinite = bind("and", bind("ne", v, v), bind("eq", out, out))
            whole = bind("select_n", bind("gt", x, scalar_like(0, x)), filled_like(0, x), filled_like(1, x))
            return bind("select_n", infinite, w, _core.broadcast_to(whole, w.shape))

        wx, wy = share(x, y), share(y, x)
        return (out,), (bind("add", bind("mul", *_same(dx, wx)), bind("mul", *_same(dy, wy))),)

    def call(x, y):
        return _core.custom_jvp_call(name, value, rule, [x, y])[0]

    if x.dtype.kind == "c":
        return _complex_log_of_sum(x, y, exp, scale)
    return call(x, y)


def _same(x, y):
    return _core.promote_shapes(x, y)


def _complex_log_of_sum(x, y, exp, scale):
    x, y = broadcast_together(x, y)
    larger = bind("gt", bind("real", x), bind("real", y))
    first = bind("select_n", larger, y, x)
    delta = bind("select_n", larger, bind("sub", x, y), bind("sub", y, x))
    power = bind(exp, delta)
    rest = bind("log1p", power) if scale is None else bind("mul", filled_like(scale, power), bind("log", bind("add", power, filled_like(1, power))))
    total = bind("add", first, rest)
    re, im = bind("real", total), bind("imag", total)
    # The imaginary part in [-bound, bound).
    bound = filled_like(np.pi if scale is None else np.pi * scale, im)
    period = bind("mul", filled_like(2, im), bound)
    turned = bind("rem", bind("add", im, bound), period)
    turned = bind("select_n", bind("lt", turned, filled_like(0, im)), turned, bind("add", turned, period))
    return bind("complex", re, bind("sub", turned, bound))


def logaddexp(x, y, /):
    """log(exp(x) + exp(y)), without overflow.

    Args:
        x, y: arrays of numbers that broadcast.

    Returns:
        Array of the broadcast shape and the promoted dtype, made float where that is bool or an
        integer.

    >>> jnp.logaddexp(jnp.array([-jnp.inf]), 0.0)
    Array([0.], dtype=float32)
    """
    return _log_of_sum("logaddexp", x, y, "exp", None)


def logaddexp2(x, y, /):
    """log2(2 ** x + 2 ** y), without overflow.

    Args:
        x, y: arrays of numbers that broadcast.

    Returns:
        Array of the broadcast shape and the promoted dtype, made float where that is bool or an
        integer.

    >>> jnp.logaddexp2(jnp.array([1.0]), 1.0)
    Array([2.], dtype=float32)
    """
    return _log_of_sum("logaddexp2", x, y, "exp2", 1 / np.log(2))
