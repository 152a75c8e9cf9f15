"""Exported programs: `export(jit(f))(x)` is a program without Python; `serialize` and `deserialize`
pass it to other processes and to Rust.

    blob = export(jit(f))(ShapeDtypeStruct((8, 3), "float32")).serialize(vjp_order=1)
    y = deserialize(blob).call(x)

A file is versioned, and checked when it is read: a damaged one is refused. Sizes may be symbolic
(`symbolic_shape`): they are bound by the
arguments of each call. In Rust: `ferrax::export::load(path)?.call(&[x])`.

Invariant: an exported program contains no Python objects; custom derivatives are kept as the
programs that `vjp` makes of them.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from ._base.config import exporting_for
from ._base.differences import tree_differences
from ._base.dtypes import float0, is_inexact
from ._base.tracebacks import api_boundary
from ._export.shardings import Layouts, on
from ._export.symbolic import SymbolicScope, symbolic_shape
from ._export.traced_sizes import (
    Samples,
    SymbolicAval,
    at_sizes,
    family_of,
    is_symbolic_dim,
    symbolic_args_specs,
    symbolic_scope,
    traced_symbolically,
)
from ._export.trees import read_tree, register_namedtuple_serialization, register_pytree_node_serialization, write_tree
from ._tracing.jit import jit
from ._tracing.trace import ShapeDtypeStruct, symbolic_shapes
from ._transforms.linear import vjp
from .tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

if TYPE_CHECKING:
    from .sharding import AbstractMesh, Mesh, Sharding

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_shape",
]

minimum_supported_calling_convention_version: int = 9
maximum_supported_calling_convention_version: int = 10


class DisabledSafetyCheck:
    """A check that is omitted when a program is serialized or called: `platform()` or
    `custom_call(name)`.
    """

    def __init__(self, _impl: str) -> None:
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Lets a program be called on a platform for which it was not exported."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Allows custom calls with this target in serialized programs.

        Programs have no custom calls, so this has no effect.
        """
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The target of `custom_call`; None for any other check."""
        return self._impl.removeprefix("custom_call:") if self._impl.startswith("custom_call:") else None

    def __eq__(self, other):
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self):
        return hash(self._impl)

    def __repr__(self):
        return self._impl


def default_export_platform() -> str:
    """The platform for which `export` makes programs by default.

    Returns:
        str: "cpu" or "gpu".
    """
    return _core.default_backend()


@dataclasses.dataclass(frozen=True)
class Exported:
    """A function as an exported program.

    Attributes:
        fun_name: the name of the function.
        in_tree: the PyTreeDef of (args, kwargs), without static arguments.
        in_avals: the types of the flat arguments.
        out_tree, out_avals: the same of the results.
        platforms: for which platforms it was exported.
        nr_devices: on how many devices it was laid out.
        disabled_safety_checks: a tuple of `DisabledSafetyCheck`.
        calling_convention_version: between `minimum_` and
          `maximum_supported_calling_convention_version`.
        mlir_module_serialized: the program as bytes, without the arrays it captured.
        module_kept_var_idx: which of the flat arguments it reads.
        ordered_effects, unordered_effects: empty, for a program with effects cannot be exported.
        in_shardings_hlo, out_shardings_hlo: a None for each argument and result.
        uses_global_constants: whether its symbolic sizes or platforms are passed in addition to its
          arguments.
    """

    fun_name: str
    in_tree: typing.Any
    in_avals: tuple
    out_tree: typing.Any
    out_avals: tuple
    _has_named_shardings: bool
    _in_named_shardings: tuple
    _out_named_shardings: tuple
    in_shardings_hlo: tuple
    out_shardings_hlo: tuple
    nr_devices: int
    platforms: tuple
    ordered_effects: tuple
    unordered_effects: tuple
    disabled_safety_checks: tuple
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple
    uses_global_constants: bool
    _program: typing.Any = dataclasses.field(repr=False, compare=False)

    @api_boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The results for these arguments, which have the structure and types that the function was
        exported for.

        Works under `jit` and `vmap`, inside other exported functions, and in reverse mode where
        there is a `vjp`.

        Raises:
            ValueError: the arguments have another structure, rank, dtype or size; or the program is
              for other platforms.
            TypeError: an argument is not an array.
        """
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise ValueError(self._mismatch((args, kwargs)))
        for i, x in enumerate(leaves):
            if isinstance(x, ShapeDtypeStruct):
                name, shape = _names(self.in_tree)[i], f"{x.dtype.name}{list(x.shape)}"
                raise TypeError(f"Argument '{name}' of shape {shape} of type {type(x)} is not a valid JAX type.")
        return tree_unflatten(self.out_tree, self._program.call(leaves))

    def _mismatch(self, given):
        wanted = self.in_tree.unflatten([0.0] * self.in_tree.num_leaves)
        lines = []
        for name, was, now in zip(("args", "kwargs"), wanted, given, strict=True):
            for path, a, b, why in tree_differences(was, now):
                lines.append(f"   - {name}{keystr(path)} is a {b} in the invocation and a {a} when exported, {why}.\n")
        return (
            f"The invocation args and kwargs must have the same pytree structure as when the function '{self.fun_name}' was exported, "
            "but they have the following structural differences:\n" + "\n".join(lines)
        )

    def has_vjp(self) -> bool:
        """Whether `vjp` gives a program."""
        return self._program.has_vjp

    def vjp(self) -> Exported:
        """The reverse-mode derivative: takes the flat arguments and then a cotangent of each
        result, gives a cotangent of each argument.

        Raises:
            ValueError: its file contains no derivative.
        """
        found = self._program.vjp()
        if found is None:
            raise ValueError("No VJP is available")
        return _wrapped(found)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The program as a bytearray, with derivatives for reverse mode up to this order.

        Raises:
            ValueError: it was deserialized without that many derivatives; or a tree contains a
              class that is not registered for serialization.
        """
        layouts = Layouts(self.nr_devices, self._in_named_shardings, self._out_named_shardings)
        return bytearray(self._program.serialize(max(0, vjp_order), _notes(self.in_tree, self.out_tree, layouts)))

    def mlir_module(self, serialized: bool = True) -> str:
        """The program as text, in the notation of `make_jaxpr`.

        Symbolic sizes are shown as the sizes at which the function was traced.
        """
        return self._program.text()

    def in_shardings_jax(self, mesh: Mesh | AbstractMesh) -> Sequence[Sharding | None]:
        """How each argument lies on a mesh with the axes of the exported function's; None where the
        caller chooses.

        Raises:
            ValueError: the mesh has other axes.
        """
        return tuple(on(s, mesh) for s in self._in_named_shardings)

    def out_shardings_jax(self, mesh: Mesh | AbstractMesh) -> Sequence[Sharding | None]:
        """The same of the results."""
        return tuple(on(s, mesh) for s in self._out_named_shardings)

    def __str__(self):
        return f"Exported(fun_name={self.fun_name}, ...)"


@api_boundary
def export(
    fun_jit: Any,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Sequence[tuple[Any, Any]] | None = None,
) -> Callable[..., Exported]:
    """Exports a jitted function: its program for given argument types can be saved, and called
    elsewhere.

    Args:
        fun_jit: what `jit` returned.
        platforms: sequence of names of platforms, "cpu" or "gpu"; None: the default one. One
          program serves all, unless the function uses `platform_dependent`.
        disabled_checks: sequence of `DisabledSafetyCheck`, the checks to leave out.

    Returns:
        A function of the arguments of `fun_jit`, given as arrays or as `ShapeDtypeStruct`s (whose
        sizes may be symbolic), that returns an `Exported`.

    Raises:
        ValueError: `fun_jit` is not a jitted function; when called, symbolic sizes cannot be solved
          for.
        NotImplementedError: when called, the function calls the host.

    >>> from ferrax import export, jit, numpy as jnp
    >>> exported = export.export(jit(jnp.sin))(jnp.arange(4.0))
    >>> exported.in_avals
    (ShapedArray(float32[4]),)
    >>> blob = exported.serialize()
    >>> export.deserialize(blob).call(jnp.zeros(4))
    Array([0., 0., 0., 0.], dtype=float32)

    Args:
        fun_jit: what `jit` returned.
        platforms: names of platforms; the default one if None. There is one program for all, unless
          the function uses `platform_dependent`.
        disabled_checks: checks to leave out, see `DisabledSafetyCheck`.

    Raises:
        ValueError: `fun_jit` is not a jitted function; symbolic sizes cannot be solved for.
        NotImplementedError: the function calls the host.
    """
    if not isinstance(fun_jit, _core.PjitFunction):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")
    if _override_lowering_rules:
        raise NotImplementedError("export: rules of lowering cannot be replaced; define a primitive of ferrax.extend instead")
    platforms = tuple(platforms or ()) or (default_export_platform(),)

    @api_boundary
    def do_export(*args, **kwargs):
        return _exported(fun_jit, args, kwargs, platforms, tuple(disabled_checks))

    return do_export


def _exported(fun_jit, args, kwargs, platforms, disabled_checks):
    leaves, tree = tree_flatten((args, kwargs))
    names = [_path_name(path) for path, _ in tree_flatten_with_path((args, kwargs))[0]]
    scope = symbolic_scope(getattr(fun_jit, "__name__", "a function"), names, leaves)

    def trace_at(platform, sample):
        at, keywords = tree_unflatten(tree, at_sizes(leaves, sample))
        with exporting_for(platform):
            return fun_jit.trace(*at, **keywords)

    if scope is None:
        source = _Source(trace_at, platforms, disabled_checks)
    else:
        sizes = [n for x in leaves if isinstance(x, ShapeDtypeStruct) for n in x.shape if is_symbolic_dim(n)]
        source = _SymbolicSource(trace_at, platforms, disabled_checks, Samples(scope, sizes), sizes)
    first = source.first
    layouts = Layouts.of(fun_jit, first, leaves) if scope is None and len(leaves) == first.in_tree.num_leaves else None
    return _wrapped(source.program(first.fun_name), first.in_tree, first.out_tree, scope, layouts)


class _Source:
    """A function that can be traced for each platform, and its derivatives.

    `trace_at(platform, sample)` traces it; a sample gives values for the symbolic sizes.
    """

    def __init__(self, trace_at, platforms, disabled_checks):
        self.trace_at, self.platforms, self.disabled_checks = trace_at, platforms, disabled_checks
        self.first = self._first()

    def _first(self):
        return self.trace_at(self.platforms[0], {})

    def _family(self, platform, names):
        """The core's family of programs for a platform, the expressions of its sizes, and a text
        that identifies the family.
        """
        closed = (self.first if platform == self.platforms[0] else self.trace_at(platform, {})).jaxpr
        return _core.ProgramFamily(names, [closed]), [], str(closed)

    def _variables(self):
        return [], []

    def _derivative(self, trace_at):
        return _Source(trace_at, self.platforms, self.disabled_checks)

    def program(self, name, notes=b""):
        """The core's program. Data of exported classes are added when it is serialized."""
        names = _names(self.first.in_tree)
        families, texts, which = [], [], []
        for platform in self.platforms:
            family, sizes, text = self._family(platform, names)
            if text not in texts:
                texts.append(text)
                families.append((family, sizes))
            which.append(texts.index(text))
        variables, constraints = self._variables()
        return _core.ExportedProgram(
            name,
            platforms=list(zip(map(str, self.platforms), which, strict=True)),
            families=families,
            disabled_checks=[repr(c) for c in self.disabled_checks],
            notes=notes,
            calling_convention=maximum_supported_calling_convention_version,
            variables=variables,
            constraints=constraints,
            get_vjp=self._vjp,
        )

    def _vjp(self):
        """The core's program of the reverse-mode derivative."""

        def trace_at(platform, sample):
            closed = self.trace_at(platform, sample).jaxpr
            with exporting_for(platform):
                return jit(_pullback(closed)).trace(*_vjp_arguments(closed))

        source = self._derivative(trace_at)
        return source.program("fun_vjp_jax", _notes(source.first.in_tree, source.first.out_tree))


