"""Elementwise functions.

Invariant: each promotes and broadcasts its arguments as numpy does and is a primitive or a composition of them; where JAX's programs
show an inner `jit` of that name, so do ours.

    >>> jnp.floor_divide(7, 2)
    Array(3, dtype=int32, weak_type=True)
"""
from __future__ import annotations

import operator

import numpy as np

from .. import _core
from .._core import bind, elementwise
from .._dtypes import canonicalize_dtype, dtype_of, finfo, is_bool, is_complex, is_inexact, is_integer, is_unsigned, to_real
from ..lax import RoundingMethod
from ._arguments import Array, as_array, check_arraylike, constant, convert, jitted, pointwise, promote, promote_inexact, scalar_like, unsupported
from ._selecting import where
from ._ufuncs import logical_or, multiply, negative


def arccos(x, /):
    """Arc cosine in radians. x: number; integers become float."""
    return pointwise("arccos", "acos", x)


def arcsin(x, /):
    """Arc sine in radians."""
    return pointwise("arcsin", "asin", x)


def arcsinh(x, /):
    """Inverse hyperbolic sine."""
    return pointwise("arcsinh", "asinh", x)


def arctan(x, /):
    """Arc tangent in radians."""
    return pointwise("arctan", "atan", x)


def arctanh(x, /):
    """Inverse hyperbolic tangent."""
    return pointwise("arctanh", "atanh", x)


def cbrt(x, /):
    """Cube root. x: real."""
    return pointwise("cbrt", "cbrt", x)


def cos(x, /):
    """Cosine of x radians."""
    return pointwise("cos", "cos", x)


def cosh(x, /):
    """Hyperbolic cosine."""
    return pointwise("cosh", "cosh", x)


def exp(x, /):
    """e ** x."""
    return pointwise("exp", "exp", x)


def exp2(x, /):
    """2 ** x."""
    return pointwise("exp2", "exp2", x)


def expm1(x, /):
    """e ** x - 1, accurate near zero."""
    return pointwise("expm1", "expm1", x)


def log(x, /):
    """Natural logarithm."""
    return pointwise("log", "log", x)


def log1p(x, /):
    """log(1 + x), accurate near zero."""
    return pointwise("log1p", "log1p", x)


def sin(x, /):
    """Sine of x radians."""
    return pointwise("sin", "sin", x)


def sinh(x, /):
    """Hyperbolic sine."""
    return pointwise("sinh", "sinh", x)


def sqrt(x, /):
    """Square root; nan for negative reals."""
    return pointwise("sqrt", "sqrt", x)


def tan(x, /):
    """Tangent of x radians."""
    return pointwise("tan", "tan", x)


def tanh(x, /):
    """Hyperbolic tangent."""
    return pointwise("tanh", "tanh", x)


def sign(x, /):
    """-1, 0 or 1 by the sign of x; x / |x| for complex x."""
    return pointwise("sign", "sign", x)


def square(x, /):
    """x * x."""
    return pointwise("square", "square", x)


def bitwise_not(x, /):
    """Bitwise complement; logical not for bool. x: integer or bool."""
    return pointwise("bitwise_not", "not", x)


def arctan2(x1, x2, /):
    """Angle of the point (x2, x1): arctan(x1 / x2) in the right quadrant."""
    return pointwise("arctan2", "atan2", x1, x2)


def nextafter(x, y, /):
    """The float next to x in the direction of y."""
    return pointwise("nextafter", "nextafter", x, y)


def equal(x, y, /):
    """x == y as bool."""
    return pointwise("equal", "eq", x, y)


def not_equal(x, y, /):
    """x != y as bool."""
    return pointwise("not_equal", "ne", x, y)


def less(x, y, /):
    """x < y as bool; complex numbers compare by real, then imaginary part."""
    return pointwise("less", "lt", x, y)


def less_equal(x, y, /):
    """x <= y as bool; complex numbers compare by real, then imaginary part."""
    return pointwise("less_equal", "le", x, y)


def greater(x, y, /):
    """x > y as bool; complex numbers compare by real, then imaginary part."""
    return pointwise("greater", "gt", x, y)


