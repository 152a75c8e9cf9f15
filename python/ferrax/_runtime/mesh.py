"""Meshes: devices in a grid whose axes have names, and the mesh that code runs in.

    mesh = make_mesh((1, 1), ("data", "model"))
    with set_mesh(mesh): ...

Invariant: a mesh is a value: equal ones compare equal and hash alike. The mesh in use belongs to a
thread.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import threading
import weakref
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import _core
from .._base.shapes import whole

if TYPE_CHECKING:
    from collections.abc import Sequence, Set
    from contextlib import AbstractContextManager

    from .._core import Device

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "ManualAxisType",
    "Mesh",
    "get_abstract_mesh",
    "get_mesh",
    "make_mesh",
    "set_mesh",
    "use_abstract_mesh",
]


class AxisType(enum.Enum):
    """How arrays are partitioned along a mesh axis: by the compiler, by their types, or by the user's
    code (`shard_map`).
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self):
        return self.name

    __str__ = __repr__


def _axis_types(types, names):
    n = len(names)
    types = (AxisType.Auto,) * n if types is None else (types,) if isinstance(types, (AxisType, str)) else tuple(types)
    if not all(isinstance(t, AxisType) for t in types):
        raise TypeError(f"axis_types passed to Mesh must be of type `jax.sharding.AxisType`. Got {types} of type {tuple(type(t) for t in types)}")
    if len(types) != n:
        raise ValueError(f"Number of axis names should match the number of axis_types. Got axis_names={names} and axis_types={types}")
    return types


