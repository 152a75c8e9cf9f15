"""Exponentials, logarithms, powers and roots, and the Bessel function `i0`.

Invariant: all but `power` and `square` make integers float; an integer exponent known to Python is
exact, by repeated multiplication.

    >>> jnp.power(jnp.arange(4), 2)
    Array([0, 1, 4, 9], dtype=int32)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import dtype_of, is_bool, is_complex, is_inexact, is_integer
from ..._core import bind, elementwise, promote_shapes
from .._indexing.selecting import where
from .._support import sections
from .._support.arguments import Array, check_arraylike, constant, convert, converted, filled_like, jitted, pointwise, promote_inexact, scalar_like, shape_of
from .bessel import modified_bessel_0

if TYPE_CHECKING:
    from ...typing import ArrayLike


@sections.as_float
def exp(x: ArrayLike, /) -> Array:
    """e ** x.

    >>> jnp.exp(jnp.array([0.0, 1.0]))
    Array([1.       , 2.7182817], dtype=float32)
    """
    return pointwise("exp", "exp", x)


@sections.as_float
def exp2(x: ArrayLike, /) -> Array:
    """2 ** x.

    >>> jnp.exp2(jnp.array([0.0, 3.0]))
    Array([1., 8.], dtype=float32)
    """
    return pointwise("exp2", "exp2", x)


@sections.as_float
def expm1(x: ArrayLike, /) -> Array:
    """e ** x - 1, accurate near zero.

    >>> jnp.expm1(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return pointwise("expm1", "expm1", x)


@sections.as_float
def log(x: ArrayLike, /) -> Array:
    """Natural logarithm.

    >>> jnp.log(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return pointwise("log", "log", x)


@sections.as_float
def log1p(x: ArrayLike, /) -> Array:
    """log(1 + x), accurate near zero.

    >>> jnp.log1p(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return pointwise("log1p", "log1p", x)


def _scaled_log(name, x, scale):
    (x,) = promote_inexact(name, x)
    out = bind("log", x)
    if is_complex(out.dtype):
        return bind("complex", *scale(bind("real", out), bind("imag", out)))
    return scale(out)[0]


@sections.as_float
def log10(x: ArrayLike, /) -> Array:
    """Logarithm to base 10.

    >>> jnp.log10(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return _scaled_log("log10", x, lambda *parts: [bind("mul", y, constant(1 / np.log(10), y.dtype)) for y in parts])


@sections.as_float
def log2(x: ArrayLike, /) -> Array:
    """Logarithm to base 2.

    >>> jnp.log2(jnp.array([8.0]))
    Array([3.], dtype=float32)
    """

    def scale(*parts):
        base = bind("log", constant(2, parts[0].dtype))
        return [bind("div", y, base) for y in parts]

    return _scaled_log("log2", x, scale)


@sections.as_float
def sqrt(x: ArrayLike, /) -> Array:
    """Square root; nan for negative reals.

    >>> jnp.sqrt(jnp.array([4.0, 9.0]))
    Array([2., 3.], dtype=float32)
    """
    return pointwise("sqrt", "sqrt", x)


def cbrt(x: ArrayLike, /) -> Array:
    """Cube root.

    Args:
        x: array, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: for complex x.

    >>> jnp.cbrt(jnp.array([27.0]))
    Array([3.], dtype=float32)
    """
    return pointwise("cbrt", "cbrt", x)


@sections.unchanged
def square(x: ArrayLike, /) -> Array:
    """x * x.

    >>> jnp.square(jnp.array([2, 3]))
    Array([4, 9], dtype=int32)
    """
    return pointwise("square", "square", x)


@sections.as_float
def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x; integers become float.

    >>> jnp.reciprocal(jnp.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    (x,) = promote_inexact("reciprocal", x)
    return bind("integer_pow", x, y=-1)


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 ** x2.

    A known integer exponent, a number or an array of rank 0, is applied by repeated
    multiplication, which is exact for integers.

    Args:
        x1, x2: arrays of numbers that broadcast.

    Returns:
        Array of the broadcast shape and the promoted dtype, x1's dtype for a known integer x2.

    Raises:
        TypeError: for integers to a known negative power.

    >>> jnp.power(jnp.array([2, 3]), 3)
    Array([ 8, 27], dtype=int32)
    """
    check_arraylike("power", x1, x2)
    x1, x2 = converted(x1), converted(x2)
    d1, d2 = dtype_of(x1), dtype_of(x2)
    if shape_of(x2) == () and not isinstance(x2, _core.Tracer) and (is_integer(d2) or isinstance(x2, bool)):
        if isinstance(x2, Array) and is_inexact(d1) and not is_complex(d1):
            # The exponent in an array is an operand: one compiled program serves all of them.
            x1 = _core.asarray(x1)
            return convert(bind("pow", *promote_shapes(x1, x2)), d1, weak=x1.weak_type)
        y = operator.index(x2)
        if is_bool(d1):
            x1, d1 = convert(_core.asarray(x1), np.int32), np.dtype(np.int32)
        if not is_inexact(d1) and y < 0:
            raise TypeError(f"Integers cannot be raised to negative powers, got integer_pow({d1.name}[{','.join(map(str, shape_of(x1)))}], {y})")
        return _known_power(x1 if isinstance(x1, Array) else _core.asarray(x1), y)
    if is_inexact(d1) and is_integer(d2) and _core.result_type(x1, x2) == d1:
        # pow takes an integer exponent as it is.
        a, b = promote_shapes(_core.asarray(x1), _core.asarray(x2))
        return bind("pow", a, b)
    x1, x2 = _core.promote_dtypes(x1, x2)
    if is_inexact(x1.dtype):
        return elementwise("pow", x1, x2)
    out = _integer_power(*((convert(x1, np.int32), convert(x2, np.int32)) if is_bool(x1.dtype) else (x1, x2)))
    return convert(out, out.dtype, weak=False)


pow = power


def _known_power(x, y):
    """x ** y for an integer of any size: the primitive's parameter has 32 bits."""
    if -(2**31) <= y < 2**31:
        return bind("integer_pow", x, y=y)
    sign = -1 if y < 0 else 1
    high, low = divmod(abs(y), 2**30)
    return bind("mul", _known_power(bind("integer_pow", x, y=2**30), sign * high), bind("integer_pow", x, y=sign * low))


def _integer_power(x, y):
    """x ** y by squaring.

    Six bits of y are read, as in JAX: any power that fits has an exponent below 64, or a base of
    -1, 0 or 1.
    """
    x, y = promote_shapes(x, y)
    zero, one = scalar_like(0, x), scalar_like(1, x)
    empty = bind("and", bind("eq", x, zero), bind("ne", y, zero))
    out = where(empty, *[filled_like(v, x if x.ndim else y) for v in (0, 1)])
    for i in range(6):
        odd = bind("and", y, one)
        out = where(odd, bind("mul", out, x), out)
        if i < 5:
            x = bind("mul", x, x)
            y = bind("shift_right_logical", y, one)
    return out


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ** y with integers made float first.

    Args:
        x, y: arrays of numbers that broadcast.

    Returns:
        Array of the broadcast shape and the promoted dtype made float.

    >>> jnp.float_power(jnp.array([2, 3]), 2)
    Array([4., 9.], dtype=float32)
    """
    x, y = promote_inexact("float_power", x, y)
    return elementwise("pow", x, y)


@jitted("i0")
def _i0(x):
    return modified_bessel_0(*promote_inexact("i0", x))


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 0.

    Args:
        x: array, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        ValueError: for complex x.

    >>> jnp.i0(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    check_arraylike("i0", x)
    if is_complex(dtype_of(x)):
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {dtype_of(x).name}")
    return _i0(x)
