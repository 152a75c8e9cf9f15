"""Products: dot, matmul, tensordot, inner, outer, kron, cross, convolve.

Invariant: each contraction is one dot_general whose result has the promoted dtype; precision is
never reduced.

    >>> jnp.matmul(jnp.ones((2, 3)), jnp.ones((3, 4))).shape
    (2, 4)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._base.dtypes import is_complex, requested
from ..._base.shapes import canonicalize_axis
from ..._core import bind
from ..._sharding.parts import sharded
from ...lax import dot_general
from .._functional.vectorizing import vectorize
from .._indexing.selecting import where
from .._manipulation.shaping import broadcast_arrays, moveaxis, ravel
from .._math.complex import conj
from .._math.operators import multiply, negative, subtract
from .._reductions import plain as _reductions
from .._support.arguments import as_array, check_arraylike, check_promotion, constant, convert, jitted, ndim_of, operands_of, unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core import Array
    from ...sharding import NamedSharding, PartitionSpec
    from ...typing import ArrayLike, DTypeLike


def _operands(name, a, b, preferred):
    """The operands for one product, its dtype and whether that is weak. dot_general accepts
    operands of different dtypes.
    """
    check_arraylike(name, a, b)
    (a, b), dtype, weak = operands_of(name, [a, b], preferred)
    return a, b, dtype, weak


def _product(a, b, numbers, precision, dtype, weak):
    out = dot_general(a, b, numbers, precision=precision, preferred_element_type=dtype)
    return convert(out, dtype, weak=weak)


def dot(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """Product of scalars, vectors and matrices; for more axes, the last of a against the second
    last of b.

    Args:
        a, b: arrays of numbers.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of shape a.shape[:-1] + b.shape[:-2] + b.shape[-1:], of the promoted dtype; a product
        of arrays if one is a scalar.

    Raises:
        TypeError: if the contracted sizes differ.

    >>> jnp.dot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    if out_sharding is not None:
        return sharded(dot, locals())
    a, b, dtype, weak = _operands("dot", a, b, preferred_element_type)
    if a.ndim == 0 or b.ndim == 0:
        contract = ((), ())
    elif b.ndim == 1:
        contract = ((a.ndim - 1,), (0,))
    else:
        contract = ((a.ndim - 1,), (b.ndim - 2,))
    return _product(a, b, (contract, ((), ())), precision, dtype, weak)


# Rows by columns.
_MATRICES = (((1,), (0,)), ((), ()))


