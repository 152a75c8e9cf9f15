"""`jax._src.api`: how jacobians are put together, and transforms of wrapped functions.

Invariant: values that cannot be differentiated raise errors in the transforms.
"""

import numpy as np

from ... import numpy
from ..._transforms.grad import jvp
from ..._transforms.linear import vjp
from ...tree_util import tree_flatten

__all__ = ["check_nothing", "jacfwd_unravel", "jacrev_unravel", "jvp_wrapped", "std_basis", "vjp_wrapped"]


def check_nothing(*_):
    """Does nothing: values that cannot be differentiated raise errors in the transformations."""


def std_basis(pytree):
    """The basis of a tree's leaves, stacked: one-hot vectors in the tree's structure."""
    leaves = tree_flatten(pytree)[0]
    n = sum(int(np.size(x)) for x in leaves)
    dtype = numpy.result_type(*leaves)
    return _unravel_axis(pytree, numpy.eye(n, dtype=dtype), -1, leaves)


def _unravel_axis(pytree, arr, axis, leaves=None):
    leaves, tree = tree_flatten(pytree)
    axis = axis % arr.ndim
    shapes = [(*arr.shape[:axis], *np.shape(x), *arr.shape[axis + 1 :]) for x in leaves]
    ends = np.cumsum([int(np.size(x)) for x in leaves])[:-1]
    return tree.unflatten([p.reshape(s) for p, s in zip(numpy.split(arr, ends, axis), shapes, strict=True)])


def jacfwd_unravel(input_pytree, output_pytree_leaf, arr):
    """The last axis of a jacobian in the structure of the inputs."""
    return _unravel_axis(input_pytree, arr, -1)


def jacrev_unravel(output_pytree, input_pytree_leaf, arr):
    """The first axis of a jacobian in the structure of the results."""
    return _unravel_axis(output_pytree, arr, 0)


def jvp_wrapped(fun, primals, tangents, has_aux=False):
    """`jvp` of a `WrappedFun`."""
    return jvp(fun.call_wrapped, primals, tangents, has_aux=has_aux)


def vjp_wrapped(fun, *primals, has_aux=False):
    """`vjp` of a `WrappedFun`."""
    return vjp(fun.call_wrapped, *primals, has_aux=has_aux)
