"""Draws from the elements of an array: permutation, choice.

Invariant: permutation, and choice without weights, equal JAX's bit for bit.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _core, lax, numpy as jnp
from .._base.dtypes import canonicalize_dtype, is_floating, is_integer
from .._sharding.parts import sharded
from ..numpy._support.arguments import ndim_of
from ._keys import single
from ._transformed import gumbel
from ._uniform import _pair, _random_bits, checked_shape, drawn, randint, uniform

if TYPE_CHECKING:
    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec
    from ..typing import ArrayLike


def permutation(key: ArrayLike, x: ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """A random permutation of an array along an axis, or of range(x).

    Args:
        key: a key.
        x: an array, or an int.
        axis: the axis.
        independent: permute each vector along the axis on its own.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array like x, or of range(x).

    Raises:
        TypeError: x is a scalar but not an integer.
        ValueError: the axis is out of bounds.

    >>> random.permutation(random.key(0), 4)
    Array([0, 1, 3, 2], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(permutation, locals())
    key, _ = single("permutation", key)
    axis = operator.index(axis)
    if isinstance(x, (list, tuple)):
        raise TypeError(f"permutation requires ndarray or scalar arguments, got {type(x)} at position 0.")
    if not ndim_of(x):
        if not is_integer(_core.result_type(x)):
            raise TypeError("x must be an integer or at least 1-dimensional")
        if not -1 <= axis < 1:
            raise ValueError(f"axis {axis} is out of bounds for array of dimension 1")
        return _shuffle(key, jnp.arange(operator.index(x) if not isinstance(x, _core.Array) else int(x)), axis=0)
    x = jnp.asarray(x)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {x.ndim}")
    axis %= x.ndim
    if independent or x.ndim == 1:
        return _shuffle(key, x, axis=axis)
    order = _shuffle(key, jnp.arange(x.shape[axis]), axis=0)
    return jnp.take(x, order, axis, unique_indices=True)


@drawn("axis")
def _shuffle(key, x, *, axis):
    # Sorting by random 32-bit words has ties; repeating it makes the bias vanish for n up to 2**32 (three times the bits that n needs).
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, sub = _pair(key)
        _, x = lax.sort_key_val(_random_bits(sub, 32, x.shape), x, axis)
    return x


def choice(
    key: ArrayLike, a: ArrayLike, shape: Sequence[int] = (), replace: bool = True, p: ArrayLike | None = None, axis: int = 0, mode: str | None = None
) -> Array:
    """Draws from an array's elements (rows, along `axis`), or from range(a).

    Args:
        key: a key.
        a: an array, or an int.
        shape: the shape of the draws.
        replace: whether an element may be drawn more than once.
        p: weights, shape (n,); by default equal.
        axis: the axis to draw along.
        mode: as in `gumbel`, for draws without replacement.

    Returns:
        Array of `shape`, and of the other axes of a, of a's dtype.

    Raises:
        TypeError: the shape is not a sequence.
        ValueError: there is nothing to draw from, too little without replacement, the axis is out
            of bounds, or the weights' shape is wrong.

    >>> random.choice(random.key(0), 5, (2,))
    Array([4, 0], dtype=int32)
    """
    key, _ = single("choice", key)
    if isinstance(a, (list, tuple)):
        raise TypeError(f"choice requires ndarray or scalar arguments, got {type(a)} at position 0.")
    if not hasattr(shape, "__iter__"):
        raise TypeError(f"shape argument of jax.random.choice must be a sequence, got {shape}")
    shape = checked_shape("choice", shape)
    is_range = ndim_of(a) == 0
    array = None if is_range else jnp.asarray(a)
    if not is_range:
        if not -array.ndim <= axis < array.ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of dimension {array.ndim}")
        axis %= array.ndim
    n_inputs = int(a) if is_range else array.shape[axis]
    n_draws = math.prod(shape)
    if n_draws == 0:
        rest = () if is_range else array.shape[:axis] + array.shape[axis + 1 :]
        return jnp.zeros((*rest[:axis], *shape, *rest[axis:]), canonicalize_dtype(int) if is_range else array.dtype)
    if n_inputs <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and n_draws > n_inputs:
        raise ValueError(f"Cannot take a larger sample (size {n_draws}) than population (size {n_inputs}) when 'replace=False'")
    if p is None:
        if replace:
            index = randint(key, shape, 0, n_inputs)
            return index if is_range else jnp.take(array, index, axis)
        shuffled = permutation(key, n_inputs if is_range else array, axis)
        drawn_ = lax.slice_in_dim(shuffled, 0, n_draws, axis=0 if is_range else axis)
        return jnp.reshape(drawn_, (*drawn_.shape[:axis], *shape, *drawn_.shape[axis + 1 :]))
    p = jnp.asarray(p)
    if not is_floating(p.dtype):
        p = p.astype(canonicalize_dtype(float))
    if p.shape != (n_inputs,):
        raise ValueError(f"p must be None or a 1D vector with the same size as a.shape[axis]. p has shape {p.shape} and a.shape[axis] is {n_inputs}.")
    if replace:
        total = jnp.cumsum(p)
        r = total[-1] * (1 - uniform(key, shape, dtype=p.dtype))
        index = jnp.searchsorted(total, r).astype(canonicalize_dtype(int))
    else:
        scores = gumbel(key, (n_inputs,), dtype=p.dtype, mode=mode) + jnp.log(p)
        index = lax.top_k(scores, n_draws)[1].astype(canonicalize_dtype(int)).reshape(shape)
    return index if is_range else jnp.take(array, index, axis)