def matmul(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """Matrix product over the last two axes; vectors count as one row or one column.

    Args:
        a: array of shape (..., m, k) or (k,).
        b: array of shape (..., k, n) or (k,); leading axes broadcast.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of shape (..., m, n), without the axis of a vector, of the promoted dtype.

    Raises:
        ValueError: for scalars, and leading axes that do not broadcast.
        TypeError: if the contracted sizes differ.

    >>> jnp.matmul(jnp.ones((2, 3)), jnp.ones((3, 2)))
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(matmul, locals())
    check_arraylike("matmul", a, b)
    for i, x in enumerate((a, b)):
        if ndim_of(x) < 1:
            raise ValueError(f"matmul input operand {i} must have ndim at least 1, but it has ndim {ndim_of(x)}")
    a, b, dtype, weak = _operands("matmul", a, b, preferred_element_type)
    if a.ndim == 2 == b.ndim:
        return _product(a, b, _MATRICES, precision, dtype, weak)  # PERF: the rest handles leading axes and vectors
    a_vector, b_vector = a.ndim == 1, b.ndim == 1
    a_lead, b_lead = a.shape[: max(a.ndim - 2, 0)], b.shape[: max(b.ndim - 2, 0)]
    rank = max(len(a_lead), len(b_lead))
    a_lead = (None,) * (rank - len(a_lead)) + tuple(a_lead)
    b_lead = (None,) * (rank - len(b_lead)) + tuple(b_lead)
    a_batch, b_batch, a_squeeze, b_squeeze = [], [], [], []
    batch_places, a_places, b_places, single_places = [], [], [], []
    a_axis = b_axis = 0
    for i, (m, n) in enumerate(zip(a_lead, b_lead, strict=True)):
        if m is None:
            b_places.append(i)
            b_axis += 1
        elif n is None:
            a_places.append(i)
            a_axis += 1
        elif m == 1 == n:
            # One product of one matrix each: the axis is put back at the end.
            a_squeeze.append(a_axis)
            b_squeeze.append(b_axis)
            single_places.append(i)
            a_axis += 1
            b_axis += 1
        elif m == 1:
            a_squeeze.append(a_axis)
            b_places.append(i)
            a_axis += 1
            b_axis += 1
        elif n == 1:
            b_squeeze.append(b_axis)
            a_places.append(i)
            a_axis += 1
            b_axis += 1
        elif m == n:
            a_batch.append(a_axis)
            b_batch.append(b_axis)
            batch_places.append(i)
            a_axis += 1
            b_axis += 1
        else:
            raise ValueError(f"Incompatible types for matmul arguments: {a.aval.str_short()} and {b.aval.str_short()}")
    if a_squeeze:
        a = bind("squeeze", a, dimensions=tuple(a_squeeze))
        a_batch = [d - sum(s < d for s in a_squeeze) for d in a_batch]
    if b_squeeze:
        b = bind("squeeze", b, dimensions=tuple(b_squeeze))
        b_batch = [d - sum(s < d for s in b_squeeze) for d in b_batch]
    contract = ((a.ndim - 1,), (b.ndim - 1 if b_vector else b.ndim - 2,))
    out = _product(a, b, (contract, (tuple(a_batch), tuple(b_batch))), precision, dtype, weak)
    # The product has batch axes, a's own leading axes, its rows, b's own leading axes, its columns.
    order = batch_places + a_places + ([] if a_vector else [rank]) + b_places + ([] if b_vector else [rank + (0 if a_vector else 1)])
    kept = tuple(sorted(order))
    permutation = tuple([order.index(d) for d in kept])
    if permutation != tuple(range(len(order))):
        out = bind("transpose", out, permutation=permutation)
    if not single_places:
        return out
    sizes = iter(out.shape)
    shape = tuple([1 if d in single_places else next(sizes) for d in range(len(order) + len(single_places))])
    return bind("broadcast_in_dim", out, shape=shape, broadcast_dimensions=kept)


def _check_product(preferred, *xs):
    """Checks promotion unless a dtype is requested for the product, which then promotes nothing."""
    if preferred is None:
        check_promotion(*xs)


def vdot(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Product of two arrays flattened to vectors, a conjugated.

    Args:
        a, b: arrays of numbers of one size.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.

    Returns:
        Scalar array of the promoted dtype.

    Raises:
        TypeError: if the sizes differ.

    >>> jnp.vdot(jnp.array([1j]), jnp.array([1j]))
    Array(1.+0.j, dtype=complex64)
    """
    check_arraylike("vdot", a, b)
    _check_product(preferred_element_type, a, b)
    a = _core.asarray(a)
    return dot(ravel(conj(a) if is_complex(a.dtype) else a), ravel(b), precision=precision, preferred_element_type=preferred_element_type)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Products of vectors along `axis`, x1 conjugated, the other axes broadcasting.

    Args:
        x1, x2: arrays of numbers of one size along `axis`, the other axes broadcasting.
        axis: int.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.

    Returns:
        Array of the broadcast shape without `axis`, of the promoted dtype.

    Raises:
        ValueError: where the sizes along `axis` differ.

    >>> jnp.vecdot(jnp.ones((2, 3)), jnp.arange(3.0))
    Array([3., 3.], dtype=float32)
    """
    check_arraylike("jnp.vecdot", x1, x2)
    _check_product(preferred_element_type, x1, x2)
    x1, x2 = _core.asarray(x1), _core.asarray(x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise ValueError(f"vecdot requires arrays with at least one axis, got shapes {tuple(x1.shape)} and {tuple(x2.shape)}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"axes must match; got shapes {tuple(x1.shape)} and {tuple(x2.shape)} with axis={axis}")
    x1, x2 = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
    product = lambda a, b: vdot(a, b, precision=precision, preferred_element_type=preferred_element_type)
    return vectorize(product, signature="(n),(n)->()")(x1, x2)


@jitted("matvec")
def _matvec(x1, x2):
    return vectorize(matmul, signature="(m,n),(n)->(m)")(x1, x2)


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of matrices and vectors, leading axes broadcasting.

    Args:
        x1: array of shape (..., m, n).
        x2: array of shape (..., n).

    Returns:
        Array of shape (..., m), of the promoted dtype.

    Raises:
        ValueError: if ranks or sizes do not fit.

    >>> jnp.matvec(jnp.ones((2, 3)), jnp.arange(3.0))
    Array([3., 3.], dtype=float32)
    """
    check_arraylike("matvec", x1, x2)
    check_promotion(x1, x2)
    return _matvec(_core.asarray(x1), _core.asarray(x2))


@jitted("vecmat")
def _vecmat(x1, x2):
    return vectorize(matmul, signature="(n),(n,m)->(m)")(conj(x1), x2)


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of conjugated vectors and matrices, leading axes broadcasting.

    Args:
        x1: array of shape (..., m).
        x2: array of shape (..., m, n).

    Returns:
        Array of shape (..., n), of the promoted dtype.

    Raises:
        ValueError: if ranks or sizes do not fit.

    >>> jnp.vecmat(jnp.arange(2.0), jnp.ones((2, 3)))
    Array([1., 1., 1.], dtype=float32)
    """
    check_arraylike("vecmat", x1, x2)
    check_promotion(x1, x2)
    return _vecmat(_core.asarray(x1), _core.asarray(x2))


def inner(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum of products over the last axes.

    Args:
        a, b: arrays of numbers with one size along the last axis.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.

    Returns:
        Array of shape a.shape[:-1] + b.shape[:-1], of the promoted dtype.

    Raises:
        TypeError: if the last sizes differ.

    >>> jnp.inner(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    check_arraylike("inner", a, b)
    _check_product(preferred_element_type, a, b)
    if ndim_of(a) == 0 or ndim_of(b) == 0:
        out = multiply(a, b)
        return out if preferred_element_type is None else convert(out, requested("inner", preferred_element_type))
    return tensordot(a, b, (-1, -1), precision=precision, preferred_element_type=preferred_element_type)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """a[:, None] * b[None, :] of two vectors (other arrays are flattened).

    Args:
        a, b: arrays of numbers; flattened first.
        out: not supported; must be None.

    Returns:
        Array of shape (a.size, b.size), of the promoted dtype.

    Raises:
        NotImplementedError: if `out` is given.

    >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    unsupported("jnp.outer", out=out)
    check_arraylike("outer", a, b)
    a, b = _core.promote_dtypes(a, b)
    return multiply(ravel(a)[:, None], ravel(b)[None, :])


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Sum of products over paired axes.

    Args:
        a, b: arrays of numbers.
        axes: int, the last axes of a and the first of b; or two lists of axes.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of a's other axes and b's other axes, of the promoted dtype.

    Raises:
        TypeError: where the axes do not pair.

    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=1)
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(tensordot, locals())
    check_arraylike("tensordot", a, b)
    a, b, dtype, weak = _operands("tensordot", a, b, preferred_element_type)
    if isinstance(axes, (int, np.integer)):
        n = operator.index(axes)
        if n > min(a.ndim, b.ndim):
            raise TypeError(f"Number of tensordot axes (axes {n}) exceeds input ranks ({tuple(a.shape)} and {tuple(b.shape)})")
        contract = (tuple(range(a.ndim - n, a.ndim)), tuple(range(n)))
    elif isinstance(axes, (tuple, list)) and len(axes) == 2:
        left, right = axes
        if isinstance(left, (int, np.integer)) and isinstance(right, (int, np.integer)):
            left, right = (left,), (right,)
        elif not (isinstance(left, (tuple, list)) and isinstance(right, (tuple, list))):
            raise TypeError("tensordot requires both axes lists to be either ints, tuples or lists; got " + f"{type(left).__name__} and {type(right).__name__}")
        if len(left) != len(right):
            raise TypeError(f"tensordot requires axes lists to have equal length, got {left} and {right}.")
        contract = (tuple([canonicalize_axis(d, a.ndim) for d in left]), tuple([canonicalize_axis(d, b.ndim) for d in right]))
    else:
        raise TypeError("tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples of ints.")
    return _product(a, b, (contract, ((), ())), precision, dtype, weak)


