"""Random keys that are consumed twice, found where `jax_debug_key_reuse` is on: `jax.config.update("jax_debug_key_reuse", True)`, or in a block."""

__all__: list[str] = []
