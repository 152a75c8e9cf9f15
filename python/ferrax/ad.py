"""Markers for the gradients of a pullback: returned, added to a mutable reference, or not wanted.

    f_vjp.with_refs(total, ad.DontWant(), ad.GradValue())(ct)       # (GradRef(), DidntWant(), a gradient)

Invariant: a gradient that is not requested is not computed.
"""

from __future__ import annotations

from typing import Any

from ._trees import flat as _flat
from ._trees.flat import float0
from .tree_util import register_pytree_node, tree_flatten, tree_leaves

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]


class _Mark:
    """A value without parts: all of one class are equal."""

    __slots__ = ()

    def __repr__(self):
        return f"{type(self).__name__}()"

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))


class GradValue(_Mark):
    """Given to `with_refs` for a gradient that is returned."""

    __slots__ = ()


class DontWant(_Mark):
    """Given to `with_refs` for a gradient that is not computed."""

    __slots__ = ()


class GradRef(_Mark):
    """Returned by a pullback in place of a gradient that was added to a reference."""

    __slots__ = ()


class DidntWant(_Mark):
    """The place of a gradient that was not requested, in the result of a pullback."""

    __slots__ = ()


for _kind in (GradRef, DidntWant):
    register_pytree_node(_kind, lambda _: ((), None), lambda _, __, kind=_kind: kind())


def placed(f_vjp: Any, places: Any, *cotangents: Any) -> tuple[Any, ...]:
    """The gradients of a pullback, each where its place says."""
    wanted = [not isinstance(place, DontWant) for place in places]
    grads, out = tree_leaves(f_vjp._wanting(wanted, *cotangents)), []
    for place, g in zip(places, grads, strict=True):
        if isinstance(place, DontWant):
            out.append(DidntWant())
        elif isinstance(place, _flat.references.Ref):
            _add(place, g)
            out.append(GradRef())
        else:
            out.append(g)
    return f_vjp.in_tree.unflatten(out)


def _add(ref, g):
    if getattr(g, "dtype", None) != float0:
        ref.addupdate(g)


def places(f_vjp: Any, refs: Any) -> list[Any]:
    """The leaves of what `with_refs` was given. ValueError where they are not the primals'."""
    leaves, tree = tree_flatten(refs, is_leaf=lambda x: isinstance(x, _flat.references.Ref))
    if tree != f_vjp.in_tree:
        raise ValueError(f"with_refs takes a reference or a placeholder for each leaf of the primals, of structure {f_vjp.in_tree}, but was given {tree}")
    return leaves