class _SymbolicSource(_Source):
    """The same where sizes are symbolic: traced at several values of them."""

    _contexts = itertools.count()

    def __init__(self, trace_at, platforms, disabled_checks, samples, sizes):
        self.samples, self.sizes, self.assumed = samples, sizes, []
        super().__init__(trace_at, platforms, disabled_checks)

    def _first(self):
        return self._symbolically(self.platforms[0], self.sizes)[0]

    def _symbolically(self, platform, sizes, sample=None):
        # a trace with integer sizes does not serve symbolic ones, which are traced separately
        context, sample = f"{platform}#{next(self._contexts)}", self.samples[0] if sample is None else sample
        return traced_symbolically(lambda: self.trace_at(context, sample), sample, sizes)

    def _family(self, platform, names):
        _, made, _ = self._symbolically(platform, self.sizes)
        family, found = family_of(names, lambda sample: self._symbolically(platform, self.sizes, sample)[0].jaxpr, self.samples, made)
        sizes = ", ".join(e for e in found if not e.startswith("ratio("))  # those that are not quotients of floats
        every = [e for e in symbolic_shape(sizes, scope=self.sizes[0].scope) if is_symbolic_dim(e)]
        _, _, assumed = self._symbolically(platform, [*made, *every])
        self.assumed = list(dict.fromkeys([*self.assumed, *assumed]))
        return family, found, repr((str(self._symbolically(platform, self.sizes)[0].jaxpr), found))

    def _variables(self):
        known = [(text, repr(d), equal) for text, d, equal in self.sizes[0].scope.constraints if d.names() <= set(self.samples.names)]
        known += [(f"{d} >= 0", repr(d), False) for d in self.assumed]
        return list(self.samples[0].items()), known

    def _derivative(self, trace_at):
        return _SymbolicSource(trace_at, self.platforms, self.disabled_checks, self.samples, self.sizes)


