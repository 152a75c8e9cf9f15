"""`jax._src.lax.control_flow`."""
