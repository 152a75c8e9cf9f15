"""Dtypes in Python: canonical widths, kinds, weak types.

Invariant: no function reads an array's elements. `canonicalize_dtype` is the one place in Python
where 64-bit names become 32-bit ones, which they do unless `jax_enable_x64` is set.

    >>> canonicalize_dtype(float)
    dtype('float32')
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core

if TYPE_CHECKING:
    import ml_dtypes

    from ..typing import DTypeLike

_python_scalars = {bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float64), complex: np.dtype(np.complex128)}
_narrow = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
_NARROWED = frozenset(_narrow.values())

# NumPy's own number types that arrays may have.
NUMPY_NUMBERS = (
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
)

# The dtype of tangents of integers and booleans. Its elements have no bytes.
float0 = np.dtype([("float0", np.void, 0)])


def x64_enabled() -> bool:
    """Whether 64-bit dtypes are enabled."""
    return bool(_core.config_get("jax_enable_x64"))


def _named(dtype) -> np.dtype:
    """numpy's dtype of that name; those of ml_dtypes are known to numpy once that is imported."""
    try:
        return np.dtype(dtype)
    except TypeError:
        if not isinstance(dtype, str):
            raise
        import ml_dtypes  # noqa: F401

        return np.dtype(dtype)


class extended(np.generic):
    """The abstract type of dtypes that NumPy does not have, for `issubdtype`."""


class prng_key(extended):
    """The kind of random keys' dtypes, for `issubdtype`."""


extended.__module__ = prng_key.__module__ = "ferrax.dtypes"


def is_key(dtype) -> bool:
    """Whether the dtype is that of random keys."""
    return isinstance(dtype, _core.KeyTy)


def scalar_class(dtype):
    """A dtype, a class of dtypes, or a value that names one, as numpy's class of scalars."""
    if isinstance(dtype, np.dtype):
        return dtype.type
    inner = getattr(dtype, "dtype", None)
    if isinstance(inner, np.dtype):
        return inner.type
    if isinstance(dtype, type):
        return _python_scalars[dtype].type if dtype in _python_scalars else dtype
    return _named(dtype).type


def issubdtype(arg1, arg2) -> bool:
    """Whether a dtype is at or below another in the hierarchy; ml_dtypes' are floating or integer.

    Args:
        arg1: dtype or scalar type.
        arg2: dtype, scalar type or abstract type (jnp.floating, jnp.integer, ...).

    Returns:
        bool.

    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
    True
    """
    if is_key(arg1):
        return arg2 in (prng_key, extended, np.generic) or (is_key(arg2) and arg1 == arg2)
    if is_key(arg2):
        return False
    a, b = scalar_class(arg1), scalar_class(arg2)
    if a is b:
        return True
    name = a.__name__
    if a.__module__.startswith("ml_dtypes"):
        if name.startswith(("bfloat", "float")):
            return b in (np.floating, np.inexact, np.number, np.generic)
        return b in ((np.unsignedinteger if name.startswith("uint") else np.signedinteger), np.integer, np.number, np.generic)
    if b.__module__.startswith("ml_dtypes"):
        return False
    return np.issubdtype(a, b)


def canonicalize_dtype(dtype: Any) -> np.dtype:
    """The dtype that arrays get when `dtype` is requested."""
    known = _python_scalars.get(dtype) if isinstance(dtype, type) else None
    if known is None:
        if is_key(dtype):
            return dtype
        # Scalar types such as jnp.float32 and arrays carry their dtype; numpy's classes have a descriptor there instead.
        inner = getattr(dtype, "dtype", None)
        known = inner if isinstance(inner, np.dtype) else _named(dtype)
    dtype = known
    if dtype in _narrow and not x64_enabled():
        return _narrow[dtype]
    return dtype


def requested(name, dtype, default=None):
    """The dtype that arrays get when a caller of `name` requests `dtype`, or `default` for None.

    Warns where it is narrower than the requested dtype. Raises ValueError for an array in place of
    its dtype, TypeError for a dtype of other things than numbers.
    """
    if dtype is None:
        return None if default is None else canonicalize_dtype(default)
    if isinstance(dtype, _core.Array):
        raise ValueError("Passing an array as a dtype argument is no longer supported; instead of dtype=arr use dtype=arr.dtype.")
    out = canonicalize_dtype(dtype)
    if not is_key(out) and out.kind in "OSUMm":
        where = f" in {name}" if name else ""
        raise TypeError(f"JAX only supports number, bool, and string dtypes, got dtype {dtype}{where}")
    if out in _NARROWED and not (isinstance(dtype, type) and dtype in _python_scalars) and not x64_enabled():
        inner = getattr(dtype, "dtype", None)
        wanted = inner if isinstance(inner, np.dtype) else _named(dtype)
        if wanted != out:
            narrowed(wanted.name, out.name, name, 4)
    return out


