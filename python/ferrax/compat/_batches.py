"""Further names of `jax._src.interpreters.batching`, `dispatch` and `partial_eval` that libraries use.

Invariant: functions that would change how programs are traced raise when they are called; the others work as in JAX.
"""

import dataclasses
from typing import Any

from .. import effects_barrier, lax
from .._base.refused import refused
from .._runtime.mesh import get_abstract_mesh

prim_requires_devices_during_lowering = set()  # lowerings get no devices here, so entries have no effect
_wrapper_types = set()

TracingEqn = refused("jax._src.interpreters.partial_eval.TracingEqn", "programs take no equations that were written in Python; bind a primitive")
to_elt = refused("jax._src.interpreters.batching.to_elt", "elements of a batch are made by jax.vmap alone")


def make_iota(axis_size):
    """The indices of a batch."""
    return lax.iota("int32", int(axis_size))


def register_custom_decorator_type(cls):
    """Notes a class of objects that wrap functions, as `custom_vjp` is."""
    _wrapper_types.add(cls)
    return cls


@dataclasses.dataclass(frozen=True)
class JaxprEqnContext:
    """The context in which an equation was made."""

    compute_type: Any = None
    threefry_partitionable: bool = True
    xla_metadata: Any = None
    cur_abstract_mesh: Any = dataclasses.field(default_factory=get_abstract_mesh)


class _Tokens:
    """The tokens of ordered effects. Empty, because a device's queue keeps their order."""

    def clear(self):
        """Removes the tokens; there are none."""

    def block_until_ready(self):
        """Waits until effects have happened."""
        effects_barrier()


runtime_tokens = _Tokens()
