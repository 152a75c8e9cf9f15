"""Distributions by rejection: gamma and those made of it, Poisson, binomial.

Invariant: gamma draws are differentiable in the shape parameter (implicit reparameterisation): d
sample / d a = -(dP/da) / p, where P is the distribution function, as in Figurnov, Mohamed and Mnih
(2018).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import lax, numpy as jnp
from .._sharding.parts import sharded
from .._transforms.vmap import vmap
from ..custom_derivatives import custom_jvp
from ..interpreters import batching
from ..interpreters._composed import composed
from ..numpy._support.arguments import ndim_of, shape_of
from ._cells import Cells
from ._described import described
from ._keys import _core, clone, single
from ._transformed import exponential, normal, rademacher
from ._uniform import _pair, broadcast_shape, check_parameters, checked_shape, drawn, float_dtype, uniform

if TYPE_CHECKING:
    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec
    from ..typing import ArrayLike, DTypeLike

# ---------------------------------------------------------------- gamma


def _draw_one(key, a, log_space):
    """Marsaglia and Tsang (2000), for one draw.

    Shapes below 1 are drawn at a + 1 and scaled by u ** (1 / a).
    """
    dtype = a.dtype
    number = lambda v: np.asarray(v, dtype)[()]
    one = number(1)
    large = a >= one
    shifted = lax.select_n(large, lax.add(a, jnp.asarray(one)), a)
    d = lax.sub(shifted, jnp.asarray(number(1 / 3)))
    c = lax.div(jnp.asarray(number(1 / 3)), lax.sqrt(d))

    def rejected(state):
        _, x2, v, u = state
        return jnp.logical_and(u >= one - number(0.0331) * (x2 * x2), jnp.log(u) >= x2 * number(0.5) + d * ((one - v) + jnp.log(v)))

    def propose(state):
        key = state[0]
        keys = _core.bind("random_split", key, shape=(3,))
        key, x_key, u_key = keys[0], keys[1], keys[2]

        def until_positive(state):
            key, sub = _pair(state[0])
            x = normal(sub, (), dtype)
            return key, x, one + x * c

        _, x, v = lax.while_loop(lambda s: s[2] <= number(0), until_positive, (x_key, jnp.asarray(number(0)), jnp.asarray(number(-1))))
        return key, x * x, v * v * v, uniform(u_key, (), dtype)

    key, sub = _pair(key)
    _, _, v, _ = lax.while_loop(rejected, propose, (key, jnp.asarray(number(0)), jnp.asarray(one), jnp.asarray(number(2))))
    cells = Cells(sub, (), dtype)
    if log_space:
        boost = lax.select_n(large, lax.mul(cells.log_left(), lax.div(jnp.asarray(one), a)), jnp.zeros((), dtype))
        return lax.add(lax.add(lax.log(d), lax.log(v)), boost)
    boost = lax.select_n(large, lax.pow(cells.left(), lax.div(jnp.asarray(one), a)), jnp.asarray(one))
    return lax.mul(lax.mul(d, v), boost)


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def _samples(keys, a, log_space):
    if keys.dtype.implementation == "threefry2x32":
        return vmap(lambda k, a: _draw_one(k, a, log_space))(keys, a)
    # Under vmap the lanes of other generators share a key.
    return lax.map(lambda one: _draw_one(*one, log_space), (keys, a))


@_samples.defjvp
def _samples_jvp(log_space, primals, tangents):
    keys, a = primals
    out = _samples(keys, a, log_space)
    sample = lax.exp(out) if log_space else out
    info = jnp.finfo(sample.dtype)
    # Where P = x^a / gamma(a + 1) to rounding, log x = (log P + log gamma(a + 1)) / a; such draws may be less than any number but their logarithm.
    near = sample < float(info.eps)
    log = out if log_space else lax.log(lax.max(sample, lax.full_like(sample, info.tiny)))
    by_log = lax.div(lax.sub(lax.digamma(lax.add(a, lax.full_like(a, 1))), log), a)
    known = lax.select_n(near, sample, lax.full_like(sample, 1))
    slope = lax.random_gamma_grad(a, known)
    slope = lax.select_n(near, lax.div(slope, known), by_log) if log_space else lax.select_n(near, slope, lax.mul(sample, by_log))
    return out, lax.mul(slope, tangents[1])


@drawn("shape", "dtype", "log_space")
def _gamma(key, a, *, shape, dtype, log_space):
    a = jnp.broadcast_to(lax.convert_element_type(a, dtype), shape)
    if key.dtype.implementation == "threefry2x32":
        return _drawn(key, a, log_space=log_space)
    return random_gamma_p.bind(key, a, log_space=log_space)


def _drawn(keys, a, *, log_space):
    """Draws for keys of shape k.. and parameters of shape k.. i..: of each key as many as there are
    i.
    """
    if not a.size:
        return a
    each = _core.bind("random_split", keys, shape=(a.size // keys.size,))
    return _samples(each.reshape(-1), a.reshape(-1), log_space).reshape(a.shape)


# Generators that share a key among the members of a batch draw gamma variates member by member under vmap, as in JAX.
random_gamma_p = composed("random_gamma", _drawn)


def _drawn_of_lanes(args, dims, *, log_space):
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    front = [jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    return random_gamma_p.bind(*front, log_space=log_space), 0


batching.primitive_batchers[random_gamma_p] = _drawn_of_lanes


@described("the gamma distribution of shape a and scale 1", parameters=True, at="2.0")
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    if out_sharding is not None:
        return sharded(gamma, locals())
    key, _ = single("gamma", key)
    return _gamma(key, a, shape=broadcast_shape("gamma", shape, shape_of(a)), dtype=float_dtype("gamma", dtype), log_space=False)


@described("the logarithm of the gamma distribution of shape a and scale 1, accurate for small a", parameters=True, at="2.0")
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    if out_sharding is not None:
        return sharded(loggamma, locals())
    key, _ = single("loggamma", key)
    return _gamma(key, a, shape=broadcast_shape("loggamma", shape, shape_of(a)), dtype=float_dtype("loggamma", dtype), log_space=True)


@described("the beta distribution of parameters a and b", parameters=True, at="2.0, 3.0")
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    if out_sharding is not None:
        return sharded(beta, locals())
    key, _ = single("beta", key)
    dtype = float_dtype("beta", dtype)
    check_parameters("beta", dtype, a, b)
    return _beta(key, a, b, shape=broadcast_shape("beta", shape, shape_of(a), shape_of(b)), dtype=dtype)


@drawn()
def _beta(key, a, b, *, shape, dtype):
    k_a, k_b = _pair(key)
    log_a, log_b = loggamma(k_a, a, shape, dtype), loggamma(k_b, b, shape, dtype)
    top = lax.max(log_a, log_b)
    x, y = lax.exp(lax.sub(log_a, top)), lax.exp(lax.sub(log_b, top))
    return lax.div(x, lax.add(x, y))


def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draws from the Dirichlet distribution: vectors of positive numbers that sum to 1.

    Args:
        key: a key.
        alpha: concentrations, shape (..., n).
        shape: the result's shape without its last axis, to which alpha.shape[:-1] broadcasts; by
          default that.
        dtype: a float dtype; by default the default one.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        an array of shape (*shape, n).

    Raises:
        ValueError: alpha is a scalar, or does not broadcast; the dtype is not floating point.

    >>> random.dirichlet(random.key(0), jnp.ones(3)).sum().round(3)
    Array(1., dtype=float32)
    """
    if out_sharding is not None:
        return sharded(dirichlet, locals())
    key, _ = single("dirichlet", key)
    dtype = float_dtype("dirichlet", dtype)
    if ndim_of(alpha) < 1:
        raise ValueError(f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {ndim_of(alpha)}")
    return _dirichlet(key, alpha, shape=broadcast_shape("dirichlet", shape, shape_of(alpha)[:-1]), dtype=dtype)


@drawn()
def _dirichlet(key, alpha, *, shape, dtype):
    logs = loggamma(key, alpha, (*shape, shape_of(alpha)[-1]), dtype)
    e = jnp.exp(logs - lax.stop_gradient(jnp.max(logs, axis=-1, keepdims=True)))
    return e / jnp.sum(e, axis=-1, keepdims=True)


@described("the chi-square distribution of df degrees of freedom", parameters=True, at="3.0")
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    if out_sharding is not None:
        return sharded(chisquare, locals())
    key, _ = single("chisquare", key)
    dtype = float_dtype("chisquare", dtype)
    check_parameters("chisquare", dtype, df)
    return _chisquare(key, df, shape=broadcast_shape("chisquare", shape, shape_of(df)), dtype=dtype)


@drawn()
def _chisquare(key, df, *, shape, dtype):
    df = lax.convert_element_type(df, dtype)
    return jnp.multiply(jnp.exp(loggamma(key, jnp.divide(df, np.asarray(2, dtype)[()]), shape, dtype)), np.asarray(2, dtype)[()])


@described("the F distribution of dfnum and dfden degrees of freedom", parameters=True, at="3.0, 4.0")
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    if out_sharding is not None:
        return sharded(f, locals())
    key, _ = single("f", key)
    dtype = float_dtype("f", dtype)
    check_parameters("f", dtype, dfnum, dfden)
    return _f(key, dfnum, dfden, shape=broadcast_shape("f", shape, shape_of(dfnum), shape_of(dfden)), dtype=dtype)


@drawn()
def _f(key, dfnum, dfden, *, shape, dtype):
    dfnum, dfden = lax.convert_element_type(dfnum, dtype), lax.convert_element_type(dfden, dtype)
    k_den, k_num = _pair(key)
    two = np.asarray(2, dtype)[()]
    log_num, log_den = loggamma(k_num, dfnum / two, shape, dtype), loggamma(k_den, dfden / two, shape, dtype)
    # For few degrees of freedom both may underflow; their logarithms then determine the ratio.
    least = float(np.log(float(jnp.finfo(dtype).tiny))) / 2
    far = jnp.minimum(log_num, log_den) < least
    num, den = (jnp.exp(jnp.where(far, 0, x)) * two for x in (log_num, log_den))
    return jnp.where(far, jnp.exp(log_num - log_den + jnp.log(dfden / dfnum)), (num / dfnum) / (den / dfden))


@described("Student's t distribution of df degrees of freedom", parameters=True, at="3.0")
def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    if out_sharding is not None:
        return sharded(t, locals())
    key, _ = single("t", key)
    dtype = float_dtype("t", dtype)
    check_parameters("t", dtype, df)
    return _t(key, df, shape=broadcast_shape("t", shape, shape_of(df)), dtype=dtype)


@drawn()
def _t(key, df, *, shape, dtype):
    half = lax.convert_element_type(df, dtype) / np.asarray(2, dtype)[()]
    k_normal, k_gamma = _pair(key)
    g = gamma(k_gamma, half, shape, dtype)
    # So that the square, by which slopes divide, is a number too.
    least = g < float(jnp.finfo(g.dtype).tiny) ** 0.5
    spread = jnp.sqrt(half / jnp.where(least, 1, g))
    # For few degrees of freedom many draws underflow; their logarithms distinguish them.
    by_logs = lambda: jnp.where(least, jnp.exp(0.5 * (jnp.log(half) - loggamma(clone(k_gamma), half, shape, dtype))), spread)
    return normal(k_normal, shape, dtype) * lax.cond(jnp.any(least), by_logs, lambda: spread)


@described("the generalised normal distribution, of density proportional to exp(-|x| ** p)", at="1.5")
def generalized_normal(
    key: ArrayLike, p: float, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    if out_sharding is not None:
        return sharded(generalized_normal, locals())
    key, _ = single("generalized_normal", key)
    shape = checked_shape("generalized_normal", shape)
    return _generalized_normal(key, p, shape=shape, dtype=float_dtype("generalized_normal", dtype))


@drawn()
def _generalized_normal(key, p, *, shape, dtype):
    k_size, k_sign = _pair(key)
    size = gamma(k_size, jnp.divide(1, p), shape, dtype)
    sign = rademacher(k_sign, shape, dtype)
    return sign * size ** jnp.divide(1, p)


def ball(
    key: ArrayLike,
    d: int,
    p: float = 2,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Uniform draws from the unit ball of the p-norm in d dimensions.

    Args:
        key: a key.
        d: the dimension, an int.
        p: the norm.
        shape: the result's shape without its last axis.
        dtype: a float dtype; by default the default one.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        an array of shape (*shape, d).

    >>> (jnp.linalg.norm(random.ball(random.key(0), 2, shape=(5,)), axis=1) <= 1).all()
    Array(True, dtype=bool)
    """
    if out_sharding is not None:
        return sharded(ball, locals())
    key, _ = single("ball", key)
    return _ball(key, p, d=int(d), shape=checked_shape("ball", shape), dtype=float_dtype("ball", dtype))


@drawn("d", "shape", "dtype")
def _ball(key, p, *, d, shape, dtype):
    # Barthe, Guedon, Mendelson and Naor (2005).
    k_direction, k_radius = _pair(key)
    g = generalized_normal(k_direction, p, (*shape, d), dtype)
    e = exponential(k_radius, shape, dtype)
    norm = (jnp.sum(jnp.abs(g) ** p, axis=-1) + e) ** lax.convert_element_type(jnp.divide(1, p), dtype)
    return g / norm[..., None]


# ---------------------------------------------------------------- counts