def greater_equal(x, y, /):
    """x >= y as bool; complex numbers compare by real, then imaginary part."""
    return pointwise("greater_equal", "ge", x, y)


def left_shift(x, y, /):
    """x << y. x, y: integer."""
    return pointwise("left_shift", "shift_left", x, y)


acos, asin, asinh, atan, atanh, atan2 = arccos, arcsin, arcsinh, arctan, arctanh, arctan2
invert = bitwise_invert = bitwise_not
bitwise_left_shift = left_shift


def absolute(x, /):
    """|x|; the modulus of complex x, as a real."""
    x = as_array("absolute", x)
    return x if is_bool(x.dtype) or is_unsigned(x.dtype) else bind("abs", x)


abs = absolute


@jitted("arccosh")
def _arccosh(x):
    (x,) = promote_inexact("arccosh", x)
    out = bind("acosh", x)
    # The branch of the square root with non-negative real part.
    return where(less(bind("real", out), constant(0, to_real(out.dtype))), negative(out), out) if is_complex(out.dtype) else out


def arccosh(x, /):
    """Inverse hyperbolic cosine, with non-negative real part."""
    check_arraylike("arccosh", x)
    return _arccosh(x)


acosh = arccosh


def ceil(x, /):
    """The least integer not below x, of x's dtype."""
    x = as_array("ceil", x)
    return x if not is_inexact(x.dtype) else bind("ceil", x)


def floor(x, /):
    """The greatest integer not above x, of x's dtype."""
    x = as_array("floor", x)
    return x if not is_inexact(x.dtype) else bind("floor", x)


@jitted("trunc")
def _trunc(x):
    if not is_inexact(x.dtype):
        return x
    return where(bind("lt", x, scalar_like(0, x)), bind("ceil", x), bind("floor", x))


def trunc(x, /):
    """x rounded towards zero, of x's dtype."""
    return _trunc(as_array("trunc", x))


@jitted("rint")
def _rint(x):
    if not is_inexact(x.dtype):
        return convert(x, canonicalize_dtype(float))
    if is_complex(x.dtype):
        return bind("complex", _rint(bind("real", x)), _rint(bind("imag", x)))
    return bind("round", x, rounding_method=RoundingMethod.TO_NEAREST_EVEN)


def rint(x, /):
    """x rounded to the nearest integer, ties to even; integers become float."""
    return _rint(as_array("rint", x))


@jitted("round", static=("decimals",))
def _round(a, decimals=0):
    if not is_inexact(a.dtype):
        if decimals < 0:
            raise NotImplementedError("integer np.round not implemented for decimals < 0")
        return a

    def nearest(x):
        if decimals == 0:
            return bind("round", x, rounding_method=RoundingMethod.TO_NEAREST_EVEN)
        # Half precision is scaled in single precision, where 10 ** decimals does not overflow so soon.
        narrow = x.dtype if x.dtype.itemsize == 2 else None
        if narrow is not None:
            x = convert(x, np.float32)
        factor = scalar_like(10.0**decimals if decimals > 0 else 10.0**-decimals, x)
        up, down = ("mul", "div") if decimals > 0 else ("div", "mul")
        x = bind(down, bind("round", bind(up, x, factor), rounding_method=RoundingMethod.TO_NEAREST_EVEN), factor)
        return x if narrow is None else convert(x, narrow)

    if is_complex(a.dtype):
        return bind("complex", nearest(bind("real", a)), nearest(bind("imag", a)))
    return nearest(a)


def round(a, decimals=0, out=None):
    """a rounded to `decimals` decimals, ties to even."""
    unsupported("jnp.round", out=out)
    return _round(as_array("round", a), decimals=operator.index(decimals))


@jitted("around", static=("decimals",))
def _around(a, decimals):
    return round(a, decimals)


def around(a, decimals=0, out=None):
    """The same as `round`."""
    unsupported("jnp.around", out=out)
    return _around(as_array("around", a), decimals=operator.index(decimals))


def fabs(x, /):
    """|x| as a float. x: real."""
    (x,) = promote_inexact("fabs", x)
    return bind("abs", x)


def positive(x, /):
    """x itself."""
    return as_array("positive", x)


