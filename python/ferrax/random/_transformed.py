"""Distributions by inversion: one uniform draw through a function.

Invariant: each draw starts from the same bits as JAX's, and differs from it by the rounding of that
function alone; except where the uniform draw is in the first or the last cell of its grid and the
function is infinite or steep there: such a draw takes further bits into account, so that it is
finite, and tails are as frequent as they should be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import lax, numpy as jnp
from .._base import config as _config
from .._base.dtypes import is_complex, requested
from .._base.shapes import common_shape
from .._sharding.parts import sharded
from ..numpy._support.arguments import promote_inexact, shape_of
from . import _normal_tails
from ._cells import Cells, gumbel_of_64_bits
from ._described import described
from ._keys import clone, single
from ._uniform import (
    _pair,
    bernoulli,
    between,
    broadcast_shape,
    check_parameters,
    checked_shape,
    drawn,
    float_dtype,
    to_rank,
    uniform,
    unit_and_rest,
)

if TYPE_CHECKING:
    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec
    from ..typing import ArrayLike, DTypeLike


def _scalar(x, dtype):
    return np.asarray(x, dtype)[()]


def normal(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """Draws from the standard normal distribution; of a complex dtype, with unit variance in all.

    Args:
        key: a key.
        shape: the result's shape.
        dtype: a float or complex dtype; by default the default float.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        ValueError: the dtype is neither.

    >>> random.normal(random.key(0), (2, 3)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return sharded(normal, locals())
    key, _ = single("normal", key)
    return _normal(key, shape=checked_shape("normal", shape), dtype=float_dtype("normal", dtype, complex_too=True))


@drawn()
def _normal(key, *, shape, dtype):
    if not is_complex(dtype):
        return _normal_real(key, shape=shape, dtype=dtype)
    k_re, k_im = _pair(key)
    part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
    re = _normal_real(k_re, shape=shape, dtype=part).astype(dtype)
    im = _normal_real(k_im, shape=shape, dtype=part).astype(dtype)
    return lax.div(lax.add(re, lax.mul(lax.full_like(im, 1j), im)), lax.full_like(re, np.sqrt(2)))


@drawn()
def _normal_real(key, *, shape, dtype):
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype) if dtype.kind == "f" else -(1 - jnp.finfo(dtype).epsneg)
    u = uniform(key, shape, dtype, _scalar(low, dtype), _scalar(1, dtype))
    return lax.mul(lax.full_like(u, _scalar(np.sqrt(2), dtype)), lax.erf_inv(u))


