"""The methods and properties of arrays that are functions of `ferrax.numpy`, put on the class when
that module is imported.

Invariant: a method is the function of the same name with the array as first argument, unless it is
written out below.
"""

import functools
import operator
import sys
import warnings

import numpy as np

from ... import _core, lax
from ..._base.dtypes import is_inexact, requested, width
from ..._base.flags import refused
from ..._runtime.devices import device_put
from ..._sharding.parts import sharded
from .._creation import arrays as _creation, matrices as _matrices
from .._indexing import choosing as _choosing, selecting as _selecting, taking as _taking
from .._manipulation import rearranging as _rearranging, shaping as _shaping
from .._manipulation.joining import stack
from .._manipulation.shaping import ravel, reshape, swapaxes, transpose
from .._math import complex as _complex, rounding as _rounding
from .._products import products as _linear_algebra
from .._reductions import averages as _averages, cumulative as _cumulative, plain as _reductions
from .._sorting import searching as _searching, sorting as _sorting  # fmt: skip
from .arguments import check_arraylike

_FUNCTIONS = {
    _averages: "mean std var",
    _choosing: "choose",
    _complex: "conj",
    _creation: "copy",
    _cumulative: "cumprod cumsum",
    _linear_algebra: "dot trace",
    _matrices: "diagonal",
    _rearranging: "repeat",
    _reductions: "all any argmax argmin max min prod ptp sum",
    _rounding: "round",
    _searching: "nonzero searchsorted",
    _selecting: "clip",
    _shaping: "ravel squeeze swapaxes",
    _sorting: "argpartition argsort sort",
    _taking: "take",
}


_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def _reshape(self, *args, order="C", out_sharding=None):
    """The same elements in another shape: `x.reshape(2, 3)` or `x.reshape((2, 3))`; one size may be
    -1.
    """
    if out_sharding is not None:
        return sharded(_reshape, locals())
    return reshape(self, args[0] if len(args) == 1 else args, order)


def _transpose(self, *args):
    """The array with its axes permuted: `x.transpose(1, 0)` or `x.transpose((1, 0))`; reversed if
    none are given.
    """
    if len(args) == 1 and (args[0] is None or isinstance(args[0], (tuple, list))):
        args = args[0]
    return transpose(self, args or None)


def _flatten(self, order="C", *, out_sharding=None):
    """All elements as one axis."""
    if out_sharding is not None:
        return sharded(_flatten, locals())
    return ravel(self, order)


def _astype(self, dtype, copy=False, device=None):
    """The array converted to `dtype`; the array itself where it has that dtype, unless `copy`."""
    return _creation.astype(self, dtype, copy=copy, device=device)


def _compress(self, condition, axis=None, *, out=None, size=None, fill_value=0):
    """The slices along `axis` where `condition` is true."""
    if out is not None:
        refused("compress", "out", out, "arrays are not written to")
    return _searching.compress(condition, self, axis, size=size, fill_value=fill_value)


def _view(self, dtype=None, type=None):
    """The same bits as another dtype; the last axis grows or shrinks with the element's size."""
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    return self if dtype is None else _bits_as(self, requested("view", dtype))


def _bits_as(x, dtype):
    dtype = np.dtype(dtype)
    if x.dtype == dtype:
        return x
    ours, theirs = width(x.dtype), width(dtype)
    if not x.ndim:
        if ours != theirs:
            raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
        return _bits_as(x[None], dtype)[0]
    if x.shape[-1] * ours % theirs:
        raise ValueError("When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis of the array.")
    if x.dtype == bool:
        x = x.astype("uint8")
    # Complex numbers are pairs of floats.
    if x.dtype.kind == "c":
        x = stack([x.real, x.imag], axis=-1).reshape(*x.shape[:-1], -1)
    if dtype.kind == "c":
        x = _bits_as(x, "float32" if dtype.itemsize == 8 else "float64")
        return lax.complex(x[..., ::2], x[..., 1::2])
    target = np.dtype("uint8") if dtype == bool else dtype
    ours, theirs = width(x.dtype), width(target)
    if ours > theirs:
        out = lax.bitcast_convert_type(x, target)
        out = out.reshape(*x.shape[:-1], -1)
    elif ours < theirs:
        n = theirs // ours
        out = lax.bitcast_convert_type(x.reshape(*x.shape[:-1], -1, n), target)
    else:
        out = lax.bitcast_convert_type(x, target)
    return out != 0 if dtype == bool else out


