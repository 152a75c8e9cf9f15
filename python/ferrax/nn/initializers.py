"""Initial values of parameters: each initializer is a function `init(key, shape, dtype) -> array`.

w = initializers.glorot_uniform()(key, (784, 128))
"""

from __future__ import annotations

import math
import typing
from typing import TYPE_CHECKING, Literal

import numpy as np

from .. import numpy as jnp, random
from .._base.dtypes import is_complex, requested
from .._sharding.parts import sharded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec
    from ..typing import ArrayLike, DTypeLike


__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


class Initializer(typing.Protocol):
    """The type of initializers."""

    def __call__(self, key: Array, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
        """An array of `shape` and `dtype`, drawn with `key`."""


def zeros(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """Zeros of a shape and dtype; the key is not used.

    Args:
        key: not used.
        shape: sequence of ints.
        dtype: dtype; None: the default float.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    >>> nn.initializers.zeros(random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(zeros, locals())
    return jnp.zeros(shape, requested("zeros", dtype, float))


def ones(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """Ones of a shape and dtype; the key is not used.

    Args:
        key: not used.
        shape: sequence of ints.
        dtype: dtype; None: the default float.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    >>> nn.initializers.ones(random.key(0), (2,))
    Array([1., 1.], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(ones, locals())
    return jnp.ones(shape, requested("ones", dtype, float))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """The initializer that fills arrays with a value, which broadcasts to their shape.

    Args:
        value: scalar, or an array that broadcasts to the requested shapes.
        dtype: dtype; None: the default float.

    Returns:
        The initializer, a function of a key, a shape and, optionally, a dtype.

    >>> nn.initializers.constant(7.0)(random.key(0), (2,))
    Array([7., 7.], dtype=float32)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        if out_sharding is not None:
            return sharded(init, locals())
        return jnp.full(shape, value, dtype=requested("full", dtype, float))

    return init


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """The initializer that draws uniformly from [0, scale).

    Args:
        scale: the upper bound.
        dtype: float dtype; None: the default float.

    Returns:
        The initializer, a function of a key, a shape and, optionally, a dtype.

    >>> nn.initializers.uniform()(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        if out_sharding is not None:
            return sharded(init, locals())
        dtype = requested(None, dtype, float)
        return random.uniform(key, shape, dtype) * jnp.array(scale, dtype)

    return init


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """The initializer that draws from a normal distribution with mean 0.

    Args:
        stddev: the standard deviation.
        dtype: float or complex dtype; None: the default float.

    Returns:
        The initializer, a function of a key, a shape and, optionally, a dtype.

    >>> nn.initializers.normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        if out_sharding is not None:
            return sharded(init, locals())
        dtype = requested(None, dtype, float)
        return random.normal(key, shape, dtype) * jnp.array(stddev, dtype)

    return init


def truncated_normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0) -> Initializer:
    """The initializer that draws from a normal distribution with mean 0, truncated at `lower` and
    `upper` standard deviations.

    Args:
        stddev: the standard deviation of the uncut distribution.
        dtype: float dtype; None: the default float.
        lower, upper: the cuts, in standard deviations.

    Returns:
        The initializer, a function of a key, a shape and, optionally, a dtype.

    >>> nn.initializers.truncated_normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        if out_sharding is not None:
            return sharded(init, locals())
        dtype = requested(None, dtype, float)
        return random.truncated_normal(key, lower, upper, shape, dtype) * jnp.array(stddev, dtype)

    return init


def _fans(shape, in_axis, out_axis, batch_axis):
    """The numbers of inputs and outputs of one unit; remaining axes are the receptive field and
    count for both.
    """
    if len(shape) <= 1 and (in_axis, out_axis) == (-2, -1):
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor with default in_axis."
            " Must be at least 2D or specify in_axis explicitly."
        )
    size = lambda axes: int(np.prod([shape[a] for a in ((axes,) if isinstance(axes, int) else axes)], dtype=np.int64))
    n_in, n_out, n_batch = size(in_axis), size(out_axis), size(batch_axis)
    field = int(np.prod(shape, dtype=np.int64)) / n_in / n_out / n_batch
    return n_in * field, n_out * field


def variance_scaling(
    scale: ArrayLike,
    mode: Literal["fan_in"] | Literal["fan_out"] | Literal["fan_avg"] | Literal["fan_geo_avg"],
    distribution: Literal["truncated_normal"] | Literal["normal"] | Literal["uniform"],
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """The initializer whose draws have variance scale / fan.

    Args:
        scale: a positive number.
        mode: which fan: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg".
        distribution: "truncated_normal", "normal" or "uniform".
        in_axis, out_axis, batch_axis: axes of inputs, of outputs, and axes that count for neither;
          ints or sequences of them.
        dtype: the default dtype.

    Returns:
        The initializer, a function of a key, a shape and, optionally, a dtype.

    Raises:
        ValueError: mode or distribution is unknown, or (later) a shape has fewer than two axes.

    >>> nn.initializers.variance_scaling(1.0, "fan_in", "normal")(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        if out_sharding is not None:
            return sharded(init, locals())
        dtype = requested(None, dtype, float)
        shape = tuple(shape)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2, "fan_geo_avg": (fan_in * fan_out) ** 0.5}
        if mode not in fans:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        variance = jnp.array(scale / fans[mode], dtype=dtype)
        if distribution == "truncated_normal":
            if is_complex(dtype):
                # The standard deviation of a complex normal cut at |z| < 2.
                stddev = jnp.sqrt(variance) / jnp.array(0.95311164380491208, dtype)
                return _complex_truncated_normal(key, 2, shape, dtype) * stddev
            # The standard deviation of a normal cut to (-2, 2).
            stddev = jnp.sqrt(variance) / jnp.array(0.87962566103423978, dtype)
            return random.truncated_normal(key, -2, 2, shape, dtype) * stddev
        if distribution == "normal":
            return random.normal(key, shape, dtype) * jnp.sqrt(variance)
        if distribution == "uniform":
            if is_complex(dtype):
                return _complex_uniform(key, shape, dtype) * jnp.sqrt(variance)
            return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)
        raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")

    return init


def _part(dtype):
    return np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)


def _complex_uniform(key, shape, dtype):
    """Uniform on the unit disc, scaled to variance 1."""
    k_r, k_theta = random.split(key)
    real = _part(dtype)
    r = jnp.sqrt(2 * random.uniform(k_r, shape, real)).astype(dtype)
    theta = (2 * np.pi * random.uniform(k_theta, shape, real)).astype(dtype)
    return r * jnp.exp(1j * theta)


def _complex_truncated_normal(key, upper, shape, dtype):
    """A complex standard normal, cut to |z| < upper: by inversion of the radius's distribution."""
    k_r, k_theta = random.split(key)
    real = _part(dtype)
    t = (1 - jnp.exp(jnp.array(-(upper**2), dtype))) * random.uniform(k_r, shape, real).astype(dtype)
    r = jnp.sqrt(-jnp.log(1 - t))
    theta = (2 * np.pi * random.uniform(k_theta, shape, real)).astype(dtype)
    return r * jnp.exp(1j * theta)


class _Scaled(typing.Protocol):
    """The type of `glorot_uniform` and its kind."""

    def __call__(
        self,
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer: ...


def _scaled(name, scale, mode, distribution, words) -> _Scaled:
    def make(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None):
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""The initializer {words}: variance_scaling({scale}, {mode!r}, {distribution!r}).

    Args:
      in_axis, out_axis, batch_axis: axes of inputs, of outputs, and axes that count for neither; ints or sequences of them.
      dtype: a float or complex dtype; None: the default float.

    Returns:
      The initializer, a function of a key, a shape and, optionally, a dtype.

    >>> nn.initializers.{name}()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return make


glorot_uniform = xavier_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform", "of Glorot and Bengio (2010), uniform")
glorot_normal = xavier_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal", "of Glorot and Bengio (2010), normal")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform", "of LeCun et al. (1998), uniform")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal", "of LeCun et al. (1998), normal")
he_uniform = kaiming_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform", "of He et al. (2015), uniform")
he_normal = kaiming_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal", "of He et al. (2015), normal")


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """The initializer of matrices with orthonormal rows or columns (whichever are fewer), times
    `scale`.

    Args:
        scale: a number.
        column_axis: the axis of the columns; the others together are the rows.
        dtype: the default dtype.

    Returns:
        The initializer, a function of a key, a shape and, optionally, a dtype.

    Raises:
        ValueError: (later) a shape has fewer than two axes.

    >>> nn.initializers.orthogonal()(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        if out_sharding is not None:
            return sharded(init, locals())
        dtype = requested(None, dtype, float)
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        n_columns = shape[column_axis]
        rest = tuple(np.delete(shape, column_axis).tolist())
        q = random.orthogonal(key, math.prod(rest), (), dtype, n_columns)
        return jnp.array(scale, dtype) * jnp.moveaxis(q.reshape(*rest, n_columns), -1, column_axis)

    return init


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """The initializer of convolution kernels that are orthogonal at the centre and 0 elsewhere
    (Xiao et al., 2018).

    Args:
        scale: a number.
        column_axis: int, the axis of the columns.
        dtype: dtype; None: the default float.

    Returns:
        The initializer, a function of a key, a shape and, optionally, a dtype.

    Raises:
        ValueError: (later) a shape does not have 3 to 5 axes, or more inputs than outputs.

    >>> nn.initializers.delta_orthogonal()(random.key(0), (3, 2, 2)).shape
    (3, 2, 2)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        if out_sharding is not None:
            return sharded(init, locals())
        dtype = requested(None, dtype, float)
        if len(shape) not in (3, 4, 5):
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D or 5D shape.")
        if shape[-1] < shape[-2]:
            raise ValueError("`fan_in` must be less or equal than `fan_out`. ")
        matrix = orthogonal(scale=scale, column_axis=column_axis, dtype=dtype)(key, shape[-2:], dtype)
        centre = tuple((n - 1) // 2 for n in shape[:-2])
        return jnp.zeros(shape, dtype).at[centre].set(matrix)

    return init
