"""Trigonometric and hyperbolic functions, degrees and radians.

Invariant: angles are in radians; integers become float; each is accurate for complex arguments
where it takes them.

    >>> jnp.sin(jnp.pi / 6)
    Array(0.5, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import dtype_of, is_complex, summed_in, to_real
from ..._base.shapes import common_shape
from ..._core import bind, promote_shapes
from .._indexing.selecting import where
from .._logic.elementwise import less
from .._support import sections
from .._support.arguments import broadcast_constant, check_arraylike, constant, convert, filled_like, jitted, pointwise, promote_inexact, scalar_like
from .operators import negative

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


@sections.of_radians
def sin(x: ArrayLike, /) -> Array:
    """Sine of x radians.

    >>> jnp.sin(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return pointwise("sin", "sin", x)


@sections.of_radians
def cos(x: ArrayLike, /) -> Array:
    """Cosine of x radians.

    >>> jnp.cos(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return pointwise("cos", "cos", x)


@sections.of_radians
def tan(x: ArrayLike, /) -> Array:
    """Tangent of x radians.

    >>> jnp.tan(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return pointwise("tan", "tan", x)


@sections.to_radians
def arcsin(x: ArrayLike, /) -> Array:
    """Arc sine in radians.

    >>> jnp.arcsin(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return pointwise("arcsin", "asin", x)


@sections.to_radians
def arccos(x: ArrayLike, /) -> Array:
    """Arc cosine in radians.

    >>> jnp.arccos(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return pointwise("arccos", "acos", x)


@sections.to_radians
def arctan(x: ArrayLike, /) -> Array:
    """Arc tangent in radians.

    >>> jnp.arctan(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return pointwise("arctan", "atan", x)


def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Angle of the point (x2, x1): arctan(x1 / x2) in the right quadrant.

    Args:
        x1, x2: arrays of numbers that broadcast.

    Returns:
        Angles in radians in [-pi, pi], an array of the broadcast shape and the promoted dtype made
        float.

    >>> jnp.arctan2(jnp.array([0.0]), 1.0)
    Array([0.], dtype=float32)
    """
    return pointwise("arctan2", "atan2", x1, x2)


@sections.as_float
def sinh(x: ArrayLike, /) -> Array:
    """Hyperbolic sine.

    >>> jnp.sinh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return pointwise("sinh", "sinh", x)


@sections.as_float
def cosh(x: ArrayLike, /) -> Array:
    """Hyperbolic cosine.

    >>> jnp.cosh(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return pointwise("cosh", "cosh", x)


@sections.as_float
def tanh(x: ArrayLike, /) -> Array:
    """Hyperbolic tangent.

    >>> jnp.tanh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return pointwise("tanh", "tanh", x)


@sections.as_float
def arcsinh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic sine.

    >>> jnp.arcsinh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return pointwise("arcsinh", "asinh", x)


@jitted("arccosh")
def _arccosh(x):
    (x,) = promote_inexact("arccosh", x)
    out = bind("acosh", x)
    # The branch of the square root with non-negative real part.
    return where(less(bind("real", out), constant(0, to_real(out.dtype))), negative(out), out) if is_complex(out.dtype) else out


@sections.as_float
def arccosh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic cosine, with non-negative real part.

    >>> jnp.arccosh(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    check_arraylike("arccosh", x)
    return _arccosh(x)


@sections.as_float
def arctanh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic tangent.

    >>> jnp.arctanh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return pointwise("arctanh", "atanh", x)


acos, acosh, asin, asinh, atan, atan2, atanh = arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh


def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees to radians.

    Args:
        x: angles in degrees, an array of numbers.

    Returns:
        Angles in radians, an array of x's shape; bool and integers become the default float.

    >>> jnp.deg2rad(jnp.array([180.0]))
    Array([3.1415927], dtype=float32)
    """
    (x,) = promote_inexact("deg2rad", x)
    return bind("mul", x, filled_like(np.pi / 180, x))


def rad2deg(x: ArrayLike, /) -> Array:
    """Radians to degrees.

    Args:
        x: angles in radians, an array of numbers.

    Returns:
        Angles in degrees, an array of x's shape; bool and integers become the default float.

    >>> jnp.rad2deg(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    (x,) = promote_inexact("rad2deg", x)
    return bind("mul", x, filled_like(180 / np.pi, x))


radians, degrees = deg2rad, rad2deg


def _hypot_value(x, y):
    x, y = bind("abs", x), bind("abs", y)
    infinite = bind("or", bind("eq", x, scalar_like(np.inf, x)), bind("eq", y, scalar_like(np.inf, x)))
    x, y = bind("max", x, y), bind("min", x, y)
    zero = scalar_like(0, x)
    nothing = bind("eq", x, zero)
    safe = where(bind("eq", x, zero), broadcast_constant(scalar_like(1, x), x.shape), x)
    length = bind("mul", x, bind("sqrt", bind("add", scalar_like(1, x), bind("square", bind("div", y, safe)))))
    return where(infinite, _core.asarray(filled_like(np.inf, x)), where(nothing, x, length))


@jitted("hypot")
def _hypot(x, y):
    x, y = promote_shapes(*_core.promote_dtypes_inexact(x, y))
    x, y = _core.broadcast_to(x, shape := common_shape(x.shape, y.shape)), _core.broadcast_to(y, shape)

    def rule(primals, tangents):
        out = call(*primals)
        slopes = slopes_call(*primals, out)
        return (out,), (bind("add", *[bind("mul", slope, dx) for slope, dx in zip(slopes, tangents, strict=True)]),)

    def slopes_value(x, y, out):
        # x / hypot, whose squares never leave the range; at the origin half of |x|'s on each side, and none beside an infinity
        nothing, infinite = bind("eq", out, scalar_like(0, out)), bind("eq", out, scalar_like(np.inf, out))
        return tuple(where(infinite, scalar_like(0, x), where(nothing, scalar_like(0.5, x), bind("div", x, out))) for x in (x, y))

    def slopes_rule(primals, tangents):
        """The slopes turn by the angle that the point does: nothing of the tangents along it has to cancel."""
        (x, y, out), (dx, dy, _) = primals, tangents
        by_x, by_y = slopes_call(x, y, out)
        inside = bind("and", bind("gt", out, scalar_like(0, out)), bind("lt", out, scalar_like(np.inf, out)))
        turned = bind("sub", bind("mul", by_x, dy), bind("mul", by_y, dx))
        turned = where(inside, bind("div", turned, where(inside, out, scalar_like(1, out))), scalar_like(0, out))
        return (by_x, by_y), (bind("neg", bind("mul", by_y, turned)), bind("mul", by_x, turned))

    def slopes_call(x, y, out):
        return _core.custom_jvp_call("_hypot_slopes", slopes_value, slopes_rule, [x, y, out])

    def call(x, y):
        return _core.custom_jvp_call("_hypot", lambda x, y: (_hypot_value(x, y),), rule, [x, y])[0]

    return call(x, y)


def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x1 ** 2 + x2 ** 2) without overflow.

    Args:
        x1, x2: arrays that broadcast, bool, integer or real.

    Returns:
        Array of the broadcast shape and the promoted dtype, made float where that is bool or an
        integer.

    Raises:
        ValueError: for complex ones.

    >>> jnp.hypot(jnp.array([3.0]), 4.0)
    Array([5.], dtype=float32)
    """
    check_arraylike("hypot", x1, x2)
    if is_complex(dtype_of(x1)) or is_complex(dtype_of(x2)):
        raise ValueError("jnp.hypot is not well defined for complex-valued inputs. Please convert to real values first, such as by using abs(x)")
    return _hypot(x1, x2)


def _sinc_near_zero(v):
    """sin(v) / v for |v| < 1 by its series: derivatives of the quotient cancel there."""
    square = bind("mul", v, v)
    total = scalar_like(0, v)
    for k in reversed(range(11)):
        term = scalar_like((-1) ** k / math.factorial(2 * k + 1), v)
        total = bind("add", bind("mul", *_core.promote_shapes(total, square)), broadcast_constant(term, v.shape))
    return total


@jitted("sinc")
def _sinc(x):
    (x,) = promote_inexact("sinc", x)
    dtype, weak = x.dtype, x.weak_type
    x = convert(x, summed_in(dtype), weak)
    y = bind("mul", scalar_like(np.pi, x), x)
    near = bind("lt", bind("abs", y), scalar_like(1, bind("abs", y)))
    close = where(near, y, _core.asarray(scalar_like(0, y)))
    far = where(near, _core.asarray(scalar_like(1, y)), y)
    return convert(where(near, _sinc_near_zero(close), bind("div", bind("sin", far), far)), dtype, weak)


@sections.as_float
def sinc(x: ArrayLike, /) -> Array:
    """sin(pi x) / (pi x), 1 at 0.

    >>> jnp.sinc(jnp.array([0.0, 0.5]))
    Array([1.        , 0.63661975], dtype=float32)
    """
    check_arraylike("sinc", x)
    return _sinc(x)