def _byteswap(self):
    """The elements with their bytes in reverse order."""
    if self.itemsize == 1:
        return self
    octets = lax.bitcast_convert_type(self, "uint8")
    return lax.bitcast_convert_type(lax.rev(octets, (octets.ndim - 1,)), self.dtype)


def _to_device(self, device, *, stream=None):
    """The array on another device."""
    if stream is not None:
        refused("to_device", "stream", stream, "devices have one queue")
    return device_put(self, device)


def _clone(self):
    """A copy on the same device."""
    return _creation.copy(self)


def _contains(self, x):
    if isinstance(x, str) or x is None:
        raise TypeError(f"Array.__contains__: unsupported operand type {type(x)}.")
    check_arraylike("Array.__contains__", x)
    if self.ndim != 1:
        raise ValueError(f"Array.__contains__: search array must be one-dimensional, got arr.shape={tuple(self.shape)}.")
    if np.ndim(x):
        raise ValueError(f"Array.__contains__: query value must be a scalar, got query.shape={tuple(np.shape(x))}")
    return bool((self == x).any())


def _round(self, ndigits=None):
    """`round(x)`, to the nearest integers, of the default integer dtype; `round(x, n)` to n
    decimals, of x's.
    """
    if ndigits is not None:
        return _rounding.round(self, ndigits)
    if not is_inexact(self.dtype):
        return self.astype(int)
    return _rounding.rint(self.real if self.dtype.kind == "c" else self).astype(int)


def _as_dtype(self):
    """For `np.dtype(x)`: the dtype of x, with a warning."""
    warnings.warn(
        "Implicit conversion of an array to a dtype is deprecated; rather than dtype=arr use dtype=arr.dtype. In the future this will result in an error.",
        DeprecationWarning,
        stacklevel=2,
    )
    return self.dtype


def _namespace(self, *, api_version=None):
    """The functions of the array API standard for this array: `ferrax.numpy`.

    Raises ValueError for an unknown version of it.
    """
    if api_version is not None and api_version not in _API_VERSIONS:
        raise ValueError(f"__array_namespace__: api_version={api_version!r} is unknown; the known ones are {', '.join(_API_VERSIONS)}")
    return sys.modules["ferrax.numpy"]


def _repr_html_(self):
    """The representation in notebooks: the type, the device, a small picture, the elements."""
    from ..._base.html import array

    return array(self)


def _withdrawn(name, instead):
    def refuse(self):
        raise AttributeError(f"arr.{name} has been deprecated. Use {instead}")

    return refuse


def _format(self):
    from ..._base.layouts import row_major

    return row_major(self.ndim, self.sharding)


def _arrays(self):
    """The parts that this process holds; None of a deleted array."""
    return None if self.is_deleted() else [s.data for s in self.addressable_shards]


def _matrix_transpose(self):
    if self.ndim < 2:
        raise ValueError(f"x.mT requires x to have at least 2 dimensions, got {self.ndim}")
    return swapaxes(self, -1, -2)


def install():
    """Puts everything on the class."""
    methods = {name: _as_method(getattr(module, name)) for module, names in _FUNCTIONS.items() for name in names.split()}
    methods |= {
        "astype": _astype,
        "reshape": _reshape,
        "transpose": _transpose,
        "flatten": _flatten,
        "compress": _compress,
        "view": _view,
        "byteswap": _byteswap,
        "to_device": _to_device,
        "clone": _clone,
        "conjugate": methods["conj"],
        "__contains__": _contains,
        "__round__": _round,
        "__array_namespace__": _namespace,
        "_repr_html_": _repr_html_,
        "_fully_replicated_shard": lambda x: x.addressable_data(0),
    }
    properties = {
        "T": lambda x: transpose(x),
        "mT": _matrix_transpose,
        "real": _complex.real,
        "imag": _complex.imag,
        "format": _format,
        "device_buffer": _withdrawn("device_buffer", "arr.addressable_data(0)"),
        "device_buffers": _withdrawn("device_buffers", "[x.data for x in arr.addressable_shards]"),
        "flat": operator.methodcaller("ravel"),
        "_trace": _core.trace_of,
        "_arrays": _arrays,
        "_npy_value": lambda x: None,  # no copy of the elements is kept on the host
        "__numpy_dtype__": _as_dtype,
    }
    _core.install_methods(methods, properties)


def _as_method(f):
    """A function that binds as a method: builtin callables and jitted functions do not all have
    `__get__`.
    """
    if hasattr(type(f), "__get__"):
        return f

    @functools.wraps(f)
    def method(self, *args, **kwargs):
        return f(self, *args, **kwargs)

    return method
