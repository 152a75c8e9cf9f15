"""Products of arrays.

Invariant: `dot_general` is the one product; the others name its axes.

    >>> lax.dot(jnp.ones((2, 3)), jnp.ones((3, 4))).shape
    (2, 4)
"""

from __future__ import annotations

import numpy as np

from .. import _core
from .._config import no_sharding
from .._core import bind
from .._dtypes import canonicalize_dtype
from ._parameters import RaggedDotDimensionNumbers, canonicalize_precision


def precision_text(precision):
    """What a program says of a product's precision: it changes no bit, so it is kept as text."""
    return (
        precision
        if precision is None or isinstance(precision, str)
        else str(precision)
        if not isinstance(precision, tuple)
        else f"({', '.join(map(repr, precision))})"
    )


def _product_parameters(precision, preferred_element_type):
    parameters = {}
    precision = canonicalize_precision(precision)
    if precision is not None:
        parameters["precision"] = precision_text(precision)
    if preferred_element_type is not None:
        parameters["preferred_element_type"] = canonicalize_dtype(preferred_element_type)
    return parameters


def dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None, *, out_sharding=None):
    """Product of lhs and rhs, summed over contracting axes and run together over batch axes.

    dimension_numbers: ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)). The result has the batch axes, then lhs's free axes,
    then rhs's. preferred_element_type: dtype of the result. Raises TypeError where paired axes differ in size.
    """
    if out_sharding is not None:
        no_sharding("dot_general", out_sharding)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    axes = [tuple([d.__index__() for d in dims]) for dims in (lhs_contract, rhs_contract, lhs_batch, rhs_batch)]
    numbers = ((axes[0], axes[1]), (axes[2], axes[3]))
    return bind("dot_general", lhs, rhs, dimension_numbers=numbers, **_product_parameters(precision, preferred_element_type))


def dot(lhs, rhs, *, dimension_numbers=None, precision=None, preferred_element_type=None, out_sharding=None):
    """Product of vectors and matrices, or `dot_general` where `dimension_numbers` are given.

    Raises ValueError where shapes do not fit, or ranks are higher and no dimension numbers given.
    """
    if out_sharding is not None:
        no_sharding("dot", out_sharding)
    if dimension_numbers is None:
        ls, rs = np.shape(lhs), np.shape(rhs)
        if not (1 <= len(ls) <= 2 and 1 <= len(rs) <= 2 and ls[-1] == rs[0]):
            raise ValueError(
                "jax.lax.dot: dimension_numbers must be specified when not performing simple un-batched matrix-matrix, "
                f"matrix-vector, or vector-vector products; got lhs_shape={ls} rhs_shape={rs}"
            )
        dimension_numbers = (((len(ls) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs, rhs, precision=None):
    """Matrix product over the last two axes, run together over all leading ones. Raises ValueError below rank 2."""
    ndim = np.ndim(lhs)
    if min(ndim, np.ndim(rhs)) < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {ndim}, {np.ndim(rhs)}")
    if ndim != np.ndim(rhs):
        raise ValueError(f"Arguments to batch_matmul must have same ndim, got {ndim}, {np.ndim(rhs)}")
    batch = tuple(range(ndim - 2))
    return dot_general(lhs, rhs, (((ndim - 1,), (ndim - 2,)), (batch, batch)), precision)


def ragged_dot_general(
    lhs,
    rhs,
    group_sizes,
    ragged_dot_dimension_numbers,
    precision=None,
    preferred_element_type=None,
    group_offset=None,
    *,
    out_sharding=None,
):
    """`dot_general` with the rows of lhs split into groups of `group_sizes`, each with a slice of rhs of its own.

    Raises NotImplementedError for a group_offset, TypeError for numbers that do not fit the operands.
    """
    if group_offset is not None:
        raise NotImplementedError("Unimplemented group_offset support.")
    if out_sharding is not None:
        no_sharding("ragged_dot_general", out_sharding)
    return bind(
        "ragged_dot_general",
        lhs,
        rhs,
        _core.asarray(group_sizes),
        ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
        **_product_parameters(precision, preferred_element_type),
    )


def ragged_dot(lhs, rhs, group_sizes, precision=None, preferred_element_type=None, group_offset=None, *, out_sharding=None):
    """Rows of lhs [m, k], in groups of `group_sizes` [g], times rhs [g, k, n] of the group: [m, n]."""
    if out_sharding is not None:
        no_sharding("ragged_dot", out_sharding)
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset)
