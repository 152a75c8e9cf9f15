"""Dtypes: promotion, canonical widths, kinds, limits.

Invariant: numpy's dtypes, and those of ml_dtypes that numpy lacks. ml_dtypes is imported when the
first of them is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from . import _core
from ._base.dtypes import canonicalize_dtype as _canonicalize, extended, finfo, float0, iinfo, is_key, issubdtype as _issubdtype, prng_key, requested

if TYPE_CHECKING:
    from ml_dtypes import bfloat16 as bfloat16

    from .typing import DTypeLike

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]

_ML_DTYPES = {
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "int2",
    "int4",
    "uint2",
    "uint4",
}


class TypePromotionError(ValueError):
    """Dtypes do not promote to a common one under the rules in force."""


def issubdtype(a: Any, b: Any) -> bool:
    """Whether one dtype is at or below another in NumPy's hierarchy; the small floats and integers
    of ml_dtypes are floating or integer.

    Args:
        a: dtype, scalar type or abstract type.
        b: dtype, scalar type, or abstract type such as `jnp.floating`, `jnp.integer` or
          `jax.dtypes.prng_key`.

    Returns:
        bool.

    >>> jax.dtypes.issubdtype(random.key(0).dtype, jax.dtypes.prng_key)
    True
    """
    return _issubdtype(a, b)


if not TYPE_CHECKING:  # a checker would take every name for one of the module's

    def __getattr__(name):
        if name in _ML_DTYPES:
            import ml_dtypes

            return getattr(ml_dtypes, name)
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: bool = False) -> np.dtype[Any]:
    """The dtype that arrays get when `dtype` is requested: 64-bit types become 32-bit ones unless
    `jax_enable_x64` is set.

    Args:
        dtype: anything that names a dtype.
        allow_extended_dtype: bool; whether a dtype of random keys is returned as it is.

    Returns:
        The dtype.

    Raises:
        ValueError: a dtype of random keys is given and not allowed.

    >>> jax.dtypes.canonicalize_dtype("float64")
    dtype('float32')
    """
    if is_key(dtype):
        if allow_extended_dtype:
            return dtype
        raise ValueError(f"Internal: canonicalize_dtype called on extended dtype {dtype} with allow_extended_dtype=False")
    return _canonicalize(dtype)


def itemsize_bits(dtype: DTypeLike) -> int:
    """The number of bits of an element.

    Args:
        dtype: anything that names a dtype.

    Returns:
        int: 2 and 4 for the integers and floats of these widths, else eight times the dtype's
        itemsize.

    >>> jax.dtypes.itemsize_bits(jnp.dtype("int4"))
    4
    """
    name = np.dtype(dtype).name
    if name in ("int2", "uint2"):
        return 2
    return 4 if name in ("int4", "uint4", "float4_e2m1fn") else np.dtype(dtype).itemsize * 8


@overload
def result_type(*args: Any, return_weak_type_flag: Literal[False] = False) -> np.dtype[Any]: ...


@overload
def result_type(*args: Any, return_weak_type_flag: Literal[True]) -> tuple[np.dtype[Any], bool]: ...


@overload
def result_type(*args: Any, return_weak_type_flag: bool = False) -> np.dtype[Any] | tuple[np.dtype[Any], bool]: ...


def result_type(*args: Any, return_weak_type_flag: bool = False) -> np.dtype[Any] | tuple[np.dtype[Any], bool]:
    """The dtype to which the arguments promote.

    Args:
        *args: arrays, scalars or dtypes.
        return_weak_type_flag: bool; whether to return also if the result is weakly typed.

    Returns:
        The dtype; with the flag a pair (dtype, bool).

    Raises:
        TypePromotionError: the arguments do not promote to a common dtype under the setting
          `jax_numpy_dtype_promotion`.

    >>> jax.dtypes.result_type(jnp.float16, 1.5)
    dtype('float16')
    """
    dtype = _core.result_type(*[requested("dtype", a) if isinstance(a, (str, type, np.dtype)) else a for a in args])
    if not return_weak_type_flag:
        return dtype
    return dtype, all(type(x) in (int, float, complex) or getattr(x, "weak_type", False) for x in args)


def scalar_type_of(x: Any) -> type[Any]:
    """The Python scalar type of an array's kind.

    Args:
        x: array or scalar.

    Returns:
        bool, int, float or complex, the type itself.

    Raises:
        TypeError: the dtype is of none of these kinds.

    >>> jax.dtypes.scalar_type_of(1.5)
    <class 'float'>
    """
    dtype = _core.get_aval(x).dtype
    for kind, t in ((np.bool_, bool), (np.integer, int), (np.floating, float), (np.complexfloating, complex)):
        if issubdtype(dtype, kind):
            return t
    raise TypeError(f"Invalid scalar value {x}")
