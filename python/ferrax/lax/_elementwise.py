"""Pointwise operations: one primitive each, applied element by element.

Invariant: no promotion and no broadcasting beyond what the primitives themselves do, which is: operands of rank 0, or of equal
rank with sizes of 1, spread over the others. Operands of different dtypes raise TypeError; `ferrax.numpy` has the forgiving spellings.

    >>> lax.add(jnp.ones(3), 1.0)
    Array([2., 2., 2.], dtype=float32)
"""

from __future__ import annotations

import operator

import numpy as np

from .. import _core
from .._core import bind
from .._dtypes import is_inexact
from ._parameters import RoundingMethod, accuracy_parameters


def abs(x):
    """|x|.

    Args:
        x: array of signed integers, floats or complex numbers.

    Returns:
        Array of x's shape and dtype, real for complex x.

    Raises:
        TypeError: for bool and unsigned integers.

    >>> lax.abs(jnp.array([-2.0]))
    Array([2.], dtype=float32)
    """
    return bind("abs", x)


def acos(x):
    """Arc cosine in radians.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.acos(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return bind("acos", x)


def acosh(x):
    """Inverse hyperbolic cosine.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.acosh(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return bind("acosh", x)


def asin(x):
    """Arc sine in radians.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.asin(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("asin", x)


def asinh(x):
    """Inverse hyperbolic sine.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.asinh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("asinh", x)


def atan(x):
    """Arc tangent in radians.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.atan(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("atan", x)


def atanh(x):
    """Inverse hyperbolic tangent.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.atanh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("atanh", x)


def bessel_i0e(x):
    """exp(-|x|) I0(x), the scaled modified Bessel function of order 0.

    Args:
        x: array of floats.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.bessel_i0e(jnp.array([0.0, 1.0]))
    Array([1.       , 0.4657596], dtype=float32)
    """
    return bind("bessel_i0e", x)


def bessel_i1e(x):
    """exp(-|x|) I1(x), the scaled modified Bessel function of order 1.

    Args:
        x: array of floats.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.bessel_i1e(jnp.array([0.0, 1.0]))
    Array([0.        , 0.20791042], dtype=float32)
    """
    return bind("bessel_i1e", x)


def ceil(x):
    """The least integer not below x, as a float.

    Args:
        x: array of floats.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.ceil(jnp.array([1.2]))
    Array([2.], dtype=float32)
    """
    return bind("ceil", x)


def clz(x):
    """Number of leading zero bits.

    Args:
        x: array of integers.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.clz(jnp.array([1]))
    Array([31], dtype=int32)
    """
    return bind("clz", x)


def cosh(x):
    """Hyperbolic cosine.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.cosh(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return bind("cosh", x)


def digamma(x):
    """d/dx log Gamma(x).

    Args:
        x: array of floats.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.digamma(jnp.array([1.0, 2.0]))
    Array([-0.5772156 ,  0.42278433], dtype=float32)
    """
    return bind("digamma", x)


def erf(x):
    """The error function, 2/sqrt(pi) * integral of exp(-t**2) from 0 to x.

    Args:
        x: array of floats.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.erf(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("erf", x)


def erf_inv(x):
    """The inverse of `erf`.

    Args:
        x: array of floats in [-1, 1]; nan outside.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.erf_inv(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("erf_inv", x)


def erfc(x):
    """1 - erf(x), without cancellation.

    Args:
        x: array of floats.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.erfc(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return bind("erfc", x)


def floor(x):
    """The greatest integer not above x, as a float.

    Args:
        x: array of floats.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.floor(jnp.array([1.8]))
    Array([1.], dtype=float32)
    """
    return bind("floor", x)


def imag(x):
    """Imaginary part.

    Args:
        x: array of complex numbers.

    Returns:
        Real array of x's shape.

    Raises:
        TypeError: for other dtypes.

    >>> lax.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return bind("imag", x)


def is_finite(x):
    """Whether each element is neither infinite nor nan.

    Args:
        x: array of floats.

    Returns:
        Array of bool of x's shape.

    Raises:
        TypeError: for other dtypes.

    >>> lax.is_finite(jnp.array([1.0, jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    return bind("is_finite", x)


def lgamma(x):
    """log |Gamma(x)|.

    Args:
        x: array of floats.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.lgamma(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return bind("lgamma", x)


def neg(x):
    """-x.

    Args:
        x: array of numbers, not bool.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for bool.

    >>> lax.neg(jnp.array([1.0, -2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    return bind("neg", x)


def population_count(x):
    """Number of set bits.

    Args:
        x: array of integers.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.population_count(jnp.array([7]))
    Array([3], dtype=int32)
    """
    return bind("population_count", x)


def real(x):
    """Real part.

    Args:
        x: array of complex numbers.

    Returns:
        Real array of x's shape.

    Raises:
        TypeError: for other dtypes.

    >>> lax.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    return bind("real", x)


def sign(x):
    """-1, 0 or 1 as x is negative, zero or positive; x / |x| for complex x; nan stays nan.

    Args:
        x: array of numbers, not bool.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for bool.

    >>> lax.sign(jnp.array([-3.0, 0.0]))
    Array([-1.,  0.], dtype=float32)
    """
    return bind("sign", x)


def sinh(x):
    """Hyperbolic sine.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.sinh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("sinh", x)


def square(x):
    """x * x.

    Args:
        x: array of numbers, not bool.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for bool.

    >>> lax.square(jnp.array([3.0]))
    Array([9.], dtype=float32)
    """
    return bind("square", x)


def cbrt(x, *, accuracy=None):
    """Cube root.

    Args:
        x: array of floats.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.cbrt(jnp.array([8.0]))
    Array([2.], dtype=float32)
    """
    return bind("cbrt", x, **accuracy_parameters(accuracy))


def cos(x, *, accuracy=None):
    """Cosine of x radians.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.cos(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return bind("cos", x, **accuracy_parameters(accuracy))


def exp(x, *, accuracy=None):
    """e ** x.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.exp(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return bind("exp", x, **accuracy_parameters(accuracy))


def exp2(x, *, accuracy=None):
    """2 ** x.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.exp2(jnp.array([3.0]))
    Array([8.], dtype=float32)
    """
    return bind("exp2", x, **accuracy_parameters(accuracy))


def expm1(x, *, accuracy=None):
    """e ** x - 1, accurate near zero.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.expm1(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("expm1", x, **accuracy_parameters(accuracy))


def log(x, *, accuracy=None):
    """Natural logarithm.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.log(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return bind("log", x, **accuracy_parameters(accuracy))


def log1p(x, *, accuracy=None):
    """log(1 + x), accurate near zero.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.log1p(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("log1p", x, **accuracy_parameters(accuracy))


def logistic(x, *, accuracy=None):
    """1 / (1 + exp(-x)).

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.logistic(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return bind("logistic", x, **accuracy_parameters(accuracy))


def rsqrt(x, *, accuracy=None):
    """1 / sqrt(x).

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.rsqrt(jnp.array([4.0]))
    Array([0.5], dtype=float32)
    """
    return bind("rsqrt", x, **accuracy_parameters(accuracy))


def sin(x, *, accuracy=None):
    """Sine of x radians.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.sin(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("sin", x, **accuracy_parameters(accuracy))


def sqrt(x, *, accuracy=None):
    """Square root.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.sqrt(jnp.array([9.0]))
    Array([3.], dtype=float32)
    """
    return bind("sqrt", x, **accuracy_parameters(accuracy))


def tan(x, *, accuracy=None):
    """Tangent of x radians.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.tan(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("tan", x, **accuracy_parameters(accuracy))


def tanh(x, *, accuracy=None):
    """Hyperbolic tangent.

    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.tanh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("tanh", x, **accuracy_parameters(accuracy))


def add(x, y):
    """x + y.

    Args:
        x, y: arrays of one dtype, not bool, and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for bool.

    >>> lax.add(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([4, 6], dtype=int32)
    """
    return bind("add", x, y)


def atan2(x, y):
    """Angle of the point (y, x), that is arctan(x / y) in the right quadrant.

    Args:
        x, y: arrays of one dtype, float or complex, and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for bool.

    >>> lax.atan2(jnp.array([0.0]), jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return bind("atan2", x, y)


def bitwise_and(x, y):
    """Bitwise and.

    Args:
        x, y: arrays of one shape and dtype, integer or bool; or scalars.

    Returns:
        Array of their shape and dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.bitwise_and(jnp.array([6]), jnp.array([3]))
    Array([2], dtype=int32)
    """
    return bind("and", x, y)


def bitwise_or(x, y):
    """Bitwise or.

    Args:
        x, y: arrays of one shape and dtype, integer or bool; or scalars.

    Returns:
        Array of their shape and dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.bitwise_or(jnp.array([6]), jnp.array([3]))
    Array([7], dtype=int32)
    """
    return bind("or", x, y)


def bitwise_xor(x, y):
    """Bitwise exclusive or.

    Args:
        x, y: arrays of one shape and dtype, integer or bool; or scalars.

    Returns:
        Array of their shape and dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.bitwise_xor(jnp.array([6]), jnp.array([3]))
    Array([5], dtype=int32)
    """
    return bind("xor", x, y)


def complex(x, y):
    """x + i y.

    Args:
        x, y: arrays of one dtype, float32 or float64, and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape, complex64 or complex128.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.complex(jnp.array([1.0]), jnp.array([2.0]))
    Array([1.+2.j], dtype=complex64)
    """
    return bind("complex", x, y)


def div(x, y):
    """x / y; integers divide towards zero.

    Args:
        x, y: arrays of one dtype, not bool, and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for bool.

    >>> lax.div(jnp.array([7, -7]), jnp.array([2, 2]))
    Array([ 3, -3], dtype=int32)
    """
    return bind("div", x, y)


def eq(x, y):
    """x == y, elementwise, as bool.

    Args:
        x, y: arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of bool of the broadcast shape.

    Raises:
        TypeError: if dtypes or shapes differ.

    >>> lax.eq(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([ True, False], dtype=bool)
    """
    return bind("eq", x, y)


def ge(x, y):
    """x >= y, elementwise, as bool.

    Args:
        x, y: arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of bool of the broadcast shape.

    Raises:
        TypeError: if dtypes or shapes differ.
        TypeError: for complex operands.

    >>> lax.ge(jnp.array([1, 2]), jnp.array([2, 2]))
    Array([False,  True], dtype=bool)
    """
    return bind("ge", x, y)


def gt(x, y):
    """x > y, elementwise, as bool.

    Args:
        x, y: arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of bool of the broadcast shape.

    Raises:
        TypeError: if dtypes or shapes differ.
        TypeError: for complex operands.

    >>> lax.gt(jnp.array([1, 3]), jnp.array([2, 2]))
    Array([False,  True], dtype=bool)
    """
    return bind("gt", x, y)


def igamma(a, x):
    """Regularised lower incomplete gamma function P(a, x).

    Args:
        a, x: float arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.igamma(jnp.array([2.0, 2.0]), jnp.array([0.0, 2.0]))
    Array([0.       , 0.5939942], dtype=float32)
    """
    return bind("igamma", a, x)


def igamma_grad_a(a, x):
    """d/da P(a, x).

    Args:
        a, x: float arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.igamma_grad_a(jnp.array([2.0]), jnp.array([1.5]))
    Array([-0.31348866], dtype=float32)
    """
    return bind("igamma_grad_a", a, x)


def igammac(a, x):
    """Regularised upper incomplete gamma function Q(a, x).

    Args:
        a, x: float arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.igammac(jnp.array([2.0, 2.0]), jnp.array([0.0, 2.0]))
    Array([1.       , 0.4060058], dtype=float32)
    """
    return bind("igammac", a, x)


def le(x, y):
    """x <= y, elementwise, as bool.

    Args:
        x, y: arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of bool of the broadcast shape.

    Raises:
        TypeError: if dtypes or shapes differ.
        TypeError: for complex operands.

    >>> lax.le(jnp.array([1, 2]), jnp.array([2, 2]))
    Array([ True,  True], dtype=bool)
    """
    return bind("le", x, y)


def lt(x, y):
    """x < y, elementwise, as bool.

    Args:
        x, y: arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of bool of the broadcast shape.

    Raises:
        TypeError: if dtypes or shapes differ.
        TypeError: for complex operands.

    >>> lax.lt(jnp.array([1, 2]), jnp.array([2, 2]))
    Array([ True, False], dtype=bool)
    """
    return bind("lt", x, y)


def max(x, y):
    """The larger of x and y; nan if either is nan; complex numbers compare by real, then imaginary part.

    Args:
        x, y: arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ.

    >>> lax.max(jnp.array([1, 5]), jnp.array([3, 3]))
    Array([3, 5], dtype=int32)
    """
    return bind("max", x, y)


def min(x, y):
    """The smaller of x and y; nan if either is nan; complex numbers compare by real, then imaginary part.

    Args:
        x, y: arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ.

    >>> lax.min(jnp.array([1, 5]), jnp.array([3, 3]))
    Array([1, 3], dtype=int32)
    """
    return bind("min", x, y)


def mulhi(x, y, /):
    """The upper half of the double-width product.

    Args:
        x, y: arrays of integers of one shape and dtype; or scalars.

    Returns:
        Array of their shape and dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.mulhi(jnp.array([2**30]), jnp.array([8]))
    Array([2], dtype=int32)
    """
    return bind("mulhi", x, y)


def ne(x, y):
    """x != y, elementwise, as bool.

    Args:
        x, y: arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of bool of the broadcast shape.

    Raises:
        TypeError: if dtypes or shapes differ.

    >>> lax.ne(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([False,  True], dtype=bool)
    """
    return bind("ne", x, y)


def nextafter(x1, x2):
    """The float next to x1 in the direction of x2.

    Args:
        x1, x2: float arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.nextafter(jnp.array([1.0]), jnp.array([1.0]))
    Array([1.], dtype=float32)
    """
    return bind("nextafter", x1, x2)


def polygamma(m, x):
    """The m-th derivative of digamma at x.

    Args:
        m, x: float arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.polygamma(jnp.array([1.0]), jnp.array([1.0]))
    Array([1.644934], dtype=float32)
    """
    return bind("polygamma", m, x)


def pow(x, y):
    """x ** y.

    Args:
        x: array, float or complex.
        y: array of x's dtype or of integers; of x's rank, where sizes of 1 broadcast, or a scalar.

    Returns:
        Array of the broadcast shape and of x's dtype.

    Raises:
        TypeError: for other dtypes and shapes.

    >>> lax.pow(jnp.array([2.0]), jnp.array([3.0]))
    Array([8.], dtype=float32)
    """
    return bind("pow", x, y)


def rem(x, y):
    """The remainder of x / y with the sign of x.

    Args:
        x, y: arrays of one dtype, integer or float, and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for bool.
        TypeError: for complex operands.

    >>> lax.rem(jnp.array([7, -7]), jnp.array([3, 3]))
    Array([ 1, -1], dtype=int32)
    """
    return bind("rem", x, y)


def shift_left(x, y):
    """x << y.

    Args:
        x, y: arrays of integers of one shape and dtype; or scalars.

    Returns:
        Array of their shape and dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.shift_left(jnp.array([1, 2]), jnp.array([3, 3]))
    Array([ 8, 16], dtype=int32)
    """
    return bind("shift_left", x, y)


def shift_right_arithmetic(x, y):
    """x >> y that repeats the sign bit.

    Args:
        x, y: arrays of integers of one shape and dtype; or scalars.

    Returns:
        Array of their shape and dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.shift_right_arithmetic(jnp.array([-16]), jnp.array([2]))
    Array([-4], dtype=int32)
    """
    return bind("shift_right_arithmetic", x, y)


def shift_right_logical(x, y):
    """x >> y that shifts in zeros.

    Args:
        x, y: arrays of integers of one shape and dtype; or scalars.

    Returns:
        Array of their shape and dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.shift_right_logical(jnp.array([16]), jnp.array([2]))
    Array([4], dtype=int32)
    """
    return bind("shift_right_logical", x, y)


def sub(x, y):
    """x - y.

    Args:
        x, y: arrays of one dtype, not bool, and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for bool.

    >>> lax.sub(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([-2, -2], dtype=int32)
    """
    return bind("sub", x, y)


def zeta(x, q):
    """Hurwitz zeta function, sum over k >= 0 of (q + k) ** -x.

    Args:
        x, q: float arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.zeta(jnp.array([2.0]), jnp.array([1.0]))
    Array([1.644934], dtype=float32)
    """
    return bind("zeta", x, q)


def mul(x, y, *, out_dtype=None):
    """x * y.

    Args:
        x, y: arrays of one dtype, not bool, and of one rank, where sizes of 1 broadcast; or scalars.
        out_dtype: dtype of the result; None: the operands'.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for bool.

    >>> lax.mul(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([3, 8], dtype=int32)
    """
    out = bind("mul", x, y)
    return out if out_dtype is None else bind("convert_element_type", out, new_dtype=np.dtype(out_dtype), weak_type=False)


def betainc(a, b, x):
    """Regularised incomplete beta function I_x(a, b). Differentiable in x alone: ValueError for a and b.

    Args:
        a, b, x: float arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.betainc(jnp.array([2.0]), jnp.array([3.0]), jnp.array([0.5]))
    Array([0.6875], dtype=float32)
    """
    return bind("regularized_incomplete_beta", a, b, x)


def bitwise_not(x):
    """Bitwise complement; logical not for bool.

    Args:
        x: array, integer or bool.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.bitwise_not(jnp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return bind("not", x)


def clamp(min, x, max):
    """x limited to [min, max]; `min` and `max` are scalars or have x's shape, and x's dtype.

    Args:
        min, max: arrays of x's shape and dtype, or scalars of its dtype.
        x: array of numbers.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: if dtypes or shapes differ.

    >>> lax.clamp(0, jnp.array([-1, 5, 20]), 10)
    Array([ 0,  5, 10], dtype=int32)
    """
    return bind("clamp", min, x, max)


def conj(x):
    """Complex conjugate.

    Args:
        x: array of complex numbers or of float32 or float64, which are converted.

    Returns:
        Complex array of x's shape.

    Raises:
        TypeError: for other dtypes.

    >>> lax.conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    return bind("conj", x, input_dtype=_core.asarray(x).dtype)


def integer_pow(x, y):
    """x ** y for a Python integer y.

    Args:
        x: array of numbers.
        y: int.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: where an integer x meets a negative y.

    >>> lax.integer_pow(jnp.array([2.0]), 3)
    Array([8.], dtype=float32)
    """
    aval = _core.get_aval(x)
    if y < 0 and not is_inexact(aval.dtype):
        raise TypeError(f"Integers cannot be raised to negative powers, got integer_pow({aval.dtype.name}[{','.join([str(n) for n in aval.shape])}], {y})")
    return bind("integer_pow", x, y=y)


def random_gamma_grad(*args):
    """Derivative of a sample x of Gamma(a) with respect to a.

    Args:
        *args: a and x, float arrays of one dtype and shape.

    Returns:
        Array of their shape and dtype.

    >>> lax.random_gamma_grad(jnp.array([2.0]), jnp.array([1.5]))
    Array([0.9366392], dtype=float32)
    """
    return bind("random_gamma_grad", *args)


def reciprocal(x):
    """1 / x.

    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.reciprocal(jnp.array([2.0]))
    Array([0.5], dtype=float32)
    """
    return integer_pow(x, -1)


def reduce_precision(operand, exponent_bits, mantissa_bits):
    """Rounds a float operand to a format with that many exponent and mantissa bits; the dtype stays.

    Args:
        operand: array of floats.
        exponent_bits, mantissa_bits: int: the bits of the narrower format.

    Returns:
        Array of operand's shape and dtype.

    Raises:
        ValueError: without bits of an exponent, or for negative numbers of them.

    >>> lax.reduce_precision(jnp.array([1.2345]), 8, 4)
    Array([1.25], dtype=float32)
    """
    exponent_bits, mantissa_bits = operator.index(exponent_bits), operator.index(mantissa_bits)
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive; got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}")
    return bind("reduce_precision", operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):
    """The nearest integer, as a float. Ties go away from zero, or to even with `RoundingMethod.TO_NEAREST_EVEN`.

    Args:
        x: array of floats.
        rounding_method: `RoundingMethod`.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.round(jnp.array([0.5, 1.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([0., 2.], dtype=float32)
    """
    return bind("round", x, rounding_method=RoundingMethod(rounding_method))


def select(pred, on_true, on_false):
    """`on_true` where `pred`, else `on_false`.

    Args:
        pred: array of bool, a scalar or of the cases' shape.
        on_true, on_false: arrays of one shape and dtype.

    Returns:
        Array of the cases' shape and dtype.

    Raises:
        TypeError: if shapes or dtypes differ.

    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    return bind("select_n", pred, on_false, on_true)


def select_n(which, *cases):
    """`cases[which]` element by element.

    Args:
        which: array of bool (up to two cases) or int32, a scalar or of the cases' shape.
        *cases: arrays of one shape and dtype.

    Returns:
        Array of the cases' shape and dtype.

    Raises:
        ValueError: for no case.
        TypeError: if shapes or dtypes differ.

    >>> lax.select_n(jnp.array([1, 0]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([3, 2], dtype=int32)
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return bind("select_n", which, *cases)