@dataclasses.dataclass(frozen=True, kw_only=True)
class ManualAxisType:
    """The part of a type that concerns the mesh axes of a `shard_map`: the axes over which a value
    varies, is unreduced, or is reduced.

    Raises:
        ValueError: an axis is in more than one of the sets.

    >>> ManualAxisType(varying={"x"}).varying
    frozenset({'x'})
    """

    varying: frozenset[Any] = frozenset()
    unreduced: frozenset[Any] = frozenset()
    reduced: frozenset[Any] = frozenset()

    def __post_init__(self):
        for name in ("varying", "unreduced", "reduced"):
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        for name in ("unreduced", "reduced"):
            if self.varying & getattr(self, name):
                raise ValueError(f"varying and {name} cannot have common mesh axes. Got varying={self.varying} and {name}={getattr(self, name)}")

    def invarying(self, mesh: Mesh | AbstractMesh) -> frozenset[Any]:
        """The Manual axes of a mesh along which the value and its derivatives are equal."""
        return frozenset(mesh.manual_axes) - (self.varying | self.unreduced | self.reduced)

    @property
    def empty(self) -> bool:
        """Whether it names no axis."""
        return not (self.varying or self.unreduced or self.reduced)

    def to_ct_mat(self) -> ManualAxisType:
        """The axes of the types of cotangents."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    def update(self, **changes: Set[Any]) -> ManualAxisType:
        """A copy with some of the sets changed."""
        return dataclasses.replace(self, **changes)


class _Axes:
    """The common base of concrete and abstract meshes: axes with names, sizes and types."""

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return tuple(self.shape.values())

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Pairs (name, size)."""
        return tuple(self.shape.items())

    @property
    def size(self) -> int:
        """The number of positions of the mesh."""
        return int(np.prod(self.axis_sizes, dtype=object)) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether the mesh has no axis."""
        return not self.axis_names

    def _of_type(self, kind):
        return tuple(a for a, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type Auto."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type Explicit."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type Manual."""
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether all axes have the type Auto."""
        return all(t is AxisType.Auto for t in self.axis_types)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether all axes have the type Explicit."""
        return all(t is AxisType.Explicit for t in self.axis_types)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether all axes have the type Manual."""
        return all(t is AxisType.Manual for t in self.axis_types)

    def __eq__(self, other):
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _short(self):
        return ", ".join([*[f"{name!r}: {n}" for name, n in self.shape.items()], f"axis_types={self.axis_types}"])


_meshes = weakref.WeakValueDictionary()


class Mesh(_Axes):
    """Devices in a grid.

    Args:
        devices: an array of devices, one axis for each name.
        axis_names: a name, or a sequence of them.
        axis_types: an `AxisType` for each axis; Auto by default.

    Raises:
        ValueError: the number of names is not that of the axes, or a name is given twice.
        TypeError: an axis type is not an `AxisType`.

    A mesh is also a context manager: inside, specifications without a mesh refer to it.
    """

    devices: np.ndarray
    axis_names: tuple[Any, ...]
    axis_types: tuple[AxisType, ...]

    def __new__(cls, devices: np.ndarray | Sequence[Device], axis_names: str | Sequence[Any], axis_types: tuple[AxisType, ...] | None = None) -> Self:
        """Equal meshes are one object."""
        devices = np.array(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if None in names:
            raise ValueError(f"Mesh axis names cannot be None. Got: {names}")
        if devices.ndim != len(names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument (`axis_names`), but got"
                f" devices.ndim == {devices.ndim} and len(axis_names) == {len(names)}."
            )
        if len(set(names)) < len(names):
            raise ValueError(f"Mesh axis names should be unique. Got axis_names={names}")
        devices.flags.writeable = False
        self = super().__new__(cls)
        self.devices, self.axis_names, self.axis_types = devices, names, _axis_types(axis_types, names)
        self._outer, self._devices_there = [], None
        return self if cls is not Mesh else _meshes.setdefault(self._key(), self)

    def _for_extension(self):
        """The devices and the sizes of the axes, as layouts of arrays refer to them."""
        if self._devices_there is None:
            axes = [(str(name), n) for name, n in self.shape.items()]
            label = "" if self.are_all_axes_auto else str(self.axis_types)
            typed = self.abstract_mesh._typed()
            self._devices_there = _core.DeviceMesh(axes, list(self.devices.flat), label, typed and typed[1:])
        return self._devices_there

    @property
    def shape(self) -> dict[Any, int]:
        """An ordered dict from names to sizes."""
        return collections.OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def device_ids(self) -> np.ndarray:
        """The devices' numbers, in the grid's shape."""
        return np.array([d.id for d in self.devices.flat], dtype=int).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Device]:
        """The devices of this process."""
        return [d for d in self.devices.flat if d.process_index == _core.process_index()]

    @property
    def _flat_devices_tuple(self):
        return tuple(self.devices.flat)

    @property
    def is_multi_process(self) -> bool:
        """Whether its devices belong to several processes."""
        return len({d.process_index for d in self.devices.flat}) > 1

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh that belongs to this process.

        Raises:
            ValueError: the devices of this process do not form a grid of the mesh.
        """
        if not self.is_multi_process:
            return self
        is_local = np.vectorize(lambda d: d.process_index == _core.process_index(), otypes=[bool])(self.devices)
        found = np.nonzero(is_local)
        grid = self.devices[np.ix_(*[np.unique(i) for i in found])]
        if grid.size != is_local.sum():
            raise ValueError("the devices of this process do not form a grid of the mesh")
        return Mesh(grid, self.axis_names, self.axis_types)

    @property
    def is_scalar(self) -> bool:
        """Whether the mesh has one device and no axis."""
        return not self.axis_names and self.devices.size == 1

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        first = self.devices.flat[0] if self.devices.size else None
        return AbstractMesh(
            self.devices.shape, self.axis_names, self.axis_types, abstract_device=first and AbstractDevice(first.device_kind, None, first.platform)
        )

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """A mesh with some attributes changed."""
        given = (devices, axis_names, axis_types)
        return Mesh(*[old if new is None else new for new, old in zip(given, (self.devices, self.axis_names, self.axis_types), strict=True)])

    def _key(self):
        return tuple(self.devices.flat), self.devices.shape, self.axis_names, self.axis_types

    def __reduce__(self):
        """Pickles the numbers of the devices: they are other objects in another process."""
        named = [(d.platform, d.id) for d in self.devices.flat]
        return _mesh_again, (named, self.devices.shape, self.axis_names, self.axis_types)

    def __deepcopy__(self, _memo):
        return self

    def __enter__(self) -> Self:
        self._outer.append(_enter(self))
        return self

    def __exit__(self, *exc: Any) -> None:
        _restore(self._outer.pop())

    def __repr__(self):
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, axis_types={self.axis_types})" if self.axis_names else "Mesh()"

    def __str__(self):
        return f"Mesh({self._short()})" if self.axis_names else "Mesh()"


def of_devices(axes, devices, label=""):
    """A mesh of devices, row major, whose axes have these names and sizes, and the types that
    `Mesh._for_extension` encoded as text.
    """
    grid = np.empty(len(devices), object)
    grid[:] = devices
    types = tuple(AxisType[t] for t in label.strip("(,)").split(", ")) if label else None
    return Mesh(grid.reshape([n for _, n in axes]), [name for name, _ in axes], types)


def _mesh_again(named, shape, axis_names, axis_types):
    grid = np.empty(len(named), object)
    grid[:] = [next(d for d in _core.devices(platform) if d.id == i) for platform, i in named]
    return Mesh(grid.reshape(shape), axis_names, axis_types)