def narrowed(wanted: str, out: str, name, stacklevel=2):
    """Warns that a caller of `name` requests one dtype and gets another.

    Raises:
        ValueError: `jax_explicit_x64_dtypes` is "error".
    """
    where = f" requested in {name}" if name else ""
    if _core.config_get("jax_explicit_x64_dtypes") == "error":
        raise ValueError(
            f"Explicitly requested dtype {wanted}{where} is not available. To enable more dtypes, set the jax_enable_x64 configuration option or the"
            " FERRAX_ENABLE_X64 shell environment variable."
        )
    warnings.warn(
        f"Explicitly requested dtype {wanted}{where} is not available, and will be truncated to dtype {out}. To enable more dtypes, set "
        "the jax_enable_x64 configuration option or the FERRAX_ENABLE_X64 shell environment variable.",
        stacklevel=stacklevel,
    )


def dtype_of(x) -> np.dtype:
    """The dtype of an array or scalar, canonical."""
    if isinstance(x, _core.Array):
        return x.dtype
    t = type(x)
    if t in _python_scalars:
        return canonicalize_dtype(t)
    if isinstance(x, (np.ndarray, np.generic)):
        return canonicalize_dtype(x.dtype)
    return _core.asarray(x).dtype


def is_weak(x) -> bool:
    """Whether the dtype of x yields to the other operand's in promotion: Python numbers, and arrays
    made only from them.
    """
    if isinstance(x, _core.Array):
        return x.weak_type
    return type(x) in (int, float, complex)


def _is_extended(dtype: np.dtype) -> bool:
    # numpy calls the kind of most of ml_dtypes' dtypes "V", that of float8_e5m2 "f".
    return dtype.kind in "Vf" and dtype.type.__module__ == "ml_dtypes"


def _extended_float(dtype: np.dtype) -> bool:
    # bfloat16 and the smaller floats of ml_dtypes.
    return dtype.kind == "V" and dtype.name.startswith(("bfloat", "float"))


def _extended_int(dtype: np.dtype) -> bool:
    return dtype.kind == "V" and dtype.name.startswith(("int", "uint"))


def is_floating(dtype) -> bool:
    """Whether the dtype is real and inexact."""
    dtype = np.dtype(dtype)
    return dtype.kind == "f" or _extended_float(dtype)


def is_complex(dtype) -> bool:
    """Whether the dtype is complex; keys' is not."""
    return not is_key(dtype) and np.dtype(dtype).kind == "c"


def is_inexact(dtype) -> bool:
    """Whether the dtype is float or complex; keys' and float0 are not."""
    kind = getattr(dtype, "kind", None)
    if kind is None:
        return not is_key(dtype) and is_inexact(np.dtype(dtype))
    return kind in ("f", "c") or (kind == "V" and _extended_float(dtype))


def is_narrow(dtype) -> bool:
    """Whether the dtype promotes with no other: integers of up to 4 bits, floats of up to 8."""
    dtype = np.dtype(dtype)
    return dtype.itemsize == 1 and _is_extended(dtype)


def width(dtype) -> int:
    """The bits of one element, also where a byte could hold several."""
    dtype = np.dtype(dtype)
    if _extended_int(dtype):
        return iinfo(dtype).bits
    return finfo(dtype).bits if _extended_float(dtype) else 8 * dtype.itemsize


def is_integer(dtype) -> bool:
    """Whether the dtype is a signed or unsigned integer (bool is neither)."""
    dtype = np.dtype(dtype)
    return dtype.kind in "iu" or _extended_int(dtype)


def is_unsigned(dtype) -> bool:
    """Whether the dtype is an unsigned integer."""
    dtype = np.dtype(dtype)
    return dtype.kind == "u" or (dtype.kind == "V" and dtype.name.startswith("uint"))


def is_bool(dtype) -> bool:
    """Whether the dtype is bool."""
    return not is_key(dtype) and np.dtype(dtype).kind == "b"


