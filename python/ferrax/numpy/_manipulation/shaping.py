"""The shapes of arrays: reshape, transpose, squeeze, broadcast.

Invariant: no element changes value; each function is one or a few data-movement primitives, and
none where the shape stays.

    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
"""

from __future__ import annotations

import math
import operator
import warnings
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ... import _core
from ..._base.shapes import canonicalize_axes, canonicalize_axis, canonicalize_shape, hashable_axes, listed_axes
from ..._core import bind
from ..._sharding.parts import sharded
from ...lax import broadcast_shapes as broadcast
from .._support.arguments import Array, as_array, check_arraylike, jitted, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...sharding import NamedSharding, PartitionSpec
    from ...typing import ArrayLike


def shape(a: Any) -> tuple[int, ...]:
    """The shape of an array or of nested lists (which is deprecated), a tuple of ints.

    Args:
        a: array, number or nested lists (which is deprecated).

    Returns:
        Tuple of ints.

    >>> jnp.shape(jnp.ones((2, 3)))
    (2, 3)
    """
    return _shape("shape", a)


def _shape(name, a):
    if isinstance(a, Array):
        return tuple(a.shape)
    if isinstance(a, (list, tuple)):
        warnings.warn(
            f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0. In a future JAX release this will be an error.",
            DeprecationWarning,
            stacklevel=3,
        )
    return shape_of(a)


