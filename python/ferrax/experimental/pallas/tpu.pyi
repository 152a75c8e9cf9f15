"""What kernels for TPUs are written with, as far as it means something where there is one kind of memory."""

from enum import Enum
from typing import Any

ANY: Any
ARBITRARY: Any
BufferType: Any
BufferedRef: Any
BufferedRefBase: Any
CMEM: Any
CORE_PARALLEL: Any
ChipVersion: Any

class CompilerParams:
    dimension_semantics: Any
    allow_input_fusion: Any
    vmem_limit_bytes: Any
    collective_id: Any
    has_side_effects: Any
    flags: Any
    internal_scratch_in_bytes: Any
    serialization_format: Any
    disable_bounds_checks: Any
    disable_semaphore_checks: Any
    skip_device_barrier: Any
    allow_collective_id_without_custom_barrier: Any
    shape_invariant_numerics: Any
    use_tc_tiling_on_sc: Any
    needs_layout_passes: Any
    fuse_transposed_lhs_in_matmul: Any
    def __init__(
        self,
        dimension_semantics: Any = None,
        allow_input_fusion: Any = None,
        vmem_limit_bytes: Any = None,
        collective_id: Any = None,
        has_side_effects: bool = False,
        flags: Any = None,
        internal_scratch_in_bytes: Any = None,
        serialization_format: int = 1,
        disable_bounds_checks: bool = False,
        disable_semaphore_checks: bool = False,
        skip_device_barrier: bool = False,
        allow_collective_id_without_custom_barrier: bool = False,
        shape_invariant_numerics: bool = True,
        use_tc_tiling_on_sc: Any = None,
        needs_layout_passes: bool = True,
        fuse_transposed_lhs_in_matmul: bool = False,
    ) -> None: ...

CoreType: Any

class DeviceIdType(Enum):
    MESH = "mesh"
    LOGICAL = "logical"

class GridDimensionSemantics(Enum):
    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"

HBM: Any
HOST: Any

class InterpretParams:
    dma_execution_mode: Any
    detect_races: Any
    out_of_bounds_reads: Any
    skip_floating_point_ops: Any
    uninitialized_memory: Any
    random_seed: Any
    grid_point_recorder: Any
    num_cores_or_threads: Any
    allow_hbm_allocation_in_run_scoped: Any
    vector_clock_size: Any
    logging_mode: Any
    def __init__(
        self,
        dma_execution_mode: str = "on_wait",
        detect_races: bool = False,
        out_of_bounds_reads: str = "raise",
        skip_floating_point_ops: bool = False,
        uninitialized_memory: str = "nan",
        random_seed: Any = None,
        grid_point_recorder: Any = None,
        num_cores_or_threads: int = 1,
        allow_hbm_allocation_in_run_scoped: bool = False,
        vector_clock_size: Any = None,
        logging_mode: Any = None,
    ) -> None: ...

LoweringException: Any

class MemorySpace(Enum):
    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    HBM = "hbm"
    SEMAPHORE = "semaphore_mem"
    def __call__(self, shape: Any, dtype: Any) -> Any: ...
    def from_type(self, type: Any) -> Any: ...

PARALLEL: Any

class PrefetchScalarGridSpec:
    def __init__(self, num_scalar_prefetch: Any, grid: Any = ..., in_specs: Any = ..., out_specs: Any = ..., scratch_shapes: Any = ...) -> None: ...

SEMAPHORE: Any
SMEM: Any
SUBCORE_PARALLEL: Any

class SemaphoreType(Enum):
    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"
    @property
    def counts(self) -> bool: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def __call__(self, shape: Any = ...) -> Any: ...

class SideEffectType(Enum):
    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"

Tiling: Any
TpuInfo: Any
VMEM: Any
VMEM_SHARED: Any

def async_copy(src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False) -> Any: ...

async_remote_copy: Any

def bitcast(x: Any, ty: Any) -> Any: ...

core_barrier: Any
create_tensorcore_mesh: Any
dma_semaphore: SemaphoreType
einshape: Any
emit_pipeline: Any
emit_pipeline_with_allocations: Any

def force_tpu_interpret_mode(params: Any = None) -> Any: ...

get_barrier_semaphore: Any
get_tpu_info: Any
get_tpu_info_for_chip: Any

def is_tpu_device() -> Any: ...
def load(ref: Any, *, mask: Any = None) -> Any: ...
def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any, *, add: bool = False) -> Any: ...

make_async_remote_copy: Any
matmul_acc_lhs: Any
matmul_pop: Any
matmul_push_rhs: Any
pack_elementwise: Any
prng_random_bits: Any
prng_seed: Any

def reset_tpu_interpret_mode_state() -> Any: ...
def roll(x: Any, shift: Any, axis: Any, *, stride: Any = None, stride_axis: Any = None) -> Any: ...

run_on_first_core: Any
sample_block: Any
semaphore: SemaphoreType

def semaphore_read(sem_or_view: Any) -> Any: ...
def semaphore_signal(sem_or_view: Any, inc: int = 1, *, device_id: Any = None, device_id_type: Any = None, core_index: Any = None) -> Any: ...
def semaphore_wait(sem_or_view: Any, value: int = 1, *, decrement: bool = True) -> Any: ...
def set_tpu_interpret_mode(params: Any = None) -> Any: ...

stateful_bernoulli: Any
stateful_bits: Any
stateful_normal: Any
stateful_uniform: Any
stochastic_round: Any

def store(ref: Any, val: Any, *, mask: Any = None) -> Any: ...
def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> Any: ...

to_pallas_key: Any

def touch(ref: Any) -> Any: ...

trace_value: Any
unpack_elementwise: Any

def with_memory_space_constraint(x: Any, memory_space: Any) -> Any: ...
