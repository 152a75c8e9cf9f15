"""`jax._src.interpreters`."""
