"""The base classes of sparse arrays, and the building blocks of their functions: gathers,
scatter-adds, and maps over batch dimensions.

Invariant: an element whose indices are outside the shape does not exist: it gathers zero, and
scatters nothing.
"""

from __future__ import annotations

import abc
import math
import operator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ... import lax, numpy as jnp
from ..._base.dtypes import canonicalize_dtype
from ..._core import Tracer, trace_of
from ..._runtime.devices import block_until_ready
from ..._transforms.vmap import vmap
from ...tree_util import tree_map

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core import Array

__all__ = ["CuSparseEfficiencyWarning", "JAXSparse", "SparseEfficiencyError", "SparseEfficiencyWarning"]


class SparseEfficiencyError(ValueError):
    """The requested operation takes much more memory or time than the sparse array does."""


class SparseEfficiencyWarning(UserWarning):
    """Like SparseEfficiencyError, if a warning was requested."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """Never issued: Ferrax does not use cuSPARSE."""


class Layout(dict):
    """The static data of a sparse array's pytree. A hashable dictionary."""

    __slots__ = ()

    def __hash__(self):
        return hash(tuple(sorted(self.items())))


_TRACERS = {"jit": "DynamicJaxprTracer", "vmap": "BatchTracer", "jvp": "JVPTracer", "grad": "LinearizeTracer"}


def _tracer_name(x):
    """JAX's name for the class of a tracer."""
    owner = trace_of(x)
    return _TRACERS.get(owner and owner.what, type(x).__name__)


def _refuses(name: str) -> Callable[..., Any]:
    def method(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self)}.{name}")

    method.__name__ = name
    method.__doc__ = f"Not implemented here; formats that support `{name}` define it."
    return method


class JAXSparse(abc.ABC):
    """A sparse array: a shape, a dtype and a few buffers; a pytree.

    Attributes:
        shape: a tuple of ints. dtype: of the elements. nse: the number of specified elements, of
          each batch. ndim, size, T: as for an array.

    Raises:
        TypeError: the class is abstract; or an operator is given something that it has no meaning
          for.
    """

    __hash__ = None
    __array_priority__ = 100
    # NumPy's arrays leave `x @ sparse` to the sparse array
    __array_ufunc__ = None
    # of which rules of derivatives get tangents and cotangents as matrices with the same indices
    _INTEGERS_ARE_PLACES = True

    def __init__(self, args: tuple[Array, ...], *, shape: Sequence[int]) -> None:
        self.shape: tuple[int, ...] = checked_shape(shape)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        # a class that defines __eq__ loses its __hash__; sparse arrays have neither
        cls.__hash__ = None

    @property
    @abc.abstractmethod
    def nse(self) -> int: ...

    @property
    @abc.abstractmethod
    def dtype(self) -> np.dtype[Any]: ...

    @abc.abstractmethod
    def todense(self) -> Array:
        """The array with all elements stored.

        Returns:
            Array of the same shape and dtype.
        """
        ...

    @abc.abstractmethod
    def transpose(self, axes: Sequence[int] | None = None) -> Self:
        """The array with its dimensions in another order.

        Args:
            axes: sequence of ints; None: the reverse order.

        Returns:
            Sparse array of the same format.
        """
        ...

    @abc.abstractmethod
    def tree_flatten(self) -> tuple[tuple[Array, ...], dict[str, Any]]:
        """The buffers of the array, and the static data to rebuild it.

        Returns:
            Pair: tuple of arrays, and a dict.
        """
        ...

    @classmethod
    @abc.abstractmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> Self:
        """The array of given buffers.

        Args:
            aux_data: what `tree_flatten` returned.
            children: tuple of arrays, the buffers.

        Returns:
            Sparse array.
        """
        ...

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Self:
        return self.transpose()

    def block_until_ready(self) -> Self:
        """Waits for the buffers. Returns the array."""
        block_until_ready(self.tree_flatten()[0])
        return self

    __getitem__ = _refuses("__getitem__")
    __neg__ = _refuses("__neg__")
    __pos__ = _refuses("__pos__")
    __matmul__ = _refuses("__matmul__")
    __rmatmul__ = _refuses("__rmatmul__")
    __mul__ = _refuses("__mul__")
    __rmul__ = _refuses("__rmul__")
    __add__ = _refuses("__add__")
    __radd__ = _refuses("__radd__")
    __sub__ = _refuses("__sub__")
    __rsub__ = _refuses("__rsub__")
    sum = _refuses("sum")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self):
        name = type(self).__name__
        try:
            nse, dtype, shape = self.nse, self.dtype, list(self.shape)
        except Exception:
            # while pytrees are flattened and unflattened, the buffers may be any objects
            return f"{name}(<invalid>)"
        extra = "".join(f", {k}={v}" for k in ("n_batch", "n_dense") if (v := getattr(self, k, 0)))
        text = f"{name}({dtype}{shape}, {nse=}{extra})"
        return f"{_tracer_name(self.data)}[{text}]" if isinstance(self.data, Tracer) else text


