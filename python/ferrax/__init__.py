"""Ferrax: JAX's programming model on its own runtime.

    import ferrax as jax, ferrax.numpy as jnp

    grads = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0)))(params, examples)

This module is the one list of public names. Names in `_LAZY` are imported when they are first used,
so that `import ferrax` stays quick.
"""

import importlib as _importlib
import typing as _typing

from ._base.late import late as _late
from ._base import hooks as _hooks
from ._core import Array as Array, Device as Device
from ._base.config import (
    __version__ as __version__, check_tracer_leaks as check_tracer_leaks, checking_leaks as checking_leaks, config as config,
    debug_infs as debug_infs, debug_nans as debug_nans, default_device as default_device, default_matmul_precision as default_matmul_precision,
    default_prng_impl as default_prng_impl, disable_jit as disable_jit, disable_x64 as disable_x64, enable_checks as enable_checks,
    enable_custom_prng as enable_custom_prng, enable_x64 as enable_x64, explain_cache_misses as explain_cache_misses,
    legacy_prng_key as legacy_prng_key, log_compiles as log_compiles, no_tracing as no_tracing, numpy_dtype_promotion as numpy_dtype_promotion,
    numpy_rank_promotion as numpy_rank_promotion, softmax_custom_jvp as softmax_custom_jvp, strict_bounds as strict_bounds,
    threefry_partitionable as threefry_partitionable,
)
from ._base.dtypes import float0 as float0
from ._tracing.trace import (
    ShapeDtypeStruct as ShapeDtypeStruct, clear_caches as clear_caches, effects_barrier as effects_barrier,
    ensure_compile_time_eval as ensure_compile_time_eval, eval_shape as eval_shape, make_jaxpr as make_jaxpr, named_call as named_call,
    named_scope as named_scope, typeof as typeof,
)
from ._tracing.jit import jit as jit
from ._runtime.devices import (
    block_until_ready as block_until_ready, copy_to_host_async as copy_to_host_async, default_backend as default_backend,
    device_count as device_count, device_get as device_get, device_put as device_put, devices as devices, host_count as host_count,
    host_id as host_id, host_ids as host_ids, live_arrays as live_arrays, local_device_count as local_device_count, local_devices as local_devices,
    print_environment_info as print_environment_info, process_count as process_count, process_index as process_index,
    process_indices as process_indices,
)
from ._transforms.grad import (
    fwd_and_bwd as fwd_and_bwd, grad as grad, hessian as hessian, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev, jvp as jvp,
    value_and_grad as value_and_grad,
)
from ._transforms.linear import linear_transpose as linear_transpose, linearize as linearize, vjp as vjp
from ._transforms.vmap import vmap as vmap
from . import errors as errors, tree as tree, tree_util as tree_util

