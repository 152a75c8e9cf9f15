"""Other shapes of BCOO arrays: their elements stay, their indices move.

Invariant: an element outside the shape remains outside, with every index at the end of its
dimension.

    >>> from ferrax.experimental import sparse
    >>> bcoo_transpose(sparse.eye(2, 3, 1), permutation=(1, 0))
    BCOO(float32[3, 2], nse=2)
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lax, numpy as jnp
from ..._base.flags import no_sharding
from ._base import column, ends, inside, masked
from .bcoo import BCOO, check_bcoo, like, made, props

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_squeeze", "bcoo_transpose"]


def with_columns(mat, cols, sparse_shape, data=None, *, valid=None):
    """(data, indices) of an array with other index columns.

    Elements outside get the end of each; if no column remains, their data become zero.
    """
    data = mat.data if data is None else data
    valid = inside(mat.indices, props(mat)[1][1]) if valid is None else valid
    dtype = mat.indices.dtype
    if not cols:
        valid = jnp.broadcast_to(valid, (*valid.shape[:-1], mat.nse))
        return masked(data, valid, mat.n_batch), jnp.zeros((*mat.indices.shape[:-1], 0), dtype)
    end = ends(sparse_shape, dtype, reached=True)
    return data, jnp.stack([jnp.where(valid, c, e).astype(dtype) for c, e in zip(cols, end, strict=True)], axis=-1)


def materialized(mat):
    """(data, indices) without shared batch dimensions."""
    batch = mat.shape[: mat.n_batch]
    return jnp.broadcast_to(mat.data, (*batch, *mat.data.shape[len(batch) :])), jnp.broadcast_to(mat.indices, (*batch, *mat.indices.shape[len(batch) :]))


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """A BCOO array with its dimensions in another order.

    Args:
        mat: a BCOO array.
        permutation: of its dimensions; batch, sparse and dense dimensions each stay among
          themselves.

    Returns:
        a BCOO array; dimension i is dimension permutation[i] of `mat`.

    Raises:
        TypeError: it is not a permutation.
        NotImplementedError: it exchanges dimensions of two kinds (`update_layout` changes kinds).

    >>> from ferrax.experimental import sparse
    >>> bcoo_transpose(sparse.BCOO.fromdense(jnp.array([[0.0, 1.0]])), permutation=(1, 0)).indices
    Array([[1, 0]], dtype=int32)
    """
    check_bcoo("bcoo_transpose", mat)
    permutation = tuple(operator.index(p) for p in permutation)
    if sorted(permutation) != list(range(mat.ndim)):
        raise TypeError(f"transpose permutation isn't a permutation of operand dimensions, got permutation {permutation} for shape {mat.shape}.")
    (nb, ns, nd), _ = props(mat)
    batch, sparse, dense = permutation[:nb], permutation[nb : nb + ns], permutation[nb + ns :]
    if any(p >= nb for p in batch):
        raise NotImplementedError(f"transpose permutation cannot permute batch axes with non-batch axes; got {permutation=}, with n_batch={nb}.")
    if any(p < nb + ns for p in dense):
        raise NotImplementedError(f"transpose permutation cannot permute dense axes with non-dense axes; got {permutation=}, with n_dense={nd}.")
    data = lax.transpose(mat.data, (*batch, nb, *(p - ns + 1 for p in dense)))
    indices = lax.transpose(mat.indices, (*batch, nb, nb + 1))
    order = [p - nb for p in sparse]
    indices = indices if order == list(range(ns)) else indices[..., np.array(order)]
    shape = tuple(mat.shape[p] for p in permutation)
    return made(data, indices, shape, mat.indices_sorted and order == list(range(ns)), mat.unique_indices)


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None) -> BCOO:
    """`lax.broadcast_in_dim` of a BCOO array.

    New dimensions before the first sparse one are batch dimensions, those behind the first dense
    one are dense, the others sparse; elements are repeated along sparse dimensions that grow.

    Args:
        mat: a BCOO array.
        shape: of the result.
        broadcast_dimensions: increasing: the position of each dimension of `mat` in the result.
        sharding: has no effect.

    Returns:
        a BCOO array of that shape.

    Raises:
        ValueError: there are not as many broadcast_dimensions as dimensions, or they do not
          increase, or a size is neither 1 nor that of the result.
    """
    check_bcoo("bcoo_broadcast_in_dim", mat)
    if sharding is not None:
        no_sharding("bcoo_broadcast_in_dim", sharding)
    shape, dims = tuple(map(operator.index, shape)), tuple(map(operator.index, broadcast_dimensions))
    if len(dims) != mat.ndim:
        raise ValueError(f"spinfo.shape={mat.shape} and broadcast_dimensions={dims} must have the same length")
    if list(dims) != sorted(set(dims)) or any(d < 0 or d >= len(shape) for d in dims):
        raise ValueError(f"bcoo_broadcast_in_dim: broadcast_dimensions must be strictly increasing and within the result's dimensions; got {dims} for {shape=}")
    if any(d not in (1, shape[i]) for d, i in zip(mat.shape, dims, strict=True)):
        raise ValueError(f"bcoo_broadcast_in_dim: cannot broadcast {mat.shape} to {shape} with broadcast_dimensions={dims}")
    (nb, ns, nd), _ = props(mat)
    new_nb = dims[nb] if nb < mat.ndim else len(shape)
    new_nd = len(shape) - dims[nb + ns] if nd else 0
    new_nd = min(new_nd, len(shape) - new_nb)
    stop = len(shape) - new_nd
    batch_dims, dense_dims = dims[:nb], tuple(d - stop for d in dims[nb + ns :])

    def widened(x, rest, rest_dims):
        # x (batch, nse, *rest) with the new batch dimensions, and its own at their places
        return lax.broadcast_in_dim(x, (*shape[:new_nb], x.shape[nb], *rest), (*batch_dims, new_nb, *(new_nb + 1 + d for d in rest_dims)))

    # a batch dimension of size 1 in the buffers grows like one of size 1 in the shape
    data = widened(mat.data, shape[stop:], dense_dims)
    indices = widened(mat.indices, (ns,), (0,))
    wide = made(data, indices, (*shape[:new_nb], *mat.shape[nb : nb + ns], *shape[stop:]), mat.indices_sorted, mat.unique_indices)
    sparse_shape = shape[new_nb:stop]
    source = {d - new_nb: i for i, d in enumerate(dims[nb : nb + ns])}
    grown = [j for j, d in enumerate(sparse_shape) if d != (wide.shape[new_nb + source[j]] if j in source else 1)]
    times = math.prod(sparse_shape[j] for j in grown)
    valid = inside(indices, wide.shape[new_nb : new_nb + ns])

    def repeated(x, at):
        return x if not grown else jnp.repeat(x, times, axis=at, total_repeat_length=x.shape[at] * times)

    if not grown and len(sparse_shape) == ns:
        return made(data, indices, shape, mat.indices_sorted, mat.unique_indices)
    copy = jnp.arange(mat.nse * times) % max(times, 1)
    strides = {j: math.prod(sparse_shape[k] for k in grown if k > j) for j in grown}
    lead = indices.shape[:-1]
    cols = []
    for j, d in enumerate(sparse_shape):
        if j in grown:
            cols.append(jnp.broadcast_to(copy // max(strides[j], 1) % max(d, 1), (*lead[:-1], mat.nse * times)))
        elif j in source:
            cols.append(repeated(column(indices, source[j]), new_nb))
        else:
            cols.append(jnp.zeros((*lead[:-1], mat.nse * times), indices.dtype))
    wide = made(repeated(data, new_nb), repeated(indices, new_nb), wide.shape)
    data, indices = with_columns(wide, cols, sparse_shape, valid=repeated(valid, new_nb))
    return made(data, indices, shape, False, mat.unique_indices)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """`lax.concatenate` of BCOO arrays.

    Args:
        operands: BCOO arrays of equal shapes except for one dimension, with equal numbers of batch
          and dense dimensions, and one dtype.
        dimension: a batch or a sparse dimension, along which they are joined.

    Returns:
        a BCOO array.

    Raises:
        ValueError: there are no arrays, one is not a BCOO array, or their layouts differ.
        TypeError: shapes or dtypes differ, or the dimension is out of range.
        NotImplementedError: it is a dense dimension.
    """
    operands = list(operands)
    dimension = operator.index(dimension)
    if not all(isinstance(op, BCOO) for op in operands):
        raise ValueError(f"bcoo_concatenate: expected operands to be a sequence of BCOO arrays. Got {operands}")
    if not operands:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    shapes = [op.shape for op in operands]
    listed = ", ".join(map(str, shapes))
    if len({len(s) for s in shapes}) > 1:
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: got {listed}.")
    if not 0 <= dimension < len(shapes[0]):
        raise TypeError(f"concatenate dimension out of bounds: dimension {dimension} for shapes {listed}.")
    if len({s[:dimension] + s[dimension + 1 :] for s in shapes}) > 1:
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated: "
            f"concatenating along dimension {dimension} for shapes {listed}."
        )
    for kind, name in (("n_batch", "batch"), ("n_dense", "dense")):
        if len({getattr(op, kind) for op in operands}) > 1:
            raise ValueError(f"bcoo_concatenate requires inputs to have matching {name} dimensions.")
    if len({op.dtype for op in operands}) > 1:
        raise TypeError(f"lax.concatenate requires arguments to have the same dtypes, got {', '.join(str(op.dtype) for op in operands)}.")
    (nb, ns, _), _ = props(operands[0])
    if dimension >= nb + ns:
        raise NotImplementedError("Concatenation along dense dimensions.")
    shape = list(shapes[0])
    shape[dimension] = sum(s[dimension] for s in shapes)
    if len(operands) == 1:
        return like(operands[0], operands[0].data)
    dtype = jnp.result_type(*(op.indices.dtype for op in operands))
    parts, nse = [], max(op.nse for op in operands)
    offset = 0
    for op in operands:
        data, indices = materialized(op)
        if dimension < nb:
            pad = nse - op.nse
            end = jnp.broadcast_to(ends(shape[nb : nb + ns], dtype, reached=True), (*indices.shape[:-2], pad, ns))
            data = jnp.concatenate([data, jnp.zeros((*data.shape[:nb], pad, *data.shape[nb + 1 :]), data.dtype)], axis=nb)
            parts.append((data, jnp.concatenate([indices.astype(dtype), end], axis=nb)))
            continue
        op = made(data, indices.astype(dtype), op.shape)
        cols = [column(op.indices, j) + (offset if nb + j == dimension else 0) for j in range(ns)]
        offset += op.shape[dimension]
        parts.append(with_columns(op, cols, shape[nb : nb + ns], valid=inside(indices, op.shape[nb : nb + ns])))
    axis = min(dimension, nb)
    data, indices = (jnp.concatenate([p[k] for p in parts], axis=axis) for k in (0, 1))
    whole = dimension < nb or dimension == nb
    # behind an element outside comes one inside: only arrays that have none outside stay sorted, and that was not promised
    return made(data, indices, shape, dimension < nb and all(op.indices_sorted for op in operands), whole and all(op.unique_indices for op in operands))


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum of a BCOO array over some dimensions.

    Args:
        mat: a BCOO array.
        axes: dimensions, counted from the front or the end.

    Returns:
        a BCOO array. Along a sparse dimension elements are not merged, so indices may no longer be
        unique; batches are concatenated.

    Raises:
        ValueError: the dimension does not exist.
    """
    check_bcoo("bcoo_reduce_sum", mat)
    axes = sorted({_axis(a, mat.ndim) for a in axes})
    (nb, ns, _), (_, sparse, _) = props(mat)
    batch_axes = [a for a in axes if a < nb]
    sparse_axes = [a - nb for a in axes if nb <= a < nb + ns]
    dense_axes = tuple(a - ns + 1 for a in axes if a >= nb + ns)
    data, indices = mat.data, mat.indices
    if dense_axes:
        data = jnp.any(data, axis=dense_axes) if data.dtype == bool else jnp.sum(data, axis=dense_axes, dtype=data.dtype)
    if sparse_axes:
        kept = [j for j in range(ns) if j not in sparse_axes]
        data, indices = with_columns(mat, [column(indices, j) for j in kept], [sparse[j] for j in kept], data)
    if batch_axes:
        data, indices = materialized(made(data, indices, mat.shape[: data.ndim + indices.shape[-1] - 1]))
        kept = [a for a in range(nb) if a not in batch_axes]

        def merged(x):
            x = lax.transpose(x, (*kept, *batch_axes, *range(nb, x.ndim)))
            return x.reshape(*x.shape[: len(kept)], math.prod(x.shape[len(kept) : nb + 1]), *x.shape[nb + 1 :])

        data, indices = merged(data), merged(indices)
    shape = tuple(d for i, d in enumerate(mat.shape) if i not in axes)
    whole = not batch_axes and not sparse_axes
    return made(data, indices, shape, mat.indices_sorted and whole, mat.unique_indices and whole)


