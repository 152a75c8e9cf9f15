"""Functions for TPU kernels, as far as they have a meaning with one kind of memory.

    pltpu.VMEM((8, 128), jnp.float32)            # scratch
    pltpu.sync_copy(x_ref.at[0], scratch_ref)    # the copy is made when it is started

Invariant: memory spaces, semaphores and compiler parameters change no result; a copy is complete
when it has been started. Functions that need a TPU raise errors.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ... import lax
from ..._base.refused import refused as _refused
from ...numpy import roll as _roll, take_along_axis as _take_along_axis
from ._inside import (
    semaphore_read as semaphore_read,
    semaphore_signal as semaphore_signal,
    semaphore_wait as semaphore_wait,
)
from ._references import load as _load, store as _store
from ._specs import DeviceIdType as DeviceIdType, MemorySpace as _AnySpace, PrefetchScalarGridSpec as PrefetchScalarGridSpec, Space as _Space

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..._core import Array
    from ...typing import ArrayLike, DTypeLike

_T = TypeVar("_T")

__all__ = [
    "ANY",
    "ARBITRARY",
    "CMEM",
    "CORE_PARALLEL",
    "HBM",
    "HOST",
    "PARALLEL",
    "SEMAPHORE",
    "SMEM",
    "SUBCORE_PARALLEL",
    "VMEM",
    "VMEM_SHARED",
    "CompilerParams",
    "DeviceIdType",
    "GridDimensionSemantics",
    "InterpretParams",
    "MemorySpace",
    "PrefetchScalarGridSpec",
    "SemaphoreType",
    "SideEffectType",
    "async_copy",
    "bitcast",
    "dma_semaphore",
    "force_tpu_interpret_mode",
    "is_tpu_device",
    "load",
    "make_async_copy",
    "reset_tpu_interpret_mode_state",
    "roll",
    "semaphore",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "set_tpu_interpret_mode",
    "store",
    "sync_copy",
    "touch",
    "with_memory_space_constraint",
]


class MemorySpace(_Space, enum.Enum):
    """The memories of a TPU. One called with a shape and a dtype is scratch there."""

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    HBM = "hbm"
    SEMAPHORE = "semaphore_mem"


VMEM, VMEM_SHARED, SMEM, CMEM = MemorySpace.VMEM, MemorySpace.VMEM_SHARED, MemorySpace.SMEM, MemorySpace.CMEM
HBM, SEMAPHORE = MemorySpace.HBM, MemorySpace.SEMAPHORE
ANY, HOST = _AnySpace.ANY, _AnySpace.HOST


class GridDimensionSemantics(enum.Enum):
    """Whether the calls along an axis of the grid may run in any order; they run in theirs."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, CORE_PARALLEL = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL, ARBITRARY = GridDimensionSemantics.SUBCORE_PARALLEL, GridDimensionSemantics.ARBITRARY


class SideEffectType(enum.Enum):
    """Whether a kernel is kept although its results are unused."""

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


@dataclasses.dataclass(frozen=True)
class _Counter:
    """Scratch that is a semaphore: a number that is counted."""

    shape: tuple = ()
    counts = True


class SemaphoreType(enum.Enum):
    """The kinds of semaphores. One called with a shape is an array of them."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    @property
    def counts(self) -> bool:
        """Whether it counts: always."""
        return True

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return ()

    def __call__(self, shape: Sequence[int] = ()) -> _Counter:
        """An array of such semaphores."""
        return _Counter(tuple(shape))


semaphore = SemaphoreType.REGULAR
dma_semaphore = SemaphoreType.DMA


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Parameters of the TPU compiler. They have no effect here."""

    dimension_semantics: Any = None
    allow_input_fusion: Any = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: Any = False
    flags: Any = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False


