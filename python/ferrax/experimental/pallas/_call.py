"""`pallas_call`: a kernel over the blocks of arrays, as a loop over the grid.

    def add(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    pallas_call(add, out_shape=x, grid=(8,), in_specs=[rows, rows], out_specs=rows)(x, y)

The call becomes a `fori_loop` over the grid in row-major order, which carries the outputs and the
scratch. Each iteration cuts its blocks out, runs the kernel on references to them, and stores the
blocks that it wrote. So a kernel is an ordinary program: compiled for any device, batched,
differentiated both ways.

Invariant: blocks that are partly outside are padded with uninitialized elements; nothing outside is
ever written.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core, lax
from ..._base.tracebacks import api_boundary
from ..._tracing.jit import jit
from ..._tracing.trace import ShapeDtypeStruct
from ...tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_leaves, tree_structure, tree_unflatten
from . import _grid
from ._references import KernelRef, uninitialized
from ._specs import Blocked, BlockSpec, BoundedSlice, Element, GridSpec, Indirect, Slice, Squeezed, block_dim, no_block_spec, semaphore, sizes

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["call_kernel", "pallas_call", "scratch"]


def scratch(kind):
    """A reference to scratch of a shape and dtype; of a semaphore, to a counter at zero."""
    if getattr(kind, "counts", False) or kind is semaphore:
        return KernelRef(lax.full(tuple(getattr(kind, "shape", ())), 0, np.dtype(np.int16)))
    return KernelRef(uninitialized(kind.shape, kind.dtype))


class _Block:
    """How one array is cut: its specification, read."""

    def __init__(self, spec, aval, origin):
        spec = BlockSpec() if spec is no_block_spec else spec
        shape = tuple(aval.shape)
        self.dims = tuple(map(block_dim, shape if spec.block_shape is None else spec.block_shape))
        if len(self.dims) != len(shape):
            raise ValueError(f"Block shape for {origin} (= {_shown(self.dims)}) must have the same number of dimensions as the array shape {shape}.")
        if any(isinstance(d, Indirect) for d in self.dims):
            raise NotImplementedError(f"{origin}: an `Indirect` dimension is gathered by hardware; read `ref[indices]` of the whole array")
        self.array, self.origin, self.map = shape, origin, spec.index_map
        self.sizes = sizes(self.dims)
        self.gone = tuple(k for k, d in enumerate(self.dims) if isinstance(d, Squeezed))
        self.kept = tuple(k for k in range(len(self.dims)) if k not in self.gone)
        self.low = tuple(d.padding[0] if isinstance(d, Element) else 0 for d in self.dims)
        high = (d.padding[1] if isinstance(d, Element) else 0 for d in self.dims)
        whole = [lo + n + hi for lo, n, hi in zip(self.low, shape, high, strict=True)]
        self.padded = tuple(-(-n // b) * b if b else n for n, b in zip(whole, self.sizes, strict=True))

    def pad(self, x):
        """The array, padded to whole blocks."""
        if self.padded == self.array:
            return x
        edges = [(lo, p - lo - n, 0) for lo, p, n in zip(self.low, self.padded, self.array, strict=True)]
        return lax.pad(x, uninitialized((), x.dtype), edges)

    def unpad(self, x):
        """The array without its padding."""
        if self.padded == self.array:
            return x
        return lax.slice(x, self.low, tuple(lo + n for lo, n in zip(self.low, self.array, strict=True)))

    def starts(self, ids, scalars):
        """The first element of the block of a call, one number a dimension."""
        if self.map is None:
            return [np.int32(0)] * len(self.dims)
        at = self.map(*ids, *scalars)
        at = tuple(at) if isinstance(at, (tuple, list)) else (at,)
        if len(at) != len(self.dims):
            raise ValueError(
                f"Index map function {_named(self.map)} for {self.origin} must return {len(self.dims)} values to match"
                f" block_shape={_shown(self.dims)}. Currently returning {len(at)} values:"
            )
        return [self._start(k, i, d) for k, (i, d) in enumerate(zip(at, self.dims, strict=True))]

    def _start(self, k, i, dim):
        if isinstance(dim, BoundedSlice):
            if not isinstance(i, Slice):
                raise ValueError(f"index_map returned a value of type {type(i)} at position {k} with block dimension {dim} when it should be pl.Slice")
            i = i.start
        aval = _core.get_aval(i)
        if aval.shape or np.dtype(aval.dtype).kind not in "iu":
            raise ValueError(f"Index map function {_named(self.map)} for {self.origin} must return integer scalars. Output[{k}] has type {aval}.")
        i = lax.convert_element_type(i, np.int32)
        return lax.mul(i, np.int32(dim.block_size)) if isinstance(dim, Blocked) else i

    def cut(self, x, starts):
        """The block of an array."""
        if self.sizes == self.padded == self.array and self.map is None:
            return lax.squeeze(x, self.gone)
        return lax.squeeze(lax.dynamic_slice(x, starts, self.sizes), self.gone)

    def put(self, x, starts, block):
        """The array with a block."""
        block = lax.broadcast_in_dim(block, self.sizes, self.kept)
        return block if self.sizes == self.padded and self.map is None else lax.dynamic_update_slice(x, block, starts)


def _shown(dims):
    return "(" + ", ".join(f"Blocked(block_size={d.block_size})" if isinstance(d, Blocked) else repr(d) for d in dims) + ("," if len(dims) == 1 else "") + ")"


def _named(fun):
    code = getattr(fun, "__code__", None)
    name = getattr(fun, "__name__", type(fun).__name__)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code is not None else name


def _mismatch(what, specs, of, tree):
    return ValueError(f"Pytree for `{what}` and `{of}` do not match: `{what}` is {specs}, `{of}` is {tree}")


def _blocks(what, of, specs, tree, avals, origins):
    if specs is no_block_spec:
        flat = [no_block_spec] * len(avals)
    else:
        flat, specs_tree = tree_flatten(specs)
        if specs_tree != tree:
            raise _mismatch(what, specs_tree, of, tree)
    return [_Block(s, a, o) for s, a, o in zip(flat, avals, origins, strict=True)]


class _Kernel:
    """A kernel with its grid, its blocks and its scratch, for inputs of certain types."""

    def __init__(self, fun, spec, args, outs, out_tree, out_paths, scratch_shapes, aliases):
        self.fun, self.grid, self.out_tree, self.scratch = fun, spec.grid, out_tree, scratch_shapes
        scalars, rest = args[: spec.num_scalar_prefetch], args[spec.num_scalar_prefetch :]
        self.scalars, self.scalar_tree = tree_flatten(tuple(scalars))
        paths, self.in_tree = tree_flatten_with_path(tuple(rest))
        self.ins = [_core.asarray(x) for _, x in paths]
        self.scalars = [_core.asarray(x) for x in self.scalars]
        n = spec.num_scalar_prefetch
        origins = [f"args[{path[0].idx + n}]{keystr(path[1:])}" for path, _ in paths]
        self.in_blocks = _blocks("in_specs", "inputs", spec.in_specs, self.in_tree, self.ins, origins)
        self.outs = outs
        self.out_blocks = _blocks("out_specs", "out_shape", spec.out_specs, out_tree, outs, [f"outputs{keystr(p)}" for p in out_paths])
        self.aliases = {o: i for i, o in self._checked(aliases).items()}

    def _checked(self, aliases):
        given = [*self.scalars, *self.ins]
        for i, o in aliases.items():
            for kind, k, n in (("input", i, len(given)), ("output", o, len(self.outs))):
                if k not in range(n):
                    raise ValueError(f"input_output_aliases contains the mapping '{i}:{o}' with {kind} index {k} outside the range [0, {n})")
            a, b = _core.get_aval(given[i]), self.outs[o]
            if tuple(a.shape) != tuple(b.shape) or a.dtype != b.dtype:
                raise ValueError(
                    f"input_output_aliases contains the mapping '{i}:{o}' referring to input[{i}] with abstract value {a} and to"
                    f" output[{o}] with a different abstract value {b}."
                )
        return aliases

    def _initial(self):
        given = [*self.scalars, *self.ins]
        for o, aval in enumerate(self.outs):
            yield given[self.aliases[o]] if o in self.aliases else uninitialized(aval.shape, aval.dtype)

    def run(self):
        """The outputs: a list."""
        written = ()
        outs = [b.pad(x) for b, x in zip(self.out_blocks, self._initial(), strict=True)]
        ins = [b.pad(x) for b, x in zip(self.in_blocks, self.ins, strict=True)]
        while True:
            try:
                outs = self._loop(ins, outs, written)
                return [b.unpad(x) for b, x in zip(self.out_blocks, outs, strict=True)]
            except _Writes as e:
                written = e.places

    def _loop(self, ins, outs, written):
        """All calls.

        `written`: the inputs that the kernel writes to, which are carried as outputs are.
        """
        kept = [scratch(s)[...] for s in tree_leaves(self.scratch)]
        carry = ([ins[k] for k in written], outs, kept)
        if not self.grid or all(isinstance(g, int) and g == 1 for g in self.grid):
            return self._step(np.int32(0), ins, carry, written)[1]
        total = math.prod(self.grid) if all(isinstance(g, int) for g in self.grid) else functools.reduce(lax.mul, map(_int32, self.grid))
        return lax.fori_loop(0, total, lambda i, c: self._step(_int32(i), ins, c, written), carry)[1]

    def _ids(self, i):
        ids = []
        for k, n in reversed(list(enumerate(self.grid))):
            ids.append(i if k == 0 else lax.rem(i, _int32(n)))
            i = lax.div(i, _int32(n)) if k else i
        return [_core.asarray(x) for x in reversed(ids)]

    def _step(self, i, ins, carry, written):
        moved, outs, kept = carry
        ins = list(ins)
        for k, x in zip(written, moved, strict=True):
            ins[k] = x
        ids = self._ids(i)
        with _grid.at(ids, self.grid):
            scalars = [KernelRef(x) for x in self.scalars]
            given = tree_unflatten(self.scalar_tree, scalars)
            blocks = [*self.in_blocks, *self.out_blocks]
            starts = [b.starts(ids, given) for b in blocks]
            arrays = [*ins, *outs]
            before = [b.cut(x, s) for b, x, s in zip(blocks, arrays, starts, strict=True)]
            refs = [KernelRef(x) for x in before]
            first = [r._value for r in refs]
            own = [KernelRef(x) for x in kept]
            self._call(given, refs[: len(ins)], refs[len(ins) :], own)
        after = [r._here() for r in refs]
        places = tuple(k for k in range(len(ins)) if k in written or after[k] is not first[k])
        if places != tuple(written):
            raise _Writes(places)
        put = [x if v is f else b.put(x, s, v) for b, x, s, v, f in zip(blocks, arrays, starts, after, first, strict=True)]
        return [put[k] for k in written], put[len(ins) :], [r._here() for r in own]

    def _call(self, scalars, ins, outs, own):
        given = tree_unflatten(self.in_tree, ins)
        results = tree_unflatten(self.out_tree, outs)
        results = results if isinstance(results, (tuple, list)) else (results,)
        extra = tree_unflatten(tree_structure(self.scratch), own)
        named = extra if isinstance(extra, dict) else {}
        got = self.fun(*scalars, *given, *results, *(() if named else extra), **named)
        if got is not None:
            raise ValueError(f"The kernel function in the pallas_call {_named(self.fun)} should return None. It returns a PyTree: {tree_structure(got)}.")


class _Writes(Exception):
    """The kernel writes to inputs that were not carried."""

    def __init__(self, places):
        super().__init__(places)
        self.places = places


def _int32(x):
    return lax.convert_element_type(x, np.dtype(np.int32))


def _as_type(x):
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    if shape is None or dtype is None:
        raise ValueError(f"Invalid out_shape type: {type(x)}")
    return ShapeDtypeStruct(tuple(shape), dtype)


def call_kernel(fun, spec, args, out_shape, aliases=None, scratch_shapes=()):
    """The outputs of a kernel on arguments, in the tree of `out_shape`."""
    paths, out_tree = tree_flatten_with_path(out_shape)
    outs = [_as_type(x) for _, x in paths]
    made = _Kernel(fun, spec, args, outs, out_tree, [p for p, _ in paths], scratch_shapes, dict(aliases or {}))
    return tree_unflatten(out_tree, made.run())


def _merged(grid_spec, grid, in_specs, out_specs, scratch_shapes):
    if grid_spec is None:
        return GridSpec(grid, in_specs, out_specs, scratch_shapes)
    for name, value, empty in (
        ("grid", grid, "()"),
        ("in_specs", in_specs, "no_block_spec"),
        ("out_specs", out_specs, "no_block_spec"),
        ("scratch_shapes", scratch_shapes, "()"),
    ):
        if value is not no_block_spec and value:
            raise ValueError(f"If `grid_spec` is specified, then `{name}` must be `{empty}`. It is {value}")
    return grid_spec


@api_boundary
def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: Any = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Any = {},  # noqa: B006 - the signature of JAX; it is not written to
    debug: bool = False,
    interpret: bool = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    metadata: Any = None,
) -> Callable[..., Any]:
    """A function that runs a kernel over the blocks of its arguments.

    Args:
        kernel: a function of references: to a block of each input, to a block of each output, and
          to scratch. It writes its results.
        out_shape: the outputs: a tree of objects with a shape and a dtype.
        grid_spec: `grid`, `in_specs`, `out_specs` and `scratch_shapes` as one object.
        grid: how many calls there are along each axis. They run one after another, the last axis
          first.
        in_specs: a `BlockSpec` for each input. By default the whole array.
        out_specs: one for each output.
        scratch_shapes: further references for the kernel, whose contents persist from iteration to
          iteration.
        input_output_aliases: for the number of an input, the number of the output that is
          initialized with it.
        debug, interpret, compiler_params, cost_estimate, metadata: ignored: a kernel is a
          program of the language, on every device.
        name: the name of the kernel.

    Returns:
        a function of arrays that returns arrays.

    Raises:
        ValueError: specifications do not fit the arrays, or each other.

    >>> def double(x_ref, o_ref):
    ...     o_ref[...] = 2 * x_ref[...]
    >>> pallas_call(double, out_shape=jnp.zeros(3))(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    spec = _merged(grid_spec, grid, in_specs, out_specs, scratch_shapes)
    out_shape = tuple(out_shape) if isinstance(out_shape, list) else out_shape
    dynamic = [g for g in spec.grid if not isinstance(g, int)]

    @api_boundary
    def wrapped(sizes, *args):
        given = iter(sizes)
        here = _with_grid(spec, [g if isinstance(g, int) else next(given) for g in spec.grid])
        return call_kernel(kernel, here, args, out_shape, input_output_aliases, spec.scratch_shapes)

    wrapped.__name__ = wrapped.__qualname__ = name or getattr(kernel, "__name__", "kernel")
    run = jit(wrapped)
    return functools.wraps(kernel)(lambda *args: run(dynamic, *args)) if hasattr(kernel, "__name__") else lambda *args: run(dynamic, *args)


def _with_grid(spec, grid):
    made = object.__new__(type(spec))
    made.__dict__.update(spec.__dict__, grid=tuple(grid))
    return made
