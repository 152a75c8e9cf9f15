"""Further names of `jax._src.dtypes` and `jax._src.typing` that libraries use.

Invariant: dtypes are numpy's and those of ml_dtypes; widths follow the setting for 64 bits.
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np

from ... import _core
from ..._base.dtypes import _has_inf, canonicalize_dtype, dtype_of, is_weak, scalar_class, to_complex, to_inexact, x64_enabled
from ...interpreters._kinds import TypedComplex, TypedFloat, TypedInt
from ...typing import ArrayLike, DTypeLike

__all__ = [
    "ArrayLike",
    "DType",
    "DTypeLike",
    "DTypeLikeInexact",
    "DimSize",
    "DuckTypedArray",
    "EArray",
    "ExtendedDType",
    "Shape",
    "SupportsDType",
    "SupportsNdim",
    "SupportsShape",
    "SupportsSize",
    "canonicalize_dtype",
    "check_user_dtype_supported",
    "check_valid_dtype",
    "default_complex_dtype",
    "default_float_dtype",
    "default_int_dtype",
    "default_uint_dtype",
    "dtype",
    "is_python_scalar",
    "is_weakly_typed",
    "python_scalar_types",
    "safe_to_cast",
    "scalar_type_to_dtype",
    "short_dtype_name",
    "supports_inf",
    "to_complex_dtype",
    "to_inexact_dtype",
    "to_numeric_dtype",
]

DType, DTypeLikeInexact, Shape, DimSize = np.dtype, DTypeLike, tuple[Any, ...], int | Any
StaticScalar = np.bool_ | np.number | bool | int | float | complex
supports_inf, to_complex_dtype, to_inexact_dtype = _has_inf, to_complex, to_inexact
python_scalar_types = {bool, int, float, complex, TypedInt, TypedFloat, TypedComplex}
python_scalar_types_to_dtypes = {bool: np.dtype("bool"), int: np.dtype("int64"), float: np.dtype("float64"), complex: np.dtype("complex128")}


class ExtendedDType:
    """The base class of dtypes that libraries define; no array can have one."""


class EArray:
    """The class of arrays with such dtypes; no array has one."""


@runtime_checkable
class SupportsDType(Protocol):
    """A value with a dtype."""

    dtype: Any


@runtime_checkable
class SupportsShape(Protocol):
    """A value with a shape."""

    shape: Any


@runtime_checkable
class SupportsSize(Protocol):
    """A value with a size."""

    size: Any


@runtime_checkable
class SupportsNdim(Protocol):
    """A value with a number of axes."""

    ndim: Any


@runtime_checkable
class DuckTypedArray(Protocol):
    """A value with a shape and a dtype."""

    dtype: Any
    shape: Any


def _default(wide, narrow):
    return lambda: np.dtype(wide if x64_enabled() else narrow)


default_int_dtype, default_uint_dtype = _default(np.int64, np.int32), _default(np.uint64, np.uint32)
default_float_dtype, default_complex_dtype = _default(np.float64, np.float32), _default(np.complex128, np.complex64)
default_types = {"b": lambda: np.dtype("bool"), "i": default_int_dtype, "u": default_uint_dtype, "f": default_float_dtype, "c": default_complex_dtype}
int_, uint, float_, complex_ = np.int64, np.uint64, np.float64, np.complex128


def dtype(x):
    """The dtype of an array, of a number, or of anything that names a dtype."""
    return np.dtype(x) if isinstance(x, (type, str, np.dtype)) else dtype_of(x)


def scalar_type_to_dtype(typ, value=None):
    """The dtype of numbers of a Python type."""
    return {bool: np.dtype("bool"), int: default_int_dtype(), float: default_float_dtype(), complex: default_complex_dtype()}[typ]


def is_python_scalar(x):
    """Whether `x` is a Python number, or has a weak type."""
    return type(x) in python_scalar_types or (isinstance(x, _core.Array) and x.weak_type and x.ndim == 0)


def is_weakly_typed(x):
    """Whether x yields to the other operand in promotion."""
    return is_weak(x)


def to_numeric_dtype(dtype):
    """The dtype itself; int32 for bool."""
    return np.dtype(np.int32) if np.dtype(dtype) == np.bool_ else np.dtype(dtype)


def check_valid_dtype(dtype):
    """Refuses dtypes that no array can have.

    Raises:
        TypeError: it is one.
    """
    scalar_class(dtype)


def check_user_dtype_supported(dtype, fun_name=None):
    """Refuses dtypes that no array can have, and warns of widths that are not there; gives the
    dtype.
    """
    check_valid_dtype(dtype)
    return np.dtype(dtype)


def safe_to_cast(input_dtype_or_value, output_dtype_or_value):
    """Whether one yields to the other in promotion."""
    a, b = dtype(input_dtype_or_value), dtype(output_dtype_or_value)
    return _core.result_type(a, b) == b


def short_dtype_name(dtype):
    """`f32`, `i64`, `bool`."""
    name = np.dtype(dtype).name
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        if name.startswith(long):
            return short + name.removeprefix(long)
    return name