@dataclasses.dataclass(frozen=True)
class InterpretParams:
    """Options of the TPU interpreter. Kernels are ordinary programs, so they have no effect."""

    dma_execution_mode: str = "on_wait"
    detect_races: bool = False
    out_of_bounds_reads: str = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    random_seed: int | None = None
    grid_point_recorder: Any = None
    num_cores_or_threads: int = 1
    allow_hbm_allocation_in_run_scoped: bool = False
    vector_clock_size: int | None = None
    logging_mode: Any = None


# ---------------------------------------------------------------- copies


class _Copy:
    """A copy from one reference to another."""

    def __init__(self, src, dst, sem, add):
        self.src_ref, self.dst_ref, self.sem, self._add = src, dst, sem, add

    def start(self, priority=0, *, add=False):
        """Makes the copy; with `add`, adds it to the destination."""
        del priority
        if add or self._add:
            self.dst_ref[...] += self.src_ref[...]
        else:
            self.dst_ref[...] = self.src_ref[...]

    def wait(self):
        """It is over."""

    wait_send = wait_recv = wait


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any, *, add: bool = False) -> _Copy:
    """A copy between references that its method `start` starts and its method `wait` waits for.

    Args:
        src_ref: reference or a part of one, the source.
        dst_ref: reference or a part of one, the destination.
        sem: semaphore that counts the copy.
        add: bool; whether the source is added to the destination.

    Returns:
        The copy.
    """
    return _Copy(src_ref, dst_ref, sem, add)


def async_copy(src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False) -> _Copy:
    """Starts a copy between references.

    Args:
        src_ref: reference or a part of one, the source.
        dst_ref: reference or a part of one, the destination.
        sem: semaphore that counts the copy.
        priority: accepted without effect.
        add: bool; whether the source is added to the destination.

    Returns:
        The copy, whose method `wait` waits for it.
    """
    copy = make_async_copy(src_ref, dst_ref, sem, add=add)
    copy.start(priority)
    return copy


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """Copies the elements of one reference to another.

    Args:
        src_ref: reference or a part of one, the source.
        dst_ref: reference or a part of one, the destination.
        add: bool; whether the source is added to the destination.

    Returns:
        None.
    """
    make_async_copy(src_ref, dst_ref, None, add=add).start()


def load(ref: Any, *, mask: Any = None) -> Array:
    """The elements of a reference.

    Args:
        ref: reference or a part of one.
        mask: boolean array, which elements to read; the others have no particular value. None: all.

    Returns:
        Array of the shape and dtype of the reference.
    """
    return _load(ref, mask=mask)


def store(ref: Any, val: ArrayLike, *, mask: Any = None) -> None:
    """Sets elements of a reference.

    Args:
        ref: reference or a part of one.
        val: array of its shape, or one that broadcasts to it.
        mask: boolean array, which elements to set; None: all.

    Returns:
        None.
    """
    _store(ref, val, mask=mask)


# ---------------------------------------------------------------- arrays


def roll(x: Array, shift: Any, axis: int, *, stride: int | None = None, stride_axis: int | None = None) -> Array:
    """An array moved cyclically along an axis, towards higher indices.

    Args:
        x: array.
        shift: int or integer scalar array, the distance, not negative.
        axis: int, the axis, from 0 on.
        stride: int, not negative: element i along `stride_axis` is moved by i times `stride` more.
          None: all are moved equally.
        stride_axis: int, another axis; None without `stride`.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ValueError: a shift or a stride is negative, an axis is out of range, or one of `stride` and
          `stride_axis` is given alone.
    """
    if isinstance(shift, int) and shift < 0:
        raise ValueError("shift must be non-negative.")
    if not 0 <= axis < x.ndim:
        raise ValueError("axis is out of range.")
    if (stride is None) != (stride_axis is None):
        raise ValueError("stride and stride_axis must be both specified or not.")
    if stride is None:
        return _roll(x, shift, axis)
    if stride < 0:
        raise ValueError("stride must be non-negative.")
    if not 0 <= stride_axis < x.ndim:
        raise ValueError("stride_axis is out of range")
    if axis == stride_axis:
        raise ValueError("expected axis and stride_axis are different.")
    size = x.shape[axis]
    moved = lax.broadcasted_iota(np.int32, x.shape, stride_axis) * np.int32(stride) + shift
    source = lax.rem(lax.broadcasted_iota(np.int32, x.shape, axis) - lax.rem(moved, np.int32(size)) + np.int32(size), np.int32(size))
    return _take_along_axis(x, source, axis)


