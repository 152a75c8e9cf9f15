"""Scalar types and queries of dtypes: jnp.float32, finfo, iinfo, issubdtype, promote_types.

Invariant: a scalar type is a class whose `dtype` is its dtype and which, called, makes an array;
np.dtype(jnp.float32) works.

    >>> jnp.float32(1)
    Array(1., dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ... import _core
from ..._base.config import enable_x64
from ..._base.dtypes import canonicalize_dtype, finfo as _finfo, iinfo as _iinfo, is_integer, issubdtype, requested, scalar_class
from .._creation.arrays import asarray

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike


class _ScalarMeta(type):
    dtype: np.dtype[Any]

    def __hash__(self) -> int:
        return hash(self.dtype.type)

    def __eq__(self, other):
        # NumPy's class compares itself with NumPy types, and also with dtypes, since `in` calls the comparison of the left operand.
        return self is other or self.dtype.type == other

    def __ne__(self, other):
        return not self == other

    def __call__(self, x: Any = 0) -> Array:
        if isinstance(x, str):
            x = self.dtype.type(x)
        return asarray(x, dtype=self.dtype)

    def __instancecheck__(self, instance):
        return isinstance(instance, self.dtype.type)


def _make(name, dtype) -> _ScalarMeta:
    return _ScalarMeta(
        name,
        (object,),
        {"dtype": np.dtype(dtype), "__module__": "ferrax.numpy", "__doc__": f"The scalar type {name}: its dtype, and a function to arrays of it."},
    )


bool_ = _make("bool_", np.bool_)
uint8, uint16, uint32, uint64 = (_make(n, n) for n in ("uint8", "uint16", "uint32", "uint64"))
int8, int16, int32, int64 = (_make(n, n) for n in ("int8", "int16", "int32", "int64"))
float16, float32, float64 = (_make(n, n) for n in ("float16", "float32", "float64"))
complex64, complex128 = (_make(n, n) for n in ("complex64", "complex128"))
single, double, csingle, cdouble = float32, float64, complex64, complex128

# ml_dtypes is imported at the first use of one of its dtypes.
EXTENDED = (
    "bfloat16", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "int1", "int2", "int4", "uint1", "uint2", "uint4",
)  # fmt: skip


def extended(name) -> _ScalarMeta:
    """The scalar type of an ml_dtypes dtype."""
    import ml_dtypes

    if not hasattr(ml_dtypes, name):
        raise AttributeError(f"module 'ferrax.numpy' has no attribute '{name}': this ml_dtypes has no such dtype")
    return _make(name, getattr(ml_dtypes, name))


def numpys_dtype():
    """`numpy.dtype`, which knows the names of ml_dtypes' dtypes once those are imported:
    `dtype("bfloat16")`.
    """
    import ml_dtypes  # noqa: F401

    return np.dtype


# The default widths: these follow jax_enable_x64 when they are used, as canonicalize_dtype does.
int_, uint, float_, complex_ = int64, uint64, float64, complex128


def result_type(*args: Any) -> np.dtype[Any]:
    """The dtype that arrays, numbers and dtypes promote to.

    Args:
        *args: arrays, numbers and dtypes.

    Returns:
        numpy dtype.

    Raises:
        ValueError: for no arguments.

    >>> jnp.result_type(jnp.int8(1), 1.0)
    dtype('float32')
    """
    if not args:
        raise ValueError("at least one array or dtype is required")
    return _core.result_type(*[_for_promotion(a) for a in args])


def _for_promotion(a):
    if isinstance(a, _ScalarMeta):
        return a.dtype
    if isinstance(a, type) and a in (bool, int, float, complex):
        return a
    return requested("dtype", a) if isinstance(a, (str, type, np.dtype)) else a


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype[Any]:
    """The dtype that two dtypes promote to; Python's int, float and complex are weak.

    Args:
        a, b: dtypes, or Python's int, float and complex.

    Returns:
        numpy dtype.

    Raises:
        TypePromotionError: for dtypes without a common one.

    >>> jnp.promote_types("int8", "uint8")
    dtype('int16')
    """
    pair = []
    for t in (a, b):
        pair.append(t if isinstance(t, type) and t in (int, float, complex) else np.dtype(scalar_class(t)))
    # A result that a Python number's type alone decides is the dtype that numpy gives that type, of 64 bits.
    for t, other in (pair, pair[::-1]):
        if isinstance(t, type) and (isinstance(other, type) or other.kind == "b" or (t is not int and is_integer(other))):
            return np.dtype(max((x for x in pair if isinstance(x, type)), key=[int, float, complex].index))
    numbers = [_number(t) if isinstance(t, type) else t for t in pair]
    if any(isinstance(t, np.dtype) and ((t.itemsize == 8 and t.kind in "iuf") or t.itemsize == 16) for t in pair):
        with enable_x64(True):
            return _core.result_type(*numbers)
    return _core.result_type(*numbers)


def _number(t):
    return {int: 0, float: 0.0, complex: 0j}[t]


def can_cast(from_: DTypeLike | ArrayLike, to: DTypeLike, casting: str = "safe") -> bool:
    """Whether a cast is allowed under a rule, as numpy.can_cast.

    Args:
        from_: dtype or array.
        to: dtype.
        casting: "no", "equiv", "safe" (all values are kept), "same_kind" or "unsafe".

    Returns:
        bool.

    Raises:
        TypeError: for Python numbers.

    >>> jnp.can_cast("int32", "float32")
    False
    """
    if type(from_) in (int, float, complex):
        raise TypeError(
            "can_cast() does not support Python ints, floats, and complex because the result used to depend on the value.\n"
            "This change was part of adopting NEP 50, we may explicitly allow them again in the future."
        )
    return np.can_cast(np.dtype(scalar_class(from_)), np.dtype(scalar_class(to)), casting=casting)


def isdtype(dtype: DTypeLike, kind: str | DTypeLike | tuple[str | DTypeLike, ...]) -> bool:
    """Whether dtype is of a kind.

    Args:
        dtype: dtype.
        kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex
          floating", "numeric", a dtype, or a tuple of these.

    Returns:
        bool.

    Raises:
        ValueError: for another kind.

    >>> jnp.isdtype(jnp.float32, "real floating")
    True
    """
    groups = {
        "bool": (np.bool_,), "signed integer": (np.signedinteger,), "unsigned integer": (np.unsignedinteger,), "integral": (np.integer,),
        "real floating": (np.floating,), "complex floating": (np.complexfloating,), "numeric": (np.number,),
    }  # fmt: skip
    for k in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(k, str) and k in groups:
            if any(issubdtype(dtype, g) for g in groups[k]):
                return True
            continue
        try:
            named = np.dtype(scalar_class(k))
        except TypeError as e:
            if not isinstance(k, str):
                raise
            raise ValueError(f"Unrecognized kind={k!r} expected one of {list(groups)}, or a compatible input for jnp.dtype()") from e
        if np.dtype(scalar_class(dtype)) == named:
            return True
    return False


class finfo(np.finfo):
    """Limits of a float dtype: eps, max, min, tiny, bits, ... Also of the dtypes of ml_dtypes."""

    def __new__(cls, dtype: DTypeLike) -> Self:
        return _finfo(scalar_class(dtype))


class iinfo(np.iinfo):
    """Limits of an integer dtype: max, min, bits. ml_dtypes' dtypes too."""

    def __new__(cls, int_type: DTypeLike) -> Self:
        if hasattr(int_type, "dtype") and not isinstance(int_type, type):
            int_type = int_type.dtype
        return _iinfo(scalar_class(int_type)) if not isinstance(int_type, int) else _iinfo(canonicalize_dtype(int))

    def __init__(self, int_type):
        pass