def _axis(axis, ndim):
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def _prefix(sizes, n, whole):
    """The number of sizes that correspond to n dimensions of `whole` elements: the fewest whose
    product is that.
    """
    if n == 0:
        return 0
    product = 1
    for i, d in enumerate(sizes):
        product *= d
        if product == whole:
            return i + 1
    return None


def _groups(old, new):
    """The shortest runs of dimensions of equal products: ((old dims), (new dims)) for each."""
    i = j = 0
    while i < len(old) or j < len(new):
        a, b = i, j
        m, n = (old[i] if i < len(old) else 1), (new[j] if j < len(new) else 1)
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while m != n:
            if m < n and i < len(old):
                m, i = m * old[i], i + 1
            elif j < len(new):
                n, j = n * new[j], j + 1
            else:
                m, i = m * old[i], i + 1
        yield range(a, i), range(b, j), m


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None) -> BCOO:
    """`lax.reshape` of a BCOO array.

    Args:
        mat: a BCOO array.
        new_sizes: the new shape, with the same number of elements; batch, sparse and dense
          dimensions must not mix.
        dimensions: the order in which the dimensions are read; each kind is permuted separately.
        sharding: has no effect.

    Returns:
        a BCOO array of that shape.

    Raises:
        ValueError: it has another number of elements, dimensions of two kinds would mix, or indices
          do not fit into their dtype.
        NotImplementedError: `dimensions` exchanges dimensions of two kinds.

    >>> from ferrax.experimental import sparse
    >>> bcoo_reshape(sparse.eye(2), new_sizes=(4,)).indices
    Array([[0],
           [3]], dtype=int32)
    """
    check_bcoo("bcoo_reshape", mat)
    if sharding is not None:
        no_sharding("bcoo_reshape", sharding)
    new = tuple(operator.index(d) for d in new_sizes)
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    if new == mat.shape:
        return mat
    (nb, ns, nd), (batch, sparse, dense) = props(mat)
    k = _prefix(new, nb, math.prod(batch))
    back = _prefix(new[::-1], nd, math.prod(dense))
    detail = f"got shape={mat.shape} new_shape={new}"
    if k is None:
        raise ValueError(f"bcoo_reshape: new shape cannot mix batch and sparse dimensions; {detail} with n_batch={nb}")
    if back is None or k + back > len(new) or math.prod(new[k : len(new) - back]) != math.prod(sparse) or any(d < 0 for d in new):
        raise ValueError(f"bcoo_reshape: new shape cannot mix sparse and dense dimensions; {detail} with n_dense={nd}")
    new_sparse, new_dense = new[k : len(new) - back], new[len(new) - back :]
    data, indices = (mat.data, mat.indices) if new[:k] == batch else materialized(mat)
    mat = made(data, indices, mat.shape, mat.indices_sorted, mat.unique_indices)
    if new_sparse != sparse:
        top, cols = np.iinfo(indices.dtype).max, []
        positive = [jnp.where(c < 0, c + d, c) for c, d in zip((column(indices, i) for i in range(ns)), sparse, strict=True)]
        for a, b, size in _groups(sparse, new_sparse):
            if len(a) == len(b) == 1:
                cols.append(positive[a[0]])
                continue
            if size > top:
                raise ValueError(f"bcoo_reshape: indices into {size} elements do not fit into {indices.dtype}, the dtype of the indices; {detail}")
            flat = sum((positive[i] * math.prod(sparse[i + 1 : a.stop]) for i in a), jnp.zeros(indices.shape[:-1], indices.dtype))
            cols += [flat // max(math.prod(new_sparse[j + 1 : b.stop]), 1) % max(new_sparse[j], 1) for j in b]
        data, indices = with_columns(mat, cols, new_sparse)
    lead = new[:k] if new[:k] != batch else data.shape[:nb]
    data = data.reshape(*lead, mat.nse, *new_dense)
    lead = new[:k] if new[:k] != batch else indices.shape[:nb]
    return made(data, indices.reshape(*lead, mat.nse, len(new_sparse)), new, mat.indices_sorted and new_sparse == sparse, mat.unique_indices)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """A BCOO array without some of its dimensions of size 1.

    Args:
        arr: a BCOO array.
        dimensions: which, counted from the front or the end.

    Returns:
        a BCOO array.

    Raises:
        ValueError: one is of another size, named twice, or not there.
    """
    check_bcoo("bcoo_squeeze", arr)
    axes = [_axis(a, arr.ndim) for a in dimensions]
    if len(set(axes)) != len(axes):
        raise ValueError(f"dimensions are not unique: {tuple(dimensions)}")
    if any(arr.shape[a] != 1 for a in axes):
        raise ValueError(f"cannot select an axis to squeeze out which has size not equal to one, got shape={arr.shape} and dimensions={tuple(dimensions)}")
    (nb, ns, _), (_, sparse, _) = props(arr)
    batch_axes = tuple(a for a in axes if a < nb)
    gone = {a - nb for a in axes if nb <= a < nb + ns}
    data, indices = arr.data, arr.indices
    if gone:
        kept = [j for j in range(ns) if j not in gone]
        data, indices = with_columns(arr, [column(indices, j) for j in kept], [sparse[j] for j in kept])
    data = lax.squeeze(data, (*batch_axes, *(a - ns + 1 for a in axes if a >= nb + ns)))
    indices = lax.squeeze(indices, batch_axes)
    return made(data, indices, [d for i, d in enumerate(arr.shape) if i not in axes], arr.indices_sorted and not gone, arr.unique_indices)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """`lax.rev` of a BCOO array.

    Args:
        operand: a BCOO array.
        dimensions: which are reversed.

    Returns:
        a BCOO array.

    Raises:
        TypeError: a dimension is named twice, or is not there.
    """
    check_bcoo("bcoo_rev", operand)
    dims = tuple(operator.index(d) for d in dimensions)
    if len(set(dims)) != len(dims):
        raise TypeError(f"rev dimensions must be unique, got {dims}.")
    if any(d < 0 for d in dims):
        raise TypeError(f"rev dimensions must all be non-negative, got {dims}.")
    if any(d >= operand.ndim for d in dims):
        raise TypeError(f"rev dimensions must all be less than operand ndim, got dimensions {dims} for operand ndim {operand.ndim}.")
    (nb, ns, _), (_, sparse, _) = props(operand)
    batch = tuple(d for d in dims if d < nb)
    data, indices = lax.rev(operand.data, (*batch, *(d - ns + 1 for d in dims if d >= nb + ns))), lax.rev(operand.indices, batch)
    turned = [j for j in range(ns) if nb + j in dims]
    if turned:
        cols = [sparse[j] - 1 - column(indices, j) if j in turned else column(indices, j) for j in range(ns)]
        data, indices = with_columns(made(data, indices, operand.shape), cols, sparse)
    return made(data, indices, operand.shape, operand.indices_sorted and not turned, operand.unique_indices)
