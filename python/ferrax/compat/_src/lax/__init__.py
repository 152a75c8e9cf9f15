"""`jax._src.lax`."""
