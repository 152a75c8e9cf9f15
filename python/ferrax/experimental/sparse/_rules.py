"""The rules of `sparsify`: each operation of the language applied to BCOO arrays.

Invariant: `RULES[name](eqn, values, params)` takes arrays and BCOO arrays, at least one of which is
sparse, and gives one or the other (a list, if the operation has several results).
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

import numpy as np

from ... import lax, numpy as jnp
from ..._core import Tracer
from ..._tracing.jit import jit
from ._base import JAXSparse, column, columns, ends, inside, masked, over_batch
from ._convolution import bcoo_conv_general_dilated
from ._duplicates import sum_duplicates
from ._products import bcoo_dot_general, bcoo_multiply_sparse, multiply_dense, times
from ._shaping import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_squeeze,
    bcoo_transpose,
    materialized,
    with_columns,
)
from ._slicing import bcoo_dynamic_slice, bcoo_gather, bcoo_slice, bcoo_update_layout
from .bcoo import BCOO, like, made, props

if TYPE_CHECKING:
    from ..._core import Array

__all__ = ["KEEPS_ROWS", "RULES", "as_bcoo", "dense"]

RULES = {}


def as_bcoo(x):
    """Any sparse array as a BCOO array."""
    return x if isinstance(x, BCOO) else x.to_bcoo()


def todense(arr: JAXSparse | Array) -> Array:
    """The dense array of a sparse one; an array is returned unchanged.

    Within a function that `sparsify` is applied to, it marks the conversion of a sparse array to a
    dense one.

    Args:
        arr: a sparse array or an array.

    Returns:
        an array.

    >>> todense(BCOO.fromdense(jnp.array([0, 3])))
    Array([0, 3], dtype=int32)
    """
    if isinstance(arr, JAXSparse):
        return arr.todense()
    arr = jnp.asarray(arr)
    return _marked(arr) if isinstance(arr, Tracer) else arr


def dense(x):
    return x.todense() if isinstance(x, JAXSparse) else x


# In a program `todense` is a call of this name. `sparsify` has a rule for it; elsewhere it is the identity.
dense.__name__ = "sparse_todense"
_marked = jit(dense)


def _rule(*names):
    def decorate(rule):
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return decorate


# ---------------------------------------------------------------- element by element


def unique(mat):
    """The array with each index at most once, in as many places."""
    return mat if mat.unique_indices else sum_duplicates(mat, nse=mat.nse, remove_zeros=False)


_LINEAR = "neg real imag copy device_put"
_ZERO_TO_ZERO = """abs asin asinh atan atanh bessel_i1e cbrt ceil conj erf erf_inv expm1 floor log1p reduce_precision round sign sin sinh sqrt square
    stop_gradient tan tanh"""


def _linear(eqn, values, params):
    return like(values[0], eqn.primitive.bind(values[0].data, **params))


def _zero_to_zero(eqn, values, params):
    mat = unique(values[0])
    return like(mat, eqn.primitive.bind(mat.data, **params))


# Whose results are BCSR arrays where the operands are.
KEEPS_ROWS = frozenset(f"{_LINEAR} {_ZERO_TO_ZERO} convert_element_type integer_pow broadcast_in_dim concatenate stack".split())
RULES.update(dict.fromkeys(_LINEAR.split(), _linear))
RULES.update(dict.fromkeys(_ZERO_TO_ZERO.split(), _zero_to_zero))
RULES["conj"] = _linear


@_rule("optimization_barrier")
def _barrier(eqn, values, params):
    datas = eqn.primitive.bind(*(x.data if isinstance(x, BCOO) else x for x in values), **params)
    return [like(x, d) if isinstance(x, BCOO) else d for x, d in zip(values, datas, strict=True)]


@_rule("convert_element_type")
def _convert(eqn, values, params):
    mat = values[0]
    old, new = mat.dtype, np.dtype(params["new_dtype"])
    widens = old != bool and new != bool and jnp.result_type(old, new) == new and jnp.issubdtype(old, jnp.inexact) == jnp.issubdtype(new, jnp.inexact)
    mat = mat if widens else unique(mat)
    return like(mat, eqn.primitive.bind(mat.data, **params))


@_rule("integer_pow")
def _integer_pow(eqn, values, params):
    if params["y"] <= 0:
        raise NotImplementedError(
            f"sparse rule for integer_pow with non-positive exponent {params['y']} is not implemented because it would result in dense output. "
            "If this is your intent, use sparse.todense() to convert your argument to a dense array."
        )
    return _linear(eqn, values, params) if params["y"] == 1 else _zero_to_zero(eqn, values, params)


def _known_scalar(x):
    """The value of a scalar that is known now, or None."""
    return None if isinstance(x, (Tracer, BCOO)) or x.ndim else x.item()


def _grown(mat, other):
    """The array with dimensions of size 1 repeated to another one's sizes; equations broadcast
    implicitly.
    """
    if mat.ndim != other.ndim or mat.ndim == 0:
        return mat
    shape = jnp.broadcast_shapes(mat.shape, tuple(other.shape))
    return mat if shape == mat.shape else bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=range(mat.ndim))


def _with_scalar(eqn, values, params, keeps_zero):
    """A function of a sparse array and a scalar that is zero at zero for that scalar."""
    for mat, other in (values, values[::-1]):
        v = _known_scalar(other) if isinstance(mat, BCOO) else None
        if v is not None and keeps_zero(v, mat is values[0]):
            mat = unique(mat)
            operands = [mat.data if x is mat or isinstance(x, BCOO) else jnp.broadcast_to(x, mat.data.shape) for x in values]
            return like(mat, eqn.primitive.bind(*operands, **params))
    raise NotImplementedError(
        f"sparse rule for {eqn.primitive.name} is not implemented where zeros would not stay zeros, because it would result in dense output. "
        "If this is your intent, use sparse.todense() to convert your arguments to dense matrices."
    )


RULES["pow"] = functools.partial(_with_scalar, keeps_zero=lambda v, left: left and not isinstance(v, complex) and v > 0)
RULES["max"] = functools.partial(_with_scalar, keeps_zero=lambda v, _: v <= 0)
RULES["min"] = functools.partial(_with_scalar, keeps_zero=lambda v, _: v >= 0)
RULES["rem"] = functools.partial(_with_scalar, keeps_zero=lambda v, left: left and v != 0)


@_rule("mul")
def _mul(eqn, values, params):
    a, b = values
    if isinstance(a, BCOO) and isinstance(b, BCOO):
        if a.ndim == 0 or b.ndim == 0:
            small, large = (a, b) if a.ndim == 0 else (b, a)
            return like(large, multiply_dense(large, dense(small)))
        if a.indices is b.indices and a.unique_indices and b.unique_indices and a.shape == b.shape:
            return like(a, times(a.data, b.data))
        kinds = min(a.n_batch, b.n_batch), min(a.n_dense, b.n_dense)
        return bcoo_multiply_sparse(*(bcoo_update_layout(x, n_batch=kinds[0], n_dense=kinds[1]) for x in values))
    mat, v = (a, b) if isinstance(a, BCOO) else (b, a)
    if mat.ndim < v.ndim:
        return times(jnp.broadcast_to(dense(mat), v.shape), v)
    mat = _grown(mat, v)
    return like(mat, multiply_dense(mat, v))


def _of_booleans(name, rule):
    def only(eqn, values, params):
        if any(x.dtype != bool for x in values):
            raise NotImplementedError(f"sparse rule for {name} is implemented for booleans only.")
        return rule(eqn, [unique(x) if isinstance(x, BCOO) else x for x in values], params)

    RULES[name] = only


@_rule("div")
def _div(eqn, values, params):
    mat, v = values
    if isinstance(v, BCOO):
        raise NotImplementedError(
            "Division by a sparse array is not implemented because it would result in dense output. "
            "If this is your intent, use sparse.todense() to convert your arguments to a dense array."
        )
    if mat.ndim < v.ndim:
        return lax.div(dense(mat), v)
    mat = _grown(mat if jnp.issubdtype(mat.dtype, jnp.inexact) else unique(mat), v)
    return like(mat, multiply_dense(mat, v, lax.div))


def _sum(a, b):
    """a + b of two sparse arrays."""
    if a.ndim != b.ndim:
        small, large = (a, b) if a.ndim == 0 else (b, a)
        return _add_dense(large, jnp.broadcast_to(dense(small), large.shape)) if large.size <= 1 else _refuse_sum()
    a, b = _grown(a, b), _grown(b, a)
    if a.indices is b.indices and a.data.shape == b.data.shape:
        return like(a, plus(a.data, b.data))
    n_batch, n_dense = min(a.n_batch, b.n_batch), min(a.n_dense, b.n_dense)
    a, b = (bcoo_update_layout(x, n_batch=n_batch, n_dense=n_dense) for x in (a, b))
    (da, ia), (db, ib) = materialized(a), materialized(b)
    dtype = jnp.result_type(ia.dtype, ib.dtype)
    indices = jnp.concatenate([ia.astype(dtype), ib.astype(dtype)], axis=n_batch)
    return made(jnp.concatenate([da, db], axis=n_batch), indices, a.shape)


def _refuse_sum():
    raise NotImplementedError(
        "Addition between a sparse array X and a dense array Y is not implemented when the output shape is larger than Y.shape. "
        "This is to prevent silent densification of a large sparse array. If this is your intent, you can explicitly cast the sparse array to a dense matrix."
    )


def plus(a, b):
    """The sum of two arrays of one dtype; of booleans it is `or`."""
    return a | b if a.dtype == bool and b.dtype == bool else lax.add(a, b)


def _add_dense(mat, v):
    """mat + v, where v is dense and has the shape of the result."""
    (nb, ns, _), (batch, _, _) = props(mat)
    if not ns:
        data = masked(mat.data, inside(mat.indices, ()), nb)
        total = jnp.any(data, axis=nb) if v.dtype == bool else jnp.sum(data, axis=nb, dtype=v.dtype)
        return plus(v, jnp.broadcast_to(total, v.shape))

    def one(v, data, indices):
        at = v.at[columns(indices)]
        return at.max(data, mode="drop") if v.dtype == bool else at.add(data, mode="drop")

    data, indices = mat.data, mat.indices
    if nb:
        v = jnp.broadcast_to(v, (*batch, *v.shape[nb:]))
    return over_batch(one, nb, v, data, indices)


@_rule("add", "add_any")
def _add(eqn, values, params):
    a, b = values
    if isinstance(a, BCOO) and isinstance(b, BCOO):
        return _sum(a, b)
    mat, v = (a, b) if isinstance(a, BCOO) else (b, a)
    if mat.ndim == 0:
        return plus(v, jnp.broadcast_to(dense(mat), v.shape))
    return _add_dense(_grown(mat, v), v) if tuple(v.shape) == eqn.outvars[0].aval.shape else _refuse_sum()


_of_booleans("and", _mul)
_of_booleans("or", _add)


@_rule("sub")
def _sub(eqn, values, params):
    a, b = values
    if isinstance(b, BCOO):
        return _add(eqn, [a, like(b, lax.neg(b.data))], {})
    return _add(eqn, [a, lax.neg(b)], {})


@_rule("select_n")
def _select(eqn, values, params):
    which, *cases = values
    if isinstance(which, BCOO) or not all(isinstance(x, BCOO) for x in cases):
        raise NotImplementedError(
            "sparse rule for select_n is implemented for a dense selector and sparse cases only, because it would result in dense output. "
            "If this is your intent, use sparse.todense() to convert your arguments to dense matrices."
        )
    parts = []
    for k, case in enumerate(cases):
        here = which == k if which.dtype != bool else which == bool(k)
        parts.append(like(case, multiply_dense(case, here, lambda data, at: jnp.where(at, data, jnp.zeros((), data.dtype)))))
    return functools.reduce(_sum, parts)


# ---------------------------------------------------------------- products, sums and shapes


@_rule("dot_general")
def _dot(eqn, values, params):
    keep = ("dimension_numbers", "preferred_element_type", "precision")
    return bcoo_dot_general(*values, **{k: v for k, v in params.items() if k in keep})


@_rule("conv_general_dilated")
def _conv(eqn, values, params):
    return bcoo_conv_general_dilated(*values, **params)


@_rule("reduce_sum")
def _reduce_sum(eqn, values, params):
    out = bcoo_reduce_sum(values[0], axes=params["axes"])
    return dense(out) if out.ndim == 0 else out


@_rule("transpose")
def _transpose(eqn, values, params):
    return bcoo_transpose(values[0], permutation=params["permutation"])


@_rule("broadcast_in_dim")
def _broadcast(eqn, values, params):
    return bcoo_broadcast_in_dim(values[0], shape=eqn.outvars[0].aval.shape, broadcast_dimensions=params["broadcast_dimensions"])


@_rule("reshape")
def _reshape(eqn, values, params):
    mat, new, dims = values[0], eqn.outvars[0].aval.shape, params.get("dimensions")
    try:
        return bcoo_reshape(mat, new_sizes=new, dimensions=dims)
    except ValueError:
        if mat.n_batch == mat.n_dense == 0:
            raise
        return bcoo_reshape(bcoo_update_layout(mat, n_batch=0, n_dense=0), new_sizes=new, dimensions=dims)


@_rule("squeeze")
def _squeeze(eqn, values, params):
    return bcoo_squeeze(values[0], dimensions=params["dimensions"])


@_rule("rev")
def _rev(eqn, values, params):
    return bcoo_rev(values[0], params["dimensions"])


@_rule("slice")
def _slice(eqn, values, params):
    return bcoo_slice(values[0], start_indices=params["start_indices"], limit_indices=params["limit_indices"], strides=params["strides"])


@_rule("split")
def _split(eqn, values, params):
    mat, axis, at, parts = values[0], params["axis"], 0, []
    for size in params["sizes"]:
        starts, limits = [0] * mat.ndim, list(mat.shape)
        starts[axis], limits[axis], at = at, at + size, at + size
        parts.append(bcoo_slice(mat, start_indices=starts, limit_indices=limits))
    return parts


@_rule("unstack")
def _unstack(eqn, values, params):
    mat, axis = values[0], params["axis"]
    parts = []
    for k in range(mat.shape[axis]):
        starts, limits = [0] * mat.ndim, list(mat.shape)
        starts[axis], limits[axis] = k, k + 1
        parts.append(bcoo_squeeze(bcoo_slice(mat, start_indices=starts, limit_indices=limits), dimensions=(axis,)))
    return parts


@_rule("dynamic_slice")
def _dynamic_slice(eqn, values, params):
    mat, *starts = values
    return bcoo_dynamic_slice(mat, starts, params["slice_sizes"])


@_rule("gather")
def _gather(eqn, values, params):
    mat, starts = values
    keep = ("dimension_numbers", "slice_sizes", "mode", "fill_value")
    chosen = {k: v for k, v in params.items() if k in keep}
    if chosen.get("mode") == lax.GatherScatterMode.FILL_OR_DROP and chosen.get("fill_value") is None:
        # the default of an array is nan, which would be dense; that of a sparse array is not an element
        chosen["fill_value"] = 0
    return bcoo_gather(mat, starts, **chosen)


def _all_sparse(name, values):
    if not all(isinstance(x, BCOO) for x in values):
        raise ValueError(f"bcoo_{name}: expected operands to be a sequence of BCOO arrays. Got {values}")


@_rule("concatenate")
def _concatenate(eqn, values, params):
    _all_sparse("concatenate", values)
    n_batch, n_dense = min(x.n_batch for x in values), min(x.n_dense for x in values)
    return bcoo_concatenate([bcoo_update_layout(x, n_batch=n_batch, n_dense=n_dense) for x in values], dimension=params["dimension"])


@_rule("stack")
def _stack(eqn, values, params):
    _all_sparse("concatenate", values)
    axis = operator.index(params["axis"])
    dims = [d for d in range(values[0].ndim + 1) if d != axis]
    shape = eqn.outvars[0].aval.shape
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    return _concatenate(eqn, [bcoo_broadcast_in_dim(x, shape=one, broadcast_dimensions=dims) for x in values], {"dimension": axis})


@_rule("tile")
def _tile(eqn, values, params):
    mat, reps = values[0], params["reps"]
    for axis, n in enumerate(reps):
        if n != 1:
            if n == 0:
                mat = bcoo_slice(mat, start_indices=[0] * mat.ndim, limit_indices=[0 if i == axis else d for i, d in enumerate(mat.shape)])
            else:
                mat = bcoo_concatenate([mat] * n, dimension=axis)
    return mat


@_rule("pad")
def _pad(eqn, values, params):
    mat, value = values
    if isinstance(mat, BCOO) and not isinstance(value, BCOO) and _known_scalar(value) != 0:
        raise NotImplementedError(
            "sparse rule for pad is implemented for a padding value that is known to be zero only, because it would result in dense output. "
            "If this is your intent, use sparse.todense() to convert your arguments to dense matrices."
        )
    config = [tuple(c) for c in params["padding_config"]]
    (nb, ns, _), (_, sparse, _) = props(mat)
    shape = eqn.outvars[0].aval.shape
    data, indices = materialized(mat)
    if any(c != (0, 0, 0) for c in config[:nb]):
        none = [(0, 0, 0)]
        data = lax.pad(data, jnp.zeros((), data.dtype), config[:nb] + none * (data.ndim - nb))
        filled = jnp.where(inside(indices, sparse)[..., None], indices, -1) + 1
        filled = lax.pad(filled, jnp.zeros((), filled.dtype), config[:nb] + none * 2)
        indices = jnp.where(filled == 0, ends(sparse, indices.dtype), filled - 1)
    data = lax.pad(data, jnp.zeros((), data.dtype), [(0, 0, 0)] * (nb + 1) + config[nb + ns :])
    mat = made(data, indices, (*shape[:nb], *sparse, *shape[nb + ns :]), mat.indices_sorted, mat.unique_indices)
    if all(c == (0, 0, 0) for c in config[nb : nb + ns]):
        return mat
    keep, cols = inside(indices, sparse), []
    for j, (low, _, interior) in enumerate(config[nb : nb + ns]):
        c = column(indices, j)
        c = jnp.where(c < 0, c + sparse[j], c) * (interior + 1) + low
        keep = keep & (c >= 0) & (c < shape[nb + j])
        cols.append(c)
    data, indices = with_columns(mat, cols, shape[nb : nb + ns], valid=keep)
    return made(masked(data, keep, nb), indices, shape, False, mat.unique_indices)