def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draws from the standard normal distribution cut to (lower, upper), which may lie as far out
    as there are numbers.

    Args:
        key: a key.
        lower, upper: the bounds.
        shape: the result's shape, to which the bounds broadcast; by default their common shape.
        dtype: a float dtype; by default the default one.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        ValueError: the dtype is not floating point, or the bounds do not broadcast.

    >>> random.truncated_normal(random.key(0), -1.0, 1.0, (3,)).shape
    (3,)
    """
    if out_sharding is not None:
        return sharded(truncated_normal, locals())
    key, _ = single("truncated_normal", key)
    dtype = float_dtype("truncated_normal", dtype)
    shape = broadcast_shape("truncated_normal", shape, shape_of(lower), shape_of(upper))
    known = all(isinstance(x, (int, float, np.generic, np.ndarray)) for x in (lower, upper))
    near = known and not np.any(_normal_tails.is_far(np.asarray(lower, float), np.asarray(upper, float), dtype))
    return (_truncated_normal if near else _truncated_anywhere)(key, lower, upper, shape=shape, dtype=dtype)


@drawn()
def _truncated_anywhere(key, lower, upper, *, shape, dtype):
    lower, upper = lax.convert_element_type(lower, dtype), lax.convert_element_type(upper, dtype)
    far = _normal_tails.is_far(lower, upper, dtype)

    def some_far():
        v = uniform(clone(key), shape, dtype)
        # Where bounds are far, erf's inverse is taken elsewhere, where it has slopes.
        near = _truncated_normal(key, jnp.where(far, -1, lower), jnp.where(far, 1, upper), shape=shape, dtype=dtype)
        return jnp.where(far, jnp.clip(_normal_tails.draws(v, lower, upper, far, dtype), *_inside(lower, upper, dtype)), near)

    return lax.cond(jnp.any(far), some_far, lambda: _truncated_normal(key, lower, upper, shape=shape, dtype=dtype))


def _inside(lower, upper, dtype):
    # Rounding must not put a draw on a bound.
    return jnp.nextafter(lax.stop_gradient(lower), _scalar(np.inf, dtype)), jnp.nextafter(lax.stop_gradient(upper), _scalar(-np.inf, dtype))


@drawn()
def _truncated_normal(key, lower, upper, *, shape, dtype):
    lower, upper = lax.convert_element_type(lower, dtype), lax.convert_element_type(upper, dtype)
    root2 = _scalar(np.sqrt(2), dtype)
    a, b = lax.erf(jnp.divide(lower, root2)), lax.erf(jnp.divide(upper, root2))
    unit, rest = unit_and_rest(key, shape, dtype)
    u = between(unit, *(to_rank(x, len(shape)) for x in (a, b)))
    out = jnp.multiply(root2, lax.erf_inv(u))
    # erf is 1 to rounding in the tails, where a draw would be infinite: it is found from the tail's probability.
    # So is one in the outer cells, where these are in the tails.
    outer = ((unit == 0) | (unit == 1 - float(jnp.finfo(dtype).eps))) & (abs(u) > _scalar(0.98, dtype))
    beyond = jnp.isinf(out) | outer
    out = lax.cond(jnp.any(beyond), lambda: jnp.where(beyond, _normal_tails.from_tail(unit, rest, u < 0, beyond, lower, upper), out), lambda: out)
    return jnp.clip(out, *_inside(lower, upper, dtype))


@described("the exponential distribution of rate 1")
def exponential(
    key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    if out_sharding is not None:
        return sharded(exponential, locals())
    key, _ = single("exponential", key)
    return _exponential(key, shape=checked_shape("exponential", shape), dtype=float_dtype("exponential", dtype))


@drawn()
def _exponential(key, *, shape, dtype):
    return lax.neg(Cells(key, shape, dtype).log_left())


def gumbel(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draws from the standard Gumbel distribution.

    Args:
        key: a key.
        shape: the result's shape.
        dtype: a float dtype; by default the default one.
        mode: "low", "high" for twice the bits, which the upper tail shows, or "highest" for float32
            numbers that take all of them into account; by default the value of
            `jax_high_dynamic_range_gumbel`.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        ValueError: the dtype is not floating point, or the mode unknown.

    >>> random.gumbel(random.key(0), (2, 3)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return sharded(gumbel, locals())
    key, _ = single("gumbel", key)
    dtype = float_dtype("gumbel", dtype)
    if mode is None:
        mode = "high" if _config.config.jax_high_dynamic_range_gumbel else "low"
    if mode not in ("highest", "high", "low"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    return _gumbel(key, shape=checked_shape("gumbel", shape), dtype=dtype, mode=mode)


@drawn("shape", "dtype", "mode")
def _gumbel(key, *, shape, dtype, mode):
    if mode == "low":
        cells = Cells(key, shape, dtype)
        return lax.neg(lax.log(lax.neg(cells.log(cells.open_unit()))))
    if mode == "highest" and dtype == np.float32:
        return gumbel_of_64_bits(key, shape)
    info = jnp.finfo(dtype)
    u, rest = unit_and_rest(key, (2, *shape), dtype)
    high, low = u[0], u[1]
    eps, log_eps = _scalar(info.eps, dtype), _scalar(np.log(float(info.eps)), dtype)
    fine = jnp.add(jnp.add(high, jnp.multiply(eps, low)), _scalar(info.tiny, dtype))
    # In the first cell x is epsilon low, and in the last one 1 - x is epsilon (1 - low).
    first, last = high == 0, high == _scalar(1 - eps, dtype)
    x = jnp.where(last, low, jnp.where(first | (high >= _scalar(0.5, dtype)), high, fine))
    minus_log = lax.neg(jnp.where(last, lax.log1p(lax.neg(x)) + log_eps, lax.log1p(lax.neg(x))))
    of_first = lax.log(jnp.where(low == 0, rest[1] * eps, low)) + log_eps
    return lax.neg(jnp.where(first, of_first, lax.log(jnp.where(first, 1, minus_log))))


@described("the standard Laplace distribution")
def laplace(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    if out_sharding is not None:
        return sharded(laplace, locals())
    key, _ = single("laplace", key)
    return _laplace(key, shape=checked_shape("laplace", shape), dtype=float_dtype("laplace", dtype))


@drawn()
def _laplace(key, *, shape, dtype):
    cells = Cells(key, shape, dtype)
    u = between(cells.unit, _scalar(-1 + jnp.finfo(dtype).epsneg, dtype), _scalar(1, dtype))
    # In the outer cells 1 - |u| is 2 epsilon times the distance from the end in cells.
    inside = lax.select(cells.first, lax.sub(_scalar(1, dtype), cells.rest), lax.select(cells.last, cells.rest, lax.abs(u)))
    y = lax.log1p(lax.neg(inside))
    y = lax.select(lax.bitwise_or(cells.first, cells.last), lax.add(y, _scalar(np.log(2 * float(cells.eps)), dtype)), y)
    return lax.mul(lax.sign(u), y)


@described("the standard logistic distribution")
def logistic(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    if out_sharding is not None:
        return sharded(logistic, locals())
    key, _ = single("logistic", key)
    return _logistic(key, shape=checked_shape("logistic", shape), dtype=float_dtype("logistic", dtype))


@drawn()
def _logistic(key, *, shape, dtype):
    cells = Cells(key, shape, dtype)
    # The last cell is the first one's image.
    u = lax.select(cells.last, cells.below_1(), cells.above_0(cells.open_unit()))
    y = lax.sub(lax.log(u), lax.log1p(lax.neg(u)))
    return lax.select(cells.last, lax.neg(y), y)


@described("the standard Cauchy distribution")
def cauchy(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    if out_sharding is not None:
        return sharded(cauchy, locals())
    key, _ = single("cauchy", key)
    return _cauchy(key, shape=checked_shape("cauchy", shape), dtype=float_dtype("cauchy", dtype))


@drawn()
def _cauchy(key, *, shape, dtype):
    cells = Cells(key, shape, dtype)
    u = between(cells.unit, cells.eps, _scalar(1, dtype))
    y = lax.tan(jnp.multiply(_scalar(np.pi, dtype), jnp.subtract(u, _scalar(0.5, dtype))))
    # In the outer cells tan(pi (u - 1/2)) is 1 / (pi d), d the distance from the end.
    far = lambda d: lax.div(_scalar(1 / np.pi, dtype), d)
    return lax.select(cells.first, lax.neg(far(cells.above_0(u))), lax.select(cells.last, far(cells.below_1()), y))


def rademacher(
    key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """Draws from {-1, 1}.

    Args:
        key: a key.
        shape: the result's shape.
        dtype: the result's dtype; by default the default integer.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    >>> random.rademacher(random.key(0), (3,)).shape
    (3,)
    """
    if out_sharding is not None:
        return sharded(rademacher, locals())
    key, _ = single("rademacher", key)
    return _rademacher(key, shape=checked_shape("rademacher", shape), dtype=requested(None, dtype, int))


@drawn()
def _rademacher(key, *, shape, dtype):
    heads = lax.convert_element_type(bernoulli(key, 0.5, shape), dtype)
    return jnp.subtract(jnp.multiply(_scalar(2, dtype), heads), _scalar(1, dtype))


@described("the Pareto distribution of shape b and scale 1", parameters=True, at="2.0")
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    if out_sharding is not None:
        return sharded(pareto, locals())
    key, _ = single("pareto", key)
    dtype = float_dtype("pareto", dtype)
    check_parameters("pareto", dtype, b)
    return _pareto(key, b, shape=broadcast_shape("pareto", shape, shape_of(b)), dtype=dtype)


@drawn()
def _pareto(key, b, *, shape, dtype):
    return jnp.exp(jnp.divide(exponential(key, shape, dtype), lax.convert_element_type(b, dtype)))


@described("the Weibull distribution of the given scale and concentration (shape)", at="1.0, 2.0")
def weibull_min(key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    key, _ = single("weibull_min", key)
    return _weibull_min(key, scale, concentration, shape=checked_shape("weibull_min", shape), dtype=float_dtype("weibull_min", dtype))


@drawn()
def _weibull_min(key, scale, concentration, *, shape, dtype):
    e = lax.neg(Cells(key, shape, dtype).log_left())
    return jnp.multiply(jnp.power(e, jnp.divide(1.0, concentration)), scale)


@described("the Rayleigh distribution of the given scale", parameters=True, at="2.0")
def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    if out_sharding is not None:
        return sharded(rayleigh, locals())
    key, _ = single("rayleigh", key)
    dtype = float_dtype("rayleigh", dtype)
    check_parameters("rayleigh", dtype, scale)
    return _rayleigh(key, scale, shape=broadcast_shape("rayleigh", shape, shape_of(scale)), dtype=dtype)


@drawn()
def _rayleigh(key, scale, *, shape, dtype):
    log = Cells(key, shape, dtype).log()
    return jnp.multiply(lax.convert_element_type(scale, dtype), jnp.sqrt(jnp.multiply(log, _scalar(-2, dtype))))


def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draws of the number of trials up to the first success, each of probability p.

    Args:
        key: a key.
        p: probabilities.
        shape: the result's shape, to which `p` broadcasts; by default p's.
        dtype: an integer dtype; by default the default one.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        ValueError: the dtype is not an integer type, p is complex or does not broadcast.

    >>> random.geometric(random.key(0), 0.5, (3,)).dtype
    dtype('int32')
    """
    if out_sharding is not None:
        return sharded(geometric, locals())
    key, _ = single("geometric", key)
    dtype = requested(None, dtype, int)
    if dtype.kind not in "iu":
        raise ValueError(f"dtype argument to `geometric` must be an int dtype, got {dtype}")
    (p,) = promote_inexact("geometric", p)
    return _geometric(key, p, shape=broadcast_shape("geometric", shape, p.shape), dtype=dtype)


