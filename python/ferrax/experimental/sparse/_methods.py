"""The operators and methods of BCOO and BCSR, which are functions of arrays that `sparsify` was
applied to.

Invariant: this file alone adds methods to the classes. It is imported after the functions, which
use the classes.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import numpy as jnp
from ..._core import Array
from ..._tracing.jit import jit
from ._base import JAXSparse
from ._construction import bcoo_empty, bcoo_eye, bcoo_from_scipy_sparse, bcoo_fromdense, bcoo_todense
from ._duplicates import bcoo_sort_indices, sum_duplicates
from ._shaping import bcoo_transpose
from ._slicing import bcoo_update_layout
from .bcoo import BCOO
from .bcsr import BCSR
from .transform import sparsify

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = []

_SCALARS = (bool, int, float, complex, np.generic)


def _operand(x):
    return isinstance(x, (JAXSparse, Array, np.ndarray, *_SCALARS))


def _binary(function, name, swapped=False):
    # compiled once for each type of operands; a failure is reported as the function reports it
    compiled = jit(sparsify(function))

    def method(self, other):
        if not _operand(other):
            return NotImplemented
        return compiled(other, self) if swapped else compiled(self, other)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`jnp.{function.__name__}`; the result is sparse where zeros stay zeros."
    return method


def _unary(function, name):
    compiled = jit(sparsify(function))

    def method(self):
        return compiled(self)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`jnp.{function.__name__}`."
    return method


def _power(self, other):
    """`self ** other`: sparse if `other` is a positive number."""
    return sparsify(lambda x: jnp.power(x, other))(self) if not isinstance(other, JAXSparse) else sparsify(jnp.power)(self, other)


def _rpower(self, other):
    return sparsify(jnp.power)(other, self)


def _getitem(self, idx):
    """`self[idx]`, as for an array: integers, slices, None, Ellipsis, and arrays of integers or
    booleans that are not traced.
    """
    if isinstance(idx, JAXSparse) or (isinstance(idx, tuple) and any(isinstance(i, JAXSparse) for i in idx)):
        raise NotImplementedError("indexing with a sparse array is not implemented: use sparse.todense() to convert the index to a dense array.")
    return sparsify(lambda x: x[idx])(self)


def _iter(self):
    for i in range(len(self)):
        yield self[i]


def _astype(self: BCOO, *args: Any, **kwargs: Any) -> BCOO:
    """The array with elements of another dtype. Args: as for an array's `astype`."""
    return sparsify(lambda x: x.astype(*args, **kwargs))(self)


def _reshape(self: BCOO, *args: Any, **kwargs: Any) -> BCOO:
    """The array with another shape.

    Args: as for an array's `reshape`; see `bcoo_reshape` for the restrictions of BCOO arrays.
    """
    return sparsify(lambda x: x.reshape(*args, **kwargs))(self)


def _sum(self, *args, **kwargs):
    """The sum over some axes: a BCOO array, or an array for the sum over all.

    Args: as for an array's `sum`.
    """
    return sparsify(lambda x: x.sum(*args, **kwargs))(self)


_BINARY = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "truediv": jnp.true_divide,
    "matmul": jnp.matmul,
}
_COMPARING = {"eq": jnp.equal, "ne": jnp.not_equal, "lt": jnp.less, "le": jnp.less_equal, "gt": jnp.greater, "ge": jnp.greater_equal}
_UNARY = {"abs": jnp.abs, "neg": jnp.negative, "pos": jnp.positive}

for _name, _function in _BINARY.items():
    setattr(BCOO, f"__{_name}__", _binary(_function, f"__{_name}__"))
    setattr(BCOO, f"__r{_name}__", _binary(_function, f"__r{_name}__", swapped=True))
for _name, _function in _COMPARING.items():
    setattr(BCOO, f"__{_name}__", _binary(_function, f"__{_name}__"))
for _name, _function in _UNARY.items():
    setattr(BCOO, f"__{_name}__", _unary(_function, f"__{_name}__"))
BCOO.__pow__, BCOO.__rpow__ = _power, _rpower
BCOO.__hash__ = None
for _kind in (BCOO, BCSR):
    _kind.__getitem__, _kind.__iter__ = _getitem, _iter
BCSR.__matmul__, BCSR.__rmatmul__ = BCOO.__matmul__, BCOO.__rmatmul__


def _fromdense(cls, mat, *, nse=None, index_dtype=np.int32, n_dense=0, n_batch=0):
    """The BCOO array of a dense one; see `bcoo_fromdense`."""
    return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)


def _from_scipy_sparse(cls, mat, *, index_dtype=None, n_dense=0, n_batch=0):
    """The BCOO array of a matrix of scipy.sparse; NotImplementedError if n_dense or n_batch is
    not 0.
    """
    return bcoo_from_scipy_sparse(mat, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)


def _empty(cls, shape, *, dtype=None, index_dtype="int32", n_dense=0, n_batch=0, nse=0):
    """The public function is `sparse.empty`."""
    return bcoo_empty(shape, dtype=dtype, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch, nse=nse)


def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32", n_batch=0, n_dense=0):
    """The public function is `sparse.eye`."""
    return bcoo_eye(N, M, k, dtype=dtype, index_dtype=index_dtype, n_batch=n_batch, n_dense=n_dense)


def _todense(self: BCOO) -> Array:
    """The dense array."""
    return bcoo_todense(self)


def _transpose(self: BCOO, axes: Sequence[int] | None = None) -> BCOO:
    """The array with its dimensions in reverse, or in the order of `axes`; see `bcoo_transpose`."""
    axes = range(self.ndim)[::-1] if axes is None else [a + self.ndim if -self.ndim <= a < 0 else a for a in map(operator.index, axes)]
    return bcoo_transpose(self, permutation=axes)


def _sort_indices(self: BCOO) -> BCOO:
    """The array with its indices in order; see `bcoo_sort_indices`."""
    return bcoo_sort_indices(self)


def _sum_duplicates(self: BCOO, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
    """The array with sorted indices, each once: elements with equal indices are summed.

    Args:
        nse: the number of elements of each batch of the result; by default the number of distinct
          ones, which is unknown for traced indices.
        remove_zeros: whether zero elements are removed first.

    Returns:
        a BCOO array.

    Raises:
        ValueError: the indices are traced, and `nse` is not given.
    """
    return sum_duplicates(self, nse, remove_zeros)


def _update_layout(self: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error") -> BCOO:
    """The same elements with other numbers of batch and dense dimensions; see
    `bcoo_update_layout`.
    """
    return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


def _attach(kind, method, name, wrapper=lambda f: f):
    method.__name__, method.__qualname__ = name, f"{kind.__name__}.{name}"
    setattr(kind, name, wrapper(method))


for _method in (_fromdense, _from_scipy_sparse):
    _attach(BCOO, _method, _method.__name__[1:], classmethod)
for _method in (_empty, _eye):
    # methods that `sparse.empty` and `sparse.eye` need of every format
    _attach(BCOO, _method, _method.__name__, classmethod)
for _method in (_todense, _transpose, _sort_indices, _sum_duplicates, _update_layout, _astype, _reshape, _sum):
    _attach(BCOO, _method, _method.__name__[1:])
# the last of the abstract methods are there
for _kind in (BCOO, BCSR):
    _kind.__abstractmethods__ = frozenset()
