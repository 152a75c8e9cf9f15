"""Parts of floating-point numbers: signs, exponents, neighbours, infinities and nan.

Invariant: exact: bits of a number are read and written without rounding.

    >>> jnp.frexp(6.0)
    (Array(0.75, dtype=float32), Array(3, dtype=int32))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ..._base.dtypes import dtype_of, finfo, is_bool, is_complex, is_inexact, is_integer, is_narrow, is_unsigned, to_inexact
from ..._base.flags import inert
from ..._core import bind, promote_shapes
from ..._trees.flat import float0
from .._indexing.selecting import where
from .._logic.elementwise import logical_or
from .._support import sections
from .._support.arguments import (
    Array,
    as_array,
    broadcast_constant,
    check_arraylike,
    constant,
    convert,
    jitted,
    pointwise,
    promote_inexact,
    scalar_like,
    unsupported,
)

if TYPE_CHECKING:
    from ...typing import ArrayLike


@sections.predicate
def isfinite(x: ArrayLike, /) -> Array:
    """Whether x is neither infinite nor nan.

    >>> jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    x = as_array("isfinite", x)
    if is_complex(x.dtype):
        return bind("and", bind("is_finite", bind("real", x)), bind("is_finite", bind("imag", x)))
    return bind("is_finite", x) if is_inexact(x.dtype) else broadcast_constant(np.bool_(True), x.shape)


@jitted("isinf")
def _isinf(x):
    if is_complex(x.dtype):
        re, im = bind("real", x), bind("imag", x)
        infinity = constant(np.inf, re.dtype)
        return bind("or", bind("eq", bind("abs", re), infinity), bind("eq", bind("abs", im), infinity))
    return bind("eq", bind("abs", x), constant(np.inf, x.dtype)) if is_inexact(x.dtype) else broadcast_constant(np.bool_(False), x.shape)


@sections.predicate
def isinf(x: ArrayLike, /) -> Array:
    """Whether x is infinite.

    >>> jnp.isinf(jnp.array([1.0, jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    return _isinf(as_array("isinf", x))


@sections.predicate
def isnan(x: ArrayLike, /) -> Array:
    """Whether x is not a number.

    >>> jnp.isnan(jnp.array([1.0, jnp.nan]))
    Array([False,  True], dtype=bool)
    """
    x = as_array("isnan", x)
    return bind("ne", x, x)


def _isposneginf(name, x, infinity):
    x = as_array(name, x)
    if is_complex(x.dtype):
        raise ValueError("isposinf/isneginf are not well defined for complex types")
    return bind("eq", x, constant(infinity, x.dtype)) if is_inexact(x.dtype) else broadcast_constant(np.bool_(False), x.shape)


@sections.infinity
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is positive infinity.

    >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    unsupported("isneginf/isposinf", out=out)
    return _isposneginf("isposinf", x, np.inf)


@sections.infinity
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is negative infinity.

    >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    unsupported("isneginf/isposinf", out=out)
    return _isposneginf("isneginf", x, -np.inf)


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


def nan_to_num(x: ArrayLike, copy: bool = True, nan: ArrayLike = 0.0, posinf: ArrayLike | None = None, neginf: ArrayLike | None = None) -> Array:
    """`x` with nan, inf and -inf replaced.

    Args:
        x: array of numbers.
        copy: without effect: arrays are not written to.
        nan: the replacement of nan.
        posinf: the replacement of inf; None: the largest number of the dtype.
        neginf: the replacement of -inf; None: the smallest number of the dtype.

    Returns:
        Array of x's shape and dtype; the parts of complex x are replaced separately.

    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan]))
    Array([1., 0.], dtype=float32)
    """
    if isinstance(copy, (bool, np.bool_)) and not copy:
        inert("nan_to_num", "copy", "arrays are not written to")
    x = as_array("nan_to_num", x)
    if type(nan) is float and nan == 0 and posinf is None and neginf is None:
        return _nan_to_num_jit(x)
    return _nan_to_num_jit(x, *[_core.asarray(v) if isinstance(v, list) else v for v in (nan, posinf, neginf)])


def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set, -0 and negative nan included.

    Args:
        x: array, bool, integer or real.

    Returns:
        Array of bool of x's shape.

    Raises:
        ValueError: for complex x.

    >>> jnp.signbit(jnp.array([-0.0, 1.0]))
    Array([ True, False], dtype=bool)
    """
    x = as_array("signbit", x)
    if is_complex(x.dtype):
        raise ValueError(f"jax.numpy.signbit is not well defined for {x.dtype.name}")
    return _signbit(x)


@jitted("signbit")
def _signbit(x):
    if is_bool(x.dtype) or is_unsigned(x.dtype):
        return broadcast_constant(np.bool_(False), x.shape)
    if is_integer(x.dtype):
        return bind("lt", x, constant(0, x.dtype))
    if x.dtype.name in ("float4_e2m1fn", "float8_e8m0fnu"):
        # whose sign is not a byte's highest bit
        x = convert(x, np.float32)
    bits = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[x.dtype.itemsize]
    x = bind("bitcast_convert_type", x, new_dtype=np.dtype(bits))
    x = bind("shift_right_arithmetic", x, bits(8 * np.dtype(bits).itemsize - 1))
    return bind("convert_element_type", x, new_dtype=np.dtype(bool), weak_type=False)


