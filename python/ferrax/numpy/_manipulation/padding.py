"""`pad`: arrays extended at their edges, in numpy's modes.

Invariant: `pad` reads and checks its arguments; `_pad` gets static widths and traced values, and is
one inner `jit`, as in JAX.

    >>> jnp.pad(jnp.arange(3), 1)
    Array([0, 0, 1, 2, 0], dtype=int32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._base.shapes import canonicalize_axis
from ..._base.tracebacks import api_boundary
from ..._core import bind
from ...lax import slice_in_dim
from .._creation.arrays import array as make_array
from .._creation.filled import zeros
from .._creation.ranges import linspace
from .._functional.vectorizing import apply_along_axis
from .._math import rounding as _rounding
from .._math.operators import multiply, subtract
from .._reductions import averages as _averages, plain as _reductions, statistics as _statistics
from .._support.arguments import Array, as_array, concrete_or_error, convert, exactly, jitted, ndim_of
from .joining import concatenate
from .rearranging import flip, repeat
from .shaping import broadcast_to, squeeze

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...typing import ArrayLike


def _pairs(name, value, n):
    value = np.asarray(value)
    if value.shape in ((), (1,)):
        return [(v, v) for v in [value.ravel()[0]] * n]
    if value.shape == (n, 2):
        return [tuple(row) for row in value]
    if value.shape in ((2,), (1, 2)):
        return [tuple(value.ravel())] * n
    raise ValueError(f"jnp.pad: {name} with nd={n} has unsupported shape {value.shape}. Valid shapes are ({n}, 2), (1, 2), (2,), (1,), or ().")


_PAD_KEYWORDS = {
    "constant": {"constant_values": 0}, "linear_ramp": {"end_values": 0}, "maximum": {"stat_length": None}, "minimum": {"stat_length": None},
    "mean": {"stat_length": None}, "median": {"stat_length": None}, "reflect": {"reflect_type": "even"}, "symmetric": {"reflect_type": "even"},
    "edge": {}, "wrap": {}, "empty": {},
}  # fmt: skip


def _padded_axes(a, widths, mode):
    """The axes that are to be longer, each with its size and widths. Raises ValueError where such an
    axis has no element to continue from.
    """
    padded = [(d, a.shape[d], *pair) for d, pair in enumerate(widths) if any(pair)]
    if any(n == 0 for _, n, _, _ in padded):
        raise ValueError(
            "stat_length of 0 yields no value for padding" if "stat_length" in _PAD_KEYWORDS[mode] else f"Cannot apply '{mode}' padding to empty axis"
        )
    return padded


def _pad_reflect(a, widths, mode, odd):
    for d, n, before, after in _padded_axes(a, widths, mode):
        skip = 1 if mode == "reflect" else 0
        if n == 1 and skip:
            a = _pad_edge(a, [(before, after) if k == d else (0, 0) for k in range(a.ndim)])
            continue
        for front, width in ((True, before), (False, after)):
            left = width
            while left > 0:
                # Each pass mirrors as much as there is.
                m = a.shape[d]
                take = min(left, n - skip)
                edge = slice_in_dim(a, 0, 1, axis=d) if front else slice_in_dim(a, m - 1, m, axis=d)
                piece = slice_in_dim(a, skip, skip + take, axis=d) if front else slice_in_dim(a, m - take - skip, m - skip, axis=d)
                piece = flip(piece, d)
                if odd:
                    piece = subtract(multiply(2, edge), piece)
                a = concatenate([piece, a] if front else [a, piece], axis=d)
                left -= take
    return a


def _pad_edge(a, widths):
    for d, n, before, after in _padded_axes(a, widths, "edge"):
        parts = [repeat(slice_in_dim(a, 0, 1, axis=d), before, axis=d)] if before else []
        parts.append(a)
        if after:
            parts.append(repeat(slice_in_dim(a, n - 1, n, axis=d), after, axis=d))
        a = concatenate(parts, axis=d)
    return a


def _pad_wrap(a, widths):
    for d, n, before, after in _padded_axes(a, widths, "wrap"):
        full_before, rest_before = divmod(before, n)
        full_after, rest_after = divmod(after, n)
        total = full_before + full_after + 1
        parts = [slice_in_dim(a, n - rest_before, n, axis=d)] if rest_before else []
        parts += [a] * total
        if rest_after:
            parts.append(slice_in_dim(a, 0, rest_after, axis=d))
        a = concatenate(parts, axis=d)
    return a


def _pad_ramp(a, widths, ends):
    for d, n, before, after in _padded_axes(a, widths, "linear_ramp"):
        low, high = ends[d]
        first, last = squeeze(slice_in_dim(a, 0, 1, axis=d), d), squeeze(slice_in_dim(a, n - 1, n, axis=d), d)
        left = linspace(_plain_number(low), first, num=before, endpoint=False, dtype=a.dtype, axis=d)
        right = flip(linspace(_plain_number(high), last, num=after, endpoint=False, dtype=a.dtype, axis=d), d)
        left, right = (convert(part, a.dtype, weak=a.weak_type) for part in (left, right))
        a = concatenate([left, a, right], axis=d)
    return a


def _plain_number(x):
    return x.item() if isinstance(x, np.generic) else x


def _pad_statistic(a, widths, lengths, mode):
    fun = {"maximum": _reductions.max, "minimum": _reductions.min, "mean": _averages.mean, "median": _statistics.median}[mode]
    for d, n, before, after in _padded_axes(a, widths, mode):
        values = []
        for front, length in zip((True, False), (None, None) if lengths is None else lengths[d], strict=True):
            k = n if length is None else min(int(length), n)
            part = a if k == n else (slice_in_dim(a, 0, k, axis=d) if front else slice_in_dim(a, n - k, n, axis=d))
            if front is False and lengths is None:
                values.append(values[0])
                continue
            value = fun(part, axis=d, keepdims=True)
            if np.issubdtype(a.dtype, np.integer) and value.dtype != a.dtype:
                value = _rounding.round(value)
            values.append(convert(value, a.dtype, weak=a.weak_type))
        parts = [repeat(values[0], before, axis=d)] if before else []
        parts.append(a)
        if after:
            parts.append(repeat(values[1], after, axis=d))
        a = concatenate(parts, axis=d)
    return a


def _padding_value(value, array):
    """A padding value in the array's dtype; a weakly typed array stays weakly typed."""
    return convert(value, array.dtype, weak=array.weak_type)


