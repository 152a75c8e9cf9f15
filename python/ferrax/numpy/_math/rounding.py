"""Rounding to whole numbers and to decimals.

Invariant: integers are returned unchanged, except by `rint`, which converts them to float; ties go
to the even neighbour.

    >>> jnp.round(jnp.array([0.5, 1.5, 2.5]))
    Array([0., 2., 2.], dtype=float32)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.dtypes import canonicalize_dtype, finfo, is_bool, is_complex, is_inexact, refuse_keys
from ..._core import bind
from ...lax import RoundingMethod
from .._indexing.selecting import where
from .._support import sections
from .._support.arguments import as_array, check_arraylike, convert, filled_like, jitted, promote_inexact, scalar_like, unsupported

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


@sections.rounding
def ceil(x: ArrayLike, /) -> Array:
    """The least integer not below x, of x's dtype.

    >>> jnp.ceil(jnp.array([1.2, -1.2]))
    Array([ 2., -1.], dtype=float32)
    """
    x = as_array("ceil", x)
    refuse_keys(x.dtype)
    return x if not is_inexact(x.dtype) else bind("ceil", x)


@sections.rounding
def floor(x: ArrayLike, /) -> Array:
    """The greatest integer not above x, of x's dtype.

    >>> jnp.floor(jnp.array([1.2, -1.2]))
    Array([ 1., -2.], dtype=float32)
    """
    x = as_array("floor", x)
    refuse_keys(x.dtype)
    return x if not is_inexact(x.dtype) else bind("floor", x)


@jitted("trunc")
def _trunc(x):
    refuse_keys(x.dtype)
    if not is_inexact(x.dtype):
        return x
    return where(bind("lt", x, scalar_like(0, x)), bind("ceil", x), bind("floor", x))


@sections.rounding
def trunc(x: ArrayLike) -> Array:
    """`x` rounded towards zero, of x's dtype.

    >>> jnp.trunc(jnp.array([1.2, -1.2]))
    Array([ 1., -1.], dtype=float32)
    """
    return _trunc(as_array("trunc", x))


@jitted("rint")
def _rint(x):
    if not is_inexact(x.dtype):
        return convert(x, canonicalize_dtype(float))
    if is_complex(x.dtype):
        return bind("complex", _rint(bind("real", x)), _rint(bind("imag", x)))
    return bind("round", x, rounding_method=RoundingMethod.TO_NEAREST_EVEN)


@sections.as_float
def rint(x: ArrayLike, /) -> Array:
    """`x` rounded to the nearest integer, ties to even; integers become float.

    >>> jnp.rint(jnp.array([0.5, 1.5]))
    Array([0., 2.], dtype=float32)
    """
    return _rint(as_array("rint", x))


@jitted("round", static=("decimals",))
def _round(a, decimals=0):
    refuse_keys(a.dtype)
    if is_bool(a.dtype):
        raise ValueError("data type <class 'numpy.bool'> not inexact")
    if not is_inexact(a.dtype):
        if decimals < 0:
            raise NotImplementedError("integer np.round not implemented for decimals < 0")
        return a

    if decimals > np.log10(float(finfo(a.dtype).max)):
        return a  # more decimals than any element has

    def nearest(x):
        if decimals == 0:
            return bind("round", x, rounding_method=RoundingMethod.TO_NEAREST_EVEN)
        # Half precision is scaled in single precision, where 10 ** decimals does not overflow so soon.
        narrow = x.dtype if x.dtype.itemsize == 2 else None
        if narrow is not None:
            x = convert(x, np.float32)
        factor = filled_like(10.0**decimals if decimals > 0 else 10.0**-decimals, x)
        up, down = ("mul", "div") if decimals > 0 else ("div", "mul")
        x = bind(down, bind("round", bind(up, x, factor), rounding_method=RoundingMethod.TO_NEAREST_EVEN), factor)
        return x if narrow is None else convert(x, narrow)

    if is_complex(a.dtype):
        return bind("complex", nearest(bind("real", a)), nearest(bind("imag", a)))
    return nearest(a)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """`a` rounded to `decimals` decimals, ties to even.

    Args:
        a: array of integers, real or complex numbers.
        decimals: int, places behind the point; negative: in front of it.
        out: not supported; must be None.

    Returns:
        Array of a's shape and dtype.

    Raises:
        ValueError: for bool.
        NotImplementedError: for integers and negative decimals.

    >>> jnp.round(jnp.array([1.25, 2.75]), 1)
    Array([1.2, 2.8], dtype=float32)
    """
    unsupported("jnp.round", out=out)
    return _round(as_array("round", a), decimals=operator.index(decimals))


@jitted("around", static=("decimals",))
def _around(a, decimals):
    return round(a, decimals)


def around(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """The same as `round`.

    Args:
        a: array of integers, real or complex numbers.
        decimals: int, places behind the point; negative: in front of it.
        out: not supported; must be None.

    Returns:
        Array of a's shape and dtype.

    Raises:
        NotImplementedError: if `out` is given.

    >>> jnp.around(jnp.array([1.25, 2.5]), 1)
    Array([1.2, 2.5], dtype=float32)
    """
    unsupported("jnp.round", out=out)
    return _around(as_array("around", a), decimals=operator.index(decimals))


@jitted("modf")
def _modf(x):
    (x,) = promote_inexact("modf", x)
    whole = where(bind("ge", x, scalar_like(0, x)), bind("floor", x), bind("ceil", x))
    return bind("sub", x, whole), whole


def modf(x: ArrayLike, /, out: Any = None) -> tuple[Array, Array]:
    """(fractional part, whole part), both of x's sign.

    Args:
        x: array, bool, integer or real.
        out: not supported; must be None.

    Returns:
        Two arrays of x's shape, of its dtype made float.

    Raises:
        TypeError: for complex x.
        NotImplementedError: if `out` is given.

    >>> jnp.modf(jnp.array([1.5]))
    (Array([0.5], dtype=float32), Array([1.], dtype=float32))
    """
    unsupported("jnp.modf", out=out)
    check_arraylike("modf", x)
    return tuple(_modf(x))
