"""Ferrax: JAX's programming model on its own runtime.

    import ferrax as jax, ferrax.numpy as jnp

    grads = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0)))(params, examples)

This module is the one list of public names. Names in `_LAZY` are imported when they are first used, so that `import ferrax` stays quick.
"""

import importlib as _importlib

from ._late import late as _late
from . import _hooks
from ._core import Array, Device
from ._config import (
    __version__, check_tracer_leaks, checking_leaks, config, debug_infs, debug_nans, default_device, default_matmul_precision,
    default_prng_impl, disable_jit, disable_x64, enable_checks, enable_custom_prng, enable_x64, explain_cache_misses, legacy_prng_key,
    log_compiles, no_tracing, numpy_dtype_promotion, numpy_rank_promotion, softmax_custom_jvp, strict_bounds, threefry_partitionable,
)
from ._flat import float0
from ._api import ShapeDtypeStruct, clear_caches, effects_barrier, ensure_compile_time_eval, eval_shape, make_jaxpr, named_call, named_scope, typeof
from ._jit import jit
from ._devices import (
    block_until_ready, copy_to_host_async, default_backend, device_count, device_get, device_put, devices, host_count, host_id, host_ids,
    live_arrays, local_device_count, local_devices, print_environment_info, process_count, process_index, process_indices,
)
from ._autodiff import fwd_and_bwd, grad, hessian, jacfwd, jacobian, jacrev, jvp, value_and_grad
from ._linear_maps import linear_transpose, linearize, vjp
from ._batching import vmap
from . import errors, tree, tree_util

_MODULES = {
    "ad", "ad_checkpoint", "api_util", "core", "custom_batching", "custom_derivatives", "debug", "distributed", "dlpack", "dtypes", "example_libraries", "experimental",
    "export", "extend", "ffi", "flatten_util", "graph", "image", "interpreters", "lax", "memory", "monitoring", "nn", "numpy", "ops", "profiler", "progress", "random", "ref", "scipy", "sharding", "stages",
    "test_util", "typing",
}
_LAZY = {
    "checkpoint": "_checkpoint",
    "checkpoint_policies": "_policies",
    "remat": "_checkpoint",
    "closure_convert": "custom_derivatives",
    "custom_gradient": "custom_derivatives",
    "custom_jvp": "custom_derivatives",
    "custom_vjp": "custom_derivatives",
    "num_threads": "_threads",
    "set_num_threads": "_threads",
    "pmap": "_pmap",
    "pure_callback": "_callback",
    "Ref": "_refs",
    "ds": "_ref_functions",
    "empty_ref": "_ref_functions",
    "free_ref": "_ref_functions",
    "freeze": "_ref_functions",
    "new_ref": "_ref_functions",
    **dict.fromkeys(
        (
            "allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "debug_key_reuse",
            "no_execution", "remove_size_one_mesh_axis_from_type", "thread_guard", "make_user_context", "transfer_guard", "transfer_guard_device_to_device",
            "transfer_guard_device_to_host", "transfer_guard_host_to_device",
        ),
        "_config",
    ),
    "shard_map": "_shard_map",
    "smap": "_shard_map",
    **dict.fromkeys(
        (
            "NamedSharding", "P", "Shard", "make_array_from_callback", "make_array_from_process_local_data",
            "make_array_from_single_device_arrays", "make_mesh", "reshard", "set_mesh",
        ),
        "sharding",
    ),
    # The founding documents' spellings.
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
