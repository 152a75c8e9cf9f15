"""Where an array's parts stand.

Invariant: a sharding is a value: equal ones compare equal and hash alike. It knows no arrays: those in parts are made by `_parts`.

    >>> NamedSharding(make_mesh((1,), ("x",)), P("x")).shard_shape((4, 2))
    (4, 2)
"""

import contextlib
import functools
import math
import weakref

import numpy as np

from . import _core
from ._mesh import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    ManualAxisType,
    Mesh,
    _by_label,
    current,
    get_abstract_mesh,
    get_mesh,
    make_mesh,
    set_mesh,
    shardings,
    use_abstract_mesh,
)
from ._parts import (
    Shard,
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
    reshard,
)
from .tree_util import tree_flatten, tree_leaves, tree_map

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "DuplicateSpecError",
    "IndivisibleError",
    "ManualAxisType",
    "Mesh",
    "NamedSharding",
    "P",
    "PartitionSpec",
    "Shard",
    "Sharding",
    "SingleDeviceSharding",
    "auto_axes",
    "explicit_axes",
    "get_abstract_mesh",
    "get_mesh",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_mesh",
    "make_single_device_sharding",
    "reshard",
    "set_mesh",
    "use_abstract_mesh",
]


class Sharding:
    """How an array is laid out over devices."""

    memory_kind = "device"

    @property
    def is_fully_addressable(self):
        """Whether all devices belong to this process."""
        here = _core.process_index()
        return all(d.process_index == here for d in self._devices)

    def _repr_html_(self):
        from ._html import sharding

        return sharding(self)

    @property
    def device_set(self):
        """The devices that hold a part."""
        return set(self._devices)

    @property
    def addressable_devices(self):
        """The devices of this process that hold a part."""
        return set(self._addressable_device_assignment)

    @property
    def _device_assignment(self):
        return tuple(self._devices)

    @property
    def _addressable_device_assignment(self):
        here = _core.process_index()
        return tuple(d for d in self._devices if d.process_index == here)

    @property
    def num_devices(self):
        """How many devices hold a part."""
        return len(self._devices)

    def devices_indices_map(self, global_shape):
        """Which slice of an array of `global_shape` each device holds."""
        return {d: tuple(slice(None) for _ in global_shape) for d in self._devices}

    def addressable_devices_indices_map(self, global_shape):
        """Which slice of an array of `global_shape` each device of this process holds."""
        here = _core.process_index()
        return {d: index for d, index in self.devices_indices_map(global_shape).items() if d.process_index == here}

    def shard_shape(self, global_shape):
        """The shape of one device's part."""
        return tuple(global_shape)

    def check_compatible_aval(self, aval_shape):
        """Raises ValueError unless arrays of the shape can be laid out so."""

    def is_equivalent_to(self, other, ndim):
        """Whether arrays of that rank are laid out alike."""
        if self.num_devices == other.num_devices == 1:
            return self.device_set == other.device_set
        shape = (math.lcm(self.num_devices, other.num_devices) ** 2,) * ndim
        mine, others = self.devices_indices_map(shape), other.devices_indices_map(shape)
        return mine == others and list(mine) == list(others)

    def __eq__(self, other):
        return type(self) is type(other) and self._devices == other._devices

    def __hash__(self):
        return hash((type(self), self._devices))


_MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


def _memory_kind(kind):
    """The kind, of those that JAX knows; they name one memory here.

    Raises:
      ValueError: there is no such kind.
    """
    if kind is not None and kind not in _MEMORY_KINDS:
        raise ValueError(f"Got invalid memory kind: {kind}. Valid memory kinds are: {set(_MEMORY_KINDS)}")
    return kind


class SingleDeviceSharding(Sharding):
    """The whole array on one device."""

    is_fully_replicated = True

    def __init__(self, device, *, memory_kind=None):
        self._devices, self.memory_kind = (device,), _memory_kind(memory_kind) or "device"

    @property
    def _device(self):
        return self._devices[0]

    def __repr__(self):
        return f"SingleDeviceSharding(device={self._devices[0]!r}, memory_kind={self.memory_kind})"

    def __eq__(self, other):
        return type(other) is SingleDeviceSharding and (self._devices, self.memory_kind) == (other._devices, other.memory_kind)

    __hash__ = Sharding.__hash__


