"""Pallas: kernels over blocks of arrays, written as functions of references.

    from jax.experimental import pallas as pl

    def scale(x_ref, o_ref):
        o_ref[...] = x_ref[...] * (pl.program_id(0) + 1)

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    pl.pallas_call(scale, out_shape=x, grid=(x.shape[0] // 8,), in_specs=[rows], out_specs=rows)(x)

Invariant: a kernel has the meaning of `interpret=True` in JAX, on every device, and is compiled
like any program: its calls run one after another, and each sees the writes of those before.
`interpret` has no effect. Functions for hardware (`tpu`, `triton`, `mosaic_gpu`) work as far as
they have a meaning without it.
"""

from ..._core import Primitive as _Primitive
from ...lax import empty as empty
from ._call import pallas_call as pallas_call
from ._grid import num_programs as num_programs, program_id as program_id
from ._inside import (
    align_to as align_to,
    broadcast_to as broadcast_to,
    cdiv as cdiv,
    core_map as core_map,
    debug_check as debug_check,
    debug_checks_enabled as debug_checks_enabled,
    debug_print as debug_print,
    delay as delay,
    dot as dot,
    empty_like as empty_like,
    empty_ref_like as empty_ref_like,
    enable_debug_checks as enable_debug_checks,
    enable_poison_buffers as enable_poison_buffers,
    estimate_cost as estimate_cost,
    get_global as get_global,
    kernel as kernel,
    loop as loop,
    lower_as_mlir as lower_as_mlir,
    multiple_of as multiple_of,
    next_power_of_2 as next_power_of_2,
    pallas_export_experimental as pallas_export_experimental,
    reciprocal as reciprocal,
    run_scoped as run_scoped,
    run_state as run_state,
    select_ref as select_ref,
    semaphore_read as semaphore_read,
    semaphore_signal as semaphore_signal,
    semaphore_wait as semaphore_wait,
    strides_from_shape as strides_from_shape,
    when as when,
    with_scoped as with_scoped,
)
from ._references import ds as ds, dslice as dslice
from ._specs import (
    BlockDim as BlockDim,
    Blocked as Blocked,
    BlockSpec as BlockSpec,
    BoundedSlice as BoundedSlice,
    Buffered as Buffered,
    CompilerParams as CompilerParams,
    CostEstimate as CostEstimate,
    DeviceIdType as DeviceIdType,
    Element as Element,
    GridSpec as GridSpec,
    Indirect as Indirect,
    MemoryRef as MemoryRef,
    MemorySpace as MemorySpace,
    RevisitMode as RevisitMode,
    Slice as Slice,
    Squeezed as Squeezed,
    no_block_spec as no_block_spec,
    semaphore as semaphore,
    squeezed as squeezed,
)

pallas_call_p = _Primitive("pallas_call")
ANY = MemorySpace.ANY
HOST = MemorySpace.HOST