@jitted("kron")
def _kron(a, b):
    a, b = _core.promote_dtypes(a, b)
    rank = max(a.ndim, b.ndim)
    a_shape = (1,) * (rank - a.ndim) + tuple(a.shape)
    b_shape = (1,) * (rank - b.ndim) + tuple(b.shape)
    # Axes interleaved: (a0, 1, a1, 1, ...) times (1, b0, 1, b1, ...).
    wide_a = tuple([n for s in a_shape for n in (s, 1)])
    wide_b = tuple([n for s in b_shape for n in (1, s)])
    dims_a = tuple([2 * d for d in range(rank - a.ndim, rank)])
    dims_b = tuple([2 * d + 1 for d in range(rank - b.ndim, rank)])
    out = bind(
        "mul",
        bind("broadcast_in_dim", a, shape=wide_a, broadcast_dimensions=dims_a),
        bind("broadcast_in_dim", b, shape=wide_b, broadcast_dimensions=dims_b),
    )
    return bind("reshape", out, new_sizes=tuple([m * n for m, n in zip(a_shape, b_shape, strict=True)]), dimensions=None)


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Kronecker product: every element of a times all of b.

    Args:
        a, b: arrays of numbers.

    Returns:
        Array of shape a.shape * b.shape (missing axes count 1), of the promoted dtype.

    >>> jnp.kron(jnp.array([1, 2]), jnp.array([1, 1]))
    Array([1, 1, 2, 2], dtype=int32)
    """
    return _kron(as_array("kron", a), as_array("kron", b))


@jitted("cross", static=("axisa", "axisb", "axisc", "axis"))
def _cross(a, b, axisa, axisb, axisc, axis):
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _core.promote_dtypes(a, b)
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    if a.shape[-1] == 2 and b.shape[-1] == 2:
        return subtract(multiply(a[..., 0], b[..., 1]), multiply(a[..., 1], b[..., 0]))
    if a.shape[-1] == 2:
        a0, a1 = a[..., 0], a[..., 1]
        b0, b1, b2 = b[..., 0], b[..., 1], b[..., 2]
        parts = [multiply(a1, b2), negative(multiply(a0, b2)), subtract(multiply(a0, b1), multiply(a1, b0))]
    elif b.shape[-1] == 2:
        a0, a1, a2 = a[..., 0], a[..., 1], a[..., 2]
        b0, b1 = b[..., 0], b[..., 1]
        parts = [negative(multiply(a2, b1)), multiply(a2, b0), subtract(multiply(a0, b1), multiply(a1, b0))]
    else:
        a0, a1, a2 = a[..., 0], a[..., 1], a[..., 2]
        b0, b1, b2 = b[..., 0], b[..., 1], b[..., 2]
        parts = [
            subtract(multiply(a1, b2), multiply(a2, b1)),
            subtract(multiply(a2, b0), multiply(a0, b2)),
            subtract(multiply(a0, b1), multiply(a1, b0)),
        ]
    rows = [bind("broadcast_in_dim", p, shape=(1, *p.shape), broadcast_dimensions=tuple(range(1, p.ndim + 1))) for p in broadcast_arrays(*parts)]
    return moveaxis(bind("concatenate", *rows, dimension=0), 0, axisc)


def cross(a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """Cross product of vectors of 3 (or 2: the scalar z component) along `axis`, or along axisa,
    axisb into axisc.

    Args:
        a, b: arrays with vectors of 2 or 3 elements; the other axes broadcast.
        axisa, axisb: int: the axes of the vectors.
        axisc: int, position of the result's vectors.
        axis: int in place of the three; None: those.

    Returns:
        Array of the broadcast shape and the promoted dtype; without the axis for vectors of 2.

    Raises:
        ValueError: for vectors of other sizes.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    check_arraylike("cross", a, b)
    return _cross(_core.asarray(a), _core.asarray(b), axisa=axisa, axisb=axisb, axisc=axisc, axis=axis)


