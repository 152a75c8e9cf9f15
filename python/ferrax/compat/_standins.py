"""The internals of JAX's that libraries touch: each name, what it is here, and who asks for it.

Invariant: a row names something that works, public in Ferrax or a few lines of `_internals`. A name without a row is absent, and says so.
"""

_ROWS = (
    # module, name, what it is here, who asks
    ("jax.lib.xla_extension", "XlaRuntimeError", "errors.JaxRuntimeError", "equinox"),
    ("jax.version", "__version__", "compat.FOLLOWS", "libraries that compare versions"),
    ("jax._src.ad_util", "stop_gradient_p", "compat._internals.stop_gradient_p", "lineax"),
    ("jax._src.array", "_reconstruct_array", "compat._internals.reconstruct_array", "pickles that JAX wrote"),
    ("jax._src.checkify", "Error", "experimental.checkify.Error", "flax.nnx"),
    ("jax._src.checkify", "JaxException", "experimental.checkify.JaxException", "flax.nnx"),
    ("jax._src.checkify", "Out", "compat._internals.Out", "flax.nnx"),
    ("jax._src.checkify", "checkify", "experimental.checkify.checkify", "flax.nnx"),
    ("jax._src.checkify", "user_checks", "experimental.checkify.user_checks", "flax.nnx"),
    ("jax._src.core", "ShapedArray", "core.ShapedArray", "flax.linen"),
    ("jax._src.core", "trace_state_clean", "compat._internals.trace_state_clean", "numpyro"),
    ("jax._src.dispatch", "wait_for_tokens", "effects_barrier", "equinox"),
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
)

STANDINS = {
    "jax._src": {},
    "jax._src.compiler": {},  # chex looks there for what it could replace
    "jax._src.state": {},
    "jax.lib": {},
    "jaxlib.version": {},
}
for _module, _name, _where, _who in _ROWS:
    STANDINS.setdefault(_module, {})[_name] = _where, _who