@drawn()
def _geometric(key, p, *, shape, dtype):
    log = Cells(key, shape, p.dtype).log()
    trials = jnp.add(jnp.floor(jnp.divide(log, jnp.log1p(-p))), _scalar(1, p.dtype))
    return lax.convert_element_type(trials, dtype)


@described("the triangular distribution on [left, right] with its peak at mode", parameters=True, at="0.0, 0.5, 1.0")
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    if out_sharding is not None:
        return sharded(triangular, locals())
    key, _ = single("triangular", key)
    dtype = float_dtype("triangular", dtype)
    check_parameters("triangular", dtype, left, mode, right)
    shape = broadcast_shape("triangular", shape, shape_of(left), shape_of(mode), shape_of(right))
    return _triangular(key, left, mode, right, shape=shape, dtype=dtype)


@drawn()
def _triangular(key, left, mode, right, *, shape, dtype):
    left, mode, right = (jnp.broadcast_to(lax.convert_element_type(x, dtype), shape) for x in (left, mode, right))
    peak = (mode - left) / (right - left)
    u = uniform(key, shape, dtype)
    rising = left + jnp.sqrt(u * (right - left) * (mode - left))
    falling = right - jnp.sqrt((1 - u) * (right - left) * (right - mode))
    return jnp.where(u < peak, rising, falling)