def _names(in_tree):
    """The names of the leaves of (args, kwargs): `args[0]['w']`."""
    return [_path_name(path) for path, _ in tree_flatten_with_path(in_tree.unflatten(range(in_tree.num_leaves)))[0]]


def _path_name(path):
    return ("args", "kwargs")[path[0].idx] + keystr(path[1:])


def _notes(in_tree, out_tree, layouts=None):
    """The data of exported classes and shardings.

    Layouts are left out where there are none, as earlier versions expect.
    """
    more = [layouts.to_json()] if layouts is not None and layouts != Layouts.none(len(layouts.ins), len(layouts.outs)) else []
    return json.dumps([write_tree(in_tree), write_tree(out_tree), *more], separators=(",", ":")).encode()


def _wrapped(program, in_tree=None, out_tree=None, scope=None, layouts=None):
    """An `Exported` of a program of the core's; the trees are read from its notes if they are not
    given, and the scope from its constraints.
    """
    if in_tree is None:
        try:
            in_tree, out_tree, *more = json.loads(program.notes)
            in_tree, out_tree = read_tree(in_tree), read_tree(out_tree)
            layouts = Layouts.from_json(more[0]) if more else None
        except (TypeError, json.JSONDecodeError) as e:
            raise ValueError("the file is damaged: it has no trees") from e
    if program.variables and scope is None:
        scope = SymbolicScope(program.constraints)
    in_avals, out_avals = (tuple(_aval(t, scope) for t in types) for types in (program.inputs, program.outputs))
    if (in_tree.num_leaves, out_tree.num_leaves) != (len(in_avals), len(out_avals)):
        raise ValueError("the file is damaged: its trees are of other sizes")
    nones_in, nones_out = (None,) * len(in_avals), (None,) * len(out_avals)
    layouts = layouts or Layouts.none(len(in_avals), len(out_avals))
    return Exported(
        fun_name=program.fun_name,
        in_tree=in_tree,
        in_avals=in_avals,
        out_tree=out_tree,
        out_avals=out_avals,
        _has_named_shardings=True,
        _in_named_shardings=layouts.ins,
        _out_named_shardings=layouts.outs,
        in_shardings_hlo=nones_in,
        out_shardings_hlo=nones_out,
        nr_devices=layouts.devices,
        platforms=tuple(program.platforms),
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=tuple(map(DisabledSafetyCheck, program.disabled_checks)),
        mlir_module_serialized=program.code,
        calling_convention_version=program.calling_convention,
        module_kept_var_idx=tuple(i for i, t in enumerate(program.inputs) if t[1]),
        uses_global_constants=bool(program.variables) or len(program.platforms) > 1,
        _program=program,
    )


