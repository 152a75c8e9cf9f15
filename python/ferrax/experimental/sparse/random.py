"""Random sparse arrays.

Invariant: a key gives JAX's elements and JAX's indices.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import numpy as jnp, random
from ..._transforms.vmap import vmap
from ._base import checked_index_dtype, checked_shape
from ._duplicates import bcoo_sort_indices
from .bcoo import BCOO

if TYPE_CHECKING:
    from ..._core import Array

__all__ = ["random_bcoo"]


def random_bcoo(
    key: Array,
    shape: Sequence[int],
    *,
    dtype: Any = np.float64,
    indices_dtype: Any = None,
    nse: float | int = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Array] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """A BCOO array with random elements at random indices.

    Args:
        key: a PRNG key.
        shape: of the array.
        dtype: of the elements; by default float32, or float64 if 64-bit types are enabled.
        indices_dtype: of the indices; by default int32, or int64.
        nse: the number of specified elements of each batch, or, below 1, their share of the sparse
          dimensions' size.
        n_batch, n_dense: the numbers of batch and dense dimensions.
        unique_indices: whether each index occurs once at most.
        sorted_indices: whether the indices are sorted.
        generator: a function (key, shape, dtype) that makes the elements.
        **kwds: more arguments of it.

    Returns:
        the array.

    Raises:
        ValueError: n_batch and n_dense are more than the dimensions, or nse is negative or more
          than there are elements.
    """
    shape = checked_shape(shape)
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    n_sparse = len(shape) - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0:
        raise ValueError(f"Invalid {n_batch=}, {n_dense=} for {shape=}")
    batch, sparse, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
    size = math.prod(sparse)
    nse = math.ceil(nse * size) if 0 < nse < 1 else nse
    if not 0 <= nse <= size or nse != int(nse):
        raise ValueError(f"got nse={nse}, expected to be between 0 and {size}")
    nse = int(nse)
    index_dtype = checked_index_dtype("random_bcoo", int if indices_dtype is None else indices_dtype)
    keys = random.split(key, 1 + math.prod(batch))
    data = generator(keys[0], shape=(*batch, nse, *dense), dtype=dtype, **kwds)

    def one(key):
        if not sparse:
            return jnp.zeros((nse, 0), index_dtype)
        flat = random.choice(key, size, shape=(nse,), replace=not unique_indices)
        return jnp.stack(jnp.unravel_index(flat, sparse), axis=-1).astype(index_dtype)

    indices = vmap(one)(keys[1:]).reshape(*batch, nse, n_sparse) if batch else one(keys[1])
    mat = BCOO((data, indices), shape=shape, unique_indices=unique_indices)
    return bcoo_sort_indices(mat) if sorted_indices else mat