def signbit(x, /):
    """Whether the sign bit is set, -0 and negative nan included. x: real."""
    return _signbit(as_array("signbit", x))


@jitted("signbit")
def _signbit(x):
    if is_bool(x.dtype) or is_unsigned(x.dtype):
        return broadcast_constant(np.bool_(False), x.shape)
    if is_integer(x.dtype):
        return bind("lt", x, scalar_like(0, x))
    bits = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[x.dtype.itemsize]
    x = bind("bitcast_convert_type", x, new_dtype=np.dtype(bits))
    x = bind("shift_right_arithmetic", x, bits(8 * np.dtype(bits).itemsize - 1))
    return bind("convert_element_type", x, new_dtype=np.dtype(bool), weak_type=False)


def broadcast_constant(value, shape):
    """The scalar spread over `shape`."""
    return bind("broadcast_in_dim", value, shape=tuple(shape), broadcast_dimensions=()) if shape else _core.asarray(value)


def conjugate(x, /):
    """Complex conjugate; real x is itself."""
    x = as_array("conjugate", x)
    return bind("conj", x, input_dtype=x.dtype) if is_complex(x.dtype) else x


conj = conjugate


def real(val, /):
    """Real part."""
    val = as_array("real", val)
    return bind("real", val) if is_complex(val.dtype) else val


def imag(val, /):
    """Imaginary part; zeros for real values."""
    val = as_array("imag", val)
    return bind("imag", val) if is_complex(val.dtype) else broadcast_constant(constant(0, val.dtype), val.shape)


@jitted("angle", static=("deg",))
def _angle(z, deg=False):
    re, im = real(z), imag(z)
    if not is_inexact(re.dtype):
        re, im = _core.promote_dtypes_inexact(re, im)
    out = bind("atan2", im, re)
    return degrees(out) if deg else out


def angle(z, deg=False):
    """The argument of complex z, in radians, or degrees if `deg`."""
    return _angle(as_array("angle", z), deg=True) if deg else _angle(as_array("angle", z))


def deg2rad(x, /):
    """Degrees to radians."""
    (x,) = promote_inexact("deg2rad", x)
    return bind("mul", x, scalar_like(np.pi / 180, x))


def rad2deg(x, /):
    """Radians to degrees."""
    (x,) = promote_inexact("rad2deg", x)
    return bind("mul", x, scalar_like(180 / np.pi, x))


radians, degrees = deg2rad, rad2deg


def _scaled_log(name, x, scale):
    (x,) = promote_inexact(name, x)
    out = bind("log", x)
    if is_complex(out.dtype):
        return bind("complex", *scale(bind("real", out), bind("imag", out)))
    return scale(out)[0]


def log10(x, /):
    """Logarithm to base 10."""
    return _scaled_log("log10", x, lambda *parts: [bind("mul", y, scalar_like(1 / np.log(10), y)) for y in parts])


def log2(x, /):
    """Logarithm to base 2."""

    def scale(*parts):
        base = bind("log", scalar_like(2, parts[0]))
        return [bind("div", y, base) for y in parts]

    return _scaled_log("log2", x, scale)


def reciprocal(x, /):
    """1 / x; integers become float."""
    (x,) = promote_inexact("reciprocal", x)
    return bind("integer_pow", x, y=-1)


def isfinite(x, /):
    """Whether x is neither infinite nor nan."""
    x = as_array("isfinite", x)
    if is_complex(x.dtype):
        return bind("and", bind("is_finite", bind("real", x)), bind("is_finite", bind("imag", x)))
    return bind("is_finite", x) if is_inexact(x.dtype) else broadcast_constant(np.bool_(True), x.shape)


@jitted("isinf")
def _isinf(x):
    if is_complex(x.dtype):
        re, im = bind("real", x), bind("imag", x)
        infinity = scalar_like(np.inf, re)
        return bind("or", bind("eq", bind("abs", re), infinity), bind("eq", bind("abs", im), infinity))
    return bind("eq", bind("abs", x), scalar_like(np.inf, x)) if is_inexact(x.dtype) else broadcast_constant(np.bool_(False), x.shape)


