"""Derivatives by sparse arrays: with respect to their elements, at their indices.

Invariant: a derivative with respect to a sparse array is a sparse array with its indices. For a
function that returns an array, the array's dimensions come first as batch dimensions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ... import numpy as jnp
from ..._tracing.picklable import restorable
from ..._transforms.grad import jacfwd as _jacfwd, jacrev as _jacrev, value_and_grad as _value_and_grad
from ..._trees.flat import check_callable, wraps
from ...tree_util import register_pytree_node_class, tree_flatten, tree_map
from ._base import JAXSparse
from .bcoo import BCOO, made

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]


@register_pytree_node_class
class _Datas:
    """The data of all arguments, or their derivatives: a separate kind of node, so that it can be
    found in a result.
    """

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)

    def tree_flatten(self):
        return self.items, None

    @classmethod
    def tree_unflatten(cls, _, items):
        return cls(items)


def _is_sparse(x):
    return isinstance(x, JAXSparse)


def _with_data(mat, data):
    """`mat` with other data."""
    buffers, layout = mat.tree_flatten()
    return type(mat).tree_unflatten(layout, (data, *buffers[1:]))


def _by_data(transform, fun, argnums, has_aux, kwargs, rebuilt, after, dense_only=False):
    """`fun` transformed with respect to the data of its sparse arguments."""
    check_callable(fun)
    single = not isinstance(argnums, (tuple, list))
    numbers = [operator.index(n) for n in ([argnums] if single else argnums)]
    if not numbers:
        raise ValueError("argnums must name at least one argument")

    def run(*args, **more):
        for n in numbers:
            if not -len(args) <= n < len(args):
                raise ValueError(
                    f"differentiating with respect to argnums={argnums} requires at least {max(numbers) + 1} positional arguments, got {len(args)}"
                )
        at = [n % len(args) for n in numbers]
        leaves, tree = tree_flatten([args[n] for n in at], is_leaf=_is_sparse)
        datas = [x.data if _is_sparse(x) else x for x in leaves]

        def of_data(datas):
            values = [_with_data(x, d) if _is_sparse(x) else d for x, d in zip(leaves, datas, strict=True)]
            whole = list(args)
            for n, value in zip(at, tree.unflatten(values), strict=True):
                whole[n] = value
            out = fun(*whole, **more)
            if dense_only and any(map(_is_sparse, tree_flatten(out[0] if has_aux else out, is_leaf=_is_sparse)[0])):
                raise NotImplementedError("the Jacobian of a function with a sparse result is not implemented: use sparse.todense() on it")
            return out

        result = transform(of_data, has_aux=has_aux, **kwargs)(_Datas(datas))
        return after(result, lambda ds: _chosen(tree, leaves, ds, single, rebuilt))

    return run


def _chosen(tree, leaves, derivatives, single, rebuilt):
    """The derivatives by each argument, sparse ones as sparse arrays."""
    found = tree.unflatten([rebuilt(x, d) if _is_sparse(x) else d for x, d in zip(leaves, derivatives, strict=True)])
    return found[0] if single else tuple(found)


_DOC = """Derivatives of {fun}; those by a sparse argument are sparse arrays with its indices.{original}"""


def value_and_grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., tuple[Any, Any]]:
    """`jax.value_and_grad` for functions of sparse arrays: the gradient is with respect to their
    elements, and has their indices.

    Args:
        fun: a function of pytrees, whose result is a scalar.
        argnums: which arguments: a number or several.
        has_aux: whether it returns a pair of the scalar and something else.
        **kwargs: as for `value_and_grad`: `holomorphic`, `allow_int`.

    Returns:
        a function with the value and the gradient.

    Raises:
        TypeError: an argument or the result has the wrong dtype or shape.

    >>> X = BCOO.fromdense(jnp.arange(6.0))
    >>> value_and_grad(lambda X, y: X @ y)(X, jnp.ones(6))
    (Array(15., dtype=float32), BCOO(float32[6], nse=5))
    """
    run = _by_data(_value_and_grad, fun, argnums, has_aux, kwargs, _with_data, lambda result, chosen: (result[0], chosen(result[1])))
    return restorable(value_and_grad, fun, argnums, has_aux, **kwargs)(wraps(fun, "value_and_grad_{fun}", _DOC)(run))


def grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """`jax.grad` for functions of sparse arrays: the gradient is with respect to their elements,
    and has their indices.

    Args:
        fun: a function of pytrees, whose result is a scalar.
        argnums: which arguments: a number or several.
        has_aux: whether it returns a pair of the scalar and something else.
        **kwargs: as for `grad`: `holomorphic`, `allow_int`.

    Returns:
        a function with the gradient; with `has_aux`, a pair of it and something else.

    Raises:
        TypeError: an argument or the result has the wrong dtype or shape.

    >>> X = BCOO.fromdense(jnp.arange(6.0))
    >>> grad(lambda X, y: X @ y)(X, jnp.ones(6))
    BCOO(float32[6], nse=5)
    """

    def after(result, chosen):
        value, derivatives = result
        return (chosen(derivatives), value[1]) if has_aux else chosen(derivatives)

    made = restorable(grad, fun, argnums, has_aux, **kwargs)
    return made(wraps(fun, "grad_{fun}", _DOC)(_by_data(_value_and_grad, fun, argnums, has_aux, kwargs, _with_data, after)))


def _stacked(mat, derivative):
    """Derivatives of arrays by a sparse array's data: sparse arrays, whose indices are repeated for
    each element of the array.
    """

    def one(d):
        if not isinstance(mat, BCOO):
            return _with_data(mat, d)
        lead = d.shape[: d.ndim - mat.data.ndim]
        return made(d, jnp.broadcast_to(mat.indices, (*lead, *mat.indices.shape)), (*lead, *mat.shape), mat.indices_sorted, mat.unique_indices)

    return tree_map(one, derivative)


def _jacobian(transform, fun, argnums, has_aux, kwargs, name):
    # one sparse argument after another: the result's structure is outside that of the arguments
    def after(result, chosen):
        outer, aux = result if has_aux else (result, None)
        found = _transposed(outer, chosen)
        return (found, aux) if has_aux else found

    made = restorable({"jacfwd": jacfwd, "jacrev": jacrev}[name], fun, argnums, has_aux, **kwargs)
    return made(wraps(fun, name + "_{fun}", _DOC)(_by_data(transform, fun, argnums, has_aux, kwargs, _stacked, after, True)))


def _transposed(outer, chosen):
    leaves, tree = tree_flatten(outer, is_leaf=lambda x: isinstance(x, _Datas))
    return tree.unflatten([chosen(x) for x in leaves])


def jacfwd(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """`jax.jacfwd`, where arguments may be sparse arrays.

    Args:
        fun: a function of pytrees, whose result is a pytree of arrays.
        argnums: which arguments: a number or several.
        has_aux: whether it returns a pair of that and something else.
        **kwargs: as for `jacfwd`: `holomorphic`.

    Returns:
        a function with the Jacobian: for a BCOO argument, a BCOO array with the result's dimensions
        as batch dimensions before those of the argument.

    Raises:
        NotImplementedError: the result is sparse.
        TypeError: an argument has the wrong dtype.
    """
    return _jacobian(_jacfwd, fun, argnums, has_aux, kwargs, "jacfwd")


def jacrev(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """The Jacobian by reverse mode, as `jax.jacrev`, where arguments may be sparse arrays.

    Args:
        fun: function of pytrees, whose result is a pytree of arrays.
        argnums: int or sequence of ints, the arguments by which to differentiate.
        has_aux: bool; whether `fun` returns a pair whose second part is not differentiated.
        **kwargs: options of `jax.jacrev`: `holomorphic` and `allow_int`.

    Returns:
        A function that returns the Jacobian: for a BCOO argument a BCOO array, with the result's
        dimensions as batch dimensions before those of the argument.

    Raises:
        NotImplementedError: the result is sparse.
        TypeError: an argument has the wrong dtype.

    >>> jacrev(lambda X: X @ jnp.ones(3))(BCOO.fromdense(jnp.eye(3)))
    BCOO(float32[3, 3, 3], nse=3, n_batch=1)
    """
    return _jacobian(_jacrev, fun, argnums, has_aux, kwargs, "jacrev")


jacobian = jacrev