@jitted("copysign")
def _copysign(x, y):
    x, y = _core.promote_dtypes_inexact(x, y)
    x, y = promote_shapes(x, y)
    return where(signbit(y), bind("neg", bind("abs", x)), bind("abs", x))


def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """|x1| with the sign of x2.

    Args:
        x1, x2: arrays that broadcast, bool, integer or real.

    Returns:
        Array of the broadcast shape and the promoted dtype, made float where that is bool or an
        integer.

    Raises:
        TypeError: for complex dtypes.

    >>> jnp.copysign(jnp.array([1.0, 2.0]), -1.0)
    Array([-1., -2.], dtype=float32)
    """
    check_arraylike("copysign", x1, x2)
    if is_complex(dtype_of(x1)) or is_complex(dtype_of(x2)):
        raise TypeError("copysign does not support complex-valued inputs")
    return _copysign(x1, x2)


def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The float next to x in the direction of y.

    Args:
        x, y: arrays that broadcast, bool, integer or real.

    Returns:
        Array of the broadcast shape and the promoted dtype, made float where that is bool or an
        integer.

    Raises:
        TypeError: for complex dtypes.

    >>> jnp.nextafter(jnp.array([1.0]), 1.0)
    Array([1.], dtype=float32)
    """
    return pointwise("nextafter", "nextafter", x, y)


def spacing(x: ArrayLike, /) -> Array:
    """The distance from |x| to the next float, with x's sign.

    Args:
        x: array, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        ValueError: for complex x.

    >>> jnp.spacing(jnp.array([1.0]))
    Array([1.1920929e-07], dtype=float32)
    """
    (x,) = promote_inexact("spacing", x)
    if is_complex(x.dtype):
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    # narrow dtypes may have no infinity
    largest = _core.asarray(constant(finfo(x.dtype).max, x.dtype) if is_narrow(x.dtype) else scalar_like(np.inf, x))
    step = bind("sub", bind("nextafter", x, copysign(largest, x)), x)
    tiny = constant(finfo(x.dtype).smallest_subnormal, x.dtype)
    return where(bind("eq", step, scalar_like(0, x)), copysign(_core.asarray(tiny), x), step)


_FLOAT_LAYOUT = {2: (np.int16, 5, 10), 4: (np.int32, 8, 23), 8: (np.int64, 11, 52)}


def _frexp_of(x):
    if is_narrow(x.dtype):
        mantissa, exponent = _frexp_of(convert(x, np.float32))
        return convert(mantissa, x.dtype), exponent
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
        return (mantissa, exponent), (bind("mul", dv, scale), np.zeros(exponent.shape, float0))

    return tuple(_core.custom_jvp_call("_frexp", lambda v: _frexp_of(v), rule, [x]))


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """(mantissa, exponent) with x = mantissa * 2 ** exponent and 0.5 <= |mantissa| < 1.

    Args:
        x: array, bool, integer or real.

    Returns:
        Two arrays of x's shape: the mantissa, of x's dtype made float, and the exponent, int32.

    Raises:
        TypeError: for complex x.

    >>> jnp.frexp(jnp.array([8.0]))
    (Array([0.5], dtype=float32), Array([4], dtype=int32))
    """
    return tuple(_frexp(as_array("frexp", x)))


@jitted("ldexp")
def _ldexp(x, n):
    dtype = to_inexact(dtype_of(x))
    if is_narrow(dtype):
        return convert(_ldexp(convert(x, np.float32), n), dtype)
    x, n = promote_shapes(convert(x, dtype), convert(n, dtype))
    mantissa, exponent = _frexp(x)
    exponent = bind("add", *promote_shapes(convert(exponent, dtype), n))
    one = constant(1, dtype)
    # 2 ** exponent alone could overflow where the product does not.
    mantissa = where(bind("gt", exponent, constant(0, dtype)), bind("mul", mantissa, constant(2, dtype)), mantissa)
    exponent = where(bind("gt", exponent, constant(0, dtype)), bind("sub", exponent, one), exponent)
    out = bind("mul", mantissa, bind("pow", constant(2, dtype), exponent))
    return where(bind("or", isinf(x), bind("eq", x, constant(0, dtype))), x, out)


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 * 2 ** x2, of x1's dtype made float.

    Args:
        x1: array, bool, integer or real.
        x2: array that broadcasts with x1, integer or bool.

    Returns:
        Array of the broadcast shape, of x1's dtype made float.

    Raises:
        ValueError: otherwise.

    >>> jnp.ldexp(jnp.array([0.5]), 4)
    Array([8.], dtype=float32)
    """
    check_arraylike("ldexp", x1, x2)
    d1, d2 = dtype_of(x1), dtype_of(x2)
    if is_complex(d1) or is_inexact(d2):
        raise ValueError(f"ldexp not supported for input types {(d1, d2)}")
    return _ldexp(x1, x2)