def to_inexact(dtype) -> np.dtype:
    """The dtype itself if inexact; float64 for 64-bit integers, float32 for narrower ones and
    bool.
    """
    if is_inexact(dtype):
        return dtype
    return canonicalize_dtype(np.float64 if is_integer(dtype) and dtype.itemsize == 8 else np.float32)


def summed_in(dtype) -> np.dtype:
    """The dtype for intermediate sums, counts and squares of values of this inexact one: float32
    for floats of fewer bits, whose range these leave.
    """
    dtype = np.dtype(dtype)
    return np.dtype(np.float32) if is_floating(dtype) and dtype.itemsize <= 2 else dtype


def to_real(dtype) -> np.dtype:
    """The dtype of the real part."""
    dtype = np.dtype(dtype)
    return np.dtype(np.float32 if dtype.itemsize == 8 else np.float64) if dtype.kind == "c" else dtype


def to_complex(dtype) -> np.dtype:
    """The complex dtype whose parts can hold the dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return dtype
    return canonicalize_dtype(np.complex128) if dtype.itemsize == 8 else np.dtype(np.complex64)


def finfo(dtype: DTypeLike) -> np.finfo[Any]:
    """The limits of a floating-point dtype, including the small floats of ml_dtypes.

    Args:
        dtype: float or complex dtype.

    Returns:
        finfo, with the attributes `bits`, `eps`, `max`, `min`, `tiny` and others.

    Raises:
        ValueError: the dtype is not inexact.

    >>> jnp.finfo("bfloat16").bits
    16
    """
    dtype = np.dtype(dtype)
    if _is_extended(dtype):
        import ml_dtypes

        return ml_dtypes.finfo(dtype)
    return np.finfo(dtype)


def iinfo(dtype: DTypeLike) -> np.iinfo[Any] | ml_dtypes.iinfo:
    """The limits of an integer dtype, including the small integers of ml_dtypes.

    Args:
        dtype: integer dtype.

    Returns:
        iinfo, with the attributes `bits`, `max` and `min`.

    Raises:
        ValueError: the dtype is not an integer.

    >>> jnp.iinfo("int8").max
    127
    """
    dtype = np.dtype(dtype)
    if _is_extended(dtype):
        import ml_dtypes

        return ml_dtypes.iinfo(dtype)
    return np.iinfo(dtype)


def _has_inf(dtype):
    # In a format without inf, values out of range become nan or the greatest value.
    return not dtype.name.endswith(("fn", "fnuz", "fnu"))


def lowest(dtype):
    """The least value of the dtype, -inf for floats that have it: the identity of max."""
    if is_floating(dtype):
        return dtype.type(-np.inf) if _has_inf(dtype) else finfo(dtype).min
    if is_bool(dtype):
        return np.bool_(False)
    if is_complex(dtype):
        return dtype.type(complex(-np.inf, 0))
    return dtype.type(iinfo(dtype).min)


def highest(dtype):
    """The greatest value of the dtype, inf for floats that have it: the identity of min."""
    if is_floating(dtype):
        return dtype.type(np.inf) if _has_inf(dtype) else finfo(dtype).max
    if is_bool(dtype):
        return np.bool_(True)
    if is_complex(dtype):
        return dtype.type(complex(np.inf, 0))
    return dtype.type(iinfo(dtype).max)


def refuse_keys(*dtypes: Any) -> None:
    """Raises TypeError if one of the dtypes, of operands whose order or number counts, is that of
    random keys.
    """
    for dtype in dtypes:
        if is_key(dtype):
            raise TypeError(f"Cannot interpret '{dtype}' as a data type\nhelp: jax.random.key_data(key) gives a key as an array of integers")


def refuse_sorted_keys(*dtypes: Any) -> None:
    """Raises JAX's TypeError if one of the dtypes, of arrays to sort by, is that of random keys."""
    for i, dtype in enumerate(dtypes):
        if is_key(dtype):
            raise TypeError(f"lt_to does not accept dtype {dtype} at position {i}. Accepted dtypes at position {i} are subtypes of integer, floating, bool.")


def integer_of_float(value: float, dtype: Any) -> Any:
    """A float as a scalar of an integer dtype, converted as an array's elements are: cut to an
    integer, within the dtype's limits; 0 of nan.
    """
    limits = iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    number = 0 if value != value else high if value >= high else low if value <= low else int(value)
    return np.dtype(dtype).type(number)
