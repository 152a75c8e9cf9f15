"""`jax._src.random`."""
