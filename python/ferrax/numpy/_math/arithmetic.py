"""Arithmetic: magnitudes and signs, division and remainders, extrema that skip nan, divisors of
integers.

Invariant: nothing raises for a zero divisor: floats give inf or nan, integers give the value in the
docstring. Addition, subtraction and multiplication are `ufunc` objects, in `_functional.ufuncs`.

    >>> jnp.floor_divide(7, 2)
    Array(3, dtype=int32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import is_bool, is_complex, is_inexact, is_integer, is_unsigned
from ..._core import bind, elementwise, promote_shapes
from ...lax import RoundingMethod, while_loop
from .._indexing.selecting import where
from .._logic.elementwise import greater, less, logical_or
from .._support import sections
from .._support.arguments import (
    as_array,
    broadcast_constant,
    broadcast_together,
    check_arraylike,
    check_promotion,
    convert,
    exactly,
    filled_like,
    jitted,
    pointwise,
    promote,
    promote_dtypes,
    promote_inexact,
    scalar_like,
)
from .floating_point import isnan
from .operators import multiply

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


def absolute(x: ArrayLike, /) -> Array:
    """|x|; the modulus of complex x, as a real.

    Args:
        x: array of numbers.

    Returns:
        Array of x's shape and dtype, of the real part's dtype for complex x.

    >>> jnp.absolute(jnp.array([-1, 2]))
    Array([1, 2], dtype=int32)
    """
    x = as_array("absolute", x)
    return x if is_bool(x.dtype) or is_unsigned(x.dtype) else bind("abs", x)


abs = absolute


def fabs(x: ArrayLike, /) -> Array:
    """|x| as a float.

    Args:
        x: array, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: for complex x.

    >>> jnp.fabs(jnp.array([-1, 2]))
    Array([1., 2.], dtype=float32)
    """
    (x,) = promote_inexact("fabs", x)
    if is_complex(x.dtype):
        raise TypeError("ufunc 'fabs' does not support complex dtypes")
    return bind("abs", x)


@sections.unchanged
def positive(x: ArrayLike, /) -> Array:
    """`x` itself.

    >>> jnp.positive(jnp.array([-1.0, 2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    return as_array("positive", x)


def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1 by the sign of x; x / |x| for complex x.

    Args:
        x: array of numbers.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for bool.

    >>> jnp.sign(jnp.array([-3, 0, 5]))
    Array([-1,  0,  1], dtype=int32)
    """
    return pointwise("sign", "sign", x)


@jitted("heaviside")
def _heaviside(x, y):
    x, y = _core.promote_dtypes_inexact(x, y)
    if is_complex(x.dtype):
        raise TypeError("heaviside does not support complex-valued inputs")
    zero, one = filled_like(0, x), filled_like(1, x)
    negative_, positive_ = less(x, zero), greater(x, zero)
    return where(negative_, zero, where(positive_, one, where(isnan(x), x, y)))


def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 where x1 < 0, x2 where x1 == 0, 1 where x1 > 0.

    Args:
        x1, x2: arrays that broadcast, bool, integer or real.

    Returns:
        Array of the broadcast shape and the promoted dtype, made float where that is bool or an
        integer.

    Raises:
        TypeError: for complex dtypes.

    >>> jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    check_arraylike("heaviside", x1, x2)
    return _heaviside(x1, x2)


def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 / x2; integers become float.

    Args:
        x1, x2: arrays of numbers that broadcast.

    Returns:
        Array of the broadcast shape and the promoted dtype, made float where that is bool or an
        integer.

    >>> jnp.true_divide(jnp.array([1, 2]), 4)
    Array([0.25, 0.5 ], dtype=float32)
    """
    x1, x2 = promote_inexact("true_divide", x1, x2)
    return elementwise("div", x1, x2)


divide = true_divide


def _divisible(name, x, y):
    """The operands of one dtype and rank, booleans as int32."""
    x, y = promote_shapes(*promote_dtypes(name, x, y))
    return (convert(x, np.int32), convert(y, np.int32)) if is_bool(x.dtype) else (x, y)


@jitted("floor_divide")
def _floor_divide(x, y):
    x, y = _divisible("floor_divide", x, y)
    dtype = x.dtype
    if is_unsigned(dtype):
        return bind("div", x, y)
    if is_integer(dtype):
        quotient = bind("div", x, y)
        differ = bind("and", bind("ne", bind("sign", x), bind("sign", y)), bind("ne", bind("rem", x, y), scalar_like(0, x)))
        # div rounds towards zero; floor is one less where the signs differ and there is a remainder.
        return where(differ, bind("sub", quotient, scalar_like(1, x)), quotient)
    if is_complex(dtype):
        raise TypeError("floor_divide does not support complex-valued inputs")
    return _float_divmod(x, y)[0]


def _float_divmod(x, y):
    rest = bind("rem", x, y)
    quotient = bind("div", where(bind("eq", y, scalar_like(0, x)), x, bind("sub", x, rest)), y)
    adjust = bind("and", bind("ne", rest, scalar_like(0, x)), bind("ne", bind("sign", y), bind("sign", rest)))
    rest = bind("select_n", adjust, rest, bind("add", rest, y))
    quotient = bind("select_n", adjust, quotient, bind("sub", quotient, scalar_like(1, x)))
    return bind("round", quotient, rounding_method=RoundingMethod.AWAY_FROM_ZERO), rest


@sections.division
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The greatest integer not above x1 / x2, of the promoted dtype.

    Integers divided by zero give -1 or less, as in JAX.

    >>> jnp.floor_divide(jnp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    """
    check_arraylike("floor_divide", x1, x2)
    return exactly(_floor_divide, x1, x2)


def _nonzero(y):
    """`y` with zeros replaced by ones: a divisor."""
    zero = bind("eq", y, scalar_like(0, y))
    return where(zero, broadcast_constant(scalar_like(1, y), y.shape) if y.ndim else scalar_like(1, y), y)


@jitted("remainder")
def _remainder(x, y):
    x, y = _divisible("remainder", x, y)
    if is_integer(x.dtype):
        y = _nonzero(y)
    rest = bind("rem", x, y)
    zero = scalar_like(0, x)
    nonzero = bind("ne", rest, zero)
    differ = bind("and", bind("ne", bind("lt", rest, zero), bind("lt", y, zero)), nonzero)
    return bind("select_n", differ, rest, bind("add", rest, y))


@sections.division
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 - x2 * floor(x1 / x2), which has the sign of x2; 0 for integers where x2 is 0.

    >>> jnp.remainder(jnp.array([7, -7]), 3)
    Array([1, 2], dtype=int32)
    """
    check_arraylike("remainder", x1, x2)
    return exactly(_remainder, x1, x2)


mod = remainder


@jitted("fmod")
def _fmod(x, y):
    x, y = _divisible("fmod", x, y)
    if is_integer(x.dtype):
        y = _nonzero(y)
    return bind("rem", x, y)


@sections.division
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of x1 / x2 with the sign of x1.

    >>> jnp.fmod(jnp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)
    """
    return exactly(lambda x, y: _fmod(as_array("fmod", x), as_array("fmod", y)), x1, x2)


@jitted("divmod")
def _divmod(x, y):
    x, y = _core.promote_dtypes(x, y)
    if is_inexact(x.dtype):
        return _float_divmod(*promote_shapes(x, y))
    return _floor_divide(x, y), _remainder(x, y)


def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """(x1 // x2, x1 % x2).

    Args:
        x1, x2: arrays that broadcast, bool, integer or real.

    Returns:
        Two arrays of the broadcast shape and the promoted dtype (bool becomes int32): quotient and
        remainder.

    Raises:
        TypeError: for complex dtypes.

    >>> jnp.divmod(jnp.array([7, -7]), 3)
    (Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))
    """
    check_arraylike("divmod", x1, x2)
    return tuple(exactly(_divmod, x1, x2))


@jitted("fmax")
def _fmax(x, y):
    return where(logical_or(greater(x, y), isnan(y)), x, y)


def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2; where one is nan, the other.

    Args:
        x1, x2: arrays of numbers that broadcast.

    Returns:
        Array of the broadcast shape and the promoted dtype.

    >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 0.0)
    Array([1., 0.], dtype=float32)
    """
    check_arraylike("fmax", x1, x2)
    check_promotion(x1, x2, ranks=True)
    return exactly(_fmax, x1, x2)


@jitted("fmin")
def _fmin(x, y):
    return where(logical_or(less(x, y), isnan(y)), x, y)


def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2; where one is nan, the other.

    Args:
        x1, x2: arrays of numbers that broadcast.

    Returns:
        Array of the broadcast shape and the promoted dtype.

    >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 0.0)
    Array([0., 0.], dtype=float32)
    """
    check_arraylike("fmin", x1, x2)
    check_promotion(x1, x2, ranks=True)
    return exactly(_fmin, x1, x2)


def _integers(name, x, y):
    """The operands in one integer dtype, strong unless both are scalars.

    Raises ValueError if there is none.
    """
    x, y = promote(name, x, y)
    if not is_integer(x.dtype):
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers.")
    return (convert(x, x.dtype), convert(y, y.dtype)) if x.ndim or y.ndim else (x, y)


@jitted("gcd")
def _gcd(x, y):
    x, y = broadcast_together(x, y)
    if not is_unsigned(x.dtype):
        x, y = bind("abs", x), bind("abs", y)
    zero = scalar_like(0, x)

    def going(xy):
        return bind("reduce_or", bind("ne", xy[1], zero), axes=tuple(range(xy[1].ndim)))

    def step(xy):
        # One Euclidean step where there is one left. |b| falls, also where the least integer has no absolute value.
        a, b = xy
        return where(bind("ne", b, zero), b, a), where(bind("ne", b, zero), bind("rem", a, b), _core.asarray(zero))

    d = while_loop(going, step, (x, y))[0]
    return d if is_unsigned(d.dtype) else bind("abs", d)


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Greatest common divisor of |x1| and |x2|.

    Args:
        x1, x2: arrays of integers that broadcast.

    Returns:
        Array of the broadcast shape and the promoted dtype, not negative.

    Raises:
        ValueError: unless they promote to an integer dtype.

    >>> jnp.gcd(jnp.array([12, 18]), 8)
    Array([4, 2], dtype=int32)
    """
    return _gcd(*_integers("gcd", x1, x2))


@jitted("lcm")
def _lcm(x, y):
    if not is_unsigned(x.dtype):
        x, y = bind("abs", x), bind("abs", y)
    zero = scalar_like(0, x)
    d = gcd(x, y)
    nothing = bind("eq", d, zero)
    return where(nothing, zero, multiply(x, floor_divide(y, where(nothing, scalar_like(1, x), d))))


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Least common multiple of |x1| and |x2|.

    Args:
        x1, x2: arrays of integers that broadcast.

    Returns:
        Array of the broadcast shape and the promoted dtype, not negative.

    Raises:
        ValueError: unless they promote to an integer dtype.

    >>> jnp.lcm(jnp.array([4, 6]), 10)
    Array([20, 30], dtype=int32)
    """
    return _lcm(*_integers("lcm", x1, x2))
