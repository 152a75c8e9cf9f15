"""Convolutions of BCOO arrays: each pair of elements contributes one element of the result.

    out[n, o, i] = sum of lhs[n, c, i * stride + k * dilation - padding] rhs[o, c, k]

Invariant: the result has an element for each pair, those outside included; equal indices are summed
where there are more pairs than places.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ... import _core, lax, numpy as jnp
from ..._core import ShapedArray
from ._base import columns, ends, inside
from ._construction import bcoo_fromdense
from ._duplicates import bcoo_sum_duplicates
from ._slicing import bcoo_update_layout
from .bcoo import BCOO, made

if TYPE_CHECKING:
    from ...sharding import NamedSharding, PartitionSpec

__all__ = ["bcoo_conv_general_dilated"]


def bcoo_conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any = None,
    rhs_dilation: Any = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> BCOO:
    """`lax.conv_general_dilated` of BCOO arrays.

    Args:
        lhs, rhs: BCOO arrays or arrays, of one dtype; their layouts may differ.
        window_strides, padding, lhs_dilation, rhs_dilation: as in `lax.conv_general_dilated`, with
          any number of spatial dimensions.
        dimension_numbers, feature_group_count, batch_group_count: the same.
        precision: has no effect.
        out_sharding: is refused.
        preferred_element_type: the dtype of the result.

    Returns:
        a BCOO array whose dimensions are sparse; batch and feature dimensions of size 1 before the
        spatial ones are batch dimensions.

    Raises:
        TypeError: the dtypes differ, or the shapes do not fit.
        ValueError: as `lax.conv_general_dilated` raises.
    """
    lhs, rhs = (x if isinstance(x, BCOO) else jnp.asarray(x) for x in (lhs, rhs))
    if lhs.dtype != rhs.dtype:
        raise TypeError(f"lax.conv_general_dilated requires arguments to have the same dtypes, got {lhs.dtype}, {rhs.dtype}.")
    given = dict(window_strides=window_strides, padding=padding, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation, dimension_numbers=dimension_numbers)
    given |= dict(feature_group_count=feature_group_count, batch_group_count=batch_group_count, precision=precision)
    given |= dict(preferred_element_type=preferred_element_type, out_sharding=out_sharding)
    # lax checks the parameters and defines their meaning
    dense = lambda l, r: [lax.conv_general_dilated(l, r, **given)]
    program, _ = _core.make_program(dense, [ShapedArray(x.shape, x.dtype) for x in (lhs, rhs)], what="bcoo_conv_general_dilated")
    eqn = next(e for e in program.jaxpr.eqns if e.primitive.name == "conv_general_dilated")
    aval, p = program.jaxpr.outvars[0].aval, eqn.params
    lhs, rhs = (bcoo_update_layout(x if isinstance(x, BCOO) else bcoo_fromdense(x, nse=x.size), n_batch=0, n_dense=0) for x in (lhs, rhs))
    return _convolved(lhs, rhs, p, tuple(aval.shape), aval.dtype)


def _convolved(lhs, rhs, p, shape, dtype):
    numbers = p["dimension_numbers"]
    (ln, lf, *ls), (ro, ri, *rs), (on, of, *os) = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    here = inside(lhs.indices, lhs.shape)[:, None] & inside(rhs.indices, rhs.shape)[None, :]
    left = [jnp.where(c < 0, c + d, c)[:, None] for c, d in zip(columns(lhs.indices), lhs.shape, strict=True)]
    right = [jnp.where(c < 0, c + d, c)[None, :] for c, d in zip(columns(rhs.indices), rhs.shape, strict=True)]
    out = [None] * len(shape)
    group = right[ro] // max(shape[of] // p["feature_group_count"], 1)
    here = here & (left[lf] == group * rhs.shape[ri] + right[ri])
    group = right[ro] // max(shape[of] // p["batch_group_count"], 1)
    here = here & (left[ln] // max(shape[on], 1) == (group if p["batch_group_count"] > 1 else 0))
    out[on], out[of] = left[ln] % max(shape[on], 1), right[ro]
    for i, (a, b, o) in enumerate(zip(ls, rs, os, strict=True)):
        at = left[a] * p["lhs_dilation"][i] + p["padding"][i][0] - right[b] * p["rhs_dilation"][i]
        step = p["window_strides"][i]
        here = here & (at >= 0) & (at % step == 0) & (at // step < shape[o])
        out[o] = at // step
    index_dtype = jnp.result_type(lhs.indices.dtype, rhs.indices.dtype)
    end = ends(shape, index_dtype, reached=True)
    cols = [jnp.where(here, c, e).astype(index_dtype).reshape(-1) for c, e in zip(out, end, strict=True)]
    product = lhs.data.astype(dtype)[:, None] * rhs.data.astype(dtype)[None, :]
    found = made(jnp.where(here, product, jnp.zeros((), dtype)).reshape(-1), jnp.stack(cols, axis=-1), shape)
    if found.nse > math.prod(shape):
        found = bcoo_sum_duplicates(found, nse=math.prod(shape))
    lead = 2 if {on, of} == {0, 1} and shape[:2] == (1, 1) else 0
    return bcoo_update_layout(found, n_batch=lead)
