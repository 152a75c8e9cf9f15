"""Distributions that need only a few operations on random bits.

Invariant: bits, uniform, randint and bernoulli equal JAX's bit for bit.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import _core, lax, numpy as jnp
from .._base.dtypes import canonicalize_dtype, iinfo, is_complex, is_floating, is_integer, is_narrow, requested
from .._base.shapes import canonicalize_shape, common_shape
from .._sharding.parts import sharded
from .._tracing.jit import jit
from ..dtypes import TypePromotionError
from ..numpy._support.arguments import check_arraylike
from ._keys import single

if TYPE_CHECKING:
    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec
    from ..typing import ArrayLike, DTypeLike

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")


def checked_shape(name, shape):
    """A shape as a tuple of ints; an int gives one axis.

    Raises:
        TypeError: an entry is not an integer.
        ValueError: one is negative.
    """
    shape = canonicalize_shape(shape)
    if any(n < 0 for n in shape):
        raise ValueError(f"{name}: shape must not be negative, got {shape}")
    return shape


def broadcast_shape(name, shape, *others):
    """The requested shape, to which `others` must broadcast; without one, their common shape.

    Raises:
        ValueError: they do not broadcast to it.
    """
    if shape is None:
        return common_shape(*others)
    shape = checked_shape(name, shape)
    if common_shape(shape, *others) == shape:
        return shape
    raise ValueError(f"{name} requires shape to be equal to or prefix-broadcast with the parameters' shapes {list(others)}, got {shape}")


def float_dtype(name, dtype, *, complex_too=False):
    """The dtype of a draw; the default float if None.

    Raises:
        ValueError: it is not floating point.
    """
    dtype = requested(None, dtype, float)
    if not (is_floating(dtype) or (complex_too and is_complex(dtype))):
        raise ValueError(f"dtype argument to `{name}` must be a float{' or complex' if complex_too else ''} dtype, got {dtype}")
    return dtype


def check_parameters(name, dtype, *xs):
    """Raises TypePromotionError for a distribution's parameter of a type that does not promote to
    the draws' `dtype`, TypeError for something that is not an array.
    """
    check_arraylike(name, *xs)
    for x in xs:
        if _core.result_type(x, dtype) != dtype:
            raise TypePromotionError(f"In arguments to {name}, cannot safely cast argument of type {_core.result_type(x)} to {dtype}")


def drawn(*static: str) -> Callable[[_F], _F]:
    """Decorator: jits a draw, its shape and dtype static."""
    return functools.partial(jit, static_argnames=static or ("shape", "dtype"))


def _convert(x, dtype):
    return lax.convert_element_type(x, dtype)


def _random_bits(key, bit_width, shape):
    return _core.bind("random_bits", key, bit_width=bit_width, shape=shape)


def to_rank(x, rank):
    """`x` with leading axes of size 1, up to `rank`; unchanged if it has more."""
    x = jnp.asarray(x)
    return x if x.ndim >= rank else lax.broadcast_in_dim(x, (1,) * (rank - x.ndim) + x.shape, tuple(range(rank - x.ndim, rank)))


def bits(key: ArrayLike, shape: Sequence[int] = (), dtype: Any = None, *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """Random bits.

    Args:
        key: a key.
        shape: the result's shape.
        dtype: an unsigned integer dtype; by default the default unsigned type. Those of 2 and 4
          bits get the low bits of a draw of uint8.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        an array of `shape` and `dtype`.

    Raises:
        ValueError: the dtype is not an unsigned integer type.

    >>> random.bits(random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    if out_sharding is not None:
        return sharded(bits, locals())
    key, _ = single("bits", key)
    dtype = requested(None, dtype, np.uint64)
    if not is_integer(dtype) or iinfo(dtype).min < 0:
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {dtype}")
    drawn_bits = _random_bits(key, dtype.itemsize * 8, checked_shape("bits", shape))
    return _convert(drawn_bits, dtype) if is_narrow(dtype) else drawn_bits


def uniform(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Uniform draws from [minval, maxval).

    Args:
        key: a key.
        shape: the result's shape.
        dtype: a float dtype; by default the default one.
        minval, maxval: the bounds; they broadcast to `shape`.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        an array of `shape` and `dtype`.

    Raises:
        ValueError: the dtype is not floating point.

    >>> random.uniform(random.key(0), (2,))
    Array([0.947667 , 0.9785799], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(uniform, locals())
    key, _ = single("uniform", key)
    dtype = float_dtype("uniform", dtype)
    return _uniform(key, minval, maxval, shape=checked_shape("uniform", shape), dtype=dtype, wide=_may_overflow(minval, maxval, dtype))


def _may_overflow(minval, maxval, dtype):
    """Whether the distance of bounds may be beyond the dtype's numbers: traced bounds may be
    anything.
    """
    if not all(isinstance(x, (int, float, np.generic, np.ndarray)) for x in (minval, maxval)):
        return True
    with np.errstate(all="ignore"):
        return bool(np.any(np.asarray(maxval, float) - np.asarray(minval, float) > 0.5 * float(jnp.finfo(dtype).max)))


@drawn("shape", "dtype", "wide")
def _uniform(key, minval, maxval, *, shape, dtype, wide):
    minval, maxval = to_rank(_convert(minval, dtype), len(shape)), to_rank(_convert(maxval, dtype), len(shape))
    words, excess = _random_words(key, shape, dtype)
    unit = _on_grid(words, excess, dtype)
    if max(minval.ndim, maxval.ndim) > len(shape):  # bounds of one element with more axes than the draw: the result has them too
        return jnp.maximum(minval, lax.reshape(unit * (maxval - minval) + minval, shape))
    return between(unit, minval, maxval, wide=wide)


def between(unit, minval, maxval, *, wide=False):
    """The number of [minval, maxval) that a draw from [0, 1) gives; its last step keeps rounding
    above minval.

    Args:
        unit: draws from [0, 1).
        minval, maxval: the bounds, of unit's dtype.
        wide: whether their distance may overflow.
    """
    if not wide:
        return lax.max(minval, lax.add(lax.mul(unit, lax.sub(maxval, minval)), minval))
    one = np.asarray(1, unit.dtype)[()]
    # Where the distance overflows, half the numbers are drawn from half the interval, and doubled.
    overflows = jnp.isinf(maxval - minval) & jnp.isfinite(minval) & jnp.isfinite(maxval)
    half, twice = jnp.where(overflows, one / 2, one), jnp.where(overflows, one + one, one)
    low, high = minval * half, maxval * half
    return lax.max(minval, lax.mul(lax.add(lax.mul(unit, lax.sub(high, low)), low), twice))


def _random_words(key, shape, dtype):
    """Random words of a float's size, and how many of their bits its mantissa leaves out, the
    lowest.
    """
    info = jnp.finfo(dtype)
    words = np.dtype(f"uint{max(info.bits, 8)}")
    # A mantissa below 8 bits takes no more than 8 random ones, whatever the type's width.
    n_bits = 8 if info.nmant < 8 else info.bits
    drawn_bits = _random_bits(key, n_bits, shape)
    drawn_bits = _convert(drawn_bits, words) if n_bits != info.bits and info.bits > 8 else drawn_bits
    return drawn_bits, n_bits - info.nmant


def _on_grid(words, excess, dtype):
    """Numbers of [0, 1), multiples of the dtype's epsilon: a mantissa under the exponent of 1.0
    gives [1, 2).
    """
    one = np.ones((), dtype).view(words.dtype)[()]
    mantissa = lax.shift_right_logical(words, words.dtype.type(excess))
    return lax.sub(lax.bitcast_convert_type(lax.bitwise_or(mantissa, one), dtype), np.asarray(1, dtype)[()])


def unit_and_rest(key, shape, dtype):
    """Draws u from [0, 1), those of `uniform`, and numbers r of (0, 1) from the bits that u leaves
    out: u + epsilon r is uniform too, on a finer grid.

    A function that is infinite or steep at 0 or 1 takes the finer number in the grid's first and
    last cells, of which one point would be all.
    """
    words, excess = _random_words(key, shape, dtype)
    # No more bits than are exact together with the half that keeps r off 0 and 1.
    n = min(excess, jnp.finfo(dtype).nmant)
    low = lax.bitwise_and(words, words.dtype.type((1 << excess) - 1))
    low = _convert(lax.shift_right_logical(low, words.dtype.type(excess - n)), dtype)
    rest = lax.mul(lax.add(low, np.asarray(0.5, dtype)[()]), np.asarray(2.0**-n, dtype)[()])
    return _on_grid(words, excess, dtype), rest


def randint(
    key: ArrayLike,
    shape: Sequence[int],
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Uniform integers from [minval, maxval).

    Args:
        key: a key.
        shape: the result's shape.
        minval, maxval: the bounds; they broadcast to `shape`. Where maxval <= minval the draw is
          minval.
        dtype: an integer dtype; by default the default one.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        TypeError: the dtype is not an integer type.

    >>> random.randint(random.key(0), (3,), 0, 10)
    Array([9, 0, 2], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(randint, locals())
    key, _ = single("randint", key)
    dtype = requested(None, dtype, int)
    if not is_integer(dtype):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype}")
    shape = checked_shape("randint", shape)
    together = common_shape(shape, np.shape(minval), np.shape(maxval))
    if together != shape:
        raise ValueError(
            "randint parameter shapes must be broadcast-compatible with shape argument, and the result of broadcasting the shapes must equal the shape"
            f" argument, but got result {together} for shape argument {shape}."
        )
    if dtype.itemsize < 4:
        # Narrow types are drawn as int32: their own bits would be biased.
        info = iinfo(dtype)
        low, high = jnp.clip(_as_int(minval), int(info.min), int(info.max)), jnp.clip(_as_int(maxval), int(info.min), int(info.max) + 1)
        return _convert(_randint(key, low, high, shape=shape, dtype=np.dtype(np.int32)), dtype)
    return _randint(key, minval, maxval, shape=shape, dtype=dtype)


def _as_int(x):
    x = jnp.asarray(x)
    return x if is_integer(x.dtype) and not is_narrow(x.dtype) else x.astype(canonicalize_dtype(int))


def _clip_to(x, info):
    own = np.iinfo(x.dtype)
    return jnp.clip(x, np.asarray(max(int(info.min), int(own.min)), x.dtype)[()], np.asarray(min(int(info.max), int(own.max)), x.dtype)[()])


@drawn()
def _randint(key, minval, maxval, *, shape, dtype):
    minval, maxval = _as_int(minval), _as_int(maxval)
    info, own = np.iinfo(dtype), np.iinfo(maxval.dtype)
    top = np.asarray(min(int(info.max), int(own.max)), maxval.dtype)[()]
    beyond = lax.gt(maxval, jnp.asarray(top))
    minval, maxval = _convert(_clip_to(minval, info), dtype), _convert(_clip_to(maxval, info), dtype)
    minval, maxval, beyond = to_rank(minval, len(shape)), to_rank(maxval, len(shape)), to_rank(beyond, len(shape))
    if minval.shape != maxval.shape:
        both = common_shape(minval.shape, maxval.shape)
        minval, maxval = jnp.broadcast_to(minval, both), jnp.broadcast_to(maxval, both)
    n_bits = dtype.itemsize * 8
    words = np.dtype(f"uint{n_bits}")
    k_high, k_low = _pair(key)
    high, low = _random_bits(k_high, n_bits, shape), _random_bits(k_low, n_bits, shape)
    one = words.type(1)
    span = _convert(lax.sub(maxval, minval), words)
    span = lax.select_n(lax.le(maxval, minval), span, lax.full_like(span, one))
    # maxval = 2**bits is not representable: the clipped span is one too small.
    span = lax.select_n(lax.bitwise_and(jnp.broadcast_to(beyond, span.shape), lax.gt(maxval, minval)), span, lax.add(span, jnp.asarray(one)))
    # (high * 2**n_bits + low) % span, without overflow.
    scale = lax.rem(lax.full_like(span, words.type(2 ** (n_bits // 2))), span)
    scale = lax.rem(lax.mul(scale, scale), span)
    span, scale = jnp.broadcast_to(span, shape), jnp.broadcast_to(scale, shape)
    offset = lax.rem(lax.add(lax.mul(lax.rem(high, span), scale), lax.rem(low, span)), span)
    return lax.add(jnp.broadcast_to(minval, shape), _convert(offset, dtype))


def _pair(key):
    keys = _core.bind("random_split", key, shape=(2,))
    return keys[0], keys[1]


def bernoulli(
    key: ArrayLike, p: ArrayLike = 0.5, shape: Sequence[int] | None = None, mode: str = "low", *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """Boolean draws, true with probability p.

    Args:
        key: a key.
        p: probabilities, floating point.
        shape: the result's shape, to which `p` broadcasts; by default p's.
        mode: "low", or "high" for 46 in place of 23 bits of precision (in float32).
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of bool of `shape`.

    Raises:
        TypeError: p is not floating point.
        ValueError: the mode is unknown, or p does not broadcast.

    >>> random.bernoulli(random.key(0), 0.5, (3,))
    Array([False, False,  True], dtype=bool)
    """
    if out_sharding is not None:
        return sharded(bernoulli, locals())
    if mode not in ("high", "low"):
        raise ValueError(f"got {mode=}, expected 'high' or 'low'")
    key, _ = single("bernoulli", key)
    dtype = _core.result_type(p)
    if not is_floating(dtype):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {dtype}.")
    p = _convert(p, dtype)
    return _bernoulli(key, p, shape=broadcast_shape("bernoulli", shape, p.shape), mode=mode)


@drawn("shape", "mode")
def _bernoulli(key, p, *, shape, mode):
    dtype = p.dtype
    if mode == "low":
        return jnp.less(uniform(key, shape, dtype), p)
    u = uniform(key, (2, *shape), dtype)
    return jnp.less(jnp.multiply(u[1], np.asarray(jnp.finfo(dtype).eps, dtype)[()]), jnp.subtract(p, u[0]))
