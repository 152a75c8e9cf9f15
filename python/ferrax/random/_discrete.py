"""Distributions of integers: Poisson, binomial, multinomial.

Invariant: small means are drawn by inversion, large ones by rejection, as in JAX, so that draws are
its draws.

    >>> random.poisson(random.key(0), 3.0).dtype
    dtype('int32')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import lax, numpy as jnp
from .._base.dtypes import requested
from .._base.shapes import common_shape
from .._sharding.parts import sharded
from ..numpy._support.arguments import promote_inexact, shape_of
from ._keys import _core, clone, single
from ._uniform import _pair, broadcast_shape, checked_shape, drawn, float_dtype, uniform

if TYPE_CHECKING:
    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec
    from ..typing import ArrayLike, DTypeLike


def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draws from the Poisson distribution.

    Args:
        key: a key.
        lam: rates.
        shape: the result's shape, to which `lam` broadcasts; by default lam's.
        dtype: an integer dtype; by default the default one.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        ValueError: lam does not broadcast.
        TypeError: the dtype is not an integer type.

    >>> random.poisson(random.key(0), 4.0, (3,)).dtype
    dtype('int32')
    """
    if out_sharding is not None:
        return sharded(poisson, locals())
    key, _ = single("poisson", key)
    dtype = requested(None, dtype, int)
    if dtype.kind not in "iu":
        raise TypeError(f"poisson only accepts integer dtypes, got {dtype}")
    shape = broadcast_shape("poisson", shape, shape_of(lam))
    lam = lax.convert_element_type(jnp.broadcast_to(lam, shape), np.dtype(np.float32))
    return _poisson(key, lam, shape=shape, dtype=dtype)


@drawn()
def _poisson(key, lam, *, shape, dtype):
    # Small rates by counting, large ones by rejection; each lane runs both, at a harmless rate where the other one's result is taken.
    small = jnp.isnan(lam) | (lam < 10)
    counted = _poisson_knuth(key, jnp.where(small, lam, 0.0), shape, dtype)
    rejected = _poisson_rejection(clone(key), jnp.where(small, 1e5, lam), shape, dtype)
    return jnp.where(lam == 0, jnp.zeros(shape, dtype), jnp.where(small, counted, rejected))


def _poisson_knuth(key, lam, shape, dtype):
    """Knuth (TAOCP 3.4.1): how many uniforms until their product falls below exp(-lam)."""

    def step(state):
        i, k, key, log_prod = state
        key, sub = _pair(key)
        k = jnp.where(log_prod > -lam, k + 1, k)
        return i + 1, k, key, log_prod + jnp.log(uniform(sub, shape, lam.dtype))

    most = np.iinfo(np.int32).max
    start = jnp.asarray(np.int32(0)), jnp.zeros(shape, dtype), key, jnp.zeros(shape, lam.dtype)
    return lax.while_loop(lambda s: jnp.any(s[3] > -lam) & (s[0] < most), step, start)[1] - 1


# From here on the terms of k log(rate) - rate - log(k!) are so large that their rounding decides which draws are accepted. Below it draws are JAX's.
_LARGE_RATE = 1e4


def _log_density(k, rate):
    """The same for large rates, about k = rate (Loader 2000)."""
    k = jnp.maximum(k, 10)
    return _powers(k, rate) - 0.5 * jnp.log(2 * np.pi * k) - 1 / (12 * k)


def _powers(k, mean):
    """k log(mean / k) - mean + k, without cancellation."""
    t = (mean - k) / k
    close = abs(t) < 0.1
    # log(1 + t) = 2 (s + s^3 / 3 + ..), whose first term is t - s t
    s = jnp.where(close, t, 0) / (jnp.where(close, t, 0) + 2)
    square = s * s
    series = 1 / 3 + square * (1 / 5 + square * (1 / 7 + square / 9))
    return k * jnp.where(close, 2 * s * square * series - t * s, jnp.log1p(jnp.where(close, 0, t)) - t)


