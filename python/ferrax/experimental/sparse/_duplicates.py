"""The order of indices: sorting, summing duplicates, finding one array's indices among another's.

Invariant: indices are compared column by column, never as one number, so shapes may be as large as
their sizes' dtype allows.

    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCOO((jnp.array([1.0, 2.0, 3.0]), jnp.array([[1], [0], [1]])), shape=(2,))
    >>> bcoo_sum_duplicates(mat).data
    Array([2., 4.], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import lax, numpy as jnp
from ..._core import Tracer
from ._base import columns, ends, inside, masked, over_batch
from .bcoo import check_bcoo, made, props

if TYPE_CHECKING:
    from .bcoo import BCOO

__all__ = ["bcoo_sort_indices", "bcoo_sum_duplicates", "first_occurrences", "positions_of"]


def _order(indices):
    """(the sorted columns, the permutation that sorts) of indices (nse, n), lexicographically and
    stably.
    """
    iota = lax.iota(np.int32, indices.shape[0])
    *cols, perm = lax.sort((*columns(indices), iota), num_keys=max(1, indices.shape[-1]), is_stable=True)
    return cols, perm


def _differs(cols, n):
    """(n,): whether a row of sorted columns differs from the one before; the first does."""
    head = jnp.ones((min(n, 1),), bool)
    tail = jnp.zeros((max(n - 1, 0),), bool)
    for c in cols:
        tail = tail | (c[1:] != c[:-1])
    return jnp.concatenate([head, tail])


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """A BCOO array with its indices in lexicographic order.

    Args:
        mat: a BCOO array.

    Returns:
        the same array; equal indices keep their order.

    Raises:
        TypeError: it is not a BCOO array.
    """
    check_bcoo("bcoo_sort_indices", mat)
    nb = mat.n_batch
    perm = over_batch(lambda i: _order(i)[1], nb, mat.indices)
    take = lambda x, p: jnp.take(x, p, axis=0)
    return made(over_batch(take, nb, mat.data, perm), over_batch(take, nb, mat.indices, perm), mat.shape, True, mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """A BCOO array with sorted indices, each once: elements with equal indices are summed.

    Args:
        mat: a BCOO array.
        nse: the number of elements of each batch of the result; by default the number of distinct
          ones, which is unknown for traced indices. If there are fewer, the rest has indices
          outside; if there are more, the last ones are dropped.

    Returns:
        a BCOO array with sorted unique indices.

    Raises:
        ValueError: the indices are traced, and `nse` is not given; or it is negative.
        TypeError: `mat` is not a BCOO array.

    >>> from ferrax.experimental import sparse
    >>> bcoo_sum_duplicates(sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [1]])), shape=(3,)))
    BCOO(float32[3], nse=1)
    """
    return sum_duplicates(mat, nse, remove_zeros=False)


def sum_duplicates(mat, nse=None, remove_zeros=True):
    check_bcoo("bcoo_sum_duplicates", mat)
    (nb, ns, nd), (_, sparse, _) = props(mat)
    if nse is not None and nse < 0:
        raise ValueError(f"bcoo_sum_duplicates: nse must not be negative, got {nse}")
    end = ends(sparse, mat.indices.dtype)
    there = inside(mat.indices, sparse)
    if remove_zeros:
        there = there & jnp.any(mat.data != 0, axis=tuple(range(nb + 1, nb + 1 + nd)))
    there = jnp.broadcast_to(there, (*there.shape[:-1], mat.nse))
    indices = jnp.where(lax.expand_dims(there, (nb + 1,)), mat.indices, end)

    def groups(indices, there):
        cols, perm = _order(indices)
        group = jnp.cumsum(_differs(cols, indices.shape[0]), dtype=np.int32) - 1
        valid = there[perm]
        return perm, group, valid, jnp.max(jnp.where(valid, group + 1, 0), initial=0)

    perm, group, valid, count = over_batch(groups, nb, indices, there)
    if nse is None:
        if isinstance(count, Tracer):
            raise ValueError(
                "bcoo_sum_duplicates: nse must be specified when using the function within jit, vmap, and other transformations requiring abstract evaluation."
            )
        nse = int(jnp.max(count, initial=0))

    def new_indices(indices, perm, group):
        return jnp.broadcast_to(end, (nse, ns)).at[group].set(indices[perm], mode="drop") if ns else jnp.zeros((nse, 0), indices.dtype)

    def new_data(data, perm, group, valid):
        data = masked(jnp.take(data, perm, axis=0), valid, 0)
        at = jnp.zeros((nse, *data.shape[1:]), data.dtype).at[group]
        return at.max(data, mode="drop") if data.dtype == bool else at.add(data, mode="drop")

    out = over_batch(new_data, nb, mat.data, perm, group, valid)
    return made(out, over_batch(new_indices, nb, indices, perm, group), mat.shape, True, True)


def first_occurrences(mat):
    """(batch, nse): whether an element is inside, and the first with its indices."""

    def one(indices):
        cols, perm = _order(indices)
        return jnp.zeros(perm.shape, bool).at[perm].set(_differs(cols, indices.shape[0]))

    (nb, _, _), (_, sparse, _) = props(mat)
    return over_batch(one, nb, mat.indices) & inside(mat.indices, sparse)


def positions_of(queries, indices):
    """The positions of the queries (m, k) among unique indices (n, k): (m,), n for a query that
    does not occur.
    """
    n, m = indices.shape[0], queries.shape[0]
    if n == 0 or queries.shape[-1] == 0:
        return jnp.zeros((m,), np.int32)
    both = jnp.concatenate([indices, queries.astype(indices.dtype)])
    cols, perm = _order(both)
    # equal rows are adjacent, that of `indices` first: take the last such row before each query
    slot = lax.iota(np.int32, n + m)
    last = lax.cummax(jnp.where(perm < n, slot, -1), axis=0)
    at = jnp.maximum(last, 0)
    found = last >= 0
    for c in cols:
        found = found & (c[at] == c)
    return jnp.zeros((n + m,), np.int32).at[perm].set(jnp.where(found, perm[at], n))[n:]