@described("exp(sigma * z), z standard normal", parameters=True, at="0.5")
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = np.float32(1.0),
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    if out_sharding is not None:
        return sharded(lognormal, locals())
    key, _ = single("lognormal", key)
    dtype = float_dtype("lognormal", dtype)
    check_parameters("lognormal", dtype, sigma)
    draw = normal(key, broadcast_shape("lognormal", shape, shape_of(sigma)), dtype)
    return jnp.exp(jnp.multiply(draw, lax.convert_element_type(sigma, dtype)))


@described("the Maxwell distribution: the length of a standard normal vector in three dimensions")
def maxwell(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    if out_sharding is not None:
        return sharded(maxwell, locals())
    key, _ = single("maxwell", key)
    return _maxwell(key, shape=checked_shape("maxwell", shape), dtype=float_dtype("maxwell", dtype))


@drawn()
def _maxwell(key, *, shape, dtype):
    x = normal(key, (*shape, 3), dtype)
    return jnp.sqrt(jnp.sum(jnp.multiply(x, x), axis=-1))


def double_sided_maxwell(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """Draws from the Maxwell distribution with a random sign, scaled and shifted.

    Args:
        key: a key.
        loc, scale: the parameters; where they promote to another type than `dtype` the result is of
          that.
        shape: the result's leading axes, before those of the parameters' common shape; by default
          that shape once more.
        dtype: a float dtype; by default the default one.

    Returns:
        Array of `shape` and the parameters' common shape.

    Raises:
        ValueError: the dtype is not floating point, or the parameters do not broadcast.

    >>> random.double_sided_maxwell(random.key(0), 0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    key, _ = single("double_sided_maxwell", key)
    shape = checked_shape("double_sided_maxwell", shape)
    return _double_sided_maxwell(key, loc, scale, shape=shape, dtype=float_dtype("double_sided_maxwell", dtype))


@drawn()
def _double_sided_maxwell(key, loc, scale, *, shape, dtype):
    batch = common_shape(shape_of(loc), shape_of(scale))
    shape = (shape or batch) + batch
    k_size, k_sign = _pair(key)
    draw = jnp.multiply(rademacher(k_sign, shape, dtype), maxwell(k_size, shape, dtype))
    return jnp.add(jnp.multiply(draw, scale), loc)


@described("the inverse Gaussian distribution of the given mean, scale 1", parameters=True, at="2.0")
def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    if out_sharding is not None:
        return sharded(wald, locals())
    key, _ = single("wald", key)
    dtype = float_dtype("wald", dtype)
    check_parameters("wald", dtype, mean)
    return _wald(key, mean, shape=broadcast_shape("wald", shape, shape_of(mean)), dtype=dtype)


@drawn()
def _wald(key, mean, *, shape, dtype):
    # Michael, Schucany and Haas (1976): one root of a quadratic, or the other.
    k_normal, k_uniform = _pair(key)
    mean = jnp.broadcast_to(lax.convert_element_type(mean, dtype), shape)
    v, z = normal(k_normal, shape, dtype), uniform(k_uniform, shape, dtype)
    y = lax.integer_pow(v, 2)
    y2, m2 = lax.integer_pow(y, 2), lax.integer_pow(mean, 2)
    root = jnp.sqrt(4 * mean * y + m2 * y2)
    x = mean + m2 * y / 2 - mean / 2 * root
    # Where the difference cancels, the same root without one.
    half = mean * y / 2
    steep = half > 30
    half = jnp.where(steep, half, 1)
    x = jnp.where(steep, mean / (1 + half + jnp.sqrt(half * (half + 2))), x)
    return jnp.where(z <= mean / (mean + x), x, m2 / x)


def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Sequence[int] | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draws of indices along an axis, with probabilities softmax(logits).

    Args:
        key: a key.
        logits: unnormalised log probabilities, floating point.
        axis: the axis of the categories.
        shape: the result's shape, to which logits' shape without `axis` broadcasts; by default
          that.
        replace: whether a category may be drawn more than once along the leading axes of `shape`.
        mode: as in `gumbel`.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        an integer array.

    Raises:
        ValueError: the logits are not floating point, the shape does not fit, or there are too few
          categories to draw without replacement.

    >>> random.categorical(random.key(0), jnp.zeros(3), shape=(2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return sharded(categorical, locals())
    key, _ = single("categorical", key)
    if isinstance(logits, (list, tuple)):
        raise TypeError(f"categorical requires ndarray or scalar arguments, got {type(logits)} at position 0.")
    logits = jnp.asarray(logits)
    if not -logits.ndim <= axis < logits.ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {logits.ndim}")
    axis = axis % logits.ndim - logits.ndim
    batch = tuple(np.delete(logits.shape, axis).tolist())
    shape = batch if shape is None else broadcast_shape("categorical", shape, batch)
    prefix, n = shape[: len(shape) - len(batch)], logits.shape[axis]
    if replace:
        own = list(shape[len(shape) - len(batch) :])
        own.insert(axis % logits.ndim, n)
        noise = gumbel(key, (*prefix, *own), logits.dtype, mode)
        return jnp.argmax(jnp.add(noise, jnp.expand_dims(logits, tuple(range(len(prefix))))), axis=axis)
    n_draws = int(np.prod(prefix, dtype=int))
    if n_draws > n:
        raise ValueError(f"Number of samples without replacement ({n_draws}) cannot exceed number of categories ({n}).")
    scores = jnp.moveaxis(jnp.add(logits, gumbel(key, logits.shape, logits.dtype, mode)), axis, -1)
    index = jnp.moveaxis(lax.top_k(scores, n_draws)[1], -1, 0)
    return jnp.broadcast_to(index.reshape(*prefix, *batch), shape)
