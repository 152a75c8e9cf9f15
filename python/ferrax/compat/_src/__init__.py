"""JAX's internal modules, by their paths below `jax._src`."""
