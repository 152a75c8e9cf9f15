"""How arrays are cut into blocks, and the other inputs of a kernel: `BlockSpec`, `GridSpec`, memory
spaces and scratch.

    BlockSpec((128, None), lambda i, j: (i, j))        # 128 rows of column j, at rows 128 * i ..

Invariant: a specification determines the elements of a block, not its memory. There is one kind of
memory, so memory spaces, buffers and parameters of a compiler change no result.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ... import _core

if TYPE_CHECKING:
    from ..._core import ShapedArray

__all__ = [
    "BlockDim",
    "BlockSpec",
    "Blocked",
    "BoundedSlice",
    "Buffered",
    "CompilerParams",
    "CostEstimate",
    "DeviceIdType",
    "Element",
    "GridSpec",
    "Indirect",
    "MemoryRef",
    "MemorySpace",
    "PrefetchScalarGridSpec",
    "RevisitMode",
    "Slice",
    "Squeezed",
    "block_dim",
    "no_block_spec",
    "semaphore",
    "sizes",
    "squeezed",
]


@dataclasses.dataclass(frozen=True)
class Blocked:
    """A dimension that is cut into blocks of this size: the index map gives the number of the
    block.
    """

    block_size: int

    def __str__(self):
        return f"Blocked({self.block_size})"


@dataclasses.dataclass(frozen=True)
class Element:
    """A dimension of blocks of this size.

    The index map returns their first element, in the array with `padding` at both ends.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)

    def __str__(self):
        return f"Element({self.block_size})" if self.padding == (0, 0) else f"Element({self.block_size}, padding={self.padding})"


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """A dimension along which a block has one element, and which the kernel's reference does not
    have.
    """


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """A dimension of blocks of up to this size. The index map returns a `Slice`."""

    block_size: int

    def __repr__(self):
        return f"BoundedSlice({self.block_size})"


@dataclasses.dataclass(frozen=True)
class Indirect:
    """A dimension that is indexed by an array of indices."""

    block_size: int

    def __repr__(self):
        return f"Indirect({self.block_size})"


squeezed = Squeezed()
BlockDim = Element | Squeezed | Blocked | BoundedSlice | Indirect