def bitcast(x: Array, ty: DTypeLike) -> Array:
    """The bits of an array as another dtype.

    Where elements become narrower or wider, the last axis but one grows or shrinks.

    Args:
        x: array (..., m, n).
        ty: dtype.

    Returns:
        Array of dtype `ty`, of shape (..., m * width of x's dtype / width of ty, n).

    Raises:
        ValueError: `x` has no such axis, or its size is not divisible.
    """
    ty = np.dtype(ty)
    width, wanted = np.dtype(x.dtype).itemsize, ty.itemsize
    if width == wanted:
        return lax.bitcast_convert_type(x, ty)
    if x.ndim < 2:
        raise ValueError("Not implemented: bitcast 1D")
    if width > wanted:
        k = width // wanted
        y = lax.bitcast_convert_type(x, ty)
        return lax.reshape(_moved(y, -1, -2), (*x.shape[:-2], x.shape[-2] * k, x.shape[-1]))
    k = wanted // width
    if x.shape[-2] % k:
        raise ValueError(f"Expected input and output shapes are the same after multiplying the second minor dimension by the bitwidth: {x.shape}, {ty}")
    y = lax.reshape(x, (*x.shape[:-2], x.shape[-2] // k, k, x.shape[-1]))
    return lax.bitcast_convert_type(_moved(y, -2, -1), ty)


def _moved(x, start, end):
    order = list(range(x.ndim))
    order.insert(end % x.ndim, order.pop(start % x.ndim))
    return lax.transpose(x, order)


def touch(ref: Any) -> None:
    """Accepted without effect: keeps a reference from being removed.

    Args:
        ref: reference.

    Returns:
        None.
    """
    del ref


def with_memory_space_constraint(x: _T, memory_space: Any) -> _T:
    """Requests a memory space for an array. A device has only one, so it has no effect.

    Args:
        x: array.
        memory_space: MemorySpace.

    Returns:
        `x`.
    """
    del memory_space
    return x


# ---------------------------------------------------------------- how kernels run: always as programs


@contextlib.contextmanager
def force_tpu_interpret_mode(params: InterpretParams | None = None) -> Iterator[None]:
    """Context manager without effect: kernels run on the device as programs in any case.

    Args:
        params: accepted without effect.

    Yields:
        None.
    """
    del params
    yield


def set_tpu_interpret_mode(params: InterpretParams | None = None) -> None:
    """Accepted without effect: kernels run on the device as programs in any case.

    Args:
        params: accepted without effect.

    Returns:
        None.
    """
    del params


def reset_tpu_interpret_mode_state() -> None:
    """Accepted without effect.

    Returns:
        None.
    """


def is_tpu_device() -> bool:
    """Whether the default device is a TPU.

    Returns:
        False.
    """
    return False


_NAMES = frozenset(
    """BufferType BufferedRef BufferedRefBase ChipVersion CoreType LoweringException Tiling TpuInfo async_remote_copy core_barrier create_tensorcore_mesh
    einshape emit_pipeline emit_pipeline_with_allocations get_barrier_semaphore get_tpu_info get_tpu_info_for_chip make_async_remote_copy matmul_acc_lhs
    matmul_pop matmul_push_rhs pack_elementwise prng_random_bits prng_seed run_on_first_core sample_block stateful_bernoulli stateful_bits
    stateful_normal stateful_uniform stochastic_round to_pallas_key trace_value unpack_elementwise""".split()
)


def __getattr__(name):
    if name in _NAMES:
        value = _refused(f"jax.experimental.pallas.tpu.{name}", "it is a TPU instruction, and there is no TPU here")
        globals()[name] = value
        return value
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