def _poisson_rejection(key, lam, shape, dtype):
    """Hoermann (1993), transformed rejection with squeeze (PTRS)."""
    log_lam = jnp.log(lam)
    b = 0.931 + 2.53 * jnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inv_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def step(state):
        i, k_out, accepted, key = state
        keys = _core.bind("random_split", key, shape=(3,))
        u = uniform(keys[1], shape, lam.dtype) - 0.5
        v = uniform(keys[2], shape, lam.dtype)
        u_shifted = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / u_shifted + b) * u + lam + 0.43)
        s = jnp.log(v * inv_alpha / (a / (u_shifted * u_shifted) + b))
        log_density = jnp.where(lam < _LARGE_RATE, -lam + k * log_lam - lax.lgamma(k + 1), _log_density(k, lam))
        surely = (u_shifted >= 0.07) & (v <= v_r)
        never = (k < 0) | ((u_shifted < 0.013) & (v > u_shifted))
        accept = surely | (~never & (s <= log_density))
        return i + 1, jnp.where(accept, k, k_out), accepted | accept, keys[0]

    most = np.iinfo(np.int32).max
    start = jnp.asarray(np.int32(0)), jnp.full(shape, -1, lam.dtype), jnp.zeros(shape, bool), key
    return lax.while_loop(lambda s: jnp.any(~s[2]) & (s[0] < most), step, start)[1].astype(dtype)