@jitted("trace", static=("axis1", "axis2", "dtype"))
def _trace(a, offset, axis1, axis2, dtype):
    shape = (a.shape[axis1], a.shape[axis2])
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    i32 = np.dtype(np.int32)
    rows = bind("iota", dtype=i32, shape=shape, dimension=0)
    columns = bind("iota", dtype=i32, shape=shape, dimension=1)
    mask = bind("eq", bind("add", rows, offset if isinstance(offset, np.int32) else convert(offset, np.int32)), columns)
    zeros = bind("broadcast_in_dim", constant(0, a.dtype), shape=tuple(a.shape), broadcast_dimensions=())
    return _reductions.sum(where(mask, a, zeros), axis=(-2, -1), dtype=dtype)


def trace(a: ArrayLike, offset: ArrayLike = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Sum of the diagonal of two axes.

    Args:
        a: array of rank 2 or more.
        offset: int, which diagonal, above (positive) or below.
        axis1, axis2: int: the two axes.
        dtype: dtype to accumulate in and to return; None: a's, narrow integers and bool widened to
          the default integer.
        out: not supported; must be None.

    Returns:
        Array of a's shape without the two axes.

    Raises:
        ValueError: below rank 2, or for one axis twice.
        NotImplementedError: if `out` is given.

    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    unsupported("jnp.trace", out=out)
    a = as_array("trace", a)
    if axis1 == axis2:
        raise ValueError(f"axis1 and axis2 can not be same. axis1={axis1} and axis2={axis2}")
    axis1, axis2 = canonicalize_axis(axis1, a.ndim), canonicalize_axis(axis2, a.ndim)
    return _trace(a, offset, axis1=axis1, axis2=axis2, dtype=requested("trace", dtype))


# ---- one-dimensional convolution
