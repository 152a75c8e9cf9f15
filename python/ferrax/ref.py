"""Mutable references as functions: `get`, `set`, `swap`, `addupdate`.

    ref = new_ref(jnp.zeros(3))
    addupdate(ref, 0, 1.0)

Invariant: `get(ref, i)` is `ref[i]`, and `set(ref, i, v)` is `ref[i] = v`.
"""

from ._references.functions import empty_ref, free_ref, freeze, new_ref, ref_addupdate as addupdate, ref_get as get, ref_set as set, ref_swap as swap
from ._references.refs import Ref, RefType as AbstractRef

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]
