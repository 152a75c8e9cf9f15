"""Random bits as primitives.

Invariant: the state is an argument and, advanced, a result; nothing is stored.

    >>> state, bits = lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (3,))
    >>> state
    Array([0, 0, 1, 0], dtype=uint32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.dtypes import canonicalize_dtype
from .._base.shapes import canonicalize_shape
from .._core import bind
from .._sharding.parts import reshard
from ._parameters import RandomAlgorithm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec
    from ..typing import ArrayLike, DTypeLike

_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)


def rng_bit_generator(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike = np.uint32,
    algorithm: Any = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> tuple[Array, Array]:
    """The next state and random bits. Under `vmap` all lanes draw from the first lane's state.

    Args:
        key: uint32[4], or uint64[2] with x64.
        shape: sequence of ints.
        dtype: unsigned integer dtype of the bits.
        algorithm: `RandomAlgorithm`: philox4x32 (also the default) or threefry2x32.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        (key, bits): an array like key, and one of `shape` and `dtype`.

    Raises:
        TypeError: for other keys and dtypes.

    >>> lax.rng_bit_generator(jnp.array([0, 0, 0, 0], "uint32"), (2,))[1].shape
    (2,)
    """
    if out_sharding is not None:
        key, bits = rng_bit_generator(key, shape, dtype, algorithm)
        return key, reshard(bits, out_sharding)
    dtype = canonicalize_dtype(np.uint32 if dtype is None else dtype)
    if dtype.kind != "u" or dtype.itemsize > 8:
        raise TypeError(f"rng_bit_generator: unsupported dtype {dtype}")
    key, algorithm = _core.asarray(key), RandomAlgorithm(algorithm)
    if (key.dtype, tuple(key.shape)) not in ((_U32, (4,)), (_U64, (2,))):
        raise TypeError(f"rng_bit_generator: the key must be uint32[4] or uint64[2], got {key.dtype}[{','.join(map(str, key.shape))}]")
    return tuple(bind("rng_bit_generator", key, shape=canonicalize_shape(shape), dtype=dtype, algorithm=algorithm))


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Numbers from [a, b), others at every call: the host draws them.

    Args:
        a, b: scalars of one dtype, integer or float.
        shape: sequence of ints.

    Returns:
        Array of `shape` and of their dtype.

    Raises:
        ValueError: for arrays, and for operands of two dtypes.

    >>> lax.rng_uniform(0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    return bind("rng_uniform", a, b, shape=canonicalize_shape(shape))
