"""A pytree as one vector.

flat, unravel = ravel_pytree({"w": jnp.ones((2, 2)), "b": jnp.zeros(2)})        # flat: shape (6,)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import numpy as jnp
from ._core import Array
from .tree_util import Partial, tree_flatten

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """All leaves of a pytree, end to end in one vector of their common dtype.

    Args:
      pytree: a pytree of arrays and scalars.

    Returns:
      (flat, unravel): the vector, and the function that takes such a vector back to a pytree of the leaves' own shapes and dtypes.

    Raises:
      ValueError: (by unravel) the vector has the wrong length. TypeError: it has another dtype than `flat`, and the leaves' dtypes differ.

    >>> jax.flatten_util.ravel_pytree({"a": jnp.arange(2.0), "b": 5.0})[0]
    Array([0., 1., 5.], dtype=float32)
    """
    leaves, treedef = tree_flatten(pytree)
    if not leaves:
        return jnp.zeros(0), Partial(_unravel_empty, treedef)
    shapes = [tuple(jnp.shape(x)) for x in leaves]
    dtypes = [jnp.result_type(x) for x in leaves]
    common = jnp.result_type(*dtypes)
    sizes = [int(np.prod(s, dtype=int)) for s in shapes]
    flat = jnp.concatenate([jnp.ravel(jnp.asarray(x).astype(common)) for x in leaves])
    spec = _Spec(treedef, tuple(shapes), tuple(dtypes), tuple(np.cumsum([0, *sizes]).tolist()), common)
    return flat, Partial(Partial(_unravel, spec))


class _Spec:
    """The position of each leaf in the vector."""

    def __init__(self, treedef, shapes, dtypes, offsets, common):
        self.treedef, self.shapes, self.dtypes, self.offsets, self.common = treedef, shapes, dtypes, offsets, common


def _unravel_empty(treedef, flat):
    return treedef.unflatten([])


def _unravel(spec, flat):
    size = spec.offsets[-1]
    if jnp.shape(flat) != (size,):
        raise ValueError(f"The unravel function expected an input of shape {(size,)}, got shape {jnp.shape(flat)}")
    same = all(d == spec.common for d in spec.dtypes)
    if not same and jnp.result_type(flat) != spec.common:
        raise TypeError(f"unravel function given array of dtype {jnp.result_type(flat)}, but expected dtype {spec.common}")
    parts = [flat[a:b].reshape(s) for a, b, s in zip(spec.offsets[:-1], spec.offsets[1:], spec.shapes, strict=True)]
    if not same:
        with warnings.catch_warnings():
            # A complex vector back to real leaves drops zeros.
            warnings.simplefilter("ignore")
            parts = [p.real.astype(d) if p.dtype.kind == "c" and d.kind != "c" else p.astype(d) for p, d in zip(parts, spec.dtypes, strict=True)]
    return spec.treedef.unflatten(parts)