def isinf(x, /):
    """Whether x is infinite."""
    return _isinf(as_array("isinf", x))


def isnan(x, /):
    """Whether x is not a number."""
    x = as_array("isnan", x)
    return bind("ne", x, x)


def _isposneginf(name, x, infinity):
    x = as_array(name, x)
    if is_complex(x.dtype):
        raise ValueError(f"{name} is not well defined for complex types")
    return bind("eq", x, scalar_like(infinity, x)) if is_inexact(x.dtype) else broadcast_constant(np.bool_(False), x.shape)


def isposinf(x, /, out=None):
    """Whether x is positive infinity."""
    unsupported("jnp.isposinf", out=out)
    return _isposneginf("isposinf", x, np.inf)


def isneginf(x, /, out=None):
    """Whether x is negative infinity."""
    unsupported("jnp.isneginf", out=out)
    return _isposneginf("isneginf", x, -np.inf)


@jitted("iscomplex")
def _iscomplex(x):
    im = imag(x)
    return bind("ne", im, constant(0, im.dtype))


def iscomplex(x, /):
    """Whether the imaginary part is not zero."""
    return _iscomplex(as_array("iscomplex", x))


@jitted("isreal")
def _isreal(x):
    im = imag(x)
    return bind("eq", im, constant(0, im.dtype))


def isreal(x, /):
    """Whether the imaginary part is zero."""
    return _isreal(as_array("isreal", x))


def logical_truth(x):
    """x != 0 as bool."""
    return x if is_bool(x.dtype) else bind("ne", x, scalar_like(0, x))


def logical_not(x, /):
    """Whether x is zero."""
    return bind("not", logical_truth(as_array("logical_not", x)))


def true_divide(x1, x2, /):
    """x1 / x2; integers become float."""
    x1, x2 = promote_inexact("true_divide", x1, x2)
    return elementwise("div", x1, x2)


divide = true_divide


def _spread(x, y):
    """Two arrays of one dtype, of equal rank or scalars: what primitives of two operands take."""
    return _core.promote_shapes(x, y)


@jitted("floor_divide")
def _floor_divide(x, y):
    x, y = _spread(*_core.promote_dtypes(x, y))
    dtype = x.dtype
    if is_bool(dtype):
        raise TypeError("floor_divide does not support boolean operands")
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


def floor_divide(x1, x2, /):
    """The greatest integer not above x1 / x2, of the promoted dtype. Integers divided by zero give -1 or less, as in JAX."""
    check_arraylike("floor_divide", x1, x2)
    return _floor_divide(x1, x2)


def _nonzero(y):
    """y with zeros replaced by ones: a divisor."""
    zero = bind("eq", y, scalar_like(0, y))
    return where(zero, broadcast_constant(scalar_like(1, y), y.shape) if y.ndim else scalar_like(1, y), y)


@jitted("remainder")
def _remainder(x, y):
    x, y = _spread(*_core.promote_dtypes(x, y))
    dtype = x.dtype
    if is_integer(dtype):
        y = _nonzero(y)
    rest = bind("rem", x, y)
    zero = scalar_like(0, x)
    nonzero = bind("ne", rest, zero)
    differ = bind("and", bind("ne", bind("lt", rest, zero), bind("lt", y, zero)), nonzero)
    return bind("select_n", differ, rest, bind("add", rest, y))


def remainder(x1, x2, /):
    """x1 - x2 * floor(x1 / x2), which has the sign of x2; 0 for integers where x2 is 0."""
    check_arraylike("remainder", x1, x2)
    return _remainder(x1, x2)


mod = remainder


@jitted("fmod")
def _fmod(x, y):
    if is_integer(_core.result_type(x, y)):
        y = _nonzero(y)
    x, y = _spread(*_core.promote_dtypes(x, y))
    return bind("rem", x, y)


def fmod(x1, x2, /):
    """The remainder of x1 / x2 with the sign of x1."""
    return _fmod(as_array("fmod", x1), as_array("fmod", x2))


@jitted("divmod")
def _divmod(x, y):
    x, y = _core.promote_dtypes(x, y)
    if is_inexact(x.dtype):
        return _float_divmod(*_spread(x, y))
    return _floor_divide(x, y), _remainder(x, y)


