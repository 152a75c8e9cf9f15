"""Exchange of arrays with other libraries, without copying where the memory allows."""

import numpy as np

from . import _core
from ._dtypes import NUMPY_NUMBERS

__all__ = ["from_dlpack", "is_supported_dtype"]

_SUPPORTED = {np.dtype(t) for t in NUMPY_NUMBERS}


def from_dlpack(external_array, device=None, copy=None):
    """An array of another library as an `Array`.

    Args:
      external_array: an object with `__dlpack__` and `__dlpack_device__`, in host memory.
      device: where to put it.
      copy: True copies; False raises where a copy is needed; None copies if need be.

    Raises:
      TypeError: the object does not speak DLPack. ValueError: a copy is needed and not allowed.
    """
    if not hasattr(external_array, "__dlpack__"):
        raise TypeError(f"The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods, got {type(external_array)}.")
    # numpy reads bfloat16 of the library's own arrays, but not by DLPack
    view = np.asarray(external_array) if isinstance(external_array, _core.Array) else np.from_dlpack(external_array)
    out = _core.asarray(view, copy=copy)
    return out if device is None else _core.device_put(out, device)


def is_supported_dtype(dtype):
    """Whether arrays of a dtype can be exchanged."""
    return np.dtype(dtype) in _SUPPORTED