class UnconstrainedSingleton:
    """What `PartitionSpec.UNCONSTRAINED` is: copies of it are the same object."""

    __repr__ = lambda self: "UNCONSTRAINED"

    def __reduce__(self):
        return "PartitionSpec.UNCONSTRAINED"


def _dimension(axes):
    """The one way to write what a dimension is cut along: no axis is None, one axis is its name."""
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


class IndivisibleError(ValueError):
    """A dimension of an array cannot be cut into as many equal parts as a sharding says."""


class DuplicateSpecError(ValueError):
    """A specification maps one mesh axis to several dimensions."""


_specs = weakref.WeakValueDictionary()


class PartitionSpec:
    """Which mesh axes each dimension of an array is cut along: a name, a tuple of names (the first cuts coarsest) or None; dimensions left out are not cut.

    A tuple of one name is the name, and an empty one None: `P(("x",)) == P("x")`.

    Raises:
      TypeError: `unreduced` or `reduced` is no set.
      ValueError: an axis is in two of the three.

    >>> PartitionSpec("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("__weakref__", "partitions", "reduced", "unreduced")
    UNCONSTRAINED = UnconstrainedSingleton()

    def __new__(cls, *partitions, unreduced=frozenset(), reduced=frozenset()):
        """Equal specifications are one object."""
        entries = tuple([_dimension(p) for p in partitions])
        key = entries, _axis_set("unreduced", unreduced), _axis_set("reduced", reduced)
        try:
            known = _specs.get(key)
        except TypeError:  # an entry that does not hash is not kept
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
        """Refused: a specification is a value.

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

    def __iter__(self):
        self._refuse_sums("Using *pspec", "*spec.partitions")
        return iter(self.partitions)

    def _refuse_sums(self, what, instead):
        if self.unreduced or self.reduced:
            raise ValueError(f"{what} is dangerous when PartitionSpec has non-empty unreduced/reduced set. Please use {instead}")

    def __len__(self):
        return len(self.partitions)

    def __getitem__(self, i):
        self._refuse_sums("Using pspec[...]", "spec.partitions[...]")
        return self.partitions[i]

    def __add__(self, other):
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

    def index(self, value):
        """The first dimension cut along `value`. ValueError where there is none."""
        return self.partitions.index(_dimension(value))

    def count(self, value):
        """How many dimensions are cut along `value`."""
        return self.partitions.count(_dimension(value))

    def update(self, **kwargs):
        """A specification with `partitions`, `unreduced` or `reduced` changed."""
        new = {"partitions": self.partitions, "unreduced": self.unreduced, "reduced": self.reduced, **kwargs}
        return PartitionSpec(*new.pop("partitions"), **new)

    def axes_of(self, dim):
        """The mesh axes that a dimension is cut along, coarsest first."""
        p = self.partitions[dim] if dim < len(self.partitions) else None
        return () if p is None or p is PartitionSpec.UNCONSTRAINED else p if isinstance(p, tuple) else (p,)

    def in_context(self, what, argument):
        """The sharding it means in the mesh in use.

        Raises:
          RuntimeError: there is none.
        """
        mesh = current()
        if mesh is None or mesh.empty:
            raise RuntimeError(
                f"{what} requires a non-empty mesh in context if you are passing `PartitionSpec`s to {argument}. You can define a context mesh via"
                f" `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to {argument} and then the mesh context manager is not required."
            )
        return NamedSharding(mesh, self)

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


def _spec_again(partitions, unreduced, reduced):
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


P = PartitionSpec


