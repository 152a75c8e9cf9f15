"""BCOO: batched coordinates, the sparse format to which the others are converted.

    BCOO((data, indices), shape=(*batch, *sparse, *dense))      data (*batch, nse, *dense), indices (*batch, nse, len(sparse))

Invariant: a batch dimension of data or of indices may be 1 where the shape has more: it is shared.
Elements with equal indices are summed; those outside the shape do not count.

    >>> BCOO((jnp.array([1.0, 2.0]), jnp.array([[0, 1], [1, 0]])), shape=(2, 2)).todense()
    Array([[0., 1.],
           [2., 0.]], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from ... import numpy as jnp
from ..._core import Tracer
from ...tree_util import register_pytree_node_class
from ._base import JAXSparse, Layout, checked_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike
    from . import _methods

__all__ = ["BCOO"]


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array by coordinates, with batch dimensions before the sparse ones and dense ones
    after them.

    Args:
        args: (data, indices): data (*batch, nse, *dense), and integer indices (*batch, nse,
          n_sparse). Batch dimensions of size 1 are broadcast.
        shape: of the whole: (*batch, *sparse, *dense).
        indices_sorted, unique_indices: promises about the indices: in lexicographic order; each
          once (but for those outside).

    Attributes:
        n_batch, n_sparse, n_dense: how many dimensions are of each kind. nse: the number of
          specified elements of each batch.

    Raises:
        ValueError: the shapes of data and indices do not fit together, or do not fit the shape.
        TypeError: the indices are not integers.

    >>> BCOO.fromdense(jnp.array([[0.0, 2.0, 0.0], [1.0, 0.0, 4.0]]))
    BCOO(float32[2, 3], nse=3)
    """

    def __init__(self, args: tuple[Array, Array], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False) -> None:
        data, indices = args
        self.data, self.indices = jnp.asarray(data), jnp.asarray(indices)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        super().__init__(args, shape=shape)
        _validate(self.data, self.indices, self.shape)

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return self.indices.shape[-2]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self.data.dtype

    @property
    def n_batch(self) -> int:
        """The number of leading batch axes."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes."""
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        """The number of trailing dense axes."""
        return self.data.ndim - 1 - self.n_batch

    if TYPE_CHECKING:
        # `_methods` attaches these: they call functions whose modules import this class.
        def __abs__(self) -> Array: ...
        def __lt__(self, other: Any) -> Array: ...
        def __le__(self, other: Any) -> Array: ...
        def __gt__(self, other: Any) -> Array: ...
        def __ge__(self, other: Any) -> Array: ...
        def __truediv__(self, other: Any) -> Array: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...

        @classmethod
        def fromdense(  # noqa: D102
            cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = ..., n_dense: int = 0, n_batch: int = 0
        ) -> BCOO: ...
        @classmethod
        def from_scipy_sparse(  # noqa: D102
            cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
        ) -> BCOO: ...

        astype = _methods._astype
        reshape = _methods._reshape
        sort_indices = _methods._sort_indices
        sum_duplicates = _methods._sum_duplicates
        todense = _methods._todense
        transpose = _methods._transpose
        update_layout = _methods._update_layout

    def tree_flatten(self) -> tuple[tuple[Array, ...], Layout]:
        """(data, indices), and the rest as a dictionary."""
        return (self.data, self.indices), Layout(shape=self.shape, indices_sorted=self.indices_sorted, unique_indices=self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> Self:
        """The array of two buffers.

        If `vmap` or a loop has removed or added a batch dimension of the buffers, the shape is
        adapted.
        """
        if aux_data.keys() != {"shape", "indices_sorted", "unique_indices"}:
            raise ValueError(f"BCOO.tree_unflatten: invalid {aux_data=}")
        self = object.__new__(cls)
        self.data, self.indices = children
        self.indices_sorted, self.unique_indices = aux_data["indices_sorted"], aux_data["unique_indices"]
        self.shape = aux_data["shape"]
        if getattr(self.indices, "ndim", 2) < 2 and isinstance(self.indices, Tracer):
            raise ValueError("Cannot map an axis of a BCOO array with n_batch=0. in_axes for batched BCOO operations must correspond to a batch dimension.")
        if getattr(self.indices, "ndim", 0) >= 2 and hasattr(self.data, "ndim"):
            rank = self.data.ndim - 1 + self.n_sparse
            self.shape = reshaped_batch(self.shape, rank - len(self.shape), self.n_batch, (self.data, self.indices))
        return self


def _validate(data, indices, shape):
    if indices.ndim < 2:
        raise ValueError(f"BCOO: indices must have shape (*batch, nse, n_sparse), got {indices.shape=}")
    if not jnp.issubdtype(indices.dtype, jnp.integer):
        raise TypeError(f"BCOO: indices must be of an integer dtype, got {indices.dtype}")
    n_batch, (nse, n_sparse) = indices.ndim - 2, indices.shape[-2:]
    n_dense = len(shape) - n_batch - n_sparse
    if n_dense < 0:
        raise ValueError(f"BCOO: {shape=} has fewer dimensions than {indices.shape=} indexes: {n_batch=}, {n_sparse=}")
    for name, x in (("indices", indices), ("data", data)):
        found = tuple(x.shape[:n_batch])
        if len(found) != n_batch or any(a not in (1, b) for a, b in zip(found, shape, strict=False)):
            raise ValueError(f"{name} batch dimensions not compatible for {name}.shape={tuple(x.shape)}, {shape=}")
    if tuple(data.shape[n_batch:]) != (nse, *shape[n_batch + n_sparse :]):
        raise ValueError(f"Invalid data.shape={tuple(data.shape)} for {nse=}, {n_batch=}, {n_dense=}")


def reshaped_batch(shape, more, n_batch, buffers):
    """The shape of a batched array whose buffers have got `more` leading dimensions than they had
    (or fewer), n_batch of them now.
    """
    if more == 0 or n_batch < 0 or n_batch - more < 0:
        return shape
    now = []
    for i in range(n_batch):
        sizes = {b.shape[i] for b in buffers if b.ndim > i}
        now.append(next(iter(sizes - {1}), 1))
    before, rest = list(shape[: n_batch - more]), tuple(shape[n_batch - more :])
    for _ in range(-more):
        # a dimension was taken off: the one without which the shape is that of the buffers, the first if several are
        k = _fitting([(now, before[:k] + before[k + 1 :]) for k in range(len(before))])
        before.pop(k)
    for _ in range(more):
        k = _fitting([(now[:k] + now[k + 1 :], before) for k in range(len(before) + 1)])
        before.insert(k, now[k])
    return (*before, *rest)


def _fitting(candidates):
    """Which of some (sizes of the buffers, sizes of the shape) agree, if need be by sharing a
    dimension of size 1; 0 if none does.
    """
    exact = [k for k, (now, before) in enumerate(candidates) if now == before]
    shared = [k for k, (now, before) in enumerate(candidates) if len(now) == len(before) and all(a in (1, b) for a, b in zip(now, before, strict=True))]
    return (exact or shared or [0])[0]


def props(mat):
    """(n_batch, n_sparse, n_dense), and the shape's three parts."""
    nb, ns = mat.n_batch, mat.n_sparse
    return (nb, ns, mat.n_dense), (mat.shape[:nb], mat.shape[nb : nb + ns], mat.shape[nb + ns :])


def made(data, indices, shape, indices_sorted=False, unique_indices=False):
    """A BCOO of buffers that are known to fit."""
    self = object.__new__(BCOO)
    self.data, self.indices, self.shape = data, indices, checked_shape(shape)
    self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
    return self


def like(mat, data, indices=None, shape=None):
    """`mat` with other buffers and the same promises about its indices."""
    return made(data, mat.indices if indices is None else indices, mat.shape if shape is None else shape, mat.indices_sorted, mat.unique_indices)


def check_bcoo(name, *mats):
    for mat in mats:
        if not isinstance(mat, BCOO):
            raise TypeError(f"{name}: expected a BCOO array, got {type(mat)}")