def _aval(described, scope):
    _, _, shape, dtype, weak = described
    if any(isinstance(n, str) for n in shape):
        return SymbolicAval(symbolic_shape(", ".join(map(str, shape)), scope=scope), dtype, weak)
    return _core.ShapedArray(shape, dtype, weak)


def _pullback(closed):
    """The reverse-mode derivative of a closed program, as a function of its inputs and of a
    cotangent of each output.
    """

    def fun_vjp_jax(*given):
        primals, cts = given[: len(closed.in_avals)], given[len(closed.in_avals) :]
        _, pull = vjp(lambda *xs: _core.eval_program(closed, closed.consts, *xs), *primals)
        return pull(list(cts))

    return fun_vjp_jax


def _vjp_arguments(closed):
    struct = lambda a: ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
    cotangent = lambda a: struct(a) if is_inexact(a.dtype) else ShapeDtypeStruct(a.shape, float0)
    return [*map(struct, closed.in_avals), *map(cotangent, closed.out_avals)]


def deserialize(blob: bytearray) -> Exported:
    """The exported program that `Exported.serialize` wrote.

    Args:
        blob: bytes, bytearray or memoryview.

    Returns:
        Exported.

    Raises:
        ValueError: the bytes are not an exported program, are damaged, or were written by a later
          version of the format.
        TypeError: `blob` is not of type bytes.
    """
    return _wrapped(_core.ExportedProgram.load(bytes(memoryview(blob))))


def _eval_shape(fun, args, kwargs):
    """`jax.eval_shape` of arguments with symbolic sizes."""
    closed = export(jit(fun))(*args, **kwargs)
    return closed.out_tree.unflatten([ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in closed.out_avals])


symbolic_shapes.append(_eval_shape)
