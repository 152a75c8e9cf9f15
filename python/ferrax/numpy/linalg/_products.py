"""Products and powers of matrices, and the array API standard's names of functions of `ferrax.numpy`.

Invariant: no decomposition, except for the inverse in a negative power.

    >>> matrix_power(jnp.eye(2), 5).shape
    (2, 2)
"""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._sharding.parts import sharded
from .._creation import matrices as _matrices
from .._manipulation import shaping as _shaping
from .._products import products as _linear_algebra
from .._support.arguments import as_array, check_arraylike, check_promotion, jitted
from ._solving import inv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core import Array
    from ...sharding import NamedSharding, PartitionSpec
    from ...typing import ArrayLike, DTypeLike


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Cross product of vectors of 3 along `axis`.

    Args:
        x1, x2: arrays with 3 elements along `axis`; the other axes broadcast.
        axis: int.

    Returns:
        Array of the broadcast shape and the promoted dtype.

    Raises:
        ValueError: for another size.

    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    check_arraylike("jnp.linalg.cross", x1, x2)
    x1, x2 = _core.asarray(x1), _core.asarray(x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            f"Both input arrays must be (arrays of) 3-dimensional vectors, but they have x1.shape[axis]={x1.shape[axis]} and x2.shape[axis]={x2.shape[axis]} along axis={axis}."
        )
    return _linear_algebra.cross(x1, x2, axis=axis)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of the matrices in the last two axes.

    Args:
        x: array of shape (..., m, n).
        offset: int, which diagonal, above (positive) or below.

    Returns:
        Array of shape (..., length of the diagonal).

    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return _matrices.diagonal(as_array("jnp.linalg.diagonal", x), offset=offset, axis1=-2, axis2=-1)


def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """Matrix product, as ferrax.numpy.matmul.

    Args:
        x1: array of shape (..., m, k) or (k,).
        x2: array of shape (..., k, n) or (k,); leading axes broadcast.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.

    Returns:
        Array of shape (..., m, n), without the axis of a vector, of the promoted dtype.

    >>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    check_arraylike("jnp.linalg.matmul", x1, x2)
    return _linear_algebra.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The matrices in the last two axes transposed.

    Args:
        x: array of shape (..., m, n).

    Returns:
        Array of shape (..., n, m).

    Raises:
        ValueError: below rank 2.

    >>> jnp.linalg.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    check_arraylike("jnp.linalg.matrix_transpose", x)
    return _shaping.matrix_transpose(x)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The outer product of two vectors.

    Args:
        x1: vector (m,).
        x2: vector (n,).

    Returns:
        Array of shape (m, n), of the promoted dtype.

    Raises:
        ValueError: for other ranks.

    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    check_arraylike("jnp.linalg.outer", x1, x2)
    check_promotion(x1, x2)
    x1, x2 = _core.asarray(x1), _core.asarray(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={x1.ndim} x2.ndim={x2.ndim}")
    return x1[:, None] * x2[None, :]


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Sum of products over paired axes, as ferrax.numpy.tensordot.

    Args:
        x1, x2: arrays of numbers.
        axes: int, the last axes of x1 and the first of x2; or two lists of axes.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of x1's other axes and x2's other axes, of the promoted dtype.

    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=1)
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(tensordot, locals())
    check_arraylike("jnp.linalg.tensordot", x1, x2)
    return _linear_algebra.tensordot(x1, x2, axes=axes, precision=precision, preferred_element_type=preferred_element_type)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The traces of the matrices in the last two axes.

    Args:
        x: array of shape (..., m, n).
        offset: int, which diagonal, above (positive) or below.
        dtype: dtype to accumulate in and to return; None: x's, narrow integers widened.

    Returns:
        Array of shape (...).

    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return _linear_algebra.trace(as_array("jnp.linalg.trace", x), offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """Products of vectors along `axis`, as ferrax.numpy.vecdot.

    Args:
        x1, x2: arrays of numbers of one size along `axis`, the other axes broadcasting; x1 is
          conjugated.
        axis: int.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.

    Returns:
        Array of the broadcast shape without `axis`, of the promoted dtype.

    >>> jnp.linalg.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    check_arraylike("jnp.linalg.vecdot", x1, x2)
    if preferred_element_type is None:
        check_promotion(x1, x2)
    return _linear_algebra.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


@jitted("matrix_power", static=("n",))
def _matrix_power(a, n):
    if n == 0:
        eye = _matrices.eye(a.shape[-2], dtype=a.dtype)
        return _shaping.broadcast_to(eye, a.shape)
    if n < 0:
        a, n = inv(a), -n
    if n == 1:
        return a
    if n == 2:
        return a @ a
    if n == 3:
        return (a @ a) @ a
    square = out = None
    while n:
        square = a if square is None else square @ square
        n, odd = divmod(n, 2)
        if odd:
            out = square if out is None else out @ square
    return out


def matrix_power(a: ArrayLike, n: int) -> Array:
    """The n-th power of the square matrices in the last two axes.

    A negative one is that of the inverse, a float.

    Integers have powers that are integers.

    Args:
        a: array of shape (..., n, n).
        n: int.

    Returns:
        Array of a's shape.

    Raises:
        TypeError: unless square and n integer.

    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int32)
    """
    a = as_array("jnp.linalg.matrix_power", a)
    if a.ndim < 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-2] != a.shape[-1]:
        raise TypeError("Last 2 dimensions of the array must be square")
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"exponent must be an integer, got {n}") from None
    return _matrix_power(a, n=n)


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The product of several matrices (the first and last may be vectors), in the order that costs
    least.

    Args:
        arrays: sequence of matrices; the first and last may be vectors.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).

    Returns:
        Array of the product's shape.

    Raises:
        ValueError: there are no arrays, or their shapes do not fit.

    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
    Array([12., 12.], dtype=float32)
    """
    arrays = list(arrays)
    check_arraylike("jnp.linalg.multi_dot", *arrays)
    arrays = [_core.asarray(a) for a in arrays]
    if len(arrays) == 0:
        raise ValueError("multi_dot requires at least one array")
    check_promotion(*arrays)
    n = len(arrays)
    if n < 2 or any(a.ndim != 2 for a in arrays[1:-1]) or arrays[0].ndim not in (1, 2) or arrays[-1].ndim not in (1, 2):
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the first and last array which may be 1 or 2 dimensional. "
            f"Got array shapes {[tuple(a.shape) for a in arrays]}"
        )
    if any(a.shape[-1] != b.shape[0] for a, b in itertools.pairwise(arrays)):
        raise ValueError(
            f"multi_dot: last dimension of each array must match first dimension of following array. Got array shapes {[tuple(a.shape) for a in arrays]}"
        )
    sizes = [1 if arrays[0].ndim == 1 else arrays[0].shape[0]] + [a.shape[0] for a in arrays[1:]] + [1 if arrays[-1].ndim == 1 else arrays[-1].shape[-1]]
    cost, split = np.zeros((n, n)), np.zeros((n, n), int)
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            split[i, j] = i + int(np.argmin(options))
            cost[i, j] = min(options)

    def product(i, j):
        if i == j:
            return arrays[i]
        k = split[i, j]
        return _linear_algebra.matmul(product(i, k), product(k + 1, j), precision=precision)

    return product(0, n - 1)