class AbstractDevice:
    """The description of the devices of an abstract mesh: kind, number of cores, platform."""

    def __init__(self, device_kind: str, num_cores: int | None, platform: str) -> None:
        self.device_kind, self.num_cores, self.platform = device_kind, num_cores, platform

    def _key(self):
        return self.device_kind, self.num_cores, self.platform

    def __eq__(self, other):
        return type(other) is AbstractDevice and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"AbstractDevice(device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform})"


_by_label = {}  # abstract meshes by the name that types use


class AbstractMesh(_Axes):
    """A mesh without devices: names, sizes and types of axes.

    Args:
        axis_sizes, axis_names: one of each for each axis.
        axis_types: an `AxisType` for each axis, or one for all; Auto by default.
        abstract_device: the description of the devices; None if it is unknown.
    """

    axis_names: tuple[Any, ...]
    axis_types: tuple[AxisType, ...]
    abstract_device: AbstractDevice | None
    shape: collections.OrderedDict[Any, int]

    def __init__(
        self,
        axis_sizes: tuple[int, ...],
        axis_names: tuple[str, ...],
        axis_types: AxisType | tuple[AxisType, ...] | None = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> None:
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        sizes = tuple(axis_sizes)
        if len(sizes) != len(names):
            raise ValueError(f"axis_sizes and axis_names of an AbstractMesh must have the same length, got {sizes} and {names}")
        self.axis_names, self.axis_types, self.abstract_device = names, _axis_types(axis_types, names), abstract_device
        self.shape = collections.OrderedDict(zip(names, sizes, strict=True))

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def _typed(self):
        """The axes, for each a flag that says whether it is explicit, and the mesh's name in types;
        None if no axis is explicit.
        """
        if not self.explicit_axes:
            return None
        label = repr(self)
        _by_label.setdefault(label, self)
        return self._facts(), [t is AxisType.Explicit for t in self.axis_types], label

    def _facts(self):
        return [(str(name), n) for name, n in self.shape.items()]

    def _typed_body(self, check):
        """The mesh as types refer to it in the body of a `shard_map`, and a flag for each axis:
        whether types track sums along it, as they do along the Manual axes of a checked body.
        """
        manual = [check and t is AxisType.Manual for t in self.axis_types]
        if not any(manual):
            typed = self._typed()
            return typed if typed is None else (typed, manual)
        label = repr(self)
        _by_label.setdefault(label, self)
        return (self._facts(), [t is AxisType.Explicit for t in self.axis_types], label), manual

    def __getattr__(self, name: Any) -> Any:
        if name in ("devices", "device_ids", "local_devices", "local_mesh", "is_multi_process"):
            raise RuntimeError(f"AbstractMesh does not implement {name}")
        raise AttributeError(f"'AbstractMesh' object has no attribute '{name}'")

    def update(self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None, **kwargs: Any) -> AbstractMesh:
        """A mesh with some attributes changed."""
        given = (axis_sizes, axis_names, axis_types)
        old = (self.axis_sizes, self.axis_names, self.axis_types)
        return AbstractMesh(*[b if a is None else a for a, b in zip(given, old, strict=True)], **{"abstract_device": self.abstract_device, **kwargs})

    def update_axis_types(self, name_to_type: dict[Any, AxisType]) -> AbstractMesh:
        """A mesh with the types of some axes changed; `name_to_type`: from names to types."""
        return self.update(axis_types=tuple(name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types, strict=True)))

    def _key(self):
        return tuple(self.shape.items()), self.axis_types, self.abstract_device

    def __repr__(self):
        if not self.axis_names:
            return "AbstractMesh((), axis_types=())"
        d = self.abstract_device
        return f"AbstractMesh({self._short()}{'' if d is None else f', device_kind={d.device_kind}, num_cores={d.num_cores}, platform={d.platform}'})"


# ---------------------------------------------------------------- the mesh in use

_EMPTY_ABSTRACT = AbstractMesh((), ())
_local = threading.local()


# traces depend on the mesh in use, because specifications mean shardings over it
_core.config_define("_mesh_in_use", None, True)


def _enter(mesh):
    outer = getattr(_local, "mesh", None)
    _restore(mesh)
    return outer


def _restore(mesh):
    if getattr(_local, "mesh", None) is not None:
        _core.config_pop("_mesh_in_use")
    _local.mesh = mesh
    if mesh is not None:
        ids = [str(d) for d in mesh.devices.flat] if isinstance(mesh, Mesh) else []
        _core.config_push("_mesh_in_use", f"{mesh!r} {ids}")


def current():
    """The mesh in use, concrete or abstract; None if no mesh is set."""
    return getattr(_local, "mesh", None)


