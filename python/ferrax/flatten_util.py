"""A pytree as one vector.

flat, unravel = ravel_pytree({"w": jnp.ones((2, 2)), "b": jnp.zeros(2)})        # flat: shape (6,)
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import numpy as jnp
from ._core import Array
from .tree_util import register_pytree_node, tree_flatten

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """All leaves of a pytree, end to end in one vector of their common dtype.

    Args:
        pytree: a pytree of arrays and scalars.

    Returns:
        (flat, unravel): the vector, and the function that takes such a vector back to a pytree of
        the leaves' own shapes and dtypes.

    Raises:
        ValueError: (by unravel) the vector has the wrong length.
        TypeError: its dtype is not that of `flat`, and the leaves' dtypes differ.

    >>> jax.flatten_util.ravel_pytree({"a": jnp.arange(2.0), "b": 5.0})[0]
    Array([0., 1., 5.], dtype=float32)
    """
    leaves, treedef = tree_flatten(pytree)
    if not leaves:
        return jnp.zeros(0), _Unravel(treedef, (), (), (0,), jnp.zeros(0).dtype)
    shapes = [tuple(jnp.shape(x)) for x in leaves]
    dtypes = [jnp.result_type(x) for x in leaves]
    common = jnp.result_type(*dtypes)
    sizes = [int(np.prod(s, dtype=int)) for s in shapes]
    flat = jnp.concatenate([jnp.ravel(jnp.asarray(x).astype(common)) for x in leaves])
    return flat, _Unravel(treedef, tuple(shapes), tuple(dtypes), tuple(np.cumsum([0, *sizes]).tolist()), common)


@dataclasses.dataclass(frozen=True)
class _Unravel:
    """The function back: the structure, and the position of each leaf in the vector.

    Those of like trees are equal.
    """

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]
    offsets: tuple[int, ...]
    common: Any

    def __call__(self, flat):
        size = self.offsets[-1]
        if not self.shapes:
            return self.treedef.unflatten([])
        if jnp.shape(flat) != (size,):
            raise ValueError(f"The unravel function expected an input of shape {(size,)}, got shape {jnp.shape(flat)}")
        same = all(d == self.common for d in self.dtypes)
        if not same and jnp.result_type(flat) != self.common:
            raise TypeError(f"unravel function given array of dtype {jnp.result_type(flat)}, but expected dtype {self.common}")
        parts = [flat[a:b].reshape(s) for a, b, s in zip(self.offsets[:-1], self.offsets[1:], self.shapes, strict=True)]
        if not same:
            with warnings.catch_warnings():
                # A complex vector back to real leaves drops zeros.
                warnings.simplefilter("ignore")
                parts = [p.real.astype(d) if p.dtype.kind == "c" and d.kind != "c" else p.astype(d) for p, d in zip(parts, self.dtypes, strict=True)]
        return self.treedef.unflatten(parts)


# A function without children: `jit` takes it as an argument, and traces once for equal ones.
register_pytree_node(_Unravel, lambda f: ((), f), lambda f, _: f)