def divmod(x1, x2, /):
    """(x1 // x2, x1 % x2)."""
    check_arraylike("divmod", x1, x2)
    return tuple(_divmod(x1, x2))


@jitted("modf")
def _modf(x):
    (x,) = promote_inexact("modf", x)
    whole = where(bind("ge", x, scalar_like(0, x)), bind("floor", x), bind("ceil", x))
    return bind("sub", x, whole), whole


def modf(x, /, out=None):
    """(fractional part, whole part), both of x's sign."""
    unsupported("jnp.modf", out=out)
    check_arraylike("modf", x)
    return tuple(_modf(x))


def power(x1, x2, /):
    """x1 ** x2. A Python or numpy integer exponent is exact by repeated multiplication; integers to negative powers raise TypeError."""
    check_arraylike("power", x1, x2)
    if type(x2) is int:
        x1 = _core.asarray(x1) if not isinstance(x1, Array) else x1
        if not is_bool(x1.dtype):
            if x2 < 0 and not is_inexact(x1.dtype):
                raise TypeError(f"Integers cannot be raised to negative powers, got integer_pow({x1.dtype.name}[{','.join(map(str, x1.shape))}], {x2})")
            return bind("integer_pow", x1, y=x2)
    d1, d2 = dtype_of(x1), dtype_of(x2)
    if is_inexact(d1) and is_integer(d2) and _core.result_type(x1, x2) == d1:
        # pow takes an integer exponent as it is.
        a, b = _core.promote_shapes(_core.asarray(x1), _core.asarray(x2))
        return bind("pow", a, b)
    x1, x2 = _core.promote_dtypes(x1, x2)
    if is_inexact(x1.dtype):
        return elementwise("pow", x1, x2)
    if is_bool(x1.dtype):
        return bind("or", *_core.promote_shapes(x1, bind("not", x2)))
    return _integer_power(x1, x2)


pow = power


def _integer_power(x, y):
    """x ** y by squaring, six bits of the exponent (64 suffices for any result that fits)."""
    x, y = _core.promote_shapes(x, y)
    zero, one = scalar_like(0, x), scalar_like(1, x)
    empty = bind("and", bind("eq", x, zero), bind("ne", y, zero))
    out = where(empty, _core.asarray(zero), _core.asarray(one))
    bits = 6 if x.dtype.itemsize < 8 else 7
    for i in range(bits):
        odd = bind("and", y, one)
        out = where(odd, bind("mul", out, x), out)
        if i < bits - 1:
            x = bind("mul", x, x)
            y = bind("shift_right_logical", y, one)
    return out


def float_power(x, y, /):
    """x ** y with integers made float first."""
    x, y = promote_inexact("float_power", x, y)
    return elementwise("pow", x, y)


@jitted("copysign")
def _copysign(x, y):
    x, y = _core.promote_dtypes_inexact(x, y)
    x, y = _spread(x, y)
    return where(signbit(y), bind("neg", bind("abs", x)), bind("abs", x))


def copysign(x1, x2, /):
    """|x1| with the sign of x2. x1, x2: real."""
    check_arraylike("copysign", x1, x2)
    if is_complex(dtype_of(x1)) or is_complex(dtype_of(x2)):
        raise TypeError("copysign does not support complex-valued inputs")
    return _copysign(x1, x2)


@jitted("fmax")
def _fmax(x, y):
    return where(logical_or(greater(x, y), isnan(y)), x, y)


def fmax(x1, x2):
    """The larger of x1 and x2; where one is nan, the other."""
    check_arraylike("fmax", x1, x2)
    return _fmax(x1, x2)


@jitted("fmin")
def _fmin(x, y):
    return where(logical_or(less(x, y), isnan(y)), x, y)


def fmin(x1, x2):
    """The smaller of x1 and x2; where one is nan, the other."""
    check_arraylike("fmin", x1, x2)
    return _fmin(x1, x2)