def binomial(key: Array, n: ArrayLike, p: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws of the number of successes among n trials of probability p.

    Args:
        key: a key.
        n: numbers of trials, floating point or integer.
        p: probabilities.
        shape: the result's shape, to which n and p broadcast; by default their common shape.
        dtype: a float dtype; by default the default one.

    Returns:
        an array of `shape` and `dtype`; NaN where n is negative or p is outside [0, 1].

    >>> random.binomial(random.key(0), 10, 0.5, (3,)).shape
    (3,)
    """
    key, _ = single("binomial", key)
    dtype = float_dtype("binomial", dtype)
    shape = broadcast_shape("binomial", shape, shape_of(n), shape_of(p))
    return _binomial(key, *promote_inexact("binomial", n, p), shape=shape, dtype=dtype)


@drawn()
def _binomial(key, n, p, *, shape, dtype):
    n, p = jnp.broadcast_to(n, shape), jnp.broadcast_to(p, shape)
    # Successes and failures change places so that q <= 1/2; each of the two methods runs at a harmless point in the other one's lanes.
    flipped = ~(p < 0.5)
    q = jnp.where(flipped, 1 - p, p)
    valid, endless = (n >= 0) & (q >= 0), jnp.isinf(n)
    safe = jnp.where(q >= 0, q, 0.01)
    few = ~(n >= 0) | (n * safe <= 10)
    trials = jnp.floor(n)
    counted = _binomial_inversion(key, jnp.where(few, trials, 0), safe)
    many = ~few & ~endless
    rejected = _binomial_rejection(clone(key), jnp.where(many, trials, 10000), jnp.where(many, safe, 0.5))
    count = jnp.where(few, counted, rejected).astype(dtype)
    count = jnp.where(flipped, trials.astype(dtype) - count, count)
    # Of infinitely many trials infinitely many succeed, unless none can.
    count = jnp.where(endless, jnp.where(p > 0, np.inf, 0), count)
    return jnp.where(valid, count, np.nan)


def _binomial_inversion(key, n, q):
    """Devroye (1986, X.4.3): geometric waiting times until n trials are used up."""
    log1_q = jnp.log1p(-q)

    def step(state):
        trials, successes, key = state
        sub, key = _pair(key)
        successes = jnp.where(trials <= n, successes + 1, successes)
        return trials + jnp.ceil(jnp.log(uniform(sub, n.shape, n.dtype)) / log1_q), successes, key

    start = jnp.zeros_like(n), jnp.zeros_like(n), key
    return lax.while_loop(lambda s: jnp.any(s[0] <= n), step, start)[1] - 1


# log(k!) less Stirling's approximation to it, for k = 0 .. 9.
_STIRLING_TAIL = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.0207906721037650, 0.0166446911898211, 0.0138761288230707, 0.0118967099458917,
    0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling_tail(k):
    # Beyond 9 the value at 9 is used, as in JAX, for equal draws: the tails then cancel in the sum, where they differ by 1/12 of a difference of inverses.
    return jnp.take(jnp.asarray(_STIRLING_TAIL, k.dtype), jnp.clip(k, 0, 9).astype(np.int32))


# Above it the rounding of the logarithms times the numbers of trials would decide in single precision which draws are accepted. Up to it draws are JAX's.
_MANY_TRIALS = 1e5


def _log_binomial(k, n, q):
    """The logarithm of the probability of k, up to what does not depend on it, for k and n - k of
    10 and more.
    """
    rest = n - k
    return _powers(k, n * q) + _powers(rest, n * (1 - q)) - 0.5 * jnp.log(k * (rest / n)) - 1 / (12 * k) - 1 / (12 * rest)


def _binomial_rejection(key, n, q):
    """Hoermann (1993), transformed rejection with squeeze (BTRS), for n q > 10."""
    spread = jnp.sqrt(n * q * (1 - q))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * q
    c = n * q + 0.5
    v_r = 0.92 - 4.2 / b
    r = q / (1 - q)
    alpha = (2.83 + 5.1 / b) * spread
    m = jnp.floor((n + 1) * q)

    def step(state):
        k_out, accepted, key = state
        keys = _core.bind("random_split", key, shape=(3,))
        u = uniform(keys[1], n.shape, n.dtype) - 0.5
        v = uniform(keys[2], n.shape, n.dtype)
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + c)
        log_v = jnp.log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * jnp.log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * jnp.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * jnp.log(r * (n - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(n - m)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        if n.dtype.itemsize < 8:
            inner = (n > _MANY_TRIALS) & (k >= 10) & (n - k >= 10)
            bound = jnp.where(inner, _log_binomial(jnp.where(inner, k, m), n, q) - _log_binomial(m, n, q), bound)
        accept = ((us >= 0.07) & (v <= v_r)) | ((k >= 0) & (k <= n) & (log_v <= bound))
        # The last draw that is accepted stays, so that a lane's draw depends on how long its neighbours take; such are JAX's numbers.
        return jnp.where(accept, k, k_out), accepted | accept, keys[0]

    start = jnp.full_like(n, -1), jnp.zeros(n.shape, bool), key
    return lax.while_loop(lambda s: ~jnp.all(s[1]), step, start)[0]


def multinomial(key: Array, n: ArrayLike, p: ArrayLike, *, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, unroll: int | bool = 1) -> Array:
    """Draws of counts among k outcomes in n trials.

    Args:
        key: a key.
        n: numbers of trials, shape broadcastable to p.shape[:-1].
        p: probabilities, shape (..., k), which sum to 1.
        shape: the result's shape, to which p's broadcasts; by default (*batch, k).
        dtype: the result's dtype; by default the default float.
        unroll: how many outcomes the loop handles at a time.

    Returns:
        an array of counts of `shape` and `dtype`, each vector summing to n.

    >>> random.multinomial(random.key(0), 10, jnp.array([0.5, 0.5])).sum()
    Array(10., dtype=float32)
    """
    key, _ = single("multinomial", key)
    dtype = requested(None, dtype, float)
    n, p = promote_inexact("multinomial", n, p)
    if p.ndim == 0:
        raise ValueError("multinomial: p must have an axis of outcomes, got a scalar")
    batch = common_shape(n.shape, p.shape[:-1])
    shape = (*batch, p.shape[-1]) if shape is None else checked_shape("multinomial", shape)
    if shape[-1] != p.shape[-1]:
        raise ValueError(f"multinomial: the last axis of shape {shape} must have size {p.shape[-1]}, the number of outcomes of p")
    return _multinomial(key, n, p, shape=shape, dtype=dtype, unroll=unroll)


@drawn("shape", "dtype", "unroll")
def _multinomial(key, n, p, *, shape, dtype, unroll):
    # Each outcome is binomial given those before it, with its share of the probability that is left.
    # The sums are taken pairwise, as JAX takes them: on their last bit can depend which method draws.
    left = lax.associative_scan(jnp.add, p, reverse=True, axis=-1)
    share = jnp.moveaxis(jnp.broadcast_to(p / jnp.where(left == 0, 1, left), shape), -1, 0)

    def step(remaining, xs):
        q, key = xs
        count = binomial(key, remaining, q, remaining.shape, remaining.dtype)
        return remaining - count, count

    keys = _core.bind("random_split", key, shape=share.shape[:1])
    _, counts = lax.scan(step, jnp.broadcast_to(n, shape[:-1]), (share, keys), unroll=unroll)
    return jnp.moveaxis(counts, 0, -1).astype(dtype)