class NamedSharding(Sharding):
    """Parts over a mesh, as a `PartitionSpec` says.

    Raises:
      ValueError: the specification names an axis that the mesh has not, or one twice.

    Over an abstract mesh it can be asked for shapes, not for devices.
    """

    def __init__(self, mesh, spec, *, memory_kind=None, _logical_device_ids=None):
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise TypeError(f"NamedSharding: mesh must be a `jax.sharding.Mesh` or `AbstractMesh`, got {mesh} of type {type(mesh)}")
        if spec is None:
            raise TypeError("Unexpected None passed as spec for NamedSharding. Did you mean P()?")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"Unexpected annotation {spec!r}. NamedSharding needs a `jax.sharding.PartitionSpec`.")
        self.memory_kind = _memory_kind(memory_kind) or (None if isinstance(mesh, AbstractMesh) else "device")
        seen = set()
        for dim in range(len(spec)):
            for axis in spec.axes_of(dim):
                if axis not in mesh.axis_names:
                    raise ValueError(f"Resource axis: {axis} of {spec} is not found in mesh: {mesh.axis_names}.")
                if axis in seen:
                    raise DuplicateSpecError(
                        "A single NamedSharding spec specification can map every mesh axis to at most one positional dimension, but"
                        f" {spec} has duplicate entries for `{axis}`"
                    )
                seen.add(axis)
        if mesh.axis_names and not mesh.auto_axes and any(p is PartitionSpec.UNCONSTRAINED for p in spec.partitions):
            raise ValueError(f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got mesh axis_types: {mesh.axis_types}")
        _check_sums(mesh, spec, "Unreduced", spec.unreduced)
        _check_sums(mesh, spec, "Reduced", spec.reduced)
        self.mesh, self.spec, self._known_cuts = mesh, spec, None

    @property
    def _devices(self):
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("device_set is not implemented for `jax.sharding.AbstractMesh`.")
        return tuple(self.mesh.devices.flat)

    @property
    def num_devices(self):
        """How many devices hold a part."""
        return self.mesh.size

    def is_equivalent_to(self, other, ndim):
        """Whether arrays of that rank are laid out alike."""
        if isinstance(self.mesh, AbstractMesh) and type(other) is NamedSharding and self.mesh == other.mesh:
            return self._sums() == other._sums() and all(self.spec.axes_of(d) == other.spec.axes_of(d) for d in range(ndim))
        sums = other._sums() if type(other) is NamedSharding else (frozenset(), frozenset())
        return self._sums() == sums and super().is_equivalent_to(other, ndim)

    def _sums(self):
        return self.spec.unreduced, self.spec.reduced

    def _cuts(self, dim):
        return [self.mesh.shape[a] for a in self.spec.axes_of(dim)]

    @property
    def is_fully_replicated(self):
        """Whether each device holds the whole array."""
        return not self.spec.unreduced and all(math.prod(self._cuts(d)) == 1 for d in range(len(self.spec)))

    @property
    def replicated_axes(self):
        """The mesh axes along which the parts are equal."""
        used = {a for d in range(len(self.spec)) for a in self.spec.axes_of(d)} | self.spec.unreduced | self.spec.reduced
        return frozenset(a for a in self.mesh.axis_names if a not in used)

    def check_compatible_aval(self, aval_shape):
        """Raises ValueError unless arrays of the shape have the specification's dimensions."""
        if len(self.spec) > len(aval_shape):
            extra = "" if aval_shape else " For scalars the PartitionSpec should be P()"
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but was applied to a value of rank {len(aval_shape)}.{extra}"
            )

    def shard_shape(self, global_shape):
        """The shape of one device's part.

        Raises:
          IndivisibleError: a dimension cannot be cut evenly.
          ValueError: a dimension is to be cut that the shape has not; those that are not cut may be more than it has.
        """
        global_shape = tuple(global_shape)
        if any(self.spec.axes_of(d) for d in range(len(global_shape), len(self.spec))):
            self.check_compatible_aval(global_shape)
        pieces = [math.prod(self._cuts(d)) for d in range(len(global_shape))]
        for d, (n, k) in enumerate(zip(global_shape, pieces, strict=True)):
            if n % k:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {d} is partitioned {k} times, but the dimension size is {n} (full shape: {global_shape},"
                    f" per-dimension tiling factors: {pieces} should evenly divide the shape)"
                )
        return tuple(n // k for n, k in zip(global_shape, pieces, strict=True))

    def check_type(self, shape):
        """Raises ValueError unless types of the shape can say that arrays lie so: in JAX's words."""
        self.check_compatible_aval(shape)
        for d, n in enumerate(shape):
            k = math.prod(self._cuts(d))
            if n % k:
                raise ValueError(
                    f"Sharding spec {self.spec.axes_of(d)} implies that array axis {d} is partitioned {k} times, but does not evenly divide the dimension"
                    f" size {n}. Got shape: {tuple(shape)} and sharding {NamedSharding(self.mesh.abstract_mesh, self.spec)}"
                )

    def _of_rank(self, ndim):
        """The same, of which the specification has an entry for each dimension."""
        entries = self.spec.partitions[:ndim] + (None,) * (ndim - len(self.spec))
        return self if entries == self.spec.partitions else self.update(spec=self.spec.update(partitions=entries))

    def devices_indices_map(self, global_shape):
        """Which slice of an array of `global_shape` each device holds."""
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("_device_assignment is not implemented for `jax.sharding.AbstractMesh`.")
        if self.spec.unreduced:
            raise NotImplementedError("device_indices_map doesn't work with unreduced: take the sum before, by `reshard`")
        return self._regions(global_shape)

    def _regions(self, global_shape):
        """The slices that the parts of each device have the shapes of."""
        part, out = self.shard_shape(global_shape), {}
        for place, device in np.ndenumerate(self.mesh.devices):
            at = dict(zip(self.mesh.axis_names, place, strict=True))
            index = []
            for d, n in enumerate(part):
                axes, k = self.spec.axes_of(d), 0
                for a in axes:
                    k = k * self.mesh.shape[a] + at[a]
                index.append(slice(None) if n == global_shape[d] else slice(k * n, (k + 1) * n))
            out[device] = tuple(index)
        return out

    @property
    def has_addressable_devices(self):
        """Whether a device of this process holds a part."""
        return bool(self._addressable_device_assignment)

    def _cuts_of_devices(self):
        """The devices, and the numbers of the axes that cut each dimension, as the extension wants them; None where the mesh has no devices."""
        if self._known_cuts is None:
            if isinstance(self.mesh, AbstractMesh) or self.mesh.empty:
                return None
            self._known_cuts = self.mesh._for_extension(), self._numbers()
        return self._known_cuts

    def _numbers(self):
        """The numbers of the mesh axes that cut each dimension, of those that are unreduced and of those that are reduced."""
        number = {name: i for i, name in enumerate(self.mesh.axis_names)}
        of = lambda axes: [number[a] for a in axes]
        return [of(self.spec.axes_of(d)) for d in range(len(self.spec))], of(self.spec.unreduced), of(self.spec.reduced)

    def _typed(self):
        """What a type of arrays that lie so says: axes, which are explicit, the mesh's name and the axes that cut each dimension; None where it says nothing."""
        typed = self.mesh.abstract_mesh._typed()
        if typed is None:
            return None
        return (*typed, self._numbers())

    def _constrain(self, x):
        """A traced value that is to lie so where the program is partitioned: dimensions that cannot be cut evenly stay whole."""
        shape = np.shape(x)
        concrete = isinstance(self.mesh, Mesh) and not self.mesh.empty
        spec = [[] if n % math.prod(self._cuts(d)) else [str(a) for a in self.spec.axes_of(d)] for d, n in enumerate(shape)]
        free = [d for d, p in enumerate(self.spec.partitions) if p is PartitionSpec.UNCONSTRAINED]
        axes = [(str(name), n) for name, n in self.mesh.shape.items()]
        return _core.constrain(x, axes, spec, free, list(self.mesh.devices.flat) if concrete else [])

    def __reduce__(self):
        return functools.partial(NamedSharding, memory_kind=self.memory_kind), (self.mesh, self.spec)

    def __deepcopy__(self, _memo):
        return self

    def with_memory_kind(self, kind):
        """The same in another kind of memory."""
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def update(self, **kwargs):
        """A sharding with `mesh`, `spec` or `memory_kind` changed."""
        return NamedSharding(**{"mesh": self.mesh, "spec": self.spec, "memory_kind": self.memory_kind, **kwargs})

    def __eq__(self, other):
        return type(other) is NamedSharding and (self.mesh, self.spec, self.memory_kind) == (other.mesh, other.spec, other.memory_kind)

    def __hash__(self):
        return hash((NamedSharding, self.mesh, self.spec))

    def __repr__(self):
        kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"


shardings["whole"] = lambda mesh: NamedSharding(mesh, PartitionSpec())


def _check_sums(mesh, spec, name, axes):
    """Raises ValueError where parts are to be summed along axes that the mesh has not, or of which its types say nothing."""
    for a in axes:
        if a not in mesh.axis_names:
            raise ValueError(f"{name} axes {a} is not found in mesh.axis_names={mesh.axis_names}. Got pspec={spec}")
        if a not in mesh.explicit_axes:
            raise ValueError(f"{name} axes can only refer to mesh axes that is of type `Explicit`. Got {name.lower()} axes: {axes} and mesh: {mesh}")


def make_single_device_sharding(device, *, memory_kind=None):
    """The sharding of arrays that one device holds whole.

    Args:
        device: Device.
        memory_kind: None or "device": a device has one kind of memory.

    Returns:
        SingleDeviceSharding.

    Raises:
        NotImplementedError: another kind of memory is asked for.
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


# ---------------------------------------------------------------- axes whose types say, or do not say, how arrays are divided


def auto_axes(f=None, /, *, axes=None, out_sharding=None):
    """A function inside which types do not say how arrays are divided along `axes`: the compiler decides.

    Args:
        f: the function, of pytrees of arrays; without it, a decorator is returned.
        axes: names of mesh axes, a string or a tuple; by default all axes of the mesh in use.
        out_sharding: tree prefix of the result, of shardings or of `PartitionSpec`s, that says how the result is laid out; if None, each call gives it.

    Returns:
        A function of the same arguments, and of `out_sharding` where none is given here. Its results have types with shardings again.

    Raises:
        TypeError: a call has no `out_sharding` and none is given here.

    >>> f = auto_axes(lambda x: x.T @ x, out_sharding=P())
    >>> with set_mesh(make_mesh((1,), ("x",))): print(jax.typeof(f(jnp.ones((2, 3)))))
    float32[3,3]
    """
    if f is None:
        return lambda f: auto_axes(f, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    def decorated(*args, **kwargs):
        wanted = _given("out_sharding", out_sharding, kwargs)
        outer, inner = _meshes(axes, AxisType.Auto, "auto_axes", wanted)
        if inner is None or inner == outer:
            return f(*args, **kwargs)
        return _reshard_all(_with_types(f, args, kwargs, inner, None), wanted, outer)

    return decorated


def explicit_axes(f=None, /, *, axes=None, in_sharding=None):
    """A function inside which types say how arrays are divided along `axes`.

    Args:
        f: the function, of pytrees of arrays; without it, a decorator is returned.
        axes: names of mesh axes, a string or a tuple; by default all axes of the mesh in use.
        in_sharding: tree prefix of the arguments, of shardings or of `PartitionSpec`s, to which they are resharded; if None, each call gives it.

    Returns:
        A function of the same arguments, and of `in_sharding` where none is given here.

    Raises:
        ValueError: no mesh is in use.
        TypeError: a call has no `in_sharding` and none is given here.

    >>> f = explicit_axes(lambda x: x, in_sharding=P("x"))
    >>> with set_mesh(Mesh(jax.devices()[:1], "x")): print(f(jnp.ones(3)))
    [1. 1. 1.]
    """
    if f is None:
        return lambda f: explicit_axes(f, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    def decorated(*args, **kwargs):
        wanted = _given("in_sharding", in_sharding, kwargs)
        outer, inner = _meshes(axes, AxisType.Explicit, "explicit_axes", None)
        if inner is None:
            raise ValueError("Context mesh cannot be empty. Please use `jax.set_mesh` API to enter into a mesh context when using `explicit_axes` API.")
        out = _with_types(f, args, kwargs, inner, wanted)
        return tree_map(lambda x: _core.reshard(x, _narrowed(x, outer)), out)

    return decorated


def _given(name, sharding, kwargs):
    if sharding is not None:
        return sharding
    if name not in kwargs:
        raise TypeError(f"Missing required keyword argument: '{name}'")
    return kwargs.pop(name)


def _meshes(axes, kind, name, shardings):
    """The abstract mesh in use, or else that of the shardings, and the same with axes of another type."""
    outer = get_abstract_mesh()
    if outer.empty:
        found = {s.mesh.abstract_mesh for s in tree_leaves(shardings, is_leaf=lambda s: isinstance(s, PartitionSpec)) if isinstance(s, NamedSharding)}
        if len(found) != 1:
            return outer, None
        (outer,) = found
    axes = outer.axis_names if axes is None else axes if isinstance(axes, tuple) else (axes,)
    types = dict(zip(outer.axis_names, outer.axis_types, strict=True))
    for a in axes:
        if types.get(a) is AxisType.Manual:
            raise NotImplementedError(f"Going from `Manual` AxisType to `Auto` or `Explicit` AxisType inside {name} is not supported. Please file a bug.")
    return outer, outer.update_axis_types(dict.fromkeys(axes, kind))


def _narrowed(x, mesh):
    """The sharding of x's type, of another mesh: along the axes of which its types speak."""
    spec, kept = _core.asarray(x).aval.sharding.spec, set(mesh.explicit_axes)
    names = [tuple(a for a in spec.axes_of(d) if a in kept) for d in range(len(spec))]
    return NamedSharding(mesh, PartitionSpec(*[n[0] if len(n) == 1 else n or None for n in names]))


def _with_types(f, args, kwargs, mesh, wanted):
    """`f` in another abstract mesh. Where arguments are concrete it is traced, so that the compiler sees all of it."""
    leaves, tree = tree_flatten((args, kwargs))
    is_array = [isinstance(x, _core.Array) for x in leaves]

    def inside(*arrays):
        rest = iter(arrays)
        args, kwargs = tree.unflatten([next(rest) if a else x for x, a in zip(leaves, is_array, strict=True)])
        if wanted is None:
            args, kwargs = tree_map(lambda x: _core.reshard(x, _narrowed(x, mesh)) if isinstance(x, _core.Array) else x, (args, kwargs))
        else:
            args = _reshard_all(args, wanted, mesh)
        return f(*args, **kwargs)

    with use_abstract_mesh(mesh):
        return _core.jit(inside)(*[x for x, a in zip(leaves, is_array, strict=True) if a])


def _reshard_all(x, wanted, mesh):
    """`reshard`, for a tree prefix of specifications in a mesh."""
    with use_abstract_mesh(mesh) if get_abstract_mesh().empty else contextlib.nullcontext():
        return reshard(x, wanted)


def _of_type(ndim, label, dims, unreduced=(), reduced=()):
    if label is None:
        return NamedSharding(get_abstract_mesh(), PartitionSpec(*[None] * ndim))
    return _of_cuts(_by_label[label], dims, unreduced, reduced)


def _of_cuts(mesh, dims, unreduced, reduced):
    """The sharding of a computed array: `dims` has the numbers of the mesh axes that cut each dimension."""
    names = [None if not d else mesh.axis_names[d[0]] if len(d) == 1 else tuple(mesh.axis_names[i] for i in d) for d in dims]
    while names and names[-1] is None and not mesh.explicit_axes:
        names.pop()
    sums = {name: {mesh.axis_names[i] for i in axes} for name, axes in (("unreduced", unreduced), ("reduced", reduced))}
    return NamedSharding(mesh, PartitionSpec(*names, **sums))
