"""Random bits as primitives.

Invariant: the state goes in and comes out, moved on by what was drawn; nothing is kept.

    >>> state, bits = lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (3,))
    >>> state
    Array([0, 0, 2, 0], dtype=uint32)
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from .._config import no_sharding
from .._core import ShapedArray, bind
from .._dtypes import canonicalize_dtype, is_floating
from .._shapes import canonicalize_shape
from ._composed import aval, composition
from ._parameters import RandomAlgorithm

_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _threefry(key, x):
    """Five times four rounds of threefry2x32 on two uint32 arrays, with a key of two scalars."""
    schedule = [*key, bind("xor", bind("xor", *key), np.uint32(0x1BD11BDA))]
    x = [bind("add", v, k) for v, k in zip(x, key)]
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            total = bind("add", *x)
            turned = bind("or", bind("shift_left", x[1], np.uint32(r)), bind("shift_right_logical", x[1], np.uint32(32 - r)))
            x = [total, bind("xor", turned, total)]
        x = [bind("add", x[0], schedule[(i + 1) % 3]), bind("add", bind("add", x[1], schedule[(i + 2) % 3]), np.uint32(i + 1))]
    return x


def _convert(x, dtype):
    return bind("convert_element_type", x, new_dtype=dtype, weak_type=False)


def _words(state):
    """The state as four uint32 scalars: two of the key, two of the counter, low word first."""
    if state.dtype == _U64:
        parts = [state, bind("shift_right_logical", state, np.uint64(32))]
        return [_convert(part[i], _U32) for i in range(2) for part in parts]
    return [state[i] for i in range(4)]


def _packed(words, dtype):
    if dtype == _U32:
        return bind("concatenate", *[bind("reshape", w, new_sizes=(1,), dimensions=None) for w in words], dimension=0)
    wide = [_convert(bind("reshape", w, new_sizes=(1,), dimensions=None), _U64) for w in words]
    pairs = [bind("or", low, bind("shift_left", high, np.uint64(32))) for low, high in (wide[:2], wide[2:])]
    return bind("concatenate", *pairs, dimension=0)


def _moved_on(low, high, n):
    """The counter and n, an array or a number, added to it."""
    total = bind("add", low, n)
    return total, bind("add", high, _convert(bind("lt", total, low), _U32))


@composition("rng_bit_generator", lambda key, *, shape, dtype, **_: [aval(key.shape, key), ShapedArray(shape, np.dtype(dtype))], multiple=True)
def bit_generator(key, *, shape, dtype, **_):
    """Threefry of a counter: each block of two words goes to two neighbours along the first even axis, or in the flattened array."""
    dtype = np.dtype(dtype)
    *seed, low, high = _words(key)
    n = math.prod(shape)
    if n == 0:
        return [key, bind("broadcast_in_dim", dtype.type(0), shape=shape, broadcast_dimensions=())]
    wide = dtype == _U64
    blocks = n if wide else -(-n // 2)
    count = bind("iota", dtype=_U32, shape=(blocks,), dimension=0)
    first, second = _threefry(seed, _moved_on(*[bind("broadcast_in_dim", v, shape=(blocks,), broadcast_dimensions=()) for v in (low, high)], count))
    if wide:
        bits = bind("or", _convert(first, _U64), bind("shift_left", _convert(second, _U64), np.uint64(32)))
    else:
        axis = next((d for d, size in enumerate(shape) if size % 2 == 0), None)
        inner = 1 if axis is None else math.prod(shape[axis + 1 :])
        pair = [bind("reshape", v, new_sizes=(blocks // inner, 1, inner), dimensions=None) for v in (first, second)]
        bits = bind("reshape", bind("concatenate", *pair, dimension=1), new_sizes=(2 * blocks,), dimensions=None)
        if n < 2 * blocks:
            bits = bind("slice", bits, start_indices=(0,), limit_indices=(n,), strides=None)
        bits = bits if dtype == _U32 else _convert(bits, dtype)
    return [_packed([*seed, *_moved_on(low, high, np.uint32(blocks))], key.dtype), bind("reshape", bits, new_sizes=shape, dimensions=None)]


def rng_bit_generator(key, shape, dtype=None, algorithm=RandomAlgorithm.RNG_DEFAULT, *, out_sharding=None):
    """The next state and random bits, of `shape` and unsigned `dtype` (default uint32), by threefry2x32.

    key: uint32[4], or uint64[2] with x64. Raises TypeError for other keys and dtypes, ValueError for Philox, which there is none of.
    """
    if out_sharding is not None:
        no_sharding("rng_bit_generator", out_sharding)
    dtype = canonicalize_dtype(np.uint32 if dtype is None else dtype)
    if dtype.kind != "u" or dtype.itemsize > 8:
        raise TypeError(f"rng_bit_generator: unsupported dtype {dtype}")
    key, algorithm = _core.asarray(key), RandomAlgorithm(algorithm)
    if (key.dtype, tuple(key.shape)) not in ((_U32, (4,)), (_U64, (2,))):
        raise TypeError(f"rng_bit_generator: the key must be uint32[4] or uint64[2], got {key.dtype}[{','.join(map(str, key.shape))}]")
    if algorithm == RandomAlgorithm.RNG_PHILOX:
        raise ValueError("rng_bit_generator: threefry is the one algorithm there is; use RNG_THREE_FRY or RNG_DEFAULT")
    return list(bind("rng_bit_generator", key, shape=canonicalize_shape(shape), dtype=dtype, algorithm=algorithm))


def _uniform_type(a, b, *, shape):
    if a.dtype != b.dtype:
        raise ValueError(f"Arguments to rng_uniform must have identical dtypes, got {a.dtype.name} and {b.dtype.name}.")
    if tuple(a.shape) or tuple(b.shape):
        raise ValueError(f"Arguments to rng_uniform must be scalars; got shapes {tuple(a.shape)} and {tuple(b.shape)}.")
    return aval(shape, a, weak=False)


def _draw(a, b, shape):
    source = np.random.default_rng()
    if not is_floating(a.dtype):
        return source.integers(a, b, shape, a.dtype)
    return (a + (b - a) * source.random(shape)).astype(a.dtype)


@composition("rng_uniform", _uniform_type)
def uniform(a, b, *, shape):
    from .. import ShapeDtypeStruct, pure_callback

    _uniform_type(a, b, shape=shape)
    return pure_callback(lambda a, b: _draw(np.asarray(a), np.asarray(b), shape), ShapeDtypeStruct(shape, a.dtype), a, b)


def rng_uniform(a, b, shape):
    """Numbers from [a, b), others at every call: the host draws them. a, b: scalars of one integer or float dtype.

    Raises ValueError for arrays, and for operands of two dtypes.
    """
    return bind("rng_uniform", a, b, shape=canonicalize_shape(shape))
