"""`PartitionSpec`: the mesh axes along which each dimension of an array is partitioned.

Invariant: equal specifications are one object if their entries are hashable.

    >>> PartitionSpec("x", None).axes_of(0)
    ('x',)
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Self, final

from .._runtime.mesh import current, shardings

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from .shardings import NamedSharding


__all__ = ["PartitionSpec"]


class UnconstrainedSingleton:
    """The class of `PartitionSpec.UNCONSTRAINED`, whose copies are the same object."""

    __repr__ = lambda self: "UNCONSTRAINED"

    def __reduce__(self):
        return "PartitionSpec.UNCONSTRAINED"


def _dimension(axes):
    """The canonical entry of a dimension: None for no axis, the name for a single axis, a tuple for
    several.
    """
    if not isinstance(axes, (list, tuple)):
        return axes
    if any(isinstance(a, (list, tuple)) for a in axes):
        raise ValueError(f"A tuple inside PartitionSpec cannot contain a nested tuple. Got {axes}")
    return tuple(axes) if len(axes) > 1 else axes[0] if axes else None


def _axis_set(name, axes):
    if not isinstance(axes, (set, frozenset)):
        raise TypeError(f"{name} argument of PartitionSpec should of type `frozenset` or `set`. Got type {axes}")
    if None in axes:
        raise ValueError(f"{name} cannot contain None. All elements in {name} should refer to the mesh axes.")
    return frozenset(axes)


_specs = weakref.WeakValueDictionary()


@final
class PartitionSpec:
    """The mesh axes along which each dimension of an array is partitioned: a name, a tuple of names
    (the first is the coarsest) or None.

    Other dimensions are not partitioned.

    A tuple of one name is the name, and an empty one None: `P(("x",)) == P("x")`.

    Raises:
        TypeError: `unreduced` or `reduced` is not a set.
        ValueError: an axis is in two of partitions, `unreduced` and `reduced`.

    >>> PartitionSpec("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("__weakref__", "partitions", "reduced", "unreduced")
    partitions: tuple[Any, ...]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]
    UNCONSTRAINED: Any = UnconstrainedSingleton()

    def __new__(cls, *partitions: Any, unreduced: Set[Any] = frozenset(), reduced: Set[Any] = frozenset()) -> Self:
        """Equal specifications are one object."""
        entries = tuple([_dimension(p) for p in partitions])
        key = entries, _axis_set("unreduced", unreduced), _axis_set("reduced", reduced)
        try:
            known = _specs.get(key)
        except TypeError:  # a specification with an entry that is not hashable is not kept
            return cls._made(*key)
        if known is None:
            known = _specs[key] = cls._made(*key)
        return known

    @classmethod
    def _made(cls, partitions, unreduced, reduced):
        self = object.__new__(cls)
        self.partitions, self.unreduced, self.reduced = partitions, unreduced, reduced
        self._check_sets()
        return self

    def __init_subclass__(cls):
        """Refused: the class is final.

        Raises:
            TypeError: always.
        """
        raise TypeError("Subclassing `jax.P` is prohibited, it is a final class")

    def _check_sets(self):
        unreduced, reduced = self.unreduced, self.reduced
        if not unreduced and not reduced:
            return
        if self.unreduced & self.reduced:
            got = f"Got unreduced: {self.unreduced} and reduced: {self.reduced}"
            raise ValueError(f"`unreduced` and `reduced` argument to PartitionSpec cannot overlap. {got}")
        used = {a for d in range(len(self)) for a in self.axes_of(d)}
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if used & axes:
                got = f"Got partitions: {self.partitions} and {name} axes: {axes}"
                raise ValueError(f"partitions cannot overlap with {name} axes passed to PartitionSpec. {got}")

    def __iter__(self) -> Iterator[Any]:
        self._refuse_sums("Using *pspec", "*spec.partitions")
        return iter(self.partitions)

    def _refuse_sums(self, what, instead):
        if self.unreduced or self.reduced:
            raise ValueError(f"{what} is dangerous when PartitionSpec has non-empty unreduced/reduced set. Please use {instead}")

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, i: Any) -> Any:
        self._refuse_sums("Using pspec[...]", "spec.partitions[...]")
        return self.partitions[i]

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            sums = {"unreduced": self.unreduced | other.unreduced, "reduced": self.reduced | other.reduced}
            return PartitionSpec(*self.partitions, *other.partitions, **sums)
        return PartitionSpec(*self.partitions, *self._tuple_beside(other, "__add__"))

    def __radd__(self, other):
        return PartitionSpec(*self._tuple_beside(other, "__radd__"), *self.partitions)

    def _tuple_beside(self, other, method):
        if not isinstance(other, tuple):
            raise NotImplementedError
        for name in ("unreduced", "reduced"):
            if getattr(self, name):
                raise TypeError(f"other {other} cannot be of instance `tuple` when self {self} has {name} in `{method}` of PartitionSpec.")
        return other

    def index(self, value: Any) -> int:
        """The first dimension partitioned along `value`. Raises ValueError if no dimension is."""
        return self.partitions.index(_dimension(value))

    def count(self, value: Any) -> int:
        """The number of dimensions partitioned along `value`."""
        return self.partitions.count(_dimension(value))

    def update(self, **kwargs: Any) -> PartitionSpec:
        """A specification with `partitions`, `unreduced` or `reduced` changed."""
        new = {"partitions": self.partitions, "unreduced": self.unreduced, "reduced": self.reduced, **kwargs}
        return PartitionSpec(*new.pop("partitions"), **new)

    def axes_of(self, dim: int) -> tuple[Any, ...]:
        """The mesh axes along which a dimension is partitioned, coarsest first."""
        p = self.partitions[dim] if dim < len(self.partitions) else None
        return () if p is None or p is PartitionSpec.UNCONSTRAINED else p if isinstance(p, tuple) else (p,)

    def in_context(self, what: str, argument: str) -> NamedSharding:
        """The NamedSharding of this specification over the mesh in use.

        Raises:
            RuntimeError: no mesh is in use.
        """
        mesh = current()
        if mesh is None or mesh.empty:
            raise RuntimeError(
                f"{what} requires a non-empty mesh in context if you are passing `PartitionSpec`s to {argument}. You can define a context mesh via"
                f" `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to {argument} and then the mesh context manager is not required."
            )
        return shardings["named"](mesh, self)

    def _key(self):
        return self.partitions, self.unreduced, self.reduced

    def __eq__(self, other):
        return type(other) is PartitionSpec and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        marks = [f"{k}={set(v)}" for k, v in (("unreduced", self.unreduced), ("reduced", self.reduced)) if v]
        if len(self.partitions) == 1 and not marks:
            return f"P({self.partitions[0]!r},)"
        return f"P({', '.join([*map(repr, self.partitions), *marks])})"

    def __reduce__(self):
        return _spec_again, self._key()


# As in JAX, `__name__` is the short name, by which it is public too.
PartitionSpec.__name__ = PartitionSpec.__qualname__ = "P"
PartitionSpec.__module__ = "ferrax.sharding"


def _spec_again(partitions, unreduced, reduced):
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)
