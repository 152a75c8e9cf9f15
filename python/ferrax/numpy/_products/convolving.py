"""Convolution and correlation of vectors.

Invariant: the result's size depends on the sizes and the mode alone; the products are those of
`lax.conv_general_dilated`.

    >>> jnp.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 2.], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _core
from ..._base.dtypes import requested
from ..._core import bind
from ...lax import conv_general_dilated
from ...lax._convolution import check_preferred
from .._manipulation.rearranging import flip
from .._math.complex import conj
from .._support.arguments import check_arraylike, jitted, ndim_of, shape_of

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike


@jitted("_conv", static=("mode", "op", "precision", "dtype"))
def _conv(x, y, mode, op, precision, dtype):
    if op == "correlate":
        y = conj(y)
    if dtype is None:
        x, y = _core.promote_dtypes_inexact(x, y)
    else:
        x, y = _core.promote_dtypes(x, y)
        check_preferred(x.dtype, dtype)
        if x.dtype.kind in "biu":  # summed in the requested dtype: exact, whatever the signs of the two
            x, y = x.astype(dtype), y.astype(dtype)
    out_order = slice(None)
    if op == "correlate" and x.shape[0] < y.shape[0]:
        x, y = y, x
        out_order = slice(None, None, -1)
        x, y = conj(x), conj(y)
        x, y = (x, y)
    elif op == "convolve" and x.shape[0] < y.shape[0]:
        x, y = y, x
    if op == "convolve":
        y = flip(y)
    n = y.shape[0]
    pads = {"full": (n - 1, n - 1), "same": (n // 2, n - n // 2 - 1), "valid": (0, 0)}
    if mode not in pads:
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    out = conv_general_dilated(x[None, None, :], y[None, None, :], (1,), [pads[mode]], precision=precision, preferred_element_type=dtype)
    out = bind("squeeze", out, dimensions=(0, 1))
    if out_order != slice(None):
        out = conj(out[out_order])
    return out


def _one_dimensional(name, a, v, mode, precision, preferred):
    check_arraylike(name, a, v)
    if ndim_of(a) != 1 or ndim_of(v) != 1:
        raise ValueError(f"{name}() only support 1-dimensional inputs.")
    if shape_of(a)[0] == 0 or shape_of(v)[0] == 0:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {shape_of(a)} and {shape_of(v)}.")
    dtype = requested("conv_general_dilated", preferred)
    return _core.asarray(a), _core.asarray(v), dict(mode=mode, precision=precision, dtype=dtype)


@jitted("convolve", static=("mode", "precision", "dtype"))
def _convolve(a, v, mode, precision, dtype):
    return _conv(a, v, mode=mode, op="convolve", precision=precision, dtype=dtype)


def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: Any = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """Convolution of two vectors: sum over m of a[m] v[n - m].

    Args:
        a, v: vectors, not empty.
        mode: "full", "same" (as long as the longer) or "valid" (without edges).
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.

    Returns:
        Vector of the promoted dtype made float.

    Raises:
        ValueError: for other ranks, empty vectors and another mode.

    >>> jnp.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 2.], dtype=float32)
    """
    a, v, options = _one_dimensional("convolve", a, v, mode, precision, preferred_element_type)
    return _convolve(a, v, **options)


@jitted("correlate", static=("mode", "precision", "dtype"))
def _correlate(a, v, mode, precision, dtype):
    return _conv(a, v, mode=mode, op="correlate", precision=precision, dtype=dtype)


def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: Any = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """Correlation of two vectors: sum over n of a[n + k] conj(v[n]).

    Args:
        a, v: vectors, not empty.
        mode: "valid" (without edges), "same" (as long as the longer) or "full".
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.

    Returns:
        Vector of the promoted dtype made float.

    Raises:
        ValueError: for other ranks, empty vectors and another mode.

    >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0]))
    Array([2., 3.], dtype=float32)
    """
    a, v, options = _one_dimensional("correlate", a, v, mode, precision, preferred_element_type)
    return _correlate(a, v, **options)