if _typing.TYPE_CHECKING:
    from ._maps.pmap import pmap as pmap
    from ._maps.shard_map import shard_map as shard_map, smap as smap
    from . import (
        ad_checkpoint as ad_checkpoint, api_util as api_util, core as core, custom_batching as custom_batching,
        custom_derivatives as custom_derivatives, debug as debug, distributed as distributed, dlpack as dlpack, dtypes as dtypes,
        example_libraries as example_libraries, experimental as experimental, export as export, extend as extend, ffi as ffi,
        flatten_util as flatten_util, graph as graph, image as image, interpreters as interpreters, lax as lax, memory as memory,
        monitoring as monitoring, nn as nn, numpy as numpy, ops as ops, profiler as profiler, progress as progress, random as random, ref as ref,
        scipy as scipy, sharding as sharding, stages as stages, test_util as test_util, typing as typing,
    )
    from ._runtime.callback import pure_callback as pure_callback
    from ._transforms.checkpoint import checkpoint as checkpoint, remat as remat
    from ._base.config import (
        allow_f16_reductions as allow_f16_reductions, array_garbage_collection_guard as array_garbage_collection_guard, auto_pcast as auto_pcast,
        debug_key_reuse as debug_key_reuse, no_execution as no_execution, remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
        thread_guard as thread_guard, make_user_context as make_user_context, transfer_guard as transfer_guard,
        transfer_guard_device_to_device as transfer_guard_device_to_device, transfer_guard_device_to_host as transfer_guard_device_to_host,
        transfer_guard_host_to_device as transfer_guard_host_to_device,
    )
    from ._transforms.policies import checkpoint_policies as checkpoint_policies
    from ._references.functions import ds as ds, empty_ref as empty_ref, free_ref as free_ref, freeze as freeze, new_ref as new_ref
    from ._references.refs import Ref as Ref
    from ._base.threads import num_threads as num_threads, set_num_threads as set_num_threads
    from .custom_derivatives import (
        closure_convert as closure_convert, custom_gradient as custom_gradient, custom_jvp as custom_jvp, custom_vjp as custom_vjp,
    )
    from .sharding import (
        NamedSharding as NamedSharding, PartitionSpec as P, Shard as Shard, make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays, make_mesh as make_mesh, reshard as reshard,
        set_mesh as set_mesh,
    )

_MODULES = {
    "ad", "ad_checkpoint", "api_util", "core", "custom_batching", "custom_derivatives", "debug", "distributed", "dlpack", "dtypes", "example_libraries", "experimental",
    "export", "extend", "ffi", "flatten_util", "graph", "image", "interpreters", "lax", "memory", "monitoring", "nn", "numpy", "ops", "profiler", "progress", "random", "ref", "scipy", "sharding", "stages",
    "test_util", "typing",
}
_LAZY = {
    "checkpoint": "_transforms.checkpoint",
    "checkpoint_policies": "_transforms.policies",
    "remat": "_transforms.checkpoint",
    "closure_convert": "custom_derivatives",
    "custom_gradient": "custom_derivatives",
    "custom_jvp": "custom_derivatives",
    "custom_vjp": "custom_derivatives",
    "num_threads": "_base.threads",
    "set_num_threads": "_base.threads",
    "pmap": "_maps.pmap",
    "pure_callback": "_runtime.callback",
    "Ref": "_references.refs",
    "ds": "_references.functions",
    "empty_ref": "_references.functions",
    "free_ref": "_references.functions",
    "freeze": "_references.functions",
    "new_ref": "_references.functions",
    **dict.fromkeys(
        (
            "allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "debug_key_reuse",
            "no_execution", "remove_size_one_mesh_axis_from_type", "thread_guard", "make_user_context", "transfer_guard", "transfer_guard_device_to_device",
            "transfer_guard_device_to_host", "transfer_guard_host_to_device",
        ),
        "_base.config",
    ),
    "shard_map": "_maps.shard_map",
    "smap": "_maps.shard_map",
    **dict.fromkeys(
        (
            "NamedSharding", "P", "Shard", "make_array_from_callback", "make_array_from_process_local_data",
            "make_array_from_single_device_arrays", "make_mesh", "reshard", "set_mesh",
        ),
        "sharding",
    ),
    # Further names.
    "tree_all": "tree_util",
    "tree_flatten": "tree_util",
    "tree_leaves": "tree_util",
    "tree_map": "tree_util",
    "tree_multimap": "tree_util",
    "tree_reduce": "tree_util",
    "tree_structure": "tree_util",
    "tree_transpose": "tree_util",
    "tree_unflatten": "tree_util",
}


if not _typing.TYPE_CHECKING:  # a checker would take every name for one of the module's

    def __getattr__(name):
        if name in _MODULES:
            return _importlib.import_module(f"{__name__}.{name}")
        if name in _LAZY:
            value = getattr(_importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted({*(n for n in globals() if not n.startswith("_")), *_MODULES, *_LAZY, "__version__"})


_late(__name__)