@dataclasses.dataclass(frozen=True)
class Slice:
    """`size` elements from `start`, each `stride` after the last: an index of references."""

    start: Any
    size: Any
    stride: int = 1

    @property
    def is_dynamic_start(self) -> bool:
        """Whether the start is an array."""
        return not isinstance(self.start, int)

    @property
    def is_dynamic_size(self) -> bool:
        """Whether the size is an array."""
        return not isinstance(self.size, int)

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> Self:
        """A Python slice of a dimension of this size."""
        start, stop, step = slc.indices(size)
        return cls(start, max((stop - start + step - 1) // step, 0), step)


class RevisitMode(enum.Enum):
    """Whether the block of an output may be visited again; accepted without effect, any block
    may.
    """

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How many buffers a block has in a pipeline; there are none here."""

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


class DeviceIdType(enum.Enum):
    """How a device is named in copies between devices."""

    MESH = "mesh"
    LOGICAL = "logical"


class semaphore:
    """The dtype of semaphores: never made."""


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """The shape and dtype of scratch that a kernel is given a reference to, and where it is."""

    inner_aval: Any
    memory_space: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.inner_aval.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self.inner_aval.dtype

    def get_array_aval(self) -> ShapedArray:
        """The type of the array."""
        return self.inner_aval


class Space:
    """The methods of enumerations of memory spaces.

    Calling a member with a shape and a dtype gives scratch in that space.
    """

    def from_type(self, type):
        """Scratch of a type."""
        return MemoryRef(type, self)

    def __call__(self, shape, dtype):
        return self.from_type(_core.ShapedArray(tuple(shape), np.dtype(dtype)))

    def __str__(self):
        return self.value


class MemorySpace(Space, enum.Enum):
    """The kinds of memory, which are all the same here."""

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"


class CompilerParams:
    """The base class of compiler parameters, which have no effect here."""


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """The estimated cost of a kernel."""

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def to_json(self) -> bytes:
        """As JSON."""
        return f'{{"flops": {self.flops}, "transcendentals": {self.transcendentals}, "bytes_accessed": {self.bytes_accessed}}}'.encode("ascii")


class _NoBlockSpec:
    def __repr__(self):
        return "NoBlockSpec"


no_block_spec = _NoBlockSpec()


@dataclasses.dataclass
class BlockSpec:
    """How an array is cut for each call of a kernel.

    Attributes:
        block_shape: the size of a block along each dimension: a number, None (one element; the
          kernel's block lacks the dimension) or a `BlockDim`. None: the whole array.
        index_map: the place of the block, of the indices of the grid: a number for each dimension.
          None: the first.
        memory_space: where the block is.
        pipeline_mode: how it is brought there.
    """

    block_shape: Sequence[Any] | None = None
    index_map: Callable[..., Any] | None = None
    memory_space: Any | None = dataclasses.field(kw_only=True, default=None)
    pipeline_mode: Buffered | None = None

    def replace(self, /, **changes: Any) -> BlockSpec:
        """A copy with these attributes changed."""
        return dataclasses.replace(self, **changes)


def block_dim(dim):
    """A dimension of a block's shape as a `BlockDim`.

    Raises:
        ValueError: it is not a dimension.
    """
    if dim is None:
        return squeezed
    if isinstance(dim, BlockDim):
        return dim
    try:
        return Blocked(int(dim))
    except Exception as e:
        raise ValueError(f"Unsupported block dimension type: {type(dim)}. Allowed types: `pl.Squeezed`, `pl.Blocked`, `pl.Element`, `int`, `None`.") from e


def sizes(dims):
    """The sizes of a block's dimensions, including the squeezed ones."""
    return tuple(1 if isinstance(d, Squeezed) else d.block_size for d in dims)


def _is_size(g):
    return isinstance(g, (int, np.integer, _core.Array)) and not isinstance(g, bool)


class GridSpec:
    """The grid of a kernel's calls, the blocks of its arrays, and its scratch.

    Args:
        grid: the sizes of the grid, or one; or pairs of a name and a size.
        in_specs: a tree of `BlockSpec` as the inputs are.
        out_specs: one as the outputs are.
        scratch_shapes: further references for the kernel.

    Raises:
        ValueError: a size is not a number, or `in_specs` is not a sequence.
    """

    num_scalar_prefetch = 0

    def __init__(self, grid: Any = (), in_specs: Any = no_block_spec, out_specs: Any = no_block_spec, scratch_shapes: Any = ()) -> None:
        if in_specs is not no_block_spec and not isinstance(in_specs, Sequence):
            raise ValueError(f"`in_specs` must be a tuple or a list. Found: {in_specs}")
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        self.scratch_shapes = scratch_shapes if isinstance(scratch_shapes, Mapping) else tuple(scratch_shapes)
        self.grid_names = None
        if isinstance(grid, int):
            grid = (grid,)
        elif grid and isinstance(grid[0], tuple):
            self.grid_names, grid = zip(*grid, strict=True)
        if not all(map(_is_size, grid)):
            raise ValueError(f"Grid must be a tuple of integers or jax.Array, got {grid}")
        self.grid = tuple(int(g) if isinstance(g, (int, np.integer)) else g for g in grid)


class PrefetchScalarGridSpec(GridSpec):
    """As `GridSpec`; the first inputs are there whole before the blocks are, and index maps are
    given references to them.

    Args:
        num_scalar_prefetch: how many.
        grid, in_specs, out_specs, scratch_shapes: as for `GridSpec`, without the prefetched inputs.
    """

    def __init__(
        self, num_scalar_prefetch: Any, grid: Any = (), in_specs: Any = no_block_spec, out_specs: Any = no_block_spec, scratch_shapes: Any = ()
    ) -> None:
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch
