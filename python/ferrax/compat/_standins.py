"""The internals of JAX's that libraries touch: each name, what it is here, and who asks for it.

Modules of `jax.experimental`, `jax.extend` and `jax.interpreters` stand here where Ferrax has no such feature, and libraries import them all the same.

Invariant: a row names something that works, public in Ferrax or a few lines of `_internals`. A name without a row is absent, and says so.
"""

_ROWS = (
    # module, name, what it is here, who asks
    ("jax.experimental.array_serialization.serialization", "GlobalAsyncCheckpointManagerBase", "compat._internals.CheckpointManager", "orbax"),
    ("jax.experimental.array_serialization.serialization", "GlobalAsyncCheckpointManager", "compat._internals.ProcessesCheckpointManager", "flax"),
    ("jax.experimental.array_serialization.serialization", "get_tensorstore_spec", "compat._internals.get_tensorstore_spec", "flax"),
    ("jax.experimental.colocated_python", "colocated_cpu_devices", "compat._colocated.colocated_cpu_devices", "orbax"),
    ("jax.experimental.colocated_python", "colocated_python", "compat._colocated.colocated_python", "orbax"),
    ("jax.experimental.colocated_python", "colocated_python_class", "compat._colocated.colocated_python_class", "orbax"),
    ("jax.experimental.colocated_python.serialization", "DeviceList", ":builtins.tuple", "orbax"),
    ("jax.experimental.hijax", "AbstractValue", "compat._hijax.AbstractValue", "flax.nnx"),
    ("jax.experimental.hijax", "AvalMutableQDD", "compat._hijax.AvalMutableQDD", "flax.nnx"),
    ("jax.experimental.hijax", "AvalQDD", "compat._hijax.AvalQDD", "flax.nnx"),
    ("jax.experimental.hijax", "HiPrimitive", "compat._hijax.HiPrimitive", "flax.nnx"),
    ("jax.experimental.hijax", "HiType", "compat._hijax.HiType", "flax.nnx"),
    ("jax.experimental.hijax", "MutableHiType", "compat._hijax.MutableHiType", "flax.nnx"),
    ("jax.experimental.hijax", "ShapedArray", "compat._hijax.ShapedArray", "flax.nnx"),
    ("jax.experimental.hijax", "Zero", "compat._hijax.Zero", "flax.nnx"),
    ("jax.experimental.hijax", "aval_method", "compat._hijax.aval_method", "flax.nnx"),
    ("jax.experimental.hijax", "aval_property", "compat._hijax.aval_property", "flax.nnx"),
    ("jax.experimental.hijax", "control_flow_allowed_effects", "compat._hijax.control_flow_allowed_effects", "flax.nnx"),
    ("jax.experimental.hijax", "instantiate_zeros", "compat._hijax.instantiate_zeros", "flax.nnx"),
    ("jax.experimental.hijax", "is_undefined_primal", "compat._hijax.is_undefined_primal", "flax.nnx"),
    ("jax.experimental.hijax", "register_hitype", "compat._hijax.register_hitype", "flax.nnx"),
    ("jax.extend.ifrt_programs", "ifrt_programs", "compat._internals.ifrt_programs", "orbax"),
    ("jax.lib.xla_extension", "XlaRuntimeError", "errors.JaxRuntimeError", "equinox"),
    ("jax.version", "__version__", "compat.FOLLOWS", "libraries that compare versions"),
    ("jax.version", "__version_info__", "compat._internals.version_info", "flax.linen"),
    ("jax._src.ad_util", "stop_gradient_p", "compat._internals.stop_gradient_p", "lineax"),
    ("jax._src.array", "_reconstruct_array", "compat._internals.reconstruct_array", "pickles that JAX wrote"),
    ("jax._src.checkify", "Error", "experimental.checkify.Error", "flax.nnx"),
    ("jax._src.checkify", "JaxException", "experimental.checkify.JaxException", "flax.nnx"),
    ("jax._src.checkify", "Out", "compat._internals.Out", "flax.nnx"),
    ("jax._src.checkify", "checkify", "experimental.checkify.checkify", "flax.nnx"),
    ("jax._src.checkify", "user_checks", "experimental.checkify.user_checks", "flax.nnx"),
    ("jax._src.compiler", "backend_compile_and_load", "compat._compiler.backend_compile_and_load", "chex"),
    ("jax._src.core", "ShapedArray", "core.ShapedArray", "flax.linen"),
    ("jax._src.core", "trace_state_clean", "compat._internals.trace_state_clean", "numpyro"),
    ("jax._src.dispatch", "wait_for_tokens", "effects_barrier", "equinox"),
    ("jax._src.distributed", "global_state", "compat._internals.global_state", "orbax"),
    ("jax._src.dtypes", "TypePromotionError", "dtypes.TypePromotionError", "equinox"),
    ("jax._src.dtypes", "DType", ":numpy.dtype", "flax.linen"),
    ("jax._src.dtypes", "ExtendedDType", "compat._internals.ExtendedDType", "flax.linen"),
    ("jax._src.dtypes", "extended", "dtypes.extended", "flax.linen"),
    ("jax._src.dtypes", "finfo", "dtypes.finfo", "flax.linen"),
    ("jax._src.flatten_util", "ravel_pytree", "flatten_util.ravel_pytree", "blackjax"),
    ("jax._src.state.types", "AbstractRef", "compat._internals.AbstractRef", "flax.nnx"),
    ("jax._src.traceback_util", "_exclude_paths", "compat._internals.exclude_paths", "flax"),
    ("jax._src.traceback_util", "api_boundary", "compat._internals.api_boundary", "flax"),
    ("jax._src.traceback_util", "include_frame", "compat._internals.include_frame", "equinox"),
    ("jax._src.traceback_util", "register_exclusion", "compat._internals.register_exclusion", "equinox, flax"),
    ("jax._src.tree_util", "_registry", "compat._internals.node_types", "flax.nnx"),
    ("jax._src.tree_util", "flatten_one_level", "tree_util.flatten_one_level", "orbax"),
    ("jax._src.xla_bridge", "_backends", "compat._internals.backends", "chex"),
)

STANDINS = {
    "jax._src": {},
    "jax._src.state": {},
    "jax.experimental.array_serialization": {},
    "jax.experimental.colocated_python.func": {},  # orbax looks there for what it could replace
    "jax.interpreters.pxla": {},
    "jax.lib": {},
}
for _module, _name, _where, _who in _ROWS:
    STANDINS.setdefault(_module, {})[_name] = _where, _who
