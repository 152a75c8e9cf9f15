"""Exchange of arrays with other libraries: they read an array in place, and their elements are
copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._base.dtypes import NUMPY_NUMBERS, canonicalize_dtype

if TYPE_CHECKING:
    from ._core import Array, Device
    from .sharding import Sharding
    from .typing import DTypeLike

__all__ = ["from_dlpack", "is_supported_dtype"]

_SUPPORTED = {*(np.dtype(t) for t in NUMPY_NUMBERS), canonicalize_dtype("bfloat16")}
_HOST = 1  # DLPack's number of a device


def from_dlpack(external_array: Any, device: Device | Sharding | None = None, copy: bool | None = None) -> Array:
    """An array of another library as an `Array`. Elements are copied, except those of an `Array`.

    Args:
        external_array: object with `__dlpack__` and `__dlpack_device__`, in host memory.
        device: Device or Sharding of the result; by default the default device.
        copy: bool or None; False raises where a copy is needed, True copies an `Array` too.

    Returns:
        Array of the same shape and dtype.

    Raises:
        TypeError: the object has no DLPack methods.
        ferrax.errors.TracerArrayConversionError: the array is a tracer.
        ValueError: a copy is needed and not allowed.
    """
    if not hasattr(external_array, "__dlpack__"):
        raise TypeError(f"The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods, got {type(external_array)}.")
    if isinstance(external_array, _core.Tracer):
        out = np.asarray(external_array)  # the error that says why there are no elements
    elif isinstance(external_array, _core.Array):
        out = _core.asarray(external_array, copy=copy, weak_type=False)
    elif copy is False:
        raise ValueError("Specified input which requires a copy since its memory belongs to another library. However copy=False. Set copy=True or copy=None.")
    else:
        out = _core.asarray(_view(external_array))
    return out if device is None else _core.device_put(out, device)


def _view(external_array):
    """The elements as numpy has them. bfloat16 and the floats of 8 bits, for which it has no code,
    pass as unsigned integers.
    """
    try:
        return np.from_dlpack(external_array)
    except (RuntimeError, BufferError):
        if external_array.__dlpack_device__()[0] != _HOST:
            raise
        try:
            capsule = external_array.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = external_array.__dlpack__()
        name = _core.dlpack_as_bits(capsule)
        if name is None:
            raise
        return np.from_dlpack(_Taken(capsule)).view(canonicalize_dtype(name))


class _Taken:
    """A wrapper of a capsule that exists already."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return _HOST, 0


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether DLPack can exchange arrays of a dtype.

    Floats of 8 bits need a consumer that knows DLPack 1.1.

    Args:
        dtype: anything that names a dtype.

    Returns:
        bool.

    >>> jax.dlpack.is_supported_dtype("int8"), jax.dlpack.is_supported_dtype("int4")
    (True, False)
    """
    return canonicalize_dtype(dtype) in _SUPPORTED