@jitted("_pad", static=("widths", "mode", "static"))
def _pad_jit(array, values, widths, mode, static):
    if mode == "constant":
        if isinstance(values, tuple):
            for d, pair in enumerate(values):
                for side in (0, 1):
                    config = [(0, 0, 0)] * array.ndim
                    config[d] = (widths[d][0], 0, 0) if side == 0 else (0, widths[d][1], 0)
                    array = bind("pad", array, _padding_value(pair[side], array), padding_config=tuple(config))
            return array
        return bind("pad", array, _padding_value(values, array), padding_config=tuple([(lo, hi, 0) for lo, hi in widths]))
    if mode == "edge":
        return _pad_edge(array, widths)
    if mode in ("reflect", "symmetric"):
        return _pad_reflect(array, widths, mode, static == "odd")
    if mode == "wrap":
        return _pad_wrap(array, widths)
    if mode == "linear_ramp":
        return _pad_ramp(array, widths, static)
    if mode == "empty":
        for d, (before, after) in enumerate(widths):
            sizes = list(array.shape)
            parts = []
            for k, part in ((before, None), (0, array), (after, None)):
                if part is not None:
                    parts.append(part)
                elif k:
                    sizes[d] = k
                    parts.append(convert(zeros(tuple(sizes), array.dtype), array.dtype, weak=array.weak_type))
            array = concatenate(parts, axis=d) if len(parts) > 1 else array
        return array
    return _pad_statistic(array, widths, static, mode)


@api_boundary
def pad(array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """An array extended at its edges.

    Args:
        array: array.
        pad_width: one number, one (before, after) pair, a pair for each axis, or a dict from axes
          to either.
        mode: "constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum",
            "minimum", "mean", "median", "empty", or a function called as numpy.pad calls it.
        **kwargs: arguments of the mode, each a scalar or pairs like `pad_width`: constant_values,
          end_values, stat_length; reflect_type "even" or "odd".

    Returns:
        Array of array's rank and dtype.

    Raises:
        TypeError: for widths that are not integers.
        ValueError: for negative widths, and keywords that are not the mode's.
        NotImplementedError: for another mode.

    >>> jnp.pad(jnp.array([1, 2]), 1)
    Array([0, 1, 2, 0], dtype=int32)
    """
    array = as_array("pad", array)
    if isinstance(pad_width, dict):
        full = [(0, 0)] * array.ndim
        for axis, width in pad_width.items():
            full[canonicalize_axis(axis, array.ndim)] = width if isinstance(width, tuple) else (width, width)
        pad_width = full
    widths = np.asarray(concrete_or_error(pad_width, "pad_width argument of jnp.pad") if isinstance(pad_width, Array) else pad_width)
    if widths.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    if array.ndim == 0:
        return array
    widths = tuple([(int(a), int(b)) for a, b in _pairs("pad_width", widths, array.ndim)])
    if callable(mode):
        return _pad_function(array, widths, mode, kwargs)
    if mode not in _PAD_KEYWORDS:
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad.")
    unknown = set(kwargs) - set(_PAD_KEYWORDS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if any(a < 0 or b < 0 for a, b in widths):
        raise ValueError("index can't contain negative values")
    options = {**_PAD_KEYWORDS[mode], **kwargs}
    values, static = 0, None
    if mode == "constant":
        values = options["constant_values"]
        if ndim_of(values) if not isinstance(values, (list, tuple)) else True:
            table = broadcast_to(make_array(values) if isinstance(values, (list, tuple)) else _core.asarray(values), (array.ndim, 2))
            values = tuple([(table[d, 0], table[d, 1]) for d in range(array.ndim)])
    elif mode == "linear_ramp":
        static = tuple([tuple([_plain_number(v) for v in pair]) for pair in _pairs("end_values", options["end_values"], array.ndim)])
    elif mode in ("maximum", "minimum", "mean", "median"):
        if options["stat_length"] is not None:
            static = tuple([tuple([int(v) for v in pair]) for pair in _pairs("stat_length", options["stat_length"], array.ndim)])
    elif mode in ("reflect", "symmetric"):
        static = options["reflect_type"]
        if static not in ("even", "odd"):
            raise ValueError(f"reflect_type must be 'even' or 'odd', got {static!r}")
    return exactly(lambda array, values: _pad_jit(array, values, widths=widths, mode=mode, static=static), array, values)


def _pad_function(array, widths, function, kwargs):
    padded = pad(array, widths)
    for axis in range(padded.ndim):
        padded = apply_along_axis(function, axis, padded, widths[axis], axis, kwargs)
    return padded
