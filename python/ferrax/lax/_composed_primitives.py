"""Primitives of JAX that Ferrax's language lacks, each defined by a function; and the functions
that bind them.

    eq_to_p.bind(x, y)          # bits compared: nan equals itself, and 0 is not -0

Invariant: `lax` gives them out by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.dtypes import is_complex, is_floating
from ..interpreters._composed import composed
from ..tree_util import tree_leaves
from ._collectives import ragged_all_to_all
from ._comparisons import eq
from ._creation import bitcast_convert_type
from ._differentiation import with_sharding_constraint

if TYPE_CHECKING:
    from .._core import Array

__all__ = ["dce_sink", "dce_sink_p", "eq_to_p", "ragged_all_to_all_p", "sharding_constraint_p", "stage", "stage_p"]


def _equal_in_total_order(x, y):
    if is_complex(x.dtype):
        raise TypeError(f"eq_to does not accept dtype {x.dtype}: complex numbers have no total order")
    if not is_floating(x.dtype):
        return eq(x, y)
    words = np.dtype(f"uint{8 * x.dtype.itemsize}")
    return eq(bitcast_convert_type(x, words), bitcast_convert_type(y, words))


eq_to_p = composed("eq_to", _equal_in_total_order)
stage_p = composed("stage", _core.asarray)
dce_sink_p = composed("dce_sink", lambda x, *, prevent_mlir_dce=False: (), multiple_results=True)
ragged_all_to_all_p = composed("ragged_all_to_all", ragged_all_to_all)
sharding_constraint_p = composed("sharding_constraint", lambda x, *, sharding, **_: with_sharding_constraint(x, sharding))


def stage(x: Any, /) -> Array:
    """`x` as an array, of the trace that is at work.

    Args:
        x: an array or a scalar.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: it is neither.

    >>> lax.stage(jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    return _core.asarray(x)


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Marks the arrays of a pytree as used in the traced program; the compiled program leaves them
    out.

    Args:
        val: pytree of arrays.
        prevent_mlir_dce: has no effect.

    Returns:
        None.

    >>> lax.dce_sink(jnp.array([1.0]))
    """
    for x in tree_leaves(val):
        dce_sink_p.bind(x, prevent_mlir_dce=prevent_mlir_dce)