@jitted("hypot")
def _hypot(x, y):
    x, y = _spread(*_core.promote_dtypes_inexact(x, y))
    x, y = bind("abs", x), bind("abs", y)
    infinite = bind("or", bind("eq", x, scalar_like(np.inf, x)), bind("eq", y, scalar_like(np.inf, x)))
    x, y = bind("max", x, y), bind("min", x, y)
    zero = scalar_like(0, x)
    nothing = bind("eq", x, zero)
    safe = where(bind("eq", x, zero), broadcast_constant(scalar_like(1, x), x.shape), x)
    length = bind("mul", x, bind("sqrt", bind("add", scalar_like(1, x), bind("square", bind("div", y, safe)))))
    return where(infinite, _core.asarray(scalar_like(np.inf, x)), where(nothing, x, length))


def hypot(x1, x2, /):
    """sqrt(x1 ** 2 + x2 ** 2) without overflow. x1, x2: real."""
    check_arraylike("hypot", x1, x2)
    if is_complex(dtype_of(x1)) or is_complex(dtype_of(x2)):
        raise ValueError("jnp.hypot is not well defined for complex-valued inputs. For complex numbers, use jnp.abs(z) to compute the magnitude.")
    return _hypot(x1, x2)


@jitted("heaviside")
def _heaviside(x, y):
    x, y = _core.promote_dtypes_inexact(x, y)
    zero, one = scalar_like(0, x), scalar_like(1, x)
    negative_, positive_ = less(x, zero), greater(x, zero)
    return where(negative_, zero, where(positive_, one, where(isnan(x), x, y)))


def heaviside(x1, x2, /):
    """0 where x1 < 0, x2 where x1 == 0, 1 where x1 > 0. x1, x2: real."""
    check_arraylike("heaviside", x1, x2)
    return _heaviside(x1, x2)


@jitted("ldexp")
def _ldexp(x, n):
    dtype = canonicalize_dtype(float) if not is_inexact(dtype_of(x)) else dtype_of(x)
    x, n = _spread(convert(x, dtype), convert(n, dtype))
    mantissa, exponent = _frexp(x)
    exponent = bind("add", *_spread(convert(exponent, dtype), n))
    one = constant(1, dtype)
    # 2 ** exponent alone could overflow where the product does not.
    mantissa = where(bind("gt", exponent, constant(0, dtype)), bind("mul", mantissa, constant(2, dtype)), mantissa)
    exponent = where(bind("gt", exponent, constant(0, dtype)), bind("sub", exponent, one), exponent)
    out = bind("mul", mantissa, bind("pow", constant(2, dtype), exponent))
    return where(bind("or", isinf(x), bind("eq", x, constant(0, dtype))), x, out)


def ldexp(x1, x2, /):
    """x1 * 2 ** x2. x1: real; x2: integer. Raises ValueError otherwise."""
    check_arraylike("ldexp", x1, x2)
    d1, d2 = dtype_of(x1), dtype_of(x2)
    if is_complex(d1) or not is_integer(d2):
        raise ValueError(f"ldexp not supported for input types {(d1, d2)}")
    return _ldexp(x1, x2)


_FLOAT_LAYOUT = {2: (np.int16, 5, 10), 4: (np.int32, 8, 23), 8: (np.int64, 11, 52)}


def _frexp_of(x):
    if x.dtype.kind == "V":
        integer, n_exponent, n_mantissa = np.int16, 8, 7
    else:
        integer, n_exponent, n_mantissa = _FLOAT_LAYOUT[x.dtype.itemsize]
    i32 = np.dtype(np.int32)
    bias = (1 << (n_exponent - 1)) - 1
    ones = (1 << n_exponent) - 1
    tiny = scalar_like(finfo(x.dtype).tiny, x)
    subnormal = bind("lt", bind("abs", x), tiny)
    scaled = where(subnormal, bind("mul", x, scalar_like(2.0**n_mantissa, x)), x)
    shift = where(subnormal, _core.asarray(np.int32(-n_mantissa)), _core.asarray(np.int32(0)))
    bits = bind("bitcast_convert_type", scaled, new_dtype=np.dtype(integer))
    exponent = bind("and", bind("shift_right_arithmetic", bits, integer(n_mantissa)), integer(ones))
    exponent = bind("add", bind("sub", exponent, integer(bias)), integer(1))
    exponent = bind("add", shift, exponent if exponent.dtype == i32 else convert(exponent, i32))
    keep = integer(~(ones << n_mantissa))
    mantissa = bind("or", bind("and", bits, keep), integer((bias - 1) << n_mantissa))
    mantissa = bind("bitcast_convert_type", mantissa, new_dtype=x.dtype)
    special = logical_or(logical_or(isinf(x), isnan(x)), bind("eq", x, scalar_like(0, x)))
    exponent = where(special, broadcast_constant(np.int32(0), exponent.shape), exponent)
    return where(special, x, mantissa), exponent


