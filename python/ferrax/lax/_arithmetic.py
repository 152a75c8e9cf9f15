"""Sums, products, quotients, remainders, extremes and rounding, element by element: one primitive
each.

Invariant: no promotion and no broadcasting beyond what the primitives themselves do, which is:
operands of rank 0, or of equal rank with sizes of 1, spread over the others. Operands of different
dtypes raise TypeError; `ferrax.numpy` has functions that promote their operands.

    >>> lax.add(jnp.ones(3), 1.0)
    Array([2., 2., 2.], dtype=float32)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._core import bind
from . import _sections as sections
from ._parameters import RoundingMethod
from ._powers import integer_pow

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike, DTypeLike


def abs(x: ArrayLike) -> Array:
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


@sections.of_floats
def ceil(x: ArrayLike) -> Array:
    """The least integer not below x, as a float.

    >>> lax.ceil(jnp.array([1.2]))
    Array([2.], dtype=float32)
    """
    return bind("ceil", x)


@sections.of_floats
def floor(x: ArrayLike) -> Array:
    """The greatest integer not above x, as a float.

    >>> lax.floor(jnp.array([1.8]))
    Array([1.], dtype=float32)
    """
    return bind("floor", x)


def imag(x: ArrayLike) -> Array:
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


def is_finite(x: ArrayLike) -> Array:
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


@sections.signed
def neg(x: ArrayLike) -> Array:
    """-x.

    >>> lax.neg(jnp.array([1.0, -2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    return bind("neg", x)


def real(x: ArrayLike) -> Array:
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


@sections.signed
def sign(x: ArrayLike) -> Array:
    """-1, 0 or 1 as x is negative, zero or positive; x / |x| for complex x; nan stays nan.

    >>> lax.sign(jnp.array([-3.0, 0.0]))
    Array([-1.,  0.], dtype=float32)
    """
    return bind("sign", x)


@sections.signed
def square(x: ArrayLike) -> Array:
    """x * x.

    >>> lax.square(jnp.array([3.0]))
    Array([9.], dtype=float32)
    """
    return bind("square", x)


@sections.arithmetic
def add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y.

    >>> lax.add(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([4, 6], dtype=int32)
    """
    return bind("add", x, y)


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """x + i y.

    Args:
        x, y: arrays of one dtype, float32 or float64, and of one rank, where sizes of 1 broadcast;
          or scalars.

    Returns:
        Array of the broadcast shape, complex64 or complex128.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.complex(jnp.array([1.0]), jnp.array([2.0]))
    Array([1.+2.j], dtype=complex64)
    """
    return bind("complex", x, y)


@sections.arithmetic
def div(x: ArrayLike, y: ArrayLike) -> Array:
    """x / y; integers divide towards zero.

    >>> lax.div(jnp.array([7, -7]), jnp.array([2, 2]))
    Array([ 3, -3], dtype=int32)
    """
    return bind("div", x, y)


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of x and y; nan if either is nan; complex numbers compare by real, then imaginary
    part.

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


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of x and y; nan if either is nan; complex numbers compare by real, then imaginary
    part.

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


@sections.integers
def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the double-width product.

    >>> lax.mulhi(jnp.array([2**30]), jnp.array([8]))
    Array([2], dtype=int32)
    """
    return bind("mulhi", x, y)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
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


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of x / y with the sign of x.

    Args:
        x, y: arrays of one dtype, integer or float, and of one rank, where sizes of 1 broadcast; or
          scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for bool.
        TypeError: for complex operands.

    >>> lax.rem(jnp.array([7, -7]), jnp.array([3, 3]))
    Array([ 1, -1], dtype=int32)
    """
    return bind("rem", x, y)


@sections.arithmetic
def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """x - y.

    >>> lax.sub(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([-2, -2], dtype=int32)
    """
    return bind("sub", x, y)


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """x * y.

    Args:
        x, y: arrays of one dtype, not bool, and of one rank, where sizes of 1 broadcast; or
          scalars.
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


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """`x` limited to [min, max]; `min` and `max` are scalars or have x's shape, and x's dtype.

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


def conj(x: ArrayLike) -> Array:
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


@sections.analytic
def reciprocal(x: ArrayLike) -> Array:
    """1 / x.

    >>> lax.reciprocal(jnp.array([2.0]))
    Array([0.5], dtype=float32)
    """
    return integer_pow(x, -1)


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Rounds a float operand to a format with that many exponent and mantissa bits; the dtype
    stays.

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


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer, as a float.

    Ties go away from zero, or to even with `RoundingMethod.TO_NEAREST_EVEN`.

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