def ndim(a: Any) -> int:
    """The number of axes.

    Args:
        a: array, number or nested lists (which is deprecated).

    Returns:
        int.

    >>> jnp.ndim(jnp.ones((2, 3)))
    2
    """
    return len(_shape("ndim", a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, in all or along `axis` (one or several).

    Args:
        a: array, number or nested lists (which is deprecated).
        axis: int, tuple of ints or None (all).

    Returns:
        int.

    >>> jnp.size(jnp.ones((2, 3)))
    6
    """
    s = _shape("size", a)
    if axis is None:
        return math.prod(s)
    return math.prod([s[d] for d in canonicalize_axes(axis, len(s))])


def _resolve(a, newshape):
    if isinstance(newshape, str):
        raise TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {newshape}.")
    new = canonicalize_shape(newshape)
    n = math.prod(a.shape)
    unknown = [i for i, d in enumerate(new) if d == -1]
    if len(unknown) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {new}")
    if unknown:
        known = math.prod([d for d in new if d != -1])
        if known == 0 or n % known:
            if not (known == 0 and n == 0):
                raise TypeError(
                    f"cannot reshape array of shape {tuple(a.shape)} (size {n}) into shape {new} because the product of specified axis sizes "
                    f"({known}) does not evenly divide {n}"
                )
        new = tuple([(n // known if known else 0) if d == -1 else d for d in new])
    if math.prod(new) != n:
        raise TypeError(f"cannot reshape array of shape {tuple(a.shape)} (size {n}) into shape {new} (size {math.prod(new)})")
    return new


def reshape(
    a: ArrayLike, shape: int | Sequence[int], order: str = "C", *, copy: bool | None = None, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """The elements of a in a new shape.

    Args:
        a: array.
        shape: int or sequence of ints, one of which may be -1: it is computed from the others.
        order: "C", last axis fastest, or "F", first axis fastest.
        copy: True for another array where the shape is the same; None: a itself.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and a's dtype.

    Raises:
        TypeError: if the number of elements differs.
        ValueError: for another order.
        NotImplementedError: for order "A".

    >>> jnp.reshape(jnp.arange(4), (2, 2))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(reshape, locals())
    a = as_array("reshape", a)
    if copy:
        a = bind("copy", a)
    new = _resolve(a, shape)
    if order == "C":
        return a if tuple(a.shape) == new else bind("reshape", a, new_sizes=new, dimensions=None)
    if order == "F":
        out = bind("reshape", transpose(a), new_sizes=new[::-1], dimensions=None)
        return transpose(out)
    if order == "A":
        raise NotImplementedError("np.reshape order=A is not implemented.")
    raise ValueError(f"Unexpected value for 'order' argument: {order}.")


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """`a` flattened to one axis.

    Args:
        a: array.
        order: "C", last axis fastest, or "F", first axis fastest.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Vector of a's dtype.

    Raises:
        NotImplementedError: for orders "A" and "K".

    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(ravel, locals())
    a = as_array("ravel", a)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    if order == "F" and a.ndim > 1:
        return bind("reshape", transpose(a), new_sizes=(a.size,), dimensions=None)
    return reshape(a, (a.size,), "C" if order == "F" else order)


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """`a` without axes of size 1.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all of size 1.

    Returns:
        Array of a's dtype.

    Raises:
        ValueError: if the size along `axis` is not 1, or an axis is out of bounds.

    >>> jnp.squeeze(jnp.ones((1, 2)))
    Array([1., 1.], dtype=float32)
    """
    a = as_array("squeeze", a)
    if axis is None:
        axes = tuple([d for d, n in enumerate(a.shape) if n == 1])
    else:
        axes = listed_axes(axis, a.ndim)
    return bind("squeeze", a, dimensions=tuple(sorted(axes))) if axes else a


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """`a` with new axes of size 1 at the positions `axis` of the result.

    Args:
        a: array.
        axis: int or sequence of ints, positions in the result.

    Returns:
        Array of a's dtype, of rank a.ndim + number of axes.

    Raises:
        ValueError: for repeats and axes out of bounds.

    >>> jnp.expand_dims(jnp.arange(2), 0)
    Array([[0, 1]], dtype=int32)
    """
    a = as_array("expand_dims", a)
    axes = hashable_axes(axis)
    axes = axes if isinstance(axes, tuple) else (axes,)
    rank = a.ndim + len(axes)
    new = [canonicalize_axis(d, rank) for d in axes]
    if len(set(new)) != len(new):
        raise ValueError(f"repeated axis in lax.expand_dims: {tuple(axes)}")
    sizes = iter(a.shape)
    wide = tuple([1 if d in new else next(sizes) for d in range(rank)])
    return bind("broadcast_in_dim", a, shape=wide, broadcast_dimensions=tuple([d for d in range(rank) if d not in new])) if new else a


def _atleast(name, fun, arys):
    check_arraylike(name, *arys)
    out = [fun(_core.asarray(a) if not isinstance(a, Array) else a) for a in arys]
    return out[0] if len(out) == 1 else out


@jitted("atleast_1d")
def _atleast_1d(x):
    return x if x.ndim >= 1 else bind("broadcast_in_dim", x, shape=(1,), broadcast_dimensions=())


@overload
def atleast_1d(x: ArrayLike, /) -> Array: ...


@overload
def atleast_1d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...


@overload
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]: ...


def atleast_1d(*arys: ArrayLike) -> Array | list[Array]:
    """Each argument with at least one axis; one array or a list.

    Args:
        *arys: arrays or numbers.

    Returns:
        Array, or a list of arrays unless there is one argument.

    >>> jnp.atleast_1d(3)
    Array([3], dtype=int32, weak_type=True)
    """
    return _atleast("atleast_1d", _atleast_1d, arys)


@jitted("atleast_2d")
def _atleast_2d(x):
    if x.ndim >= 2:
        return x
    return bind("broadcast_in_dim", x, shape=(1,) * (2 - x.ndim) + tuple(x.shape), broadcast_dimensions=(1,) if x.ndim else ())


@overload
def atleast_2d(x: ArrayLike, /) -> Array: ...


@overload
def atleast_2d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...


@overload
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]: ...


def atleast_2d(*arys: ArrayLike) -> Array | list[Array]:
    """Each argument with at least two axes, new ones in front.

    Args:
        *arys: arrays or numbers.

    Returns:
        Array, or a list of arrays unless there is one argument.

    >>> jnp.atleast_2d(jnp.arange(2))
    Array([[0, 1]], dtype=int32)
    """
    return _atleast("atleast_2d", _atleast_2d, arys)


@jitted("atleast_3d")
def _atleast_3d(x):
    if x.ndim >= 3:
        return x
    shape, dims = {0: ((1, 1, 1), ()), 1: ((1, *x.shape, 1), (1,)), 2: ((*x.shape, 1), (0, 1))}[x.ndim]
    return bind("broadcast_in_dim", x, shape=tuple(shape), broadcast_dimensions=dims)


@overload
def atleast_3d(x: ArrayLike, /) -> Array: ...


@overload
def atleast_3d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...


@overload
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]: ...


def atleast_3d(*arys: ArrayLike) -> Array | list[Array]:
    """Each argument with at least three axes: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1).

    Args:
        *arys: arrays or numbers.

    Returns:
        Array, or a list of arrays unless there is one argument.

    >>> jnp.atleast_3d(jnp.arange(2)).shape
    (1, 2, 1)
    """
    return _atleast("atleast_3d", _atleast_3d, arys)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """`a` with its axes in the order `axes`, or reversed.

    Args:
        a: array.
        axes: sequence of ints, a permutation; None: the reverse order.

    Returns:
        Array of a's dtype.

    Raises:
        TypeError: if `axes` is not a permutation.

    >>> jnp.transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    a = as_array("transpose", a)
    if axes is None:
        permutation = tuple(range(a.ndim))[::-1]
    else:
        permutation = tuple([canonicalize_axis(d, a.ndim) for d in axes])
    return a if permutation == tuple(range(a.ndim)) else bind("transpose", a, permutation=permutation)


def permute_dims(a: ArrayLike, /, axes: tuple[int, ...]) -> Array:
    """The same as `transpose`.

    Args:
        a: array.
        axes: sequence of ints, a permutation.

    Returns:
        Array of a's dtype.

    Raises:
        TypeError: if `axes` is not a permutation.

    >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    check_arraylike("permute_dims", a)
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The last two axes swapped.

    Args:
        x: array of shape (..., m, n).

    Returns:
        Array of shape (..., n, m).

    Raises:
        ValueError: below rank 2.

    >>> jnp.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    x = as_array("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={x.ndim}")
    return transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """`a` with two axes exchanged.

    Args:
        a: array.
        axis1, axis2: int: the two axes.

    Returns:
        Array of a's dtype.

    Raises:
        ValueError: for an axis out of bounds.

    >>> jnp.swapaxes(jnp.ones((2, 3)), 0, 1).shape
    (3, 2)
    """
    a = as_array("swapaxes", a)
    i, j = canonicalize_axis(axis1, a.ndim), canonicalize_axis(axis2, a.ndim)
    axes = list(range(a.ndim))
    axes[i], axes[j] = axes[j], axes[i]
    return transpose(a, axes)


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """`a` with the axes `source` moved to the positions `destination`; the other axes keep their
    order.

    Args:
        a: array.
        source: int or sequence of ints: axes of a.
        destination: as many: axes of the result.

    Returns:
        Array of a's dtype.

    Raises:
        ValueError: for repeated destinations, axes out of bounds, and unequal numbers.
        TypeError: for repeated sources.

    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    a = as_array("moveaxis", a)
    source, destination = listed_axes(source, a.ndim), canonicalize_axes(destination, a.ndim)
    if len(source) != len(destination):
        raise ValueError(f"Inconsistent number of elements: {len(source)} vs {len(destination)}")
    order = [d for d in range(a.ndim) if d not in source]
    for to, axis in sorted(zip(destination, source, strict=True)):
        order.insert(to, axis)
    return transpose(a, order)


@jitted("rollaxis", static=("axis", "start"))
def _rollaxis(a, axis, start):
    return moveaxis(a, axis, start)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """`a` with `axis` moved to the position before `start`.

    Args:
        a: array.
        axis: int, which to move.
        start: int, the axis before which to insert it, in [-a.ndim, a.ndim].

    Returns:
        Array of a's dtype.

    Raises:
        ValueError: out of bounds.

    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    a = as_array("rollaxis", a)
    start = operator.index(start)
    if not -a.ndim <= start <= a.ndim:
        raise ValueError(f"start={start} must satisfy {-a.ndim}<=start<={a.ndim}")
    if start < 0:
        start += a.ndim
    axis = canonicalize_axis(axis, a.ndim)
    return _rollaxis(a, axis=axis, start=start - 1 if start > axis else start)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of `shapes` broadcast to.

    Args:
        *shapes: sequences of ints, or ints.

    Returns:
        Tuple of ints.

    Raises:
        ValueError: if the shapes do not broadcast.

    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return broadcast(*[(s,) if isinstance(s, (int, np.integer)) else tuple(s) for s in shapes])


def broadcast_to(array: ArrayLike, shape: int | Sequence[int], *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """`array` spread over `shape` by numpy's rules.

    Args:
        array: array or number.
        shape: int or sequence of ints.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and of array's dtype.

    Raises:
        ValueError: where it does not fit.

    >>> jnp.broadcast_to(jnp.arange(2), (2, 2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return sharded(broadcast_to, locals())
    array = as_array("broadcast_to", array)
    shape = canonicalize_shape(shape)
    if tuple(array.shape) == shape:
        return array
    k = len(shape) - array.ndim
    if k < 0:
        raise ValueError(f"Cannot broadcast to shape with fewer dimensions: arr_shape={tuple(array.shape)} shape={shape}")
    if any(a not in (1, b) for a, b in zip(array.shape, shape[k:], strict=True)):
        want = f"{array.dtype.name}[{','.join(map(str, shape))}]"
        have = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
        raise ValueError(f"Incompatible types for broadcasting: input type={have} and requested type={want}")
    return _core.broadcast_to(array, shape)


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """All arguments spread over their common shape, as a list.

    Args:
        *args: arrays or numbers.

    Returns:
        List of arrays of one shape; dtypes are not promoted.

    Raises:
        ValueError: if the shapes do not broadcast.

    >>> jnp.broadcast_arrays(jnp.arange(2), 5)
    [Array([0, 1], dtype=int32), Array([5, 5], dtype=int32, weak_type=True)]
    """
    check_arraylike("broadcast_arrays", *args)
    shape = broadcast_shapes(*[shape_of(a) for a in args])
    return [broadcast_to(a, shape) for a in args]