def checked_shape(shape):
    """A shape as a tuple of ints."""
    shape = tuple(shape)
    try:
        sizes = tuple(operator.index(d) for d in shape)
    except TypeError:
        raise TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {shape}.") from None
    if any(d < 0 for d in sizes):
        raise ValueError(f"shapes must not be negative, got {sizes}")
    return sizes


def checked_index_dtype(name, dtype):
    dtype = canonicalize_dtype(dtype)
    if not jnp.issubdtype(dtype, jnp.integer):
        raise TypeError(f"{name}: index_dtype must be an integer dtype, got {dtype}")
    return dtype


def over_batch(fun, n, *args):
    """`fun` over the n leading dimensions of arrays, where those of size 1 are broadcast; the
    results' are of size 1 if all are.
    """
    if n == 0:
        return fun(*args)
    if all(x.shape[0] == 1 for x in args):
        found = over_batch(fun, n - 1, *(lax.squeeze(x, (0,)) for x in args))
        return tree_map(lambda y: lax.expand_dims(y, (0,)), found)
    axes = tuple(None if x.shape[0] == 1 else 0 for x in args)
    return vmap(lambda *xs: over_batch(fun, n - 1, *xs), in_axes=axes)(*(lax.squeeze(x, (0,)) if a is None else x for x, a in zip(args, axes, strict=True)))


def column(indices, j):
    """The indices into one dimension, in a dtype in which sizes can be computed."""
    c = indices[..., j]
    return c.astype(np.int32) if c.dtype.itemsize < 4 else c


def columns(indices):
    return tuple(column(indices, j) for j in range(indices.shape[-1]))


def take_at(x, cols, nse):
    """x's elements (nse, ..) at index columns, each (nse,), into its first dimensions; zero
    outside.
    """
    n = len(cols)
    if n == 0:
        return lax.broadcast(x, (nse,))
    if 0 in x.shape[:n]:
        return jnp.zeros((nse, *x.shape[n:]), x.dtype)
    return x.at[tuple(cols)].get(mode="fill", fill_value=0)


def add_at(shape, cols, updates):
    """An array of a shape, zero except for the updates (nse, ..), added at index columns, each
    (nse,), into its first dimensions; updates outside are dropped.
    """
    if not cols:
        return jnp.any(updates, axis=0) if updates.dtype == bool else jnp.sum(updates, axis=0, dtype=updates.dtype)
    at = jnp.zeros(shape, updates.dtype).at[tuple(cols)]
    return at.max(updates, mode="drop") if updates.dtype == bool else at.add(updates, mode="drop")


def inside(indices, sparse_shape):
    """(.., nse): whether an element's indices lie inside the shape; negative ones count from the
    end.
    """
    info, there = np.iinfo(indices.dtype), jnp.ones(indices.shape[:-1], bool)
    # column by column: a reduction over few columns is slower than all of this
    for j, d in enumerate(sparse_shape):
        c = indices[..., j]
        if d <= info.max or info.bits >= 32:
            # where a dimension is larger than that, its end is the largest index there is
            there = there & (c < min(d, info.max))
        if info.min < 0 and -d >= info.min:
            there = there & (c >= -d)
    return there


def ends(sparse_shape, dtype, *, reached=False):
    """The indices of elements outside: the ends of all dimensions.

    `reached`: whether indices are about to be computed, which must fit into their dtype.

    Raises:
        ValueError: they do not. (Dimensions of more than 2^31 elements are handled separately,
          because int32 cannot represent their indices.)
    """
    top = np.iinfo(dtype).max
    if any(n > top for n in sparse_shape) and (reached or np.dtype(dtype).itemsize < 4):
        raise ValueError(f"indices into sparse dimensions {tuple(sparse_shape)} do not fit into {dtype}, the dtype of the indices")
    return np.array([min(n, top) for n in sparse_shape], dtype).reshape(-1)


def expanded(mask, ndim, at):
    """A mask whose last axis corresponds to axis `at` of the masked array: dimensions of size 1 are
    appended.
    """
    return lax.expand_dims(mask, range(at + 1, ndim))


def masked(data, keep, n_batch):
    """data (batch, nse, dense) with zeros where `keep` (batch, nse) is false."""
    return jnp.where(expanded(keep, data.ndim, n_batch), data, jnp.zeros((), data.dtype))


def is_dense(x):
    return not isinstance(x, JAXSparse)