class _Using:
    """Sets the mesh when it is created.

    As a context manager, it restores the previous mesh at exit.
    """

    def __init__(self, mesh):
        self._mesh, self._outer = mesh, _enter(mesh)

    def __enter__(self):
        return self._mesh

    def __exit__(self, *exc):
        _restore(self._outer)


class _UsingDevices(_Using):
    """The same; values without an explicit device are placed on the devices of the mesh."""

    def __init__(self, mesh):
        place = None if mesh is None or mesh.empty else shardings["whole"](mesh)
        super().__init__(mesh)
        self._outer_place = place_in_use()
        try:
            _use_place(place)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc):
        _use_place(self._outer_place)
        super().__exit__(*exc)


# Filled by `_sharding.shardings`, which imports this module: "named" is NamedSharding, "whole" a function
# from a mesh to the sharding of replicated arrays.
shardings = {}


def _use_place(sharding):
    _local.place = sharding
    _core.use_mesh(sharding)


def place_in_use():
    """The sharding of values without an explicit device; None if `set_mesh` set no mesh."""
    return getattr(_local, "place", None)


def set_mesh(mesh: Mesh | None) -> AbstractContextManager[None]:
    """Sets the mesh in use: from now on or, as a context manager, in the block. None: no mesh.

    Args:
        mesh: `Mesh`, or None for no mesh.

    Returns:
        A context manager that restores the previous mesh.

    Raises:
        ValueError: `mesh` is not a concrete mesh, or a function is being traced.

    >>> with set_mesh(make_mesh((1,), ("x",))) as mesh: print(get_mesh() == mesh)
    True
    """
    if mesh is not None and not isinstance(mesh, Mesh):
        raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}")
    if any(t.what != "eval" for t in _core.traces()):
        raise ValueError("`set_mesh` can only be used outside of `jax.jit`.")
    if mesh is not None and mesh.manual_axes:
        raise ValueError(
            f"mesh {mesh} contains manual axes which is not allowed when using `jax.set_mesh`. Please use `jax.shard_map` to enter into `Manual` mode instead."
        )
    return _UsingDevices(mesh)


def use_abstract_mesh(mesh: AbstractMesh) -> AbstractContextManager[AbstractMesh]:
    """A context manager in which a mesh without devices is the one in use.

    Args:
        mesh: AbstractMesh.

    Returns:
        The context manager.

    Raises:
        ValueError: `mesh` is not an AbstractMesh.
    """
    if not isinstance(mesh, AbstractMesh):
        raise ValueError(f"Expected mesh of type `jax.sharding.AbstractMesh`. Got type: {type(mesh)}")
    before = get_abstract_mesh()
    if not before.empty and not mesh.empty and before.size != mesh.size:
        raise ValueError(
            f"use_abstract_mesh cannot change the size of the mesh. Got new mesh: {mesh} with size={mesh.size} and prev mesh: {before} with size={before.size}"
        )
    return _Using(mesh)


def get_abstract_mesh() -> AbstractMesh:
    """The mesh in use without its devices: the one that `set_mesh` or `use_abstract_mesh` set, or that
    of the `shard_map` being traced.

    Returns:
        AbstractMesh; an empty one where no mesh is in use.
    """
    mesh = current()
    return _EMPTY_ABSTRACT if mesh is None else mesh.abstract_mesh


def get_mesh() -> Mesh:
    """The mesh that `set_mesh` set.

    Returns:
        Mesh; an empty one where none is in use, or where the one in use has no devices.
    """
    mesh = current()
    return mesh if isinstance(mesh, Mesh) else Mesh(np.empty((), object), ())


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[str], axis_types: tuple[AxisType, ...] | None = None, *, devices: Sequence[Device] | None = None
) -> Mesh:
    """A mesh of the first available devices.

    Args:
        axis_shapes, axis_names: the size and the name of each axis.
        axis_types: an `AxisType` for each axis; Explicit by default.
        devices: the devices to choose from; None: those of the default backend.

    Returns:
        `Mesh`.

    Raises:
        ValueError: there are too few devices.

    >>> make_mesh((1, 1), ("x", "y")).axis_sizes
    (1, 1)
    """
    try:
        shape = tuple([whole(n) for n in axis_shapes])
    except (TypeError, ValueError):
        raise ValueError(f"`axis_shapes` passed to `make_mesh` should be a sequence of ints. Got {axis_shapes}") from None
    available = list(_core.devices(None) if devices is None else devices)
    n = int(np.prod(shape, dtype=int))
    if n > len(available):
        raise ValueError(f"Number of devices {len(available)} must be >= the product of mesh_shape {shape}")
    grid = np.empty(n, object)
    grid[:] = available[:n]
    return Mesh(grid.reshape(shape), axis_names, (AxisType.Explicit,) * len(shape) if axis_types is None else axis_types)
