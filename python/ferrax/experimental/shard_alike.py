"""Gives two arrays the same sharding.

    y = shard_alike(x, jnp.zeros_like(x))[1]        # in `jit`: cut over devices as x is

Invariant: the values are unchanged. An operation that reads both and gives one is cut along the
dimensions of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._base.dtypes import float0, is_key
from .._tracing.jit import jit
from ..lax import convert_element_type, select_n, stop_gradient

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike

__all__ = ["shard_alike"]


def shard_alike(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Declares that two arrays are divided over devices alike.

    Args:
        x, y: arrays of one shape.

    Returns:
        (x, y).

    Raises:
        ValueError: their shapes differ.
    """
    a, b = _core.get_aval(x), _core.get_aval(y)
    if len(a.shape) != len(b.shape) or tuple(a.shape) != tuple(b.shape):
        raise ValueError(f"The leaves shapes of `x` and `y` should match. Got `x` leaf shape: {tuple(a.shape)} and `y` leaf shape: {tuple(b.shape)}.")
    if any(is_key(t.dtype) or t.dtype == float0 or t.sharding.mesh.explicit_axes for t in (a, b)):  # types with explicit axes have their own shardings
        return x, y
    x, y = _core.asarray(x), _core.asarray(y)
    if not _core.at_root() or isinstance(x, _core.Tracer) or isinstance(y, _core.Tracer):
        return _alike(x, y)
    return _alike_now(x, y) if any(getattr(v.sharding, "num_devices", 1) > 1 for v in (x, y)) else (x, y)


def _alike(x, y):
    return _beside(x, y), _beside(y, x)


def _beside(x, y):
    """x, by an operation that has y as its other operand."""
    return select_n(np.array(False), x, stop_gradient(convert_element_type(y, x.dtype)))


_alike_now = jit(_alike)