@jitted("frexp")
def _frexp(x):
    if is_complex(x.dtype):
        raise TypeError("frexp does not support complex-valued inputs")
    (x,) = promote_inexact("frexp", x)

    def rule(primals, tangents):
        (v,), (dv,) = primals, tangents
        mantissa, exponent = _frexp(v)
        scale = bind("pow", scalar_like(2, v), bind("neg", convert(exponent, v.dtype)))
        return (mantissa, exponent), (bind("mul", dv, scale), _float0_like(exponent))

    return tuple(_core.custom_jvp_call("_frexp", lambda v: _frexp_of(v), rule, [x]))


def _float0_like(x):
    from .._flat import float0

    return np.zeros(x.shape, float0)


def frexp(x, /):
    """(mantissa, exponent) with x = mantissa * 2 ** exponent and 0.5 <= |mantissa| < 1. x: real; exponent: int32."""
    return tuple(_frexp(as_array("frexp", x)))


def spacing(x, /):
    """The distance from |x| to the next float, with x's sign. x: real."""
    (x,) = promote_inexact("spacing", x)
    infinity = _core.asarray(scalar_like(np.inf, x))
    step = bind("sub", bind("nextafter", x, copysign(infinity, x)), x)
    tiny = scalar_like(finfo(x.dtype).smallest_subnormal, x)
    return where(bind("eq", step, scalar_like(0, x)), copysign(_core.asarray(tiny), x), step)


@jitted("i0")
def _i0(x):
    (x,) = promote_inexact("i0", x)

    def value(v):
        v = bind("abs", v)
        return (bind("mul", bind("exp", v), bind("bessel_i0e", v)),)

    def rule(primals, tangents):
        (v,), (dv,) = primals, tangents
        a = bind("abs", v)
        # I0' = I1, an odd function.
        slope = bind("mul", bind("sign", v), bind("mul", bind("exp", a), bind("bessel_i1e", a)))
        return value(v), (bind("mul", slope, dv),)

    return _core.custom_jvp_call("_i0", value, rule, [x])[0]


def i0(x, /):
    """The modified Bessel function of the first kind of order 0. x: real."""
    check_arraylike("i0", x)
    return _i0(x)


def _sinc_maclaurin(k, v):
    """The k-th derivative of sin(v) / v at v = 0, differentiable again."""

    def value(v):
        c = 0 if k % 2 else (-1) ** (k // 2) / (k + 1)
        return (bind("add", bind("mul", v, scalar_like(0, v)), scalar_like(c, v)),)

    def rule(primals, tangents):
        (v,), (dv,) = primals, tangents
        return value(v), (bind("mul", _sinc_maclaurin(k + 1, v), dv),)

    return _core.custom_jvp_call("_sinc_maclaurin", value, rule, [v])[0]


@jitted("sinc")
def _sinc(x):
    (x,) = promote_inexact("sinc", x)
    zero = bind("eq", x, scalar_like(0, x))
    y = bind("mul", scalar_like(np.pi, x), x)
    safe = where(zero, _core.asarray(scalar_like(1, x)), y)
    return where(zero, _sinc_maclaurin(0, y), bind("div", bind("sin", safe), safe))


def sinc(x, /):
    """sin(pi x) / (pi x), 1 at 0."""
    check_arraylike("sinc", x)
    return _sinc(x)


def _nan_to_num(x, nan, posinf, neginf):
    if not is_inexact(x.dtype):
        return x
    if is_complex(x.dtype):
        parts = [_nan_to_num_jit(bind(part, x), nan, posinf, neginf) for part in ("real", "imag")]
        return bind("complex", *parts)
    info = finfo(x.dtype)
    posinf = scalar_like(info.max, x) if posinf is None else posinf
    neginf = scalar_like(info.min, x) if neginf is None else neginf
    x = where(isnan(x), convert(nan, x.dtype) if isinstance(nan, Array) else scalar_like(nan, x), x)
    x = where(bind("eq", x, scalar_like(np.inf, x)), _core.asarray(posinf, x.dtype) if not isinstance(posinf, Array) else convert(posinf, x.dtype), x)
    return where(bind("eq", x, scalar_like(-np.inf, x)), _core.asarray(neginf, x.dtype) if not isinstance(neginf, Array) else convert(neginf, x.dtype), x)


@jitted("nan_to_num")
def _nan_to_num_jit(x, nan=0.0, posinf=None, neginf=None):
    return _nan_to_num(x, nan, posinf, neginf)


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """x with nan, inf and -inf replaced: by 0 and the extremes of the dtype unless given."""
    del copy
    x = as_array("nan_to_num", x)
    if type(nan) is float and nan == 0 and posinf is None and neginf is None:
        return _nan_to_num_jit(x)
    return _nan_to_num_jit(x, nan, posinf, neginf)


@jitted("bitwise_count")
def _bitwise_count(x):
    x = x if is_unsigned(x.dtype) else bind("abs", x)
    return convert(bind("population_count", x), np.uint8)


def bitwise_count(x, /):
    """The number of set bits of |x|, uint8. x: integer."""
    return _bitwise_count(as_array("bitwise_count", x))


def right_shift(x1, x2, /):
    """x1 >> x2, repeating the sign bit of signed integers."""
    x1, x2 = promote("right_shift", x1, x2)
    return elementwise("shift_right_logical" if is_unsigned(x1.dtype) else "shift_right_arithmetic", x1, x2)


bitwise_right_shift = right_shift


@jitted("gcd")
def _gcd(x, y):
    from ..lax import while_loop

    x, y = _core.promote_dtypes(x, y)
    x, y = broadcast_together(x, y)
    if not is_unsigned(x.dtype):
        x, y = bind("abs", x), bind("abs", y)
    zero = scalar_like(0, x)

    def going(xy):
        return bind("reduce_or", bind("ne", xy[1], zero), axes=tuple(range(xy[1].ndim)))

    def step(xy):
        # One Euclidean step where there is one left, larger number first.
        a, b = xy
        a, b = where(bind("ne", b, zero), b, a), where(bind("ne", b, zero), bind("rem", a, b), _core.asarray(zero))
        return where(bind("lt", a, b), b, a), where(bind("lt", a, b), a, b)

    return while_loop(going, step, (x, y))[0]


def broadcast_together(*xs):
    """The arrays broadcast to their common shape."""
    shape = np.broadcast_shapes(*[x.shape for x in xs])
    return tuple([x if tuple(x.shape) == shape else _core.broadcast_to(x, shape) for x in xs])


def gcd(x1, x2):
    """Greatest common divisor of |x1| and |x2|. Raises ValueError unless both are integers."""
    check_arraylike("gcd", x1, x2)
    if not (is_integer(dtype_of(x1)) and is_integer(dtype_of(x2))):
        raise ValueError("Arguments to jax.numpy.gcd must be integers.")
    return _gcd(x1, x2)


@jitted("lcm")
def _lcm(x, y):
    x, y = _core.promote_dtypes(x, y)
    if not is_unsigned(x.dtype):
        x, y = bind("abs", x), bind("abs", y)
    zero = scalar_like(0, x)
    d = gcd(x, y)
    nothing = bind("eq", d, zero)
    return where(nothing, zero, multiply(x, floor_divide(y, where(nothing, scalar_like(1, x), d))))


def lcm(x1, x2):
    """Least common multiple of |x1| and |x2|. Raises ValueError unless both are integers."""
    check_arraylike("lcm", x1, x2)
    if not (is_integer(dtype_of(x1)) and is_integer(dtype_of(x2))):
        raise ValueError("Arguments to jax.numpy.lcm must be integers.")
    return _lcm(x1, x2)
